"""The registers of a core at the end of a serial line, as data."""

from ..bus.registers import Access, Register, RegisterField

#: The characters ``VITC``, by which a host recognises a core.
IDENTITY = 0x56495443
#: Version of the map: the high half changes if old hosts would fail.
VERSION = 0x00010001
#: Characters of the preset's name.
NAME_BYTES = 8

_R, _W = Access.READ, Access.WRITE

#: The counters of cycles, in the order of their registers.
COUNTERS = ("cycles", "s", "v", "m", "mte1", "mte2", "mte3")

#: The units, in the order of the registers of the flags that they wait for.
WAITING = COUNTERS[1:]

#: All registers, in the order of their offsets.
REGISTERS = (
    Register("identity", 0x00, _R, "the characters VITC", reset=IDENTITY),
    Register("version", 0x04, _R, "version of this register map", reset=VERSION),
    Register("encoding", 0x08, _R, "version of the machine code", reset=None),
    Register("name_low", 0x0C, _R, "first four characters of the preset's name", reset=None),
    Register("name_high", 0x10, _R, "last four characters of it", reset=None),
    Register("memory_bytes", 0x14, _R, "bytes of global memory", reset=None),
    Register(
        "control",
        0x18,
        _W,
        "commands to the core",
        (
            RegisterField("start", 0, 1, "1 starts the program at the byte in address"),
            RegisterField("reset", 1, 1, "1 stops the core and resets all but its memories"),
        ),
    ),
    Register(
        "status",
        0x1C,
        _R,
        "state of the core",
        (
            RegisterField("running", 0, 1, "a program has not ended"),
            RegisterField("fault", 4, 4, "why a program has stopped; 0 if it has not"),
            RegisterField("unit", 8, 3, "code of the unit that has the fault"),
            RegisterField("opcode", 16, 8, "its opcode; 0 if the program could not be read"),
        ),
    ),
    Register(
        "address",
        0x20,
        _W,
        "byte of global memory: of the next word of data, or of a program, a multiple of 4 or 32",
    ),
    Register(
        "data",
        0x24,
        Access.BOTH,
        "word of global memory at address, which grows by 4",
    ),
    *(
        Register(name, 0x28 + 4 * n, _R, f"cycles {text} since the last start")
        for n, (name, text) in enumerate(
            (name, "of the program" if not n else f"in which {name.upper()} had work")
            for n, name in enumerate(COUNTERS)
        )
    ),
    Register("fault_pc", 0x44, _R, "number of the first word of the instruction with the fault"),
    *(
        Register(
            f"wait_{name}",
            0x48 + 4 * n,
            _R,
            f"the flag that {name.upper()} waits for",
            (
                RegisterField("waits", 0, 1, "the unit waits"),
                RegisterField("source", 1, 3, "code of the unit that sets the flag"),
                RegisterField("flag", 4, 4, "number of the flag"),
                RegisterField("pc", 8, 24, "number of the waiting word in the program"),
            ),
        )
        for n, name in enumerate(WAITING)
    ),
)

#: The registers by name.
MAP = {register.name: register for register in REGISTERS}

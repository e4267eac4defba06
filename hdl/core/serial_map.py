"""The registers of a core at the end of a serial line, as data."""

from ..bus.registers import Access, Register, RegisterField

#: The characters ``VITC``, by which a host recognises a core.
IDENTITY = 0x56495443
#: Version of the map: the high half changes if old hosts would fail.
VERSION = 0x00010000
#: Characters of the preset's name.
NAME_BYTES = 8

_R, _W = Access.READ, Access.WRITE

#: The counters of cycles, in the order of their registers.
COUNTERS = ("cycles", "s", "v", "m", "mte1", "mte2", "mte3")

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
)

#: The registers by name.
MAP = {register.name: register for register in REGISTERS}

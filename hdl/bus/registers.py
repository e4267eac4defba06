"""The register map of a matrix unit behind a bus, as data, and the bus inside that reaches it.

Every unit has the same map, so one driver serves all of them. Operands and results are longer than
a register, so each of them has one address, which takes or gives its words in rising order.
"""

from dataclasses import dataclass

from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from .core import KINDS, BusCore

#: Bits of a register.
WORD_BITS = 32
#: Bits of a word address, which is a byte offset without its lowest two bits.
ADDRESS_BITS = 8
#: The characters ``VITR``, by which a driver recognises the map.
IDENTITY = 0x56495452
#: Version of the map: the high half changes if old drivers would fail.
VERSION = 0x00010000


class Access(enum.Enum):
    """The access to a register: read, write, both, or a write of ones that clears bits."""

    READ = "read"
    WRITE = "write"
    CLEAR = "read, write 1 to clear"
    BOTH = "read, write"


@dataclass(frozen=True)
class RegisterField:
    """Some bits of a register.

    Attributes
    ----------
    name : str
    low, width : int
        Lowest bit and number of bits.
    text : str
        Meaning of the field.
    """

    name: str
    low: int
    width: int
    text: str

    @property
    def mask(self) -> int:
        """The bits of the field in its register."""
        return ((1 << self.width) - 1) << self.low


@dataclass(frozen=True)
class Register:
    """A register of the map.

    Attributes
    ----------
    name : str
    offset : int
        Byte offset, a multiple of 4.
    access : Access
    text : str
        Meaning of the register.
    fields : tuple of RegisterField
    reset : int or None
        Value after a reset. It is None for a constant that differs from unit to unit, see
        ``constants``.
    kinds : tuple of str
        The kinds of units that have the register.
    """

    name: str
    offset: int
    access: Access
    text: str
    fields: tuple[RegisterField, ...] = ()
    reset: int | None = 0
    kinds: tuple[str, ...] = KINDS

    @property
    def address(self) -> int:
        """The word address."""
        return self.offset // 4

    @property
    def readable(self) -> bool:
        """True if a read is allowed."""
        return self.access is not Access.WRITE

    @property
    def writable(self) -> bool:
        """True if a write is allowed."""
        return self.access is not Access.READ

    def field(self, name: str) -> RegisterField:
        """Return the field with a name.

        Raises
        ------
        KeyError
            If there is none.
        """
        return {field.name: field for field in self.fields}[name]


_R, _W, _C = Access.READ, Access.WRITE, Access.CLEAR
_BEATS = ("cube", "simd2-int")

#: All registers, in the order of their offsets.
REGISTERS = (
    Register("identity", 0x00, _R, "the characters VITR", reset=IDENTITY),
    Register("version", 0x04, _R, "version of this register map", reset=VERSION),
    Register(
        "unit",
        0x08,
        _R,
        "kind of the unit",
        (
            RegisterField("kind", 0, 8, "0 cube, 1 simd2-int, 2 mma"),
            RegisterField("slots", 8, 8, "number of C fractals that the unit holds"),
            RegisterField("word_bits", 16, 8, "bits of an element of C and D"),
            RegisterField("latency", 24, 8, "cycles from a beat to its result"),
        ),
        None,
    ),
    Register(
        "shape",
        0x0C,
        _R,
        "shape of a beat",
        (
            RegisterField("m", 0, 8, "rows of A and D"),
            RegisterField("n", 8, 8, "columns of B and D"),
            RegisterField("k", 16, 8, "lanes of an element: 16 bits each in cube and mma"),
            RegisterField("lane_bits", 24, 8, "bits of a lane"),
        ),
        None,
    ),
    Register(
        "operand_words",
        0x10,
        _R,
        "words of the operands of a beat",
        (RegisterField("a", 0, 16, "words of A"), RegisterField("b", 16, 16, "words of B")),
        None,
    ),
    Register(
        "result_words",
        0x14,
        _R,
        "words of a result and of the indices",
        (
            RegisterField("d", 0, 16, "words of C, and of D"),
            RegisterField("index", 16, 16, "words of the indices of a sparse A; 0 if A is dense"),
        ),
        None,
    ),
    Register(
        "precisions",
        0x18,
        _R,
        "one bit for each precision of the unit; the code of a precision is the number of ones "
        "below its bit; 0 if all operands are integers of lane_bits",
        reset=None,
    ),
    Register(
        "operations",
        0x1C,
        _R,
        "one bit for each operation of the unit; the code of an operation is the number of ones "
        "below its bit",
        reset=None,
    ),
    Register(
        "control",
        0x20,
        _W,
        "commands to the wrapper",
        (RegisterField("reset", 0, 1, "1 resets the unit and drops all operands and results"),),
    ),
    Register(
        "status",
        0x24,
        _R,
        "state of the wrapper",
        (
            RegisterField(
                "ready", 0, 1, "a command, and words of A, B and the indices, are accepted"
            ),
            RegisterField("c_ready", 1, 1, "words of C are accepted"),
            RegisterField("d_valid", 2, 1, "words of D are there to be read"),
            RegisterField("error", 3, 1, "a bit of errors is set"),
            RegisterField("fetch_valid", 4, 1, "mma: a request for operands is there to be read"),
            RegisterField("instruction_ready", 5, 1, "mma: an instruction is accepted"),
        ),
        None,
    ),
    Register(
        "errors",
        0x28,
        _C,
        "errors since the last clearing; the access that caused one had no other effect",
        (
            RegisterField("address", 0, 1, "an unknown address, or a forbidden read or write"),
            RegisterField("refused", 1, 1, "a write that status did not allow"),
            RegisterField("incomplete", 2, 1, "a command after a part of the words of an operand"),
            RegisterField("empty", 3, 1, "a read of a result or a request that is not there"),
            RegisterField(
                "code", 4, 1, "a command with a code or a slot that the unit does not have"
            ),
            RegisterField(
                "illegal", 5, 1, "mma: an opcode that the unit does not have, until a reset"
            ),
        ),
    ),
    Register(
        "command",
        0x2C,
        _W,
        "sends a beat with the words of A, B and the indices, which stay for the next command",
        (
            RegisterField("precision", 0, 4, "code of the precision"),
            RegisterField("operation", 4, 4, "code of the operation"),
            RegisterField("start", 8, 2, "0 from zero, 1 from C, 2 from the value of the slot"),
            RegisterField("emit", 10, 1, "1 makes the result readable as D"),
            RegisterField("slot", 16, 6, "number of the slot"),
        ),
        kinds=_BEATS,
    ),
    Register("a_data", 0x30, _W, "next word of A"),
    Register("b_data", 0x34, _W, "next word of B"),
    Register("c_data", 0x38, _W, "next word of C"),
    Register("d_data", 0x3C, _R, "next word of D"),
    Register("index_data", 0x40, _W, "next word of the indices of a sparse A", kinds=("cube",)),
    Register("instruction", 0x44, _W, "runs a matrix instruction", kinds=("mma",)),
    Register(
        "fetch",
        0x48,
        _R,
        "takes a request for the operands of a beat",
        (
            RegisterField("row", 0, 8, "row block of A and D"),
            RegisterField("column", 8, 8, "column block of B and D"),
            RegisterField("block", 16, 8, "block along K"),
            RegisterField(
                "first", 24, 1, "first beat of its tile, which takes C if it accumulates"
            ),
            RegisterField("last", 25, 1, "last beat of its tile, which produces D"),
            RegisterField("valid", 31, 1, "1 if there was a request"),
        ),
        kinds=("mma",),
    ),
    Register(
        "send", 0x4C, _W, "sends the words of A and B as the operands of a beat", kinds=("mma",)
    ),
)

#: The registers by name.
MAP = {register.name: register for register in REGISTERS}


def registers_of(core: BusCore) -> tuple[Register, ...]:
    """Return the registers that a unit has."""
    return tuple(
        register
        for register in REGISTERS
        if core.kind in register.kinds and (register.name != "index_data" or core.index_bits)
    )


def _packed(register: str, **fields: int) -> int:
    """Return a value of a register from values of its fields."""
    value = 0
    for name, number in fields.items():
        field = MAP[register].field(name)
        if number >> field.width:
            raise ValueError(
                f"{register}.{name} must be at most {(1 << field.width) - 1}, not {number}"
            )
        value |= number << field.low
    return value


def constants(core: BusCore) -> dict[str, int]:
    """Return the values of the registers that describe a unit, by name.

    Raises
    ------
    ValueError
        If a value does not fit into its field.
    """

    def words(bits: int) -> int:
        return -(-bits // WORD_BITS)

    config = core.config
    return {
        "identity": IDENTITY,
        "version": VERSION,
        "unit": _packed(
            "unit",
            kind=KINDS.index(core.kind),
            slots=core.slot_count,
            word_bits=core.word_bits,
            latency=core.latency,
        ),
        "shape": _packed("shape", m=config.m, n=config.n, k=config.k, lane_bits=core.lane_bits),
        "operand_words": _packed("operand_words", a=words(core.a_bits), b=words(core.b_bits)),
        "result_words": _packed("result_words", d=words(core.d_bits), index=words(core.index_bits)),
        "precisions": core.precision_mask,
        "operations": core.operation_mask,
    }


def request_layout(address_bits: int = ADDRESS_BITS) -> data.StructLayout:
    """Return the layout of a request: ``write``, the word ``address``, and ``data`` to write."""
    return data.StructLayout({"write": 1, "address": address_bits, "data": WORD_BITS})


class RegisterBus(wiring.Signature):
    """The internal register bus, seen from the initiator.

    Every request gets exactly one response, in order. The response to a write is 0, and so is that
    to a read that fails.

    Parameters
    ----------
    address_bits : int
        Bits of a word address.

    Members
    -------
    request : Out(stream.Signature(request_layout(address_bits)))
        Reads and writes.
    response : In(stream.Signature(32))
        The value of a read; 0 for a write.
    """

    def __init__(self, address_bits: int = ADDRESS_BITS):
        self.address_bits = address_bits
        super().__init__(
            {
                "request": Out(stream.Signature(request_layout(address_bits))),
                "response": In(stream.Signature(WORD_BITS)),
            }
        )

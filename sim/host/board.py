"""A board with a matrix unit: what it can do, and its products of tiles."""

from dataclasses import dataclass
from functools import cached_property

from vitruvian.errors import UserError, WorkError
from vitruvian.golden.simd2.op import Op
from vitruvian.hdl.bus.core import KINDS
from vitruvian.hdl.bus.registers import IDENTITY, MAP, VERSION
from vitruvian.hdl.cube import MatrixUnitConfig
from vitruvian.hdl.cube.choices import PRECISIONS

from .client import Client, NoAnswerError

__all__ = ["Board"]

_DESCRIBING = 8  # registers from ``identity`` on that describe the unit


@dataclass(frozen=True)
class Board:
    """A board that has been recognised.

    Parameters
    ----------
    client : Client
        The registers of the board.
    values : dict of str to int
        Values of the registers that describe the unit, by name.
    """

    client: Client
    values: dict[str, int]

    @classmethod
    def find(cls, client: Client) -> "Board":
        """Read what the board is, and reset its unit.

        Raises
        ------
        UserError
            If nothing answers, if what answers is not such a board, or if its registers have
            another version.
        """
        try:
            words = client.start("identity", _DESCRIBING)
        except NoAnswerError as error:
            raise UserError(f"port must lead to a board that answers: {error}") from None
        names = [register.name for register in MAP.values()][:_DESCRIBING]
        values = dict(zip(names, words, strict=True))
        if values["identity"] != IDENTITY:
            raise UserError(
                f"board must have the identity {IDENTITY:#010x}, not {values['identity']:#010x} "
                f"({client.name})"
            )
        if values["version"] >> 16 != VERSION >> 16:
            raise UserError(
                f"board must have registers of version {VERSION >> 16}, "
                f"not {values['version'] >> 16} ({client.name})"
            )
        client.write("control", [1])
        client.write("errors", [0xFFFFFFFF])
        return cls(client, values)

    def field(self, register: str, name: str) -> int:
        """Return a field of a register that describes the unit."""
        field = MAP[register].field(name)
        return self.values[register] >> field.low & ((1 << field.width) - 1)

    @property
    def kind(self) -> str:
        """The kind of the unit."""
        code = self.field("unit", "kind")
        return KINDS[code] if code < len(KINDS) else f"kind {code}"

    @cached_property
    def config(self) -> MatrixUnitConfig:
        """The parameters of the unit, as far as its registers tell them.

        Raises
        ------
        UserError
            If the host cannot drive this unit.
        """
        mask, operations = self.values["precisions"], self.values["operations"]
        if self.kind != "cube" or self.field("result_words", "index"):
            raise UserError(f"board must have a dense unit of the kind cube, not {self.kind}")
        try:
            config = MatrixUnitConfig(
                m=self.field("shape", "m"),
                n=self.field("shape", "n"),
                k=self.field("shape", "k"),
                precisions=tuple(x for n, x in enumerate(PRECISIONS) if mask >> n & 1),
                operations=tuple(op.mnemonic for op in Op if operations >> op.code & 1),
                slots=self.field("unit", "slots"),
                # INT8 has results of 32 bits, whatever the others have.
                output="fp16" if self.field("unit", "word_bits") == 16 else "fp32",
            )
        except ValueError as error:
            raise UserError(f"board must have a unit that the host knows: {error}") from None
        words = {
            "a": (config.m * config.bus_bits, self.field("operand_words", "a")),
            "b": (config.n * config.b_bus_bits, self.field("operand_words", "b")),
            "d": (config.m * config.n * config.word_bits, self.field("result_words", "d")),
        }
        for name, (bits, given) in words.items():
            if -(-bits // 32) != given:
                raise UserError(
                    f"board must take {-(-bits // 32)} words of {name} for its shape, not {given}"
                )
        return config

    def check_errors(self) -> None:
        """Raise WorkError if the unit has reported an error since the last call."""
        (errors,) = self.client.read("errors")
        if errors:
            self.client.write("errors", [errors])
            names = [f.name for f in MAP["errors"].fields if errors & f.mask]
            raise WorkError(f"{self.client.name}: the board reports {', '.join(names)}")

    def describe(self) -> str:
        """Return a line about the unit."""
        config = self.config
        return (
            f"{config.m}×{config.n} outputs, {config.k} lanes, {', '.join(config.precisions)}; "
            f"{', '.join(config.operations)}"
        )

"""A board with a matrix unit: what it can do, and its products of tiles."""

from dataclasses import dataclass
from functools import cached_property

from vitruvian.common.errors import UserError, WorkError
from vitruvian.common.validate import ceil_div
from vitruvian.golden.simd2.op import Op
from vitruvian.hdl.bus.core import KINDS
from vitruvian.hdl.bus.registers import IDENTITY, MAP, VERSION
from vitruvian.hdl.cube import MatrixUnitConfig
from vitruvian.hdl.cube.choices import PRECISIONS
from vitruvian.hdl.simd2.intconfig import IntConfig

from .client import Client, recognise

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
        names = [register.name for register in MAP.values()][:_DESCRIBING]
        values = recognise(client, names, identity=IDENTITY, version=VERSION)
        # A reset of the unit, as an earlier program may have left a half of a beat.
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
    def config(self) -> MatrixUnitConfig | IntConfig:
        """The parameters of the unit, as far as its registers tell them.

        Raises
        ------
        UserError
            If the host cannot drive this unit.
        """
        if self.kind not in ("cube", "simd2-int"):
            raise UserError(
                "board must have a unit of the kind cube or simd2-int, to which the host sends "
                f"beats, not {self.kind}; make one with --core cube"
            )
        if self.field("result_words", "index"):
            raise UserError("board must have a unit that takes a dense A, not a sparse one")
        try:
            config = self._int_config() if self.kind == "simd2-int" else self._cube_config()
        except ValueError as error:
            raise UserError(f"board must have a unit that the host knows: {error}") from None
        if isinstance(config, IntConfig):
            row, column = (config.k * config.bits,) * 2
            word_bits = config.bits
        else:
            row, column, word_bits = config.bus_bits, config.b_bus_bits, config.word_bits
        words = {
            "a": (config.m * row, self.field("operand_words", "a")),
            "b": (config.n * column, self.field("operand_words", "b")),
            "d": (config.m * config.n * word_bits, self.field("result_words", "d")),
        }
        # The parameters must explain the widths that the board states, else it has an option that
        # the host does not know.
        for name, (bits, given) in words.items():
            needed = ceil_div(bits, 32)
            if needed != given:
                raise UserError(
                    f"board must take {needed} words of {name} for its shape, not {given}"
                )
        return config

    @property
    def cube_config(self) -> MatrixUnitConfig:
        """The parameters of a unit of the kind cube.

        Raises
        ------
        UserError
            If the unit is another one.
        """
        config = self.config
        if isinstance(config, IntConfig):
            raise UserError(f"board must have a unit of the kind cube, not {self.kind}")
        return config

    def _int_config(self) -> IntConfig:
        operations = self.values["operations"]
        return IntConfig(
            m=self.field("shape", "m"),
            n=self.field("shape", "n"),
            k=self.field("shape", "k"),
            bits=self.field("shape", "lane_bits"),
            operations=tuple(op for op in Op if operations >> op.code & 1),
        )

    def _cube_config(self) -> MatrixUnitConfig:
        mask, operations = self.values["precisions"], self.values["operations"]
        return MatrixUnitConfig(
            m=self.field("shape", "m"),
            n=self.field("shape", "n"),
            k=self.field("shape", "k"),
            precisions=tuple(x for n, x in enumerate(PRECISIONS) if mask >> n & 1),
            operations=tuple(op.mnemonic for op in Op if operations >> op.code & 1),
            slots=self.field("unit", "slots"),
            # INT8 has results of 32 bits, whatever the others have.
            output="fp16" if self.field("unit", "word_bits") == 16 else "fp32",
        )

    def check_errors(self) -> None:
        """Raise WorkError if the unit has reported an error since the last call."""
        (errors,) = self.client.read("errors")
        if errors:
            # A one clears its bit, see ``hdl.bus.registers``.
            self.client.write("errors", [errors])
            names = [f.name for f in MAP["errors"].fields if errors & f.mask]
            raise WorkError(f"{self.client.name}: the board reports {', '.join(names)}")

    def describe(self) -> str:
        """Return a line about the unit."""
        config = self.config
        if isinstance(config, IntConfig):
            precisions = [f"int{config.bits}"]
            operations = [op.mnemonic for op in config.operations]
        else:
            precisions, operations = [*config.precisions], [*config.operations]
        return (
            f"{config.m}×{config.n} outputs, {config.k} lanes, {', '.join(precisions)}; "
            f"{', '.join(operations)}"
        )

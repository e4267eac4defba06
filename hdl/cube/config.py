"""What a matrix unit is, as a parameter object, and the named configurations."""

from dataclasses import dataclass, fields

from golden.fp.formats import FORMATS, as_format, check_int
from golden.fp.spec import PRESETS, DotSpec, IntDotSpec

from ..fp.core import PIPELINES

__all__ = ["CONFIGS", "DATAFLOWS", "PRECISIONS", "MatrixUnitConfig"]

INT8 = "int8"
#: Every precision a unit can have, in the order of their codes.
PRECISIONS = ("fp16", "bf16", "tf32", "fp8e4m3", "fp8e5m2", INT8)
DATAFLOWS = ("broadcast", "systolic")
_LANE_BITS = 16


@dataclass(frozen=True, kw_only=True)
class MatrixUnitConfig:
    """An M × N array of processing elements, each a fused dot product of K terms.

    Parameters
    ----------
    m, n : int
        Rows and columns of the array, 1 to 64.
    k : int
        16-bit lanes of an element, 1 to 64: FP16 and BF16 have k terms, TF32 k / 2, FP8 and INT8
        2·k.
    precisions : sequence of str
        Any of `PRECISIONS`; kept in that order. INT8 is signed, with INT32 results.
    preset : str
        Accuracy preset of the floating precisions, any but ``exact``.
    output : str
        Format of C and D in the floating precisions.
    dataflow : str
        ``broadcast``: one bus for each row and column. ``systolic``: operands hop from element to
        element.
    pipeline : int
        Register ranks inside an element's dot product, 0 to 4.
    slots : int, optional
        C fractals the unit holds, 1 to 64. By default pipeline + 3, see `slot_count`.
    saturate : bool
        INT32 accumulation saturates, beat by beat, instead of wrapping.

    Raises
    ------
    TypeError, ValueError
        For a parameter outside its range, or a combination that the preset does not have.
    """

    m: int
    n: int
    k: int
    precisions: tuple[str, ...]
    preset: str = "ieee"
    output: str = "fp32"
    dataflow: str = "broadcast"
    pipeline: int = 3
    slots: int | None = None
    saturate: bool = False

    def __post_init__(self):
        for name in ("m", "n", "k"):
            check_int(name, getattr(self, name), 1, 64)
        if self.slots is not None:
            check_int("slots", self.slots, 1, 64)
        check_int("pipeline", self.pipeline, min(PIPELINES), max(PIPELINES))
        if self.dataflow not in DATAFLOWS:
            raise ValueError(
                f"dataflow must be one of {', '.join(DATAFLOWS)}, not {self.dataflow!r}"
            )
        presets = [name for name in PRESETS if name != "exact"]
        if self.preset not in presets:
            raise ValueError(f"preset must be one of {', '.join(presets)}, not {self.preset!r}")
        if not isinstance(self.saturate, bool):
            raise TypeError(f"saturate must be True or False, not {self.saturate!r}")
        self._check_precisions()

    def _check_precisions(self) -> None:
        given = self.precisions
        if isinstance(given, str) or not given or len(set(given)) != len(given):
            raise ValueError(f"precisions must be different names, at least one, not {given!r}")
        for name in given:
            if name not in PRECISIONS:
                raise ValueError(f"precision must be one of {', '.join(PRECISIONS)}, not {name!r}")
        object.__setattr__(self, "precisions", tuple(p for p in PRECISIONS if p in given))
        if "tf32" in given and self.k % 2:
            raise ValueError(f"k must be even with tf32, which takes two lanes, not {self.k!r}")
        as_format(self.output, "output")
        if INT8 in given and self.word_bits != 32:
            raise ValueError(f"output must have 32 bits with int8, not {self.output!r}")
        _ = self.float_specs  # raises where the preset lacks a combination

    # Precisions

    @property
    def floats(self) -> tuple[str, ...]:
        """The floating precisions."""
        return tuple(name for name in self.precisions if name != INT8)

    def operand_bits(self, precision: str) -> int:
        """Bits of one operand on the bus."""
        self._known(precision)
        return 8 if precision == INT8 else FORMATS[precision].storage_bits

    def terms(self, precision: str) -> int:
        """K of one beat in this precision."""
        return self.bus_bits // self.operand_bits(precision)

    def spec(self, precision: str) -> DotSpec | IntDotSpec:
        """What an element computes in one beat, to the bit: what golden is called with.

        A preset that stands for a machine has that machine's windows, with K the unit's. With
        ``ieee`` all floating precisions share the widest window among them: one aligner serves
        them all, and a wider window is never less accurate.
        """
        self._known(precision)
        if precision == INT8:
            return IntDotSpec(k=self.terms(INT8), saturate=self.saturate)
        return self.float_specs[precision]

    @property
    def float_specs(self) -> dict[str, DotSpec]:
        """`spec` of every floating precision."""
        preset = PRESETS[self.preset]
        specs = {p: preset.spec(p, self.output, k=self.terms(p)) for p in self.floats}
        if preset.rows:
            return specs
        window = max((spec.window or 0 for spec in specs.values()), default=0)
        return {
            name: DotSpec(input=spec.input, output=spec.output, k=spec.k, window=window)
            for name, spec in specs.items()
        }

    def _known(self, precision: str) -> None:
        if precision not in self.precisions:
            raise ValueError(
                f"precision must be one of {', '.join(self.precisions)}, not {precision!r}"
            )

    # Widths

    @property
    def bus_bits(self) -> int:
        """Bits of a row of A, and of a column of B, in one beat."""
        return _LANE_BITS * self.k

    @property
    def word_bits(self) -> int:
        """Bits of an element of C and D."""
        return as_format(self.output).storage_bits

    @property
    def precision_bits(self) -> int:
        """Bits of a precision's code; 0 where there is only one."""
        return (len(self.precisions) - 1).bit_length()

    @property
    def slot_count(self) -> int:
        """C fractals the unit holds: `slots`, or as many as a beat can be in the way of.

        A slot whose result is emitted at once is free again pipeline + 3 cycles later (systolic:
        and the hops), so with this many a unit that goes round its slots takes a beat every cycle
        whatever the tiles are; with pipeline + 1 it does so in accumulations.
        """
        return self.pipeline + 3 if self.slots is None else self.slots

    @property
    def slot_bits(self) -> int:
        """Bits of a slot's number."""
        return (self.slot_count - 1).bit_length()

    def settings(self) -> dict[str, object]:
        """Every parameter as it is used, for people: defaults filled in, lists joined."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return values | {"precisions": ", ".join(self.precisions), "slots": self.slot_count}

    # Time

    @property
    def hops(self) -> int:
        """Cycles from the first element's work on a beat to the last one's."""
        return self.m + self.n - 2 if self.dataflow == "systolic" else 0

    @property
    def latency_cycles(self) -> int:
        """Cycles from the transfer of a beat to the earliest transfer of its result.

        One into the operand registers, the hops, the dot product's ranks, one into the slot.
        """
        return 1 + self.hops + self.pipeline + 1

    @property
    def macs(self) -> int:
        """Multiply-accumulates a cycle at 16 bits: M·N·k."""
        return self.m * self.n * self.k


#: The named configurations.
CONFIGS: dict[str, MatrixUnitConfig] = {
    "tiny": MatrixUnitConfig(m=2, n=2, k=2, precisions=PRECISIONS, pipeline=1),
    "cube_4x4x4": MatrixUnitConfig(m=4, n=4, k=4, precisions=("fp16", INT8)),
    "tensorcore_a100": MatrixUnitConfig(
        m=8, n=4, k=8, precisions=("fp16", "bf16", "tf32", INT8), preset="a100"
    ),
    "cube_davinci": MatrixUnitConfig(m=16, n=16, k=16, precisions=("fp16", INT8)),
}

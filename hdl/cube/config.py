"""What a matrix unit can do, as a parameter object, and the named configurations."""

from dataclasses import dataclass, replace

from golden.fp.formats import FORMATS
from golden.fp.spec import PRESETS, DotSpec

from ..fp.core import PIPELINES

__all__ = ["CONFIGS", "DATAFLOWS", "INT8", "MatrixUnitConfig", "config"]

INT8 = "int8"
DATAFLOWS = ("broadcast", "systolic")
_FLOATS = ("fp16", "bf16", "tf32", "fp8e4m3", "fp8e5m2")
_PRECISIONS = (*_FLOATS, INT8)


@dataclass(frozen=True, kw_only=True)
class MatrixUnitConfig:
    """An M × N array of processing elements, each a fused dot product of K terms.

    Parameters
    ----------
    m, n : int
        Rows and columns of the tile, 1 to 64.
    k : int
        16-bit lanes of an element: K of fp16 and bf16. TF32 has k / 2 terms, FP8 and INT8 2·k.
    precisions : tuple of str
        Any of fp16, bf16, tf32, fp8e4m3, fp8e5m2 (FP32 results) and int8 (INT32 results).
    preset : str
        Accuracy preset of the floating precisions, any but ``exact``.
    dataflow : str
        ``broadcast``: a row and a column bus. ``systolic``: operands hop from element to element.
    pipeline : int
        Register ranks inside an element's dot product.
    slots : int, optional
        C fractals an element keeps. By default pipeline + 1, rounded up to a power of two, at least 2:
        enough for one tile a cycle when consecutive tiles go round the slots.
    saturate : bool
        INT32 accumulation saturates instead of wrapping.

    Raises
    ------
    TypeError, ValueError
        For a parameter outside its range, or a combination that the preset does not have.
    """

    m: int
    n: int
    k: int
    precisions: tuple[str, ...] = ("fp16",)
    preset: str = "ieee"
    dataflow: str = "broadcast"
    pipeline: int = 3
    slots: int = 0
    saturate: bool = False

    def __post_init__(self):
        for name, low, high in (("m", 1, 64), ("n", 1, 64), ("k", 1, 64), ("slots", 0, 64)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(f"{name} must be an int, not {value!r}")
            if not low <= value <= high:
                raise ValueError(f"{name} must be from {low} to {high}, not {value!r}")
        if self.pipeline not in PIPELINES:
            raise ValueError(f"pipeline must be one of {sorted(PIPELINES)}, not {self.pipeline!r}")
        if self.dataflow not in DATAFLOWS:
            raise ValueError(f"dataflow must be one of {DATAFLOWS}, not {self.dataflow!r}")
        object.__setattr__(self, "precisions", tuple(self.precisions))
        if not self.precisions or len(set(self.precisions)) != len(self.precisions):
            raise ValueError(f"precisions must be different names, not {self.precisions!r}")
        for name in self.precisions:
            if name not in _PRECISIONS:
                raise ValueError(f"precision must be one of {_PRECISIONS}, not {name!r}")
        if "tf32" in self.precisions and self.k % 2:
            raise ValueError(f"k must be even with tf32 (two lanes a term), not {self.k}")
        if self.preset not in PRESETS or self.preset == "exact":
            allowed = tuple(name for name in PRESETS if name != "exact")
            raise ValueError(f"preset must be one of {allowed}, not {self.preset!r}")
        if not self.slots:
            object.__setattr__(self, "slots", max(2, 1 << self.pipeline.bit_length()))
        for name in self.floats:
            self.spec(name)

    @property
    def floats(self) -> tuple[str, ...]:
        """The floating precisions."""
        return tuple(name for name in self.precisions if name != INT8)

    @property
    def bus_bits(self) -> int:
        """Bits of one row of A or one column of B: 16 bits a lane."""
        return 16 * self.k

    def operand_bits(self, precision: str) -> int:
        """Bits of one operand on the bus."""
        self._check(precision)
        return 8 if precision == INT8 else FORMATS[precision].storage_bits

    def terms(self, precision: str) -> int:
        """K of one tile in this precision."""
        return self.bus_bits // self.operand_bits(precision)

    def spec(self, precision: str) -> DotSpec:
        """What an element computes, to the bit; golden is called with it.

        All floating precisions of a unit share the widest window among them, but for FP8 on machines
        that keep fewer bits of it.
        """
        self._check(precision)
        if precision == INT8:
            raise ValueError(f"precision must be a floating one of {self.floats}, not {precision!r}")
        preset = PRESETS[self.preset]
        spec = preset.spec(precision, k=self.terms(precision))
        if not preset.rows:
            windows = [preset.spec(name).window or 0 for name in self.floats]
            spec = _with_window(spec, max(windows))
        return spec

    @property
    def int8_terms(self) -> int:
        """K of INT8, 0 where the unit has none."""
        return self.terms(INT8) if INT8 in self.precisions else 0

    @property
    def hops(self) -> int:
        """Cycles between the first element's work on a tile and the last one's."""
        return self.m + self.n - 2 if self.dataflow == "systolic" else 0

    @property
    def latency_cycles(self) -> int:
        """From the cycle that accepts a tile to the first that can offer its result.

        One cycle into the operand registers, the hops, the dot product's ranks, one into the slot.
        """
        return self.hops + self.pipeline + 2

    @property
    def macs(self) -> int:
        """Multiply-accumulates a cycle at 16 bits (M·N·k)."""
        return self.m * self.n * self.k

    def _check(self, precision: str) -> None:
        if precision not in self.precisions:
            raise ValueError(f"precision must be one of {self.precisions}, not {precision!r}")


def _with_window(spec: DotSpec, window: int) -> DotSpec:
    return DotSpec(
        input=spec.input,
        output=spec.output,
        k=spec.k,
        window=window,
        truncate=spec.truncate,
        rounding=spec.rounding,
        nan=spec.nan,
    )


_ALL = ("fp16", "bf16", "tf32", "fp8e4m3", "fp8e5m2", INT8)

#: The named configurations.
CONFIGS: dict[str, MatrixUnitConfig] = {
    "tiny": MatrixUnitConfig(m=2, n=2, k=2, precisions=_ALL, pipeline=0),
    "cube_4x4x4": MatrixUnitConfig(m=4, n=4, k=4, precisions=("fp16", "bf16", INT8)),
    "tensorcore_a100": MatrixUnitConfig(
        m=8, n=4, k=8, precisions=("fp16", "bf16", "tf32", INT8), preset="a100"
    ),
    "cube_davinci": MatrixUnitConfig(m=16, n=16, k=16, precisions=("fp16", INT8)),
}


def config(name: str, **changes) -> MatrixUnitConfig:
    """A named configuration, with parameters changed.

    Changing ``pipeline`` alone chooses the default number of slots again.
    """
    if name not in CONFIGS:
        raise ValueError(f"configuration must be one of {tuple(CONFIGS)}, not {name!r}")
    if "pipeline" in changes:
        changes = {"slots": 0} | changes
    return replace(CONFIGS[name], **changes)

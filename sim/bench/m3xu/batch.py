"""Batch checks of the dot product on lanes, for wide and narrow formats."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from vitruvian.golden.fp import DotSpec, dot_spec, fused_dot
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.sim.bench.fp.stimuli import dot_vectors
from vitruvian.sim.rtl import compile
from vitruvian.sim.verify.check import Check
from vitruvian.sim.verify.compare import Result, compare

from .lanes import run_lanes, unit_for

_PAIRS = (11, 13) * 4

#: (format, widths of A's limbs, width of B's limbs, number n of steps, window, pipeline, every n
#: that the unit supports)
CONFIGURATIONS = (
    ("fp32", _PAIRS, 12, 2, 48, 3, (2,)),
    ("fp32", _PAIRS, 12, 2, 48, 0, (2,)),
    ("fp32", (11, 13), 12, 2, 48, 4, (2,)),
    ("fp32", (8,) * 6, 8, 3, 48, 1, (3,)),
    ("fp32", (6,) * 4, 6, 4, 48, 2, (2, 4)),
    ("fp64", (27,) * 4, 27, 2, 106, 3, (2,)),
    ("fp64", (27, 27), 27, 2, 106, 0, (2,)),
    ("fp64", (11, 13) * 5, 12, 5, 106, 4, (2, 5)),
)
#: More rows of ``CONFIGURATIONS``, with ``multiplier="dsp"``.
DSP = (("fp32", (11, 13), 12, 2, 48, 3, (2,)),)
#: Formats that take one step in the unit of the first configuration, with the number of terms.
NARROW = (("fp16", 8), ("bf16", 8), ("tf32", 4))
#: Factor of the number of vectors for narrow formats, which are tested on a million vectors.
MORE = 5


@dataclass(frozen=True, kw_only=True)
class LaneUnit:
    """The parameters of a unit.

    Attributes
    ----------
    a_bits : tuple of int
        Width of the limb of A in each lane.
    b_bits : int
        Width of a limb of B.
    limbs : tuple of int
        Every number of steps that the unit supports.
    pipeline : int
        Number of pipeline registers.
    wide : DotSpec, optional
        Specification of the unit's wide format, if the unit is checked with a narrow one.
    multiplier : str
        Kind of the unit's multipliers.
    """

    a_bits: tuple[int, ...]
    b_bits: int
    limbs: tuple[int, ...]
    pipeline: int
    wide: DotSpec | None = None
    multiplier: str = "booth"


def run_check(
    spec: DotSpec, lanes: LaneUnit, n: int, vectors: int, seed: int, *, share: int = 1
) -> Result:
    """Compare a format of a unit with golden.

    Parameters
    ----------
    spec : DotSpec
        Specification of the dot product in this format.
    lanes : LaneUnit
        Parameters of the unit.
    n : int
        Number of steps of a vector.
    vectors, seed : int
        Number of vectors of a batch, and seed of the first batch.
    share : int
        Number of batches of ``vectors``.
    """
    unit = unit_for(
        spec,
        a_bits=lanes.a_bits,
        b_bits=lanes.b_bits,
        limbs=lanes.limbs,
        pipeline=lanes.pipeline,
        wide=lanes.wide,
        multiplier=lanes.multiplier,
    )
    identity = (
        f"LaneDot {spec.input.name} {unit.spec!r} {lanes.a_bits} {lanes.b_bits} {lanes.limbs} "
        f"{lanes.pipeline} {lanes.wide}{_suffix(lanes.multiplier)}"
    )
    model = compile(unit, identity=identity)
    total = Result(vectors=0, mismatches=0)
    for part in range(share):
        a, b, c = dot_vectors(spec, vectors, seed=seed + part)
        total += compare(
            f"dot product {spec.input.name}",
            got=run_lanes(model, unit, spec, n, a, b, c),
            expected=fused_dot(a, b, c, spec),
            operands={"a": a, "b": b, "c": c},
            seed=seed + part,
        )
    return total


def _suffix(multiplier: str) -> str:
    """Return what follows the name of a unit whose multipliers are not of the usual kind."""
    return "" if multiplier == "booth" else f" {multiplier}"


def checks() -> Iterator[Check]:
    """Yield rows for wide formats with several limb counts, and for narrow formats beside FP32."""
    rows = [(row, "booth") for row in CONFIGURATIONS] + [(row, "dsp") for row in DSP]
    for (format, a_bits, b_bits, n, window, pipeline, limbs), multiplier in rows:
        output = "fp64" if format == "fp64" else "fp32"
        spec = dot_spec(input=format, output=output, k=len(a_bits) // n, window=window)
        lanes = LaneUnit(
            a_bits=a_bits, b_bits=b_bits, limbs=limbs, pipeline=pipeline, multiplier=multiplier
        )
        yield Check(
            unit="m3xu.LaneDot",
            configuration=f"{format} K={spec.k} in {n} steps on {b_bits} bits pipeline={pipeline}"
            + _suffix(multiplier),
            run=partial(run_check, spec, lanes, n),
        )
    fp32 = dot_spec(input="fp32", output="fp32", k=4, window=48)
    for preset in ("ieee", "a100"):
        for format, k in NARROW:
            spec = PRESETS[preset].spec(format, k=k)
            if preset == "ieee":
                spec = dot_spec(input=format, output="fp32", k=k, window=48)
            lanes = LaneUnit(
                a_bits=_PAIRS,
                b_bits=12,
                limbs=(2,),
                pipeline=3,
                wide=fp32 if preset == "a100" else None,
            )
            yield Check(
                unit="m3xu.LaneDot",
                configuration=f"{preset} {format} K={k} beside fp32 pipeline=3",
                run=partial(run_check, spec, lanes, 1, share=MORE),
            )

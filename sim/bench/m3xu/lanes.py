"""Stimuli of a compiled ``LaneDot``: operands as fields of lanes, and vectors as steps."""

from typing import Any

import numpy as np

from vitruvian.golden.fp.formats import FORMATS, FloatFormat
from vitruvian.golden.fp.spec import DotSpec, dot_spec
from vitruvian.hdl.m3xu.dot import LaneDot
from vitruvian.sim.rtl import CompiledModel


def lane_fields(
    codes: np.ndarray, format: FloatFormat, *, place: int, width: int, total: int
) -> dict[str, np.ndarray]:
    """Return the fields of a lane for an operand of each vector.

    The significand is aligned to the top of a word of ``total`` bits, and the lane gets a limb of
    this word.

    Parameters
    ----------
    codes : (N,) ndarray of codes
    place, width : int
        Lowest bit and width of the limb.
    total : int
        Width of the word, at most 64.

    Returns
    -------
    fields : dict of str to (N,) ndarray
    """
    codes = codes.astype(np.uint64) >> np.uint64(format.storage_shift)
    f, e = format.fraction_bits, format.exponent_bits
    fraction = codes & np.uint64((1 << f) - 1)
    exponent = codes >> np.uint64(f) & np.uint64((1 << e) - 1)
    normal, special = exponent != 0, exponent == (1 << e) - 1
    significand = (fraction | normal.astype(np.uint64) << np.uint64(f)) << np.uint64(total - f - 1)
    bias = (
        127 if e < 8 else format.bias
    )  # exponents of less than 8 bits are converted to the bias of 8 bits
    return {
        "significand": significand >> np.uint64(place) & np.uint64((1 << width) - 1),
        "exponent": np.where(normal, exponent, 1).astype(np.uint64) + np.uint64(bias - format.bias),
        "sign": codes >> np.uint64(f + e),
        "zero": (~normal & (fraction == 0)).astype(np.uint8),
        "inf": (special & (fraction == 0)).astype(np.uint8),
        "nan": (special & (fraction != 0)).astype(np.uint8),
    }


def unit_for(
    spec: DotSpec,
    *,
    a_bits: tuple[int, ...],
    b_bits: int,
    limbs: tuple[int, ...],
    pipeline: int,
    wide: DotSpec | None = None,
    multiplier: str = "booth",
) -> LaneDot:
    """Return a unit that computes ``spec``.

    With ``wide``, the unit is built for that specification, and computes ``spec`` in its mode
    ``chop``. The other parameters are those of ``LaneDot``.
    """
    base = wide or spec
    widest = base.input if base.input.exponent_bits > 5 else FORMATS["tf32"]
    return LaneDot(
        spec=dot_spec(input=widest, output=base.output, k=len(a_bits), window=base.sum.window),
        exponent_bits=widest.exponent_bits,
        a_bits=a_bits,
        b_bits=b_bits,
        chopped=spec if wide else None,
        limbs=limbs,
        pipeline=pipeline,
        multiplier=multiplier,
    )


def run_lanes(
    model: CompiledModel,
    unit: LaneDot,
    spec: DotSpec,
    n: int,
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
) -> np.ndarray:
    """Send every vector as n successive steps, and return the results of the last steps.

    Parameters
    ----------
    model : CompiledModel
        Model of ``unit``.
    spec : DotSpec
        Specification of the dot product.
    n : int
        Number of steps of a vector.
    a, b : (N, K) ndarray of codes
    c : (N,) ndarray of codes

    Returns
    -------
    d : (N,) ndarray of codes
    """
    w = unit.b_bits
    buses: dict[str, Any] = {"a": {}, "b": {}}
    for lane, width in enumerate(unit.a_bits):
        element, base = lane // n, lane // n * n
        total, place = sum(unit.a_bits[base : base + n]), sum(unit.a_bits[base:lane])
        if element >= a.shape[1]:  # a lane without an operand gets the product -0
            empty = dict.fromkeys(("significand", "exponent", "inf", "nan"), 0)
            for side in "ab":
                fields = empty | {"sign": int(side == "a"), "zero": 1}
                buses[side][f"lane{lane}"] = {
                    name: np.full(n * len(c), value, np.uint8) for name, value in fields.items()
                }
            continue
        limb = lane_fields(a[:, element], spec.input, place=place, width=width, total=total)
        buses["a"][f"lane{lane}"] = {name: np.repeat(x, n) for name, x in limb.items()}
        # In step t all lanes of a product get digit t of B.
        digits = [
            lane_fields(b[:, element], spec.input, place=w * t, width=w, total=w * n)
            for t in range(n)
        ]
        buses["b"][f"lane{lane}"] = {
            name: np.stack([digit[name] for digit in digits], 1).reshape(-1) for name in digits[0]
        }
    step = np.tile(np.arange(n, dtype=np.uint8), len(c))
    control: dict[str, Any] = {}
    if unit.limbs:
        chosen = 1 << unit.limbs.index(n) if n in unit.limbs else 0
        control = {
            "wide": np.full(len(step), chosen, np.uint8),
            "again": (step > 0).astype(np.uint8),
            "last": (step == n - 1).astype(np.uint8),
        }
    if unit.chopped is not None:
        control["chop"] = np.full(len(step), unit.chopped == spec, np.uint8)
    d = model.run(**buses, c=np.repeat(c, n), **control)
    return d.reshape(-1, n)[:, -1]

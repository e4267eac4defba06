"""Dots of tiles whose operands have scales of blocks along K."""

import ml_dtypes
import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.golden.fp.codec import to_float
from vitruvian.golden.machines.products import multiply as multiply_by_rule
from vitruvian.golden.machines.table import machine_name
from vitruvian.golden.triton.dot import TARGETS, Dot, lower
from vitruvian.golden.triton.product import multiply

#: Formats with scales, by Triton's names, and this project's.
SCALED = {"e4m3": "fp8e4m3", "e5m2": "fp8e5m2", "e2m1": "fp4e2m1"}
_BLOCKS = {"ue8m0": 32, "ue4m3": 16}
_LARGE = 128  # rows of a tile of the instructions with scales


def multiply_scaled(
    machine: str,
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    *,
    formats: tuple[str, str],
    scale_a: np.ndarray | None,
    scale_b: np.ndarray | None,
    scale: str = "ue8m0",
    warps: int = 4,
    fast: bool = False,
    threads: int | None = 1,
) -> tuple[np.ndarray, Dot]:
    """Return C + A·B of operands with scales, and the dot that computes it.

    Blackwell has instructions with scales. Elsewhere Triton's compiler multiplies each value by its
    scale in BF16, and a dot of BF16 follows.

    Parameters
    ----------
    machine : str
    a, b : (M, K), (K, N) ndarray
        Codes, one in each element also in e2m1.
    c : (M, N) ndarray of uint32
    formats : (str, str)
        e4m3, e5m2, e2m1, or bf16, which has no scale.
    scale_a, scale_b : (M, K / block), (K / block, N) ndarray of uint8, optional
    scale : {"ue8m0", "ue4m3"}
        Format of the scales; their blocks have 32 and 16 terms.
    warps : int
        ``num_warps`` of the launch.
    fast : bool
        ``fast_math``: a scale that is a NaN does not make its block one.
    threads
        As those of ``multiply``.

    Raises
    ------
    UserError
        If the machine or the formats have no known rule.

    Examples
    --------
    >>> import numpy as np
    >>> from vitruvian.golden.triton import multiply_scaled
    >>> one = np.full((128, 64), 0x38, np.uint8)  # 1.0 in e4m3
    >>> two = np.full((128, 2), 128, np.uint8)
    >>> d, dot = multiply_scaled(
    ...     "b200", one, one.T, np.zeros((128, 128), np.uint32), formats=("e4m3", "e4m3"),
    ...     scale_a=two, scale_b=two.T)
    >>> float(d.view(np.float32)[0, 0]), dot.rule
    (256.0, 'b200_mxf8f6f4_e4m3_fp32')
    """
    name = machine_name(machine.lower())
    if TARGETS.get(name, "gfx942") == "gfx942":
        raise UserError(f"machine must have a known rule for dots with scales, not {machine}")
    for f in formats:
        if f not in (*SCALED, "bf16"):
            raise UserError(f"formats must be {', '.join(SCALED)} or bf16, not {f}")
    stem = _native(name, formats, scale, (*c.shape, a.shape[1]), warps, scale_a, scale_b)
    if stem is not None:
        d = multiply_by_rule(
            *(a, b, c), machine=stem, scale_a=scale_a, scale_b=scale_b, threads=threads
        )
        return d, Dot(rule=stem, input="x".join(dict.fromkeys(formats)), evidence="published")
    if "e4m3" in formats and TARGETS[name] in ("sm80", "sm86"):
        raise UserError(f"formats must not be e4m3 on {name}: Triton has no e4m3 there")
    x = _in_bf16(a, formats[0], scale_a, scale, fast)
    y = _in_bf16(b.T, formats[1], None if scale_b is None else scale_b.T, scale, fast).T
    loaded = 4 if "e2m1" in formats else 8
    dot = lower(name, "bf16", (*c.shape, a.shape[1]), warps=warps, loaded=loaded)
    return multiply(x, y, c, dot, threads), dot


def _native(
    name: str,
    formats: tuple[str, str],
    scale: str,
    shape: tuple[int, int, int],
    warps: int,
    scale_a: np.ndarray | None,
    scale_b: np.ndarray | None,
) -> str | None:
    """Return the row of an instruction with scales; None if the compiler takes another one."""
    if scale_a is None or scale_b is None or not set(formats) <= {*SCALED}:
        return None
    both = formats == ("e2m1", "e2m1")
    rows, columns, terms = shape
    if name == "b200":
        if rows % _LARGE or columns < 16 or warps not in (4, 8):
            return None
        if both and terms < 64:
            raise UserError(f"K of a tile of e2m1 must be at least 64, not {terms}")
    elif name != "rtx50" or (len(set(formats)) > 1 and "e2m1" in formats):
        return None
    if scale == "ue4m3":
        return f"{name}_nvf4_ue4m3_fp32" if both else None
    pair = formats[0] if formats[0] == formats[1] else "x".join(formats)
    return f"{name}_mxf4_fp32" if both else f"{name}_mxf8f6f4_{pair}_fp32"


def _in_bf16(
    codes: np.ndarray, format: str, scales: np.ndarray | None, scale: str, fast: bool
) -> np.ndarray:
    """Return codes of BF16 of rows of values that are multiplied by the scales of their blocks."""
    if format == "bf16":
        values = codes.view(ml_dtypes.bfloat16).astype(np.float32)
    else:
        values = to_float(codes, SCALED[format]).astype(np.float32)
    if scales is not None:
        if scale == "ue8m0":  # the bits of the scale become the exponent: 0 is zero, 255 infinity
            factors = (scales.astype(np.uint32) << 23).view(np.float32)
        else:
            factors = to_float(scales, "fp8e4m3").astype(np.float32)
        with np.errstate(all="ignore"):
            values = values * np.repeat(factors, _BLOCKS[scale], axis=1)
        if scale == "ue8m0" and not fast:
            values[np.repeat(scales == 0xFF, _BLOCKS[scale], axis=1)] = np.nan
    bf16 = values.astype(ml_dtypes.bfloat16).view(np.uint16)
    bf16[np.isnan(values)] = 0x7FFF
    return bf16

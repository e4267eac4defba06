"""Berkeley SoftFloat on arrays of codes, with about 1.5 million calls per second."""

import numpy as np
import softfloatpy as sf

from vitruvian.golden.fp import FORMATS

TYPES = {"fp16": sf.Float16, "bf16": sf.BFloat16, "fp32": sf.Float32, "fp64": sf.Float64}
SHORT = {"fp16": "f16", "bf16": "bf16", "fp32": "f32", "fp64": "f64"}
MODES = {
    "RNE": sf.RoundingMode.NEAR_EVEN,
    "RNA": sf.RoundingMode.NEAR_MAX_MAG,
    "RZ": sf.RoundingMode.MIN_MAG,
    "RU": sf.RoundingMode.MAX,
    "RD": sf.RoundingMode.MIN,
}


def softfloat(operation, operands, format, output=None, rounding="RNE"):
    """Apply ``operation`` ("mul_add", "add", "mul", "to") to arrays of ``format`` codes.

    Every NaN result is replaced by the format's canonical NaN, as SoftFloat keeps payloads.
    """
    output = format if output is None else output
    name = f"{SHORT[format]}_{operation}" + (f"_{SHORT[output]}" if operation == "to" else "")
    function, make = getattr(sf, name), TYPES[format].from_bytes
    size = FORMATS[format].storage_bits // 8
    columns = []
    for codes in operands:
        text = codes.astype(f">u{size}").tobytes()
        columns.append([make(text[i : i + size]) for i in range(0, len(text), size)])
    sf.set_rounding_mode(MODES[rounding])
    try:
        text = b"".join([x.to_bytes() for x in map(function, *columns)])
    finally:
        sf.set_rounding_mode(sf.RoundingMode.NEAR_EVEN)
    f = FORMATS[output]
    size = f.storage_bits // 8
    codes = np.frombuffer(text, f">u{size}").astype(f"u{size}")
    magnitude = codes & codes.dtype.type(f.sign_mask - 1)
    return np.where(magnitude > f.exponent_mask, codes.dtype.type(f.canonical_nan), codes)


def softfloat_to_int(codes, format, rounding="RNE"):
    """Convert codes to int32 values; the result for a NaN is SoftFloat's own."""
    function, make = getattr(sf, f"{SHORT[format]}_to_i32"), TYPES[format].from_bytes
    size = FORMATS[format].storage_bits // 8
    text = codes.astype(f">u{size}").tobytes()
    mode = MODES[rounding]
    values = [
        function(make(text[i : i + size]), mode).to_bytes() for i in range(0, len(text), size)
    ]
    return np.frombuffer(b"".join(values), ">i4").astype(np.int32)

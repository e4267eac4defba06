"""Arrays of .npz files as codes of number formats; ``vitruvian.common.npz`` reads the files."""

import numpy as np

from vitruvian.golden.fp import FloatFormat, convert


def allowed_dtypes(format: FloatFormat) -> str:
    """Return a text that lists the dtypes that ``codes`` accepts for a format."""
    if format.storage_bits == 32:
        return f"uint32 codes of {format.name}, float32 or float16"
    own = f"uint{format.storage_bits} codes of {format.name}"
    return f"{own}, float16, float32 or uint32 (fp32 bit patterns)"


def codes(values: np.ndarray, format: FloatFormat, name: str) -> np.ndarray:
    """Convert an array to codes of a format.

    Parameters
    ----------
    values : ndarray
        Either codes of ``format``: unsigned or signed integers of its width, or the void dtype
        that NumPy reads for a stored ml_dtypes array. Or values that ``format`` represents exactly,
        as float16, float32, or their fp32 bit patterns in uint32.
    name : str
        Name of the array, for messages.

    Returns
    -------
    codes : ndarray of unsigned integers

    Raises
    ------
    ValueError
        If the array has another dtype, or the format cannot represent a value.
    """
    bits = _as_codes(values, format)
    if bits is not None:
        return bits
    bits = _as_fp32(values, format, name)
    result = np.asarray(convert(bits, "fp32", format))
    back = np.asarray(convert(result, format, "fp32"))
    inexact = (back != bits) & ~np.isnan(bits.view(np.float32))
    if inexact.any():
        raise ValueError(
            f"{name} must hold values of {format.name}, not {int(bits[inexact][0]):#010x}"
        )
    return result


def rounded(values: np.ndarray, format: FloatFormat, name: str) -> np.ndarray:
    """Convert an array to codes of a format like ``codes``, but round values to nearest even.

    Parameters
    ----------
    values : ndarray
    name : str
        Name of the array, for messages.

    Raises
    ------
    ValueError
        If the array has another dtype.
    """
    bits = _as_codes(values, format)
    if bits is not None:
        return bits
    return np.asarray(convert(_as_fp32(values, format, name), "fp32", format))


def _as_codes(values: np.ndarray, format: FloatFormat) -> np.ndarray | None:
    """Return the codes of an array that holds codes of the format, else None."""
    bits = 8 * values.dtype.itemsize
    float_code = values.dtype.kind == "f" and format.name in (f"fp{bits}", f"tf{bits}")
    if bits != format.storage_bits or not (values.dtype.kind in "uiV" or float_code):
        return None
    return np.ascontiguousarray(values).view(f"u{bits // 8}")


def _as_fp32(values: np.ndarray, format: FloatFormat, name: str) -> np.ndarray:
    """Return the fp32 bit patterns of an array of values."""
    if values.dtype in (np.uint32, np.int32, np.float32):
        return np.ascontiguousarray(values).view(np.uint32)
    if values.dtype == np.float16:
        return np.asarray(convert(np.ascontiguousarray(values).view(np.uint16), "fp16", "fp32"))
    raise ValueError(f"{name} must be {allowed_dtypes(format)}, not {values.dtype}")

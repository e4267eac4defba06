"""Fast Fourier transform whose butterflies are complex matrix products."""

import numpy as np
import scipy.fft

from vitruvian.sim.studies.gemm import COMPLEX
from vitruvian.sim.studies.study import Kernel, Setting, Study

__all__ = ["FFT", "fft", "radices", "roots"]

LARGEST_RADIX = 16

#: Of the samples of the study, which are integers of 16 bits.
DEVIATION = 4096


def radices(length: int, largest: int = LARGEST_RADIX) -> list[int]:
    """Factors of a power of two: as many of the largest as possible, then what is left.

    Raises
    ------
    ValueError
        If either number is not a power of two, or the largest is below 2.
    """
    for name, value, low in (("length", length, 1), ("largest radix", largest, 2)):
        if value < low or value & (value - 1):
            raise ValueError(f"{name} must be a power of two from {low} on, not {value!r}")
    found = []
    while length > 1:
        found.append(min(largest, length))
        length //= found[-1]
    return found


def roots(numerator, denominator: int) -> np.ndarray:
    """exp(−2πi · numerator / denominator) as complex64, zeros exact.

    Rounded once from double precision; the numerator is reduced first.
    """
    angle = -2 * np.pi * (np.asarray(numerator) % denominator) / denominator
    parts = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    parts[np.abs(parts) < 1e-15] = 0
    return parts.astype(np.float32).view(np.complex64)[..., 0]


def fft(x, gemm, *, largest_radix: int = LARGEST_RADIX) -> np.ndarray:
    """Forward discrete Fourier transform along the first axis, not scaled.

    Stockham's order, decimation in frequency: in each stage all butterflies of a radix r are one
    product, F_r (r × r) · X (r × length/r · batch), and the result is rearranged, so that no digit
    reversal is left at the end. Twiddle factors are multiplied in between the products, element by
    element in FP32 (both products and the sum of each part rounded), whatever ``gemm`` is; that is
    the work of a vector unit.

    Parameters
    ----------
    x : (length, …) ndarray of complex64
        Length is a power of two.
    gemm : callable
        ``gemm(a, b)`` on complex64.
    largest_radix : int
        A power of two.

    Returns
    -------
    (length, …) ndarray of complex64

    Raises
    ------
    TypeError
        For another dtype.
    ValueError
        For a length or radix that is not a power of two.
    """
    x = np.asarray(x)
    if x.dtype != np.complex64:
        raise TypeError(f"x must be complex64, not {x.dtype.name}")
    if x.ndim == 0:
        raise ValueError("x must have at least one axis")
    shape, left = x.shape, x.shape[0]
    for radix in radices(left, largest_radix):
        k = np.arange(radix)
        left //= radix
        y = gemm(roots(np.outer(k, k), radix), x.reshape(radix, -1)).reshape(radix, left, -1)
        if left > 1:
            y = _times(y, roots(np.outer(k, np.arange(left)), radix * left)[:, :, None])
        x = np.ascontiguousarray(y.swapaxes(0, 1))
    return x.reshape(shape)


def _times(x, factor):
    """Complex product with every operation rounded to FP32, the same on every machine."""
    found = np.empty_like(x)
    with np.errstate(invalid="ignore", over="ignore"):
        found.real = x.real * factor.real - x.imag * factor.imag
        found.imag = x.real * factor.imag + x.imag * factor.real
    return found


def _study(size: int, setting: Setting) -> Study:
    random = np.random.default_rng(setting.seed)
    x = np.rint(DEVIATION * random.standard_normal((size, 2), np.float32))
    x = x.view(np.complex64)[..., 0]
    reference = np.fft.fft(x.astype(np.complex128))

    def extras(found, _):
        with np.errstate(invalid="ignore", divide="ignore"):
            noise = np.linalg.norm(found - reference) / np.linalg.norm(reference)
            return {"L2 error": float(noise), "SNR dB": float(-20 * np.log10(noise))}

    stages = radices(size)
    product = "·".join(map(str, stages))
    return Study(
        kernel="fft",
        title="complex Fourier transform, butterflies as matrix products",
        setting=f"{size} points of white noise in 16-bit samples, radices {product}",
        reference="NumPy's transform in complex128",
        unit=str(setting.unit),
        backend=setting.backend,
        rows=setting.rows(
            lambda gemm: fft(x, gemm),
            reference,
            extras=extras,
            yardsticks={"SciPy complex64": lambda: np.asarray(scipy.fft.fft(x))},
        ),
        notes=(
            f"{max(len(stages) - 1, 0) * size} twiddle factors are multiplied in FP32 outside the "
            "matrix unit; not in the cycles",
        ),
    )


FFT = Kernel(
    name="fft",
    title="Fourier transform",
    run=_study,
    size="points",
    default=1 << 14,
    low=2,
    high=1 << 20,
    power_of_two=True,
    methods=("FP16", "FP16 scaled", "TF32", "3xBF16", "3xTF32", "FP32", "FP32C"),
    able=COMPLEX,
)

"""Fast Fourier transform with its butterflies as complex matrix products."""

import numpy as np

from vitruvian.common.extras import need
from vitruvian.sim.studies.gemm import COMPLEX
from vitruvian.sim.studies.study import RunOptions, Study, StudyKernel

LARGEST_RADIX = 16

#: Standard deviation of the samples in the case study, which are 16-bit integers.
DEVIATION = 4096


def radices(length: int, largest: int = LARGEST_RADIX) -> list[int]:
    """Return the radices of a transform: the largest as often as possible, then the remainder.

    Parameters
    ----------
    length, largest : int
        Length of the transform, and the largest radix; both are powers of two.

    Raises
    ------
    ValueError
        If either number is not a power of two, or ``largest`` is below 2.
    """
    for name, value, low in (("length", length, 1), ("largest radix", largest, 2)):
        if value < low or value & (value - 1):
            raise ValueError(f"{name} must be a power of two from {low} on, not {value!r}")
    result = []
    while length > 1:
        result.append(min(largest, length))
        length //= result[-1]
    return result


def roots(numerator, denominator: int) -> np.ndarray:
    """Return exp(−2πi · numerator / denominator) as complex64, rounded once from complex128.

    The numerator is reduced modulo the denominator first, and zeros are exact.
    """
    angle = -2 * np.pi * (np.asarray(numerator) % denominator) / denominator
    parts = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    parts[np.abs(parts) < 1e-15] = 0  # cos(π/2) is not exactly 0 in double precision
    return parts.astype(np.float32).view(np.complex64)[..., 0]


def fft(x, gemm, *, largest_radix: int = LARGEST_RADIX) -> np.ndarray:
    """Return the forward discrete Fourier transform along the first axis, without scaling.

    The order is Stockham's, with decimation in frequency. In each stage, all butterflies of a radix
    r are one product, F_r (r × r) · X (r × length/r · batch). The result of a stage is rearranged,
    so the last stage needs no digit reversal. Between the products, every element is multiplied by
    a twiddle factor in FP32 for every ``gemm`` (both products and the sum of each part are
    rounded); that is the work of a vector unit.

    Parameters
    ----------
    x : (length, …) ndarray of complex64
        The length is a power of two.
    gemm : callable
        Function ``gemm(a, b)`` of complex64 matrices.
    largest_radix : int
        A power of two.

    Returns
    -------
    (length, …) ndarray of complex64

    Raises
    ------
    TypeError
        If ``x`` has another dtype.
    ValueError
        If the length or the radix is not a power of two.
    """
    x = np.asarray(x)
    if x.dtype != np.complex64:
        raise TypeError(f"x must be complex64, not {x.dtype.name}")
    if x.ndim == 0:
        raise ValueError("x must have at least one axis")
    shape, left = x.shape, x.shape[0]
    for radix in radices(left, largest_radix):
        # Stockham: the first axis of x is the digit that this stage transforms; the result's first
        # axis is the next digit, and the transformed digits follow in their final order.
        k = np.arange(radix)
        left //= radix
        y = gemm(roots(np.outer(k, k), radix), x.reshape(radix, -1)).reshape(radix, left, -1)
        if left > 1:
            y = _times(y, roots(np.outer(k, np.arange(left)), radix * left)[:, :, None])
        x = np.ascontiguousarray(y.swapaxes(0, 1))
    return x.reshape(shape)


def _times(x, factor):
    """Return the complex product with every operation rounded to FP32.

    NumPy's own complex product may use a fused multiply-add, which differs between machines.
    """
    product = np.empty_like(x)
    with np.errstate(invalid="ignore", over="ignore"):
        product.real = x.real * factor.real - x.imag * factor.imag
        product.imag = x.real * factor.imag + x.imag * factor.real
    return product


def _study(size: int, options: RunOptions) -> Study:
    random = np.random.default_rng(options.seed)
    x = np.rint(DEVIATION * random.standard_normal((size, 2), np.float32))
    x = x.view(np.complex64)[..., 0]
    reference = np.fft.fft(x.astype(np.complex128))

    def extras(result, _):
        with np.errstate(invalid="ignore", divide="ignore"):
            noise = np.linalg.norm(result - reference) / np.linalg.norm(reference)
            return {"L2 error": float(noise), "SNR dB": float(-20 * np.log10(noise))}

    stages = radices(size)
    product = "·".join(map(str, stages))
    return Study(
        kernel="fft",
        title="complex Fourier transform, butterflies as matrix products",
        setting=f"{size} points of white noise in 16-bit samples, radices {product}",
        reference="NumPy's transform in complex128",
        unit=str(options.unit),
        backend=options.backend,
        rows=options.rows(
            lambda gemm: fft(x, gemm),
            reference,
            extras=extras,
            baselines={"SciPy complex64": lambda: np.asarray(need("scipy.fft", "ascend").fft(x))},
        ),
        notes=(
            f"{max(len(stages) - 1, 0) * size} twiddle factors are multiplied in FP32 outside the "
            "matrix unit; the cycles do not include them",
        ),
    )


FFT = StudyKernel(
    name="fft",
    title="Fourier transform",
    run=_study,
    size="points",
    default=1 << 14,
    low=2,
    high=1 << 20,
    power_of_two=True,
    methods=("FP16", "FP16 scaled", "TF32", "3xBF16", "3xTF32", "FP32", "FP32C"),
    supported=COMPLEX,
)

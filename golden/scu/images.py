"""Layouts of images and kernels: channels first, and NC1HWC0 with channels in groups of C0."""

import numpy as np
from numpy.typing import ArrayLike

from vitruvian.common.validate import ceil_div

#: Bytes of the C0 channels of a pixel: 16 channels of 16 bits, or 32 of 8 bits
C0_BYTES = 32


def to_nc1hwc0(images: ArrayLike, c0: int | None = None) -> np.ndarray:
    """Convert images with channels first to the NC1HWC0 layout.

    Parameters
    ----------
    images : (..., C, H, W) array_like
    c0 : int, optional
        Channels in a group, by default as many as fill 32 bytes.

    Returns
    -------
    (..., C1, H, W, C0) ndarray
        C1 = ⌈C / C0⌉; the channels that fill up the last group are zero.

    Raises
    ------
    ValueError
        If ``images`` has fewer than three axes, or if C0 is below 1.

    References
    ----------
    Rohwedder 2021, §3.2.
    """
    images = np.asarray(images)
    c0 = C0_BYTES // images.itemsize if c0 is None else c0
    if images.ndim < 3 or c0 < 1:
        raise ValueError(
            f"images must be (..., C, H, W) and c0 at least 1, not {images.shape} and {c0}"
        )
    *lead, channels, height, width = images.shape
    groups = ceil_div(channels, c0)
    padded = np.zeros((*lead, groups * c0, height, width), images.dtype)
    padded[..., :channels, :, :] = images
    return np.moveaxis(padded.reshape(*lead, groups, c0, height, width), -3, -1)


def from_nc1hwc0(image: ArrayLike, channels: int) -> np.ndarray:
    """Convert NC1HWC0 images back to the layout with channels first.

    Parameters
    ----------
    image : (..., C1, H, W, C0) array_like
    channels : int
        The number of channels C, at most C1·C0.

    Returns
    -------
    (..., C, H, W) ndarray

    Raises
    ------
    ValueError
        If ``image`` has fewer than four axes or fewer than ``channels`` channels.
    """
    image = np.asarray(image)
    most = image.shape[-4] * image.shape[-1] if image.ndim >= 4 else 0
    if not 0 <= channels <= most:
        raise ValueError(
            f"channels must be between 0 and {most} for an image {image.shape}, not {channels!r}"
        )
    *lead, groups, height, width, c0 = image.shape
    whole = np.moveaxis(image, -1, -3).reshape(*lead, groups * c0, height, width)
    return whole[..., :channels, :, :]


def kernel_matrix(kernels: ArrayLike, c0: int | None = None) -> np.ndarray:
    """Convert kernels to the matrix by which fractals of patches are multiplied.

    Parameters
    ----------
    kernels : (N, C, Kh, Kw) array_like
        A kernel for each of N output channels.
    c0 : int, optional
        Channels in a group, as in ``to_nc1hwc0``.

    Returns
    -------
    (C1·Kh·Kw·C0, N) ndarray
    """
    grouped = to_nc1hwc0(kernels, c0)
    return grouped.reshape(len(grouped), -1).T

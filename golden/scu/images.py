"""Images and kernels: channels first, and in groups of C0 channels."""

import numpy as np

__all__ = ["C0_BYTES", "from_nc1hwc0", "kernel_matrix", "to_nc1hwc0"]

#: Bytes of the C0 channels of a pixel: 16 of 16 bits, 32 of 8 bits.
C0_BYTES = 32


def to_nc1hwc0(images, c0=None):
    """Images with channels first in the layout of the fractals.

    Parameters
    ----------
    images : (..., C, H, W) ndarray
    c0 : int, optional
        Channels of a group; those of 32 bytes by default.

    Returns
    -------
    (..., C1, H, W, C0) ndarray, C1 = ⌈C / C0⌉; channels that are not there are zero.

    Raises
    ------
    ValueError
        For fewer than three axes, or a C0 below 1.

    References
    ----------
    Rohwedder 2021, §3.2.
    """
    images = np.asarray(images)
    c0 = C0_BYTES // images.itemsize if c0 is None else c0
    if images.ndim < 3 or c0 < 1:
        raise ValueError(f"images must be (..., C, H, W), C0 at least 1, not {images.shape}, {c0}")
    *lead, channels, height, width = images.shape
    groups = -(-channels // c0)
    padded = np.zeros((*lead, groups * c0, height, width), images.dtype)
    padded[..., :channels, :, :] = images
    return np.moveaxis(padded.reshape(*lead, groups, c0, height, width), -3, -1)


def from_nc1hwc0(image, channels):
    """The (..., C, H, W) images that ``to_nc1hwc0`` was given.

    Raises
    ------
    ValueError
        If the image has no four axes, or not as many channels.
    """
    image = np.asarray(image)
    most = image.shape[-4] * image.shape[-1] if image.ndim >= 4 else 0
    if not 0 <= channels <= most:
        raise ValueError(f"channels must be 0 … {most} of an image {image.shape}, not {channels!r}")
    *lead, groups, height, width, c0 = image.shape
    whole = np.moveaxis(image, -1, -3).reshape(*lead, groups * c0, height, width)
    return whole[..., :channels, :, :]


def kernel_matrix(kernels, c0=None):
    """Kernels as the matrix that fractals of patches are multiplied by.

    Parameters
    ----------
    kernels : (N, C, Kh, Kw) ndarray
        A kernel for each of N output channels.
    c0 : int, optional
        As ``to_nc1hwc0`` takes it.

    Returns
    -------
    (C1·Kh·Kw·C0, N) ndarray
    """
    grouped = to_nc1hwc0(kernels, c0)
    return grouped.reshape(len(grouped), -1).T

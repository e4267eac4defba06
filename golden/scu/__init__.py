"""The storage conversion unit: NC1HWC0 images, and Im2Col and Col2Im to and from fractals.

An image is an array (..., C1, H, W, C0): the channels are in C1 groups of C0, which fill a block of
32 bytes. A fractal is a 512-byte matrix of 16 patches × C0 channels at one position of the kernel.
"""

from vitruvian.golden.scu.images import C0_BYTES, from_nc1hwc0, kernel_matrix, to_nc1hwc0
from vitruvian.golden.scu.patches import Patches
from vitruvian.golden.scu.transforms import col2im, col2im_add, im2col, im2col_load

__all__ = [
    "C0_BYTES",
    "Patches",
    "col2im",
    "col2im_add",
    "from_nc1hwc0",
    "im2col",
    "im2col_load",
    "kernel_matrix",
    "to_nc1hwc0",
]

"""Storage conversion: images in NC1HWC0, patches as fractals (Im2Col), and back (Col2Im).

An image is (..., C1, H, W, C0): channels in C1 groups of C0, the 32 bytes of a block. A fractal is
16 patches × C0 channels at one position of the kernel, 512 bytes.
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

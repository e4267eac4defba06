"""Kernels for DaVinci cores, as programs of `sim.davinci`.

``KERNELS`` has them by name: the sample kernels of the thesis' Table 2.4, its tiled matrix product
(`matmul`, with `tiling` and `search`), and some in CCE C.
"""

from .full import KERNELS as _FULL
from .made import MOST, Kernel, Made, Needs
from .single import KERNELS as _SINGLE
from .texts import KERNELS as _TEXTS

__all__ = ["KERNELS", "MOST", "Kernel", "Made", "Needs"]

#: By name.
KERNELS: dict[str, Kernel] = {kernel.name: kernel for kernel in (*_FULL, *_SINGLE, *_TEXTS)}

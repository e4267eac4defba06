"""Kernels for DaVinci cores, as programs of `sim.davinci`.

``KERNELS`` has them by name: the sample kernels of the thesis' Table 2.4, its tiled matrix product
(`matmul`, with `tiling` and `search`), and some in CCE C.
"""

from vitruvian.sim.kernels.full import KERNELS as _FULL
from vitruvian.sim.kernels.made import MOST, Kernel, Made, Needs
from vitruvian.sim.kernels.single import KERNELS as _SINGLE
from vitruvian.sim.kernels.texts import KERNELS as _TEXTS

__all__ = ["KERNELS", "MOST", "Kernel", "Made", "Needs"]

#: By name.
KERNELS: dict[str, Kernel] = {kernel.name: kernel for kernel in (*_FULL, *_SINGLE, *_TEXTS)}

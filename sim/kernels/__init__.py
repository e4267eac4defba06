"""Kernels for DaVinci cores, built as programs of ``sim.davinci``.

``KERNELS`` holds them by name: the sample kernels of Tang 2024 (Table 2.4), its tiled matrix
product (``matmul``, with ``tiling`` and ``search``), search for nearest neighbours (``selbknn``)
and sums of Taylor series (``cubefx``), convolutions, the poolings of Rohwedder 2021 (``pooling``),
evaluations of Taylor series by the vector unit (``series``), and some kernels in CCE C.
"""

from vitruvian.sim.kernels.convolution.registered import KERNELS as _CONVOLUTION
from vitruvian.sim.kernels.cubefx.registered import KERNELS as _CUBEFX
from vitruvian.sim.kernels.full import KERNELS as _FULL
from vitruvian.sim.kernels.kernel import MOST, Kernel, KernelInstance, Needs
from vitruvian.sim.kernels.kselection.registered import KERNELS as _SELECTION
from vitruvian.sim.kernels.pooling.kernels import KERNELS as _POOLING
from vitruvian.sim.kernels.selbknn.registered import KERNELS as _NEIGHBOURS
from vitruvian.sim.kernels.series.registered import KERNELS as _SERIES
from vitruvian.sim.kernels.single import KERNELS as _SINGLE
from vitruvian.sim.kernels.texts import KERNELS as _TEXTS

__all__ = ["KERNELS", "MOST", "Kernel", "KernelInstance", "Needs"]

#: All kernels by name.
KERNELS: dict[str, Kernel] = {
    kernel.name: kernel
    for kernel in (
        *_FULL,
        *_CONVOLUTION,
        *_CUBEFX,
        *_NEIGHBOURS,
        *_POOLING,
        *_SELECTION,
        *_SERIES,
        *_SINGLE,
        *_TEXTS,
    )
}

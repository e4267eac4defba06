"""Kernels for DaVinci cores, built as programs of ``sim.davinci``.

``KERNELS`` holds them by name: the sample kernels of Tang 2024 (Table 2.4), its tiled matrix
product (``matmul``, with ``tiling`` and ``search``), search for nearest neighbours (``selbknn``)
and sums of Taylor series (``cubefx``), convolutions, the poolings of Rohwedder 2021 (``pooling``),
evaluations of Taylor series by the vector unit (``series``), and some kernels in CCE C.
"""

from vitruvian.sim.kernels.applications import KERNELS as _APPLICATIONS
from vitruvian.sim.kernels.cce_kernels import KERNELS as _CCE
from vitruvian.sim.kernels.convolution.catalogue import KERNELS as _CONVOLUTION
from vitruvian.sim.kernels.cubefx.catalogue import KERNELS as _CUBEFX
from vitruvian.sim.kernels.kernel import LIMITS, Kernel, KernelInstance, SimulationCost
from vitruvian.sim.kernels.kselection.catalogue import KERNELS as _SELECTION
from vitruvian.sim.kernels.pooling.catalogue import KERNELS as _POOLING
from vitruvian.sim.kernels.selbknn.catalogue import KERNELS as _NEIGHBOURS
from vitruvian.sim.kernels.series.catalogue import KERNELS as _SERIES
from vitruvian.sim.kernels.single_unit import KERNELS as _SINGLE_UNIT

__all__ = ["KERNELS", "LIMITS", "Kernel", "KernelInstance", "SimulationCost"]

#: All kernels by name.
KERNELS: dict[str, Kernel] = {
    kernel.name: kernel
    for kernel in (
        *_APPLICATIONS,
        *_CONVOLUTION,
        *_CUBEFX,
        *_NEIGHBOURS,
        *_POOLING,
        *_SELECTION,
        *_SERIES,
        *_SINGLE_UNIT,
        *_CCE,
    )
}

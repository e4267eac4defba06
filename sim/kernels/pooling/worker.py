"""The common parts of the forward and the backward pooling kernels on one core."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from vitruvian.common.validate import round_up
from vitruvian.sim.davinci import Core, View
from vitruvian.sim.kernels.pooling.blocks import BlockRows
from vitruvian.sim.kernels.pooling.emit import PER_REPEAT, Emitter, behind
from vitruvian.sim.kernels.pooling.geometry import PoolingTile
from vitruvian.sim.kernels.pooling.plan import PoolingPlan, PoolingTask

#: Most fractals of one Im2Col or Col2Im.
MOST_FRACTALS = 255


@dataclass(frozen=True)
class PoolingTensors:
    """Tensors in global memory as views (blocks, …, 16), where a block is an image of 16 channels.

    Attributes
    ----------
    x : View
        (blocks, H·W, 16).
    y : View
        (blocks, Oh·Ow, 16).
    mask : View or None
        (blocks, Kh·Kw·Oh·Ow, 16).
    divisors : View or None
        (Oh·Ow, 16).
    """

    x: View
    y: View
    mask: View | None = None
    divisors: View | None = None


class Worker(ABC):
    """A pooling kernel on one core.

    Parameters
    ----------
    divisor : float
        The divisor of all windows, unless they have different ones.

    Attributes
    ----------
    first : bool
        True until the first tile has been emitted.
    """

    def __init__(
        self,
        emit: Emitter,
        task: PoolingTask,
        plan: PoolingPlan,
        tensors: PoolingTensors,
        divisor: float,
    ) -> None:
        self.emit, self.task, self.plan, self.gm = emit, task, plan, tensors
        self.core = emit.core
        self.buffers = allocate(emit.core, plan)
        self.first = True
        if task.argmax:
            emit.fill(self.buffers["zero"], 0.0)
        if task.reduction == "avg" and not task.divisors:
            emit.fill(self.buffers["divisors"], divisor)

    @abstractmethod
    def tile(self, block: int, tile: PoolingTile) -> None:
        """Emit the work on one tile of an image of 16 channels."""

    def block(self, number: int) -> None:
        """Emit the work on one image of 16 channels."""
        for tile in self.plan.tiles:
            self.tile(number, tile)
            self.first = False

    def covered(self, tile: PoolingTile, row: int, position: tuple[int, int]) -> View:
        """Return the pixels from the one that the first window of a row has at a position."""
        p = self.task.patches
        line = row * p.stride[0] + position[0] * p.dilation[0]
        at = line * tile.columns.padded + position[1] * p.dilation[1]
        return behind(self.buffers["image"], at)

    def pitches(self, tile: PoolingTile) -> BlockRows:
        """Return where the windows have their pixels at one position of the kernel."""
        down, across = self.task.patches.stride
        return BlockRows(down * tile.columns.padded, across)

    def divide(self, values: View) -> None:
        """Divide the contiguous values of windows by their divisors."""
        divisors = self.buffers["divisors"]
        if self.task.divisors:
            part = divisors[: values.shape[0]]
            self.emit.dense("vdiv", dst=values, src0=values, src1=part)
        else:
            self.emit.with_constant("vdiv", values, values, divisors)


def allocate(core: Core, plan: PoolingPlan) -> dict[str, View]:
    """Allocate the buffers of a plan, each of whole repeats, as pixels of 16 channels."""
    sizes = {name: round_up(size, PER_REPEAT) for name, size in plan.sizes.items()}
    return {
        name: core.allocate("L1" if name == "L1" else "UB", (pixels, 16), "fp16", name)
        for name, pixels in sizes.items()
    }

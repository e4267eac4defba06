"""Forward pooling with one window, the image: eight images of 16 channels with all 128 lanes.

A window alone fills 16 lanes. Here the eight blocks of a repeat are the same pixel of eight images,
whose distance is the block stride, and the repeats are the pixels in their order. The result is
that of the other methods to the bit, because a lane reduces the pixels of one channel in order.
"""

from vitruvian.common.validate import ceil_div
from vitruvian.sim.davinci import Core, Unit, View
from vitruvian.sim.kernels.pooling.emit import MOST_REPEAT, PER_REPEAT, PIXEL_BYTES, pieces
from vitruvian.sim.kernels.pooling.plan import PoolingTask
from vitruvian.sim.kernels.ring import Ring

V, MTE2, MTE3 = Unit.V, Unit.MTE2, Unit.MTE3


def instructions(task: PoolingTask, blocks: int) -> int:
    """Return an upper bound of the instructions of a core for some images of 16 channels."""
    pixels = task.patches.height * task.patches.width
    return ceil_div(blocks, PER_REPEAT) * (8 * ceil_div(pixels, MOST_REPEAT) + 14) + 16


def emit(core: Core, task: PoolingTask, x: View, y: View, part: range, divisor: float) -> None:
    """Emit the poolings of some images of 16 channels.

    Parameters
    ----------
    x, y : View
        (blocks, H·W, 16) and (blocks, 1, 16) in global memory.
    """
    op, initial = ("vmax", float("-inf")) if task.reduction == "max" else ("vadd", 0.0)
    pixels = x.shape[1]
    most = min(pixels, MOST_REPEAT)
    images = core.allocate("UB", (2, PER_REPEAT * most, 16), "fp16", "images")
    outs = core.allocate("UB", (2, PER_REPEAT * 16), "fp16", "windows")
    divisors = core.allocate("UB", (PER_REPEAT * 16,), "fp16", "divisors")
    if task.reduction == "avg":
        core.vdup(divisors, divisor)
    loads, results = Ring(core, MTE2, V), Ring(core, V, MTE3)
    for first, count in pieces(len(part), PER_REPEAT):
        blocks = slice(part[first], part[first] + count)
        mask = (1 << 16 * count) - 1
        done = results.write()
        out = outs[done.begin(), : 16 * count]
        core.vdup(out, initial)
        for start, length in pieces(pixels, MOST_REPEAT):
            with loads.write() as slot:
                core.copy(
                    images[slot],
                    x[blocks, start : start + length],
                    bursts=count,
                    burst_bytes=length * PIXEL_BYTES,
                    dst_stride=length * PIXEL_BYTES,
                    src_stride=pixels * PIXEL_BYTES,
                )
            with loads.read() as slot:
                # Each piece reduces into the results of the last one.
                core.pipe_barrier(V)
                operands = {"dst": out, "src0": images[slot], "src1": out}
                strides = {"dst": (1, 0), "src0": (length, 1), "src1": (1, 0)}
                core.vector(op, operands, repeat=length, mask=mask, strides=strides)
        core.pipe_barrier(V)
        if task.reduction == "avg":
            core.vector("vdiv", {"dst": out, "src0": out, "src1": divisors}, repeat=1, mask=mask)
        done.end()
        with results.read():
            core.copy(y[blocks], out.reshape(count, 1, 16))
    loads.close()
    results.close()

"""The mask of a forward kernel: 1 at the first or at each largest pixel of a window, 0 elsewhere.

``left`` is 1 where the maximum has not been found yet. A position of the kernel takes it over where
its pixel equals the maximum, and clears it there. If the mask has all largest pixels, nothing is
cleared, so ``left`` stays 1.

A chip whose vsel takes other bits for each repeat from memory needs three instructions for many
windows: vcmpv, and vsel twice. On the others, the bits are in one register, which vcmp writes: each
repeat then needs a vcmp and a vsel of its own, and a subtraction of many windows clears ``left``.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from vitruvian.common.validate import ceil_div
from vitruvian.sim.davinci import View
from vitruvian.sim.kernels.pooling.blocks import BlockRows, parts
from vitruvian.sim.kernels.pooling.emit import (
    MOST_REPEAT,
    ONE_PIXEL,
    PER_REPEAT,
    Emitter,
    behind,
    pieces,
)
from vitruvian.sim.kernels.pooling.geometry import PoolingTile
from vitruvian.sim.kernels.pooling.worker import Worker


@dataclass(frozen=True)
class _MaskPart:
    """Windows that one instruction with repeats handles.

    Attributes
    ----------
    source : View
        The pixels that are compared; the first one is that of the first window.
    step : (int, int)
        Block stride and repeat stride of the source.
    first : int
        The first window of the tile.
    block, distance : int
        Block stride of the maxima in the comparison, and windows from repeat to repeat.
    repeat, lanes : int
        Repeats, and the mask of the lanes of each.
    bits : int
        Where the bits of the comparison begin in their buffer, in blocks.
    """

    source: View
    step: tuple[int, int]
    first: int
    block: int
    distance: int
    repeat: int
    lanes: int
    bits: int


def mark(worker: Worker, tile: PoolingTile, chunk: list[tuple[int, int]], out: View) -> None:
    """Set the mask of each position to 1 where its pixel is one that equals the maximum.

    Parameters
    ----------
    worker : Worker
        Its buffer "positions" gets the masks; with Im2Col and expansion it has the pixels before.
    chunk : list of (int, int)
        Positions in the kernel.
    out : View
        The maxima.
    """
    held, method = out.shape[0], worker.task.method
    for index, position in enumerate(chunk):
        mask = worker.buffers["positions"][index * held : (index + 1) * held]
        if method in ("im2col", "expansion"):
            some = _contiguous(mask)
        elif method == "strided":
            some = _rows(worker, tile, position)
        else:
            some = _pixels(worker, tile, position)
        if worker.plan.bits_in_memory:
            _by_memory(worker, list(some), mask, out)
        else:
            _by_register(worker, some, mask, out)


def _contiguous(pixels: View) -> Iterator[_MaskPart]:
    """Yield parts of 128 lanes, whose masks replace the pixels."""
    count = pixels.shape[0]
    whole, rest = divmod(count, PER_REPEAT)
    some = [(first * PER_REPEAT, n, (1 << 128) - 1) for first, n in pieces(whole, MOST_REPEAT)]
    if rest:
        some.append((whole * PER_REPEAT, 1, (1 << 16 * rest) - 1))
    for first, repeat, lanes in some:
        source, step = behind(pixels, first), (1, PER_REPEAT)
        # Every instruction's bits, 16 bytes for each repeat, begin with a whole block.
        yield _MaskPart(source, step, first, 1, PER_REPEAT, repeat, lanes, ceil_div(first, 16))


def _pixels(worker: Worker, tile: PoolingTile, position: tuple[int, int]) -> Iterator[_MaskPart]:
    """Yield parts of one pixel a repeat, because the pixels of neighbouring windows have gaps."""
    columns, step = tile.columns.count, worker.task.patches.stride[1]
    # The bits of a pixel are 16 bytes, and each row of them begins with a whole block.
    pitch = columns + columns % 2
    for row in range(tile.rows.count):
        line = worker.covered(tile, row, position)
        for first, repeat in pieces(columns, MOST_REPEAT):
            source, at = behind(line, first * step), row * columns + first
            bits = (row * pitch + first) // 2
            # With a block stride of 0, the disabled lanes read the same pixel and none behind it.
            yield _MaskPart(source, (0, step), at, 0, 1, repeat, ONE_PIXEL, bits)


def _rows(worker: Worker, tile: PoolingTile, position: tuple[int, int]) -> Iterator[_MaskPart]:
    """Yield parts of 128 lanes, which compare with pixels at the distance of the windows."""
    rows, columns = tile.rows.count, tile.columns.count
    windows, pixels = BlockRows(columns), worker.pitches(tile)
    source = worker.covered(tile, 0, position)
    bits = 0
    for part in parts(rows, columns, windows, pixels):
        first, (block, distance) = part.first(windows), part.stride(windows)
        place, step = behind(source, part.first(pixels)), part.stride(pixels)
        yield _MaskPart(place, step, first, block, distance, part.repeat, part.lanes, bits)
        # The bits of a repeat are 16 bytes, and those of an instruction begin a block.
        bits += ceil_div(part.repeat, 2)


def _by_memory(worker: Worker, some: list[_MaskPart], mask: View, out: View) -> None:
    """Mark the windows with bits in memory, other ones for each repeat."""
    core, zero, left = worker.core, worker.buffers["zero"], worker.buffers["left"]
    bits = worker.buffers["bits"]
    for part in some:
        strides = {"src0": part.step, "src1": (part.block, part.distance)}
        options = {"repeat": part.repeat, "mask": part.lanes, "strides": strides}
        core.vcmpv(bits[part.bits :], part.source, behind(out, part.first), "eq", **options)
    worker.emit.barrier()
    fixed = (1, 0)
    for clear in (False,) if worker.task.all_ties else (False, True):
        for part in some:
            step, remaining = (1, part.distance), behind(left, part.first)
            if clear:
                views = remaining, zero, remaining
                strides = {"dst": step, "src0": fixed, "src1": step}
            else:
                views = behind(mask, part.first), remaining, zero
                strides = {"dst": step, "src0": step, "src1": fixed}
            options = {"repeat": part.repeat, "mask": part.lanes, "strides": strides}
            core.vsel(*views, bits[part.bits :], **options)
        worker.emit.barrier()


def _by_register(worker: Worker, some: Iterator[_MaskPart], mask: View, out: View) -> None:
    """Mark the windows with bits in the register, which hold for one repeat only."""
    emit, zero, left = worker.emit, worker.buffers["zero"], worker.buffers["left"]
    for part in some:
        for number in range(part.repeat):
            pixel = behind(part.source, number * part.step[1])
            at = part.first + number * part.distance
            compared = pixel, behind(out, at)
            _mark_once(emit, part, compared, behind(mask, at), behind(left, at), zero)
    emit.barrier()
    if worker.task.all_ties:
        return
    held = out.shape[0]
    emit.dense("vsub", dst=left[:held], src0=left[:held], src1=mask)
    emit.barrier()


def _mark_once(
    emit: Emitter, part: _MaskPart, compared: tuple[View, View], mask: View, left: View, zero: View
) -> None:
    """Compare into the register, and take over what is left where the bits are set."""
    blocks = {"src0": (part.step[0], 0), "src1": (part.block, 0)}
    emit.core.vcmp(*compared, "eq", repeat=1, mask=part.lanes, strides=blocks)
    # vsel reads the register, and in the layout of Im2Col it overwrites the pixels compared.
    emit.barrier()
    emit.core.vsel(mask, left, zero, repeat=1, mask=part.lanes)

"""Forward pooling: the largest or the mean of each window, and the mask of the largest.

References
----------
Rohwedder 2021, §4.1 (direct, Im2Col), §4.3 (average) and §5.2 (expansion, X-Y split). The method
"strided" is ours.
"""

import math

from vitruvian.common.validate import round_up
from vitruvian.sim.davinci import Unit, View
from vitruvian.sim.kernels.pooling.blocks import BlockRows, rectangle
from vitruvian.sim.kernels.pooling.emit import (
    behind,
    pieces,
)
from vitruvian.sim.kernels.pooling.geometry import PoolingTile
from vitruvian.sim.kernels.pooling.mask import mark
from vitruvian.sim.kernels.pooling.worker import MOST_FRACTALS, Worker


class Forward(Worker):
    """The forward kernel on one core."""

    #: True after the first Im2Col load.
    used = False

    @property
    def op(self) -> str:
        """The instruction that reduces."""
        return "vmax" if self.task.reduction == "max" else "vadd"

    @property
    def initial(self) -> float:
        """The value with which a reduction starts."""
        return -math.inf if self.task.reduction == "max" else 0.0

    @property
    def padding(self) -> float:
        """The value of the padding."""
        # A NaN is never equal to the maximum, so the mask cannot mark the padding, and vmax ignores
        # it. Infinity would be marked if all pixels of the window had this value.
        return math.nan if self.task.argmax else self.initial

    def tile(self, block: int, tile: PoolingTile) -> None:
        """Emit the work on one tile of an image of 16 channels."""
        emit, task = self.emit, self.task
        chunks = self.plan.chunks(task)
        windows = self.buffers["windows"]
        # Im2Col computes whole fractals, because the rows after the last patch do no harm.
        count = tile.count
        held = round_up(count, 16) if task.method == "im2col" else count
        out = windows[:held]
        self._load(block, tile)
        if not self.first:
            emit.order(Unit.MTE3, Unit.V)
        # The chunks are reduced into this value one after the other.
        emit.fill(out, self.initial)
        for chunk in chunks:
            self._by_position(tile, chunk, held)
            self._reduce(tile, chunk, out)
        if task.argmax:
            # No pixel of any window has been marked yet.
            emit.fill(self.buffers["left"][:held], 1.0)
            for chunk in chunks:
                if len(chunks) > 1:
                    emit.order(Unit.MTE3, Unit.V)
                    self._by_position(tile, chunk, held)
                mark(self, tile, chunk, out)
                emit.order(Unit.V, Unit.MTE3)
                self._store_mask(block, tile, chunk, held)
        if task.reduction == "avg":
            self.divide(out[: tile.count])
        if not task.argmax:
            emit.order(Unit.V, Unit.MTE3)
        self._store(self.gm.y[block], out, tile)

    # Loads.

    def _load(self, block: int, tile: PoolingTile) -> None:
        """Load the tile's pixels to L1 or, with their padding, to the Unified Buffer."""
        emit, rows, columns = self.emit, tile.rows, tile.columns
        width = self.task.patches.width
        source = self.gm.x[block][rows.pixels[0] * width + columns.pixels[0] :]
        if self.task.method == "im2col":
            if not self.first:
                emit.order(Unit.MTE1, Unit.MTE2)
            emit.copy(
                self.buffers["L1"], source, rows.length, columns.length, columns.length, width
            )
            emit.order(Unit.MTE2, Unit.MTE1)
        else:
            image = self.buffers["image"]
            padded = rows.padded, columns.padded
            # Without an edge there is no padding to fill in, and the load overwrites every pixel.
            if padded != (rows.length, columns.length):
                emit.fill(image[: padded[0] * padded[1]], self.padding)
                emit.order(Unit.V, Unit.MTE2)
            elif not self.first:
                emit.order(Unit.V, Unit.MTE2)
            target = image[rows.pad[0] * padded[1] + columns.pad[0] :]
            emit.copy(target, source, rows.length, columns.length, padded[1], width)
        if self.gm.divisors is not None:
            # Without Im2Col, the order before the load of the image covers this load, too.
            if self.task.method == "im2col" and not self.first:
                emit.order(Unit.V, Unit.MTE2)
            self._windows_in(self.buffers["divisors"], self.gm.divisors, tile)
        if self.task.method != "im2col" or self.gm.divisors is not None:
            emit.order(Unit.MTE2, Unit.V)

    def _windows_in(self, target: View, source: View, tile: PoolingTile) -> None:
        width = self.task.patches.columns
        first = tile.rows.windows[0] * width + tile.columns.windows[0]
        columns = tile.columns.count
        self.emit.copy(target, source[first:], tile.rows.count, columns, columns, width)

    def _by_position(self, tile: PoolingTile, chunk: list[tuple[int, int]], held: int) -> None:
        """Bring the pixels into the layout of Im2Col if the method has it: (positions, windows)."""
        if self.task.method == "im2col":
            self._im2col(tile, chunk, held)
        elif self.task.method == "expansion":
            self._expand(tile, chunk, held)

    def _im2col(self, tile: PoolingTile, chunk: list[tuple[int, int]], held: int) -> None:
        if self.used:
            # V has waited for the stores of the masks, which replaced the pixels.
            self.emit.order(Unit.V, Unit.MTE1)
        self.used = True
        patches = tile.patches(self.task.patches)
        for index, position in enumerate(chunk):
            for first, repeat in pieces(held // 16, MOST_FRACTALS):
                at = index * held + 16 * first
                self.core.im2col(
                    self.buffers["positions"][at : at + 16 * repeat],
                    self.buffers["L1"],
                    patches,
                    repeat=repeat,
                    position=patches.corner(16 * first),
                    kernel_position=position,
                    mode=1,
                    pad_value=self.padding,
                )
        self.emit.order(Unit.MTE1, Unit.V)

    def _expand(self, tile: PoolingTile, chunk: list[tuple[int, int]], held: int) -> None:
        """Copy pixel by pixel; OR of a value with itself copies its bits, also those of a NaN."""
        self.emit.barrier()
        for index, position in enumerate(chunk):
            target = self.buffers["positions"][index * held :]
            for row in range(tile.rows.count):
                source = self.covered(tile, row, position)
                to = target[row * tile.columns.count :]
                views = {"dst": to, "src0": source, "src1": source}
                step = self.task.patches.stride[1]
                steps = {"dst": 1, "src0": step, "src1": step}
                self.emit.pixels("vor", views, steps, tile.columns.count)
        self.emit.barrier()

    # The reduction.

    def _reduce(self, tile: PoolingTile, chunk: list[tuple[int, int]], out: View) -> None:
        method = self.task.method
        if method in ("im2col", "expansion"):
            for index in range(len(chunk)):
                part = self.buffers["positions"][index * out.shape[0] : (index + 1) * out.shape[0]]
                self.emit.dense(self.op, dst=out, src0=out, src1=part)
                self.emit.barrier()
        elif chunk[0] == (0, 0):
            # The other methods reduce over all positions at once: the first chunk has its turn.
            if method == "strided":
                self._reduce_rows(tile, out, along_rows=False)
            elif method == "direct":
                self._reduce_directly(tile, out)
            else:
                self._reduce_by_axis(tile, out)

    def _reduce_directly(self, tile: PoolingTile, out: View) -> None:
        kh, rows, columns = self.task.patches.kernel[0], tile.rows.count, tile.columns.count
        if self.task.patches.stride[1] == 1:
            # Neighbouring windows have neighbouring pixels, which fill all lanes. The repeat goes
            # over (Ow, C0), as in Rohwedder 2021, §5.2.
            self._reduce_rows(tile, out, along_rows=True)
            return
        for y in range(kh):
            for row in range(rows):
                line = self.covered(tile, row, (y, 0))
                for column in range(columns):
                    self._along_kernel(behind(out, row * columns + column), line, column)
            self.emit.barrier()

    def _reduce_rows(self, tile: PoolingTile, out: View, *, along_rows: bool) -> None:
        """Reduce all windows at one position of the kernel after the other, with 128 lanes."""
        rows, columns = tile.rows.count, tile.columns.count
        windows, pixels = BlockRows(columns), self.pitches(tile)
        for position in self.task.positions:
            source = self.covered(tile, 0, position)
            operands = {"dst": (out, windows), "src0": (out, windows), "src1": (source, pixels)}
            rectangle(self.emit, self.op, operands, rows, columns, along_rows=along_rows)
            self.emit.barrier()

    def _along_kernel(self, dst: View, line: View, column: int) -> None:
        """Reduce one row of one window: a repeat for each of its pixels, all into one pixel."""
        p = self.task.patches
        # The manual allows src1, and not src0, to be the sum of the repeats in dst.
        operands = {"dst": dst, "src0": behind(line, column * p.stride[1]), "src1": dst}
        steps = {"dst": 0, "src0": p.dilation[1], "src1": 0}
        self.emit.pixels(self.op, operands, steps, p.kernel[1])

    def _reduce_by_axis(self, tile: PoolingTile, out: View) -> None:
        """Reduce along W into a row of windows for each row of pixels, then these along H."""
        p, rows, columns = self.task.patches, tile.rows.count, tile.columns.count
        lines = self.buffers["rows"][: tile.rows.padded * columns]
        self.emit.fill(lines, self.initial)
        down = range(0, rows * p.stride[0], p.stride[0])
        used = sorted({at + y * p.dilation[0] for at in down for y in range(p.kernel[0])})
        image, width = self.buffers["image"], tile.columns.padded
        if p.stride[1] == 1:
            for x in range(p.kernel[1]):
                # Rows of pixels that no window covers are left out, if windows have gaps.
                for line, number in _runs(used):
                    dst, at = behind(lines, line * columns), line * width + x * p.dilation[1]
                    pixels = (behind(image, at), BlockRows(width))
                    sums = (dst, BlockRows(columns))
                    operands = {"dst": sums, "src0": sums, "src1": pixels}
                    rectangle(self.emit, self.op, operands, number, columns, along_rows=True)
                self.emit.barrier()
        else:
            for line in used:
                pixels = behind(image, line * width)
                for column in range(columns):
                    self._along_kernel(behind(lines, line * columns + column), pixels, column)
            self.emit.barrier()
        for y in range(p.kernel[0]):
            if p.stride[0] == 1:
                line = y * p.dilation[0]
                src = lines[line * columns : (line + rows) * columns]
                self.emit.dense(self.op, dst=out, src0=out, src1=src)
            else:
                some = (
                    behind(lines, y * p.dilation[0] * columns),
                    BlockRows(p.stride[0] * columns),
                )
                sums = (out, BlockRows(columns))
                operands = {"dst": sums, "src0": sums, "src1": some}
                rectangle(self.emit, self.op, operands, rows, columns, along_rows=True)
            self.emit.barrier()

    # Stores.

    def _store(self, target: View, source: View, tile: PoolingTile) -> None:
        width = self.task.patches.columns
        first = tile.rows.windows[0] * width + tile.columns.windows[0]
        columns = tile.columns.count
        self.emit.copy(target[first:], source, tile.rows.count, columns, width, columns)

    def _store_mask(
        self, block: int, tile: PoolingTile, chunk: list[tuple[int, int]], held: int
    ) -> None:
        """Store the masks of a chunk, in one copy if each is contiguous in global memory."""
        p, masks = self.task.patches, self.buffers["positions"]
        assert self.gm.mask is not None
        numbers = [y * p.kernel[1] + x for y, x in chunk]
        if tile.columns.count == p.columns:
            at = numbers[0] * p.count + tile.rows.windows[0] * p.columns
            target = self.gm.mask[block][at:]
            self.emit.copy(target, masks, len(chunk), tile.count, p.count, held)
            return
        for index, number in enumerate(numbers):
            target = self.gm.mask[block][number * p.count :]
            self._store(target, masks[index * held :], tile)


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    """Return (first, count) of the runs of consecutive numbers."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        first, count = found[-1] if found else (number, 0)
        if found and first + count == number:
            found[-1] = first, count + 1
        else:
            found.append((number, 1))
    return found

"""Backward pooling: the gradient of the pixels from that of the windows, and from the mask.

The gradient of a window goes to the pixel that the mask marks (max), or a part of it to all pixels
(average). A pixel's contributions are added one after another, from +0, each sum rounded: in rising
row and then rising column of the kernel. The X-Y split adds those of a column of the kernel first.

References
----------
Rohwedder 2021, §4.2 (max) and §4.3 (average).
"""

from vitruvian.common.validate import round_up
from vitruvian.sim.davinci import Unit, View
from vitruvian.sim.kernels.pooling.blocks import BlockRows, rectangle
from vitruvian.sim.kernels.pooling.emit import behind, pieces
from vitruvian.sim.kernels.pooling.geometry import PoolingTile
from vitruvian.sim.kernels.pooling.worker import MOST_FRACTALS, Worker

_Position = tuple[int, int]


class Backward(Worker):
    """The backward kernel on one core; ``x`` of the tensors is the result, ``y`` the gradient."""

    def tile(self, block: int, tile: PoolingTile) -> None:
        """Emit the work on one tile of an image of 16 channels."""
        emit, task = self.emit, self.task
        # Col2Im has an image of the tile's own pixels; the others have one with the windows' edges.
        inner = task.method == "im2col" or not tile.count
        axes = tile.rows, tile.columns
        height, width = ((axis.length if inner else axis.padded) for axis in axes)
        image = self.buffers["image"][: height * width]
        if not self.first:
            emit.order(Unit.MTE3, Unit.V)
        # Pixels that no window covers have the gradient 0.
        emit.fill(image, 0.0)
        if tile.count:
            self._gradient(block, tile)
        emit.order(Unit.V, Unit.MTE3)
        top, left = (0, 0) if inner else (axis.pad[0] for axis in axes)
        whole = task.patches.width
        target = self.gm.x[block][tile.rows.pixels[0] * whole + tile.columns.pixels[0] :]
        source = image[top * width + left :]
        emit.copy(target, source, tile.rows.length, tile.columns.length, whole, width)

    def _gradient(self, block: int, tile: PoolingTile) -> None:
        """Add the contributions of the tile's windows to the image."""
        emit, task, gradient = self.emit, self.task, self.buffers["windows"]
        if not self.first:
            emit.order(Unit.V, Unit.MTE2)
        self._load(gradient, self.gm.y[block], tile)
        if task.reduction == "avg":
            if self.gm.divisors is not None:
                self._load(self.buffers["divisors"], self.gm.divisors, tile)
            emit.order(Unit.MTE2, Unit.V)
            self.divide(gradient[: tile.count])
            emit.barrier()
            # Each pixel of a window gets the same share, so that one part serves all positions.
            self._merge(tile, task.positions, [gradient] * len(task.positions))
            return
        for number, chunk in enumerate(self.plan.chunks(task)):
            if number:
                emit.order(Unit.V, Unit.MTE2)
            masks = self._load_masks(block, tile, chunk)
            emit.order(Unit.MTE2, Unit.V)
            for mask in masks:
                part = mask[: tile.count]
                # The gradient goes to the pixel that was the maximum, where the mask is 1.
                emit.dense("vmul", dst=part, src0=part, src1=gradient[: tile.count])
            emit.barrier()
            self._merge(tile, chunk, masks)

    def _load(self, target: View, source: View, tile: PoolingTile) -> None:
        """Load a value for each window of the tile."""
        width, columns = self.task.patches.columns, tile.columns.count
        first = tile.rows.windows[0] * width + tile.columns.windows[0]
        self.emit.copy(target, source[first:], tile.rows.count, columns, columns, width)

    def _load_masks(self, block: int, tile: PoolingTile, chunk: list[_Position]) -> list[View]:
        """Load the masks of a chunk, in one copy if they are at equal distances."""
        p, count = self.task.patches, tile.count
        held = round_up(count, 16) if self.task.method == "im2col" else count
        masks = [self.buffers["positions"][i * held :] for i in range(len(chunk))]
        assert self.gm.mask is not None
        source = self.gm.mask[block]
        numbers = [y * p.kernel[1] + x for y, x in chunk]
        consecutive = numbers == list(range(numbers[0], numbers[0] + len(chunk)))
        if consecutive and tile.columns.count == p.columns:
            first = numbers[0] * p.count + tile.rows.windows[0] * p.columns
            self.emit.copy(masks[0], source[first:], len(chunk), count, held, p.count)
        else:
            for mask, number in zip(masks, numbers, strict=True):
                self._load(mask, source[number * p.count :], tile)
        return masks

    def _merge(self, tile: PoolingTile, positions: list[_Position], parts: list[View]) -> None:
        """Add a part for each position of the kernel to the image."""
        if self.task.method == "im2col":
            merge = self._col2im
        else:
            merge = {
                "direct": self._scatter,
                "expansion": self._rows,
                "xy": self._by_axis,
                "strided": self._by_blocks,
            }[self.task.method]
        for position, part in zip(positions, parts, strict=True):
            merge(tile, position, part)

    def _col2im(self, tile: PoolingTile, position: _Position, part: View) -> None:
        patches = tile.patches(self.task.patches)
        image = self.buffers["image"]
        for first, repeat in pieces(patches.fractals, MOST_FRACTALS):
            self.core.col2im(
                image,
                part[16 * first :],
                patches,
                repeat=repeat,
                position=patches.corner(16 * first),
                kernel_position=position,
            )
        self.emit.barrier()

    def _scatter(self, tile: PoolingTile, position: _Position, part: View) -> None:
        """Add one pixel of 16 channels with each instruction."""
        columns, step = tile.columns.count, self.task.patches.stride[1]
        for row in range(tile.rows.count):
            line = self.covered(tile, row, position)
            for column in range(columns):
                at = row * columns + column
                self._add_pixels(behind(line, column * step), behind(part, at), 1)
        self.emit.barrier()

    def _rows(self, tile: PoolingTile, position: _Position, part: View) -> None:
        """Add a row of windows with each instruction, one repeat for each."""
        columns = tile.columns.count
        for row in range(tile.rows.count):
            line = self.covered(tile, row, position)
            self._add_pixels(line, part[row * columns :], columns)
        self.emit.barrier()

    def _by_blocks(self, tile: PoolingTile, position: _Position, part: View) -> None:
        """Add with 128 lanes to pixels at the distance of the windows."""
        down, across = self.task.patches.stride
        pixels = self.covered(tile, 0, position), BlockRows(down * tile.columns.padded, across)
        columns = tile.columns.count
        operands = {"dst": pixels, "src0": pixels, "src1": (part, BlockRows(columns))}
        rectangle(self.emit, "vadd", operands, tile.rows.count, columns)
        self.emit.barrier()

    def _by_axis(self, tile: PoolingTile, position: _Position, part: View) -> None:
        """Add along H into rows of windows, and after the last row of the kernel along W."""
        p, (y, x) = self.task.patches, position
        rows, columns = tile.rows.count, tile.columns.count
        lines = self.buffers["rows"][: tile.rows.padded * columns]
        # All columns of the kernel of an average have the same sums along H.
        if self.task.reduction == "max" or x == 0:
            if y == 0:
                self.emit.fill(lines, 0.0)
            for row in range(rows):
                line = row * p.stride[0] + y * p.dilation[0]
                dst = lines[line * columns : (line + 1) * columns]
                src = part[row * columns : (row + 1) * columns]
                self.emit.dense("vadd", dst=dst, src0=dst, src1=src)
            self.emit.barrier()
        # The sums along H of this column of the kernel are complete.
        if y == p.kernel[0] - 1:
            image, width = self.buffers["image"], tile.columns.padded
            for line in range(tile.rows.padded):
                dst = image[line * width + x * p.dilation[1] :]
                self._add_pixels(dst, lines[line * columns :], columns)
            self.emit.barrier()

    def _add_pixels(self, dst: View, part: View, number: int) -> None:
        operands = {"dst": dst, "src0": dst, "src1": part}
        step = self.task.patches.stride[1] if number > 1 else 1
        self.emit.pixels("vadd", operands, {"dst": step, "src0": step, "src1": 1}, number)

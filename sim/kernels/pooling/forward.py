"""Forward pooling: the largest or the mean of each window, and the mask of the largest.

References
----------
Rohwedder 2021, §4.1 (direct, Im2Col), §4.3 (average) and §5.2 (expansion, X-Y split). The method
"strided" is ours.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from vitruvian.sim.davinci import Core, Unit, View
from vitruvian.sim.kernels.pooling.blocks import Rows, parts, rectangle
from vitruvian.sim.kernels.pooling.emit import (
    MOST_REPEAT,
    ONE_PIXEL,
    PER_REPEAT,
    Emitter,
    behind,
    pieces,
)
from vitruvian.sim.kernels.pooling.geometry import Tile
from vitruvian.sim.kernels.pooling.plan import Plan, Task

__all__ = ["MOST_FRACTALS", "Forward", "Tensors", "allocate", "divide"]

#: Most fractals of one Im2Col or Col2Im.
MOST_FRACTALS = 255


@dataclass(frozen=True)
class Tensors:
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


class Forward:
    """The forward kernel on one core.

    Parameters
    ----------
    emit : Emitter
    task : Task
    plan : Plan
    tensors : Tensors
    divisor : float
        The divisor of all windows, unless they have different ones.
    """

    def __init__(
        self, emit: Emitter, task: Task, plan: Plan, tensors: Tensors, divisor: float
    ) -> None:
        self.emit, self.task, self.plan, self.gm = emit, task, plan, tensors
        core = emit.core
        self.core = core
        self.op = "vmax" if task.reduction == "max" else "vadd"
        self.start = -math.inf if task.reduction == "max" else 0.0
        # A NaN is never equal to the maximum, so the mask cannot mark the padding, and vmax ignores
        # it. Infinity would be marked if all pixels of the window had this value.
        self.padding = math.nan if task.argmax else self.start
        self.buffers = allocate(core, plan)
        self.first, self.used = True, False
        if task.argmax:
            emit.fill(self.buffers["zero"], 0.0)
        if task.reduction == "avg" and not task.divisors:
            emit.fill(self.buffers["divisors"], divisor)

    def block(self, number: int) -> None:
        """Emit the work on one image of 16 channels."""
        for tile in self.plan.tiles:
            self._tile(number, tile)

    def _tile(self, block: int, tile: Tile) -> None:
        emit, task = self.emit, self.task
        chunks = self.plan.chunks(task)
        windows = self.buffers["windows"]
        # Im2Col computes whole fractals, because the rows after the last patch do no harm.
        count = tile.count
        held = -(-count // 16) * 16 if task.method == "im2col" else count
        out = windows[:held]
        self._load(block, tile)
        if not self.first:
            emit.order(Unit.MTE3, Unit.V)
        emit.fill(out, self.start)
        for chunk in chunks:
            self._by_position(tile, chunk, held)
            self._reduce(tile, chunk, out)
        if task.argmax:
            emit.fill(self.buffers["left"][:held], 1.0)
            for chunk in chunks:
                if len(chunks) > 1:
                    emit.order(Unit.MTE3, Unit.V)
                    self._by_position(tile, chunk, held)
                self._mark(tile, chunk, out)
                emit.order(Unit.V, Unit.MTE3)
                self._store_mask(block, tile, chunk, held)
        if task.reduction == "avg":
            divide(emit, out[: tile.count], self.buffers["divisors"], task.divisors)
        if not task.argmax:
            emit.order(Unit.V, Unit.MTE3)
        self._store(self.gm.y[block], out, tile)
        self.first = False

    # Loads.

    def _load(self, block: int, tile: Tile) -> None:
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

    def _windows_in(self, target: View, source: View, tile: Tile) -> None:
        width = self.task.patches.columns
        first = tile.rows.windows[0] * width + tile.columns.windows[0]
        columns = tile.columns.count
        self.emit.copy(target, source[first:], tile.rows.count, columns, columns, width)

    def _by_position(self, tile: Tile, chunk: list[tuple[int, int]], held: int) -> None:
        """Bring the pixels into the layout of Im2Col if the method has it: (positions, windows)."""
        if self.task.method == "im2col":
            self._im2col(tile, chunk, held)
        elif self.task.method == "expansion":
            self._expand(tile, chunk, held)

    def _im2col(self, tile: Tile, chunk: list[tuple[int, int]], held: int) -> None:
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

    def _expand(self, tile: Tile, chunk: list[tuple[int, int]], held: int) -> None:
        """Copy pixel by pixel; OR of a value with itself copies its bits, also those of a NaN."""
        self.emit.barrier()
        for index, position in enumerate(chunk):
            target = self.buffers["positions"][index * held :]
            for row in range(tile.rows.count):
                source = self._covered(tile, row, position)
                to = target[row * tile.columns.count :]
                views = {"dst": to, "src0": source, "src1": source}
                step = self.task.patches.stride[1]
                steps = {"dst": 1, "src0": step, "src1": step}
                self.emit.pixels("vor", views, steps, tile.columns.count)
        self.emit.barrier()

    def _covered(self, tile: Tile, row: int, position: tuple[int, int]) -> View:
        """Return the pixels from the one that the first window of a row has at a position."""
        p = self.task.patches
        line = row * p.stride[0] + position[0] * p.dilation[0]
        at = line * tile.columns.padded + position[1] * p.dilation[1]
        return behind(self.buffers["image"], at)

    # The reduction.

    def _reduce(self, tile: Tile, chunk: list[tuple[int, int]], out: View) -> None:
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

    def _reduce_directly(self, tile: Tile, out: View) -> None:
        kh, rows, columns = self.task.patches.kernel[0], tile.rows.count, tile.columns.count
        if self.task.patches.stride[1] == 1:
            # Neighbouring windows have neighbouring pixels, which fill all lanes. The repeat goes
            # over (Ow, C0), as in Rohwedder 2021, §5.2.
            self._reduce_rows(tile, out, along_rows=True)
            return
        for y in range(kh):
            for row in range(rows):
                line = self._covered(tile, row, (y, 0))
                for column in range(columns):
                    self._along_kernel(behind(out, row * columns + column), line, column)
            self.emit.barrier()

    def _reduce_rows(self, tile: Tile, out: View, *, along_rows: bool) -> None:
        """Reduce all windows at one position of the kernel after the other, with 128 lanes."""
        rows, columns = tile.rows.count, tile.columns.count
        windows, pixels = Rows(columns), self._pitches(tile)
        for position in self.task.positions:
            source = self._covered(tile, 0, position)
            operands = {"dst": (out, windows), "src0": (out, windows), "src1": (source, pixels)}
            rectangle(self.emit, self.op, operands, rows, columns, along_rows=along_rows)
            self.emit.barrier()

    def _pitches(self, tile: Tile) -> Rows:
        """Return where the windows have their pixels at one position of the kernel."""
        down, across = self.task.patches.stride
        return Rows(down * tile.columns.padded, across)

    def _along_kernel(self, dst: View, line: View, column: int) -> None:
        """Reduce one row of one window: a repeat for each of its pixels, all into one pixel."""
        p = self.task.patches
        # The manual allows src1, and not src0, to be the sum of the repeats in dst.
        operands = {"dst": dst, "src0": behind(line, column * p.stride[1]), "src1": dst}
        steps = {"dst": 0, "src0": p.dilation[1], "src1": 0}
        self.emit.pixels(self.op, operands, steps, p.kernel[1])

    def _reduce_by_axis(self, tile: Tile, out: View) -> None:
        """Reduce along W into a row of windows for each row of pixels, then these along H."""
        p, rows, columns = self.task.patches, tile.rows.count, tile.columns.count
        lines = self.buffers["rows"][: tile.rows.padded * columns]
        self.emit.fill(lines, self.start)
        down = range(0, rows * p.stride[0], p.stride[0])
        used = sorted({at + y * p.dilation[0] for at in down for y in range(p.kernel[0])})
        image, width = self.buffers["image"], tile.columns.padded
        if p.stride[1] == 1:
            for x in range(p.kernel[1]):
                for line, number in _runs(used):
                    dst, at = behind(lines, line * columns), line * width + x * p.dilation[1]
                    pixels = (behind(image, at), Rows(width))
                    sums = (dst, Rows(columns))
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
                some = (behind(lines, y * p.dilation[0] * columns), Rows(p.stride[0] * columns))
                sums = (out, Rows(columns))
                operands = {"dst": sums, "src0": sums, "src1": some}
                rectangle(self.emit, self.op, operands, rows, columns, along_rows=True)
            self.emit.barrier()

    # The mask.

    def _mark(self, tile: Tile, chunk: list[tuple[int, int]], out: View) -> None:
        """Set the mask of each position to 1 where its pixel is the first that equals the maximum.

        ``left`` is 1 where the maximum has not been found yet. A position takes it over where it
        equals the maximum, and clears it there.
        """
        held = out.shape[0]
        for index, position in enumerate(chunk):
            mask = self.buffers["positions"][index * held : (index + 1) * held]
            if self.task.method in ("im2col", "expansion"):
                self._mark_dense(mask, out)
            elif self.task.method == "strided":
                self._mark_rows(tile, position, mask, out)
            else:
                self._mark_pixels(tile, position, mask, out)

    def _mark_dense(self, mask: View, out: View) -> None:
        """Mark 128 lanes at a time; the mask replaces the pixels of its position."""
        bits, held = self.buffers["bits"], out.shape[0]
        for first, repeat, lanes in _repeats(held):
            # Every instruction's bits, 16 bytes for each repeat, begin with a whole block.
            to = bits[-(-first // 16) :]
            self.core.vcmpv(to, mask[first:], out[first:], "eq", repeat=repeat, mask=lanes)
        self.emit.barrier()
        for clear in (False, True):
            for first, repeat, lanes in _repeats(held):
                where = bits[-(-first // 16) :]
                self._choose(clear, mask, first, where, (repeat, lanes, PER_REPEAT))
            self.emit.barrier()

    def _mark_pixels(self, tile: Tile, position: tuple[int, int], mask: View, out: View) -> None:
        """Mark one pixel at a time, because the pixels of neighbouring windows have gaps."""
        columns, step = tile.columns.count, self.task.patches.stride[1]
        # The bits of a pixel are 16 bytes, and each row of them begins with a whole block.
        parts = [
            (row, row * columns + first, repeat, self.buffers["bits"][(row * pitch + first) // 2 :])
            for pitch in (columns + columns % 2,)
            for row in range(tile.rows.count)
            for first, repeat in pieces(columns, MOST_REPEAT)
        ]
        for row, at, repeat, bits in parts:
            source = self._covered(tile, row, position)[(at - row * columns) * step :]
            # With a block stride of 0, the disabled lanes read the same pixel and none behind it.
            strides = {"src0": (0, step), "src1": (0, 1)}
            options = {"repeat": repeat, "mask": ONE_PIXEL, "strides": strides}
            self.core.vcmpv(bits, source, out[at:], "eq", **options)
        self.emit.barrier()
        for clear in (False, True):
            for _, at, repeat, bits in parts:
                self._choose(clear, mask, at, bits, (repeat, ONE_PIXEL, 1))
            self.emit.barrier()

    def _mark_rows(self, tile: Tile, position: tuple[int, int], mask: View, out: View) -> None:
        """Mark 128 lanes at a time, and compare with pixels at the distance of the windows."""
        rows, columns = tile.rows.count, tile.columns.count
        windows, pixels = Rows(columns), self._pitches(tile)
        source = self._covered(tile, 0, position)
        some, at = [], 0
        for part in parts(rows, columns, windows, pixels):
            some.append((part, self.buffers["bits"][at:]))
            # The bits of a repeat are 16 bytes, and those of an instruction begin a block.
            at += -(-part.repeat // 2)
        for part, bits in some:
            strides = {"src0": part.stride(pixels), "src1": part.stride(windows)}
            options = {"repeat": part.repeat, "mask": part.lanes, "strides": strides}
            src0, src1 = behind(source, part.first(pixels)), behind(out, part.first(windows))
            self.core.vcmpv(bits, src0, src1, "eq", **options)
        self.emit.barrier()
        for clear in (False, True):
            for part, bits in some:
                form = (part.repeat, part.lanes, part.stride(windows)[1])
                self._choose(clear, mask, part.first(windows), bits, form)
            self.emit.barrier()

    def _choose(
        self, clear: bool, mask: View, first: int, bits: View, form: tuple[int, int, int]
    ) -> None:
        """Take over what is left where the bits are set, or clear what is left there.

        Parameters
        ----------
        clear : bool
        mask : View
        first : int
            The first pixel.
        bits : View
        form : (int, int, int)
            Repeat, mask of lanes, and pixels from one repeat to the next.
        """
        repeat, lanes, pixels = form
        zero, left = self.buffers["zero"], self.buffers["left"][first:]
        step, fixed = (1, pixels), (1, 0)
        if clear:
            views, strides = (left, zero, left), {"dst": step, "src0": fixed, "src1": step}
        else:
            views, strides = (mask[first:], left, zero), {"dst": step, "src0": step, "src1": fixed}
        self.core.vsel(*views, bits, repeat=repeat, mask=lanes, strides=strides)

    # Stores.

    def _store(self, target: View, source: View, tile: Tile) -> None:
        width = self.task.patches.columns
        first = tile.rows.windows[0] * width + tile.columns.windows[0]
        columns = tile.columns.count
        self.emit.copy(target[first:], source, tile.rows.count, columns, width, columns)

    def _store_mask(self, block: int, tile: Tile, chunk: list[tuple[int, int]], held: int) -> None:
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


def allocate(core: Core, plan: Plan) -> dict[str, View]:
    """Allocate the buffers of a plan, each of whole repeats, as pixels of 16 channels."""
    sizes = {name: -(-size // PER_REPEAT) * PER_REPEAT for name, size in plan.sizes.items()}
    return {
        name: core.allocate("L1" if name == "L1" else "UB", (pixels, 16), "fp16", name)
        for name, pixels in sizes.items()
    }


def divide(emit: Emitter, values: View, divisors: View, each: bool) -> None:
    """Divide contiguous pixels by their divisors, or all by the eight pixels of ``divisors``.

    Parameters
    ----------
    emit : Emitter
    values, divisors : View
    each : bool
        True if every pixel has its own divisor.
    """
    if each:
        emit.dense("vdiv", dst=values, src0=values, src1=divisors[: values.shape[0]])
    else:
        emit.with_constant("vdiv", values, values, divisors)


def _repeats(pixels: int) -> Iterator[tuple[int, int, int]]:
    """Yield (first pixel, repeat, mask of lanes) of instructions on contiguous pixels."""
    whole = pixels // PER_REPEAT
    for first, repeat in pieces(whole, MOST_REPEAT):
        yield first * PER_REPEAT, repeat, (1 << 128) - 1
    rest = pixels - whole * PER_REPEAT
    if rest:
        yield whole * PER_REPEAT, 1, (1 << 16 * rest) - 1


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

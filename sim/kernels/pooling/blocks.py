"""Instructions of 128 lanes on rows of pixels whose distance is a stride.

A block stride of a vector instruction is the distance between the eight blocks of a repeat. Eight
windows of a row, one block each, therefore fill all lanes at any stride of the windows, without a
copy into the layout of Im2Col.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from vitruvian.common.validate import ceil_div
from vitruvian.sim.davinci import View
from vitruvian.sim.kernels.pooling.emit import MOST_REPEAT, PER_REPEAT, Emitter, behind, pieces

#: Largest distance of the repeats of an operand, in blocks: the field has eight bits.
_MOST_DISTANCE = 255


@dataclass(frozen=True)
class BlockRows:
    """The places of an operand's pixels: row r and column c are at r · ``pitch`` + c · ``step``.

    Attributes
    ----------
    pitch, step : int
        In pixels.
    """

    pitch: int
    step: int = 1


@dataclass(frozen=True)
class BlockPart:
    """One instruction.

    Attributes
    ----------
    row, column : int
        The first pixel.
    repeat : int
    lanes : int
        Mask of the lanes of each repeat.
    down : bool
        True if the next repeat is one row further down, and False if it is eight columns further.
    """

    row: int
    column: int
    repeat: int
    lanes: int
    down: bool

    def first(self, where: BlockRows) -> int:
        """Return the number of the first pixel of an operand."""
        return self.row * where.pitch + self.column * where.step

    def stride(self, where: BlockRows) -> tuple[int, int]:
        """Return the block stride and the repeat stride of an operand."""
        # The distances of an instruction with one block or one repeat do not matter.
        block = where.step if self.lanes >> 16 else 1
        distance = where.pitch if self.down else PER_REPEAT * where.step
        return block, distance if self.repeat > 1 else 0


def parts(
    rows: int, columns: int, *operands: BlockRows, along_rows: bool = False
) -> Iterator[BlockPart]:
    """Yield the instructions that cover each pixel of a rectangle once, as few as possible.

    Whole groups of eight columns are one instruction for each row, whose repeats go along the row,
    or one for each group, whose repeats go down the rows. The rests of all rows are one
    instruction.

    Parameters
    ----------
    along_rows : bool
        If True, the repeats of whole groups go along the rows also where this takes more
        instructions.
    """
    groups, rest = divmod(columns, PER_REPEAT)
    can_go_down = all(where.pitch <= _MOST_DISTANCE for where in operands)
    can_go_along = all(PER_REPEAT * where.step <= _MOST_DISTANCE for where in operands)
    most_down = MOST_REPEAT if can_go_down else 1
    most_along = MOST_REPEAT if can_go_along else 1
    full = (1 << 16 * PER_REPEAT) - 1
    along = rows * ceil_div(groups, most_along) <= groups * ceil_div(rows, most_down)
    if along or along_rows:
        for row in range(rows):
            for first, repeat in pieces(groups, most_along):
                yield BlockPart(row, PER_REPEAT * first, repeat, full, False)
    else:
        for group in range(groups):
            for row, repeat in pieces(rows, most_down):
                yield BlockPart(row, PER_REPEAT * group, repeat, full, True)
    if rest:
        for row, repeat in pieces(rows, most_down):
            yield BlockPart(row, PER_REPEAT * groups, repeat, (1 << 16 * rest) - 1, True)


def rectangle(
    emit: Emitter,
    op: str,
    operands: dict[str, tuple[View, BlockRows]],
    rows: int,
    columns: int,
    *,
    along_rows: bool = False,
) -> None:
    """Emit instructions with 128 lanes on rows of pixels.

    Parameters
    ----------
    operands : dict of str to (View, BlockRows)
        The first pixel of each operand is the first of the view.
    along_rows : bool
        As ``parts`` takes it.
    """
    shapes = [where for _, where in operands.values()]
    for part in parts(rows, columns, *shapes, along_rows=along_rows):
        views = {name: behind(view, part.first(at)) for name, (view, at) in operands.items()}
        strides = {name: part.stride(at) for name, (_, at) in operands.items()}
        emit.core.vector(op, views, repeat=part.repeat, mask=part.lanes, strides=strides)

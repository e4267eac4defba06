"""Sizes of tiles: as many windows as fit into the Unified Buffer and L1 of a core."""

from collections.abc import Callable
from dataclasses import dataclass

from vitruvian.common.validate import ceil_div, round_up
from vitruvian.golden.scu import Patches
from vitruvian.golden.scu.patches import ROWS
from vitruvian.sim.davinci import Chip
from vitruvian.sim.kernels.kernel import is_split, vector_kind
from vitruvian.sim.kernels.pooling.emit import PER_REPEAT, PIXEL_BYTES, pieces
from vitruvian.sim.kernels.pooling.geometry import (
    AxisTile,
    PoolingTile,
    backward_axis,
    forward_axis,
    tiles,
)

#: The implementations, with what each does.
METHODS = {
    "direct": "vector instructions on single pixels, 16 of 128 lanes",
    "im2col": "Im2Col and Col2Im, 128 of 128 lanes",
    "expansion": "the layout of Im2Col made by vector instructions",
    "xy": "first along W, then along H",
    "strided": "block strides of vector instructions, 128 of 128 lanes; not in the paper",
}


#: The method of poolings with one window, the image: see the module ``whole``.
WHOLE = "whole"


def fits_whole(patches: Patches, *, forward: bool) -> bool:
    """Return True if a pooling without a mask has one window, which is the image."""
    return forward and patches.kernel == (patches.height, patches.width) and not any(patches.pad)


def default_method(chip: Chip, patches: Patches, *, forward: bool = True) -> str:
    """Return the fastest method on a chip: Im2Col, where vector units have it, or ``WHOLE``.

    Parameters
    ----------
    forward : bool
        False for a kernel that saves or reads a mask, or goes backward.
    """
    if fits_whole(patches, forward=forward):
        return WHOLE
    return "strided" if is_split(chip) else "im2col"


@dataclass(frozen=True)
class PoolingTask:
    """A pooling, without the number of images and the chip that computes it.

    Attributes
    ----------
    patches : Patches
        The windows of the image.
    reduction : {"max", "avg"}
    method : str
        A key of ``METHODS``.
    backward : bool
    argmax : bool
        True if a forward kernel also saves the mask.
    divisors : bool
        True if the windows have different divisors, which come from global memory.
    all_ties : bool
        True if the mask has every largest pixel of a window.
    """

    patches: Patches
    reduction: str
    method: str
    backward: bool = False
    argmax: bool = False
    divisors: bool = False
    all_ties: bool = False

    @property
    def positions(self) -> list[tuple[int, int]]:
        """The positions in the kernel, in the order in which the kernel handles them."""
        kh, kw = self.patches.kernel
        if self.backward and self.method == "xy":
            # Columns of the kernel outside: their sums along H share one buffer.
            return [(y, x) for x in range(kw) for y in range(kh)]
        return [(y, x) for y in range(kh) for x in range(kw)]


@dataclass(frozen=True)
class PoolingPlan:
    """Tiles of a task on a chip, and the sizes of its buffers.

    Attributes
    ----------
    tiles : list of PoolingTile
    chunk : int
        Positions in the kernel that are in the Unified Buffer at a time.
    sizes : dict of str to int
        Pixels of each buffer in the Unified Buffer, and of "L1".
    bits_in_memory : bool
        True if vsel takes other bits for each repeat from memory.
    """

    tiles: list[PoolingTile]
    chunk: int
    sizes: dict[str, int]
    bits_in_memory: bool

    def chunks(self, task: PoolingTask) -> list[list[tuple[int, int]]]:
        """Return the positions in the kernel, chunk by chunk."""
        all_ = task.positions
        return [all_[first : first + count] for first, count in pieces(len(all_), self.chunk)]


@dataclass(frozen=True)
class _Fit:
    """Cuts of the two axes whose tiles fit the buffers."""

    down: list[AxisTile]
    across: list[AxisTile]
    chunk: int
    sizes: dict[str, int]


def plan(task: PoolingTask, chip: Chip) -> PoolingPlan:
    """Return the tiles of a task: whole rows if one fits, otherwise parts of a row.

    Raises
    ------
    ValueError
        If the chip has no such cores, or not even one window fits.
    """
    if task.method == "im2col" and is_split(chip):
        others = ", ".join(name for name in METHODS if name != "im2col")
        raise ValueError(
            f"method of a pooling on {chip.name} must be {others}, not im2col: its vector cores "
            "have no Im2Col"
        )
    kind = vector_kind(chip)
    buffers, bits = kind.buffers, kind.vsel_from_memory
    room = buffers["UB"].nbytes // PIXEL_BYTES
    room_l1 = buffers["L1"].nbytes // PIXEL_BYTES if "L1" in buffers else 0
    p, positions = task.patches, len(task.positions)
    axis = backward_axis if task.backward else forward_axis
    # ``limit`` of an axis counts windows forward; backward it counts pixels, or strides if windows
    # have gaps.
    lengths = (p.height, p.width) if task.backward else (p.rows, p.columns)

    def attempt(rows: int, columns: int, chunk: int) -> _Fit | None:
        down, across = axis(p, 0, rows), axis(p, 1, columns)
        sizes = _sizes(task, down, across, chunk, bits)
        local = (size for key, size in sizes.items() if key != "L1")
        used = sum(round_up(size, PER_REPEAT) for size in local)
        if used > room or sizes.get("L1", 0) > room_l1:
            return None
        return _Fit(down, across, chunk, sizes)

    # Only kernels that hold values by position of the kernel can take fewer of them at a time.
    parts = [positions]
    while _holds_positions(task) and parts[-1] > 1:
        parts.append(ceil_div(parts[-1], 2))

    def by_rows(chunk: int) -> _Fit | None:
        return _largest(lambda rows: attempt(rows, lengths[1], chunk), lengths[0])

    def by_columns(chunk: int) -> _Fit | None:
        return _largest(lambda columns: attempt(1, columns, chunk), lengths[1])

    # Small tiles cost the backward kernels more than small chunks, since a tile repeats the windows
    # at its edges. The forward kernels with a mask make the layout of each chunk twice.
    if task.backward:
        tries = [(by_rows, chunk) for chunk in parts] + [(by_columns, chunk) for chunk in parts]
    else:
        tries = [(axis_of, chunk) for chunk in parts for axis_of in (by_rows, by_columns)]
    found = next((made for by, chunk in tries if (made := by(chunk)) is not None), None)
    if found is None:
        raise ValueError(
            f"window of {task.method} pooling must fit the buffers of {chip.name}, not "
            f"{p.extent[0]} × {p.extent[1]} pixels"
        )
    return PoolingPlan(tiles(found.down, found.across), found.chunk, found.sizes, bits)


def _largest(attempt: Callable[[int], _Fit | None], limit: int) -> _Fit | None:
    """Return the cuts of the largest number for which there are some, by bisection."""
    # If the smallest number does not fit, no larger one does.
    best = attempt(1)
    low, high = 1, limit if best else 1
    while low < high:
        middle = (low + high + 1) // 2
        made = attempt(middle)
        if made is None:
            high = middle - 1
        else:
            best, low = made, middle
    return best


def _holds_positions(task: PoolingTask) -> bool:
    """Return True if the kernel has a buffer with a part for each position of the kernel."""
    if task.backward:
        return task.reduction == "max"
    # The other methods reduce pixels where they are, and need room for masks alone.
    return task.method in ("im2col", "expansion") or task.argmax


def _sizes(
    task: PoolingTask, down: list[AxisTile], across: list[AxisTile], chunk: int, bits: bool
) -> dict[str, int]:
    """Return the pixels of each buffer of a kernel, which its largest tile needs."""

    def maximum(name: str) -> tuple[int, int]:
        return max(getattr(t, name) for t in down), max(getattr(t, name) for t in across)

    rows, columns = maximum("count")
    windows = rows * columns
    fractals = round_up(windows, ROWS)
    padded_rows, padded_columns = maximum("padded")
    height, width = maximum("length")
    of_image = padded_rows * padded_columns
    # Im2Col writes whole fractals of 16 windows.
    by_position = fractals if task.method == "im2col" else windows
    sizes: dict[str, int] = {"windows": by_position}
    if _holds_positions(task):
        sizes["positions"] = chunk * by_position
    if task.method == "xy":
        # The windows of each row of pixels, between the reductions along W and along H.
        sizes["rows"] = padded_rows * columns
    if task.method != "im2col":
        sizes["image"] = of_image
    elif task.backward:
        sizes["image"] = height * width
    else:
        sizes["L1"] = height * width
    if task.argmax:
        if bits:
            # A comparison makes 16 bytes for each repeat of eight pixels, or for each pixel.
            if task.method in ("im2col", "expansion"):
                sizes["bits"] = by_position // 16 + 2
            elif task.method == "strided":
                sizes["bits"] = rows * ceil_div(columns, PER_REPEAT)
            else:
                sizes["bits"] = rows * (columns // 2 + 1)
        # The operands of the mask: 1 where no earlier pixel was the maximum, and zeros to select.
        sizes["left"] = by_position
        sizes["zero"] = PER_REPEAT
    if task.reduction == "avg":
        sizes["divisors"] = windows if task.divisors else PER_REPEAT
    return sizes

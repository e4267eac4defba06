"""The pooling kernels by name, for the command line, and the cost of simulating them."""

from functools import partial
from typing import TypedDict, Unpack

import numpy as np

from vitruvian.common.validate import ceil_div
from vitruvian.golden.scu import Patches
from vitruvian.sim.davinci import Chip
from vitruvian.sim.kernels.kernel import Kernel, KernelInstance, SimulationCost, vector_kind
from vitruvian.sim.kernels.pooling import expected, whole
from vitruvian.sim.kernels.pooling.blocks import BlockRows, parts
from vitruvian.sim.kernels.pooling.build import Pooling, build
from vitruvian.sim.kernels.pooling.emit import MOST_REPEAT, PER_REPEAT
from vitruvian.sim.kernels.pooling.geometry import PoolingTile
from vitruvian.sim.kernels.pooling.plan import METHODS, WHOLE, PoolingPlan
from vitruvian.sim.kernels.pooling.worker import MOST_FRACTALS

#: More windows or instructions than any kernel may have: such a size is not planned at all.
_TOO_MANY = 1 << 28


class _Form(TypedDict):
    """The options of a ``Pooling`` that its name stands for."""

    reduction: str
    method: str
    backward: bool
    argmax: bool


def operands(pooling: Pooling, seed: int) -> dict[str, np.ndarray]:
    """Return random operands of a kernel; many values of an image are equal."""
    rng = np.random.default_rng(seed)
    shapes = pooling.shapes
    if not pooling.backward:
        return {"x": rng.integers(-8, 9, shapes["x"], dtype=np.int8).astype(np.float16)}
    data = {"dy": rng.normal(size=shapes["y"]).astype(np.float16)}
    if pooling.reduction == "max":
        # Each window marks one pixel, as the forward kernel does.
        kh, kw = pooling.patches.kernel
        marked = rng.integers(0, kh * kw, shapes["y"])
        positions = np.arange(kh * kw).reshape(kh, kw, 1, 1, 1)
        data["mask"] = (marked[:, :, None, None] == positions).astype(np.float16)
    return data


def _pooling(size: tuple[int, ...], **form: Unpack[_Form]) -> Pooling:
    images, groups, side, window, step = size
    if window > side:
        raise ValueError(f"window of pooling must be within the {side} pixels, not {window}")
    patches = Patches(height=side, width=side, kernel=(window, window), stride=(step, step))
    return Pooling(patches, images, groups, **form)


def _make(
    size: tuple[int, ...],
    chip: Chip,
    cores: int | None,
    seed: int | None,
    *,
    name: str,
    **form: Unpack[_Form],
) -> KernelInstance:
    pooling = _pooling(size, **form)
    data = None if seed is None else operands(pooling, seed)
    shown = f"{name} {'×'.join(map(str, size))}"
    program = build(pooling, chip, cores=cores, data=data, name=shown)
    if data is None:
        return KernelInstance(program, {})
    if pooling.backward:
        results = expected.backward(pooling, data["dy"], data.get("mask"))
    else:
        results = expected.forward(pooling, data["x"])
    return KernelInstance(program, results)


def _needs(
    size: tuple[int, ...], chip: Chip, cores: int | None, **form: Unpack[_Form]
) -> SimulationCost:
    _, _, side, window, _ = size
    # ``_make`` refuses this size; no cost is reported for it.
    if window > side:
        return SimulationCost(0)
    return needs(_pooling(size, **form), chip, cores)


def needs(pooling: Pooling, chip: Chip, cores: int | None = None) -> SimulationCost:
    """Return the cost of simulating a pooling with data.

    Parameters
    ----------
    cores : int, optional
        By default all cores of the chip.

    Raises
    ------
    ValueError
        If the chip has no cores with all units, or a window does not fit their buffers.
    """
    p, blocks = pooling.patches, pooling.images * pooling.groups
    positions = p.kernel[0] * p.kernel[1]
    masked = pooling.argmax or (pooling.backward and pooling.reduction == "max")
    masks = p.count * positions if masked else 0
    nbytes = 3 * 32 * blocks * (p.height * p.width + p.count + masks)
    if nbytes > _TOO_MANY * 32:
        return SimulationCost(blocks * p.count // MOST_REPEAT, nbytes)
    count = vector_kind(chip).count if cores is None else cores
    if pooling.method == WHOLE:
        # Every core may have images that do not fill its last repeat.
        total = whole.instructions(pooling.task, blocks) * (1 + min(count, blocks))
        return SimulationCost(min(total, whole.instructions(pooling.task, 1) * blocks), nbytes)
    return SimulationCost(blocks * instructions(pooling, chip) + 5 * min(count, blocks), nbytes)


def instructions(pooling: Pooling, chip: Chip) -> int:
    """Return an upper bound, which is close, of the instructions for one image of 16 channels."""
    plan = pooling.plan(chip)
    chunks = len(plan.chunks(pooling.task))
    if pooling.backward:
        return sum(_backward(pooling, tile, chunks) + 30 for tile in plan.tiles)
    return sum(_forward(pooling, tile, chunks, plan) + 30 for tile in plan.tiles)


def _dense(pixels: int) -> int:
    """Return the instructions on contiguous pixels: whole repeats, and one for the rest."""
    return ceil_div(pixels // PER_REPEAT, MOST_REPEAT) + bool(pixels % PER_REPEAT)


def _rectangle(pooling: Pooling, tile: PoolingTile) -> int:
    """Return the instructions with 128 lanes at one position of the kernel."""
    down, across = pooling.patches.stride
    pixels, columns = BlockRows(down * tile.columns.padded, across), tile.columns.count
    along_rows = pooling.method != "strided"
    return sum(
        1
        for _ in parts(tile.rows.count, columns, BlockRows(columns), pixels, along_rows=along_rows)
    )


def _forward(pooling: Pooling, tile: PoolingTile, chunks: int, plan: PoolingPlan) -> int:
    p, method = pooling.patches, pooling.method
    (kh, kw), rows, columns = p.kernel, tile.rows.count, tile.columns.count
    row = ceil_div(columns, MOST_REPEAT)
    one_kernel_row = ceil_div(kw, MOST_REPEAT)
    fractals = ceil_div(tile.count, 16)
    held = 16 * fractals if method == "im2col" else tile.count
    by_position = kh * kw * (_dense(held) + 1)
    marks = kh * kw * (3 * rows * row + 3)
    layout_again = 0
    if method in ("im2col", "expansion"):
        # With a mask, and a window that does not fit at once, the layout is made twice.
        layout = kh * kw * (ceil_div(fractals, MOST_FRACTALS) if method == "im2col" else rows * row)
        total = layout + by_position
        layout_again = layout if chunks > 1 else 0
        marks = 3 * by_position + layout_again
    elif method == "strided":
        total = kh * kw * (_rectangle(pooling, tile) + 1)
        marks = kh * kw * (3 * _rectangle(pooling, tile) + 3)
    elif method == "direct":
        if p.stride[1] == 1:
            total = kh * kw * (_rectangle(pooling, tile) + 1)
        else:
            total = kh * (rows * columns * one_kernel_row + 1)
    else:
        lines = min(tile.rows.padded, rows * kh)
        along_w = kw * _dense(columns) if p.stride[1] == 1 else columns * one_kernel_row
        total = lines * along_w + kh * rows * _dense(columns) + kh + kw
    if pooling.argmax and not plan.bits_in_memory:
        # A comparison, a barrier and a selection of each repeat, and a subtraction of all windows.
        marks = kh * kw * (3 * _repeats(pooling, tile, held) + _dense(held) + 2)
        marks += layout_again
    return total + 8 * chunks + (marks if pooling.argmax else 0)


def _repeats(pooling: Pooling, tile: PoolingTile, held: int) -> int:
    """Return the repeats that mark the windows of a tile at one position of the kernel."""
    if pooling.method in ("im2col", "expansion"):
        return ceil_div(held, PER_REPEAT)
    rows, columns = tile.rows.count, tile.columns.count
    if pooling.method != "strided":
        return rows * columns
    down, across = pooling.patches.stride
    pixels = BlockRows(down * tile.columns.padded, across)
    return sum(part.repeat for part in parts(rows, columns, BlockRows(columns), pixels))


def _backward(pooling: Pooling, tile: PoolingTile, chunks: int) -> int:
    p, method = pooling.patches, pooling.method
    (kh, kw), rows, columns = p.kernel, tile.rows.count, tile.columns.count
    products = kh * kw * (_dense(tile.count) + 1) if pooling.reduction == "max" else 0
    row = ceil_div(columns, MOST_REPEAT)
    if method == "im2col":
        merge = kh * kw * (ceil_div(ceil_div(tile.count, 16), MOST_FRACTALS) + 1)
    elif method == "direct":
        merge = kh * kw * (tile.count + 1)
    elif method == "expansion":
        merge = kh * kw * (rows * row + 1)
    elif method == "strided":
        merge = kh * kw * (_rectangle(pooling, tile) + 1)
    else:
        sums = kw if pooling.reduction == "max" else 1
        merge = sums * kh * (rows * _dense(columns) + 3) + kw * (tile.rows.padded * row + 1)
    # The masks of a chunk are one load, or one for each position.
    loads = kh * kw if tile.columns.count < p.columns or method == "xy" else 0
    return products + merge + loads + 8 * chunks


def _kernel(name: str, title: str, form: _Form) -> Kernel:
    full = f"{name}-{form['method']}"
    return Kernel(
        full,
        f"{title}: {METHODS[form['method']]}",
        ("images", "C1", "side", "window", "step"),
        (2, 1, 11, 3, 2),
        partial(_make, name=full, **form),
        partial(_needs, **form),
    )


#: Name, title, reduction, backward and argmax of the kernels.
_FORMS = (
    ("maxpool", "max pooling", "max", False, False),
    ("maxpool-argmax", "max pooling with mask", "max", False, True),
    ("maxpool-backward", "gradient of max pooling", "max", True, False),
    ("avgpool", "average pooling", "avg", False, False),
    ("avgpool-backward", "gradient of average pooling", "avg", True, False),
)

KERNELS = tuple(
    _kernel(
        name,
        title,
        {"reduction": reduction, "method": method, "backward": backward, "argmax": argmax},
    )
    for name, title, reduction, backward, argmax in _FORMS
    for method in METHODS
)

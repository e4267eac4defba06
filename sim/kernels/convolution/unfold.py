"""All patches of images: Im2Col loads from L1 to the unified buffer, or moves of the vector unit.

The vector unit moves the patches on chips whose vector cores have no Im2Col.
"""

import math

import numpy as np

from vitruvian.common.validate import ceil_div
from vitruvian.golden.scu import to_nc1hwc0
from vitruvian.sim.davinci import Chip, Core, Program, Unit, View, load_chip
from vitruvian.sim.kernels.convolution.areas import (
    Area,
    check_fits,
    choose_area,
    fractals_of,
    items_of,
)
from vitruvian.sim.kernels.convolution.shape import C0, ConvShape, ConvTile
from vitruvian.sim.kernels.convolution.strided import (
    PaddedTiles,
    items_seconds,
    padded_bytes,
    pieces_of,
)
from vitruvian.sim.kernels.kernel import is_split, vector_cores
from vitruvian.sim.kernels.pooling.blocks import BlockRows, rectangle
from vitruvian.sim.kernels.pooling.emit import Emitter
from vitruvian.sim.kernels.ring import Ring, uses_of

V, MTE1, MTE2, MTE3 = Unit.V, Unit.MTE1, Unit.MTE2, Unit.MTE3

_FRACTAL = 512
#: Most fractals of a load, and so of a tile.
_MOST = 255


def choose(shape: ConvShape, chip: Chip, cores: int) -> Area:
    """Return the tile of patches with the least estimated time.

    Raises
    ------
    ValueError
        If not even one patch fits the buffers.
    """
    p = shape.patches
    if is_split(chip):
        return _choose_strided(shape, chip, cores)
    route = chip.route("L1", "UB", "im2col")

    def check(area: Area) -> None:
        pixels = math.prod(shape.reach(area.rows, area.columns))
        check_fits({"L1": 2 * pixels * 32, "UB": 2 * fractals_of(shape, area) * _FRACTAL}, chip)

    def seconds(area: Area) -> float:
        nbytes = fractals_of(shape, area) * _FRACTAL
        load = float(route.init_s) + nbytes / float(route.rate.bytes_per_s)
        return (ceil_div(items_of(shape, area), cores) * shape.taps + 1) * load

    return choose_area(p.rows, p.columns, 16 * _MOST, check, seconds)


def _choose_strided(shape: ConvShape, chip: Chip, cores: int) -> Area:
    """Return the tile of patches for vector cores without Im2Col."""
    p, lane = shape.patches, chip.vector[""]
    load = float(chip.route("GM", "UB").rate.bytes_per_s)
    store = float(chip.route("UB", "GM").rate.bytes_per_s)

    def nbytes(area: Area) -> int:
        return min(area.rows, p.rows) * min(area.columns, p.columns) * 32

    def seconds(area: Area) -> float:
        work = pieces_of(shape, area) * float(lane.start_s) + nbytes(area) / store
        return items_seconds(
            items_of(shape, area), cores, padded_bytes(shape, area) / load, shape.taps * work
        )

    def check(area: Area) -> None:
        check_fits({"UB": 2 * padded_bytes(shape, area) + 2 * nbytes(area) + 64}, chip)

    return choose_area(p.rows, p.columns, p.rows * p.columns, check, seconds)


def instructions(shape: ConvShape, area: Area, chip: Chip) -> int:
    """Return an upper bound of the number of instructions."""
    each = pieces_of(shape, area) if is_split(chip) else 1
    return items_of(shape, area) * ((7 + each) * shape.taps + 16)


def build(
    shape: ConvShape,
    *,
    chip: Chip | str = "ascend910",
    cores: int | None = None,
    area: Area | None = None,
    data: np.ndarray | None = None,
) -> Program:
    """Build y = the patches of x.

    Parameters
    ----------
    shape : ConvShape
        ``filters`` and ``groups`` have no meaning here.
    chip : Chip or str
        A chip with a vector unit.
    cores : int, optional
        By default, all cores of the chip.
    area : Area, optional
        Patches of a tile, by default those of ``choose``.
    data : (N, C, H, W) ndarray of float16, optional

    Returns
    -------
    Program
        Its tensors are x (N, C1, H, W, 16) and y (N, C1, Kh·Kw, Oh, Ow, 16).
    """
    chip = load_chip(chip) if isinstance(chip, str) else chip
    s, p = shape, shape.patches
    program = Program(chip, f"unfold {s.images}×{s.channels}×{s.height}×{s.width}")
    some = vector_cores(program, cores)
    area = choose(s, chip, len(some)) if area is None else area
    c1 = ceil_div(s.channels, C0)
    x = None if data is None else np.ascontiguousarray(to_nc1hwc0(data))
    gx = program.tensor("x", (s.images, c1, s.height, s.width, C0), "fp16", x)
    gy = program.tensor("y", (s.images, c1, s.taps, p.rows, p.columns, C0), "fp16")
    tiles = s.tiles(area.rows, area.columns)
    items = [(n, c, t) for n in range(s.images) for c in range(c1) for t in tiles]
    used = min(len(some), len(items))
    for number in range(used):
        core = some[number]
        part = items[len(items) * number // used : len(items) * (number + 1) // used]
        if is_split(chip):
            _emit_strided(core, s, part, gx, gy)
            continue
        l1 = core.allocate("L1", (2, max(t.pixels for *_, t in part) * C0), "fp16", "x in L1")
        ub = core.allocate("UB", (2, max(t.fractals for *_, t in part) * 256), "fp16", "y in UB")
        # V has no part: MTE1 writes the patches to UB, and MTE3 takes them from there.
        image = Ring(core, MTE2, MTE1, plan=uses_of(range(len(part)), 2))
        patches = Ring(core, MTE1, MTE3, plan=uses_of(range(len(part) * s.taps), 2))
        for n, c, tile in part:
            with image.write() as slot:
                source = gx[n, c, slice(*tile.down), slice(*tile.across)]
                core.copy(l1[slot, : tile.pixels * C0].reshape(*source.shape), source)
            with image.read() as slot:
                for tap in range(s.taps):
                    with patches.write() as out:
                        core.im2col(
                            ub[out],
                            l1[slot, : tile.pixels * C0],
                            tile.patches,
                            repeat=tile.fractals,
                            position=tile.corner(0),
                            kernel_position=divmod(tap, s.kernel[1]),
                            mode=1,
                        )
                    with patches.read() as out:
                        target = gy[n, c, tap, slice(*tile.rows), slice(*tile.columns)]
                        core.copy(target, ub[out, : tile.count * C0].reshape(*target.shape))
    return program


def _emit_strided(
    core: Core, s: ConvShape, part: list[tuple[int, int, ConvTile]], x: View, y: View
) -> None:
    """Emit the tiles of a vector core: the vector unit moves the pixels of all patches."""
    emit, images = Emitter(core), PaddedTiles(core, s, x, part)
    most = max(tile.count for *_, tile in part)
    ub = core.allocate("UB", (2, most, C0), "fp16", "y in UB")
    patches = Ring(core, V, MTE3, plan=uses_of(range(len(part) * s.taps), 2))
    for number, (n, c, tile) in enumerate(part):
        images.begin(number)
        rows, columns = images.windows(number)
        for tap in range(s.taps):
            with patches.write() as out:
                pixels = images.at(number, tap)
                # OR of a value with itself copies its bits, also those of a NaN.
                views = {"dst": (ub[out], BlockRows(columns)), "src0": pixels, "src1": pixels}
                rectangle(emit, "vor", views, rows, columns)
            with patches.read() as out:
                target = y[n, c, tap, slice(*tile.rows), slice(*tile.columns)]
                core.copy(target, ub[out, : tile.count].reshape(*target.shape))

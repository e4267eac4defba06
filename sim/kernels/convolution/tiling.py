"""Tilings of a convolution: what fits the buffers, and an estimate of what is fast."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vitruvian.common.validate import ceil_div
from vitruvian.sim.davinci import Chip
from vitruvian.sim.davinci.chip.parts import Route
from vitruvian.sim.kernels.convolution.shape import ConvShape, ConvTile
from vitruvian.sim.kernels.kernel import is_split, matrix_kind

#: Bytes of a fractal of FP16, and of one of sums in FP32.
_FRACTAL = 512
_SUMS = 1024
#: Bytes of the 16 channels of a pixel.
_PIXEL = 32
#: Most repeats of an Im2Col load.
_MOST_REPEAT = 255
#: Most slots of weights in L1: the eight registers less the two of the images.
_WEIGHT_SLOTS = 6

#: An output tile: image, group, tile of pixels, tile of filters.
Item = tuple[int, int, int, int]


@dataclass(frozen=True)
class ConvTiling:
    """Sizes of the tiles.

    Attributes
    ----------
    rows, columns : int
        Output pixels of a tile.
    filters : int
        Groups of 16 output channels of a tile.
    channels : int
        Groups of 16 input channels in a slot of L1.
    depth : int
        Fractals along K in a slot of L0A and L0B.
    inner : {"filters", "pixels"}
        What changes faster from tile to tile: then the images, or the weights, are loaded once.
    """

    rows: int
    columns: int
    filters: int
    channels: int
    depth: int
    inner: str = "filters"


class ConvPlan:
    """A tiling applied to a shape, a chip and a number of cores.

    Raises
    ------
    ValueError
        If a tile does not fit its buffer, or the shape cannot be cut in this way.
    """

    def __init__(self, shape: ConvShape, tiling: ConvTiling, chip: Chip, cores: int) -> None:
        self.shape, self.tiling, self.chip = shape, tiling, chip
        p = shape.patches
        self.filter_tiles = ceil_div(shape.n1, tiling.filters)
        self.pixel_tiles = ceil_div(p.rows, tiling.rows) * ceil_div(p.columns, tiling.columns)
        self.count = shape.images * shape.groups * self.pixel_tiles * self.filter_tiles
        self.cores = min(cores, self.count)
        # The largest tile: those at the lower and right edge are smaller.
        self.pixels = min(tiling.rows, p.rows) * min(tiling.columns, p.columns)
        self.fractals = ceil_div(self.pixels, 16)
        down, across = shape.reach(tiling.rows, tiling.columns)
        self.image_bytes = down * across * tiling.channels * _PIXEL
        self.weight_bytes = tiling.channels * shape.taps * tiling.filters * _FRACTAL
        # Weights stay if L1 has a slot for each tile of a group and each slot a register of its
        # own.
        kinds = ceil_div(shape.c1, tiling.channels) * self.filter_tiles
        room = matrix_kind(chip).buffers["L1"].nbytes - 2 * self.image_bytes
        fits = kinds <= min(room // self.weight_bytes, _WEIGHT_SLOTS)
        # If they fit, there is a slot for all weights of a group, so that each is loaded once.
        self.weight_slots = kinds if fits else 2
        self._check()

    @cached_property
    def tiles(self) -> list[ConvTile]:
        """The tiles of pixels of an image."""
        return self.shape.tiles(self.tiling.rows, self.tiling.columns)

    @cached_property
    def items(self) -> list[Item]:
        """All output tiles in the order in which they are computed."""
        s, places, columns = self.shape, range(len(self.tiles)), range(self.filter_tiles)
        pairs = [(n, g) for n in range(s.images) for g in range(s.groups)]
        # The inner index changes while the other operand stays in L1.
        if self.tiling.inner == "filters":
            return [(n, g, p, j) for n, g in pairs for p in places for j in columns]
        images, groups = range(s.images), range(s.groups)
        return [(n, g, p, j) for g in groups for j in columns for n in images for p in places]

    def part(self, core: int) -> list[Item]:
        """Return the output tiles of a core; the numbers of two cores differ by at most one."""
        count = len(self.items)
        return self.items[count * core // self.cores : count * (core + 1) // self.cores]

    @property
    def chunks(self) -> list[range]:
        """The groups of input channels of each slot of L1."""
        c1, step = self.shape.c1, self.tiling.channels
        return [range(c, min(c + step, c1)) for c in range(0, c1, step)]

    def filters(self, tile: int) -> range:
        """Return the groups of 16 output channels of a tile."""
        step = self.tiling.filters
        return range(tile * step, min((tile + 1) * step, self.shape.n1))

    def steps(self, channels: int) -> list[range]:
        """Return the fractals along K of each product, for some groups of input channels."""
        blocks, step = channels * self.shape.taps, self.tiling.depth
        return [range(k, min(k + step, blocks)) for k in range(0, blocks, step)]

    def _check(self) -> None:
        t, buffers = self.tiling, matrix_kind(self.chip).buffers
        m = self.fractals
        needs = {
            "L1": 2 * self.image_bytes + self.weight_slots * self.weight_bytes,
            "L0A": 2 * m * t.depth * _FRACTAL,
            "L0B": 2 * t.depth * t.filters * _FRACTAL,
            "L0C": 2 * m * t.filters * _SUMS,
        }
        if "UB" in buffers:
            # The results in FP16, and a bias in FP32 for each filter of a group.
            needs["UB"] = 2 * self.pixels * t.filters * _PIXEL + 64 * self.shape.n1
        else:
            # A Cube core has all biases in L1, and those of two tiles in its bias table.
            needs["L1"] += 64 * self.shape.groups * self.shape.n1
            needs["BT"] = 2 * 64 * t.filters
        for name, need in needs.items():
            if need > buffers[name].nbytes:
                have = buffers[name].nbytes
                raise ValueError(f"tiles of a convolution must fit {have} bytes of {name}: {need}")
        if max(t.depth, m) > _MOST_REPEAT:
            raise ValueError(f"fractals of a load must be at most {_MOST_REPEAT}, not {t.depth}")

    @property
    def instructions(self) -> int:
        """An upper bound of the number of instructions."""
        m, total = self.fractals, 0
        for chunk in self.chunks:
            loads = 8 + 2 * len(chunk)
            total += loads + sum(11 + min(m, len(k)) for k in self.steps(len(chunk)))
        return self.count * (total + 16 + 2 * self.tiling.filters) + 16 * self.cores

    def seconds(self) -> float:
        """Estimate the time of the busiest core.

        It is the largest of its units' times, and the time until the first product starts. Every
        transfer from and to global memory has an equal share of the bus.
        """
        s, t = self.shape, self.tiling
        items = ceil_div(self.count, self.cores)
        inner = self.filter_tiles if t.inner == "filters" else self.pixel_tiles * s.images
        outer = ceil_div(items, inner)
        pixels, filters = (outer, inner) if t.inner == "filters" else (inner, outer)
        pixels, filters = min(pixels, items), min(filters, items)
        chunks = ceil_div(s.c1, t.channels)
        # With several chunks of channels, an image is taken to be loaded again for every tile.
        images = pixels if chunks == 1 else items
        weights = filters if chunks * filters <= self.weight_slots else items
        if t.inner == "pixels":
            images, weights = items, filters if chunks <= self.weight_slots else items
        load = self._seconds("GM", "L1")
        mte2 = images * chunks * load(self.image_bytes) + weights * chunks * load(self.weight_bytes)
        blocks = s.c1 * s.taps
        steps = ceil_div(blocks, t.depth)
        a, b = self._seconds("L1", "L0A", "im2col"), self._seconds("L1", "L0B", "load")
        m = self.fractals
        # The fewer of: a load for each fractal along K, or for each of the rows.
        along = min(m, t.depth)
        left = along * a(_FRACTAL * m * t.depth // along)
        mte1 = items * steps * (left + b(_FRACTAL * t.depth * t.filters))
        cube = self.chip.cube
        assert cube is not None
        per_step = float(cube.init_s + cube.start_s)
        work = items * (steps * per_step + blocks * m * t.filters * float(cube.step_s))
        out, stored = 0.0, self.pixels * t.filters * _PIXEL
        if is_split(self.chip):
            store = self._seconds("L0C", "GM", "matrix_out")(stored)
        else:
            out = self._seconds("L0C", "UB", "matrix_out")(_SUMS * m * t.filters)
            store = self._seconds("UB", "GM")(stored)
        v, mte3 = items * out, items * store
        # What nothing overlaps with: the first operands, and the way of the last tile out.
        begin = load(self.image_bytes) + load(self.weight_bytes)
        end = out + mte3 / items
        return max(mte2, mte1, work, v, mte3) + begin + end

    def _seconds(self, source: str, target: str, operation: str = "copy"):
        """Return a function of the bytes of a transfer that estimates its seconds."""
        route = self.chip.route(source, target, operation)
        rate = float(route.rate.bytes_per_s)
        if route.bus is not None:
            # All cores use the bus at the same time.
            rate = min(rate, float(self.chip.buses[route.bus].total(self.cores)) / self.cores)
        init = float(route.init_s)
        if not route.rate.points:
            return lambda nbytes: init + nbytes / rate
        sizes, times = _curve(route)
        issue = float(route.issue_s) if route.issue_s is not None else None

        def seconds(nbytes: float) -> float:
            alone, data = init + np.interp(nbytes, sizes, times), nbytes / rate
            # Loads overlap with half of each other's latency, since buffers have two slots.
            return max(alone if issue is None else alone / 2, init + (issue or 0) + data)

        return seconds


#: The measured times of routes as floats, by identity: a search asks for them many times.
_CURVES: dict[int, tuple[Route, list[float], list[float]]] = {}


def _curve(route: Route) -> tuple[list[float], list[float]]:
    """Return the bytes and seconds of the measured transfers of a route."""
    known = _CURVES.get(id(route))
    if known is None:
        if len(_CURVES) > 256:
            _CURVES.clear()
        size, time = (float(x) for x in route.rate.points[-1])
        far = 1e9  # bytes; beyond the last size measured, time is linear, too
        points = [*route.rate.points, (size + far, time + far / float(route.rate.bytes_per_s))]
        sizes, times = ([float(x) for x in column] for column in zip(*points, strict=True))
        # The route is kept, so that its identity stays its own.
        known = _CURVES[id(route)] = route, sizes, times
    return known[1:]


def cuts(count: int, limit: int) -> list[int]:
    """Return the sizes of equal parts of ``count``, each at most ``limit``; none if that is 0."""
    parts: list[int] = []
    number = ceil_div(count, limit) if limit else count + 1
    while number <= count:
        size = ceil_div(count, number)
        parts.append(size)
        # The next number of parts that makes them smaller.
        number = ceil_div(count, size - 1) if size > 1 else count + 1
    return parts


def choose(shape: ConvShape, chip: Chip, cores: int) -> ConvTiling:
    """Return the tiling with the least estimated time among those that fit.

    Raises
    ------
    ValueError
        If no tiling fits the buffers.
    """
    p, buffers = shape.patches, matrix_kind(chip).buffers
    # Fractals of one of two slots.
    l0a = buffers["L0A"].nbytes // (2 * _FRACTAL)
    l0b = buffers["L0B"].nbytes // (2 * _FRACTAL)
    l0c = buffers["L0C"].nbytes // (2 * _SUMS)
    # L0A holds no more rows of fractals, at a depth of 1.
    pixels = min(l0a, _MOST_REPEAT) * 16
    whole = [(rows, p.columns) for rows in cuts(p.rows, pixels // p.columns)]
    parts = [(1, columns) for columns in cuts(p.columns, pixels)]
    best: tuple[float, ConvTiling] | None = None
    failure: ValueError | None = None
    # Rows are cut only if not even one of them fits.
    for areas in (whole, parts):
        for rows, columns in areas:
            m = -(-rows * columns // 16)
            for filters in cuts(shape.n1, min(l0b, l0c // m)):
                # The depth has no loop: the largest that fits makes the fewest products.
                for channels in cuts(shape.c1, shape.c1):
                    depth = min(l0a // m, l0b // filters, channels * shape.taps, _MOST_REPEAT)
                    for inner in ("filters", "pixels"):
                        tiling = ConvTiling(rows, columns, filters, channels, depth, inner)
                        try:
                            time = ConvPlan(shape, tiling, chip, cores).seconds()
                        except ValueError as error:
                            failure = error
                            continue
                        if best is None or time < best[0]:
                            best = time, tiling
        if best is not None:
            return best[1]
    raise failure or ValueError(f"columns of a convolution must fit L0A, not {p.columns}")

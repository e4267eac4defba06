"""The choice of a tile of pixels for kernels that process one group of 16 channels at a time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from vitruvian.common.validate import ceil_div
from vitruvian.sim.davinci import Chip
from vitruvian.sim.kernels.convolution.shape import ConvShape
from vitruvian.sim.kernels.convolution.tiling import cuts
from vitruvian.sim.kernels.kernel import vector_kind


@dataclass(frozen=True)
class Area:
    """The pixels of a tile, rows × columns."""

    rows: int
    columns: int


def fractals_of(shape: ConvShape, area: Area) -> int:
    """Return the fractals of the largest tile at one position of the kernel."""
    p = shape.patches
    return -(-min(area.rows, p.rows) * min(area.columns, p.columns) // 16)


def items_of(shape: ConvShape, area: Area) -> int:
    """Return the number of tiles of all images and groups of 16 channels."""
    p = shape.patches
    tiles = ceil_div(p.rows, area.rows) * ceil_div(p.columns, area.columns)
    return shape.images * ceil_div(shape.channels, 16) * tiles


def check_fits(needs: Mapping[str, int], chip: Chip) -> None:
    """Raise ValueError if buffers of a chip are smaller than the bytes that a tile needs."""
    buffers = vector_kind(chip).buffers
    for name, need in needs.items():
        if need > buffers[name].nbytes:
            have = buffers[name].nbytes
            raise ValueError(f"tiles of a convolution must fit {have} bytes of {name}, not {need}")


def choose_area(
    rows: int,
    columns: int,
    limit: int,
    check: Callable[[Area], object],
    seconds: Callable[[Area], float],
) -> Area:
    """Return the area with the least estimated time; rows are cut only if not one of them fits.

    Parameters
    ----------
    rows, columns : int
        Pixels to cut.
    limit : int
        Most pixels of a tile.
    check : callable
        Raises ValueError if an area is not possible.
    seconds : callable
        Estimates the time.

    Raises
    ------
    ValueError
        If not even one pixel fits.
    """
    best: tuple[float, Area] | None = None
    failure: ValueError | None = None
    whole = [(count, columns) for count in cuts(rows, limit // columns)]
    parts = [(1, count) for count in cuts(columns, limit)]
    for areas in (whole, parts):
        for area in (Area(*sizes) for sizes in areas):
            try:
                check(area)
            except ValueError as error:
                failure = error
                continue
            time = seconds(area)
            if best is None or time < best[0]:
                best = time, area
        if best is not None:
            return best[1]
    raise failure or ValueError(f"columns must be 1 or more, not {columns}")

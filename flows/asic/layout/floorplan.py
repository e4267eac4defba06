"""The floor plan: rows of sites, tracks of every layer, and places for ports at the border."""

from dataclasses import dataclass
from itertools import pairwise
from math import ceil, sqrt

from vitruvian.common.errors import UserError
from vitruvian.flows.asic.layout.design import LayoutDesign
from vitruvian.flows.asic.layout.lef import CutLayer, LefError, RoutingLayer, Technology
from vitruvian.flows.asic.layout.vias import (
    LOWEST,
    across,
    least_nodes,
    usual_via,
    wire_layers,
)

#: Sites at both sides of the rows, and tracks below and above them.
_MARGIN_SITES, _MARGIN_TRACKS = 5, 5
#: Most microns between two taps of a row: every place is within 60 µm of one.
_TAPS_UM = 100.0


@dataclass(frozen=True)
class Floorplan:
    """The places of a block; lengths are in database units.

    Attributes
    ----------
    rows, sites : int
        Number of rows, and of sites of each row.
    left, bottom : int
        Corner of the first row.
    width, height : int
        Size of the block.
    columns, lines : int
        Number of vertical and of horizontal tracks.
    step : list of (int, int)
        Every layer of wires uses each n-th column and each n-th line of the grid.
    tap : int
        Sites of a tap, which ties the wells of a row to its rails; 0 if all cells do so.
    taps : tuple of int
        First site of each tap of a row: at both ends, and between them in long rows. Without taps,
        the first site of the row and the site behind it.
    """

    technology: Technology
    rows: int
    sites: int
    left: int
    bottom: int
    width: int
    height: int
    columns: int
    lines: int
    step: list[tuple[int, int]]
    tap: int
    taps: tuple[int, ...]

    @property
    def segments(self) -> list[tuple[int, int]]:
        """The sites between the taps of a row: first site, and the site behind the last one."""
        return [(a + self.tap, b) for a, b in pairwise(self.taps)]

    @property
    def least_nodes(self) -> list[int]:
        """For each layer of wires, on how many nodes a wire must lie to have its least area."""
        site, pitch = self.technology.site[0], self.technology.metals[LOWEST + 1].pitch
        return [least_nodes(m, site if m.horizontal else pitch) for m in self.layers]

    @property
    def bumps(self) -> list[int]:
        """For each layer of wires, 1 if the vias above it leave slits between them on a line.

        This is so if they are wider than the horizontal wire and too near on neighbouring columns.
        """
        found = []
        for number in range(len(self.layers) - 1):
            via = usual_via(self.technology, LOWEST + number)
            metal = self.layers[number + (number + 1) % 2]  # the horizontal one of the two
            length = max(r[2] - r[0] for r in via.shapes[metal.name])
            slit = self.technology.site[0] - length < metal.spacing
            found.append(int(slit and across(via, metal) > metal.width))
        return [*found, 0]

    @property
    def layers(self) -> list[RoutingLayer]:
        """The layers of wires."""
        return self.technology.metals[LOWEST : LOWEST + len(self.step)]

    def x(self, column: int) -> int:
        """Return the position of a vertical track."""
        return column * self.technology.site[0] + self.technology.site[0] // 2

    def y(self, line: int) -> int:
        """Return the position of a horizontal track."""
        pitch = self.technology.metals[LOWEST + 1].pitch
        return line * pitch + pitch // 2


def plan(
    design: LayoutDesign,
    technology: Technology,
    utilisation: float,
    block_um: tuple[float, float] | None = None,
) -> Floorplan:
    """Return a square floor plan whose rows are filled by cells to a share of ``utilisation``.

    Parameters
    ----------
    block_um : (float, float), optional
        Width and height of the block, instead of the square.

    Raises
    ------
    UserError
        If the tracks of the library do not fit its sites, or if they do not fit the block.
    """
    site, height = technology.site
    step = track_steps(technology)
    pitch = technology.metals[LOWEST + 1].pitch
    if height % pitch or technology.metals[LOWEST].pitch != site:
        raise UserError("sites of the LEF must be as wide as the pitch of metal 2")
    right, up = offsets(technology)
    tap = technology.tap.width // site if technology.tap else 0
    if block_um is None:
        rows, inner = _square(design, technology, utilisation)
        gaps = _gaps(inner, technology) if tap else 1
        sites = inner + (gaps + 1) * tap
        columns = sites + 2 * _MARGIN_SITES
        lines = rows * (height // pitch) + 2 * _MARGIN_TRACKS
    else:
        columns, lines = _grid(block_um, technology)
        rows = (lines - 2 * _MARGIN_TRACKS) // (height // pitch)
        sites = columns - 2 * _MARGIN_SITES
        gaps = _gaps(sites, technology) if tap else 1
        if rows < 2 or sites < (gaps + 1) * tap + 8:
            raise UserError("block must have room for two rows and their margins")
    taps = tuple(round(n * (sites - tap) / gaps) for n in range(gaps + 1))
    return Floorplan(
        technology=technology, rows=rows, sites=sites,
        left=_MARGIN_SITES * site + site // 2 - right,
        bottom=_MARGIN_TRACKS * pitch + pitch // 2 - up, width=columns * site, height=lines * pitch,
        columns=columns, lines=lines, step=step, tap=tap, taps=taps,
    )  # fmt: skip


def _square(design: LayoutDesign, technology: Technology, utilisation: float) -> tuple[int, int]:
    """Return the number of rows of a square block, and that of the sites beside taps."""
    site, height = technology.site
    pitch = technology.metals[LOWEST + 1].pitch
    used = sum(macro.width // site for macro in design.macros)
    rows = max(2, round(sqrt(used / utilisation * site / height)))
    widest = max((macro.width // site for macro in design.macros), default=1)
    inner = max(ceil(used / utilisation / rows), 2 * widest, 8)
    while _border(rows, inner, height // pitch) < 3 * len(design.ports):
        # Few cells with many ports: the border decides, so some rows stay emptier.
        rows, inner = rows + 1, inner + round(height / site)
    return rows, inner


def _gaps(sites: int, technology: Technology) -> int:
    """Return the number of parts of a row between its taps."""
    return ceil(sites * technology.site[0] / (_TAPS_UM * technology.per_micron))


def _grid(block_um: tuple[float, float], technology: Technology) -> tuple[int, int]:
    """Return the number of columns and lines of a block."""
    found = []
    steps = (technology.site[0], technology.metals[LOWEST + 1].pitch)
    for length, step, what in zip(block_um, steps, ("width", "height"), strict=True):
        number = round(length * technology.per_micron) / step
        if number != round(number):
            least = technology.microns(step)
            raise UserError(
                f"{what} of the block must be a multiple of {least:g} µm, not {length:g}"
            )
        found.append(round(number))
    return found[0], found[1]


def offsets(technology: Technology) -> tuple[int, int]:
    """Return the distance of the first column and the first line from the corner of a cell.

    Raises
    ------
    LefError
        If the lines of a cell are not those of the same cell upside down.
    """
    vertical, horizontal = technology.metals[LOWEST : LOWEST + 2]
    pitch = horizontal.pitch
    right, up = vertical.offset[0] % vertical.pitch, horizontal.offset[1] % pitch
    if 2 * up % pitch:
        raise LefError(f"LEF OFFSET of {horizontal.name} must be 0 or half of its PITCH")
    return right, up


def _border(rows: int, sites: int, lines: int) -> int:
    """Return the number of tracks that end at the border, without the margins."""
    return 2 * (sites + rows * lines)


def track_steps(technology: Technology) -> list[tuple[int, int]]:
    """Return the step of columns and lines that the spacing of wires and cuts asks of each layer.

    The router keeps wires of different nets two steps of the grid apart along a track. With the
    steps that this function returns, no other rule about spacing is left between them.

    Raises
    ------
    LefError
        If the layers are too few, do not take turns in direction, or need more than two steps.
    """
    metals = wire_layers(technology)
    vias = [usual_via(technology, LOWEST + n) for n in range(len(metals) - 1)]
    grid = (technology.site[0], metals[1].pitch)
    steps: list[tuple[int, int]] = []
    for number, metal in enumerate(metals):
        pitch = grid[1] if metal.horizontal else grid[0]
        cuts = _cuts_at(technology, number + LOWEST)
        widest = max(
            [metal.width] + [across(v, metal) for v in vias[max(0, number - 1) : number + 1]]
        )
        step = 1
        while not _apart(metal, widest, cuts, pitch, step):
            step += 1
            if step > 8:
                raise LefError(f"tracks of {metal.name} must not be more than 8 pitches apart")
        steps.append((1, step) if metal.horizontal else (step, 1))
    return steps


def _cuts_at(technology: Technology, metal: int) -> list[CutLayer]:
    """Return the layers of vias below and above a metal."""
    return [cut for n, cut in enumerate(technology.cuts) if n in (metal - 1, metal)]


def _apart(metal: RoutingLayer, widest: int, cuts: list[CutLayer], pitch: int, step: int) -> bool:
    """Return whether wires and vias on tracks that are ``step`` pitches apart keep all spacing."""
    if step * pitch - widest < metal.spacing:
        return False
    # Cuts on neighbours of the grid never meet, because their wires on the other layer would.
    near = step if step > 1 else 2
    return all(near * pitch - cut.width >= cut.spacing for cut in cuts)

"""Placement for layouts: the field of the cells, the pull of nets, and the room for wires."""

import numpy as np
import pytest

pytest.importorskip("scipy", reason="placement needs the extra layout")

from tests.unit.flows.asic.layout_library import CELLS, TECHNOLOGY, TIES
from tests.unit.flows.asic.test_layout import netlist
from vitruvian.common.extras import need
from vitruvian.flows.asic.layout import analytic, design, floorplan, lef, place, room
from vitruvian.flows.asic.layout.build import lay_out
from vitruvian.flows.asic.layout.route import Router
from vitruvian.flows.asic.layout.wires import Wires, wires


@pytest.fixture(scope="module")
def technology() -> lef.Technology:
    read = lef.read(TECHNOLOGY, CELLS)
    read.ties = TIES
    return read


def chain(cells: int, ports: int = 0) -> Wires:
    """Return nets of two pins that join neighbours, the last cell with the first port."""
    members = [n for k in range(cells - 1 + ports) for n in (k, k + 1)]
    first = np.arange(0, len(members) + 1, 2)
    return Wires(first, np.array(members), np.zeros(len(members)), np.full(cells, 3))


def test_the_field_pushes_cells_apart_and_even_charge_has_none():
    field = analytic.ChargeField((16.0, 16.0), np.full((2, 2), 2.0), 16)
    at = np.array([[7.0, 8.0], [9.0, 8.0]])
    slopes, density = field.slopes(at, 2)
    # Cells move against the slope: the left one to the left.
    assert slopes[0, 0] > 0 > slopes[1, 0]
    assert slopes[0, 0] == pytest.approx(-slopes[1, 0])
    assert density.sum() == pytest.approx(2 * 4)
    even = analytic.ChargeField((16.0, 16.0), np.full((16, 2), 4.0), 16)
    middles = np.stack(np.meshgrid(*2 * [np.arange(2.0, 16, 4)]), -1).reshape(-1, 2)
    slopes, density = even.slopes(middles, 16)
    assert np.allclose(slopes, 0, atol=1e-9) and np.allclose(density, 1)


def energy(field: analytic.ChargeField, at: np.ndarray, length: float) -> float:
    """Return the energy of all charges in a square: half the potential at each of them."""
    _, density = field.slopes(at, len(at))
    fft = need("scipy.fft", "layout")
    waves = np.pi * np.arange(field.bins) / length
    square = waves[:, None] ** 2 + waves[None] ** 2
    square[0, 0] = np.inf
    potential = fft.idctn(fft.dctn(density) / square)
    return 0.5 * float((density * potential).sum() * field.bin.prod())


def test_the_slope_is_that_of_the_energy():
    field = analytic.ChargeField((64.0, 64.0), np.array([[8.0, 8.0], [6.0, 4.0]]), 64)
    at = np.array([[20.0, 30.0], [29.0, 37.0]])
    slopes, _ = field.slopes(at, 2)
    for cell in (0, 1):
        for axis in (0, 1):
            step = np.zeros((2, 2))
            step[cell, axis] = 0.5
            ends = [energy(field, at + sign * step, 64.0) for sign in (1, -1)]
            # The field is exact between the middles of bins, but averaged over those of a cell.
            assert slopes[cell, axis] == pytest.approx(ends[0] - ends[1], rel=0.08)


def smoothed(net: Wires, at: np.ndarray, smooth: float) -> float:
    """Return the smoothed length of all nets: the weighted mean of each end, written plainly."""
    total = 0.0
    for n in range(len(net.first) - 1):
        x = at[net.first[n] : net.first[n + 1]]
        high, low = np.exp((x - x.max()) / smooth), np.exp((x.min() - x) / smooth)
        total += (x * high).sum() / high.sum() - (x * low).sum() / low.sum()
    return total


def test_pulls_are_the_slope_of_the_smoothed_length():
    rng = np.random.default_rng(2)
    first = np.array([0, 2, 5, 9])
    net = Wires(first, np.arange(9), np.zeros(9), np.ones(9, np.int64))
    at = rng.normal(0, 10, 9)
    found = analytic.pulls(net, at, 3.0)
    for pin in range(9):
        step = np.zeros(9)
        step[pin] = 1e-5
        slope = (smoothed(net, at + step, 3.0) - smoothed(net, at - step, 3.0)) / 2e-5
        assert found[pin] == pytest.approx(slope, abs=1e-6)
    # With little smoothing, the ends of a net pull with one, and pins between them do not.
    sharp = analytic.pulls(net, at, 1e-3)
    assert sorted(np.round(sharp[2:5], 9).tolist()) == [-1, 0, 1]


def test_cells_in_a_chain_spread_and_stay_in_order():
    ports = np.array([[400.0, 50.0]])
    net = chain(20, 1)
    placer = analytic.AnalyticPlacer(net, ports, (400.0, 100.0), np.full((20, 2), [30.0, 25.0]))
    before = placer.length()
    placer.run(0.1, 400)
    assert placer.overflow < 0.1 and placer.steps < 400
    low, high = placer.middles - [15, 12.5], placer.middles + [15, 12.5]
    assert (low >= -1e-6).all() and (high <= np.array([400, 100]) + 1e-6).all()
    rng = np.random.default_rng(0)
    at_random = rng.random((20, 2)) * [400, 100]
    steps = np.abs(np.diff(np.concatenate([at_random, ports]), axis=0)).sum()
    assert 0 < before < placer.length() < 0.5 * steps


def test_nets_without_ports_and_with_room():
    net = chain(4, 1)
    inner = net.inner()
    assert inner.first.tolist() == [0, 2, 4, 6] and inner.cell.tolist() == [0, 1, 1, 2, 2, 3]
    padded = net.padded(np.array([0, 1, 2, 3]), 380)
    assert padded.widths.tolist() == [3, 4, 5, 6]
    # The cell lies at site sites // 2 of its place: half a site left of the middle if odd.
    assert padded.offset.tolist() == [0, -190, -190, 0, 0, -190, -190, 0]


def test_demand_is_the_length_of_the_wires(technology: lef.Technology):
    net = chain(3)
    x, y = np.array([20e3, 60e3, 60e3, 60e3]), np.array([20e3, 40e3, 40e3, 70e3])
    box = np.array([100e3, 100e3])
    found = room.demand(net, (x, y), box, 20, technology.per_micron)
    pins = 4 * 0.5 * technology.per_micron
    assert (found * (box / 20).prod()).sum() == pytest.approx(60e3 + 30e3 + pins)
    assert found[8, 6] > 0 and found[2, 16] == pytest.approx(0, abs=1e-9)
    assert room.demand(Wires(np.zeros(1, int), x, x, x), (x, y), box, 4, 2000).sum() == 0


def test_cells_with_many_wires_get_the_room_that_is_left():
    areas, wide = np.full(4, 10.0), np.ones(4)
    needs = np.array([0.5, 1.0, 1.5, 9.0])
    assert room.widths(areas, wide, needs, 1000.0, 1.0).tolist() == [1, 1, 1.5, 2.5]
    tight = room.widths(areas, wide, needs, 50.0, 1.0)
    assert (tight * areas).sum() == pytest.approx(0.95 * 50) and tight[0] == tight[1] == 1
    assert room.widths(areas, wide, needs, 40.0, 1.0).tolist() == [1, 1, 1, 1]


def test_free_sites_are_those_of_the_wider_cells():
    rng = np.random.default_rng(3)
    wide, widths = 1 + rng.random(200), rng.integers(2, 20, 200)
    middles = rng.random((200, 2)) * [1e5, 3e4]
    sites = room.padding(wide, widths, middles, 2800)
    assert sites.min() >= 0
    assert abs(sites.sum() - ((wide - 1) * widths).sum()) <= 1
    assert room.padding(np.ones(200), widths, middles, 2800).sum() == 0


def test_ports_take_slots_of_their_own(technology: lef.Technology):
    built = design.build(netlist(60, 4), technology)
    floor = floorplan.plan(built, technology, 0.7)
    found = place.place(built, floor)
    again = place.place(built, floor)
    assert (found.middles == again.middles).all() and (found.ports == again.ports).all()
    assert len({tuple(port) for port in found.ports.tolist()}) == len(built.ports)
    net = wires(built, technology.site[0])
    half = net.widths * technology.site[0] / 2
    assert (found.middles[:, 0] - half >= floor.left).all()
    assert (found.middles[:, 0] + half <= floor.left + floor.sites * technology.site[0]).all()


def test_a_net_whose_ends_are_one_line_apart_has_a_path(technology: lef.Technology):
    """Two cuts on neighbouring lines of a column are too close, so that the net needs a detour."""
    floor = floorplan.plan(design.build(netlist(5, 1), technology), technology, 0.5)
    node = Router(floor, []).node
    terminals = [[np.array([node(1, 4, 10)]), np.array([node(1, 24, 11)])]]
    routing = Router(floor, terminals).run()
    assert routing.conflicts == [0] and not routing.failed
    (net,) = routing.nets
    assert net is not None
    places = Router(floor, []).places(net.edges)
    cuts = {
        (min(a[0], b[0]), a[1], a[2]) for a, b in places.tolist() if a[0] != b[0]
    }  # layer, column, line
    assert cuts and not any((layer, column, line + 1) in cuts for layer, column, line in cuts)


@pytest.mark.long
def test_two_thousand_gates_have_no_conflicts(technology: lef.Technology):
    made = lay_out(netlist(2000, 1), technology, utilisation=0.75)
    assert made.conflicts[-1] == 0 and not made.failed
    assert made.swapped_um < 4.0 * 2000

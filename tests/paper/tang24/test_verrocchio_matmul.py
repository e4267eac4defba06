"""Tang 2024, §2.4: sample kernels and matrix products on the simulated Ascend 310.

The thesis' own numbers here are shares of the peak over shapes whose size it does not give, so none
can be equal; docs/results/verrocchio.md has ours beside them. What it says of how they behave is
tested.
"""

import re
from dataclasses import replace

import pytest

from vitruvian.flows.pages import site
from vitruvian.sim.davinci import load_chip, simulate
from vitruvian.sim.kernels import KERNELS
from vitruvian.sim.kernels.search import TilingSearch, guided

CHIP = load_chip("ascend310")
PEAK = float(CHIP.peak_operations())


def best(width: int, ratio: int, **options):
    problem = TilingSearch(width, width, ratio * width, **options)
    return problem, guided(problem).best[0]


@pytest.fixture(scope="module")
def shares():
    shares = {}
    for width, ratio in ((128, 2), (128, 6), (256, 2), (256, 6), (512, 4)):
        seconds = best(width, ratio)[1].seconds
        shares[width, ratio] = 2 * width**3 * ratio / seconds / PEAK
    return shares


def test_the_share_of_the_peak_grows_with_the_scale(shares):
    """§2.4.2, Fig. 2.15; published: mean 23.64 %, at most 38.78 %. Ours is above: a miss."""
    assert shares[128, 2] < shares[128, 6] < shares[256, 2] < shares[256, 6]
    assert shares[256, 6] < shares[512, 4] < 1
    assert min(shares.values()) < 0.2364 < 0.3878 < max(shares.values())


def test_the_table_has_these_shares(shares, root):
    text = site.text_of(root / "docs" / "results" / "verrocchio.md")
    for (width, ratio), share in shares.items():
        (row,) = re.findall(rf"\| {width}×{width}×{ratio * width} \|.*", text)
        assert f"| {share:.2%} |" in row


@pytest.mark.parametrize("width", [128, 256])
def test_double_buffering_helps(width):
    """§2.4.2, Fig. 2.12: with two control flows, loads run beside products."""
    problem, both = best(width, 2)
    single = guided(replace(problem, b_nums=(1,))).best[0]
    assert both.tiling.b_num > 1 and 1.05 < single.atto / both.atto < 2


def test_more_control_flows_than_two_gain_little():
    """§2.4.2: more control flows make the tiles smaller."""
    problem, both = best(256, 2)
    eight = guided(replace(problem, b_nums=(8,))).best[0]
    assert eight.atto > both.atto


def total(name: str, size: tuple[int, ...], cores: int) -> float:
    program = KERNELS[name].build(size, chip=CHIP, cores=cores).program
    return simulate(program, cube=None, checks=False).total_s


@pytest.mark.parametrize(("name", "size"), [("mte1A", (64,)), ("mte1B", (64,)), ("cube", (64,))])
def test_units_of_a_core_are_not_slowed_down_by_the_other(name, size):
    """§2.3.3, first category: only transfers to and from the core take longer on two cores."""
    one = total(name, size, 1) - total(name, (1,), 1)
    two = total(name, size, 2) - total(name, (1,), 2)
    assert one == pytest.approx(two, rel=1e-9)


@pytest.mark.parametrize("name", ["mte2", "mte3"])
def test_transfers_of_two_cores_share_the_bus(name):
    """§2.3.3, second category: n simultaneous transfers take n / (C_n / C_1) times as long."""
    one = total(name, (64, 16), 1) - total(name, (32, 16), 1)
    two = total(name, (64, 16), 2) - total(name, (32, 16), 2)
    bus = CHIP.buses["interconnect"]
    start = 32 * float(CHIP.routes["GM->L1"].init_s)
    assert (two - start) / (one - start) == pytest.approx(2 * bus.total(1) / bus.total(2), rel=1e-9)


def test_in_and_out_at_once_is_faster_than_one_after_the_other():
    """Table 2.4, mte2+3Seq and mte2+3Con: the bus serves two transfers faster than one."""
    bus = CHIP.buses["interconnect"]
    ratio = total("mte2+3Seq", (32, 32), 1) / total("mte2+3Con", (32, 32), 1)
    assert 1 < ratio < float(bus.total(2) / bus.total(1)) + 0.05

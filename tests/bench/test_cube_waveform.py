"""The picture in the matrix unit's documentation shows the current behaviour of the unit."""

import json

from vitruvian.common.timing_diagram import WaveRow, draw, text
from vitruvian.sim.bench.cube.waveform import PICTURE, read_vcd, rows, simulate

VCD = """$timescale 1ps $end
$scope module TOP $end
$var wire 1 ! clk $end
$scope module top $end
$var wire 1 ! clk $end
$var wire 4 " count [3:0] $end
$upscope $end
$upscope $end
$enddefinitions $end
#0
0!
bx "
#5
b101 "
#10
1!
b110 "
#15
0!
#20
1!
"""


def test_the_picture_is_up_to_date():
    """Run ``python -m vitruvian.sim.bench.cube.waveform`` if this test fails."""
    drawn = rows(simulate())
    assert text(drawn) == PICTURE.read_text()
    by_label = {row.label: row.values for row in drawn}
    # The beat that accumulates waits for the one before; its result comes after the latency, 3.
    assert by_label["i.ready"][:3] == [1, 0, 1]
    assert by_label["o.valid"].index(1) == 2 + 3


def test_values_are_those_before_the_edge():
    assert read_vcd(VCD) == [{"clk": 0, "count": 5}, {"clk": 0, "count": 6}]


def test_equal_words_share_a_box():
    rows = [WaveRow("bit", [0, 1, 1]), WaveRow("word", ["a", "a", None])]
    picture = draw(json.loads(text(rows)))
    assert picture.count(">a<") == 1 and picture.startswith("<svg ")

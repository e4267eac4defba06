"""The page on CCE C names what has no effect and what is not modelled, and nothing else."""

import re

from vitruvian.sim.davinci.cce.intrinsics.table import intrinsic_table
from vitruvian.sim.davinci.cce.sink.program import status


def test_the_lists_are_those_of_the_code(root):
    text = (root / "docs" / "units" / "cce.md").read_text()
    for heading, expected in (
        ("Accepted, but without effect in this simulator", "no effect"),
        ("Accepted by the reader, but not modelled", "not modelled"),
    ):
        block = re.search(rf"\*\*{heading}:?\*\*[^\n]*\n(.*?)\n\n", text, re.DOTALL)
        assert block is not None
        assert set(block[1].split()) == {n for n in intrinsic_table() if status(n) == expected}

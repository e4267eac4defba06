"""The statements of docs/units/convolution.md."""

import re

import numpy as np

from vitruvian.sim.kernels import KERNELS
from vitruvian.sim.papers.zhou25 import CASES


def test_the_examples_run(root):
    text = (root / "docs" / "units" / "convolution.md").read_text()
    first, second = re.findall(r"```python\n(.*?)```", text, re.S)
    names: dict = {}
    exec(first, names)
    assert names["y"].shape == (1, 32, 14, 14) and not names["report"].findings
    assert names["columns"].shape == (1, 180, 196)
    assert np.array_equal(np.unique(names["image"]), [4, 6, 9])
    exec(second, names)


def test_commands_and_steps_are_those_of_the_code(root):
    text = (root / "docs" / "units" / "convolution.md").read_text()
    for name, size in re.findall(r"vitruvian kernel (\S+) .*--size (\S+)", text):
        assert len(size.split("x")) == len(KERNELS[name].sizes)
    rows = dict(re.findall(r"^\| `(\w+)` \| (baseline[^|]*) \|", text, re.M))
    assert rows == {n: ", ".join(s.name for s in case.steps) for n, case in CASES.items()}

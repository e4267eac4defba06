"""The presets against all available outputs measured on real GPUs."""

import numpy as np
import pytest

from tests.support.golden_cases import check_against_silicon
from vitruvian.golden.fp import fused_dot
from vitruvian.golden.machines.presets import parse_preset_name


def test_every_measured_output(silicon):
    compared = 0
    for path in sorted(silicon.glob("*.npz")):
        preset, inputs, input_b = parse_preset_name(path.stem)
        with np.load(path) as data:
            compared += check_against_silicon(fused_dot, preset, inputs, input_b, dict(data))
    assert compared >= 5000


@pytest.mark.parametrize("name", ["a100_fp16", "v100_fp16"])
def test_a_neighbour_of_the_preset_fails(silicon, name):
    """The measurements reject one more bit of window and the other rounding."""

    preset, inputs, input_b = parse_preset_name(name)
    with np.load(silicon / f"{name}.npz") as npz:
        data = dict(npz)
    for change in ({"window": 26}, {"truncate": "floor"}, {"rounding": "RNE"}):

        def changed(a, b, c, spec, change=change):
            return fused_dot(a, b, c, spec.replace(**change))

        with pytest.raises(AssertionError, match="differ"):
            check_against_silicon(changed, preset, inputs, input_b, data)

"""Poolings that the instructions cannot express are refused with one line."""

import pytest

from vitruvian.golden.scu import Patches
from vitruvian.sim.kernels.pooling import Pooling


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"method": "fast"},
            "method must be one of direct, im2col, expansion, xy, strided, whole, not 'fast'",
        ),
        ({"reduction": "min"}, "reduction must be one of max, avg, not 'min'"),
        ({"argmax": True, "reduction": "avg"}, "argmax must be False"),
        (
            {"patches": Patches(height=300, width=1, kernel=(256, 1))},
            r"kernel must be at most 255, not \(256, 1\)",
        ),
        (
            {"patches": Patches(height=300, width=1, kernel=(1, 1), stride=(64, 1))},
            r"stride must be at most 63, not \(64, 1\)",
        ),
        (
            {"patches": Patches(height=3, width=3, kernel=(2, 2), pad=(2, 0, 0, 0))},
            "pad must be smaller than the kernel",
        ),
    ],
)
def test_what_the_instructions_cannot_express_is_refused(change, message):
    given_ = {"patches": Patches(height=3, width=3, kernel=(2, 2)), **change}
    with pytest.raises(ValueError, match=message):
        Pooling(**given_)

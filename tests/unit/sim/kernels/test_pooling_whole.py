"""Pooling of whole images with all lanes: the bits of the direct method, in a part of its time."""

import numpy as np
import pytest

from vitruvian.golden.scu import Patches
from vitruvian.sim.davinci import load_chip, simulate
from vitruvian.sim.kernels.pooling import Pooling, build
from vitruvian.sim.kernels.pooling.catalogue import needs


@pytest.mark.parametrize("chip", ["ascend310", "ascend910", "ascend910b"])
@pytest.mark.parametrize("size", [(7, 7, 2, 13), (3, 100, 1, 5), (1, 1, 1, 1)])
def test_a_whole_image_has_the_bits_of_direct_pooling_in_less_time(chip, size):
    """Eight images of 16 channels fill the lanes; 300 pixels need more than one instruction."""
    height, width, images, groups = size
    chip, rng = load_chip(chip), np.random.default_rng(1)
    data = {"x": rng.normal(size=(images, groups, height, width, 16)).astype(np.float16)}
    patches = Patches(height=height, width=width, kernel=(height, width))
    for reduction in ("max", "avg"):
        made = [
            Pooling(patches, images, groups, reduction=reduction, method=method)
            for method in ("direct", "whole")
        ]
        programs = [build(pooling, chip, data=data, cores=1) for pooling in made]
        direct, whole = (simulate(program) for program in programs)
        assert not whole.findings
        assert whole.outputs["y"].tobytes() == direct.outputs["y"].tobytes()
        assert len(programs[1]) <= needs(made[1], chip, 1).instructions
        # One image of one pixel gains nothing.
        assert groups == 1 or whole.total_s - chip.launch_s < (direct.total_s - chip.launch_s) / 5


def test_whole_is_for_one_window_alone():
    patches = Patches(height=4, width=4, kernel=(4, 4))
    many = Patches(height=4, width=4, kernel=(2, 2))
    for make in (
        lambda: Pooling(patches, method="whole", backward=True),
        lambda: Pooling(patches, method="whole", argmax=True),
        lambda: Pooling(many, method="whole"),
    ):
        with pytest.raises(ValueError, match="whole must be for forward poolings of whole images"):
            make()

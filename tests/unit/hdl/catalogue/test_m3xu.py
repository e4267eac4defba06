"""The published M³XU variants have the parameters that the table of results states."""

import pytest

from vitruvian.hdl.catalogue.m3xu import REPORTED, TABLE, VARIANTS, variant


def test_windows_of_the_published_variants():
    """Regression: a window of 49 passed every fast test."""
    windows = {name: config.window for name, config in VARIANTS.items()}
    wide = ("fp64", "baseline-fp64")
    machine = ("baseline-a100", "fp32-a100", "fp32c-a100", "pipelined-a100")
    expected: dict[str, int | None] = {name: 106 if name in wide else 48 for name in VARIANTS}
    # The variants of a machine have its windows in 16-bit modes; the setting applies to FP32.
    expected["baseline-a100"] = None
    assert windows == expected
    for name in machine:
        assert VARIANTS[name].float_specs["fp16"].sum.window == 24
        if "fp32" in VARIANTS[name].precisions:
            assert VARIANTS[name].float_specs["fp32"].sum.window == 48
    for name in set(VARIANTS) - set(machine):
        for precision in VARIANTS[name].precisions:
            assert VARIANTS[name].float_specs[precision].sum.window == expected[name]


def test_shape_slots_and_multipliers_of_the_published_variants():
    for name, config in VARIANTS.items():
        assert (config.m, config.n, config.slots) == (8, 4, 6)
        assert config.k == (16 if name == "naive-fp32" else 8)
    bits = {name: VARIANTS[name].lane_bits for name in TABLE}
    assert bits == {
        "baseline": 11, "baseline-12bit": 12, "fp32": 12, "fp32c": 12, "pipelined": 12,
        "naive-fp32": 24, "fast": 12,
    }  # fmt: skip
    assert set(REPORTED) < set(TABLE) < set(VARIANTS)


def test_a_window_is_for_ieee_variants():
    assert variant("fp32c", pipeline=2, window=60).window == 60
    assert variant("fp32c", pipeline=2, window=None).window == 48
    with pytest.raises(ValueError, match="window must be left out for baseline-a100"):
        variant("baseline-a100", pipeline=4, window=60)

"""The presets, in golden and RTL, against all available vectors of NVIDIA's matrix units."""

from pathlib import Path

import numpy as np
import pytest

from vitruvian.golden.fp import fused_dot
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.sim.bench.machines import load_set, spec_of
from vitruvian.sim.bench.silicon import run_golden, run_rtl
from vitruvian.sim.machines.rtl import depth_for


@pytest.fixture(scope="module")
def sets(root: Path) -> dict:
    """Return every data set of a preset, keyed by the names of the set and of its folder."""
    data = root.parent / "shared" / "data"
    paths = [*data.glob("machines/*.npz"), *data.glob("silicon_fp8/*.npz")]
    result = {f"{path.parent.name}/{path.stem}": load_set(path) for path in sorted(paths)}
    result = {name: value for name, value in result.items() if value is not None}
    if not result:
        pytest.skip("needs the vectors in ../shared/data/machines and ../shared/data/silicon_fp8")
    return result


def test_names_of_sets_say_their_preset():
    spec = spec_of("ada_mma_e4m3xe5m2_fp32")
    assert spec is not None and (spec.input.name, spec.input_b.name) == ("fp8e4m3", "fp8e5m2")
    assert spec_of("h100_wgmma_e4m3_fp16") is not None
    for other in ("b200_mmasync_e4m3_fp32", "gaudi2_bf16_fp32", "b200_tcgen05_e2m1_fp32", "notes"):
        assert spec_of(other) is None


def test_golden_has_the_bits_of_every_machine(sets):
    """Golden reproduces values, signs of zeros and codes of NaNs."""
    for name, data in sets.items():
        result = run_golden(data)
        assert result.vectors >= 2000 and not result.mismatches, (name, result.examples)
    assert len(sets) > 20


def test_the_vectors_depend_on_floors_and_zeros(sets):
    """Slightly different rules fail; no vector reaches the floors of fp16 results."""
    changes = {
        "machines/a100_mma_bf16_fp32": {"emax_floor": -133},
        "machines/h100_mma_bf16_fp32": {"emax_floor": -132},
        "machines/v100_mma_fp16_fp16": {"zero": "ieee"},
        "machines/h100_mma_fp16_fp16": {"zero": "ieee"},
        "machines/b200_tcgen05_e4m3_fp32": {"window": 13, "result_bits": 13},
        "machines/ada_mma_e4m3_fp16": {"window": 14},
    }
    for name, change in changes.items():
        data = sets[name]
        changed = data.spec.replace(**change)
        assert np.any(fused_dot(data.a, data.b, data.c, changed) != data.d), name


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["v100_mma_fp16_fp16", "ada_mma_e5m2_fp16", "b200_tcgen05_e4m3_fp32"]
)
def test_rtl_has_the_bits_of_the_machines(sets, name):
    result = run_rtl(sets[f"machines/{name}"])
    assert result.vectors >= 2000 and not result.mismatches, result.examples


def test_sets_run_on_a_unit_that_other_tests_build():
    assert depth_for(PRESETS["a100"].spec("tf32")) == 2
    assert depth_for(PRESETS["a100"].spec("fp16")) == 3  # of two units, the deeper one
    assert depth_for(PRESETS["h100"].spec("bf16")) == 3  # no unit

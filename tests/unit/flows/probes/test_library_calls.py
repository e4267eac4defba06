"""The recorded library calls of an H200: how many have a plan, and what their kernels tell."""

import json

import numpy as np

from tests.support.library_plans import record
from tests.support.measured import FOLDER
from vitruvian.flows.probes.library_fit import nvjet_slices

CALLS = record()["calls"]


def test_most_calls_have_a_plan_that_explains_their_tables():
    assert len(CALLS) == 1042 and not any("error" in call for call in CALLS)
    half = [call for call in CALLS if call["a"] in ("fp16", "bf16", "e4m3", "e5m2")]
    assert sum(call["plan"] is not None for call in half) > 0.96 * len(half)
    assert all(call["plan"]["bits"] > 0 for call in CALLS if call["plan"])


def test_the_number_of_slices_is_in_the_grid_of_a_kernel():
    """The rule by which the kernels of all shapes give the slices of K of cuBLAS' nvjet kernels."""
    checked = 0
    for call in CALLS:
        for number, grid in call["kernels"]:
            name = record()["kernels"][number]
            plan = call["plan"]
            if not name.startswith("nvjet") or plan is None:
                continue
            expected = nvjet_slices(name, grid, call["m"], call["n"], call["k"])
            if call.get("scales") != "block":
                assert len(plan["starts"]) == expected, name
                checked += expected > 1
    assert checked > 150


def test_the_kernels_of_many_shapes_are_there():
    with np.load(FOLDER / "shapes.npz") as file:
        shapes = json.loads(str(file["record"]))
    assert len(shapes["rows"]) == 7700 and len(shapes["names"]) == 1169

"""Plans of library calls against what PyTorch returned on an H200: every sampled bit."""

import json

import numpy as np
import pytest

from tests.support import library_plans
from tests.support.library_plans import record, results, samples
from tests.support.measured import FOLDER

CALLS = record()["calls"]
PLANNED = [n for n, call in enumerate(CALLS) if call["plan"]]
#: A chain of fused multiply-adds takes a step for each term.
CHAINS = ("fp32", "fp64")


def _quick(call: dict) -> bool:
    """Return True if the model is fast."""
    return call["k"] <= (128 if call["a"] in CHAINS else 4096)


def _name(number: int) -> str:
    call = CALLS[number]
    return f"{number}-{call['op']}-{call['a']}-{call['m']}x{call['n']}x{call['k']}"


def differences(number: int, count: int, plan: dict | None = None) -> int:
    """Return how many of ``count`` samples of each kind of operands differ."""
    call = CALLS[number] if plan is None else CALLS[number] | {"plan": plan}
    return sum(
        int((results(call, number, kind, count) != measured[:count]).sum())
        for kind, measured in samples(call).items()
    )


CHECKED = [n for n in PLANNED if CALLS[n]["a"] not in CHAINS or CALLS[n]["k"] <= 2048]
SOME = [n for n in PLANNED if _quick(CALLS[n])][::37]


@pytest.mark.parametrize("number", SOME, ids=_name)
def test_a_plan_gives_the_measured_bits(number):
    assert differences(number, 4) == 0


@pytest.mark.long
@pytest.mark.parametrize(
    "number",
    [n for n in PLANNED if CALLS[n]["a"] not in CHAINS or CALLS[n]["k"] <= 2048],
    ids=_name,
)
def test_every_plan_gives_the_measured_bits(number):
    """Longer chains of fused multiply-adds are left out: they are known by their tables only."""
    assert differences(number, 4 if CALLS[number]["a"] in CHAINS else 32) == 0


def _find(**wanted) -> int:
    return next(
        n for n in PLANNED if all(CALLS[n].get(key) == value for key, value in wanted.items())
    )


FP8 = _find(op="scaled", out="fp32", fast=False, scales="tensor", k=2048)
FAST = _find(op="scaled", out="fp32", fast=True, scales="tensor", k=2048)
SPLIT = next(
    n for n in PLANNED if CALLS[n]["op"] == "mm32" and len(CALLS[n]["plan"].get("starts", ())) > 2
)


@pytest.mark.parametrize(
    ("number", "change"),
    [
        (FP8, {"restart": None}),
        (FP8, {"restart": 64}),
        (FAST, {"restart": 128}),
        (SPLIT, {"starts": [0]}),
        (SPLIT, {"starts": [0, 64]}),
        (SPLIT, {"step": 8}),
    ],
)
def test_a_changed_plan_differs(number, change):
    assert differences(number, 16, CALLS[number]["plan"] | change)


def test_tf32_operands_are_rounded(monkeypatch):
    number = _find(op="mm", a="tf32", k=512)
    assert differences(number, 8) == 0
    monkeypatch.setattr(library_plans, "to_tf32", lambda codes: codes & np.uint32(0xFFFFE000))
    assert differences(number, 8) > 20  # operands are not cut


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
            expected = library_plans.nvjet_slices(name, grid, call["m"], call["n"], call["k"])
            if call.get("scales") != "block":
                assert len(plan["starts"]) == expected, name
                checked += expected > 1
    assert checked > 150


def test_the_kernels_of_many_shapes_are_there():
    with np.load(FOLDER / "shapes.npz") as file:
        shapes = json.loads(str(file["record"]))
    assert len(shapes["rows"]) == 7700 and len(shapes["names"]) == 1169

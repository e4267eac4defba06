"""Parameters of plans, and the places along K of their slices and parts."""

from dataclasses import replace

import numpy as np
import pytest

from vitruvian.common.errors import UserError
from vitruvian.golden.plans import LibraryCall, Plan, contiguous, find, recorded, scaled_mm

PLAN = Plan(rule="h100_mma_fp16_fp32")


@pytest.mark.parametrize("k", [1, 16, 100, 128, 1000, 16384])
@pytest.mark.parametrize("count", [1, 2, 3, 5, 40])
@pytest.mark.parametrize("restart", [0, 128])
def test_slices_and_parts_have_every_term_once(k, count, restart):
    for plan in (
        replace(PLAN, starts=contiguous(k, count), restart=restart),
        replace(PLAN, cyclic=(64, count), restart=restart),
    ):
        slices = plan.slices(k)
        assert len(slices) <= count
        assert sorted(np.concatenate(slices)) == list(range(k))
        for places in slices:
            assert np.all(np.diff(places) > 0)
            parts = plan.parts(places)
            assert np.array_equal(np.concatenate(parts), places)
            assert all(len(part) == restart for part in parts[:-1])


def test_slices_are_those_of_cublas():
    """Of 128 tiles of 128 terms, three slices have 43, 43 and 42, as an H200 computes them."""
    assert contiguous(16384, 3) == (0, 5504, 11008)
    assert contiguous(300, 6) == (0, 128, 256)  # three tiles, and three slices without one
    assert replace(PLAN, cyclic=(2, 2)).slices(7)[1].tolist() == [2, 3, 6]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"starts": (0, 64, 32)}, r"starts must rise from 0, and be \(0,\) beside cyclic"),
        ({"starts": (64,)}, "starts must rise from 0"),
        ({"starts": (0, 64), "cyclic": (64, 2)}, "starts must rise from 0"),
        ({"cyclic": (0, 2)}, "tile of cyclic must be"),
        ({"restart": -1}, "restart must be"),
        ({"restart": 128, "remainder_first": 64}, "remainder_first must be 0 with restarts"),
        ({"scales": "column"}, "scales must be one of"),
        ({"evidence": "guessed"}, "evidence must be one of measured, derived, vendor"),
        ({"output": "fp64"}, "output of h100_mma_fp16_fp32 must be as wide as its sums, not fp64"),
        ({"output": "e4m3"}, "output must be one of"),
        ({"rule": "amx_tdpbssd"}, "rule must be one of floating-point sums, not 'amx_tdpbssd'"),
    ],
)
def test_other_parameters_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(PLAN, **changes)


def test_an_unknown_rule_or_gpu_is_refused():
    with pytest.raises(UserError):
        replace(PLAN, rule="h100_mma_fp17_fp32")
    with pytest.raises(UserError, match="gpu must be one of h100, h200, not 'b200'"):
        scaled_mm(128, gpu="b200")
    with pytest.raises(UserError, match="input must be one of e4m3, e4m3xe5m2, e5m2xe4m3, not"):
        scaled_mm(128, input="e5m2")
    with pytest.raises(UserError, match="gpu must be one of h200, not 'h100'"):
        recorded("h100")


def test_a_call_that_was_not_recorded_is_refused_and_the_nearest_named():
    call = LibraryCall(op="mm", a="fp16", b="fp16", m=1016, k=1016, n=1016, output="fp16")
    with pytest.raises(UserError, match=r"such as mm fp16 1024×1024×1024 nn to fp16, not mm fp16"):
        find(call)
    assert find(replace(call, m=1024, k=1024, n=1024)).evidence == "measured"


def test_the_recorded_plans_are_those_of_the_rule_for_hopper():
    """The plans of _scaled_mm with one slice are all ``scaled_mm``, but for K within a step."""
    scaled = {call: plan for call, plan in recorded().items() if call.op == "scaled"}
    assert len(recorded()) == 959 and len(scaled) > 250
    checked = 0
    for call, plan in scaled.items():
        if call.bias or call.scales != "tensor" or call.k < 256 or plan.starts != (0,):
            continue
        pair = call.a if call.a == call.b else f"{call.a}x{call.b}"
        wanted = scaled_mm(
            call.k, gpu="h200", input=pair, fast=call.fast, output=call.output, slices=1
        )
        assert plan == wanted, call
        checked += 1
    assert checked > 60

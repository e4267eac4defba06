"""Plans of calls that were not measured: from the names of kernels, from others, assumed."""

import sys
import types
from dataclasses import replace
from typing import Any

import pytest

from tests.support import library_plans
from tests.support.library_plans import call_of, record
from vitruvian.common.errors import UserError
from vitruvian.flows.probes.library_fit import kernel_slices
from vitruvian.golden.plans import LibraryCall, find, recorded
from vitruvian.golden.plans.derived import of_slices, shapes
from vitruvian.golden.plans.search import nearest, slices_of

HALF = LibraryCall(op="mm", a="fp16", b="fp16", m=512, k=1024, n=512, layout="nt", output="fp16")
SCALED = replace(HALF, op="scaled", a="e4m3", b="e4m3", output="bf16", scales="tensor")


def test_kernels_tell_the_plans_that_were_measured():
    """Every plan of a kernel whose name tells its slices is as measured."""
    compared = 0
    for call in record()["calls"]:
        if call["op"] == "int_mm":
            continue
        kernels = [(record()["kernels"][number], grid) for number, grid in call["kernels"]]
        key = call_of(call)
        slices = kernel_slices(kernels, key)
        if slices is None:
            continue
        measured, told = recorded()[key], of_slices(key, slices, "measured")
        if key.k <= 128:  # no step is left after which a sum could restart, or one has fewer terms
            measured = replace(measured, restart=0, step=None)
            told = replace(told, restart=0, step=None)
        assert told == measured, key
        compared += 1
    assert compared > 720


def test_calls_with_a_recorded_kernel_have_a_plan():
    assert len(shapes()) == 7360
    both = [call for call in shapes() if call in recorded()]
    assert len(both) > 250
    assert all(slices_of(call) == shapes()[call] for call in both)
    call = next(call for call, slices in shapes().items() if slices == "3 × 64" and call.k == 4096)
    plan = find(call) if call not in recorded() else of_slices(call, "3 × 64", "derived")
    assert plan.starts == (0, 1408, 2816) and plan.evidence == "derived"


def test_the_names_say_how_k_is_divided():
    name = "nvjet_sm90_tst_64x8_64x16_2x1_v_bz_splitK_TNT"
    call = replace(HALF, m=1, k=4096, n=4096)
    assert kernel_slices([(name, [2, 64, 1])], call) == "2 × 64"
    assert kernel_slices([("Memset (Device)", []), (name, [2, 66, 1])], call) is None
    assert kernel_slices([("void gemv2T_kernel_val<int>", [1, 1, 1])], call) is None
    assert len(library_plans.shapes()["rows"]) == 7700


def test_a_call_that_nobody_recorded_is_refused_or_assumed():
    with pytest.raises(UserError, match=r"such as mm fp16 512×512×512 .* not mm fp16 512×1023×512"):
        find(replace(HALF, k=1023))
    plan = find(replace(HALF, k=1023), assume=True)
    assert plan.evidence == "assumed" and plan.spec.k == 16
    with pytest.raises(UserError, match="no call mm of e4m3 and e4m3 was recorded"):
        find(replace(HALF, a="e4m3", b="e4m3"), assume=True)


def test_the_nearest_call_has_the_kind_before_the_size():
    wanted = replace(SCALED, m=500, fast=True)
    near = nearest(wanted)
    assert (near.op, near.scales, near.fast) == ("scaled", "tensor", True)
    assert near.m == 512 and nearest(near) != near


@pytest.fixture
def mmaemu(monkeypatch):
    package: Any = types.ModuleType("mmaemu")
    package.errors = types.SimpleNamespace(MmaemuError=KeyError)
    package.resolve_splitk = lambda m, n, k, **_: types.SimpleNamespace(S={4096: 3}[k])
    monkeypatch.setitem(sys.modules, "mmaemu", package)


def test_slices_on_an_h100_are_read_from_mmaemu(mmaemu):
    plan = find(replace(SCALED, k=4096), gpu="h100")
    assert plan.starts == (0, 1408, 2816) and plan.rule == "h100_wgmma_e4m3_fp32"
    assert plan.restart == 128 and plan.evidence == "published"
    with pytest.raises(UserError, match="mmaemu has no choice of slices for scaled e4m3 512×1024"):
        find(SCALED, gpu="h100")
    with pytest.raises(UserError, match="must be scaled with factors by tensor, not mm fp16"):
        find(HALF, gpu="h100")


def test_without_mmaemu_an_h100_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "mmaemu", None)
    with pytest.raises(UserError, match=r"need the package mmaemu \(pip install mmaemu\)"):
        find(SCALED, gpu="h100")
    with pytest.raises(UserError, match="gpu must be one of h200, h100, not 'b200'"):
        find(HALF, gpu="b200")

"""Plans against results of calls that an H200 returned, on operands they were not fitted to."""

from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from tests.support.library_plans import call_of, record, recorded_call, write
from vitruvian.flows.probes import library_fit
from vitruvian.golden.plans import LibraryCall, Plan, recorded

CALLS = record()["calls"]
PLANS = Path(str(files("vitruvian.golden.plans"))) / "cublas_h200.csv"
#: Terms of a chain of fused multiply-adds, and of other sums, that a quick test computes.
_MOST_FMA, _MOST = 128, 4096


def _call(number: int) -> LibraryCall:
    return call_of(CALLS[number])


PLANNED = [number for number, call in enumerate(CALLS) if call["plan"]]
QUICK = [
    n
    for n in PLANNED
    if CALLS[n]["k"] <= (_MOST_FMA if "fma" in recorded()[_call(n)].rule else _MOST)
]


def differences(number: int, count: int, plan: Plan) -> int:
    """Return how many of ``count`` sampled results of each kind of operands differ."""
    recorded = recorded_call(number)
    return sum(
        int(np.count_nonzero(recorded.results(plan, kind, slice(count)) != measured[:count]))
        for kind, measured in recorded.samples.items()
    )


def _name(number: int) -> str:
    return f"{number} {_call(number)}"


@pytest.mark.parametrize("number", QUICK[::23], ids=_name)
def test_a_plan_returns_what_the_library_did(number):
    assert differences(number, 3, recorded()[_call(number)]) == 0


@pytest.mark.long
@pytest.mark.parametrize("number", QUICK, ids=_name)
def test_every_plan_returns_what_the_library_did(number):
    assert differences(number, 8, recorded()[_call(number)]) == 0


def test_the_file_has_what_was_recorded(tmp_path):
    """``python -m tests.support.library_plans FOLDER`` writes it."""
    write(tmp_path)
    assert (tmp_path / PLANS.name).read_text() == PLANS.read_text()
    assert {_call(number) for number in PLANNED} == set(recorded())


def test_operands_of_tf32_are_rounded(monkeypatch):
    """Results differ if the 13 lowest bits are cut instead."""
    call = next(c for c in recorded() if (c.op, c.a, c.k) == ("mm", "tf32", 512))
    number = next(n for n in PLANNED if _call(n) == call)
    assert differences(number, 8, recorded()[call]) == 0
    rows = library_fit.library_operands.rows
    monkeypatch.setattr(
        library_fit.library_operands, "rows", lambda *a: rows(*a) & np.uint32(0xFFFFE000)
    )
    assert differences(number, 8, recorded()[call]) > 20


@pytest.mark.parametrize(
    ("fast", "change"),
    [
        (False, {"restart": 64}),
        (False, {"restart": 0}),
        (False, {"step": 16}),
        (True, {"restart": 128}),
        (True, {"starts": (0, 1024)}),
    ],
)
def test_another_plan_is_noticed(fast, change):
    call = LibraryCall(
        op="scaled",
        a="e4m3",
        b="e4m3",
        m=128,
        k=2048,
        n=512,
        layout="nt",
        output="fp32",
        fast=fast,
        scales="tensor",
    )
    (number,) = [n for n in PLANNED if _call(n) == call]
    plan = recorded()[call]
    assert differences(number, 16, plan) == 0
    assert differences(number, 32, replace(plan, **change)) > 0

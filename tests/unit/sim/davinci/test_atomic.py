"""Atomic updates of the same bytes of global memory by several cores."""

import re

import pytest

from vitruvian.common import compiling
from vitruvian.sim.davinci import Program, Unit, load_chip
from vitruvian.sim.davinci.checks.check import check

C310 = load_chip("ascend310")
V, MTE3 = Unit.V, Unit.MTE3


@pytest.fixture(params=["compiled", "plain"])
def form(request, monkeypatch):
    """Small programs are checked by the same loops as plain Python; test both."""
    monkeypatch.setattr(compiling, "SMALL", 0 if request.param == "compiled" else 10**9)


def sync(core, source, target):
    core.set_flag(source, target, 0)
    core.wait_flag(source, target, 0)


def updates(dtype="fp32", operations=("add", "add"), cores=2, plain=(), barrier=True):
    """Let cores combine rows with the same bytes of global memory, some of them by plain stores."""
    program = Program(C310 if cores <= 2 else load_chip("ascend910"))
    y = program.tensor("y", (64,), dtype)
    for c in range(cores):
        core = program.core(c)
        u = core.allocate("UB", (64,), dtype)
        core.vdup(u, 1)
        sync(core, V, MTE3)
        for _ in range(2):
            name = operations[c % len(operations)]
            core.copy(y, u, atomic="" if c in plain else dtype, atomic_operation=name)
            if barrier:
                core.pipe_barrier(MTE3)
    return program


def test_atomic_sums_of_floats_have_no_order(form):
    (finding,) = check(updates())
    assert finding.check == "nondeterministic"
    assert re.search(
        r"^nondeterministic: copy.* on MTE3 of aicore 0 updates and copy.* of aicore 1 updates "
        r"GM\[0:256\]; nothing orders them, and sums of fp32 depend on their order$",
        finding.message,
    )
    assert [f.check for f in check(updates("fp16", cores=32))] == ["nondeterministic"], "said once"
    (finding,) = check(updates(cores=1, barrier=False))
    assert finding.check == "nondeterministic", "nor within a queue"


@pytest.mark.parametrize("arguments", [{"dtype": "int32"}, {"operations": ("max",) * 2}])
def test_the_order_of_other_updates_does_not_matter(form, arguments):
    assert not check(updates(**arguments))
    assert not check(updates(cores=32, barrier=False, **arguments))


@pytest.mark.parametrize("dtype", ["fp32", "int32"])
def test_an_update_races_with_a_plain_access_and_with_another_operation(form, dtype):
    for plain in ((0,), (1,)):
        assert {f.check for f in check(updates(dtype, plain=plain))} == {"race"}
    assert {f.check for f in check(updates(dtype, ("add", "max")))} == {"race"}


def test_a_plain_store_behind_an_update_still_races(form):
    """The first core stores zeros and then adds; the second only adds."""
    program = Program(C310)
    y = program.tensor("y", (64,), "int32")
    for c in range(2):
        core = program.core(c)
        u = core.allocate("UB", (64,), "int32")
        core.vdup(u, 0)
        sync(core, V, MTE3)
        if c == 0:
            core.copy(y, u)
            core.pipe_barrier(MTE3)
        core.copy(y, u, atomic="int32")
    assert [f.check for f in check(program)] == ["race"]

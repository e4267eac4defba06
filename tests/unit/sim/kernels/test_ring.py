"""Rings of slots: which flags they take, and that the strict check needs each of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitruvian.sim.davinci import Core, Kind, Program, Unit, load_chip, simulate
from vitruvian.sim.davinci.checks.check import check
from vitruvian.sim.kernels.ring import Ring, close_rings, open_rings, ordered, together, uses_of

V, MTE2, MTE3 = Unit.V, Unit.MTE2, Unit.MTE3

#: Pieces of the programs, more than any ring has slots.
_PIECES = 5


@given(st.lists(st.integers(0, 6), max_size=40), st.integers(1, 6))
def test_a_use_finds_its_content_and_flags_are_paired(keys, slots):
    held: dict[int, int] = {}
    released: set[int] = set()
    uses = uses_of(keys, slots)
    assert len(uses) == len(keys)
    for key, use in zip(keys, uses, strict=True):
        assert 0 <= use.slot < slots
        if use.load:
            # A wait is for the flag that the last use of the old content set.
            assert use.wait == (use.slot in held) == (use.slot in released)
            released.discard(use.slot)
            held[use.slot] = key
        assert held[use.slot] == key and not (use.wait and not use.load)
        if use.release:
            released.add(use.slot)
    assert not released


def test_what_fits_is_loaded_once_and_the_rest_in_turn():
    assert [u.load for u in uses_of([0, 1, 2, 0, 1, 2], 3)] == [True] * 3 + [False] * 3
    assert [u.slot for u in uses_of([0, 1, 2, 3], 2)] == [0, 1, 0, 1]
    # The content that has not been used for the longest time goes first.
    assert [u.load for u in uses_of([0, 1, 0, 2, 0], 2)] == [True, True, False, True, False]


def in_place(core: Core, x, y, slots: int, planned: bool) -> None:
    """One buffer passes through MTE2, V and MTE3."""
    u = core.allocate("UB", (slots, 1024), "fp16")
    plan = uses_of(range(_PIECES), slots) if planned else None
    ring = Ring(core, MTE2, MTE3, slots, through=V, plan=plan)
    for piece in range(_PIECES):
        with ring.write() as slot:
            core.copy(u[slot], x[piece])
        with ring.update() as slot:
            core.vrelu(u[slot], u[slot])
        with ring.read() as slot:
            core.copy(y[piece], u[slot])
    if not planned:
        ring.close()


def two_rings(core: Core, x, y, slots: int, planned: bool) -> None:
    """The vector unit reads one ring and writes another one at the same time."""
    u, v = (core.allocate("UB", (slots, 1024), "fp16") for _ in "uv")
    plan = uses_of(range(_PIECES), slots) if planned else None
    full = Ring(core, MTE2, V, slots, plan=plan, start=False)
    done = Ring(core, V, MTE3, slots, plan=plan, start=False)
    if not planned:
        open_rings(full, done)
    for piece in range(_PIECES):
        with full.write() as slot:
            core.copy(u[slot], x[piece])
        with together(full.read(), done.write()) as (slot, out):
            core.vrelu(v[out], u[slot])
        with done.read() as out:
            core.copy(y[piece], v[out])
    if not planned:
        close_rings(full, done)


def program_of(body, slots: int, planned: bool) -> Program:
    program = Program(load_chip("ascend310"))
    x, y = (program.tensor(name, (_PIECES, 1024), "fp16") for name in "xy")
    body(program.core(), x, y, slots, planned)
    return program


@pytest.mark.parametrize("body", [in_place, two_rings])
@pytest.mark.parametrize("slots", [1, 2, 3])
@pytest.mark.parametrize("planned", [False, True])
def test_the_strict_check_passes_and_needs_every_flag(body, slots, planned):
    program = program_of(body, slots, planned)
    assert not check(program, strict=True)
    core = program.core()
    whole = list(core.instructions)
    flags = [i for i, instr in enumerate(whole) if instr.kind in (Kind.SET, Kind.WAIT)]
    assert len(flags) > 4 * _PIECES - 2
    for i in flags:
        core.instructions[:] = whole[:i] + whole[i + 1 :]
        assert check(program), f"{whole[i]} at {i} is not needed"


@pytest.mark.parametrize("body", [in_place, two_rings])
def test_more_slots_overlap_more(body):
    times = [simulate(program_of(body, slots, False), cube=None).total_s for slots in (1, 2)]
    assert times[1] < times[0]


def test_accesses_together_begin_and_end_in_order_and_nested_ones_do_not():
    program = Program(load_chip("ascend310"))
    core = program.core()
    one, two = Ring(core, MTE2, V, 1), Ring(core, V, MTE3, 1)
    start = len(core.instructions)
    with together(one.read(), two.write()):
        pass
    flags = [(i.op, i.fields["source"], i.fields["target"]) for i in core.instructions[start:]]
    assert flags == [
        ("wait_flag", MTE2, V),
        ("wait_flag", MTE3, V),
        ("set_flag", V, MTE2),
        ("set_flag", V, MTE3),
    ]
    start = len(core.instructions)
    with one.read(), two.write():
        pass
    assert [i.fields["target"] for i in core.instructions[start + 2 :]] == [MTE3, MTE2]


def test_a_ring_without_flags_back_has_one_flag_for_a_use():
    core = Program(load_chip("ascend310")).core()
    ring = Ring(core, MTE2, V, 2, first=3, back=False)
    for _ in range(3):
        ring.write().end()
        ring.read().begin()
    ring.close()
    assert [i.fields["register"] for i in core.instructions] == [3, 3, 4, 4, 3, 3]
    ordered(core, V, MTE2, 5)
    assert [i.op for i in core.instructions[-2:]] == ["set_flag", "wait_flag"]


def test_an_error_in_a_block_sets_no_flag():
    core = Program(load_chip("ascend310")).core()
    ring = Ring(core, MTE2, V, 1)
    with pytest.raises(ZeroDivisionError), ring.write():
        _ = 1 / 0
    assert [i.op for i in core.instructions] == ["set_flag", "wait_flag"]


def test_flags_have_the_lines_of_the_kernel():
    core = program_of(two_rings, 2, True).core()
    assert {instr.position.file for instr in core.instructions} == {__file__}

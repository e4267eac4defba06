"""The queue of a unit and the register of faults, alone: order, places, and what stops."""

from amaranth.sim import Simulator

from vitruvian.golden.core.encoding import ENCODINGS, UNITS
from vitruvian.hdl.core.faults import Fault, FaultRegister
from vitruvian.hdl.core.queue import UnitQueue
from vitruvian.hdl.core.record import QUEUED

V, MTE2 = UNITS.index("V"), UNITS.index("MTE2")
ADD = ENCODINGS["vadd"].pack({"unit": V, "repeat": 1})
WAIT = ENCODINGS["wait_flag"].pack({"unit": V, "source": MTE2, "register": 5})


def run(dut, bench):
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


async def send(ctx, dut, words, pc=0):
    for number, word in enumerate(words):
        ctx.set(dut.i.payload, word)
        ctx.set(dut.pc, pc + number)
        ctx.set(dut.i.valid, 1)
        assert ctx.get(dut.i.ready)
        await ctx.tick()
    ctx.set(dut.i.valid, 0)


def test_the_unit_gets_instructions_with_their_program_counters():
    dut, taken = UnitQueue(depth=32, code=V), []

    async def bench(ctx):
        ctx.set(dut.idle, 1)
        await send(ctx, dut, ADD + ADD + ADD, pc=100)
        ctx.set(dut.o.ready, 1)
        for _ in range(40):
            valid = ctx.get(dut.o.valid)
            await ctx.tick()
            if valid:
                taken.append((ctx.get(dut.turn.pc), ctx.get(dut.turn.opcode)))

    run(dut, bench)
    assert taken == [(100 + len(ADD) * n, ENCODINGS["vadd"].code) for n in range(3)]


def test_a_wait_is_reported_until_its_flag_is_set():
    dut, seen = UnitQueue(depth=32, code=V), []

    async def bench(ctx):
        ctx.set(dut.idle, 1)
        await send(ctx, dut, WAIT, pc=7)
        for granted in (0, 0, 0, 1, 0, 0):
            ctx.set(dut.granted, granted)
            wait = dut.waiting
            seen.append(
                (ctx.get(dut.blocked), ctx.get(wait.source), ctx.get(wait.register))
                + (ctx.get(wait.pc), ctx.get(dut.empty))
            )
            await ctx.tick()

    run(dut, bench)
    assert seen[2] == (1, MTE2, 5, 7, 0) and seen[3][0] == 0
    assert seen[-1][0] == 0 and seen[-1][-1] == 1


def test_a_bad_word_counts_when_all_before_it_have_ended():
    dut, seen = UnitQueue(depth=32, code=V), []

    async def bench(ctx):
        ctx.set(dut.idle, 1)
        await send(ctx, dut, ADD + ADD[:2], pc=20)
        ctx.set(dut.bad, 1)
        for ready in (0,) * 4 + (1,) * 6:
            ctx.set(dut.o.ready, ready)
            seen.append((ctx.get(dut.o.valid), ctx.get(dut.reached)))
            await ctx.tick()

    run(dut, bench)
    assert sum(valid for valid, _ in seen[4:]) == 1, "only the first instruction is carried out"
    assert not any(reached for _, reached in seen[:5]) and seen[-1] == (0, 1)


def test_nothing_starts_after_a_fault():
    dut = UnitQueue(depth=32, code=V)
    mark = ENCODINGS["set_flag"].pack({"unit": V, "source": V, "target": MTE2})

    async def bench(ctx):
        ctx.set(dut.idle, 1)
        ctx.set(dut.halt, 1)
        ctx.set(dut.o.ready, 1)
        await send(ctx, dut, mark + ADD)
        for _ in range(10):
            assert not ctx.get(dut.o.valid | dut.set | dut.wait | dut.blocked)
            await ctx.tick()

    run(dut, bench)


def stopped(**given):
    """Return kind, unit, opcode and program counter after some inputs.

    A trip is told after one cycle, and that nothing goes on after two.
    """
    dut, found = FaultRegister(units=len(QUEUED)), []

    async def bench(ctx):
        for n in range(len(QUEUED)):
            ctx.set(dut.turns[n], {"unit": n, "opcode": 10 + n, "pc": 100 + n})
        ctx.set(dut.refused_origin, {"unit": 6, "opcode": 66, "pc": 666})
        for name, value in given.items():
            if name == "trips":
                for n, fault in value.items():
                    ctx.set(dut.trips[n], fault)
            else:
                ctx.set(getattr(dut, name), value)
        await ctx.tick().repeat(1 if "trips" in given or "reached" in given else 2)
        origin = dut.origin
        found.append(
            (ctx.get(dut.fault), ctx.get(origin.unit), ctx.get(origin.opcode), ctx.get(origin.pc))
        )
        for n in range(len(QUEUED)):  # a second fault changes nothing
            ctx.set(dut.trips[n], Fault.BUS)
        await ctx.tick()
        assert ctx.get(dut.fault) == found[0][0] or found[0][0] == Fault.NONE

    run(dut, bench)
    return found[0]


def test_the_first_fault_is_kept():
    every = (1 << len(QUEUED)) - 1
    assert stopped() == (Fault.NONE, 0, 0, 0)
    assert stopped(trips={3: Fault.BOUNDS, 4: Fault.BUS}) == (Fault.BOUNDS, 3, 13, 103)
    assert stopped(reached=2, refused=Fault.CODE) == (Fault.CODE, 6, 66, 666)
    stuck = {"blocked": 0b010100, "empty": every & ~0b010100, "fetch_blocked": 1}
    assert stopped(**stuck) == (Fault.DEADLOCK, 2, 12, 102)
    # The word that S has refused is the reason why nothing goes on.
    assert stopped(**stuck, refused=Fault.ALIGN) == (Fault.ALIGN, 6, 66, 666)
    # One unit works, nothing waits, or S has a word: this is no deadlock.
    assert stopped(**stuck | {"empty": 0b000001})[0] == Fault.NONE
    assert stopped(**stuck | {"blocked": 0, "empty": every})[0] == Fault.NONE
    assert stopped(**stuck | {"fetch_blocked": 0})[0] == Fault.NONE

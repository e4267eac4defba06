"""The barriers that ``--auto-sync`` inserts, and those that it leaves to the programmer."""

from vitruvian.sim.davinci import Program, Unit, load_chip, simulate
from vitruvian.sim.davinci.checks.autosync import insert_barriers
from vitruvian.sim.davinci.checks.check import check


def _chain(core, x, barriers):
    """Emit two rounds of dependent instructions, and independent ones between them."""
    y = core.allocate("UB", (128,), "fp16", "y")
    for _ in range(2):
        core.vadds(x, x, 1.0)
        if barriers:
            core.pipe_barrier(Unit.V)
        core.vrelu(x, x)
        core.vdup(y, 0.0)
        if barriers:
            core.pipe_barrier(Unit.V)


def test_auto_sync_inserts_the_barriers_of_the_vector_unit():
    programs = []
    for barriers in (True, False):
        program = Program(load_chip("ascend910"), "chain")
        for index in range(2):
            core = program.core(index)
            x = core.allocate("UB", (128,), "fp16", "x")
            core.vdup(x, 0.0)
            core.pipe_barrier(Unit.V)
            _chain(core, x, barriers)
        programs.append(program)
    whole, bare = programs
    assert not check(whole) and insert_barriers(whole) == 0
    assert [f.check for f in check(bare)] == ["hazard"] * len(check(bare)) and check(bare)
    count = insert_barriers(bare)
    # Before each vadds but the first, vrelu and the second vdup, on two cores.
    assert count == 6 and not check(bare, strict=True) and insert_barriers(bare) == 0
    times = [simulate(program, checks=False).total_s for program in programs]
    assert times[1] <= times[0]


def test_auto_sync_leaves_other_queues_alone():
    program = Program(load_chip("ascend910"), "loads")
    core = program.core()
    g, x = program.tensor("g", (128,), "fp16"), core.allocate("UB", (128,), "fp16", "x")
    core.copy(x, g)
    core.copy(x, program.tensor("h", (128,), "fp16"))
    before = [str(f) for f in check(program)]
    assert before and insert_barriers(program) == 0
    assert [str(f) for f in check(program)] == before

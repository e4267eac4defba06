"""Case studies: every step is right to the bit, and improves what the paper says it should."""

import numpy as np
import pytest

from vitruvian.sim.davinci import Kind, Unit, load_chip, simulate
from vitruvian.sim.kernels.ring import Ring
from vitruvian.sim.papers.zhou25 import CASES, COMPONENTS
from vitruvian.sim.papers.zhou25.gelu import fast_gelu_golden, gelu_golden

#: Sizes that take less time than the default ones, but have several turns of each loop.
SMALL = {
    "add_relu": (40_000,),
    "depthwise": (2, 60),
    "avgpool": (3,),
    "conv2d": (20, 19, 40),
    "matmul": (192, 256, 48),
    "gelu": (100_000,),
}

STEPS = [(name, step.name) for name, case in CASES.items() for step in case.steps]

#: The component of a path in the paper's words (§4.1).
COMPONENT = {"GM->L1": "MTE-GM", "GM->UB": "MTE-GM", "UB->GM": "MTE-UB"}


def utilisation(program, metric: str) -> float:
    """Return the share of a component's best throughput that the first core reaches."""
    report = simulate(program, cube=None, checks=False)
    chip, core = program.chip, program.core()
    work = 0.0
    for instr in core.instructions:
        if COMPONENT.get(instr.path) == metric:
            route = chip.route(*instr.path.split("->"))
            work += instr.work.nbytes / float(route.rate.bytes_per_s)
        elif metric == "Vector" and instr.unit == Unit.V and instr.kind == Kind.NORMAL:
            work += 0 if instr.path else instr.work.repeats * float(chip.vector[""].repeat_s)
        elif metric == "Cube" and instr.unit == Unit.M and instr.kind == Kind.NORMAL:
            work += instr.work.repeats * float(chip.cube.step_s)
    return work / (report.total_s - float(chip.launch_s))


def test_the_cases_are_those_of_table_1():
    strategies = {name: [s.name for s in case.steps] for name, case in CASES.items()}
    assert strategies == {
        "add_relu": ["baseline", "RSD", "MRT"],
        "depthwise": ["baseline", "AIS", "RUS", "PP", "ITG"],
        "avgpool": ["baseline", "AIP"],
        "conv2d": ["baseline", "RSD", "MRT"],
        "matmul": ["baseline", "OP"],
        "gelu": ["baseline", "EA"],
    }
    for case in CASES.values():
        assert case.metric in COMPONENTS and len(case.sizes) == len(case.size)
        assert all(step.change.endswith(".") for step in case.steps)


@pytest.mark.parametrize(("name", "step"), STEPS)
def test_every_step_is_golden_without_a_finding_and_consumes_its_flags(name, step):
    instance = CASES[name].build(step, size=SMALL[name], seed=3)
    report = simulate(instance.program, strict=True)
    assert not report.findings
    count, wrong = instance.compare(report.outputs)
    assert count > 5000 and not wrong
    for core in instance.program:
        kinds = [i.kind for i in core.instructions]
        assert kinds.count(Kind.SET) == kinds.count(Kind.WAIT)


@pytest.mark.parametrize("name", [name for name in CASES if name != "gelu"])
def test_all_steps_compute_the_same(name):
    results = []
    for step in CASES[name].steps:
        instance = CASES[name].build(step.name, size=SMALL[name], seed=4)
        results.append(instance.golden("y").tobytes())
    assert len(set(results)) == 1


@pytest.mark.parametrize("name", CASES)
def test_every_step_improves_the_metric_and_the_time(name):
    case = CASES[name]
    # Eight groups of channels, the default, take longer and show the same.
    size = (2, 112) if name == "depthwise" else None
    steps = range(len(case.steps))
    programs = [case.build(i, seed=None, size=size).program for i in steps]
    values = [utilisation(program, case.metric) for program in programs]
    assert values == sorted(values) and len(set(values)) == len(values)
    assert values[-1] < 1
    times = [simulate(p, cube=None, checks=False).total_s for p in programs]
    assert times == sorted(times, reverse=True)


def test_gelus_are_near_the_exact_function():
    from scipy.special import erf

    x = np.linspace(-8, 8, 4001).astype(np.float16)
    exact = x * (1 + erf(x.astype(float) / 2**0.5)) / 2
    # The approximations themselves are within 5e-4 and 2.1e-2. Each of at most eight roundings adds
    # no more than half an ulp of the largest result, 8, because a wrong exponent is damped by the
    # quotient: x·u·σ(u)·(1 − σ(u)) is below 1.
    assert np.abs(gelu_golden(x) - exact).max() < 5e-4 + 8 * 2**-11 * 8
    assert np.abs(fast_gelu_golden(x) - exact).max() < 2.1e-2 + 8 * 2**-11 * 8


def test_repeats_of_avgpool_are_98():
    for step, repeat, count in (("baseline", 1, 8 * 98), ("AIP", 98, 8)):
        program = CASES["avgpool"].build(step, size=(1,), seed=None).program
        adds = [i for i in program.core().instructions if i.op == "vadd"]
        assert len(adds) == count and {i.work.repeats for i in adds} == {repeat}


def test_the_barrier_of_every_turn_is_gone_after_rus():
    def barriers(step):
        program = CASES["depthwise"].build(step, size=(1, 60), seed=None).program
        return sum(i.kind == Kind.BARRIER_ALL for i in program.core().instructions)

    assert barriers("baseline") == barriers("AIS") == 9
    assert barriers("RUS") == barriers("PP") == barriers("ITG") == 0


@pytest.mark.parametrize("name", [name for name in CASES if name != "add_relu"])
def test_a_missing_wait_is_a_race(monkeypatch, name):
    original = Ring.read

    def without_wait(self, use=None):
        access = original(self, use)
        access.waits = None
        return access

    monkeypatch.setattr(Ring, "read", without_wait)
    program = CASES[name].build(-1 + len(CASES[name].steps), size=SMALL[name], seed=None).program
    assert any(f.check == "race" for f in simulate(program, cube=None).findings)


def test_another_chip_and_what_cannot_be():
    case = CASES["add_relu"]
    instance = case.build("RSD", load_chip("ascend910"), size=(9000,))
    assert instance.compare(simulate(instance.program).outputs) == (16384, 0)
    with pytest.raises(ValueError, match=r"step of add_relu must be 0 … 2 or one of baseline, RSD"):
        case.build("PP")
    with pytest.raises(ValueError, match=r"step of add_relu must be .*, not 3"):
        case.build(3)
    with pytest.raises(ValueError, match="size of add_relu must be elements, each 1 or more"):
        case.build(0, size=(0,))
    with pytest.raises(ValueError, match="chip must have cores with all units"):
        case.build(0, "ascend910b")
    with pytest.raises(ValueError, match="multiples of 64, 128 and 16, not 65×128×16"):
        CASES["matmul"].build(0, size=(65, 128, 16))


@pytest.mark.parametrize(("name", "step"), STEPS)
def test_the_cost_of_a_step_has_a_bound(name, step):
    case = CASES[name]
    for size in (SMALL[name], case.size):
        program = case.build(step, size=size, seed=None).program
        built = sum(len(core.instructions) for core in program.cores.values())
        assert built <= case.needs(size).instructions <= 100 * built


@pytest.mark.parametrize("name", CASES)
def test_a_size_that_takes_too_long_is_refused_at_once(name):
    case = CASES[name]
    size = tuple(n << 30 for n in case.size)
    with pytest.raises(ValueError, match=rf"instructions of {name} .* at most 2,000,000, not abou"):
        case.build(0, size=size)

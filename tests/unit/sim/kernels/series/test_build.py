"""The methods on the simulated chips, against their golden models and against float64."""

from dataclasses import replace

import numpy as np
import pytest

from vitruvian.common.errors import UserError
from vitruvian.sim.davinci import Program, load_chip, simulate
from vitruvian.sim.davinci.isa.instruction import Kind, Unit
from vitruvian.sim.kernels import KERNELS
from vitruvian.sim.kernels.kernel import KernelInstance
from vitruvian.sim.kernels.series.build import METHODS, build, evaluators, golden, pieces_of
from vitruvian.sim.kernels.series.cordic import Cordic
from vitruvian.sim.kernels.series.functions import FUNCTIONS, as_functions
from vitruvian.sim.kernels.series.motzkin import Motzkin, preconditioned

C310, C910B = load_chip("ascend310"), load_chip("ascend910b")
POLYNOMIALS = ("naive", "horner", "estrin", "motzkin")


def _vectors(program: Program) -> int:
    return sum(
        i.unit == Unit.V and i.kind == Kind.NORMAL for core in program for i in core.instructions
    )


def _check(instance: KernelInstance, elements: int) -> None:
    report = simulate(instance.program)
    assert not report.findings
    assert instance.compare(report.outputs) == (elements, 0)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("method", POLYNOMIALS)
def test_polynomials_equal_their_golden_models_to_the_bit(method, fused):
    rng = np.random.default_rng(1)
    x = rng.integers(0, 1 << 16, 1300, dtype=np.uint16).view(np.float16)
    x[:600] = rng.normal(0, 2, 600)
    functions = as_functions(["cos", "tanh", [1.5, -2, 0.25]])
    for order, chip in ((3, C310), (4, C910B), (6, C310), (11, C310), (16, C910B)):
        instance = build(method, x, functions, order, chip, fused=fused)
        _check(instance, 3 * 1300)
        each = evaluators(method, functions, order, fused=fused)
        share = 2 if chip is C910B else 1
        assert _vectors(instance.program) == share * sum(one.instructions for one in each)
    instance = build(method, x, functions[:2], 1, C310, fused=fused)
    _check(instance, 2600)
    assert (golden(method, x, functions[:1], 1) == 1).all()


def test_cordic_equals_its_golden_model_to_the_bit():
    functions = as_functions(["sin", "cos", "tan", "tanh", "sigmoid"])
    x = np.random.default_rng(2).uniform(-32, 32, 700).astype(np.float16)
    x[:3] = 0.0, -0.0, 2.0**-24
    for iterations, chip in ((1, C310), (2, C910B), (9, C310)):
        instance = build("cordic", x, functions, 1, chip, iterations=iterations)
        _check(instance, 5 * 700)
        each = evaluators("cordic", functions, 1, iterations=iterations)
        share = 2 if chip is C910B else 1
        assert _vectors(instance.program) == share * sum(one.instructions for one in each)


def test_cordic_with_comparisons_equals_its_golden_model_to_the_bit():
    functions = as_functions(["sin", "cos", "tan"])
    x = np.random.default_rng(4).uniform(-32, 32, 700).astype(np.float16)
    x[:3] = 0.0, -0.0, 2.0**-24
    for iterations, chip in ((1, C310), (4, C910B), (12, C310)):
        instance = build("cordic-compare", x, functions, 1, chip, iterations=iterations)
        _check(instance, 3 * 700)
        each = evaluators("cordic-compare", functions, 1, iterations=iterations)
        # Six repeats, on two vector cores of the 910B.
        repeats = (3, 3) if chip is C910B else (6,)
        assert _vectors(instance.program) == sum(one.on_repeats(n) for one in each for n in repeats)
        exact = np.stack([f.reference(x.astype(float)) for f in functions[:2]])
        near = golden("cordic-compare", x, functions[:2], 1, iterations=iterations)
        assert np.abs(near - exact).max() < 2.0 ** (1 - iterations) + 8 * 2.0**-11
    with pytest.raises(UserError, match="cordic-compare must be among sin, cos, tan, not tanh"):
        build("cordic-compare", x, as_functions(["tanh"]), 1, C310)


@pytest.mark.parametrize("method", METHODS)
def test_instruction_counts_are_those_of_the_documentation(method):
    """The numbers for order 16, and for four iterations of sin (docs/units/series.md)."""
    counts = {
        fused: evaluators(method, [FUNCTIONS["sin"]], 16, fused=fused, iterations=4)[0].instructions
        for fused in (False, True)
    }
    expected = {
        "naive": (44, 30),
        "horner": (30, 16),
        "estrin": (33, 26),
        "motzkin": (33, 31),
        "cordic": (29, 29),
        "cordic-compare": (39, 39),
    }
    assert (counts[False], counts[True]) == expected[method]


def test_several_pieces_and_all_cores_compute_the_same():
    x = np.random.default_rng(3).uniform(-1, 1, 40000).astype(np.float16)
    functions = as_functions(["sin", "exp"])
    for method, chip, groups in (("estrin", C310, 2), ("horner", C910B, 5), ("motzkin", C310, 1)):
        instance = build(method, x, functions, 8, chip, cores=groups)
        cores = [core for core in instance.program if core.instructions]
        assert len(cores) == {"estrin": 2, "horner": 10, "motzkin": 1}[method]
        loads = [i for i in cores[-1].instructions if i.unit == Unit.MTE2 and i.kind == Kind.NORMAL]
        assert len(loads) >= (1 if chip is C910B else 4)
        _check(instance, 80000)
    assert pieces_of(16, 255) == [16] and pieces_of(128, 255) == [32] * 4
    assert pieces_of(1000, 100) == [100] * 10 and sum(pieces_of(1001, 100)) == 1001


def test_streams_overlap_transfers_with_computation():
    """With double buffers, the time is near that of the vector unit alone."""
    program = build("horner", 1 << 18, as_functions(["sin"]), 16, C310).program
    report = simulate(program, cube=None)
    busy = _vectors(program) * 40e-9 + 30 * (1 << 18) * 2 / 174.06e9
    assert busy < report.total_s < 1.1 * busy


def test_golden_models_are_near_float64():
    """Each rounding is at most half an ulp of a partial result, which is below 4 here."""
    x = np.linspace(-1, 1, 999).astype(np.float16)
    for name in ("sin", "cos", "sigmoid", "gelu", "exp"):
        functions = [FUNCTIONS[name]]
        exact = functions[0].reference(x.astype(float))
        for method in POLYNOMIALS:
            for fused in (False, True):
                y = golden(method, x, functions, 16, fused=fused)[0].astype(float)
                # At most 44 roundings, of which those of high powers hardly count.
                assert np.abs(y - exact).max() < 8 * 2.0**-11 * 2, (name, method)


def test_cordic_converges_by_one_bit_for_each_iteration():
    x = np.linspace(-8, 8, 801).astype(np.float16)
    for name in ("sin", "cos", "tanh", "sigmoid"):
        function = FUNCTIONS[name]
        exact = function.reference(x.astype(float))
        for iterations in (2, 5, 8, 11):
            one = Cordic(function, 1, iterations=iterations)
            # The angle that is left is at most that of the last iteration. Hyperbolic angles are
            # below half of the one before, so that more is left until one of them is repeated.
            left = 2.0 ** -one.exponents[-1] * (1 if one.circular else 2)
            assert np.abs(one.golden(x) - exact).max() < left + 8 * 2.0**-11, (name, iterations)
    tan = Cordic(FUNCTIONS["tan"], 1, iterations=11).golden(
        np.array([0.14, 0.52, 2.08], np.float16)
    )
    assert np.allclose(tan.astype(float), np.tan([0.14, 0.52, 2.08]), rtol=0.02)


def test_preconditioned_polynomials_are_the_polynomials():
    a = FUNCTIONS["exp"].exact(5)
    alphas = preconditioned(a)
    assert alphas is not None
    for x in (-2, 1, 5):
        y = (x + alphas[0]) * x + alphas[1]
        value = ((y + x + alphas[2]) * y + alphas[3]) * alphas[4]
        assert value == sum(c * x**n for n, c in enumerate(a))
    assert preconditioned((a[0], a[1], a[2], a[3], a[4] - a[4])) is None
    # a_4/a_2 = 10⁻³ makes terms of 10⁶ that cancel.
    assert preconditioned((a[0], a[1], a[2], a[3] * 0, a[4] / 100)) is None


def test_sums_of_sin_cos_and_tan_have_preconditioned_blocks():
    adapted = {n: sum(b.adapted for b in Motzkin(FUNCTIONS[n], 16).blocks) for n in FUNCTIONS}
    assert all(adapted[n] >= 1 for n in ("sin", "cos", "tan", "tanh", "exp"))


def test_a_missing_barrier_is_found():
    """The checks of the simulator see each barrier of a chain of dependent instructions."""
    program = build("horner", np.ones(256, np.float16), as_functions(["cos"]), 4, C310).program
    core = program.core()
    at = [n for n, i in enumerate(core.instructions) if i.op == "pipe_barrier"]
    assert len(at) == 5
    for n in at:
        kept = list(core.instructions)
        del core.instructions[n]
        assert simulate(program, cube=None).findings
        core.instructions[:] = kept


def test_a_wrong_constant_is_found():
    instance = build("horner", np.ones(256, np.float16), as_functions(["cos"]), 4, C310)
    core = instance.program.core()
    n = next(n for n, i in enumerate(core.instructions) if i.op == "vadds")
    wrong = core.instructions[n]
    core.instructions[n] = replace(wrong, fields={**wrong.fields, "scalar": 1.0})
    assert instance.compare(simulate(instance.program).outputs)[1] > 0


def test_kernels_are_registered():
    for method in METHODS:
        instance = KERNELS[f"series-{method}"].build((3, 7, 300), chip=C310)
        report = simulate(instance.program)
        assert instance.compare(report.outputs) == (900, 0)


ONE = np.ones(4, np.float16)


@pytest.mark.parametrize(
    ("args", "options", "error", "message"),
    [
        (("taylor", ONE, ["sin"], 4), {}, UserError, "method must be one of horner, estrin"),
        (("horner", ONE, ["sin"], 0), {}, UserError, "order must be between 1 and 128, not 0"),
        (("cordic", ONE, ["gelu"], 4), {}, UserError, "functions of cordic must be .* not gelu"),
        (("cordic", ONE, ["sin"], 4), {"iterations": 13}, UserError, "iterations must be"),
        (("cordic", ONE * 40, ["sin"], 4), {}, UserError, "must be numbers within ±32, not 40"),
        (("cordic", ONE * np.nan, ["tanh"], 4), {}, UserError, "tanh by cordic must be finite"),
        (("horner", np.ones(4), ["sin"], 4), {}, TypeError, "x must be a vector of float16"),
        (("horner", 0, ["sin"], 4), {}, UserError, "number of inputs must be at least 1"),
        (("horner", ONE, ["sin"], 4), {"cores": 3}, UserError, "cores must be between 1 and 2"),
    ],
)
def test_mistakes(args, options, error, message):
    method, x, functions, order = args
    with pytest.raises(error, match=message):
        build(method, x, as_functions(functions), order, C310, **options)

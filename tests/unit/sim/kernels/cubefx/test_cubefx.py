"""Cube-fx gives the bits of its golden model, and its golden model the powers by definition."""

import math
from dataclasses import replace

import numpy as np
import pytest

from vitruvian.golden import vector
from vitruvian.sim.davinci import Unit, load_chip, simulate
from vitruvian.sim.kernels.cubefx import CubeFx, Mapping, best, build, golden
from vitruvian.sim.kernels.cubefx.build import needs
from vitruvian.sim.kernels.cubefx.layout import packed_coefficients, unpacked_results, window
from vitruvian.sim.kernels.layout import pack_b

CHIPS = [load_chip(name) for name in ("ascend310", "ascend910b")]

#: Inputs with both zeros, the smallest and largest subnormal, and powers of two.
SPECIAL = np.array([0.0, -0.0, 2**-24, -(2**-24), 2**-14, 1, -1, 2, -2, 0.5], np.float16)


def inputs(count, seed=1, low=-2.0):
    """Return random inputs that begin with the special ones that are allowed."""
    x = np.random.default_rng(seed).uniform(low, 2.0, count).astype(np.float16)
    special = SPECIAL if low < 0 else SPECIAL[~np.signbit(SPECIAL)]
    x[: len(special)] = special[:count]
    return x


def table(functions, order, seed=2):
    """Return random coefficients, some of them 0."""
    rng = np.random.default_rng(seed)
    values = rng.uniform(-1, 1, (functions, order)) / np.arange(1, order + 1)
    return values * (rng.random((functions, order)) < 0.8)


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
@pytest.mark.parametrize(
    ("count", "functions", "order", "options"),
    [
        (1, 1, 1, {}),
        (700, 3, 16, {}),
        (700, 3, 16, {"double_buffer": False}),
        (300, 2, 16, {"signs": False}),
        (300, 17, 16, {"pieces": 16}),
        (300, 2, 20, {"pieces": 1}),
        (300, 3, 5, {"merged": 3, "halvings": 2}),
        (300, 2, 6, {"merged": 16}),
        (6000, 2, 2, {}),
        (3000, 33, 16, {}),
    ],
)
def test_the_kernel_has_the_bits_of_golden_and_no_finding(chip, count, functions, order, options):
    chosen = CubeFx(**options)
    x = inputs(count, low=-2.0 if chosen.signs is None else 0.0)
    instance = build(x, table(functions, order), chip, options=chosen)
    report = simulate(instance.program, strict=True)
    assert not report.findings
    assert instance.compare(report.outputs) == (functions * count, 0)


def test_several_cores_have_the_bits_of_one():
    for chip in CHIPS:
        instance = build(inputs(3000), table(2, 16), chip, cores=2)
        report = simulate(instance.program)
        kinds = {core.kind.name for core in instance.program}
        assert len(instance.program.cores) == (2 if len(kinds) == 1 else 6)
        assert not report.findings and instance.compare(report.outputs) == (6000, 0)


@pytest.mark.parametrize("merged", [1, 2, 3, 16])
def test_powers_are_exponentials_of_rounded_products(merged):
    """The sequence matrices select one logarithm each, so a power has a definition without them."""
    order = 10
    x = np.concatenate([inputs(70), np.array([1.5, -1.5], np.float16)])
    x = np.pad(x, (0, -len(x) % 16))
    logs = vector.ln(np.abs(x)).astype(np.float64)
    expected = np.zeros((len(x), order), np.float16)
    for power in range(order):
        for i, log in enumerate(logs):
            if power == 0:
                expected[i, power] = 1
            elif x[i]:
                size = vector.exp(np.float16(power * log))
                expected[i, power] = -size if x[i] < 0 and power % 2 else size
    # A power that vanishes is +0.
    expected += np.float16(0)
    found = golden.powers(x, order, merged)
    assert (found.view(np.uint16) == expected.view(np.uint16)).all()


def test_powers_are_within_their_bound():
    """Each exponent has two roundings, of the logarithm and of the product, and the result one."""
    x = inputs(4096)
    x = x[np.abs(x) > 0.05]
    x = x[: len(x) // 16 * 16]
    exact = x.astype(np.float64)[:, None] ** np.arange(16)
    exponents = np.abs(np.log(np.abs(x.astype(np.float64)))[:, None] * np.arange(16))
    u = 2.0**-11
    bound = np.abs(exact) * (np.exp(exponents * (2 * u + u * u)) * (1 + u) - 1) + 2**-25
    assert (np.abs(golden.powers(x, 16).astype(np.float64) - exact) <= bound).all()


def test_polynomials_are_within_the_error_of_their_powers():
    x = inputs(1600)
    coefficients = table(3, 16).astype(np.float16)
    found = golden.taylor(x, coefficients).astype(np.float64)
    powers = golden.powers(x, 16).astype(np.float64)
    exact = coefficients.astype(np.float64) @ powers.T
    assert (np.abs(found - exact) <= np.abs(exact) * 2.0**-10 + 2**-24).all()


def test_halvings_let_large_inputs_pass():
    x = inputs(64)
    x[-1] = 300.0
    coefficients = [[1 / math.factorial(p) / 300**p for p in range(16)]]
    instance = build(x, coefficients, CHIPS[0])
    outputs = simulate(instance.program).outputs
    assert instance.compare(outputs) == (64, 0)
    assert abs(float(instance.views["y"](outputs["y"])[0, -1]) - math.e) < 0.02


def test_a_missing_flag_or_a_wrong_matrix_is_noticed():
    """A program without one kind of flag has a race, and a changed window has wrong results."""
    for chip in CHIPS:
        x, coefficients = inputs(30000) / np.float16(2), table(17, 40)
        instance = build(x, coefficients, chip)
        assert instance.program.tensors["x"].shape[0] > 1
        pairs = {
            (i.fields["source"], i.fields["target"])
            for core in instance.program
            for i in core.instructions
            if i.op == "set_flag"
        }
        assert len(pairs) >= 6
        whole = [list(core.instructions) for core in instance.program]
        for pair in sorted(pairs):
            for core, instructions in zip(instance.program, whole, strict=True):
                core.instructions[:] = [
                    i
                    for i in instructions
                    if (i.fields.get("source"), i.fields.get("target")) != pair
                ]
            assert simulate(instance.program, cube=None).findings, (chip.name, pair)
        instance = build(inputs(600), table(2, 16), chip)
        instance.program.data["sequence"][0, 15, 7] += 1
        assert instance.compare(simulate(instance.program).outputs)[1] > 100


def test_the_cube_and_the_vector_unit_overlap():
    """Double buffering shortens the run, and more than half of the Cube's time is beside V."""
    times = [
        simulate(
            build(8192, table(3, 16), CHIPS[0], options=CubeFx(double_buffer=double)).program,
            cube=None,
        )
        for double in (True, False)
    ]
    assert times[0].total_s < 0.8 * times[1].total_s
    shares = []
    for report in times:
        lowered, run = report.lowered, report.times
        spans = {}
        for unit in (Unit.M, Unit.V):
            busy = np.zeros(20000, bool)
            for i in np.flatnonzero((lowered.unit == unit) & (lowered.kind == 0)):
                first, last = (int(t * 20000 // run.total) for t in (run.start[i], run.end[i]))
                busy[first:last] = True
            spans[unit] = busy
        shares.append((spans[Unit.M] & spans[Unit.V]).sum() / spans[Unit.M].sum())
    assert shares[0] > 0.5 > shares[1]


def test_mapping_has_the_counts_of_the_thesis():
    """The Cube has the side 16, four times that of Fig. 4.4 to 4.6."""
    naive, merged = Mapping(8, 8, 1), Mapping(8, 8, 2)
    # The matrices of eq. 4.9 by hand: 16 · 1 · (1 + 1) and 8 · 1 · (1 + 1).
    assert (naive.mac_count, merged.mac_count) == (32, 16) and best(8, 8) == merged
    # Order 12 (three quarters of the side, Fig. 4.6): four matrices make three fractals.
    assert Mapping(12, 8, 4).mac_count == 4 * 3 * 3 > Mapping(12, 8).mac_count == 32
    assert best(12, 8).merged == 1 and best(16, 3).merged == 1
    assert naive.moved == 256 * 33 and best(2, 1).mac_count == 2 * 1 * 2


def test_the_best_mapping_has_the_smallest_cost_of_all():
    for order in range(1, 21):
        for functions in range(1, 21):
            costs = []
            for t in range(1, 17):
                loops, fractals = math.ceil(16 / t), math.ceil(order * t / 16)
                costs.append(loops * fractals * (1 + math.ceil(functions * t / 16)))
            found = best(order, functions)
            assert found.mac_count == min(costs) == costs[found.merged - 1]


@pytest.mark.parametrize(("order", "functions", "merged"), [(16, 3, 1), (6, 2, 5), (20, 17, 3)])
def test_stored_matrices_are_those_of_golden(order, functions, merged):
    mapping = Mapping(order, functions, merged)
    stored = window(mapping, np.arange(order))
    assert stored.shape[1] == 16 + (mapping.loops - 1) * merged
    for number in range(mapping.loops):
        first = (mapping.loops - 1 - number) * merged
        rows = stored[:, first : first + 16].transpose(1, 0, 2).reshape(16, -1)
        assert (rows == golden.sequence_matrix(number, order, merged)).all()
    coefficients = table(functions, order).astype(np.float16)
    packed = pack_b(golden.coefficient_matrix(coefficients, merged))
    assert (packed_coefficients(mapping, coefficients) == packed).all()


def test_results_are_read_in_the_order_of_the_inputs():
    mapping = Mapping(4, 3, 3)
    rows, tiles = 16, 2
    stored = np.full((tiles, mapping.loops, mapping.result_columns, rows, 16), -1)
    for i in range(tiles * rows * 16):
        tile, row, column = i // (rows * 16), i // 16 % rows, i % 16
        for f in range(3):
            at = column % 3 * 3 + f
            stored[tile, column // 3, at // 16, row, at % 16] = 1000 * f + i
    found = unpacked_results(mapping, stored, 500)
    assert (found == 1000 * np.arange(3)[:, None] + np.arange(500)).all()


@pytest.mark.parametrize(
    ("x", "coefficients", "options", "text"),
    [
        (
            np.array([math.nan], np.float16),
            [[1]],
            {},
            "x must be finite numbers, not NaN or infinite ones",
        ),
        (
            np.array([1], np.float32),
            [[1]],
            {},
            r"x must be \(N,\) of float16, N 1 or more, not .* float32",
        ),
        (np.array([], np.float16), [[1]], {}, r"x must be \(N,\) of float16, N 1 or more"),
        (0, [[1]], {}, "N must be at least 1, not 0"),
        (5, [1, 2], {}, r"coefficients must be \(functions, order\) finite .*, not \(2,\)"),
        (5, [[math.inf]], {}, "coefficients must be .* finite numbers"),
        (5, [[1, 7e4]], {}, "coefficients must be at most 65504, not 70000"),
        (
            np.array([3], np.float16),
            [[0] * 16],
            {"halvings": 0},
            "halvings must be at least 1 for .* 3 and",
        ),
        (
            np.array([-1], np.float16),
            [[1]],
            {"signs": False},
            "x must be 0 or more without signs, not -1",
        ),
        (5, [[1]], {"merged": 17}, "merged must be between 1 and 16, not 17"),
        (5, [[1]], {"halvings": 99}, "halvings must be between 0 and 14, not 99"),
        (5, [[1]], {"pieces": 0}, "pieces must be between 1 and 16, not 0"),
    ],
)
def test_wrong_arguments_are_refused(x, coefficients, options, text):
    with pytest.raises(ValueError, match=text):
        build(x, coefficients, CHIPS[0], options=CubeFx(**options))


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_no_program_exceeds_the_known_needs(chip):
    """The bound of the instructions holds for any number of tiles, and is not far off."""
    signs = CubeFx(signs=True, halvings=0)
    for order, functions in ((1, 1), (6, 5), (16, 17), (40, 33)):
        for count, cores in ((1, 1), (40000, 1), (2000, None)):
            instance = build(count, table(functions, order), chip, cores=cores, options=signs)
            most = needs(count, best(order, functions), chip, cores).instructions
            found = len(instance.program)
            assert found <= most <= 2.1 * found + 700, (order, functions, count, cores)


def test_matrices_and_cores_that_do_not_fit_are_refused():
    for chip in CHIPS:
        with pytest.raises(ValueError, match="functions and order must be fewer than 200 and 128"):
            build(5, np.ones((200, 128)), chip)
        with pytest.raises(ValueError, match=f"cores must be 1 … .* on {chip.name}, not 99"):
            build(5, [[1]], chip, cores=99)
    small = CHIPS[0].kinds["aicore"]
    buffers = {**small.buffers, "UB": replace(small.buffers["UB"], nbytes=1024)}
    chip = replace(CHIPS[0], kinds={"aicore": replace(small, buffers=buffers)})
    with pytest.raises(ValueError, match="their matrices do not fit the memories"):
        build(5, [[1]], chip)

"""The rules of machines against worked examples, executed models and measured results."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support import measured
from tests.support.changed_rules import changed
from vitruvian import machines
from vitruvian.common.errors import UserError
from vitruvian.golden.fp import DotSpec, dot_spec, fused_dot
from vitruvian.golden.fp.formats import FORMATS
from vitruvian.golden.machines import ChainSpec
from vitruvian.sim.machines.samples import FOLDER, read_samples, samples
from vitruvian.sim.machines.sets import compare_set, differences, examples, read_set

EXAMPLES = {data.machine.stem: data for data in examples()}
SHARED = Path(__file__).resolve().parents[5] / "shared" / "data"
SETS = sorted(p for name in ("machines", "silicon_fp8") for p in (SHARED / name).glob("*.npz"))


def test_there_is_an_example_of_every_kind_of_rule():
    kinds = {data.machine.rule_name for data in EXAMPLES.values()}
    assert len(EXAMPLES) == 20
    assert kinds >= {"ampere", "hopper", "hopper_short", "late", "mx", "mx4", "aligned", "parity"}
    assert kinds >= {"exact", "pairs", "amx", "vdp", "ebf0", "gaudi1", "gaudi2", "gaudi3"}
    assert kinds >= {"blackhole", "rvbna"}


@pytest.mark.parametrize("stem", EXAMPLES)
def test_a_worked_example(stem):
    found = compare_set(EXAMPLES[stem])
    assert (found.rows, found.values, found.zero_signs, found.first) == (1, 0, 0, None)


@pytest.mark.skipif(not SETS, reason="../shared/data/machines is not there")
def test_every_set_has_a_row_and_no_result_differs():
    wrong, rows, artefacts = {}, 0, 0
    for path in SETS:
        data = read_set(path)
        found = compare_set(data)
        rows += found.rows
        if data.machine.zero_known:
            if found.values or found.zero_signs:
                wrong[path.stem] = found
        else:
            artefacts += found.zero_signs
            if found.values:
                wrong[path.stem] = found
    assert not wrong
    assert len(SETS) >= 103 and rows >= 200_000
    # The vendor's model of Gaudi 2 takes a shortcut when all products are zero.
    assert artefacts == 107


#: Set and a change of a parameter of its rule that it must notice.
MUTATIONS = [
    ("a100_mma_bf16_fp32", {"window": 23}),
    ("a100_mma_bf16_fp32", {"window": 25}),
    ("h100_mma_bf16_fp32", {"emax_floor": None}),
    ("h100_mma_bf16_fp32", {"zero": "ieee"}),
    ("h100_mma_bf16_fp32", {"k": 8}),
    ("ada_mma_e4m3_fp32", {"result_bits": 14}),
    ("h100_wgmma_e4m3_fp32", {"window": 14}),
    ("b200_tcgen05_e3m2xe5m2_fp32", {"truncate": "floor"}),
    ("b200_mmasync_e4m3_fp32", {"lanes": "together", "convert": "fp16"}),
    ("b200_mmasync_e4m3_fp16", {"accumulate": "tree"}),
    ("b200_mxf8_e4m3_fp32", {"window": 24}),
    ("b200_nvf4_ue4m3_fp32", {"window": 34}),
    ("b200_nvf4_ue8m0_fp32", {"emax_floor": -100}),
    ("cdna1_mfma_bf16_fp32", {"zero": "positive"}),
    ("cdna3_mfma_bf16_fp32", {"product_overflow": False}),
    ("cdna3_mfma_fp8xbf8_fp32", {"lanes": "together"}),
    ("gaudi3_e4m3_fp32", {"convert": None}),
    ("gaudi3_fp32_fp32", {"slices": None}),
    ("gaudi2_bf16_fp32", {"flush": False}),
    ("gaudi2_bf16_fp32", {"flush_result": None}),
    ("rvbna_bf16_n8_fp32", {"truncate": "magnitude"}),
    ("rvbna_bf16_n8_fp32", {"rounding": "RZ"}),
    ("amx_tdpbf16ps", {"accumulators": 1}),
    ("avx512_vdpbf16ps", {"descending": False}),
    ("arm_bfdot_ebf0", {"products": "fused"}),
    ("gaudi1_bf16_fp32", {"accumulators": 2}),
    ("cdna2_mfma_bf161k_fp32", {"products": "fused"}),
    ("cdna2_mfma_bf161k_fp32", {"zero_subnormals": False}),
    ("bh_mvmul_bf16_fp32_hifi4", {"phases": 3}),
    ("wh_mvmul_bf16_fp32_hifi4", {"blackhole": True}),
    ("rdna3_dot2_bf16_fp32", {"rdna4": True}),
    ("rdna4_dot2_fp16_fp32", {"rdna4": False}),
    ("rdna4_wmma_fp16_fp32", {"k": 2}),
    ("amx_tcmmrlfp16ps", {"complex": None}),
    ("amx_tcmmimfp16ps", {"complex": "real"}),
    ("amx_tdpbf8ps_pairs", {"zero_subnormals": False}),
    ("amx_tdphf8ps_pairs", {"products": "fused"}),
    ("amx_tdphbf8ps_pairs", {"accumulators": 1}),
]


@pytest.mark.parametrize(("stem", "change"), MUTATIONS)
def test_a_sample_notices_another_parameter(stem, change):
    data = samples()[stem]
    other = replace(data.machine, rule=changed(data.machine.rule, **change))
    found = compare_set(replace(data, machine=other))
    assert found.values + found.zero_signs > 0


def test_no_result_of_a_sample_differs():
    found = {stem: compare_set(data) for stem, data in samples().items()}
    assert len(found) == 139 and min(one.rows for one in found.values()) == 8
    assert not {stem for stem, one in found.items() if one.values or one.zero_signs}


def measured_set(small):
    """Return the set in tests/data/h200 that a sample was taken from."""
    stem = small.machine.stem.replace("h100", "h200")
    (name,) = (
        name
        for name in measured.instructions()
        if re.match(r"mma\w*_m16n8k32_", name)
        and measured.row_of(measured.by_name()[name]).stem == stem
    )
    given = measured.by_name()[name].cases(1)
    return replace(small, a=given.a, b=given.b, c=given.c, d=measured.results(name))


@pytest.mark.skipif(not SETS, reason="../shared/data/machines is not there")
def test_samples_are_rows_of_their_sets():
    for stem, small in samples().items():
        path = SHARED / "machines" / f"{stem}.npz"
        if not path.exists() and small.machine.maker != "NVIDIA":
            continue  # the samples are the whole set
        data = read_set(path) if path.exists() else measured_set(small)
        names = ["a", "b", "c", "d", *(["scale_a", "scale_b"] if data.scale_a is not None else [])]
        same = np.ones((len(data.d), len(small.d)), bool)
        for name in names:
            x, y = (getattr(one, name).reshape(len(one.d), -1) for one in (data, small))
            same &= (x[:, None] == y).all(axis=2)
        assert same.any(axis=0).all(), stem


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("40284039", "4028403", "b of arm_bfdot_ebf0 must have 4 digits a code, not '4028403'"),
        ("40284039", "402840394039", "b of arm_bfdot_ebf0 must have 4 digits a code"),
        ("40284039 ", "", "a row of arm_bfdot_ebf0 must have 6 columns, not '34 normal c0633fc4"),
    ],
)
def test_a_damaged_file_of_samples_is_noticed(tmp_path, old, new, message):
    text = (FOLDER / "arm.toml").read_text()
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if old in line)
    lines[first] = lines[first].replace(old, new)
    # The first row sets the number of codes, so a sound row stands before the damaged one.
    lines.insert(first, text.splitlines()[first])
    (tmp_path / "arm.toml").write_text("\n".join(lines))
    with pytest.raises(ValueError, match=message):
        read_samples(tmp_path / "arm.toml")


def test_a_difference_of_every_kind_is_counted():
    got = np.array([0x7FC00000, 0x80000000, 0x3F800000, 0x3F800000], np.uint32)
    expected = np.array([0x7FFFFFFF, 0x00000000, 0x3F800000, 0x3F800001], np.uint32)
    found = differences(got, expected, FORMATS["fp32"])
    assert (found.rows, found.values, found.zero_signs, found.first) == (4, 1, 1, 1)


# ------------------------------------------------------------------ the general steps


@pytest.mark.parametrize("truncate", ["floor", "magnitude"])
@pytest.mark.parametrize("rounding", ["RNE", "RZ"])
@pytest.mark.parametrize("output", ["fp32", "fp16"])
def test_the_general_steps_agree_with_the_plain_ones(truncate, rounding, output):
    rng = np.random.default_rng(5)
    n = 4000
    a, b = rng.integers(0, 1 << 16, (2, n, 8), np.uint16)
    b[: n // 2] &= 0x83FF | 0x3C00  # fewer infinities
    c = rng.integers(0, 1 << (32 if output == "fp32" else 16), n).astype(
        np.uint32 if output == "fp32" else np.uint16
    )
    plain = dot_spec(
        input="fp16", output=output, k=8, window=24, truncate=truncate, rounding=rounding
    )
    # A conversion to the same format changes nothing but takes the general path.
    general = plain.replace(convert="fp16")
    assert plain.is_plain and not general.is_plain
    np.testing.assert_array_equal(fused_dot(a, b, c, plain), fused_dot(a, b, c, general))


def test_a_sum_that_fits_is_exact_in_every_block_scaled_format():
    rng = np.random.default_rng(6)
    magnitudes = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    values = np.concatenate([magnitudes, -magnitudes])
    a, b = rng.integers(0, 16, (2, 500, 64), np.uint8)
    scales = rng.integers(0x7E, 0x81, (2, 500, 4), np.uint8)  # 1/2, 1 and 2
    c = np.zeros(500, np.uint32)
    got = machines.run("b200_nvf4_ue8m0_fp32", a, b, c, *scales).view(np.float32)
    factor = np.repeat(2.0 ** (scales.astype(float).sum(axis=0) - 254), 16, axis=1)
    np.testing.assert_array_equal(got, (values[a] * values[b] * factor).sum(axis=1))


def test_a_nan_scale_is_a_nan_result():
    a = np.full((1, 64), 2, np.uint8)
    scale = np.full((1, 2), 127, np.uint8)
    bad = np.array([[127, 255]], np.uint8)
    assert machines.run("b200_mxf4_fp32", a, a, [0], scale, scale) == np.float32(64).view(np.uint32)
    assert machines.run("b200_mxf4_fp32", a, a, [0], scale, bad) == 0x7FFFFFFF


# ------------------------------------------------------------------ names and mistakes


def test_other_names_of_machines_and_instructions():
    assert machines.find("l40s_mma_e5m2_fp16").stem == "ada_mma_e5m2_fp16"
    assert machines.find("mi300x_mfma_fp16_fp32").stem == "cdna3_mfma_fp16_fp32"
    assert machines.find("a2_mmasync_fp16_fp32").stem == "a2_mma_fp16_fp32"
    # The mma.sync of Hopper has a row of its own for FP8.
    rule = machines.find("h200_mmasync_e5m2_fp16").rule
    assert isinstance(rule, DotSpec) and rule.addend.how == "late"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("h1000", "wgmma", "e4m3"), "machine must be one of .* did you mean h100?"),
        (("h100", "mfma", "e4m3"), "instruction must be one of mma, wgmma, mmasp, .* not 'mfma'"),
        (("h100", "wgmma", "e4m4"), "formats must be one of fp16, .* did you mean e4m3?"),
        (("h100", "wgmma", "e4m3", "fp64"), "output must be one of fp32, fp16, not 'fp64'"),
    ],
)
def test_a_combination_that_does_not_exist(arguments, message):
    with pytest.raises(UserError, match=message):
        machines.spec(*arguments)


@pytest.mark.parametrize(
    ("stem", "k", "scales", "message"),
    [
        ("h100_wgma_e4m3_fp32", 32, (), "as h100_wgmma_e4m3_fp32, .* not 'h100_wgma_e4m3_fp32'"),
        ("h100_wgmma_e4m3_fp32", 33, (), "K must be at most 32 or a multiple of it, not 33"),
        ("b200_nvf4_ue4m3_fp32", 64, (), "scale_a must be ue4m3 codes, one for each 16 values"),
        ("b200_nvf4_ue4m3_fp32", 64, (3, 4), r"scale_a must have the shape \(1, 4\), not \(1, 3\)"),
        ("b200_nvf4_ue4m3_fp32", 40, (4, 4), "K must be a multiple of the block of 16, not 40"),
        (
            "h100_wgmma_e4m3_fp32",
            32,
            (1, 1),
            "scale_a must be None, because the rule has no scales",
        ),
        ("amx_tdpbf16ps", 32, (1, 1), "scale_a must be None, because the rule has"),
        ("amx_tdpbf16ps", 33, (), "K must be a multiple of 32, not 33"),
        ("wh_mvmul_bf16_fp32_lofi", 8, (), "K must be a multiple of 16, not 8"),
    ],
)
def test_operands_that_do_not_fit(stem, k, scales, message):
    a = np.zeros((1, k), np.uint8)
    given = [np.zeros((1, n), np.uint8) for n in scales]
    with pytest.raises(ValueError, match=message):
        machines.run(stem, a, a, [0], *given)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"accumulate": "early"}, "accumulate must be one of tree, after, late, aligned"),
        ({"lanes": "odd"}, "lanes must be one of together, parity, halves, sixteens"),
        ({"flush": 1}, "flush must be a bool, not 1"),
        ({"flush_result": "never"}, "flush_result must be one of None, after, before"),
        ({"scale": "e8m0", "block": 4}, "scale must be one of ue8m0, ue4m3, ue6m2, not 'e8m0'"),
        ({"scale": "ue8m0", "block": 3}, "block must divide k = 8, not be 3"),
        ({"block": 4}, "block must be None without a scale, not 4"),
        ({"convert": "fp99"}, "convert must be one of"),
    ],
)
def test_a_parameter_that_does_not_exist(change, message):
    base = machines.spec("a100", "mma", "fp16")
    with pytest.raises((TypeError, ValueError), match=message):
        changed(base, **change)


def test_a_rule_that_needs_too_many_bits_is_refused():
    base = machines.spec("a100", "mma", "fp16")
    assert isinstance(base, DotSpec)
    operands = (np.zeros((1, 8), np.uint16), np.zeros((1, 8), np.uint16), [0])
    with pytest.raises(ValueError, match=r"the sum must fit into 62 bits, not 68$"):
        fused_dot(*operands, base.replace(window=60, flush=True))
    with pytest.raises(ValueError, match="window must be an int for a rule with flush=True, not"):
        fused_dot(*operands, base.replace(window=None, flush=True))


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"truncate": "odd"},
        {"accumulate": "after"},
        {"accumulate": "late"},
        {"flush_result": "after"},
        {"product_overflow": True},
    ],
)
@pytest.mark.parametrize("nan", [None, 0xFF])
def test_every_nan_of_a_format_without_infinity_has_the_code_of_the_rule(change, nan):
    """Overflows and infinities of both signs have that code, too."""
    given = {"input": "fp16", "output": "fp8e4m3", "k": 1, "window": 20, "truncate": "magnitude"}
    spec = dot_spec(**(given | change), nan=nan)
    one, large, infinity = 0x3C00, 0x7000, 0x7C00
    a = np.array([[large], [large | 0x8000], [infinity], [infinity | 0x8000], [0x7E00]], np.uint16)
    b = np.array([[large], [large], [one], [one], [one]], np.uint16)
    assert (fused_dot(a, b, np.zeros(5, np.uint8), spec) == (nan or 0x7F)).all()


# ------------------------------------------------------------------ flushing, as measured


#: Products and C of rows that a Xeon with AMX and AVX-512 BF16 returned +0 for. Each exact sum is
#: just below the least normal number, and the nearest number of FP32 is that number.
MEASURED_FLUSHES = [
    ("avx512_vdpbf16ps", [(0x0E00, 0xA600), (0, 0)], 0x00800000),
    ("avx512_vdpbf16ps", [(0x9BCE, 0x1808), (0, 0)], 0x00800000),
    ("amx_tdpbf16ps", [(0xB700, 0x0900), (0, 0), (0x0280, 0x3180)], 0),
    ("amx_tdpbf16ps", [(0x9C00, 0xA400), (0, 0), (0x1E00, 0x9600)], 0),
]


@pytest.mark.parametrize(("stem", "products", "c"), MEASURED_FLUSHES)
def test_intel_judges_a_tiny_result_as_though_exponents_were_unbounded(stem, products, c):
    rule = machines.find(stem).rule
    assert isinstance(rule, ChainSpec) and rule.k is not None
    terms = np.zeros((rule.k, 2), np.uint16)
    terms[: len(products)] = products
    a, b = terms.T
    assert machines.run(stem, a, b, c) == 0
    after = replace(rule, step=rule.step.replace(flush_result="after"))
    assert machines.compute(after, a, b, c) & 0x7FFFFFFF == 0x00800000


@pytest.mark.parametrize("rounding", ["RNE", "RZ", "RTO"])
@pytest.mark.parametrize("bits", [23, 9])
def test_tininess_agrees_with_exact_fractions(rounding, bits):
    rng = np.random.default_rng(3)
    n = 4000
    # Sums from a quarter of the least normal number to twice it, often just beside it
    a = (rng.integers(0, 1 << 16, (n, 2)) & 0x80FF | 0x2000).astype(np.uint16)
    b = (rng.integers(0, 1 << 16, (n, 2)) & 0x80FF | 0x1F00).astype(np.uint16)
    b[n // 2 :, 1] = rng.integers(0x1280, 0x1480, n - n // 2)
    a[n // 2 :, 0], b[n // 2 :, 0] = 0x2000, 0x2000
    rule = dot_spec(
        input="bf16", output="fp32", k=2, window=40, truncate="magnitude", rounding=rounding,
        result_bits=bits, flush_result="unbounded",
    )  # fmt: skip
    wide = rule.replace(output="fp64", result_bits=52, rounding="RZ", flush_result=None)
    exact = fused_dot(a, b, np.zeros(n, np.uint64), wide).view(np.float64)
    d = fused_dot(a, b, np.zeros(n, np.uint32), rule)
    _, exponent = np.frexp(exact)
    unit = np.ldexp(1.0, exponent - 1 - bits)
    low = np.floor(np.abs(exact) / unit)
    rest = np.abs(exact) / unit - low
    up = {"RNE": (rest > 0.5) | ((rest == 0.5) & (low % 2 == 1)), "RZ": rest > 1}
    digits = low + up.get(rounding, (rest > 0) & (low % 2 == 0))
    tiny = digits * unit < 2.0**-126
    assert 500 < tiny.sum() < n - 500
    np.testing.assert_array_equal((d & 0x7F800000) == 0, tiny)

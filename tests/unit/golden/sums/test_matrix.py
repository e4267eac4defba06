"""The generated kernels of matrices against the plain forms of their rules, bit for bit."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.branches import branches
from tests.support.changed_rules import changed
from tests.support.machine_operands import KINDS, codes, operands
from tests.unit.golden.sums.test_rows import WITHOUT
from vitruvian import machines
from vitruvian.golden.cube.mmad import mmad, plain_mmad
from vitruvian.golden.fp import from_float
from vitruvian.golden.fp.codec import as_codes, code_dtype, to_float
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.golden.machines.products import _by_rows
from vitruvian.golden.machines.spec import ChainSpec, PhaseSpec
from vitruvian.golden.machines.table import machines as table
from vitruvian.golden.sums import dots, products, store
from vitruvian.golden.sums.products import Operands, compute
from vitruvian.sim.machines.samples import samples

#: Rows that together take every branch of the generator.
ROWS = (
    *("a100_mma_fp16_fp32", "b200_mxf8f6f4_e5m2xe2m1_fp32", "b200_nvf4_ue4m3_fp32"),
    *("h100_mmasync_e4m3_fp16", "cdna1_mfma_fp16_fp32", "cdna1_mfma_fp32_fp32"),
    *("arm_bfdot_ebf0", "arm_bfdot_ebf1", "cdna2_mfma_fp64_fp64", "cdna2_mfma_bf161k_fp32"),
    *("cdna3_mfma_bf16_fp32", "cdna3_mfma_fp8xbf8_fp32", "gaudi2_fp16_fp32", "gaudi2_fp32_fp32"),
    *("gaudi2_tf32_fp32", "rvbna_bf16_n8_fp32", "amx_tdpbf16ps", "gaudi1_bf16_fp32"),
    *("wh_mvmul_bf16_fp32_hifi4", "wh_mvmul_e4m3_fp32_lofi", "bh_mvmul_fp16_fp16_hifi3"),
    *("applem1_fma16_fp16_fp16", "h200_mmasync_e4m3_fp32"),
)
#: One of them for each way to add; a kernel takes seconds to compile.
FEW = ("a100_mma_fp16_fp32", "cdna1_mfma_fp16_fp32", "gaudi2_fp16_fp32", "cdna2_mfma_fp64_fp64")


@pytest.fixture(autouse=True)
def plain():
    """Compute the plain forms without the kernels of ``golden.sums``."""
    with dots.plain_forms():
        yield


def rule_of(stem) -> Any:
    """Return the rule of a row of the table; its class depends on the row."""
    return machines.find(stem).rule


def both(rule, x, of=None, **options):
    """Return a product by the kernel and by the plain form, which may be that of another rule."""
    return compute(x, rule, **options), _by_rows(x, of or rule)


def check(stem: str) -> None:
    """Compare the kernel of a row with the plain form, in more than a tile and than a strip."""
    rule = rule_of(stem)
    sizes = [(5 if isinstance(rule, PhaseSpec) else 12, 260)] * len(KINDS)
    for seed, (kind, size) in enumerate([*zip(KINDS, sizes, strict=True), ("few", (66, 5))]):
        x = operands(np.random.default_rng(seed), rule, kind, *size)
        got, expected = both(rule, x)
        np.testing.assert_array_equal(got, expected, err_msg=f"{stem}, {kind}, seed {seed}")


@pytest.mark.parametrize("stem", FEW)
def test_kernels_equal_the_plain_form(stem):
    check(stem)


@pytest.mark.slow
@pytest.mark.parametrize("stem", [stem for stem in ROWS if stem not in FEW])
def test_kernels_of_every_branch_equal_the_plain_form(stem):
    check(stem)


def test_the_rows_take_every_branch_of_the_generator():
    rules = [row.rule for row in table().values() if row.kind != "integer"]
    every = branches(products.text, (rule for rule in rules if products.text(rule) is not None))
    assert len(every) > 1000
    assert not every - branches(products.text, map(rule_of, ROWS))
    assert every - branches(products.text, map(rule_of, FEW))


def test_nearly_every_rule_for_floating_point_has_a_kernel():
    without = {
        stem
        for stem, row in table().items()
        if row.kind not in ("integer", "rdna") and products.text(row.rule) is None
    }
    blocks = {s for s in without if getattr(rule_of(s), "shared_bits", None) is not None}
    assert without - blocks == WITHOUT


@pytest.mark.long
def test_every_rule_of_the_table_equals_its_plain_form():
    done: list[Any] = []
    for stem, row in table().items():
        if row.kind == "integer" or row.rule in done or products.text(row.rule) is None:
            continue
        done.append(row.rule)
        check(stem)
    assert len(done) > 280


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stem", "change"),
    [
        ("b200_nvf4_ue4m3_fp32", {"window": 34}),
        ("gaudi3_fp32_fp32", {"slices": ((0xFF, 0xFFFFFF), (0xFFFF00, 0xFFFFFF))}),
        ("rvbna_bf16_n8_fp32", {"window": 25}),
        ("wh_mvmul_bf16_fp32_hifi4", {"phases": 3}),
        ("cdna1_mfma_fp16_fp32", {"k": 2}),
        ("cdna3_mfma_bf16_fp32", {"product_overflow": False}),
        ("gaudi1_bf16_fp32", {"add_c": "last"}),
        ("avx512_vdpbf16ps", {"descending": False}),
    ],
)
def test_a_mistake_in_a_parameter_shows(stem, change):
    rule = rule_of(stem)
    wrong = changed(rule, **change)
    x = [operands(np.random.default_rng(7), rule, kind, rows=40) for kind in KINDS]
    differ = [both(wrong, part, of=rule) for part in x]
    assert sum((got != expected).sum() for got, expected in differ) > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stem", "old", "new"),
    [
        ("a100_mma_fp16_fp32", "np.int32(max(np.int32(tops[r]), top))", "top"),
        ("a100_mma_fp16_fp32", "np.int32(part[j] + ", "np.int32("),
        ("a100_mma_bf16_fp32", "rare |= np.int32(base != kept)", "rare |= np.int32(base > kept)"),
        ("a100_mma_bf16_fp32", "rare |= np.int32(base != kept)", "rare |= np.int32(base < kept)"),
        ("a100_mma_fp16_fp32", " - np.int32(np.int32(t) > size)", ""),
        ("h100_mma_fp16_fp32", "part[r] + np.int32(rest[r] >> 8)", "part[r]"),
        ("h100_mma_fp16_fp32", "-total - more", "-total"),
        ("cdna1_mfma_fp16_fp32", "if unsure != 0:", "if unsure > 1:"),
        ("cdna1_mfma_fp16_fp32", "scale[r] = power(base) * ", "scale[r] = 0.0 * power(base) * "),
    ],
)
def test_a_mistake_in_the_text_shows(stem, old, new):
    rule = rule_of(stem)
    x = [
        operands(np.random.default_rng(seed), rule, kind, rows=66, columns=260)
        for seed, kind in enumerate(KINDS)
    ]
    assert wrong_results(rule, old, new, x)


def wrong_results(rule: Any, old: str, new: str, products_: list[Operands]) -> int:
    """Return how many results of a kernel with a changed text differ from the plain form."""
    text = products.text(rule) or ""
    assert text.count(old) == 1
    module: Any = store.load(text.replace(old, new))
    wrong = 0
    for x in products_:
        d = np.empty_like(x.c)
        module.rows(*module.left(x.a), *module.right(x.b), x.c, d)
        wrong += int((d != _by_rows(x, rule)).sum())
    return wrong


def test_sums_of_more_than_32_bits():
    """Sixteen products near 4 and C, in units of 2^-25, have up to 33 bits with their sign."""
    rule = rule_of("h100_mma_fp16_fp32")
    rng = np.random.default_rng(9)
    a, b = (rng.integers(0x3FF8, 0x4000, shape).astype(np.uint16) for shape in ((40, 32), (32, 60)))
    a[::3] |= 0x8000  # negative sums
    c = rng.integers(0x3FE00000, 0x40000000, (40, 60)).astype(np.uint32)
    c[:, ::2] |= np.uint32(0x80000000)
    x = Operands(a, b, c)
    got, expected = both(rule, x)
    np.testing.assert_array_equal(got, expected)
    assert wrong_results(rule, "np.int32(high >= 4194304)", "np.int32(0)", [x])
    assert wrong_results(rule, "high << 1", "high << 2", [x])


@pytest.mark.slow
def test_flushing_is_seen():
    rule = machines.find("amx_tdpbf16ps").rule
    assert isinstance(rule, ChainSpec)
    x = operands(np.random.default_rng(7), rule, "tiny", rows=40)
    kept = replace(rule, step=rule.step.replace(flush=False, flush_result=None))
    got, expected = both(kept, x, of=rule)
    assert (got != expected).any()


def test_sums_that_cancel_and_ties_are_exact():
    rule = machines.find("cdna1_mfma_fp16_fp32").rule
    rng = np.random.default_rng(3)
    a = rng.integers(1, 1 << 16, (40, 8)).astype(np.uint16) & 0x7BFF
    a[:, 1::2] = a[:, ::2] ^ 0x8000  # every other product takes the one before away
    b = rng.integers(0, 1 << 16, (8, 30)).astype(np.uint16) & 0x7BFF
    b[1::2] = b[::2]
    c = rng.integers(0, 1 << 32, (40, 30)).astype(np.uint32) & 0xBFFFFFFF
    got, expected = both(rule, Operands(a, b, c))
    np.testing.assert_array_equal(got, expected)


def test_a_sum_of_zeros_has_the_sign_of_ieee_754():
    spec = PRESETS["ieee"].spec("fp16", "fp32", k=8)
    signs = np.array([0x0000, 0x8000], np.uint16)
    a, b = np.repeat(signs[:, None], 8, axis=1), np.repeat(0x3C00 | signs[None], 8, axis=0)
    c = np.array([[0, 0x80000000], [0x80000000, 0]], np.uint32)
    got, expected = both(spec, Operands(a, b.astype(np.uint16), c))
    np.testing.assert_array_equal(got, expected)
    assert (got == 0x80000000).any() and (got == 0).any()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stem", "change"),
    [
        ("gaudi2_fp16_fp32", {"window": 45}),
        ("gaudi2_fp32_fp32", {"slices": ((0xFFFFFF, 0xFFFFFF),)}),
        ("rvbna_bf16_n8_fp32", {"window": 25}),
    ],
)
def test_sums_that_cancel_show_the_truncated_bits(stem, change):
    """C, or the second product, takes the first product away; small terms are left."""
    rule = rule_of(stem)
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((30, rule.k)), rng.standard_normal((rule.k, 40))
    a[:, 1:] *= 2.0 ** (4 - rule.sum.window // 2)
    b[1:] *= 2.0 ** (4 - rule.sum.window // 2)
    if rule.addend.how == "late":
        a[:, 1], b[1] = a[:, 0], -b[0]
    x, y = (from_float(v.ravel(), rule.input).reshape(v.shape) for v in (a, b))
    c = np.zeros((30, 40), np.float32)
    if rule.addend.how == "after":
        c = -np.outer(to_float(x[:, 0], rule.input), to_float(y[0], rule.input)).astype(np.float32)
    x = Operands(x, y, c.view(np.uint32))
    got, expected = both(rule, x)
    np.testing.assert_array_equal(got, expected)
    assert (both(changed(rule, **change), x, of=rule)[0] != expected).any()


@pytest.mark.slow
@pytest.mark.parametrize(
    "stem",
    [
        *("gaudi2_bf16_fp32", "gaudi2_fp32_fp32", "rvbna_bf16_n8_fp32"),
        *("arm_bfdot_ebf0", "arm_bfdot_ebf1"),
    ],
)
def test_sums_near_the_least_normal_number(stem):
    rule = rule_of(stem)
    rng = np.random.default_rng(6)
    a, b = rng.standard_normal((40, 2 * rule.k)), rng.standard_normal((2 * rule.k, 40))
    a, b = (from_float((v * 2.0**-64).ravel(), rule.input).reshape(v.shape) for v in (a, b))
    c = (rng.standard_normal((40, 40)) * 2.0**-126).astype(np.float32)
    x = Operands(a, b, c.view(np.uint32))
    got, expected = both(rule, x)
    np.testing.assert_array_equal(got, expected)
    if stem.startswith("gaudi2"):
        assert (both(rule.replace(flush_result=None), x, of=rule)[0] != expected).any()


@pytest.mark.slow
def test_kernels_give_the_results_of_the_samples():
    assert check_samples(ROWS) >= 8 * 16


@pytest.mark.long
def test_every_kernel_gives_the_results_of_the_samples():
    stems = [stem for stem, row in table().items() if row.kind != "integer"]
    assert check_samples([stem for stem in stems if products.text(rule_of(stem))]) >= 8 * 90


def check_samples(stems: Iterable[str]) -> int:
    """Compare kernels with the samples of rows; return how many.

    Row i of A and column i of B are sample i, so its result is on the diagonal.
    """
    done = 0
    for stem in stems:
        data = samples().get(stem)
        rule = rule_of(stem)
        if data is None or getattr(rule, "scales", None) is not None:
            continue
        formats = (rule.input, rule.input_b, rule.output)
        codes = zip((data.a, data.b.T, data.c), formats, strict=True)
        a, b, c = (as_codes(v, f) for v, f in codes)
        x = Operands(a, np.ascontiguousarray(b), np.repeat(c[:, None], len(c), axis=1))
        got = np.diag(compute(x, rule))
        values = to_float(got, rule.output), to_float(as_codes(data.d, rule.output), rule.output)
        np.testing.assert_array_equal(*values, err_msg=stem)
        done += len(got)
    return done


@pytest.mark.slow
def test_the_two_roundings_of_arm_differ():
    nearest, odd = (rule_of(f"arm_bfdot_ebf{n}") for n in (1, 0))
    x = operands(np.random.default_rng(7), odd, "bits", rows=40)
    got, expected = both(nearest, x, of=odd)
    assert (got != expected).any()


@pytest.mark.slow
@pytest.mark.parametrize("stem", ["wh_mvmul_bf16_fp32_hifi4", "bh_mvmul_e5m2_fp16_hifi2"])
def test_every_code_is_a_number_to_tenstorrent(stem):
    rule = rule_of(stem)
    rng = np.random.default_rng(8)
    shapes = ((rule.input, (20, 32)), (rule.input, (32, 30)), (rule.output, (20, 30)))
    x = Operands(
        *(rng.integers(0, 1 << f.code_bits, shape).astype(code_dtype(f)) for f, shape in shapes)
    )
    got, expected = both(rule, x)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.slow
@pytest.mark.parametrize(("machine", "expected"), [("wh", -16.0), ("bh", -(2.0**-23))])
def test_the_erratum_of_wormhole(machine, expected):
    """Two products that cancel have the exponent of 1, and C is −1 in the last place there."""
    rule = rule_of(f"{machine}_mvmul_bf16_fp32_lofi")
    a, b = np.zeros((1, 16), np.uint16), np.zeros((16, 1), np.uint16)
    a[0, :2], b[:2, 0] = 0x3F80, (0x3F80, 0xBF80)
    x = Operands(a, b, np.array([[-(2.0**-23)]], np.float32).view(np.uint32))
    got, plain = both(rule, x)
    assert got.view(np.float32) == plain.view(np.float32) == expected


def test_threads_and_progress():
    rule = rule_of("a100_mma_fp16_fp32")
    x = operands(np.random.default_rng(1), rule, "normal", rows=150)
    seen = []
    got, expected = both(rule, x, threads=3, progress=lambda *step: seen.append(step))
    np.testing.assert_array_equal(got, expected)
    assert seen == sorted(seen) and seen[-1] == (150, 150) and len(seen) > 2


@pytest.mark.parametrize("k", [16, 5])
def test_large_products_take_the_kernel(k, monkeypatch):
    spec = PRESETS["a100"].spec("fp16", "fp32")
    taken: list[Any] = []
    monkeypatch.setattr(products, "is_worth", lambda *_: True)
    monkeypatch.setattr(products, "compute", lambda *x: taken.append(x[1].k) or compute(*x))
    rng = np.random.default_rng(4)
    a = codes(rng, spec.input, (2, 130, k), "normal")
    b, c = codes(rng, spec.input, (k, 130), "normal"), codes(rng, spec.output, (130, 130), "normal")
    got = mmad(a, b, c, spec=spec)
    assert taken == [min(k, spec.k)] * 2 and got.shape == (2, 130, 130)
    np.testing.assert_array_equal(got[1], plain_mmad(a[1], b, c, spec))

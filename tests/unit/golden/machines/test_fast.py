"""The compiled loops of the rules of machines against the plain forms, bit for bit."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.changed_rules import changed
from tests.support.machine_operands import KINDS, operands
from vitruvian import machines
from vitruvian.golden.fp import DotSpec, from_float
from vitruvian.golden.fp.codec import as_codes, code_dtype, to_float
from vitruvian.golden.machines.families import family
from vitruvian.golden.machines.fast import Operands, fast_product
from vitruvian.golden.machines.products import _by_rows
from vitruvian.golden.machines.spec import ChainSpec, PhaseSpec
from vitruvian.golden.machines.table import machines as table
from vitruvian.golden.sums.dots import plain_forms
from vitruvian.sim.machines.samples import samples

#: At least one row of each family, with every parameter that its loops have.
ROWS = (
    *("cdna1_mfma_fp16_fp32", "cdna1_mfma_bf16_fp32", "cdna1_mfma_fp32_fp32"),
    *("cdna2_mfma_fp64_fp64", "cdna2_mfma_bf161k_fp32", "cdna2_mfma_bf16_fp32"),
    *("cdna3_mfma_fp16_fp32", "cdna3_mfma_bf16_fp32", "cdna3_mfma_fp8xbf8_fp32"),
    *("amx_tdpbf16ps", "amx_tmmultf32ps", "avx512_vdpbf16ps", "gaudi1_bf16_fp32"),
    *("gaudi2_fp32ieee_fp32", "gaudi3_e5m2xe4m3_fp32", "h100_mmasync_e4m3_fp16"),
    *("b200_mmasync_e4m3xe5m2_fp32", "b200_mxf8f6f4_e5m2xe2m1_fp32", "b200_mxf4_fp32"),
    *("b200_nvf4_ue4m3_fp32", "gaudi3_fp16_fp32", "gaudi3_fp32_fp32"),
    *("gaudi2_bf16_fp32", "gaudi2_fp16_fp32", "gaudi2_tf32_fp32", "gaudi2_fp32_fp32"),
    *("gaudi2_e4m3ixe5m2_fp32", "gaudi2_e5m2_fp32", "rvbna_bf16_n1_fp32", "rvbna_bf16_n8_fp32"),
    *("rvbna_e4m3xe5m2_n64_fp32", "arm_bfdot_ebf0", "arm_bfdot_ebf1"),
    *("wh_mvmul_bf16_fp32_hifi4", "wh_mvmul_tf32_bf16_hifi2", "bh_mvmul_fp16_fp16_hifi3"),
    *("bh_mvmul_e5m2_fp32_hifi4", "wh_mvmul_e4m3_fp16_lofi"),
)


@pytest.fixture(autouse=True)
def plain():
    """Compute the plain forms without the kernels of ``golden.sums``."""
    with plain_forms():
        yield


FAMILIES = {"chopped", "late", "grouped", "aligned", "exact", "chain", "pairs"}
FAMILIES |= {"apart", "two", "phases"}


def rule_of(stem) -> Any:
    """Return the rule of a row of the table; its class depends on the row."""
    return machines.find(stem).rule


def both(rule, x, of=None, **options):
    """Return a product by the loops and by the plain form, which may be that of another rule."""
    plain = of or rule
    fast = fast_product(x, rule, lambda part: _by_rows(part, rule), **options)
    return fast, _by_rows(x, plain)


def test_the_rows_are_of_every_family():
    assert {family(machines.find(stem).rule) for stem in ROWS} == FAMILIES


@pytest.mark.parametrize("stem", ROWS)
def test_the_loops_equal_the_plain_form(stem):
    rule = machines.find(stem).rule
    for seed, kind in enumerate(KINDS):
        x = operands(np.random.default_rng(seed), rule, kind)
        got, expected = both(rule, x)
        np.testing.assert_array_equal(got, expected, err_msg=f"{stem}, {kind}, seed {seed}")


@pytest.mark.long
def test_the_loops_equal_the_plain_form_in_every_row():
    rules = {stem: row.rule for stem, row in table().items() if family(row.rule)}
    assert len(rules) > 640
    done = []
    for stem, rule in rules.items():
        if rule in done:
            continue
        done.append(rule)
        for seed, kind in enumerate(KINDS):
            # More columns than a strip has, more rows than a tile (few for slow plain forms)
            rows = 3 if isinstance(rule, PhaseSpec) else 66
            x = operands(np.random.default_rng(99 + seed), rule, kind, rows=rows, columns=260)
            got, expected = both(rule, x)
            np.testing.assert_array_equal(got, expected, err_msg=f"{stem}, {kind}")
    assert len(done) > 275


@pytest.mark.parametrize(
    ("stem", "change"),
    [
        ("b200_mxf8f6f4_e4m3_fp32", {"window": 24}),
        ("b200_nvf4_ue4m3_fp32", {"window": 34}),
        ("b200_mmasync_e4m3_fp32", {"window": 24}),
        ("gaudi3_e5m2xe4m3_fp32", {"convert": None}),
        ("gaudi3_fp16_fp32", {"slices": ((0xFF, 0x7FF), (0x700, 0x7FF))}),
        ("gaudi2_e5m2_fp32", {"window": 23}),
        ("gaudi2_bf16_fp32", {"flush": False}),
        ("rvbna_bf16_n8_fp32", {"window": 25}),
        ("wh_mvmul_tf32_bf16_hifi2", {"phases": 3}),
        ("cdna1_mfma_fp16_fp32", {"k": 2}),
        ("cdna3_mfma_bf16_fp32", {"k": 4}),
        ("cdna3_mfma_bf16_fp32", {"product_overflow": False}),
        ("cdna3_mfma_fp8xbf8_fp32", {"lanes": "together"}),
        ("amx_tdpbf16ps", {"accumulators": 1}),
        ("avx512_vdpbf16ps", {"descending": False}),
        ("gaudi1_bf16_fp32", {"add_c": "last"}),
        ("cdna2_mfma_bf161k_fp32", {"k": 2}),
    ],
)
def test_a_mistake_in_a_parameter_shows(stem, change):
    rule = machines.find(stem).rule
    wrong = changed(rule, **change)
    assert family(wrong) is not None
    if isinstance(rule, ChainSpec) or "k" in change:
        x = [operands(np.random.default_rng(7), rule, kind) for kind in KINDS]
    else:
        x = [operands(np.random.default_rng(7), rule, kind, rows=40) for kind in KINDS]
    differ = [both(wrong, part, of=rule) for part in x]
    assert sum((got != expected).sum() for got, expected in differ) > 0


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


@pytest.mark.parametrize(
    ("stem", "change"),
    [
        ("gaudi2_bf16_fp32", {"window": 45}),
        ("gaudi2_fp16_fp32", {"window": 45}),
        ("gaudi2_tf32_fp32", {"window": 45}),
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


@pytest.mark.parametrize(
    "stem",
    [
        *("gaudi2_bf16_fp32", "gaudi2_tf32_fp32", "gaudi2_fp32_fp32", "rvbna_bf16_n8_fp32"),
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


def test_the_loops_give_the_results_of_the_samples():
    """Row i of A and column i of B are sample i, so its result is on the diagonal."""
    done = 0
    for stem, data in samples().items():
        rule: Any = data.machine.rule
        sliced = isinstance(rule, DotSpec) and rule.products.slices
        if family(rule) not in ("apart", "two", "phases") and not sliced:
            continue
        formats = (rule.input, rule.input_b, rule.output)
        codes = zip((data.a, data.b.T, data.c), formats, strict=True)
        a, b, c = (as_codes(v, f) for v, f in codes)
        x = Operands(a, np.ascontiguousarray(b), np.repeat(c[:, None], len(c), axis=1))
        got = np.diag(fast_product(x, rule, lambda part, rule=rule: _by_rows(part, rule)))
        values = to_float(got, rule.output), to_float(as_codes(data.d, rule.output), rule.output)
        np.testing.assert_array_equal(*values, err_msg=stem)
        done += len(got)
    assert done >= 8 * 20


def test_the_two_roundings_of_arm_differ():
    nearest, odd = (rule_of(f"arm_bfdot_ebf{n}") for n in (1, 0))
    x = operands(np.random.default_rng(7), odd, "bits", rows=40)
    got, expected = both(nearest, x, of=odd)
    assert (got != expected).any()


@pytest.mark.parametrize("stem", ["wh_mvmul_bf16_fp32_hifi2", "bh_mvmul_e5m2_fp16_hifi2"])
def test_every_code_is_a_number_to_tenstorrent(stem):
    rule = rule_of(stem)
    rng = np.random.default_rng(8)
    shapes = ((rule.input, (20, 32)), (rule.input, (32, 30)), (rule.output, (20, 30)))
    x = Operands(
        *(rng.integers(0, 1 << f.code_bits, shape).astype(code_dtype(f)) for f, shape in shapes)
    )
    got, expected = both(rule, x)
    np.testing.assert_array_equal(got, expected)


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
    rule = machines.find("cdna3_mfma_bf16_fp32").rule
    x = operands(np.random.default_rng(1), rule, "normal", rows=150)
    seen = []
    got, expected = both(rule, x, threads=3, progress=lambda *step: seen.append(step))
    np.testing.assert_array_equal(got, expected)
    assert seen == sorted(seen) and seen[-1] == (150, 150) and len(seen) > 2

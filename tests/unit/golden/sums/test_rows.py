"""The generated kernels of rows against the plain forms of their rules, bit for bit."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.support.branches import branches
from tests.support.machine_operands import KINDS, codes
from vitruvian.common import cache
from vitruvian.golden.fp import fused_dot
from vitruvian.golden.fp.codec import code_dtype
from vitruvian.golden.fp.spec import dot_spec
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.golden.machines.run import compute
from vitruvian.golden.machines.spec import ChainSpec, PhaseSpec
from vitruvian.golden.machines.table import find, machines
from vitruvian.golden.sums import dots, rows, store
from vitruvian.golden.sums.rule import facts

#: One rule of each way in which sums are computed; a kernel takes seconds to compile.
FEW = ("a100_mma_fp16_fp32", "gaudi2_tf32_fp32", "cdna1_mfma_fp16_fp32", "wh_mvmul_e4m3_fp16_lofi")
#: Rules that, with these, take every branch of the generator.
MORE = (
    *("b200_nvf4_ue4m3_fp32", "b200_mxf8f6f4_e5m2xe2m1_fp32", "h100_mmasync_e4m3_fp16"),
    *("gaudi1_bf16_fp32", "gaudi3_fp16_fp32", "cdna1_mfma_fp32_fp32", "cdna2_mfma_fp64_fp64"),
    *("cdna2_mfma_bf161k_fp32", "cdna3_mfma_fp16_fp32", "cdna3_mfma_fp8xbf8_fp32"),
    *("arm_fdot_e4m3_fp16", "arm_bfdot_ebf0", "arm_bfdot_ebf1", "rvbna_bf16_n8_fp32"),
    *("amx_tdpbf16ps", "wh_mvmul_tf32_bf16_hifi2", "bh_mvmul_e5m2_fp32_hifi4"),
    "applem1_fma16_fp16_fp16",
)
#: Rules that no kernel computes
WITHOUT = {
    *(f"amx_tdp{pair}ps_pairs" for pair in ("bf8", "hf8", "bhf8", "hbf8")),
    *("amx_tdpbhf8ps_lanes", "amx_tdphbf8ps_lanes", "applem2_matfp_bf16_bf16"),
}
#: Others, for the long test of a million rows.
OTHERS = (
    *("v100_mma_fp16_fp16", "a100_mma_tf32_fp32", "h100_wgmma_e4m3_fp32", "gaudi3_e4m3_fp32"),
    *("gaudi3_fp32_fp32", "b200_mmasync_e4m3xe5m2_fp32", "b200_mxf4_fp32", "gaudi2_fp16_fp32"),
    *("gaudi2_fp32_fp32", "gaudi2_e4m3ixe5m2_fp32", "gaudi2_fp32ieee_fp32", "avx512_vdpbf16ps"),
    "bh_mvmul_fp16_fp16_hifi3",
)


def few(format, shape, rng):
    """Return random bit patterns, infinities and NaNs among them."""
    bits = rng.integers(0, 1 << format.code_bits, shape, dtype=np.uint64)
    return bits.astype(code_dtype(format))


def operands(rule, n=3000, steps=1, seed=1) -> tuple[tuple[np.ndarray, ...], dict[str, np.ndarray]]:
    """Return rows that mix plain numbers, zeros, subnormals, ties, infinities and NaNs."""
    rng = np.random.default_rng(seed)
    k = steps * (rule.k or 8) if (rule.k or 8) > 1 else 8 * steps
    made: list[np.ndarray] = []
    for format, shape in ((rule.input, (n, k)), (rule.input_b, (n, k)), (rule.output, (n,))):
        # A row has one kind, another than its neighbours, and any code at a few places.
        kinds = np.stack([codes(rng, format, shape, kind) for kind in KINDS])
        which = rng.integers(0, len(KINDS), (n, *(1 for _ in shape[1:])))
        mixed = np.choose(np.broadcast_to(which, shape), kinds)
        made.append(np.where(rng.random(shape) < 0.02, few(format, shape, rng), mixed))
    scales: dict[str, np.ndarray] = {}
    if getattr(rule, "scales", None) is not None:
        low, high = (118, 137) if rule.scales.format.name == "ue8m0" else (0, 128)
        for name in ("scale_a", "scale_b"):
            near = rng.integers(low, high, (n, k // rule.scales.block))
            any_scale = rng.integers(0, 256, near.shape)
            scales[name] = np.where(rng.random(near.shape) < 0.05, any_scale, near).astype(np.uint8)
    return tuple(made), scales


@pytest.fixture
def always(monkeypatch):
    """Let every call use a kernel if the rule has one."""
    for name in ("SMALL", "MANY", "MANY_PLAIN"):
        monkeypatch.setattr(dots, name, 0)


def found(rule: Any, terms: int, load: bool = True) -> Any:
    """Return the kernel of a rule, loaded or not, or None."""
    find_kernel: Any = dots.kernel
    if isinstance(rule, ChainSpec):
        find_kernel = dots.chain_kernel
    if isinstance(rule, PhaseSpec):
        find_kernel = dots.phase_kernel
    return (find_kernel if load else find_kernel.__wrapped__)(rule, terms)


def check(rule: Any, name: str, steps: int = 1) -> None:
    """Compare a kernel with the plain form."""
    x, scales = operands(rule, steps=steps)
    assert found(rule, x[0].shape[1]) is not None, name
    got = compute(rule, *x, **scales)
    with dots.plain_forms():
        expected = compute(rule, *x, **scales)
    np.testing.assert_array_equal(got, expected, err_msg=name)


@pytest.mark.parametrize("stem", FEW)
def test_kernels_equal_the_plain_form(stem, always):
    check(find(stem).rule, stem)


def test_nearly_every_rule_for_floating_point_has_a_kernel(monkeypatch):
    monkeypatch.setattr(dots, "load", lambda text: SimpleNamespace(rows=text))
    without = {
        row.stem
        for row in machines().values()
        if row.kind not in ("integer", "rdna") and found(row.rule, row.rule.k or 8, False) is None
    }
    assert without == WITHOUT


def test_the_rules_take_every_branch_of_the_generator(monkeypatch):
    monkeypatch.setattr(dots, "load", lambda text: SimpleNamespace(rows=text))

    def taken(rules):
        return branches(lambda rule: found(rule, rule.k or 8, False), rules)

    none = {stem for stem, row in machines().items() if row.kind in ("integer", "rdna")} | WITHOUT
    every = taken(row.rule for stem, row in machines().items() if stem not in none)
    assert len(every) > 1000
    assert not every - taken(find(stem).rule for stem in FEW + MORE)
    assert every - taken(find(stem).rule for stem in FEW)


@pytest.mark.slow
@pytest.mark.parametrize("stem", MORE)
def test_kernels_of_every_branch_equal_the_plain_form(stem, always):
    check(find(stem).rule, stem)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("preset", "input", "output", "k"),
    [("ieee", "fp16", "fp32", 8), ("ieee", "fp32", "fp32", 4), ("exact", "bf16", "fp32", 8)],
)
def test_kernels_of_presets_equal_the_plain_form(preset, input, output, k, always):
    check(PRESETS[preset].spec(input, output, k=k), preset)


@pytest.mark.slow
@pytest.mark.parametrize("stem", ["a100_mma_fp16_fp32", "b200_nvf4_ue4m3_fp32", "arm_bfdot_ebf0"])
def test_a_block_begins_with_the_result_of_the_last(stem, always):
    check(find(stem).rule, stem, steps=3)


@pytest.mark.long
def test_every_rule_of_the_table_equals_its_plain_form(always):
    done: list[Any] = []
    for stem, row in machines().items():
        rule: Any = row.rule
        if row.kind == "integer" or rule in done or getattr(rule, "shared_bits", None) is not None:
            continue
        done.append(rule)
        check(rule, stem)
    assert len(done) > 280


@pytest.mark.long
@pytest.mark.parametrize("stem", FEW + MORE + OTHERS)
@pytest.mark.parametrize("kind", ["normal", "codes"])
def test_a_million_rows_equal_the_plain_form(stem, kind, always):
    rule: Any = find(stem).rule
    rng = np.random.default_rng(11)
    for _ in range(16):
        (a, *_), scales = operands(rule, 2)  # its shapes
        n, k = 1 << 16, a.shape[1]
        pairs = ((rule.input, (n, k)), (rule.input_b, (n, k)), (rule.output, (n,)))
        if kind == "normal":
            x = [codes(rng, format, shape, kind) for format, shape in pairs]
        else:
            x = [few(format, shape, rng) for format, shape in pairs]
        scales = {
            name: rng.integers(0, 256, (n, s.shape[1])).astype(np.uint8)
            for name, s in scales.items()
        }
        got = compute(rule, *x, **scales)
        with dots.plain_forms():
            expected = compute(rule, *x, **scales)
        np.testing.assert_array_equal(got, expected, err_msg=stem)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("emax[r] = max(emax[r], np.int32(top))", "emax[r] = np.int32(top)"),
        ("np.int64(24 - max(", "np.int64(25 - max("),
        (
            "drop = np.int64(52 - exponent + place if exponent >= place else 63)",
            "drop = np.int64(0)",
        ),
        ("        specials(p, z, emax, y, n, 0)", "        pass"),
        ("np.trunc(", "np.rint("),
    ],
)
def test_a_mistake_in_the_text_shows(old, new):
    rule: Any = find("a100_mma_fp16_fp32").rule
    text = rows.source(facts(rule), "A mutant.")
    assert text.count(old) == 1
    (a, b, c), _ = operands(rule)
    d = np.empty_like(c)
    store.load(text.replace(old, new)).rows(a.ravel(), b.ravel(), c, d, 1)
    with dots.plain_forms():
        assert (d != fused_dot(a, b, c, rule)).any()


def test_a_rule_is_compiled_for_much_work_only(monkeypatch):
    rule: Any = find("v100_mma_fp16_fp32").rule
    asked: list[int] = []
    monkeypatch.setattr(dots, "kernel", lambda spec, terms: asked.append(terms))
    monkeypatch.setattr(dots, "_work", {})
    monkeypatch.setattr(dots, "MANY_PLAIN", 3 * 4000)
    x, _ = operands(rule, 1000)
    for _ in range(2):
        fused_dot(x[0], x[1], x[2], rule)
        fused_dot(x[0][:10], x[1][:10], x[2][:10], rule)
    assert not asked
    with dots.plain_forms():
        fused_dot(x[0], x[1], x[2], rule)
    assert not asked
    fused_dot(x[0], x[1], x[2], rule)
    assert asked == [rule.k]
    fused_dot(x[0][:10], x[1][:10], x[2][:10], rule)
    assert asked == [rule.k]


def test_a_rule_without_a_kernel_keeps_its_plain_form(always):
    spec = dot_spec(input="fp64", output="fp64", k=2, window=106)
    assert dots.kernel(spec, 2) is None
    one = np.full((3, 2), spec.input.one, np.uint64)
    assert (fused_dot(one, one, one[:, 0], spec) == 0x4008 << 48).all()


SMALL_TEXT = '''"""Text of a test."""
import numba

@numba.njit("int64(int64)", cache=True)
def rows(x):
    return x + 1
'''


def test_a_text_is_stored_once(monkeypatch, tmp_path):
    monkeypatch.setenv("VITRUVIAN_CACHE", str(tmp_path))
    module = store.load(SMALL_TEXT)
    assert module.rows(1) == 2 and store.load(SMALL_TEXT) is module
    (path,) = (tmp_path / "sums").glob("*.py")
    assert path.read_text() == SMALL_TEXT and list(
        (tmp_path / "sums" / "__pycache__").glob("*.nbc")
    )


@pytest.mark.parametrize("problem", ["refused", "not writable"])
def test_a_store_that_cannot_be_used_is_not_needed(problem, monkeypatch, tmp_path):
    monkeypatch.setenv("VITRUVIAN_CACHE", str(tmp_path))
    text = SMALL_TEXT.replace("Text", problem)
    if problem == "refused":
        monkeypatch.setattr(cache, "trusted_root", refuse)
    else:
        (tmp_path / "sums").write_text("a file where a folder should be")
    assert store.load(text).rows(2) == 3
    assert not list(tmp_path.rglob("*.nbc"))


def refuse():
    """Refuse the store."""
    raise cache.CacheError("VITRUVIAN_CACHE must be another folder")

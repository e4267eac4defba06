"""Golden against the matrix instructions of an H200, which ran the program of the probe kit."""

import hashlib
from functools import lru_cache

import numpy as np
import pytest

from tests.support import measured
from tests.support.changed_rules import changed
from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.machines import compute
from vitruvian.golden.machines.probe import Cases

#: Instructions of Volta, which the assembler replaces by fused multiply-adds for an H200.
EMULATED = {"volta_m8n8k4_f16_f32", "volta_m8n8k4_f16_f16"}
NAMES = [name for name in measured.instructions() if name not in EMULATED]
GROUPS: dict[tuple, list[str]] = {}
for _name in NAMES:
    GROUPS.setdefault(measured.by_name()[_name].operands, []).append(_name)


@lru_cache(maxsize=2)
def cases_of(name: str, seed: int = 1) -> Cases:
    return measured.by_name()[name].cases(seed)


def golden(name: str, given: Cases, **changes) -> np.ndarray:
    """Return the golden results of an instruction, by its rule or by a changed one."""
    each = measured.by_name()[name]
    rule = measured.row_of(each).rule
    if changes:
        rule = changed(rule, **changes)
    data = measured.terms_of(each, given)
    a, b = data.a, data.b
    missing = -a.shape[1] % (rule.k if isinstance(rule, DotSpec) else 1)
    if missing:  # the instructions with a short K are the first half of a step
        a, b = (np.pad(x, ((0, 0), (0, missing))) for x in (a, b))
    return np.asarray(compute(rule, a, b, data.c))


def differences(name: str, given: Cases, d: np.ndarray, **changes) -> np.ndarray:
    """Return the rows in which golden differs in any bit; for fp64, codes of NaN do not count."""
    got = golden(name, given, **changes)
    differ = got != d
    if d.dtype == np.uint64:
        differ &= ~(np.isnan(got.view(np.float64)) & np.isnan(d.view(np.float64)))
    return np.flatnonzero(differ)


@pytest.mark.parametrize("names", GROUPS.values(), ids=[names[0] for names in GROUPS.values()])
def test_every_row_of_every_instruction(names):
    given = cases_of(names[0])
    for name in names:
        entry = measured.instructions()[name]
        assert measured.digest(given) == entry["operands"], "the operands are not the measured ones"
        d = measured.results(name)
        assert len(d) == entry["rows"] == len(given.c)
        assert not len(differences(name, given, d)), name


def test_nothing_is_left_out():
    rows = {name: entry["rows"] for name, entry in measured.instructions().items()}
    assert len(NAMES) == len(rows) - len(EMULATED) == 140
    assert sum(rows[name] for name in NAMES) == 592_856
    assert {each.name for each in measured.by_name().values() if each.device <= 90} == set(rows)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("mma_m16n8k16_f16_f32", {"window": 24}),
        ("mma_m16n8k16_f16_f32", {"window": 26}),
        ("mma_m16n8k16_f16_f32", {"rounding": "RNE"}),
        ("mma_m16n8k16_bf16_f32", {"emax_floor": -132}),
        ("wgmma_m64n8k16_bf16_f32", {"emax_floor": -134}),
        ("mma_m16n8k16_f16_f32", {"zero": "ieee"}),
        ("mma_m16n8k16_f16_f32", {"nan": 0x7FC00000}),
        ("mma_m16n8k16_f16_f32", {"k": 8}),
        ("mma_m16n8k16_f16_f16", {"rounding": "RZ"}),
        ("mma_m16n8k8_tf32_f32", {"k": 4}),
        ("wgmma_m64n8k16_bf16_f32", {"window": 24}),
        ("wgmma_m64n8k32_e4m3_f32", {"window": 14}),
        ("wgmma_m64n8k32_e4m3_f32", {"result_bits": 14}),
        ("wgmma_m64n8k32_e4m3_f32", {"k": 16}),
        ("wgmma_m64n8k32_e5m2_f16", {"window": 12}),
        ("wgmma_m64n8k32_e5m2_e4m3_f16", {"rounding": "RZ"}),
        ("mma_m16n8k32_e4m3_f32", {"window": 24}),
        ("mma_m16n8k32_e4m3_f32", {"window": 26}),
        ("mma_m16n8k32_e4m3_f32", {"lanes": "together"}),
        ("mma_m16n8k32_e4m3_f32", {"accumulate": "tree"}),
        ("mma_m16n8k32_e5m2_f16", {"accumulate": "tree"}),
        ("sp_m16n8k32_f16_f32", {"k": 8}),
        ("sp_m16n8k64_e5m2_f32", {"lanes": "together"}),
        ("wgmma_sp_m64n8k64_e4m3_f32", {"k": 16}),
        ("fp64_m16n8k16_f64_f64", {"rounding": "RZ"}),
        ("mma_m16n8k32_s8_s32", {"signed_b": False}),
        ("mma_m16n8k32_s8_s32", {"saturate": True}),
        ("mma_satfinite_m16n8k32_s8_u8_s32", {"saturate": False}),
        ("wgmma_sp_satfinite_m64n8k64_u8_s32", {"saturate": False}),
    ],
)
def test_a_changed_rule_differs(name, changes):
    assert len(differences(name, cases_of(name), measured.results(name), **changes))


def test_a_sparse_instruction_ignores_the_values_of_b_at_other_places():
    """Dense operands with zeros in A are not the same: zero times a NaN is a NaN."""
    name = "sp_m16n8k32_f16_f32"
    given, d = cases_of(name), measured.results(name)
    rule = measured.row_of(measured.by_name()[name]).rule
    dense = np.asarray(compute(changed(rule, k=32), given.a, given.b, given.c))
    assert (dense != d).any()


def test_the_instruction_of_volta_is_a_chain_in_fp32():
    """((((+0 + p_0) + p_1) + p_2) + p_3) + C, each rounded to nearest; all codes of NaN agree."""
    given = cases_of("volta_m8n8k4_f16_f32")
    a, b = (x.view(np.float16).astype(np.float32) for x in (given.a, given.b))
    total = np.zeros(len(a), np.float32)
    with np.errstate(all="ignore"):
        for k in range(4):
            total = total + a[:, k] * b[:, k]
        total = total + given.c.view(np.float32)
    codes = np.where(np.isnan(total), np.uint32(0x7FFFFFFF), total.view(np.uint32))
    np.testing.assert_array_equal(codes, measured.results("volta_m8n8k4_f16_f32"))


@pytest.mark.long
@pytest.mark.parametrize("names", GROUPS.values(), ids=[names[0] for names in GROUPS.values()])
def test_operands_of_nine_further_seeds(names):
    """The file has the hashes of these results."""
    if names[0].startswith("fp64"):
        pytest.skip("codes of NaN are in the hash, and golden does not state them")
    found = {name: hashlib.sha256() for name in names}
    for seed in range(2, 11):
        given = measured.by_name()[names[0]].cases(seed)
        computed: dict[object, np.ndarray] = {}
        for name in names:
            rule = measured.row_of(measured.by_name()[name]).rule
            if rule not in computed:
                computed[rule] = golden(name, given)
            d = computed[rule]
            found[name].update(d.astype(d.dtype.newbyteorder("<")).tobytes())
    for name in names:
        assert found[name].hexdigest() == measured.instructions()[name]["more"], name

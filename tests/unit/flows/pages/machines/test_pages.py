"""The pages about machines: worked examples, drawings and tables agree with golden."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.support.changed_rules import changed
from tests.support.exact_sums import exact_result
from vitruvian.common.errors import UserError
from vitruvian.flows.pages import site
from vitruvian.flows.pages.machines import drawing, pages
from vitruvian.flows.pages.machines.datapath import datapath, ranks_of
from vitruvian.flows.pages.machines.steps import StepOperands, units
from vitruvian.golden.fp.codec import code_dtype, unpack
from vitruvian.golden.fp.formats import FloatFormat, IntFormat
from vitruvian.golden.machines import Machine, compute, find, machines

EXAMPLES = pages.examples()
#: Rows whose steps a page can show
FLOATS = [
    row
    for row in machines().values()
    if row.kind not in ("integer", "rdna")
    and getattr(row.rule, "complex", None) is None
    and getattr(row.rule, "products", None) != "paired"
]
#: One row for each rule and result format of every maker, and those with a shared exponent.
RULES = {
    (
        row.maker,
        row.rule_name,
        row.output,
        row.rule.k,
        row.formats * row.formats.startswith("bfp"),
    ): row
    for row in FLOATS
}


def golden(row: Machine, x: StepOperands) -> int:
    """Return the result of golden."""
    first, second = (np.array([s], np.uint8) if s else None for s in (x.scale_a, x.scale_b))
    a, b, c = (np.array([codes], np.uint64) for codes in (x.a, x.b, x.c))
    return int(compute(row.rule, a, b, c, first, second)[0])


@pytest.mark.parametrize("stem", EXAMPLES)
def test_a_worked_example_ends_with_the_result_of_golden(stem):
    operands, expected = EXAMPLES[stem]
    row = find(stem)
    lines, d = pages.work(row, operands)
    assert d == expected == golden(row, operands) == exact_result(row, operands)
    rule: Any = row.rule
    digits = f"0x{d:0{rule.output.storage_bits // 4}X}"
    assert any(line.startswith(f"**D = {digits}**.") for line in lines)


def finite(
    rng: np.random.Generator, format: FloatFormat | IntFormat, many: int, bits: int | None = None
) -> tuple[int, ...]:
    """Return random codes of finite numbers, whose exponents are often near those of one."""
    if isinstance(format, IntFormat):  # operands with a shared exponent
        return tuple(map(int, rng.integers(0, 1 << (bits or format.bits), many)))
    codes = rng.integers(0, 1 << format.width, many, np.uint64)
    codes = (codes << np.uint64(format.storage_shift)).astype(code_dtype(format))
    if rng.random() < 0.5:
        near = rng.integers(format.bias, format.bias + 3, many)
        near = (near << format.fraction_bits << format.storage_shift) & format.exponent_mask
        codes = (codes & (format.sign_mask | format.fraction_mask)) | near.astype(codes.dtype)
    u = unpack(codes, format)
    return tuple(int(code) for code in np.where(u.nan | u.infinity, 0, codes))


def scales(rng: np.random.Generator, row: Machine) -> list[tuple[int, ...]]:
    """Return random scales for a row, or two empty tuples."""
    rule: Any = row.rule
    if getattr(rule, "shared_bits", None) is not None:
        return [(int(rng.integers(0, 256)),) for _ in "ab"]
    if getattr(rule, "scales", None) is None:
        return [(), ()]
    scale = rule.scales.format
    low, high = (100, 150) if scale.name == "ue8m0" else (0, scale.max_finite)
    return [tuple(map(int, rng.integers(low, high, rule.k // rule.scales.block))) for _ in "ab"]


def test_random_operands_agree_with_a_model_in_fractions():
    rng = np.random.default_rng(7)
    compared = 0
    for row in RULES.values():
        rule: Any = row.rule
        terms = rule.k or 10
        for turn in range(3):
            bits = getattr(rule, "shared_bits", None)
            a, b = (finite(rng, format, terms, bits) for format in (row.input, row.input_b))
            if turn == 2:  # neighbouring products cancel
                a = tuple(a[k - k % 2] for k in range(terms))
                format: Any = row.input_b
                sign = 1 << (bits - 1) if bits else format.sign_mask
                b = tuple(b[k - k % 2] ^ (sign if k % 2 else 0) for k in range(terms))
            (c,) = finite(rng, rule.output, 1)
            operands = StepOperands(a, b, c, *scales(rng, row))
            try:
                d = exact_result(row, operands)
            except ValueError as error:  # a step of a chain, or a product, is an infinity
                with pytest.raises(ValueError, match=re.escape(str(error))):
                    pages.work(row, operands)
                continue
            compared += 1
            assert d == golden(row, operands) == pages.work(row, operands)[1], (row.stem, operands)
    assert compared > 2.5 * len(RULES) > 100


@pytest.mark.parametrize(
    ("stem", "change"),
    [
        ("a100_mma_bf16_fp32", {"window": 23}),
        ("b200_mmasync_e4m3_fp32", {"accumulate": "tree"}),
        ("b200_nvf4_ue4m3_fp32", {"lanes": "together"}),
        ("cdna3_mfma_fp8xbf8_fp32", {"lanes": "together"}),
        ("gaudi2_fp16_fp32", {"product_exponent": "sum"}),
        ("gaudi3_fp32_fp32", {"slices": None}),
        ("rvbna_bf16_n8_fp32", {"rounding": "RNE"}),
        ("amx_tdpbf16ps", {"accumulators": 1}),
        ("avx512_vdpbf16ps", {"descending": False}),
        ("arm_bfdot_ebf0", {"products": "fused"}),
        ("bh_mvmul_bf16_fp32_hifi4", {"phases": 1}),
    ],
)
def test_another_parameter_changes_the_example_and_the_drawing(stem, change):
    operands, _ = EXAMPLES[stem]
    row = find(stem)
    other = replace(row, rule=changed(row.rule, **change))
    assert pages.work(other, operands)[0] != pages.work(row, operands)[0]
    assert datapath(other) != datapath(row)


@pytest.mark.parametrize(
    "change",
    [
        {"k": 4},
        {"window": None},
        {"truncate": "odd"},
        {"truncate": "floor"},
        {"rounding": "RTO"},
        {"result_bits": 13},
        {"emax_floor": None},
        {"nan": 0x7FC00000},
        {"zero": "ieee"},
        {"convert": "fp32"},
        {"flush": True},
        {"flush_result": "after"},
        {"product_exponent": "leading"},
        {"slices": ((-1, -1),) * 2},
        {"accumulate": "after"},
        {"accumulate": "aligned"},
        {"lanes": "halves"},
        {"scale": "ue8m0", "block": 2},
    ],
)
def test_every_parameter_shows_in_the_drawing(change):
    row = find("a100_mma_bf16_fp32")
    assert datapath(replace(row, rule=changed(row.rule, **change))) != datapath(row)


def test_an_example_of_infinities_is_refused():
    row = find("a100_mma_fp16_fp32")
    with pytest.raises(ValueError, match="must be a finite number, not 0x7c00 in fp16"):
        pages.work(row, StepOperands((0x7C00,), (0x3C00,), 0))
    with pytest.raises(ValueError, match="amx_tcmmrlfp16ps must have a rule whose steps are shown"):
        pages.work(machines()["amx_tcmmrlfp16ps"], StepOperands((0,) * 32, (0,) * 32, 0))
    with pytest.raises(ValueError, match="amx_tdpbssd must have a rule whose steps are shown"):
        pages.work(find("amx_tdpbssd"), StepOperands((1,), (1,), 0))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(3), "3"),
        (Fraction(-5, 4), "−1.25"),
        (Fraction(-1, 3), "−0.3333…"),
        (Fraction(1, 1 << 40), "0.0000…"),
        (Fraction(10**15) + Fraction(1, 16), "1000000000000000.0625"),
    ],
)
def test_units_keep_all_digits_before_the_point(value, text):
    assert units(value) == text


def test_every_row_can_be_drawn_and_its_words_fit_their_boxes():
    seen = set()
    for row in machines().values():
        if row.rule in seen:
            continue
        seen.add(row.rule)
        root = ET.fromstring(datapath(row))
        name = "{http://www.w3.org/2000/svg}"
        boxes = [e for e in root.findall(f"{name}rect") if e.get("rx")]
        ranks = ranks_of(row)
        c = bool(any(rank.takes_c for rank in ranks))
        assert len(boxes) == sum(len(rank.boxes) for rank in ranks) + c, row.stem
        for text in root.findall(f"{name}text"):
            x, y = float(text.get("x", 0)), float(text.get("y", 0))
            inside = [b for b in boxes if _within(x, y, b)]
            assert len(inside) == 1, (row.stem, text.text)
            assert len(text.text or "") * 6 < float(inside[0].get("width", 0)), text.text
    assert len(seen) > 150


def _within(x: float, y: float, box: ET.Element) -> bool:
    left, top, width, height = (float(box.get(n, 0)) for n in ("x", "y", "width", "height"))
    return left < x < left + width and top < y < top + height


def test_ranks_of_any_number_of_boxes_are_connected():
    box = drawing.Box("a < b")
    text = drawing.draw("t", [drawing.Rank((box,) * n) for n in (1, 3, 2, 1)], None)
    assert text.count('marker-end="url(#tip)"') == 3 + 6 + 2 and "a &lt; b" in text


def test_the_instructions_of_a_machine():
    text = pages.instructions("avx512,arm")
    assert all(name in text for name in ("vdpbf16ps", "bfdot_ebf0", "bfdot_ebf1"))
    assert "h100" not in text
    with pytest.raises(UserError, match=r"machine must be one of .*, not 'avx1024'"):
        pages.instructions("avx1024")
    with pytest.raises(UserError, match=r"example must be one of .*, not 'v100_mma_fp16_fp32'"):
        pages.worked("v100_mma_fp16_fp32")


def test_a_picture_of_a_machine_is_drawn_where_a_page_shows_it(tmp_path):
    name = "datapath_v100_mma_fp16_fp32.svg"
    (tmp_path / "x.md").write_text(f"![V100]({name})\n")
    assert list(site.pictures(tmp_path)) == [tmp_path / name]
    assert "E_max − 23" in site.picture(tmp_path / name)

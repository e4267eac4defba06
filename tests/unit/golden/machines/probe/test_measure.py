"""A user's function is measured, named and inferred like a machine."""

import numpy as np
import pytest

from vitruvian.golden.fp import dot_spec
from vitruvian.golden.machines import compute, find
from vitruvian.golden.machines.probe import equal_rules, infer, measure, name


def unknown(rule):
    """Return a function that computes by a rule, which nobody can look into."""
    return lambda a, b, c: compute(rule, a, b, c)


def test_a_function_that_is_a_machine_is_named():
    row = find("a100_mma_fp16_fp32")
    results = measure(unknown(row.rule), input="fp16", terms=8)
    found = {match.machine.stem for match in name(results) if not match.wrong}
    assert row.stem in found and "h100_mma_fp16_fp32" not in found


def test_the_rule_of_a_function_is_inferred():
    rule = dot_spec(
        input="fp16", output="fp32", k=2, window=20, truncate="magnitude", rounding="RZ"
    )
    results = measure(unknown(rule), input="fp16", terms=2)
    assert all(match.wrong for match in name(results))
    inferred = infer(results)
    assert inferred.wrong == 0 and equal_rules(inferred.rule, rule)


def test_a_function_of_numbers():
    seen = []

    def unit(a, b, c):  # a product and a sum, each rounded to FP32
        seen.append((a.dtype, b.dtype, c.dtype))
        a[:] = a  # the operands are copies
        return (a.astype(np.float32) * b.astype(np.float32))[:, 0] + c

    results = measure(unit, input="fp16", input_b="bf16", terms=1, values=True)
    assert [str(t) for t in seen[0]] == ["float16", "bfloat16", "float32"]
    assert results.d.dtype == np.uint32 and len(results.d) > 1000


def test_integers():
    rule = find("amx_tdpbsud").rule
    results = measure(unknown(rule), input="int8", input_b="uint8", output="int32", terms=64)
    found = {match.machine.stem for match in name(results) if not match.wrong}
    instructions = ("mma", "wgmma", "mmasp", "wgmmasp")
    gpus = {f"{m}_{i}_int8xuint8_int32" for m in ("h100", "h200") for i in instructions}
    assert found == {"amx_tdpbsud"} | gpus


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (lambda a, b, c: c[:3], {}, r"results of the function must have the shape \(\d+,\), not"),
        (
            lambda a, b, c: c.astype(float),
            {},
            "results of the function must be integers, not float",
        ),
        (lambda a, b, c: c.astype(int) - 1, {}, r"must be between 0 and 0xffffffff .fp32., not -1"),
        (lambda a, b, c: c.astype(float), {"values": True}, "must be float32, not float64"),
        (lambda a, b, c: c, {"terms": 0}, "terms must be at least 1, not 0"),
        (lambda a, b, c: c, {"input": "fp17"}, "input must be one of"),
    ],
)
def test_what_a_function_must_return(function, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        measure(function, **{"input": "fp16", "terms": 2, **options})

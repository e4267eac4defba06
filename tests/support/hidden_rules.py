"""Rules with random parameters, and the results of rules for the operands of the probe kit."""

from dataclasses import replace

import numpy as np

from vitruvian.golden.fp.formats import FORMATS, INT_FORMATS, OTHER_FORMATS
from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.machines import compute
from vitruvian.golden.machines.probe import cases, with_results
from vitruvian.golden.machines.probe.score import possible

__all__ = ["hidden_rule", "results_of"]


def results_of(rule, machine=None, terms=None, step=1):
    """Return the kit's operands for a rule with its results; of a machine, if it is given."""
    if machine is None:
        given = cases(rule.input, rule.output, terms or rule.k, input_b=rule.input_b)
    else:
        out = FORMATS.get(machine.output) or OTHER_FORMATS.get(machine.output)
        given = cases(
            machine.input,
            out or INT_FORMATS[machine.output],
            rule.k,
            input_b=machine.input_b,
            scale=getattr(rule, "scale", None),
            block=getattr(rule, "block", None),
        )
    names = ("a", "b", "c", "scale_a", "scale_b")
    parts = {n: getattr(given, n) for n in names}
    given = replace(given, **{n: x if x is None else x[::step] for n, x in parts.items()})
    d = compute(rule, given.a, given.b, given.c, given.scale_a, given.scale_b)
    return with_results(given, d)


def hidden_rule(seed):
    """Return a windowed sum with random parameters, and results by it.

    The windows and result bits are such that every result bit can be reached; the floors lie
    around the least normal exponent, as those of machines do. As on machines, a rule that flushes
    results has no floor, whose effect would be flushed.
    """
    rng = np.random.default_rng(seed)
    a = str(rng.choice(["fp16", "bf16", "tf32", "fp8e4m3", "fp8e5m2"]))
    b = str(rng.choice(["fp8e4m3", "fp8e5m2"])) if a.startswith("fp8") else a
    out = FORMATS["fp32" if a in ("bf16", "tf32") else str(rng.choice(["fp32", "fp32", "fp16"]))]
    terms = int(rng.choice([4, 8, 16, 32]))
    nans = [0x7FFFFFFF, 0x7FC00000] if out.name == "fp32" else [0x7FFF, 0x7E00]
    while True:
        window, bits = int(rng.integers(10, 31)), out.fraction_bits
        if rng.random() < 0.25:
            bits = int(rng.integers(6, min(bits, window - 2) + 1))
        flush_result = [None, None, "after", "before"][rng.integers(4)]
        floor = None if rng.random() < 0.3 else out.emin + int(rng.integers(-24, 8))
        rule = DotSpec(
            input=a,
            input_b=b,
            output=out,
            k=int(rng.choice([k for k in range(1, terms + 1) if terms % k == 0])),
            window=window,
            truncate=str(rng.choice(["magnitude", "floor", "odd"])),
            rounding=str(rng.choice(["RNE", "RZ", "RTO"])),
            result_bits=bits,
            emax_floor=None if flush_result else floor,
            nan=int(rng.choice(nans)),
            zero=str(rng.choice(["positive", "exact", "ieee"])),
            flush=bool(rng.random() < 0.25),
            flush_result=flush_result,
            product_exponent=str(rng.choice(["sum", "sum", "leading"])),
            accumulate=str(rng.choice(["tree", "tree", "after", "late"])),
            lanes=str(rng.choice(["together", "together", "halves"])),
            convert=None if not a.startswith("fp8") or rng.random() < 0.6 else "fp16",
        )
        if not possible(rule):
            continue
        try:
            return rule, results_of(rule, terms=terms)
        except ValueError:  # the sum does not fit into 64 bits
            continue

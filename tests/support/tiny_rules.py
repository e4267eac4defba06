"""Random rules of tiny formats, whose operands can be tried nearly all."""

import numpy as np

from vitruvian.golden.fp.formats import FORMATS, OTHER_FORMATS, FloatFormat, Specials
from vitruvian.golden.fp.spec import DotSpec, dot_spec
from vitruvian.golden.machines import compute
from vitruvian.golden.machines.probe.bounds import product
from vitruvian.golden.machines.probe.equality import canonical
from vitruvian.golden.machines.probe.score import possible

_INPUTS = [
    OTHER_FORMATS["fp4e2m1"],
    FloatFormat("in22", 2, 2, 8),
    FloatFormat("in31", 3, 1, 8),
    FloatFormat("in32", 3, 2, 8),
    FloatFormat("in23", 2, 3, 8, specials=Specials.NONE),
]
_OUTPUTS = [
    FloatFormat(f"out{e}{f}", e, f, 16) for e, f in ((3, 2), (3, 3), (4, 3), (4, 4), (3, 5))
]
_WINDOWS = range(1, 24)


def tiny_rule(rng: np.random.Generator) -> DotSpec:
    """Return a rule with random parameters, that golden can compute."""

    def one(*values):
        return values[rng.integers(len(values))]

    while True:
        out, a = one(*_OUTPUTS), one(*_INPUTS)
        lanes = one("together", "together", "halves")
        rule = dot_spec(
            input=a,
            input_b=one(a, a, *_INPUTS),
            output=out,
            k=one(1, 1, 2, 2, 3, 4) if lanes == "together" else 4,
            window=one(*_WINDOWS),
            truncate=one("magnitude", "floor", "odd"),
            rounding=one("RNE", "RZ", "RTO"),
            result_bits=one(None, int(rng.integers(1, out.fraction_bits + 1))),
            emax_floor=one(None, out.emin + int(rng.integers(-8, 9))),
            zero=one("ieee", "positive", "exact"),
            convert=one(None, None, FORMATS["fp16"], _OUTPUTS[0]),
            flush=one(False, False, True),
            flush_result=one(None, None, "after", "before", "unbounded"),
            product_exponent=one("sum", "sum", "leading"),
            accumulate=one("tree", "tree", "after", "late"),
            lanes=lanes,
            product_overflow=one(False, False, True),
        )
        if possible(rule):
            return rule


def at_an_edge(rng: np.random.Generator, rule: DotSpec) -> DotSpec | None:
    """Return the rule with the last value of a number at which ``canonical`` drops a parameter.

    A bound that is wrong by one is wrong there. If no value of the number is such an edge, the
    result is None.
    """
    out = rule.output
    name, values = (
        ("window", _WINDOWS),
        ("window", _WINDOWS),
        ("emax_floor", range(out.emin - 12, out.emin + 12)),
        ("result_bits", range(1, out.fraction_bits + 1)),
    )[rng.integers(4)]
    rules = [rule.replace(**{name: value}) for value in values]
    left = [
        sum(dropped[name] == value for name, value in each.items())
        for each, dropped in ((each.parameters(), _canonical(each).parameters()) for each in rules)
    ]
    edges = [i + (left[i] > left[i + 1]) for i in range(len(rules) - 1) if left[i] != left[i + 1]]
    return rules[edges[rng.integers(len(edges))]] if edges else None


def _canonical(rule: DotSpec) -> DotSpec:
    found = canonical(rule)
    assert isinstance(found, DotSpec)
    return found


def operands(
    rng: np.random.Generator, rule: DotSpec, count: int, terms: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return random codes, with many zeros and with products that cancel."""
    shape = (count, terms)
    a = rng.integers(0, 1 << rule.input.width, shape).astype(np.uint8)
    b = rng.integers(0, 1 << rule.input_b.width, shape).astype(np.uint8)
    c = rng.integers(0, 1 << rule.output.width, count).astype(np.uint16)
    if terms > 1:
        a[rng.random(shape) < rng.choice([0, 0.5, 0.8], (count, 1))] = 0
        opposite = rng.random(count) < 0.3
        a[opposite, 1] = a[opposite, 0]
        b[opposite, 1] = b[opposite, 0] ^ rule.input_b.sign_mask
    c[rng.random(count) < 0.2] = 0
    return a, b, c


def results(rule: DotSpec, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return what a rule gives; one without a window is given a window that cuts nothing."""
    if rule.sum.window is None:
        p, out = product(rule), rule.output
        high, low = max(p.high, out.emax), min(p.last, out.emin - out.fraction_bits)
        rule = rule.replace(window=high - low, truncate="magnitude")
    return compute(rule, a, b, c)

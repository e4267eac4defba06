"""Search for the parameters of a rule that gives all results."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from vitruvian.golden.fp.codec import unpack
from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.fp.scales import unpack_scale
from vitruvian.golden.fp.spec import DotSpec, IntDotSpec, dot_spec
from vitruvian.golden.machines.int_phases import IntPhaseSpec
from vitruvian.golden.machines.phases import PhaseSpec
from vitruvian.golden.machines.probe.basis import Basis, evidence
from vitruvian.golden.machines.probe.cases import Results
from vitruvian.golden.machines.probe.naming import candidates
from vitruvian.golden.machines.probe.score import Scorer, Tally, possible
from vitruvian.golden.machines.probe.space import changed, dot_values, value_of, values
from vitruvian.golden.machines.spec import ChainSpec, fma_step
from vitruvian.golden.machines.table import Rule

Progress = Callable[[str, int], object]

_FEW = 10  # rows with which hopeless combinations are sorted out
_BEAM = 6  # combinations that are refined
_NEAR = 3  # bits by which windows are changed together with the way to truncate
_NEARLY = 0.1  # wrong rows of all, below which a combination is refined at once
_ORDER_FREE = 3  # terms of which only one is not zero, if the order shall not matter


@dataclass(frozen=True)
class Inferred:
    """The rule that explains the results best.

    Attributes
    ----------
    rule : Rule
    wrong : int
        Rows that the rule does not explain; 0 for a rule that fits.
    first : int or None
        The first such row.
    nan_codes : tuple of int
        Codes of the NaN results. If there are several, the machine passes on operands' codes, and
        the rule's code of NaN says nothing.
    basis : tuple of Basis
        The evidence for every parameter; empty if the rule does not fit.
    """

    rule: Rule
    wrong: int
    first: int | None
    nan_codes: tuple[int, ...]
    basis: tuple[Basis, ...] = ()


def _quiet(task: str, done: int) -> None:
    """Show no progress."""


def infer(data: Results, *, known: bool = True, progress: Progress = _quiet) -> Inferred:
    """Return the rule that explains the results of most rows.

    Parameters
    ----------
    known : bool
        If True, the search begins at the rules of known machines with the same formats, which are
        found at once. If False, it does not use the table.
    progress : callable
        Function that is called again and again with the step of the search, a phrase, and with the
        number of comparisons of a rule with rows so far.

    Returns
    -------
    Inferred
    """
    tally = Tally(progress)
    scorer = Scorer(data, tally)
    codes = scorer.nan_codes
    best: Rule | None = None
    for rules in _attempts(scorer, known, tally.begin):
        for rule in rules:
            if best is None or scorer.count(rule) < scorer.count(best):
                best = rule
            if not scorer.count(rule):
                break
        if best is not None and not scorer.count(best):
            break
    assert best is not None
    best = _with_nan(best, codes)
    wrong = scorer.differs(best)
    first = int(np.flatnonzero(wrong)[0]) if wrong.any() else None
    basis = () if wrong.any() else tuple(evidence(best, scorer))
    return Inferred(best, int(wrong.sum()), first, tuple(codes), basis)


def _attempts(
    scorer: Scorer, known: bool, progress: Callable[[str], object]
) -> Iterator[Iterable[Rule]]:
    """Yield lists of rules, those that are found quickly first."""
    data = scorer.data
    if not isinstance(data.output, FloatFormat):
        progress("sums of integers")
        yield _integers(data)
        return
    table = list(candidates(data)) if known else []
    if known:
        progress("known machines")
        yield table
    progress("phases")
    yield _phases(data)
    progress("chains")
    starts = _chains(scorer)
    ordinary = scorer.part(_ordinary(data)[0])
    most = _NEARLY * len(ordinary.data.d)
    yield _refined(scorer, [rule for rule in starts[:2] if ordinary.count(rule) <= most])
    progress("windowed sums")
    yield _sums(scorer)
    progress("chains that explain less")
    yield starts
    yield _refined(scorer, starts)
    progress("neighbours of known machines")
    closest = sorted(table, key=scorer.count)[:2]
    yield _refined(scorer, closest)
    progress("all windows")
    yield _sums(scorer, thorough=True)


def _integers(data: Results) -> Iterator[Rule]:
    for a, b, saturate in product((True, False), (True, False), (False, True)):
        if a == getattr(data.input, "signed", a) and b == getattr(data.input_b, "signed", b):
            yield IntDotSpec(k=data.terms, signed_a=a, signed_b=b, saturate=saturate)
    if data.terms % IntPhaseSpec(phases=1).k == 0:
        yield from (IntPhaseSpec(phases=phases) for phases in (1, 2, 3, 4))


def _phases(data: Results) -> Iterator[Rule]:
    for phases, blackhole in product((1, 2, 3, 4), (False, True)):
        try:
            yield PhaseSpec(
                input=data.input,  # pyright: ignore
                output=data.output,  # pyright: ignore
                phases=phases,
                blackhole=blackhole,
            )
        except ValueError:  # Tenstorrent does not have these formats
            return


# ------------------------------------------------------------------ windowed sums


def _base(data: Results) -> dict[str, Any]:
    return {
        "input": data.input,
        "input_b": data.input_b,
        "output": data.output,
        "scale": data.scale,
        "block": data.block,
        "zero": "positive",
    }


def _sums(scorer: Scorer, thorough: bool = False) -> Iterator[Rule]:
    """Yield windowed sums, for each structure the best one, and refine those that nearly fit.

    Most parameters act on zeros, special and tiny numbers only, so rows without these tell the
    others first. Of these rows, those with few terms come first: they do not tell the order.
    """
    data = scorer.data
    core, few = _ordinary(data)
    if len(few) < _FEW:
        few = np.flatnonzero(core)[:200]
    if not len(few):
        few = np.arange(len(data.d))
    rng = np.random.default_rng(0)
    sample = scorer.part(np.sort(rng.permutation(few)[:_FEW]))
    more = scorer.part(np.sort(rng.permutation(few)[:240]))
    rows = np.flatnonzero(core) if core.any() else few
    every = scorer.part(rows[:: max(len(rows) // 600, 1)])
    windows = dot_values(data)["window"] if thorough else _windows(data, few)
    remaining: list[Rule] = []
    for structure in _structures(data):
        found: dict[Rule, int] = {}
        for rule in _inner(data, structure, windows):
            found[rule] = sample.count(rule)
        best = sorted(found, key=lambda r: found[r])[: 4 * _BEAM]
        best = sorted(best, key=more.count)[: 2 * _BEAM]
        best = [
            other
            for rule in best
            for k in dot_values(data)["k"]
            if (other := changed(rule, "k", k)) is not None
        ]
        best = sorted(dict.fromkeys(best), key=every.count)[:_BEAM]
        for rule in best[:2]:
            if every.count(rule) <= _NEARLY * len(every.data.d):
                yield _descend(scorer, rule)
        remaining += best
    for rule in sorted(remaining, key=every.count)[:_BEAM]:
        yield _descend(scorer, rule)


def _structures(data: Results) -> list[dict[str, Any]]:
    """Return the ways to group, convert, slice and accumulate products, the plain one first."""
    choices = dot_values(data)
    # Narrow operands are converted without a loss, which only subnormals show.
    lossy = [c for c in choices["convert"] if c is None or data.input.storage_bits > 16]  # pyright: ignore
    names = ("lanes", "accumulate", "convert", "slices", "product_exponent", "k")
    lists = [choices["lanes"], choices["accumulate"], lossy, *(choices[n] for n in names[3:5])]
    # The longest and the shortest block; the rows with few terms do not tell others from these.
    lists.append(list(dict.fromkeys((choices["k"][-1], choices["k"][0]))))
    plain = [each[0] for each in lists]
    found = sorted(
        product(*lists), key=lambda x: sum(a != b for a, b in zip(x, plain, strict=True))
    )
    return [dict(zip(names, each, strict=True)) for each in found]


def _inner(data: Results, structure: dict[str, Any], windows: list[object]) -> Iterator[DotSpec]:
    """Yield the rules of a structure that ordinary numbers may tell apart."""
    choices = dot_values(data)
    aligned = structure["accumulate"] == "aligned"
    for window, truncate, rounding, result in product(
        windows[:1] if aligned else windows,
        ["magnitude"] if aligned else choices["truncate"],
        choices["rounding"],
        _result_bits(data),
    ):
        try:
            rule = dot_spec(
                **_base(data),
                **structure,
                window=window,  # pyright: ignore
                truncate=truncate,  # pyright: ignore
                rounding=rounding,  # pyright: ignore
                result_bits=result,
            )
        except (ValueError, TypeError):
            continue
        if possible(rule):
            yield rule


def _ordinary(data: Results) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows have only normal numbers, and the indices of those with few terms.

    In the rows with few terms only the first ones are not zero.
    """
    out = data.output
    assert isinstance(out, FloatFormat)
    ordinary: np.ndarray = np.ones(len(data.d), bool)
    exponent = np.full(len(data.d), -(1 << 20))
    parts = [(data.c, out), (data.d, out), (data.a, data.input), (data.b, data.input_b)]
    for number, (codes, format) in enumerate(parts):
        assert isinstance(format, FloatFormat)
        u = unpack(codes, format)
        small = (u.significand != 0) & (u.significand < 1 << format.fraction_bits)
        bad = u.infinity | u.nan | small
        if format.fraction_bits <= 3 and format.emin > -2:  # formats with few normal numbers
            bad = u.infinity | u.nan
        ordinary &= ~(bad if bad.ndim == 1 else bad.any(axis=1))
        if number == 0:
            exponent = np.where(u.significand == 0, exponent, u.exponent)
        if number == 1:
            ordinary &= (u.significand != 0) & (u.exponent > out.emin + 2)
    products = _product_exponents(data)
    exponent = np.maximum(exponent, products.max(axis=1))
    ordinary &= exponent >= min(0, out.emin + 30)
    many = (products > -(1 << 19)).sum(axis=1)
    few: np.ndarray = ordinary & (many <= _ORDER_FREE)
    if data.scale is None:  # with scales, terms of other exponents are in other blocks
        few &= ~np.any(products[:, 4:] > -(1 << 19), axis=1)
    return ordinary, np.flatnonzero(few)


def _product_exponents(data: Results) -> np.ndarray:
    """Return the exponents of all products, and a very small number for zero products."""
    x, y = unpack(data.a, data.input), unpack(data.b, data.input_b)  # pyright: ignore
    zero = (x.significand == 0) | (y.significand == 0)
    exponent = x.exponent + y.exponent
    if data.scale is not None and data.scale_a is not None and data.scale_b is not None:
        for codes in (data.scale_a, data.scale_b):
            scale = unpack_scale(codes, data.scale)
            blocks = np.repeat(scale.exponent, exponent.shape[1] // codes.shape[1], axis=1)
            exponent = exponent + blocks
    return np.where(zero, -(1 << 20), exponent)


def _windows(data: Results, few: np.ndarray) -> list[object]:
    """Return likely windows: distances of results' lowest bits from the largest exponents."""
    some = data.rows(few)
    out = some.output
    assert isinstance(out, FloatFormat)
    c, d = unpack(some.c, out), unpack(some.d, out)
    lowest_bit = d.significand & -d.significand
    last = d.exponent - out.fraction_bits + np.frexp(np.maximum(lowest_bit, 1).astype(float))[1] - 1
    products = _product_exponents(some)
    largest = products.max(axis=1)
    both = np.maximum(largest, np.where(c.significand == 0, -(1 << 20), c.exponent))
    likely: set[int] = set()
    number = (d.significand != 0) & ~d.infinity & ~d.nan
    for emax, rows in ((largest, c.significand == 0), (both, c.significand != 0)):
        depth = (emax - last)[number & rows & (emax > -(1 << 19))]
        depths, counts = np.unique(depth, return_counts=True)
        # The deepest bit that is common, not that of a single row
        common = depths[counts >= 2]
        for deep in common[-1:] if len(common) else depths[-1:]:
            likely |= {int(deep) + offset for offset in (-2, -1, 0, 1)}
    allowed = dot_values(data)["window"]
    return [w for w in allowed if w in likely or w is None]


def _result_bits(data: Results) -> list[int]:
    """Return the fraction bits of the results that occur, and all of the format's.

    The results without C are counted by themselves, because a C that is added late has all bits.
    """
    out = data.output
    assert isinstance(out, FloatFormat)
    d, c = unpack(data.d, out), unpack(data.c, out)
    normal = d.significand >> out.fraction_bits == 1
    found: list[int] = []
    alone = normal & (c.significand == 0)
    # A C that an earlier block gave is late as well; two terms are in one block.
    first = alone & ~(_product_exponents(data)[:, 2:] > -(1 << 19)).any(axis=1)
    for rows in (normal, alone, first):
        low = np.bitwise_or.reduce(d.significand[rows], initial=1 << out.fraction_bits)
        found.append(max(out.fraction_bits - int(low & -low).bit_length() + 1, 1))
    return list(dict.fromkeys((*found, out.fraction_bits)))


# ------------------------------------------------------------------ chains


def _chains(scorer: Scorer) -> list[Rule]:
    """Return the best chains of rounded operations."""
    data = scorer.data
    if data.scale is not None:
        return []
    core, _ = _ordinary(data)
    chosen = np.flatnonzero(core)
    few = scorer.part(chosen[:: max(len(chosen) // 60, 1)])
    every = scorer.part(chosen[:: max(len(chosen) // 600, 1)])
    found: list[Rule] = []
    try:
        steps = [fma_step(data.input, data.output, rounding=r) for r in ("RNE", "RZ", "RTO")]  # pyright: ignore
    except (ValueError, TypeError):
        return []
    ks = values(ChainSpec(step=steps[0]), data)["k"]
    for step, descending, products, (many, add_c) in product(
        steps,
        (False, True),
        ("fused", "rounded"),
        ((1, "last"), (2, "last"), (4, "last"), (2, "none"), (4, "none")),
    ):
        for k in ks:
            free = products == "rounded" or (many == 1 and not descending)
            if (products == "rounded" and (many > 1 or descending)) or (free and k is None):
                continue
            if products == "fused" and many == 1 and not descending and k != 1:
                continue  # every k is the same
            if products == "rounded" and isinstance(k, int) and k & (k - 1):
                continue
            found.append(
                ChainSpec(
                    step=step,
                    k=k,  # pyright: ignore
                    accumulators=many,
                    descending=descending,
                    products=products,
                    add_c=add_c,
                )
            )
    found = sorted(found, key=few.count)[: 2 * _BEAM]
    return sorted(found, key=every.count)[:_BEAM]


# ------------------------------------------------------------------ refinement


#: Parameters that hide each other's effect, and are tried together
_GROUPS = (
    ("flush", "flush_result", "zero"),
    ("emax_floor", "flush", "flush_result", "zero"),
    ("flush", "convert", "product_exponent"),
    ("flush_result", "zero", "rounding"),
    ("accumulate", "truncate", "rounding"),
    ("lanes", "accumulate", "k"),
    ("zero_subnormals", "flush", "flush_result"),
    ("accumulators", "add_c", "descending"),
)


def _refined(scorer: Scorer, starts: list[Rule]) -> Iterator[Rule]:
    """Yield each rule after one parameter after the other was set to its best value."""
    for start in starts:
        yield _descend(scorer, start)


def _descend(scorer: Scorer, rule: Rule) -> Rule:
    """Change parameters while this explains more rows."""
    choices = values(rule, scorer.data)
    while scorer.count(rule):
        before = scorer.count(rule)
        wrong = np.flatnonzero(scorer.differs(rule))
        # A value that helps explains rows that are wrong now, so these are tried first.
        part = scorer.part(wrong[:: max(len(wrong) // 40, 1)])
        for name, allowed in choices.items():
            best = _best(scorer, part, rule, [((name, v),) for v in _ordered(rule, name, allowed)])
            rule = best
        if scorer.count(rule) == before:
            for names in _GROUPS:
                if all(n in choices for n in names):
                    # A floor can look like a flushed C, so that both are tried without one.
                    lists = [[None] if n == "emax_floor" else choices[n] for n in names]
                    options = product(
                        *([(n, v) for v in x] for n, x in zip(names, lists, strict=True))
                    )
                    rule = _best(scorer, part, rule, list(options))
            rule = _best(scorer, part, rule, _coupled(rule, choices))
        if scorer.count(rule) == before:
            break
    return rule


def _coupled(rule: Rule, choices: dict[str, list[object]]) -> list[tuple[tuple[str, object], ...]]:
    """Return options for the window together with parameters that a change of it can hide.

    These are the way to truncate and the rounding, for windows that are near; and the floor of
    E_max, so that the last bit below it stays the same.
    """
    if not isinstance(rule, DotSpec) or rule.sum.window is None:
        return []
    near = range(max(rule.sum.window - _NEAR, 1), rule.sum.window + _NEAR + 1)
    found: list[tuple[tuple[str, object], ...]] = [
        (("window", w), ("truncate", t), ("rounding", r))
        for w, t, r in product(near, choices["truncate"], choices["rounding"])
    ]
    if rule.sum.floor is not None:
        q = rule.sum.floor - rule.sum.window
        windows = [w for w in choices["window"] if isinstance(w, int)]
        found += [(("window", w), ("emax_floor", q + w)) for w in windows]
    return found


def _ordered(rule: Rule, name: str, allowed: list[object]) -> list[object]:
    return [v for v in allowed if v != value_of(rule, name)]


def _best(
    scorer: Scorer, part: Scorer, rule: Rule, options: list[tuple[tuple[str, object], ...]]
) -> Rule:
    """Return the option that explains most rows, or the rule itself."""
    promising: list[tuple[int, int, Rule]] = []
    for number, option in enumerate(options):
        other: Rule | None = rule
        for name, value in option:
            other = None if other is None else changed(other, name, value)
        if other is not None:
            count = part.count(other)
            if count < len(part.data.d):
                promising.append((count, number, other))
    best = rule
    for _, _, other in sorted(promising, key=lambda x: x[:2])[:8]:
        if scorer.count(other) < scorer.count(best):
            best = other
    return best


def _with_nan(rule: Rule, codes: list[int]) -> Rule:
    """Set the code of NaN to the one that occurred."""
    if len(codes) != 1 or not (isinstance(rule, (DotSpec, ChainSpec))):
        return rule
    step = rule.step if isinstance(rule, ChainSpec) else rule
    if step.nan_code == codes[0]:
        return rule
    return changed(rule, "nan", codes[0]) or rule

"""Rules with random parameters, and the results of rules for the operands of the probe kit."""

from dataclasses import replace

import numpy as np

from vitruvian.golden.fp.formats import FORMATS, INT_FORMATS, OTHER_FORMATS
from vitruvian.golden.fp.scales import SCALES
from vitruvian.golden.fp.spec import IntDotSpec, dot_spec
from vitruvian.golden.machines import compute
from vitruvian.golden.machines.int_phases import IntPhaseSpec
from vitruvian.golden.machines.probe import cases, with_results
from vitruvian.golden.machines.probe.score import possible
from vitruvian.golden.machines.spec import ChainSpec, PhaseSpec, fma_step


def results_of(rule, machine=None, terms=None, step=1):
    """Return the kit's operands for a rule with its results; of a machine, if it is given."""
    if machine is None:
        given = cases(rule.input, rule.output, terms or rule.k, input_b=rule.input_b)
    else:
        scales = getattr(rule, "scales", None)
        out = FORMATS.get(machine.output) or OTHER_FORMATS.get(machine.output)
        given = cases(
            machine.input,
            out or INT_FORMATS[machine.output],
            rule.k,
            input_b=machine.input_b,
            scale=scales and scales.format,
            block=scales and scales.block,
        )
    names = ("a", "b", "c", "scale_a", "scale_b")
    parts = {n: getattr(given, n) for n in names}
    given = replace(given, **{n: x if x is None else x[::step] for n, x in parts.items()})
    d = compute(rule, given.a, given.b, given.c, given.scale_a, given.scale_b)
    return with_results(given, d)


def hidden_rule(seed):
    """Return a rule of a random kind with random parameters, and results by it.

    Half of the seeds give windowed sums, and the others sums with scales, sums as on CDNA 3, chains
    and, in turns, rules of integers and of Tenstorrent.
    """
    rng = np.random.default_rng(seed)
    kinds = (_sum, _chain, _sum, _scaled, _sum, _aligned, _sum, _chain, _sum, _other)
    return kinds[seed % len(kinds)](rng)


def _one(rng, *values):
    return values[rng.integers(len(values))]


def _drawn(draw):
    """Return the first of random rules that golden can compute, with its results."""
    while True:
        rule, data = draw()
        if possible(rule):
            try:
                return rule, with_results(data, _compute(rule, data))
            except ValueError:  # the sum does not fit into 64 bits
                continue


def _compute(rule, x):
    return compute(rule, x.a, x.b, x.c, x.scale_a, x.scale_b)


def _shared(rng, out, window):
    """Return parameters that all sums have.

    The windows and result bits are such that every result bit can be reached; the floors lie
    around the least normal exponent, as those of machines do. As on machines, a rule that flushes
    results has no floor, whose effect would be flushed.
    """
    bits = out.fraction_bits
    if rng.random() < 0.25:
        bits = int(rng.integers(min(6, window - 2), min(bits, window - 2) + 1))
    flush_result = _one(rng, None, None, None, "after", "before", "unbounded")
    floor = None if rng.random() < 0.3 else out.emin + int(rng.integers(-24, 8))
    nans = [0x7FFFFFFF, 0x7FC00000] if out.name == "fp32" else [0x7FFF, 0x7E00]
    return {
        "output": out,
        "window": window,
        "rounding": _one(rng, "RNE", "RZ", "RTO"),
        "truncate": _one(rng, "magnitude", "floor", "odd"),
        "result_bits": bits,
        "nan": _one(rng, *nans),
        "zero": _one(rng, "positive", "exact", "ieee"),
        "flush": bool(rng.random() < 0.25),
        "flush_result": flush_result,
        "emax_floor": None if flush_result else floor,
        "product_exponent": _one(rng, "sum", "sum", "leading"),
        "accumulate": _one(rng, "tree", "tree", "after", "late"),
    }


def _formats(rng):
    """Return names of the formats of A and B, and a format of results."""
    a = _one(rng, "fp16", "bf16", "tf32", "fp8e4m3", "fp8e5m2", "fp8e4m3fnuz", "fp6e3m2")
    b = _one(rng, "fp8e4m3", "fp8e5m2") if a in ("fp8e4m3", "fp8e5m2") else a
    wide = a in ("bf16", "tf32")
    out = FORMATS["fp32" if wide else _one(rng, "fp32", "fp32", "fp16")]
    return *((FORMATS.get(n) or OTHER_FORMATS[n]) for n in (a, b)), out


def _block(rng, terms):
    return _one(rng, *(k for k in range(1, terms + 1) if terms % k == 0))


def _sum(rng):
    a, b, out = _formats(rng)
    terms = _one(rng, 4, 8, 16, 32)
    data = cases(a, out, terms, input_b=b)

    def draw():
        rule = dot_spec(
            input=a,
            input_b=b,
            k=_block(rng, terms),
            lanes=_one(rng, "together", "together", "halves"),
            convert=None if a.storage_bits > 8 or rng.random() < 0.6 else "fp16",
            product_overflow=bool(rng.random() < 0.15),
            **_shared(rng, out, int(rng.integers(10, 31))),
        )
        return rule, data

    return _drawn(draw)


def _scaled(rng):
    out = FORMATS["fp32"]
    if rng.random() < 0.5:
        name = _one(rng, "fp8e4m3", "fp8e5m2", "fp6e2m3", "fp6e3m2", "fp4e2m1")
        form, scale, block, terms, lanes = name, "ue8m0", 32, 32, "together"
    else:
        scale, block = _one(rng, ("ue8m0", 32), ("ue8m0", 16), ("ue4m3", 16))
        form, terms, lanes = "fp4e2m1", 64, _one(rng, "sixteens", "sixteens", "together")
    a = FORMATS.get(form) or OTHER_FORMATS[form]
    data = cases(a, out, terms, scale=SCALES[scale], block=block)

    def draw():
        shared = _shared(rng, out, int(rng.integers(16, 38)))
        k = _one(rng, *(k for k in (32, 64) if k % block == 0 and terms % k == 0))
        return dot_spec(input=a, k=k, lanes=lanes, scale=scale, block=block, **shared), data

    return _drawn(draw)


def _aligned(rng):
    """Return a sum by the steps of CDNA 3, whose windows are fixed."""
    name = _one(rng, "fp16", "bf16", "tf32", "fp8e4m3fnuz", "fp8e5m2fnuz")
    a, out = FORMATS.get(name) or OTHER_FORMATS[name], FORMATS["fp32"]
    terms = _one(rng, 8, 16, 32)
    data = cases(a, out, terms)

    def draw():
        shared = _shared(rng, out, 24)
        shared |= {"accumulate": "aligned", "truncate": "magnitude", "emax_floor": None}
        lanes = _one(rng, "together", "parity")
        overflow = bool(rng.random() < 0.5)
        k = _block(rng, terms)
        return dot_spec(input=a, k=k, lanes=lanes, product_overflow=overflow, **shared), data

    return _drawn(draw)


def _chain(rng):
    a, out = FORMATS[_one(rng, "fp16", "bf16", "tf32", "fp32")], FORMATS["fp32"]
    terms = _one(rng, 2, 4, 8, 16)
    data = cases(a, out, terms)

    def draw():
        products = _one(rng, "fused", "fused", "rounded")
        k = _block(rng, terms)
        fused = products == "fused"
        many = _one(rng, *(n for n in (1, 2, 4) if k % n == 0)) if fused else 1
        step = fma_step(
            a,
            out,
            rounding=_one(rng, "RNE", "RZ", "RTO"),
            flush=bool(rng.random() < 0.4),
            flush_result=_one(rng, None, "after", "before", "unbounded"),
        )
        rule = ChainSpec(
            step=step,
            k=k,
            products=products,
            accumulators=many,
            descending=bool(fused and rng.random() < 0.4),
            add_c=_one(rng, "last", "none") if many > 1 else "last",
            zero_subnormals=bool(rng.random() < 0.25),
        )
        if not fused and k & (k - 1):
            return draw()
        return rule, data

    return _drawn(draw)


def _other(rng):
    if rng.random() < 0.5:
        terms = _one(rng, 16, 32, 64)
        a, b = _one(rng, "int8", "uint8"), _one(rng, "int8", "uint8")
        data = cases(INT_FORMATS[a], INT_FORMATS["int32"], terms, input_b=INT_FORMATS[b])
        rule = IntDotSpec(
            k=terms, signed_a=a == "int8", signed_b=b == "int8", saturate=_one(rng, False, True)
        )
        phases = IntPhaseSpec(phases=_one(rng, 1, 2, 3, 4))
        return _drawn(lambda: (_one(rng, rule, rule, phases), data))
    a = FORMATS[_one(rng, "bf16", "tf32", "fp16", "fp8e4m3", "fp8e5m2")]
    out = FORMATS[_one(rng, "fp32", "fp16" if a.exponent_bits <= 5 else "bf16")]
    rule = PhaseSpec(
        input=a, output=out, phases=_one(rng, 1, 2, 3, 4), blackhole=_one(rng, False, True)
    )
    return _drawn(lambda: (rule, cases(a, out, 32)))

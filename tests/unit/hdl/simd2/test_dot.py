"""The arithmetic of semirings against golden; the operation changes in every cycle."""

from dataclasses import replace

import numpy as np
import pytest
from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

import vitruvian.hdl.simd2.dot
import vitruvian.hdl.simd2.winner
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.golden.simd2 import Op, mmo
from vitruvian.hdl.simd2.dot import SemiringDot, better
from vitruvian.hdl.simd2.mode import bits, decoded
from vitruvian.hdl.simd2.operand import Decode, Spread
from vitruvian.sim.rtl import compile

OPS = tuple(Op)
COUNT = 4000


class Whole(wiring.Component):
    """Chain of decoders, ``SemiringDot`` and ``better``; ``op`` is an index of an operation."""

    a: data.View
    b: data.View
    op: Signal
    keep: Signal
    c: Signal
    d: Signal

    def __init__(self, *, k, operations=OPS, pipeline=0):
        spec = PRESETS["ieee"].spec("fp16", k=k)
        self.k, self.latency = k, pipeline
        self.dot = SemiringDot(spec=spec, operations=operations, pipeline=pipeline)
        bus = data.ArrayLayout(16, k)
        super().__init__(
            {
                "a": In(bus),
                "b": In(bus),
                "op": In(4),
                "c": In(32),
                "keep": In(1),
                "d": Out(32),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.dot = dot = self.dot
        operations = dot.operations
        for side in "ab":
            decode = Decode(k=self.k, operations=operations, side=side)
            m.submodules[f"decode_{side}"] = decode
            m.d.comb += Value.cast(decode.bus).eq(Value.cast(getattr(self, side)))
            for name, bit in decoded(operations, self.op, side).items():
                m.d.comb += getattr(decode.shape, name).eq(bit)
            spread = Spread(k=self.k, operations=operations)
            m.submodules[f"spread_{side}"] = spread
            m.d.comb += [
                Value.cast(spread.held).eq(Value.cast(decode.held)),
                Value.cast(getattr(dot, side)).eq(Value.cast(spread.lanes)),
            ]
        for name, bit in decoded(operations, self.op).items():
            m.d.comb += getattr(dot.mode, name).eq(bit)
        semiring = bits(operations, dot.mode)["semiring"]
        late = {name: bits(operations, dot.mode)[name] for name in ("semiring", "turn", "truth")}
        m.d.comb += dot.c.eq(Mux(self.keep & ~semiring, self.c, 0))
        kept = [self.c, self.keep, *late.values()]
        for rank in range(self.latency):
            later = [Signal(len(Value.cast(x)), name=f"kept{rank}_{i}") for i, x in enumerate(kept)]
            m.d.sync += [y.eq(x) for x, y in zip(kept, later, strict=True)]
            kept = later
        c, keep, *flags = kept
        mode = dict(zip(late, flags, strict=True))
        if not self.latency:
            mode = late
        result = better(
            m, dot.d, dot.true, c, output=dot.spec.output, mode=mode, keep=keep, name="better"
        )
        m.d.comb += self.d.eq(result)
        return m


def draw(rng, shape):
    """Draw codes: random bit patterns, specials, small integers and fractions."""
    codes = rng.integers(0, 1 << 16, shape).astype(np.uint16)
    special = np.array([0, 0x8000, 0x7C00, 0xFC00, 0x7E00, 0x3C00, 0xBC00, 1, 0x8001], np.uint16)
    kind = rng.integers(0, 4, shape[0])[:, None]
    codes = np.where(kind == 1, rng.choice(special, shape), codes)
    small = rng.integers(-3, 4, shape).astype(np.float16).view(np.uint16)
    codes = np.where(kind == 2, small, codes)
    fractions = rng.normal(size=shape).astype(np.float16).view(np.uint16)
    return np.where(kind == 3, fractions, codes).astype(np.uint16)


def mismatches(k, pipeline, operations=OPS, seed=1):
    rng = np.random.default_rng(seed)
    unit = Whole(k=k, operations=operations, pipeline=pipeline)
    operations = unit.dot.operations
    op = rng.integers(0, len(operations), COUNT).astype(np.uint8)
    a, b = draw(rng, (COUNT, k)), draw(rng, (COUNT, k))
    close = rng.random(COUNT) < 0.2  # operands of similar size, so that ⊕ compares close values
    b[close] = a[close, ::-1] ^ rng.integers(0, 4, (int(close.sum()), k)).astype(np.uint16)
    same = rng.random(COUNT) < 0.1
    b[same, 0] = a[same, 0]
    c = draw(rng, (COUNT, 1))[:, 0].view(np.float16).astype(np.float32)
    any_ = rng.integers(0, 1 << 32, COUNT).astype(np.uint32)
    c = np.where(rng.random(COUNT) < 0.3, any_, c.view(np.uint32))
    keep = rng.integers(0, 2, COUNT).astype(np.uint8)
    got = compile(unit).run(a=a, b=b, op=op, c=c, keep=keep)
    wrong = {}
    for index, o in enumerate(operations):
        mine = np.flatnonzero(op == index)
        z = np.where(keep[mine], c[mine].view(np.float32), np.float32(o.identity))[:, None, None]
        pairs = slice(0, k // 4 if o is Op.ADDNORM else k)
        x, y = (codes[mine, pairs].view(np.float16) for codes in (a, b))
        x, y = x[:, None, :], y[:, :, None]
        expected = mmo(o, x, y, z, k=k, squares="products")[:, 0, 0]
        wrong[o.mnemonic] = int((got[mine] != expected.view(np.uint32)).sum())
    return wrong


@pytest.mark.parametrize(("k", "pipeline"), [(1, 1), (4, 0), (4, 3), (3, 4), (8, 2)])
def test_every_operation_equals_golden(k, pipeline):
    operations = OPS if k % 4 == 0 else [op for op in OPS if op is not Op.ADDNORM]
    assert not any(mismatches(k, pipeline, operations).values())


@pytest.mark.parametrize(
    "operations",
    [
        (Op.MINPLUS,),
        (Op.MMA, Op.MAXMUL),
        (Op.MMA, Op.MINMAX, Op.MAXMIN),
        (Op.MMA, Op.ADDNORM),
        (Op.ADDNORM, Op.MINMUL, Op.MAXPLUS),
        (Op.MINMAX,),
        (Op.ORAND,),
    ],
    ids=lambda ops: "-".join(op.mnemonic for op in ops),
)
def test_subsets(operations):
    k = 4 if Op.ADDNORM in operations else 2
    assert not any(mismatches(k, 0, operations).values())


def first(m, keys, **rest):
    """Take the first candidate as ⊕."""
    return keys[:1]


def order_not_inverted(m, keys, *, sign_magnitude, **rest):
    """Order negative numbers by magnitude as if they were positive."""
    return original_least(m, keys, sign_magnitude=Const(0, 1), **rest)


def plus_zero(key, **rest):
    """Return +0 for a zero of either sign."""
    return replace(original_decode_key(key, **rest), special_sign=Const(0, 1))


def unordered(m, a, b, product, *, mode, **rest):
    """Treat ⊗ = max like the other operations."""
    return original_candidate(m, a, b, product, mode=mode | {"larger": Const(0, 1)}, **rest)


def finite(m, kept, **rest):
    """Ignore the flag of infinities."""
    return original_key_of(m, replace(kept, inf=Const(0, 1)), **rest)


def either_true(a, b):
    """Compute "or" instead of "and"."""
    return ~(a.zero | a.nan) | ~(b.zero | b.nan)


def never_equal(self, m, norm):
    """Do not force the difference of equal numbers to zero, so it shifts out other terms."""
    return [(x, y, Const(0, 1)) for x, y, _ in original_pairs(self, m, norm)]


original_least, original_decode_key = (
    vitruvian.hdl.simd2.winner.least,
    vitruvian.hdl.simd2.winner.decode_key,
)
original_candidate, original_key_of = (
    vitruvian.hdl.simd2.winner.candidate,
    vitruvian.hdl.simd2.winner.key_of,
)
original_pairs = SemiringDot._pairs
MINIMA = {"minplus", "maxplus", "minmul", "maxmul", "minmax", "maxmin"}


@pytest.mark.parametrize(
    ("target", "name", "mutant", "caught"),
    [
        (vitruvian.hdl.simd2.dot, "least", first, MINIMA),
        (vitruvian.hdl.simd2.dot, "least", order_not_inverted, MINIMA - {"minplus", "maxplus"}),
        (vitruvian.hdl.simd2.dot, "decode_key", plus_zero, MINIMA),
        (vitruvian.hdl.simd2.dot, "candidate", unordered, {"minmax", "maxmin"}),
        (vitruvian.hdl.simd2.dot, "key_of", finite, {"minplus", "maxplus", "minmul", "maxmul"}),
        (
            vitruvian.hdl.simd2.dot,
            "_is_nan",
            lambda code, format: Const(0, 1),
            {"maxmul", "maxmin"},
        ),
        (vitruvian.hdl.simd2.dot, "both_true", either_true, {"orand"}),
        (SemiringDot, "_pairs", never_equal, {"addnorm"}),
    ],
    ids=[
        "first",
        "order-not-inverted",
        "plus-zero",
        "unordered",
        "no-infinities",
        "nan-is-a-number",
        "or-for-and",
        "never-equal",
    ],
)
def test_a_mutant_fails(monkeypatch, target, name, mutant, caught):
    monkeypatch.setattr(target, name, mutant)
    small = caught != {"addnorm"}  # a smaller model compiles faster
    wrong = mismatches(2 if small else 4, 0, [op for op in OPS if op.mnemonic in caught | {"mma"}])
    assert caught <= {op for op, count in wrong.items() if count}
    assert not wrong["mma"]


def test_errors_of_parameters():
    spec = PRESETS["ieee"].spec("fp16", k=4)
    with pytest.raises(ValueError, match="at least one, not"):
        SemiringDot(spec=spec, operations=[])
    with pytest.raises(ValueError, match="different names"):
        SemiringDot(spec=spec, operations=["minplus", "minplus"])
    with pytest.raises(ValueError, match="preset ieee"):
        SemiringDot(spec=PRESETS["a100"].spec("fp16"), operations=["minplus"])
    with pytest.raises(ValueError, match="pipeline must be one of"):
        SemiringDot(spec=spec, operations=["minplus"], pipeline=7)
    with pytest.raises(ValueError, match="at most 5 exponent bits"):
        Decode(format="bf16", k=2, operations=["minplus"], side="a")
    with pytest.raises(ValueError, match="multiple of 4 with addnorm, not 6"):
        Decode(k=6, operations=["addnorm"], side="b")
    with pytest.raises(ValueError, match="side must be 'a' or 'b', not 'c'"):
        Decode(k=4, operations=["mma"], side="c")

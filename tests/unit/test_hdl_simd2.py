"""The element's arithmetic with semirings, against golden: every operation, changing each cycle."""

from dataclasses import replace

import numpy as np
import pytest
from amaranth.hdl import Array, Const, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

import hdl.simd2.dot
import hdl.simd2.winner
from golden.fp import PRESETS
from golden.simd2 import Op, mmo
from hdl.simd2.dot import SemiringDot, better, mode_of, shape_of
from hdl.simd2.operand import Decode
from sim.rtl import compile

OPS = tuple(op for op in Op if op is not Op.ADDNORM)
COUNT = 4000


class Whole(wiring.Component):
    """Decoding, `SemiringDot` and `better` in a row, with C for both ways to take it in."""

    a: data.View
    b: data.View
    op: Signal
    keep: Signal
    c: Signal
    d: Signal

    def __init__(self, *, k, operations=OPS, pipeline=0):
        spec = PRESETS["ieee"].spec("fp16", k=k)
        self.k, self.pipeline = k, pipeline
        self.latency = pipeline
        self.dot = SemiringDot(spec=spec, operations=operations, pipeline=pipeline)
        bus = data.ArrayLayout(16, k)
        members = {
            "a": In(bus),
            "b": In(bus),
            "op": In(4),
            "c": In(32),
            "keep": In(1),
            "d": Out(32),
        }
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        m.submodules.dot = dot = self.dot
        for side in "ab":
            m.submodules[f"decode_{side}"] = decode = Decode(k=self.k)
            m.d.comb += Value.cast(decode.bus).eq(Value.cast(getattr(self, side)))
            for field in ("product", "fixed", "turn"):
                table = Array([shape_of(op, side)[field] for op in Op])
                m.d.comb += decode.shape[field].eq(table[self.op])
            m.d.comb += Value.cast(getattr(dot, side)).eq(Value.cast(decode.lanes))
        mode = {name: Array([mode_of(op)[name] for op in Op])[self.op] for name in mode_of(Op.MMA)}
        for name, value in mode.items():
            m.d.comb += dot.mode[name].eq(value)
        kept = [self.c, self.keep, mode["semiring"], mode["turn"], mode["truth"]]
        m.d.comb += dot.c.eq(self.c)
        for rank in range(self.pipeline):
            later = [Signal(len(Value.cast(x)), name=f"kept{rank}_{i}") for i, x in enumerate(kept)]
            m.d.sync += [y.eq(x) for x, y in zip(kept, later, strict=True)]
            kept = later
        c, keep, semiring, turn, truth = kept
        output = self.dot.spec.output
        found = better(m, dot.d, c, output=output, turn=turn, truth=truth, keep=keep, name="better")
        with m.If(semiring):
            m.d.comb += self.d.eq(found)
        with m.Else():
            m.d.comb += self.d.eq(dot.d)
        return m


def draw(rng, shape):
    """Bit patterns, specials, small integers, and fractions."""
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
    op = rng.choice([o.code for o in operations], COUNT).astype(np.uint8)
    a, b = draw(rng, (COUNT, k)), draw(rng, (COUNT, k))
    close = rng.random(COUNT) < 0.2  # of much the same size, so that ⊕ is close
    b[close] = a[close, ::-1] ^ rng.integers(0, 4, (int(close.sum()), k)).astype(np.uint16)
    c = draw(rng, (COUNT, 1))[:, 0].view(np.float16).astype(np.float32)
    any_ = rng.integers(0, 1 << 32, COUNT).astype(np.uint32)
    c = np.where(rng.random(COUNT) < 0.3, any_, c.view(np.uint32))
    keep = rng.integers(0, 2, COUNT).astype(np.uint8)
    got = compile(unit).run(a=a, b=b, op=op, c=c, keep=keep)
    wrong = {}
    for o in operations:
        mine = np.flatnonzero(op == o.code)
        z = c[mine].view(np.float32).copy()
        if o is not Op.MMA:
            z[keep[mine] == 0] = np.nan if o.plus in ("min", "max") else 0.0
        x, y = a[mine].view(np.float16)[:, None, :], b[mine].view(np.float16)[:, :, None]
        expected = mmo(o, x, y, z[:, None, None], k=k)[:, 0, 0].view(np.uint32)
        wrong[o.mnemonic] = int((got[mine] != expected).sum())
    return wrong


@pytest.mark.parametrize(("k", "pipeline"), [(1, 0), (4, 0), (4, 3), (3, 4), (8, 2)])
def test_every_operation_equals_golden(k, pipeline):
    assert not any(mismatches(k, pipeline).values())


@pytest.mark.parametrize(
    "operations",
    [
        (Op.MINPLUS,),
        (Op.MMA, Op.MAXMUL),
        (Op.MMA, Op.MINMAX, Op.MAXMIN),
        (Op.ORAND,),
    ],
    ids=lambda ops: "-".join(op.mnemonic for op in ops),
)
def test_subsets(operations):
    assert not any(mismatches(4, 0, operations).values())


def largest(m, keys, *, name):
    """⊕ is the other one."""
    return ~hdl.simd2.winner.least(m, [~key for key in keys], name=name)


def plus_zero(key, **rest):
    """A zero is +0, whatever the operands' signs."""
    found = hdl.simd2.winner.winner_of(key, **rest)
    return replace(found, sign=found.sign & (found.magnitude.any() | found.fixed.any()))


def unordered(m, a, b, product, **rest):
    """⊗ = max does not know which operand is larger."""
    rest["larger"] = Const(0, 1)
    return hdl.simd2.winner.candidate(m, a, b, product, **rest)


@pytest.mark.parametrize(
    ("name", "mutant", "caught"),
    [
        ("least", largest, {"minplus", "maxplus", "minmul", "maxmul", "minmax", "maxmin", "orand"}),
        ("winner_of", plus_zero, {"minplus", "maxplus", "minmul", "maxmul", "minmax", "maxmin"}),
        ("candidate", unordered, {"minmax", "maxmin"}),
        ("_is_nan", lambda code, format: Const(0, 1), {"maxmul", "maxmin"}),
    ],
    ids=["largest", "plus-zero", "unordered", "nan-is-a-number"],
)
def test_a_mutant_fails(monkeypatch, name, mutant, caught):
    monkeypatch.setattr(hdl.simd2.dot, name, mutant)
    wrong = mismatches(2, 0)
    assert caught <= {op for op, count in wrong.items() if count}
    assert not wrong["mma"]


def test_what_it_refuses():
    spec = PRESETS["ieee"].spec("fp16", k=4)
    with pytest.raises(ValueError, match="not addnorm"):
        SemiringDot(spec=spec, operations=["addnorm"])
    with pytest.raises(ValueError, match="preset ieee"):
        SemiringDot(spec=PRESETS["a100"].spec("fp16"), operations=["minplus"])
    with pytest.raises(ValueError, match="pipeline must be one of"):
        SemiringDot(spec=spec, operations=["minplus"], pipeline=7)
    with pytest.raises(ValueError, match="at most 5 exponent bits"):
        Decode(format="bf16", k=2)

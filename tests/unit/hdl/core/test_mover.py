"""Movers against slices of arrays, with memories that grant and answer at random."""

from functools import partial

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.sim import Simulator

from vitruvian.golden.core.encoding import BUFFERS, DTYPES, ENCODINGS, WORD_BITS
from vitruvian.hdl.core import mover
from vitruvian.hdl.core.mover import Mover

_BYTES, _BLOCK = 1 << 13, 32
_SPAN = 13


def _record(op, levels=(), **values):
    codes = {name.replace("_of_", "."): int(value) for name, value in values.items()}
    words = ENCODINGS[op].pack(codes, tuple(count << 32 | step for step, count in levels))
    return sum(word << WORD_BITS * n for n, word in enumerate(words))


def _copy(rng, source, target, grain=1):
    bursts, size = rng.integers(1, 5), rng.integers(1, 120)
    src, dst, there, here = (
        place // grain * grain
        for place in (rng.integers(1000, 4000), rng.integers(0, 4000), 256, rng.integers(200))
    )
    for n in range(bursts):
        at = src + n * here
        target[dst + n * there :][:size] = source[at : at + size]
    return _record(
        "copy",
        dst_of_buffer=BUFFERS.index("UB"),
        src=src,
        dst=dst,
        bursts=bursts,
        burst_bytes=size,
        src_stride=here,
        dst_stride=there,
    )


def _load(rng, source, target):
    repeat, src, dst, step = (*rng.integers(1, 3, 3), 2)
    for n in range(repeat):
        at, to = 512 * (src + n * step), 512 * (dst + n)
        target[to : to + 512] = source[at : at + 512]
    strides = {"src_stride": 512 * step, "dst_stride": 512}
    return _record("load", src=512 * src, dst=512 * dst, repeat=repeat, **strides)


def _fill(rng, source, target):
    dtype, levels = rng.choice(["int8", "fp16", "fp32"]), [(1024, 2), (64, 3)]
    width = {"int8": 1, "fp16": 2, "fp32": 4}[dtype]
    value, size, dst = int(rng.integers(1 << 32)), int(rng.integers(1, 17)) * 4, 96
    pattern = np.frombuffer(value.to_bytes(4, "little")[:width] * (size // width), np.uint8)
    for outer in range(2):
        for inner in range(3):
            target[dst + 1024 * outer + 64 * inner :][:size] = pattern
    code = DTYPES.index(dtype)
    return _record("fill", levels, dst=dst, run=size, value=value, dst_of_dtype=code)


def _nd2nz(rng, source, target):
    rows, columns, src = rng.integers(1, 5), rng.integers(1, 60), rng.integers(0, 900)
    row_step, matrix_step = rng.integers(100, 200), 1000
    for matrix in range(2):
        for row in range(rows):
            line = np.zeros(-(-columns // _BLOCK) * _BLOCK, np.uint8)
            at = src + matrix * matrix_step + row * row_step
            line[:columns] = source[at : at + columns]
            for block in range(len(line) // _BLOCK):
                to = 64 + 4096 * matrix + 512 * block + _BLOCK * row
                target[to : to + _BLOCK] = line[_BLOCK * block :][:_BLOCK]
    return _record(
        "nd2nz",
        src_of_dtype=DTYPES.index("int8"),
        dst=64,
        src=src,
        matrices=2,
        rows=rows,
        columns=columns,
        src_matrix_stride=matrix_step,
        src_row_stride=row_step,
        dst_c0_stride=512,
        dst_row_stride=_BLOCK,
        dst_matrix_stride=4096,
    )


_OPS = {"copy": _copy, "load": _load, "fill": _fill, "nd2nz": _nd2nz}


def _move(unit, rng, count):
    """Run random instructions on a mover; return the target, and what it should be."""
    source = rng.integers(0, 256, _BYTES, np.uint8)
    found, wanted = np.zeros(_BYTES, np.uint8), np.zeros(_BYTES, np.uint8)
    operations = _OPS | {"copy": partial(_copy, grain=1 << unit.grain_bits)}
    records = [operations[rng.choice(unit.ops)](rng, source, wanted) for _ in range(count)]

    async def process(ctx):
        line, cycles = None, 0
        while records or not ctx.get(unit.idle):
            valid = bool(records) and bool(ctx.get(unit.idle))
            ctx.set(unit.i.valid, valid)
            if valid:
                ctx.set(unit.i.payload, records[0])
            ctx.set(unit.r.valid, line is not None)
            ctx.set(unit.r.data, line or 0)
            reads, writes = (rng.random() < 0.8 and ctx.get(p.request) for p in (unit.r, unit.w))
            ctx.set(unit.r.grant, reads)
            ctx.set(unit.w.grant, writes)
            at = ctx.get(unit.r.address) * _BLOCK
            line = int.from_bytes(source[at : at + _BLOCK].tobytes(), "little") if reads else None
            if writes:
                to, data = ctx.get(unit.w.address) * _BLOCK, ctx.get(unit.w.data)
                enable = ctx.get(unit.w.enable)
                for n in range(_BLOCK):
                    if enable >> n & 1:
                        found[to + n] = data >> 8 * n & 255
            if valid and ctx.get(unit.i.ready):
                records.pop(0)
            await ctx.tick()
            cycles += 1
            assert cycles < 20_000, "the mover stands still"

    module = Module()
    module.submodules.unit = unit
    simulator = Simulator(module)
    simulator.add_clock(1e-6)
    simulator.add_testbench(process)
    simulator.run()
    return found, wanted


@pytest.mark.parametrize("spans", [(_SPAN, _SPAN), (32, _SPAN), (_SPAN, 32)])
@pytest.mark.parametrize(
    ("ops", "grain"),
    [
        (("copy",), 1),
        (("copy", "load", "fill"), 1),
        (("copy", "nd2nz", "load", "fill"), 1),
        (("copy",), 32),
        (("copy", "load", "fill"), 32),
        (("copy", "load", "fill"), 8),
    ],
)
def test_bytes_are_those_of_slices(ops, grain, spans):
    rng = np.random.default_rng(len(ops))
    found, wanted = _move(Mover(ops=ops, ahead=8, spans=spans, grain=grain), rng, 20)
    assert (found != 0).any()
    assert np.array_equal(found, wanted)


def test_a_wrong_turn_is_noticed(monkeypatch):
    right = mover.rotate

    def wrong(m, block, places, name, *, step=1):
        return right(m, block, places, name, step=16 if step == 8 else step)

    monkeypatch.setattr(mover, "rotate", wrong)
    found, wanted = _move(Mover(ops=("copy",), spans=(_SPAN, _SPAN)), np.random.default_rng(1), 9)
    assert not np.array_equal(found, wanted)


def _places(step, side):
    """Return the rows that a mover asks for, and those that it writes, in a copy of two bursts."""
    unit = Mover(ops=("copy",), spans=(_SPAN, _SPAN))
    strides = {"src_stride": 32, "dst_stride": 32} | {f"{side}_stride": step % (1 << 32)}
    record = _record("copy", src=4096, dst=4096, bursts=2, burst_bytes=32, **strides)
    rows = {"src": [], "dst": []}

    async def process(ctx):
        for cycle in range(20):
            ctx.set(unit.i.valid, cycle == 0)
            ctx.set(unit.i.payload, record)
            for name, port in (("src", unit.r), ("dst", unit.w)):
                asks = ctx.get(port.request)
                ctx.set(port.grant, asks)
                if asks:
                    rows[name].append(ctx.get(port.address))
            ctx.set(unit.r.valid, len(rows["src"]) > 0)
            await ctx.tick()

    simulator = Simulator(unit)
    simulator.add_clock(1e-6)
    simulator.add_testbench(process)
    simulator.run()
    return rows


@pytest.mark.parametrize("side", ["src", "dst"])
@pytest.mark.parametrize("step", [-4096 - 32, 4096, 1 << 13, 1 << 14, -(1 << 14), 1 << 30, 1 << 31])
def test_a_step_out_of_the_memory_leads_beyond_it(step, side):
    first, second = _places(step, side)[side][:2]
    assert first == 4096 // _BLOCK
    assert second >= (1 << _SPAN) // _BLOCK


@pytest.mark.parametrize("side", ["src", "dst"])
@pytest.mark.parametrize("step", [-4096, 4096 - 32])
def test_a_step_within_the_memory_stays_in_it(step, side):
    assert _places(step, side)[side][:2] == [4096 // _BLOCK, (4096 + step) // _BLOCK]

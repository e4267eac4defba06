"""Integer SIMD² tiles against golden: subsets, widths, pipeline depths and mutants."""

import numpy as np
import pytest
from amaranth.hdl import Value

from vitruvian.golden.simd2 import Op
from vitruvian.golden.simd2.integer import int_mmo
from vitruvian.hdl.elaborate import to_rtlil
from vitruvian.hdl.simd2 import IntConfig, IntElement, IntTile, intparts
from vitruvian.sim import rtl
from vitruvian.sim.bench.simd2.integer import CONFIGURATIONS, run_int_tile, tile_name

SEED = 20261121


@pytest.mark.parametrize("op", Op)
def test_one_operation_alone(op):
    result = run_int_tile(IntConfig(m=1, n=2, k=2, bits=8, operations=(op,)), 3_000, SEED)
    assert result.vectors > 2_900 and not result.mismatches, result.examples


@pytest.mark.parametrize("op", [op for op in Op if op is not Op.MMA])
def test_one_operation_beside_mma(op):
    config = IntConfig(m=1, n=1, k=2, bits=8, operations=(Op.MMA, op), pipeline=1)
    result = run_int_tile(config, 3_000, SEED)
    assert result.vectors > 2_900 and not result.mismatches, result.examples


_WIDE = (
    IntConfig(m=1, n=1, k=2, bits=32, pipeline=0),
    IntConfig(m=1, n=1, k=2, bits=64),
)


@pytest.mark.parametrize("config", (*CONFIGURATIONS, *_WIDE), ids=tile_name)
def test_opcode_changes_every_beat(config):
    result = run_int_tile(config, 5_000, SEED)
    assert result.vectors > 4_900 and not result.mismatches, result.examples


def test_every_pair_of_bytes():
    """All operations with K = 2 and equal lanes: 9 x 65536 results."""
    config = IntConfig(m=1, n=1, k=2, bits=8)
    model = rtl.compile_unit(IntTile, config=config)
    x = np.repeat(np.arange(256, dtype=np.uint8), 256)
    y = np.tile(np.arange(256, dtype=np.uint8), 256)
    checked = 0
    for op in Op:
        a, b = np.stack([x, x], 1)[:, None], np.stack([y, y], 1)[:, None]
        c = np.full((len(x), 1, 1), 3, np.uint8)
        got = model.run(valid=1, first=1, op=op.code, a=a, b=b, c=c)["d"].view(np.int8)
        want = int_mmo(op, a, np.swapaxes(b, 1, 2), c, 8)
        np.testing.assert_array_equal(got, want)
        checked += len(x)
    assert checked == 9 * 65536


def test_a_unit_for_mma_is_the_plain_one():
    """It has no logic of the other operations, not even a wire."""
    text = to_rtlil(IntElement(config=IntConfig(operations=(Op.MMA,))))
    for word in ("addend", "truth", "extreme", "largest", "square", "pick", "lane"):
        assert word not in text


def test_latency_is_the_same_for_all_subsets():
    for pipeline in (0, 1, 2):
        for op in Op:
            tile = IntTile(config=IntConfig(operations=(op,), pipeline=pipeline))
            assert tile.latency == pipeline + 2


_SMALL = IntConfig(m=1, n=1, k=2, bits=8)


@pytest.mark.parametrize(
    ("owner", "name", "mutant"),
    [
        (intparts, "less", lambda x, y: less(y, x)),
        (intparts, "less", lambda x, y: x < y),
        (
            IntConfig,
            "control_bits",
            lambda self, op: control_bits(self, Op.MMA if op is Op.ORAND else op),
        ),
        (
            IntConfig,
            "control_bits",
            lambda self, op: control_bits(self, op) | {"pick_largest": False},
        ),
    ],
    ids=["min for max", "unsigned", "or as sum", "max picks as min"],
)
def test_mutants_are_caught(monkeypatch, owner, name, mutant):
    assert not run_int_tile(_SMALL, 2_000, SEED, model=_model(_SMALL)).mismatches
    monkeypatch.setattr(owner, name, mutant)
    result = run_int_tile(_SMALL, 2_000, SEED, model=_model(_SMALL))
    assert result.mismatches and result.examples


def test_a_wrong_identity_in_a_lane_is_caught(monkeypatch):
    """The mutant has a lane that gives ⊕ a zero instead of its identity."""

    def padded(self, m, words, stage):
        return build(self, m, [words[0], words[1] & 0], stage)

    build = IntElement._build_extremum
    monkeypatch.setattr(IntElement, "_build_extremum", padded)
    assert run_int_tile(_SMALL, 2_000, SEED, model=_model(_SMALL)).mismatches


def test_or_and_exchanged_is_caught(monkeypatch):
    """The mutant computes and-or, as the unit that the authors of SIMD² published does."""
    config = IntConfig(m=1, n=1, k=2, bits=8, operations=(Op.ORAND,))

    def exchanged(self, m, rows, hit):
        either = Value.cast(self.a.truth) | Value.cast(self.b.truth)
        return build(self, m, rows, either.all())

    build = IntElement._build_accumulator
    monkeypatch.setattr(IntElement, "_build_accumulator", exchanged)
    assert run_int_tile(config, 2_000, SEED, model=_model(config)).mismatches


def _model(config):
    return rtl.compile(IntTile(config=config))


control_bits, less = IntConfig.control_bits, intparts.less


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 3}, "k must be even, not 3"),
        ({"m": 0}, "m must be at least 1, not 0"),
        ({"n": 1.5}, r"n must be an int, not 1\.5"),
        ({"bits": 12}, "bits must be one of 8, 16, 32, 64, not 12"),
        ({"pipeline": 3}, "pipeline must be one of 0, 1, 2, not 3"),
        ({"operations": ("mma",)}, "operations must be a tuple of Op"),
        ({"operations": (Op.MMA, Op.MMA)}, "operations must be different"),
    ],
)
def test_errors_say_what_is_allowed(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        IntConfig(**options)

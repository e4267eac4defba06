"""Compiled models: ports of every shape, streams, builds, and messages for wrong arguments."""
# pyright: reportInvalidTypeForm=false

import os
import shutil
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tests.support.toys import DelayedDot, Mode, Shapes, StreamAdder, Wide
from vitruvian.common import cache
from vitruvian.sim import rtl
from vitruvian.sim.rtl import toolchain
from vitruvian.sim.rtl.emit import to_verilog

RNG = np.random.default_rng(20240501)


def dot_operands(count: int) -> dict[str, Any]:
    return {
        "a": RNG.integers(0, 256, (count, 3), dtype=np.uint8),
        "b": RNG.integers(0, 32, (count, 3), dtype=np.uint8),
        "c": RNG.integers(0, 2**24, count, dtype=np.uint32),
    }


def dot_expected(v: dict[str, Any]) -> np.ndarray:
    products = v["a"].astype(np.uint64) * v["b"].astype(np.uint64)
    return (v["c"] + products.sum(axis=1)) % 2**24


@pytest.mark.parametrize("pipeline", [0, 1, 3])
def test_dot_product_of_every_depth(pipeline):
    model = rtl.compile(DelayedDot(pipeline=pipeline))
    for count in (1, 2, 5, 10_000):
        v = dot_operands(count)
        got = model.run(**v)
        assert got.shape == (count,) and got.dtype == np.uint32
        np.testing.assert_array_equal(got, dot_expected(v))
    v = dot_operands(50_001)
    np.testing.assert_array_equal(model.run(threads=2, **v), dot_expected(v))


def test_any_integer_dtype_and_a_held_scalar():
    model = rtl.compile(DelayedDot())
    v = dot_operands(7)
    for dtype in (np.int64, np.uint64, np.int32):
        wide = {name: array.astype(dtype) for name, array in v.items()}
        np.testing.assert_array_equal(model.run(**wide), dot_expected(v))
    held = model.run(a=v["a"], b=v["b"], c=9)
    np.testing.assert_array_equal(held, dot_expected(v | {"c": np.full(7, 9, np.uint32)}))
    # an 8-bit port accepts the codes of an int8 array
    np.testing.assert_array_equal(model.run(**(v | {"a": v["a"].view(np.int8)})), dot_expected(v))


def test_structures_signed_fields_and_enums():
    model = rtl.compile(Shapes())
    n = 3000
    x = RNG.integers(-64, 64, (n, 2))
    y = RNG.integers(-4096, 4096, (n, 2, 2))
    for mode in Mode:
        out = model.run(mode=mode.value, pairs={"x": x, "y": y})
        total = x + y.sum(axis=2)
        sign = 1 if mode is Mode.SUM else -1
        np.testing.assert_array_equal(out["result"]["sum"], total[:, 0] + sign * total[:, 1])
        assert out["result"]["sum"].dtype == np.int32
        np.testing.assert_array_equal(out["result"]["flags"][:, 0], total[:, 0] < 0)
        np.testing.assert_array_equal(out["result"]["flags"][:, 2], total[:, 1] < 0)
        assert out["result"]["flags"].shape == (n, 3) and not out["result"]["flags"][:, 1].any()
        np.testing.assert_array_equal(out["same"], x[:, 1])


def test_wide_ports_as_words():
    model = rtl.compile(Wide())
    n = 500
    a, b = RNG.integers(0, 2**63, (2, n, 2), dtype=np.uint64) * 2
    a[:, 1], b[:, 1] = a[:, 1] >> 28, b[:, 1] >> 28
    f = {
        "low": RNG.integers(0, 128, n),
        "mid": RNG.integers(0, 2**40, n),
        "high": RNG.integers(0, 2**64, n, dtype=np.uint64),
    }
    out = model.run(a=a, b=b, f=f)
    for name, value in f.items():
        np.testing.assert_array_equal(out["g"][name], value)
    for i in range(n):
        big = [int(v[i, 0]) | int(v[i, 1]) << 64 for v in (a, b, out["d"])]
        assert big[2] == (big[0] ^ big[1] << 1) % 2**100


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"c": None}, ValueError, "inputs must be a, b, c, not a, b"),
        ({"e": np.zeros(4, int)}, ValueError, "inputs must be a, b, c, not a, b, c, e"),
        ({"a": np.zeros((4, 2), int)}, ValueError, r"a must have the shape \(N, 3\), not \(4, 2\)"),
        ({"a": np.zeros((4, 3))}, TypeError, "a must be an array of integers, not of float64"),
        ({"a": np.ones((4, 3), bool)}, TypeError, "a must be an array of integers, not of bool"),
        ({"a": np.full((4, 3), 256)}, ValueError, r"a must be within 0\.\.255, not 256"),
        ({"b": np.full((4, 3), -1)}, ValueError, r"b must be within 0\.\.31, not -1"),
        ({"c": np.zeros(3, int)}, ValueError, "inputs must have one length, not"),
    ],
)
def test_wrong_arrays_are_named(change, error, text):
    model = rtl.compile(DelayedDot())
    given = dot_operands(4) | change
    with pytest.raises(error, match=text):
        model.run(**{name: value for name, value in given.items() if value is not None})


def test_wrong_use_is_named():
    model = rtl.compile(DelayedDot())
    with pytest.raises(ValueError, match="threads must be a positive number, not 0"):
        model.run(threads=0, **dot_operands(4))
    with pytest.raises(ValueError, match="at least one input must be an array"):
        rtl.compile(Nested()).run(bus__x=1, lane__0=2, lane__1=3)
    with pytest.raises(TypeError, match="has no streams; use run"):
        model.stream(inputs={}, outputs={})
    with pytest.raises(ValueError, match="latency of top must be 0 without a clock, not 2"):
        rtl.compile(DelayedDot(), latency=2)
    with pytest.raises(ValueError, match="latency must be a number of cycles, 0 or more, not -1"):
        rtl.compile(DelayedDot(), latency=-1)


def test_empty_batch():
    none = dot_operands(0)
    assert rtl.compile(DelayedDot(pipeline=3)).run(**none).shape == (0,)


def stream_operands(count: int) -> tuple[dict[str, Any], np.ndarray]:
    v = {
        "x": RNG.integers(0, 2**16, count),
        "y": RNG.integers(0, 2**12, (count, 2)),
    }
    return v, v["x"] + v["y"].sum(axis=1) + 5


@pytest.mark.parametrize("rate", [0.0, 0.5, {"o": 0.9}, {"i": 0.9}])
@pytest.mark.parametrize("reset_at", [None, 300])
def test_streams_with_stalls_and_reset(rate, reset_at):
    model = rtl.compile(StreamAdder())
    v, expected = stream_operands(2000)
    got = model.stream(
        inputs={"i": v}, outputs={"o": 2000}, held={"bias": 5}, stall_rate=rate, reset_at=reset_at
    )
    np.testing.assert_array_equal(got.outputs["o"], expected)
    assert (np.diff(got.output_cycles["o"].astype(int)) >= 1).all()
    assert (got.output_cycles["o"] > got.input_cycles["i"]).all()
    assert got.ports["count"] == [2000]
    if rate == 0.0 and reset_at is None:
        assert got.cycles < 2000 + 64 + 8


def test_stalls_repeat_by_seed():
    model = rtl.compile(StreamAdder())
    v, _ = stream_operands(300)

    def cycles(seed):
        return model.stream(
            inputs={"i": v}, outputs={"o": 300}, held={"bias": 5}, stall_rate=0.4, stall_seed=seed
        ).output_cycles["o"]

    np.testing.assert_array_equal(cycles(3), cycles(3))
    assert (cycles(3) != cycles(4)).any()


@pytest.mark.parametrize("fault", ["lost", "twice", "hang"])
def test_faults_in_the_hand_shake_are_errors(fault):
    model = rtl.compile(StreamAdder(fault=fault))
    v, _ = stream_operands(500)
    what = {"lost": "hung", "twice": "surplus", "hang": "hung"}[fault]
    with pytest.raises(rtl.StreamError, match=f"{what}.*o gave"):
        model.stream(
            inputs={"i": v}, outputs={"o": 500}, held={"bias": 5}, stall_rate=0.5, quiet_limit=500
        )


def test_a_wrong_sum_is_seen():
    model = rtl.compile(StreamAdder(fault="sum"))
    v, expected = stream_operands(500)
    got = model.stream(inputs={"i": v}, outputs={"o": 500}, held={"bias": 5})
    wrong = got.outputs["o"] != expected
    np.testing.assert_array_equal(wrong, v["x"] % 32 == 21)
    assert wrong.any()


def test_wrong_streams_are_named():
    model = rtl.compile(StreamAdder())
    v, _ = stream_operands(4)
    good = {"inputs": {"i": v}, "outputs": {"o": 4}, "held": {"bias": 5}}
    for change, text in [
        ({"inputs": {}}, "inputs must be i, not nothing"),
        ({"outputs": {"p": 4}}, "outputs must be o, not p"),
        ({"held": {}}, "held must be bias, not nothing"),
        ({"outputs": {"o": -1}}, "number of beats of o must be 0 or more, not -1"),
        ({"stall_rate": 1.0}, r"stall_rate of \w must be within \[0, 1\), not 1.0"),
        ({"stall_rate": {"q": 0.1}}, r"stall_rate must name streams of \['i', 'o'\], not \['q'\]"),
        ({"inputs": {"i": {"x": v["x"]}}}, "i must be a mapping with the fields x, y, not x"),
    ]:
        with pytest.raises(ValueError, match=text):
            model.stream(**(good | change))
    with pytest.raises(TypeError, match=r"use stream\(\), not run"):
        model.run(i=0)


VERILOG = """
module half (input clk, input wire [7:0] a, b, output reg signed [8:0] s);
  always @(posedge clk) s <= a - b;  // input c
endmodule
"""


def test_verilog_text():
    text = VERILOG.replace("[7:0] a, b", "[7:0] a, input [7:0] b")
    model = rtl.compile_verilog(text, top="half", latency=1)
    a, b = RNG.integers(0, 256, (2, 100))
    np.testing.assert_array_equal(model.run(a=a, b=b), a - b)


def test_mutated_verilog_of_a_component():
    unit = DelayedDot(pipeline=1)
    text = to_verilog(unit)
    v = dot_operands(100)
    same = rtl.compile_verilog(text, interface=unit)
    np.testing.assert_array_equal(same.run(**v), dot_expected(v))
    assert text.count(" * ") == 3
    wrong = rtl.compile_verilog(text.replace(" * ", " + ", 1), interface=unit)
    assert (wrong.run(**v) != dot_expected(v)).any()


def test_verilog_that_is_wrong_is_an_error(own_cache):
    with pytest.raises(ValueError, match="Verilog must have a module top"):
        rtl.compile_verilog(VERILOG)
    with pytest.raises(ValueError, match="top must have the ports a, b, c, d, not only"):
        rtl.compile_verilog("module top(input x);endmodule", interface=DelayedDot())
    with pytest.raises(rtl.BuildError, match=r"Verilator failed .*\n(.*\n)*.*%Error"):
        rtl.compile_verilog("module top(input x, output y); assign y = ; endmodule")
    assert not list((own_cache / "rtl").iterdir())


def test_second_time_comes_from_the_cache_and_damage_is_repaired(tmp_path, monkeypatch):
    text = "module top(input [3:0] x, output [3:0] y); assign y = ~x; endmodule"
    rtl.compile_verilog(text)
    run_time = cache.cache_root() / "verilated"  # the same for all models
    shutil.copytree(run_time, tmp_path / run_time.name, copy_function=os.link)
    monkeypatch.setenv("VITRUVIAN_CACHE", str(tmp_path))
    first = rtl.compile_verilog(text)
    assert not first.cached and first.build_seconds > 0
    assert rtl.compile_verilog(text).cached
    for damage in ("truncate", "meta", "partial"):
        folder = first.path.parent
        if damage == "truncate":
            library = folder / "model.so"
            content = library.read_bytes()
            library.unlink()  # the loaded library is not affected
            library.write_bytes(content[:-100])
        elif damage == "meta":
            (folder / "meta.json").write_text('{"files":')
        else:
            folder.rename(folder.with_name(folder.name + ".partial"))
        again = rtl.compile_verilog(text)
        assert not again.cached
        assert again.run(x=[1, 2]).tolist() == [14, 13]
        assert not list(folder.parent.glob("*.partial"))


def test_an_interrupted_build_leaves_nothing(own_cache):
    def interrupted(folder):
        (folder / "half").write_text("x")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.entry("rtl", "k", interrupted)
    assert not list((own_cache / "rtl").iterdir())
    folder, facts = cache.entry("rtl", "k", lambda folder: {"n": 1})
    assert facts == {"n": 1, "cached": False} and folder.is_dir()


@pytest.fixture
def fresh_tools():
    toolchain.compiler.cache_clear()
    toolchain.verilator.cache_clear()
    yield
    toolchain.compiler.cache_clear()
    toolchain.verilator.cache_clear()


def test_missing_tools_say_what_to_install(monkeypatch, fresh_tools):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(rtl.ToolError, match="no-such-compiler not found; install it"):
        rtl.compile(DelayedDot())
    monkeypatch.delenv("CXX")
    toolchain.verilator.cache_clear()
    monkeypatch.setenv("VERILATOR", "no-such-verilator")
    with pytest.raises(rtl.ToolError, match=r"VERILATOR must name .* not 'no-such-verilator'"):
        rtl.compile(DelayedDot())


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("Verilator 5.036 2025-04-27 rev v5.036", (5, 36)),
        ("Verilator 4.038 2020", (4, 38)),
        (" rev vUNKNOWN-built20260516-4e853d8", None),
    ],
)
def test_version_of_verilator(text, version):
    assert toolchain.parse_version(text) == version


class Nested(wiring.Component):
    """Nested members and arrays of members, which become flat names."""

    bus: Out(wiring.Signature({"x": In(4), "y": Out(4)}))
    lane: In(3).array(2)
    z: Out(5)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [self.bus.y.eq(~self.bus.x), self.z.eq(self.lane[0] + self.lane[1])]
        return m


def test_nested_members():
    model = rtl.compile(Nested())
    out = model.run(bus__x=np.arange(8), lane__0=np.arange(8), lane__1=7)
    np.testing.assert_array_equal(out["bus__y"], 15 - np.arange(8))
    np.testing.assert_array_equal(out["z"], np.arange(8) + 7)

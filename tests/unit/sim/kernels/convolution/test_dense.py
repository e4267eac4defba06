"""Convolution on the Cube: golden to the bit, near the exact result, and every flag is needed."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vitruvian.sim.davinci import Kind, load_chip, simulate
from vitruvian.sim.kernels.convolution import (
    ConvOperands,
    ConvPlan,
    ConvShape,
    ConvTiling,
    build,
    choose,
    golden,
    result,
)
from vitruvian.sim.kernels.ring import Ring

C310, C910 = load_chip("ascend310"), load_chip("ascend910")


def exact(s: ConvShape, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Convolve in float64, one position of the kernel after the other, without Im2Col."""
    p = s.patches
    padded = np.pad(x.astype(float), ((0, 0), (0, 0), s.pad[:2], s.pad[2:]))
    y = np.zeros((s.images, s.filters, p.rows, p.columns))
    depth, each = s.channels // s.groups, s.filters // s.groups
    for f in range(s.filters):
        first = f // each * depth
        for i, j in np.ndindex(*s.kernel):
            rows = i * s.dilation[0] + np.arange(p.rows) * s.stride[0]
            columns = j * s.dilation[1] + np.arange(p.columns) * s.stride[1]
            part = padded[:, first : first + depth, rows[:, None], columns]
            y[:, f] += np.einsum("nchw,c->nhw", part, w[f, :, i, j].astype(float))
    return y


def operands(
    s: ConvShape, seed: int, *, integers: bool = False, bias: bool = False
) -> ConvOperands:
    rng = np.random.default_rng(seed)
    sizes = [(s.images, s.channels, s.height, s.width)]
    sizes += [(s.filters, s.channels // s.groups, *s.kernel), (s.filters,)]
    if integers:
        arrays = [rng.integers(-3, 4, size).astype(np.float16) for size in sizes]
    else:
        arrays = [rng.normal(size=size).astype(np.float16) for size in sizes]
    return ConvOperands(arrays[0], arrays[1], arrays[2] if bias else None)


def run(s: ConvShape, data: ConvOperands, **options) -> tuple[np.ndarray, list]:
    report = simulate(build(s, bias=data.b is not None, data=data, **options), strict=True)
    return result(report.outputs["y"], s.filters), report.findings


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.tobytes() == b.tobytes()


@st.composite
def shapes(draw):
    two = st.tuples(st.integers(1, 3), st.integers(1, 3))
    kernel, stride, dilation = draw(two), draw(two), draw(two)
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    pad = draw(st.tuples(*[st.integers(0, 3)] * 4))
    least = [max(1, extent[0] - sum(pad[:2])), max(1, extent[1] - sum(pad[2:]))]
    height, width = (draw(st.integers(low, low + 5)) for low in least)
    groups = draw(st.sampled_from([1, 1, 1, 2, 3]))
    return ConvShape(
        images=draw(st.integers(1, 2)),
        channels=groups * draw(st.integers(1, 20)),
        height=height,
        width=width,
        filters=groups * draw(st.integers(1, 20)),
        kernel=kernel,
        stride=stride,
        pad=pad,
        dilation=dilation,
        groups=groups,
    )


@settings(max_examples=20)
@given(shapes(), st.integers(1, 4), st.booleans(), st.data())
def test_any_geometry_is_golden_to_the_bit_and_exact_on_integers(s, cores, bias, draw):
    chip = draw.draw(st.sampled_from([C310, C910]))
    data = operands(s, s.channels, integers=True, bias=bias)
    y, findings = run(s, data, chip=chip, cores=min(cores, chip.kind().count))
    assert not findings
    # Sums of integers below 2048 are exact in FP16, in any order.
    start = 0 if data.b is None else data.b[None, :, None, None].astype(float)
    assert np.array_equal(y, exact(s, data.x, data.w) + start)
    data = operands(s, s.height, bias=bias)
    y, _ = run(s, data, chip=chip, cores=1)
    assert same(y, golden.dense(s, data.x, data.w, data.b))


S = ConvShape(
    images=2,
    channels=70,
    height=9,
    width=10,
    filters=50,
    kernel=(3, 2),
    stride=(2, 1),
    pad=(1, 0, 1, 2),
    dilation=(1, 2),
)


#: A smaller one, because small tiles make many instructions.
SMALL = replace(S, images=1, channels=36, height=7, width=6, filters=34)


@settings(max_examples=10)
@given(st.data())
def test_the_tiling_does_not_change_a_bit(data):
    def pick(most: int) -> int:
        return data.draw(st.integers(1, most))

    s, p = SMALL, SMALL.patches
    columns = data.draw(st.sampled_from([p.columns, pick(p.columns)]))
    order = data.draw(st.sampled_from(["filters", "pixels"]))
    tiling = ConvTiling(pick(p.rows), columns, pick(s.n1), pick(s.c1), pick(7), order)
    values = operands(s, 3, bias=True)
    y, findings = run(s, values, tiling=tiling, chip=C910, cores=pick(5))
    assert not findings and same(y, golden.dense(s, values.x, values.w, values.b))


def test_golden_is_near_the_exact_result():
    data = operands(S, 4)
    sums = exact(S, np.abs(data.x), np.abs(data.w))
    y = golden.dense(S, data.x, data.w)
    # 30 blocks of K, each rounded once to FP32, and the result rounded once to FP16.
    bound = 30 * 2.0**-24 * sums + 2.0**-11 * np.abs(y) + 2.0**-25
    assert (np.abs(y - exact(S, data.x, data.w)) <= bound).all()


def test_the_order_of_the_blocks_is_part_of_the_contract():
    """The same products in another order of the kernel's positions have other bits."""
    data = operands(S, 5)
    turned = replace(S, kernel=S.kernel[::-1], stride=S.stride[::-1], dilation=S.dilation[::-1])
    turned = replace(turned, pad=(*S.pad[2:], *S.pad[:2]), height=S.width, width=S.height)
    x, w = (np.ascontiguousarray(a.swapaxes(2, 3)) for a in (data.x, data.w))
    other = golden.dense(turned, x, w).swapaxes(2, 3)
    y = golden.dense(S, data.x, data.w)
    assert not same(np.ascontiguousarray(other), y)
    assert np.allclose(other, y, rtol=2**-9, atol=2**-9)


@pytest.mark.parametrize("bias", [False, True])
def test_relu_and_infinities(bias):
    data = operands(S, 6, bias=bias)
    data.x[0, 3] = np.copysign(np.float16(6e4), data.x[0, 3])
    y, findings = run(S, data, chip=C910, cores=2, relu=True)
    expected = golden.dense(S, data.x, data.w, data.b, relu=True)
    assert not findings and same(y, expected)
    assert np.isinf(y).any() and not (y < 0).any()


#: Layers of ResNet-50, with an eighth of the channels, a quarter of the side and of the stem's.
RESNET = [
    {
        "channels": 3,
        "height": 56,
        "width": 56,
        "filters": 8,
        "kernel": (7, 7),
        "stride": (2, 2),
        "pad": (3,) * 4,
    },
    {"channels": 8, "height": 14, "width": 14, "filters": 8, "kernel": (3, 3), "pad": (1,) * 4},
    {"channels": 8, "height": 14, "width": 14, "filters": 32, "kernel": (1, 1)},
    {"channels": 32, "height": 14, "width": 14, "filters": 64, "kernel": (1, 1), "stride": (2, 2)},
    {"channels": 64, "height": 2, "width": 2, "filters": 64, "kernel": (3, 3), "pad": (1,) * 4},
    {"channels": 64, "height": 4, "width": 4, "filters": 256, "kernel": (1, 1)},
]


@pytest.mark.parametrize("layer", RESNET)
def test_layers_of_resnet_50(layer):
    s = ConvShape(images=1, **layer)
    data = operands(s, 7, bias=True)
    y, findings = run(s, data, chip=C910)
    assert not findings and same(y, golden.dense(s, data.x, data.w, data.b))


def test_layers_beyond_the_buffers_are_tiled():
    wide = ConvShape(images=1, channels=16, height=2, width=20_000, filters=16, kernel=(2, 3))
    deep = ConvShape(images=1, channels=2048, height=3, width=3, filters=512, kernel=(3, 3))
    for s in (wide, deep):
        plan = ConvPlan(s, choose(s, C910, 32), C910, 32)
        assert len(plan.tiles) * plan.filter_tiles * len(plan.chunks) > 4
        program = build(s, chip=C910)
        assert len(program) <= plan.instructions


# Checks that the kernel's own synchronisation is needed and complete.


def flags(program) -> Counter:
    """Count set flags less those that are waited for."""
    left: Counter = Counter()
    for core in program:
        for instr in core.instructions:
            if instr.kind in (Kind.SET, Kind.WAIT) and "register" in instr.fields:
                f = instr.fields
                key = core.index, f["source"], f["target"], f["register"]
                left[key] += 1 if instr.kind == Kind.SET else -1
    return left


def test_no_flag_stays_set():
    for tiling in (None, ConvTiling(2, 4, 1, 2, 3), ConvTiling(2, 13, 2, 1, 5, "pixels")):
        left = flags(build(S, chip=C910, cores=3, tiling=tiling, bias=True))
        assert len(left) > 10 and set(left.values()) == {0}


@pytest.mark.parametrize("pair", [("MTE2", "MTE1"), ("MTE1", "M"), ("M", "V"), ("V", "MTE3")])
@pytest.mark.parametrize("forward", [True, False])
def test_a_missing_flag_is_a_race(monkeypatch, pair, forward):
    read, write = Ring.read, Ring.write

    def access(self, use, original, silent):
        made = original(self, use)
        if (self.source.name, self.target.name) == pair:
            setattr(made, silent, None)
        return made

    # A flag forward is set after a write and waited for before a read; a flag back vice versa.
    ends = ("waits", "signals") if forward else ("signals", "waits")
    monkeypatch.setattr(Ring, "read", lambda self, use=None: access(self, use, read, ends[0]))
    monkeypatch.setattr(Ring, "write", lambda self, use=None: access(self, use, write, ends[1]))
    program = build(SMALL, chip=C910, cores=1, tiling=ConvTiling(2, 4, 1, 1, 3))
    assert any(f.check == "race" for f in simulate(program, cube=None).findings)


@pytest.mark.parametrize("change", ["top", "pad", "channel", "stride"])
def test_a_mistake_in_the_geometry_changes_the_result(monkeypatch, change):
    import vitruvian.sim.kernels.convolution.shape as module

    original = module._needed

    def wrong(part, stride, extent, pad, size):
        start, first, last, end = original(part, stride, extent, pad, size)
        moved = {
            "top": (start - 1, first, last, end),
            "pad": (start, first + (start >= 0), last, end),
        }
        return moved.get(change, (start, first, last, end))

    data = operands(S, 8)
    expected = golden.dense(S, data.x, data.w)
    if change in ("top", "pad"):
        monkeypatch.setattr(module, "_needed", wrong)
    elif change == "channel":
        data = ConvOperands(np.roll(data.x, 16, axis=1), data.w)
    else:
        monkeypatch.setattr(
            module.ConvTile, "corner", lambda self, n: (self.top, -self.patches.pad[2])
        )
    y, _ = run(S, data, chip=C910, cores=1, tiling=ConvTiling(2, 11, 2, 2, 8))
    assert not same(y, expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kernel": (11, 2)}, r"kernel must fit into the padded image, not 11 × 3 pixels into"),
        ({"stride": (0, 1)}, "stride must be at least 1, not 0"),
        ({"groups": 4}, "groups must divide 70 channels, not 4"),
        ({"channels": 72, "groups": 4}, "groups must divide 50 filters, not 4"),
        ({"images": 0}, "images must be at least 1, not 0"),
    ],
)
def test_sizes_that_cannot_be_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(S, **change)


def test_chips_tilings_and_data_that_cannot_be_are_refused():
    data = operands(S, 1)
    with pytest.raises(ValueError, match="must fit 65536 bytes of L0A"):
        build(S, chip=C910, tiling=ConvTiling(5, 10, 1, 1, 60))
    with pytest.raises(ValueError, match="x must be 2×70×9×10 of float16, not 2×70×9×9 of float16"):
        build(S, data=ConvOperands(data.x[..., :9], data.w))
    with pytest.raises(ValueError, match="bias must be False with these data, not True"):
        build(S, data=data, bias=True)
    wide = replace(S, pad=(0, 0, 3, 3), width=30_000)
    with pytest.raises(ValueError, match=r"pad .* must be below the kernel's 3 pixels, not 3"):
        choose(wide, C910, 1)

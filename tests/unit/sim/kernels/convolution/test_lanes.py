"""Depthwise convolution, unfold and fold: kernels of one group of channels at a time."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vitruvian.golden.scu import Patches, col2im, from_nc1hwc0, im2col, to_nc1hwc0
from vitruvian.sim.davinci import Kind, Program, Unit, load_chip, simulate
from vitruvian.sim.kernels.convolution import (
    ConvOperands,
    ConvShape,
    depthwise,
    fold,
    golden,
    unfold,
)
from vitruvian.sim.kernels.convolution.areas import Area
from vitruvian.sim.kernels.ring import Ring

C910 = load_chip("ascend910")
RNG = np.random.default_rng(11)


def operands(s: ConvShape, *, bias: bool = False) -> ConvOperands:
    x = RNG.normal(size=(s.images, s.channels, s.height, s.width)).astype(np.float16)
    w = RNG.normal(size=(s.channels, 1, *s.kernel)).astype(np.float16)
    return ConvOperands(x, w, RNG.normal(size=s.channels).astype(np.float16) if bias else None)


def depth(channels: int, **sizes) -> ConvShape:
    return ConvShape(channels=channels, filters=channels, groups=channels, **sizes)


@st.composite
def shapes(draw, least_pad: int = 3):
    two = st.tuples(st.integers(1, 4), st.integers(1, 3))
    kernel, stride, dilation = draw(two), draw(two), draw(two)
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    pad = draw(st.tuples(*[st.integers(0, least_pad)] * 4))
    least = [max(1, extent[0] - sum(pad[:2])), max(1, extent[1] - sum(pad[2:]))]
    height, width = (draw(st.integers(low, low + 5)) for low in least)
    options = {"images": draw(st.integers(1, 2)), "height": height, "width": width}
    options |= {"kernel": kernel, "stride": stride, "pad": pad, "dilation": dilation}
    return depth(draw(st.integers(1, 20)), **options)


def areas(draw, rows: int, columns: int, *, cut: bool) -> Area:
    wide = draw.draw(st.integers(1, columns)) if cut else columns
    return Area(draw.draw(st.integers(1, rows)), wide)


@settings(max_examples=12)
@given(shapes(), st.booleans(), st.data())
def test_depthwise_is_golden_to_the_bit(s, bias, draw):
    data, p = operands(s, bias=bias), s.patches
    cut = max(p.pad[2:]) < p.extent[1]
    area = areas(draw, p.rows, p.columns, cut=cut)
    program = depthwise.build(s, chip=C910, cores=3, area=area, bias=bias, relu=bias, data=data)
    report = simulate(program, strict=True)
    y = np.ascontiguousarray(from_nc1hwc0(report.outputs["y"], s.channels))
    expected = golden.depthwise(s, data.x, data.w, data.b, relu=bias)
    assert not report.findings and y.tobytes() == expected.tobytes()


def test_golden_depthwise_by_a_loop_over_pixels():
    """The stated order in float64: a product of FP16 and a sum with one fit, if not too apart."""
    s = depth(3, images=1, height=5, width=4, kernel=(3, 2), stride=(2, 1), pad=(1, 1, 0, 1))
    data = operands(s)
    x = np.pad(data.x, ((0, 0), (0, 0), s.pad[:2], s.pad[2:])).astype(float)
    y = golden.depthwise(s, data.x, data.w)
    for c, i, j in np.ndindex(*y.shape[1:]):
        total: np.float16 | None = None
        for k, m in np.ndindex(3, 2):
            product = x[0, c, 2 * i + k, j + m] * float(data.w[c, 0, k, m])
            total = np.float16(product + (0.0 if total is None else float(total)))
        assert y[0, c, i, j] == total


def test_golden_depthwise_is_near_the_exact_result():
    s = depth(24, images=1, height=12, width=12, kernel=(5, 5), pad=(2, 2, 2, 2))
    data = operands(s)
    x = np.pad(data.x.astype(float), ((0, 0), (0, 0), (2, 2), (2, 2)))
    windows = np.lib.stride_tricks.sliding_window_view(x, (5, 5), (2, 3))
    exact = np.einsum("nchwij,cij->nchw", windows, data.w[:, 0].astype(float))
    sums = np.einsum("nchwij,cij->nchw", np.abs(windows), np.abs(data.w[:, 0]).astype(float))
    # 25 roundings, each of a sum of at most Σ|x·w|, whose own error is a second-order term.
    bound = 1.02 * 25 * 2.0**-11 * sums
    assert (np.abs(golden.depthwise(s, data.x, data.w) - exact) <= bound).all()


#: Depthwise layers of MobileNetV3-Large, with fewer channels and smaller sides.
MOBILENET = [
    (16, 28, 3, 1),
    (24, 28, 3, 2),
    (24, 14, 5, 2),
    (20, 14, 3, 2),
    (17, 7, 5, 1),
]


@pytest.mark.parametrize(("channels", "side", "kernel", "stride"), MOBILENET)
def test_layers_of_mobilenet_v3(channels, side, kernel, stride):
    half = (kernel // 2,) * 4
    two = (kernel, kernel), (stride, stride)
    s = depth(channels, images=1, height=side, width=side, kernel=two[0], stride=two[1], pad=half)
    data = operands(s)
    report = simulate(depthwise.build(s, chip=C910, data=data), strict=True)
    y = np.ascontiguousarray(from_nc1hwc0(report.outputs["y"], channels))
    assert not report.findings and y.tobytes() == golden.depthwise(s, data.x, data.w).tobytes()


@settings(max_examples=12)
@given(shapes(), st.data())
def test_unfold_is_im2col(s, draw):
    x, p = operands(s).x, s.patches
    cut = max(p.pad[2:]) < p.extent[1]
    area = areas(draw, p.rows, p.columns, cut=cut)
    report = simulate(unfold.build(s, chip=C910, cores=2, area=area, data=x), strict=True)
    fractals = im2col(to_nc1hwc0(x), p, mode=1).reshape(s.images, -1, p.fractals * 16, 16)
    y = report.outputs["y"].reshape(s.images, -1, p.count, 16)
    assert not report.findings and y.tobytes() == fractals[:, :, : p.count].tobytes()


@settings(max_examples=15)
@given(shapes(), st.data())
def test_fold_is_col2im(s, draw):
    p, c1 = s.patches, -(-s.channels // 16)
    x = RNG.normal(size=(s.images, c1, s.taps, p.rows, p.columns, 16)).astype(np.float16)
    area = areas(draw, s.height, s.width, cut=draw.draw(st.booleans()))
    report = simulate(fold.build(s, chip=C910, cores=2, area=area, data=x), strict=True)
    rows = np.zeros((s.images, c1 * s.taps, p.fractals * 16, 16), np.float16)
    rows[:, :, : p.count] = x.reshape(s.images, -1, p.count, 16)
    expected = col2im(rows.reshape(s.images, -1, p.fractals, 16, 16), p, mode=1)
    assert not report.findings and report.outputs["y"].tobytes() == expected.tobytes()


def test_pixels_without_patches_stay_zero():
    s = depth(1, images=1, height=20, width=7, kernel=(1, 2), stride=(9, 5))
    p = s.patches
    assert any(t.patches is None for t in fold.tiles_of(p, Area(2, 7)))
    x = np.ones((1, 1, 2, p.rows, p.columns, 16), np.float16)
    y = simulate(fold.build(s, chip=C910, area=Area(2, 7), data=x)).outputs["y"][0, 0, :, :, 0]
    assert y.sum() == 2 * p.count and set(np.flatnonzero(y.sum(axis=1))) == {0, 9, 18}


S = depth(40, images=2, height=12, width=9, kernel=(3, 2), stride=(2, 1), pad=(1, 1, 1, 1))


def program_of(name: str) -> Program:
    area = Area(2, 9)
    if name == "depthwise":
        return depthwise.build(S, chip=C910, cores=1, area=area, bias=True, relu=True)
    return {"unfold": unfold, "fold": fold}[name].build(S, chip=C910, cores=1, area=area)


@pytest.mark.parametrize("name", ["depthwise", "unfold", "fold"])
def test_flags_are_consumed_and_within_bounds_of_the_count(name):
    program, p = program_of(name), S.patches
    count = sum(
        (i.kind == Kind.SET) - (i.kind == Kind.WAIT) for c in program for i in c.instructions
    )
    assert count == 0
    bound = {"depthwise": depthwise, "unfold": unfold, "fold": fold}[name]
    assert p.rows > 2 and len(program) <= bound.instructions(S, Area(2, 9), C910)


@pytest.mark.parametrize("name", ["depthwise", "unfold", "fold"])
@pytest.mark.parametrize("method", ["write", "read"])
def test_a_missing_wait_is_a_race(monkeypatch, name, method):
    original = getattr(Ring, method)

    def without_wait(self, use=None):
        access = original(self, use)
        access.waits = None
        return access

    monkeypatch.setattr(Ring, method, without_wait)
    findings = simulate(program_of(name), cube=None).findings
    assert any(f.check == "race" for f in findings)


def test_dependent_vector_instructions_have_a_barrier_between_them():
    """Two instructions of V in a row never touch the same bytes, one of them writing."""
    for name in ("depthwise", "fold"):
        before = None
        for instr in program_of(name).core().instructions:
            if instr.unit != Unit.V or instr.kind == Kind.SET or instr.kind == Kind.WAIT:
                continue
            if instr.kind == Kind.BARRIER:
                before = None
                continue
            if before is not None:
                pairs = [(before.writes, (*instr.reads, *instr.writes))]
                pairs.append((before.reads, instr.writes))
                assert not any(a.overlap(b) for x, y in pairs for a in x for b in y)
            before = instr


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="as many of each, not 40 channels, 80 filters, 40 groups"):
        depthwise.build(replace(S, filters=80), chip=C910)
    with pytest.raises(ValueError, match="must fit 1048576 bytes of L1, not 1939200"):
        side = replace(S, height=300, width=300)
        depthwise.build(side, chip=C910, area=Area(50, 300))
    with pytest.raises(ValueError, match="tiles of a convolution must fit 196608 bytes of UB, not"):
        depthwise.build(side, chip="ascend910b", area=Area(50, 300))
    with pytest.raises(ValueError, match="kernel must fit into the padded image"):
        Patches(height=1, width=1, kernel=(3, 3))

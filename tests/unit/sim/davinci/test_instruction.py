"""`sim.davinci` records: views slice as NumPy does, spans are exactly the bytes touched."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitruvian.sim.davinci import DTYPES, OPERATIONS, Instruction, Span, Unit, View
from vitruvian.sim.davinci.isa.operands import contiguous, dtype_bytes


def touched(span: Span) -> set[int]:
    """Bytes by the definition, one by one."""
    starts = [span.start]
    for count, stride in span.levels:
        starts = [s + i * stride for s in starts for i in range(count)]
    return {s + b for s in starts for b in range(span.run)}


spans = st.builds(
    Span,
    st.sampled_from(["UB", "L1"]),
    st.integers(100, 200),
    st.integers(0, 9),
    st.lists(st.tuples(st.integers(0, 4), st.integers(-12, 20)), max_size=3).map(tuple),
)


@given(spans)
def test_intervals_and_simplified_are_the_bytes(span):
    want = touched(span)
    intervals = span.intervals()
    assert {b for lo, hi in intervals.tolist() for b in range(lo, hi)} == want
    assert (intervals[:, 0] < intervals[:, 1]).all()
    assert (intervals[1:, 0] > intervals[:-1, 1]).all(), "intervals must not touch"
    assert touched(span.simplified()) == want
    if want:
        assert (span.first, span.end) == (min(want), max(want) + 1)


@given(spans, spans)
def test_overlap_is_the_first_common_interval(first, other):
    common = touched(first) & touched(other) if first.buffer == other.buffer else set()
    result = first.overlap(other)
    assert (result is None) == (not common)
    if result:
        assert result[0] == min(common) and set(range(*result)) <= common
        assert first.overlap(other) == other.overlap(first)


slices = st.one_of(
    st.integers(-3, 2),
    st.builds(slice, st.none() | st.integers(0, 3), st.none() | st.integers(0, 3), st.just(None)),
    st.builds(slice, st.none(), st.none(), st.integers(1, 3)),
    st.just(Ellipsis),
)


@given(st.lists(slices, max_size=3).filter(lambda k: sum(x is Ellipsis for x in k) < 2))
def test_views_slice_as_numpy_does(keys):
    shape = (3, 4, 5)
    view = View("UB", 64, "fp16", shape, contiguous(shape, 2))
    memory = np.arange(256, dtype=np.uint8)
    array = np.ndarray(shape, np.float16, memory, offset=64)
    got = view[tuple(keys)]
    want = array[tuple(keys) if Ellipsis in keys else (*keys, ...)]  # never a copy
    assert got.shape == want.shape
    if not want.size:
        assert not got.span.nbytes
        return
    base = memory.__array_interface__["data"][0]
    assert base + got.offset == np.asarray(want).__array_interface__["data"][0]
    bytes_ = np.zeros(256, bool)
    np.ndarray(got.shape, np.uint16, bytes_, got.offset, got.strides)[...] = 0x0101
    assert touched(got.span) == set(np.flatnonzero(bytes_))


def test_wrong_views_are_refused():
    view = View("UB", 0, "fp16", (4, 8), (16, 2), "x")
    with pytest.raises(IndexError, match="index must be within an axis of 4, not 4"):
        view[4]
    with pytest.raises(IndexError, match="index must be within an axis of 8, not 9"):
        view[0, 0:9]
    with pytest.raises(IndexError, match="at most 2 axes"):
        view[0, 0, 0]
    with pytest.raises(ValueError, match="step must be 1 or more, not -1"):
        view[::-1]
    with pytest.raises(ValueError, match="must have 32 elements, not \\(5,\\) with 5"):
        view.reshape(5)
    with pytest.raises(ValueError, match="contiguous"):
        view[:, 1:].reshape(28)
    with pytest.raises(ValueError, match=r"dtype must be one of fp16, .*, not 'half'"):
        dtype_bytes("half")
    assert view.astype("fp32").shape == (16,)
    with pytest.raises(ValueError, match="whole contiguous elements of fp32"):
        view[0, 0:1].astype("fp32")


def test_every_operation_is_documented():
    assert len(OPERATIONS) > 60
    for name, operation in OPERATIONS.items():
        assert operation.name == name and operation.meaning
        assert "{" not in operation.meaning, name
    assert {d.itemsize for d in DTYPES.values()} == {1, 2, 4, 8}


def test_an_instruction_says_what_it_is():
    fields = {"source": Unit.MTE2, "target": Unit.V, "register": 3}
    assert str(Instruction(Unit.V, "wait_flag", fields=fields)) == "wait_flag(MTE2, V, 3)"
    assert str(Instruction(Unit.V, "pipe_barrier", fields={"unit": None})) == "pipe_barrier(ALL)"
    view = View("UB", 64, "fp16", (128,), (2,), "x")
    text = str(Instruction(Unit.V, "vexp", operands={"dst": view}, fields={"repeat": 1}))
    assert text == "vexp(dst=UB[64] x 128 fp16, repeat=1)"

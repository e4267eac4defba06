"""Bytes that the lanes of a vector instruction touch, exactly, under a mask and strides."""

from functools import lru_cache

from vitruvian.sim.davinci.isa.operands import BLOCK_BYTES, DTYPES, REPEAT_BYTES, Span, View

__all__ = ["ALL", "lane_spans", "lanes_of", "prefix"]

#: Mask that enables every lane there is.
ALL = -1


def lanes_of(*views: View) -> int:
    """Lanes of a repeat: as many as the widest operand has elements in 256 bytes."""
    return REPEAT_BYTES // max(DTYPES[v.dtype].itemsize for v in views)


def prefix(count: int) -> int:
    """Mask of the first ``count`` lanes."""
    return (1 << count) - 1


def lane_spans(
    view: View, lanes: int, mask: int, repeat: int, block_stride: int, repeat_stride: int
) -> tuple[Span, ...]:
    """What an operand touches.

    Parameters
    ----------
    view : View
        Its first byte and dtype count, its shape does not.
    lanes : int
        Of a repeat.
    mask : int
        Bit l enables lane l; `ALL` is every lane.
    repeat : int
    block_stride, repeat_stride : int
        Blocks of 32 bytes from block to block in a repeat, and from repeat to repeat.
    """
    width = DTYPES[view.dtype].itemsize
    mask = prefix(lanes) if mask == ALL else mask
    spans = []
    for start, run, count, stride in _runs(lanes, mask, width, block_stride * BLOCK_BYTES):
        levels = ((repeat, repeat_stride * BLOCK_BYTES), (count, stride))
        spans.append(Span(view.buffer, view.offset + start, run, levels).simplified())
    return tuple(spans)


@lru_cache(4096)
def _runs(lanes: int, mask: int, width: int, stride: int) -> tuple[tuple[int, int, int, int], ...]:
    """Enabled bytes of one repeat as (first, run, count, step) progressions of equal runs."""
    per_block = BLOCK_BYTES // width
    starts = sorted(
        {
            lane // per_block * stride + lane % per_block * width
            for lane in range(lanes)
            if mask >> lane & 1
        }
    )
    runs: list[list[int]] = []
    for start in starts:
        if runs and runs[-1][1] >= start:
            runs[-1][1] = start + width
        else:
            runs.append([start, start + width])
    found: list[list[int]] = []
    for first, last in runs:
        run = last - first
        if found and found[-1][1] == run:
            start, _, count, step = found[-1]
            if count == 1 or first == start + count * step:
                found[-1] = [start, run, count + 1, first - start if count == 1 else step]
                continue
        found.append([first, run, 1, 0])
    return tuple((a, b, c, d) for a, b, c, d in found)

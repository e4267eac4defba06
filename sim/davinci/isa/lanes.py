"""The exact bytes that the lanes of a vector instruction touch under a mask and strides."""

from functools import lru_cache

from vitruvian.sim.davinci.isa.operands import (
    BLOCK_BYTES,
    DTYPES,
    FOURS,
    REPEAT_BYTES,
    Span,
    View,
)

#: Mask that enables every lane.
ALL = -1


def lanes_of(*views: View) -> int:
    """Return the lanes of a repeat: the elements of the widest operand in 256 bytes."""
    return REPEAT_BYTES // max([DTYPES[v.dtype].itemsize for v in views])


def prefix(count: int) -> int:
    """Return the mask of the first ``count`` lanes."""
    return (1 << count) - 1


@lru_cache(4096)
def byte_lanes(mask: int, lanes: int) -> int:
    """Return the bytes that lanes of 4 bits touch, as a mask with a bit for each byte."""
    mask &= prefix(lanes)
    return sum(1 << lane // 2 for lane in range(0, lanes, 2) if mask >> lane & 3)


def lane_spans(
    view: View, lanes: int, mask: int, repeat: int, block_stride: int, repeat_stride: int
) -> tuple[Span, ...]:
    """Return the bytes that the enabled lanes of an operand touch.

    Parameters
    ----------
    view : View
        Only its first byte and its dtype are used.
    lanes : int
        Number of lanes of a repeat.
    mask : int
        Bit l enables lane l; ``ALL`` enables every lane.
    repeat : int
        Number of repeats.
    block_stride, repeat_stride : int
        Blocks of 32 bytes from block to block within a repeat, and from repeat to repeat.

    Returns
    -------
    tuple of Span
    """
    width = DTYPES[view.dtype].itemsize
    if view.dtype == FOURS:
        mask, lanes = byte_lanes(mask, lanes), lanes // 2
    accesses = _accesses(lanes, mask, width, repeat, block_stride, repeat_stride)
    buffer, offset = view.buffer, view.offset
    return tuple([Span(buffer, offset + start, run, levels) for start, run, levels in accesses])


@lru_cache(4096)
def _accesses(
    lanes: int, mask: int, width: int, repeat: int, block_stride: int, repeat_stride: int
) -> tuple[tuple[int, int, tuple[tuple[int, int], ...]], ...]:
    """Return first byte, run and levels of each span of ``lane_spans`` for a view at byte 0."""
    mask = prefix(lanes) if mask == ALL else mask
    accesses = []
    for start, run, count, stride in _runs(lanes, mask, width, block_stride * BLOCK_BYTES):
        levels = ((repeat, repeat_stride * BLOCK_BYTES), (count, stride))
        span = Span("", start, run, levels).simplified()
        accesses.append((span.start, span.run, span.levels))
    return tuple(accesses)


@lru_cache(4096)
def _runs(lanes: int, mask: int, width: int, stride: int) -> tuple[tuple[int, int, int, int], ...]:
    """Return the enabled bytes of one repeat as progressions (first, run, count, step) of runs."""
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
    # Merge runs of one length at one distance: most masks become a single progression.
    progressions: list[list[int]] = []
    for first, last in runs:
        run = last - first
        if progressions and progressions[-1][1] == run:
            start, _, count, step = progressions[-1]
            if count == 1 or first == start + count * step:
                progressions[-1] = [start, run, count + 1, first - start if count == 1 else step]
                continue
        progressions.append([first, run, 1, 0])
    return tuple((a, b, c, d) for a, b, c, d in progressions)

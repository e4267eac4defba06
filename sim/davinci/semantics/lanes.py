"""Lanes of vector operands as arrays, and a test for repeats that may be computed all at once."""

from functools import lru_cache

import numpy as np

from vitruvian.sim.davinci.isa.operands import BLOCK_BYTES, DTYPES, View

from .memory import Memory


@lru_cache(1024)
def enabled(mask: int, lanes: int) -> np.ndarray | None:
    """Return the lanes that a mask enables as a (lanes,) ndarray of bool; None for all lanes."""
    full = (1 << lanes) - 1
    if mask & full == full:
        return None
    return np.array([mask >> lane & 1 for lane in range(lanes)], bool)


def load(
    memory: Memory, view: View, lanes: int, repeat: int, block: int, step: int, mask: int
) -> np.ndarray:
    """Return the elements of an operand, (repeat, lanes); disabled lanes may have any value.

    Parameters
    ----------
    view : View
        Only its first byte and its dtype are used.
    block, step : int
        Blocks of 32 bytes from block to block within a repeat, and from repeat to repeat.
    """
    # A strided window is fast, but it covers disabled lanes, too, and these may lie outside the
    # buffer. Only then are the elements gathered one by one.
    try:
        array = _window(memory, view, lanes, repeat, block, step)
    except IndexError:
        return _gathered(memory, view, lanes, repeat, block, step, mask)
    return array if array.ndim == 2 else array.reshape(repeat, lanes)


def windows(
    memory: Memory, operands: list[tuple[View, int, int]], lanes: int, repeat: int
) -> list[np.ndarray] | None:
    """Return the operands' own bytes as (repeat, lanes) or (repeat, blocks, elements) arrays.

    The result is None if any lane, enabled or not, is outside its buffer.
    """
    try:
        return [_window(memory, v, lanes, repeat, block, step) for v, block, step in operands]
    except IndexError:
        return None


def put(array: np.ndarray, values: np.ndarray, on: np.ndarray | None) -> None:
    """Write (repeat, lanes) elements to the enabled lanes of a window."""
    if on is None:
        array[...] = values if values.shape == array.shape else values.reshape(array.shape)
    else:
        np.copyto(array, values.reshape(array.shape), where=on.reshape(array.shape[1:]))


def store(
    memory: Memory,
    view: View,
    values: np.ndarray,
    block: int,
    step: int,
    mask: int,
) -> None:
    """Write (repeat, lanes) elements to the enabled lanes of an operand."""
    repeat, lanes = values.shape
    try:
        array = _window(memory, view, lanes, repeat, block, step)
    except IndexError:
        _scatter(memory, view, values, block, step, mask)
        return
    put(array, values, enabled(mask, lanes))


def _window(memory: Memory, view: View, lanes: int, repeat: int, block: int, step: int):
    width = DTYPES[view.dtype].itemsize
    if block == 1:
        return memory.at(view, (repeat, lanes), (step * BLOCK_BYTES, width))
    # With another block stride, lanes of different blocks need an axis of their own.
    per = BLOCK_BYTES // width
    strides = (step * BLOCK_BYTES, block * BLOCK_BYTES, width)
    return memory.at(view, (repeat, lanes // per, per), strides)


def _bytes(view: View, lanes: int, repeat: int, block: int, step: int, mask: int, size: int):
    """Return the first byte of each of the (repeat, lanes) elements.

    It is 0 for disabled elements outside the buffer, so that they can be read without an error.
    """
    width = DTYPES[view.dtype].itemsize
    per = BLOCK_BYTES // width
    lane = np.arange(lanes)
    within = lane // per * block * BLOCK_BYTES + lane % per * width
    at = view.offset + np.arange(repeat)[:, None] * step * BLOCK_BYTES + within
    inside = (at >= 0) & (at + width <= size)
    on = enabled(mask, lanes)
    if not (inside if on is None else inside[:, on]).all():
        raise IndexError(f"bytes {at.min()} to {at.max() + width} are not all within {size}")
    return np.where(inside, at, 0)


def _gathered(memory, view, lanes, repeat, block, step, mask) -> np.ndarray:
    array = memory.buffers[view.buffer]
    at = _bytes(view, lanes, repeat, block, step, mask, len(array))
    dtype = DTYPES[view.dtype]
    return array[at[..., None] + np.arange(dtype.itemsize)].view(dtype)[..., 0]


def _scatter(memory, view, values, block, step, mask) -> None:
    repeat, lanes = values.shape
    array = memory.buffers[view.buffer]
    at = _bytes(view, lanes, repeat, block, step, mask, len(array))
    width = values.dtype.itemsize
    on = np.arange(lanes) if (is_on := enabled(mask, lanes)) is None else np.flatnonzero(is_on)
    data = np.ascontiguousarray(values[:, on])[..., None].view(np.uint8)
    array[at[:, on, None] + np.arange(width)] = data


@lru_cache(4096)
def _disjoint(blocks: int, repeat: int, block: int, step: int) -> bool:
    """Return True if no two blocks of an operand are the same."""
    at = np.arange(repeat)[:, None] * step + np.arange(blocks) * block
    return len(np.unique(at)) == at.size


def independent(
    lanes: int, repeat: int, target: tuple[View, int, int], sources: list[tuple[View, int, int]]
) -> bool:
    """Return True if no repeat writes bytes that a later one reads or writes.

    All repeats may then be computed at once.

    Parameters
    ----------
    target : (View, int, int)
        The operand that is written, with its block and repeat strides.
    sources : list of (View, int, int)
        The operands that are read.

    Returns
    -------
    bool
        It is also False if this test cannot decide, since computing one repeat after another is
        correct in every case.
    """
    if repeat == 1:
        return True
    view, block, step = target
    width = DTYPES[view.dtype].itemsize
    if not _disjoint(lanes * width // BLOCK_BYTES, repeat, block, step):
        return False
    first, last = _reach(target, lanes, repeat)
    for source in sources:
        if source[0].buffer != view.buffer:
            continue
        low, high = _reach(source, lanes, repeat)
        # If both operands have the same place and strides, every repeat reads what it overwrites
        # itself, and no other repeat touches it.
        apart = high <= first or last <= low
        same = (source[0].offset, DTYPES[source[0].dtype].itemsize, *source[1:]) == (
            view.offset,
            width,
            block,
            step,
        )
        if not (apart or same):
            return False
    return True


def _reach(operand: tuple[View, int, int], lanes: int, repeat: int) -> tuple[int, int]:
    """Return the first byte of an operand and one past its last byte."""
    view, block, step = operand
    blocks = max(lanes * DTYPES[view.dtype].itemsize // BLOCK_BYTES, 1)
    return view.offset, view.offset + BLOCK_BYTES * ((repeat - 1) * step + (blocks - 1) * block + 1)

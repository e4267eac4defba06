"""Random commands for the vector unit: every operation, classes of operands, masks, repeats."""

from collections.abc import Sequence

import numpy as np

from vitruvian.common.validate import round_up
from vitruvian.golden.fp import FORMATS
from vitruvian.hdl.vector import Condition, Format, Operation, Rounding, VectorConfig
from vitruvian.hdl.vector.operations import OPERATIONS
from vitruvian.sim.bench.fp_small.stimuli import pairs

from .expected import VectorCommand

_NAMES = {Format.FP16: "fp16", Format.FP32: "fp32"}
#: Operations whose conversions to integers need numbers near the edges of their ranges.
_TO_INTEGER = {
    Operation.TO_INT32: 31,
    Operation.TO_INT16: 15,
    Operation.TO_INT8: 7,
    Operation.TO_UINT8: 8,
}
_MOST_REPEATS = 6


def blocks(config: VectorConfig, format: Format, elements: np.ndarray) -> np.ndarray:
    """Return codes as (repeat, bytes) blocks; the last block is filled with the first codes."""
    per = config.lanes if format is Format.FP16 else config.slices
    count = round_up(len(elements), per)
    return np.resize(elements, count).reshape(-1, per).view(np.uint8)


def make_masks(rng: np.random.Generator, lanes: int, count: int) -> np.ndarray:
    """Return masks: all lanes, no lane, a single lane, a prefix, or random ones."""
    masks = rng.random((count, lanes)) < rng.choice([0.1, 0.5, 0.9], (count, 1))
    kind = rng.integers(0, 6, count)
    lane = rng.integers(0, lanes, count)[:, None]
    number = np.arange(lanes)[None]
    masks = np.where((kind == 0)[:, None], True, masks)
    masks = np.where((kind == 1)[:, None], number == lane, masks)
    masks = np.where((kind == 2)[:, None], number < lane, masks)
    return np.where((kind == 3)[:, None] & (lane % 4 == 0), False, masks)


def make_commands(
    config: VectorConfig,
    operations: Sequence[Operation] | None = None,
    *,
    count: int,
    seed: int,
    formats: Sequence[Format] = (Format.FP16, Format.FP32),
) -> list[VectorCommand]:
    """Return random commands.

    Parameters
    ----------
    operations : sequence of Operation, optional
        The operations of the commands; by default all that the unit has.
    count : int
        Number of commands.
    formats : sequence of Format
        The formats; an operation that has only others keeps its own.
    """
    rng = np.random.default_rng(seed)
    operations = config.operations if operations is None else operations
    masks = make_masks(rng, config.lanes, count)
    limit = _MOST_REPEATS * count * config.lanes
    words = {f: list(pairs(_NAMES[f], limit, seed=seed)) for f in Format}
    at = dict.fromkeys(Format, 0)

    def take(format: Format, repeat: int) -> tuple[np.ndarray, np.ndarray]:
        number = repeat * (config.lanes if format is Format.FP16 else config.slices)
        start = at[format]
        at[format] += number
        x, y = (codes[start : start + number] for codes in words[format])
        return x, y

    commands = []
    for n in range(count):
        op = operations[int(rng.integers(len(operations)))]
        traits = OPERATIONS[op]
        allowed = [f for f in traits.formats if f in formats] or list(traits.formats)
        format = allowed[int(rng.integers(len(allowed)))]
        repeat = int(rng.integers(1, _MOST_REPEATS + 1)) if rng.random() > 0.03 else 0
        x, y = take(format, max(repeat, 1))
        scalar = int(y[0]) | (int(rng.integers(1 << 16)) << 16 if format is Format.FP16 else 0)
        y = _paired(rng, format, x, y)
        x = _shaped(rng, op, format, x)
        from_scalar = traits.reads_b and bool(rng.random() < 0.25)
        reads_b = traits.reads_b and not from_scalar
        commands.append(
            VectorCommand(
                operation=op,
                format=format,
                condition=list(Condition)[int(rng.integers(len(Condition)))],
                rounding=list(Rounding)[int(rng.integers(len(Rounding)))],
                from_scalar=from_scalar,
                scalar=scalar,
                mask=masks[n],
                repeat=repeat,
                a=blocks(config, format, x)[:repeat] if traits.reads_a else None,
                b=blocks(config, format, y)[:repeat] if reads_b else None,
            )
        )
    return commands


def _paired(rng: np.random.Generator, format: Format, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return operands b, some of which equal a, or a with the other sign; some a become zeros."""
    sign = x.dtype.type(FORMATS[_NAMES[format]].sign_mask)
    flip = sign * rng.integers(0, 2, len(x)).astype(x.dtype)
    kind = rng.random(len(x))
    x[kind < 0.05] &= sign
    return np.where(kind < 0.15, x ^ flip, y)


def _shaped(rng: np.random.Generator, op: Operation, format: Format, x: np.ndarray) -> np.ndarray:
    """Return codes that reach the edges of an operation."""
    if op in _TO_INTEGER:
        # Numbers near the range's ends, ties, and their neighbours.
        dtype = np.dtype(np.float16 if format is Format.FP16 else np.float32)
        exponent = rng.integers(-3, _TO_INTEGER[op] + 2, len(x))
        near = np.ldexp(rng.random(len(x)) + 0.5, exponent)
        half = np.round(near * 2) / 2
        values = np.where(rng.random(len(x)) < 0.5, near, half) * rng.choice([-1, 1], len(x))
        with np.errstate(over="ignore"):
            shaped = values.astype(dtype).view(x.dtype) + rng.integers(-1, 2, len(x)).astype(
                x.dtype
            )
        return np.where(rng.random(len(x)) < 0.7, shaped, x)
    if op.name.startswith(("LARGEST", "SMALLEST")):
        # Few different elements, so that several lanes have the extreme, and many NaNs.
        few = rng.choice(x, 6)
        kind = rng.random()
        return rng.choice(few, len(x)) if kind < 0.5 else x
    return x


def every_fp16(config: VectorConfig, operation: Operation, **fields: object) -> list[VectorCommand]:
    """Return commands that carry out an operation with one operand on all 65536 FP16 codes."""
    per = config.slices if operation in (Operation.TO_FP32, Operation.TO_INT32) else config.lanes
    all_codes = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).reshape(-1, per)
    a = np.zeros((len(all_codes), config.lanes), np.uint16)
    a[:, :per] = all_codes
    a_bytes = a.view(np.uint8)
    limit = 255
    return [
        VectorCommand(
            operation=operation,
            format=Format.FP16,
            mask=np.ones(config.lanes, bool),
            repeat=len(a_bytes[i : i + limit]),
            a=a_bytes[i : i + limit],
            **fields,  # pyright: ignore[reportArgumentType]
        )
        for i in range(0, len(a_bytes), limit)
    ]

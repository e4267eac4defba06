"""The random schedule of a stream of beats: which run, slot, operation and range each one has."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vitruvian.hdl.cube.mixed import MixedUnitConfig
from vitruvian.hdl.cube.ports import Start
from vitruvian.hdl.cube.tile import TileConfig

#: Share of the runs whose sums are subnormal or overflow.
AT_THE_ENDS = 0.2


@dataclass(frozen=True, kw_only=True)
class BeatSchedule:
    """The control of every beat: its operation, slot and start, without its operands.

    Attributes
    ----------
    run, step : (beats,) ndarray of int
        Number of each beat's run, and index of the beat in the run.
    start : (beats,) ndarray of int
        Values of ``Start``.
    from_c : (beats,) ndarray of bool
        True for beats that start from C.
    slot : (beats,) ndarray of int
    emit : (beats,) ndarray of bool
    precision, precision_b, operation : (beats,) ndarray of int
        Codes on the unit's inputs; ``precision_b`` is that of B in units that have it, and else
        equals ``precision``.
    kind : (beats,) ndarray of int
        Code of the precision that the beat is computed in, or the number of precisions plus the
        code of the semiring. In units with a precision for each side, that of A times the number
        of precisions plus that of B.
    scale, edge : (beats,) ndarray of int
        Exponent near which each beat's products lie, and 1 or −1 to move it to the upper or lower
        end of the range.
    beat : (sums,) ndarray of int
        Beat of each sum.
    part : (sums,) ndarray of bool
        True for the sums of imaginary parts.
    """

    run: np.ndarray
    step: np.ndarray
    start: np.ndarray
    from_c: np.ndarray
    slot: np.ndarray
    emit: np.ndarray
    precision: np.ndarray
    precision_b: np.ndarray
    operation: np.ndarray
    kind: np.ndarray
    scale: np.ndarray
    edge: np.ndarray
    beat: np.ndarray
    part: np.ndarray

    def __len__(self) -> int:
        return len(self.run)


def draw_schedule(
    rng: np.random.Generator,
    config: TileConfig,
    *,
    beats: int,
    precisions: Sequence[str] | None,
    operations: Sequence[str] | None,
    slots: np.ndarray | None,
    lengths: Sequence[int],
    emit_rate: float,
) -> BeatSchedule:
    """Return a random schedule; the parameters are those of ``make_traffic``."""
    paired = complex_codes(config)
    slot_count = config.slot_count // (2 if paired else 1)
    slot = _interleaved(rng, beats, slot_count) if slots is None else slots
    run, step = _runs(rng, slot, lengths)
    start = _starts(rng, slot, step)
    precision = _precisions(rng, config, run, precisions)
    if paired and slots is None:
        # A run has a pair of slots to itself: a complex beat uses both, any other beat one of them.
        slot = 2 * slot + rng.integers(0, 2, run.max() + 1)[run]
    emit = rng.random(beats) < emit_rate
    # Without any result, the bench would compare nothing.
    emit[-1] = True
    scale, edge = _ranges(rng, run)
    operation = _operations(rng, config, run, operations)
    kind = precision
    if config.one_pair:
        # Semirings on FP32 use real runs, and the unit ignores the precision of their beats.
        operation = np.where(np.isin(precision, paired), mma_code(config), operation)
        semiring = operation != mma_code(config)
        kind = np.where(semiring, len(config.precisions) + operation, precision)
        precision = np.where(semiring, rng.integers(0, len(config.precisions), beats), precision)
    precision_b = precision
    if isinstance(config, MixedUnitConfig):
        precision_b = _precisions(rng, config, run, precisions)
        kind = len(config.precisions) * precision + precision_b
    # A complex beat computes two sums, one for each part.
    beat = np.repeat(np.arange(beats), 1 + np.isin(kind, paired))
    return BeatSchedule(
        run=run,
        step=step,
        start=start,
        from_c=start == Start.FROM_C.value,
        slot=slot,
        emit=emit,
        precision=precision,
        precision_b=precision_b,
        operation=operation,
        kind=kind,
        scale=scale,
        edge=edge,
        beat=beat,
        part=np.r_[False, beat[1:] == beat[:-1]],
    )


def complex_codes(config: TileConfig) -> list[int]:
    """Return the codes of the unit's complex precisions."""
    return [config.precisions.index(name) for name in config.complex_precisions]


def mma_code(config: TileConfig) -> int:
    """Return the code of the operation mma."""
    return config.operations.index("mma") if config.one_pair else 0


def _starts(rng: np.random.Generator, slot: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Return how each beat starts: its run from C or from zero, or by accumulation."""
    beats, first = len(slot), step == 0
    from_c = first & (rng.random(beats) < 0.5)
    # After a reset all slots are zero, so that the first run of a slot may also accumulate.
    fresh = np.zeros(beats, bool)
    fresh[np.unique(slot, return_index=True)[1]] = True
    accumulate = ~first | (first & ~from_c & fresh & (rng.random(beats) < 0.5))
    return np.where(
        from_c,
        Start.FROM_C.value,
        np.where(accumulate, Start.ACCUMULATE.value, Start.ZERO.value),
    )


def _precisions(
    rng: np.random.Generator,
    config: TileConfig,
    run: np.ndarray,
    precisions: Sequence[str] | None,
) -> np.ndarray:
    """Return the code of each beat's precision, which is mostly that of its run.

    Complex beats share no run with others, because they use both slots of a pair.
    """
    codes = [config.precisions.index(name) for name in precisions or config.precisions]
    paired = complex_codes(config)
    own = rng.choice(codes, run.max() + 1)[run]
    precision = np.where(rng.random(len(run)) < 0.9, own, rng.choice(codes, len(run)))
    mixed = np.isin(precision, paired) | np.isin(own, paired)
    return np.where(mixed, own, precision)


def _ranges(rng: np.random.Generator, run: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the scale and the edge of each beat; see ``BeatSchedule``."""
    runs = run.max() + 1
    scale = rng.integers(-16, 17, runs)[run]
    scale = scale + rng.choice([0, 0, 0, -12, 12, -26], len(run))
    edge = rng.choice([-1, 1], runs) * (rng.random(runs) < AT_THE_ENDS)
    return scale, edge[run]


def _operations(
    rng: np.random.Generator,
    config: TileConfig,
    run: np.ndarray,
    operations: Sequence[str] | None,
) -> np.ndarray:
    """Return the code of each beat's operation, which is mostly that of its run."""
    codes = [config.operations.index(name) for name in operations or config.operations]
    if len(codes) == 1:
        return np.full(len(run), codes[0])
    own = rng.choice(codes, run.max() + 1)[run]
    return np.where(rng.random(len(run)) < 0.8, own, rng.choice(codes, len(run)))


def _interleaved(rng: np.random.Generator, beats: int, slots: int) -> np.ndarray:
    """Return the slot of each beat: stretches in one slot, in successive and in random slots."""
    result: list[int] = []
    while len(result) < beats:
        length, kind = int(rng.integers(1, 12)), rng.integers(3)
        begin = int(rng.integers(slots))
        stretch = {
            0: np.full(length, begin),
            1: (begin + np.arange(length)) % slots,
            2: rng.integers(0, slots, length),
        }[int(kind)]
        result += stretch.tolist()
    return np.array(result[:beats])


def _runs(
    rng: np.random.Generator, slot: np.ndarray, lengths: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of each beat's run, and the index of the beat in its run."""
    run, step = np.empty(len(slot), int), np.empty(len(slot), int)
    current: dict[int, tuple[int, int, int]] = {}  # slot -> run, steps done, steps to do
    count = 0
    for index, s in enumerate(slot.tolist()):
        number, done, todo = current.get(s, (0, 0, 0))
        if done == todo:
            number, done, todo = count, 0, int(rng.choice(lengths))
            count += 1
        run[index], step[index] = number, done
        current[s] = number, done + 1, todo
    return run, step

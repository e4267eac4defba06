"""Random traffic for all benches of the matrix unit, with golden's results.

The beats in a slot form successive *runs*. A run starts from zero or from C and accumulates the
products of its beats. Every beat may emit the result. If the last beat of a run does not, the
result is lost, which is correct. Runs in different slots are interleaved at random.

A complex beat has two *sums*, for the real and for the imaginary parts, in the two slots of a pair.
In a unit with complex precisions, a run therefore uses a pair of slots: a complex run uses both,
another run one of them.

Semirings on FP32 operands use real runs. The unit must ignore the precision of their beats, so it
is random.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vitruvian.golden.cube import mmad
from vitruvian.golden.fp.spec import DotSpec
from vitruvian.hdl.cube.config import MatrixUnitConfig
from vitruvian.hdl.cube.ports import Start
from vitruvian.sim.rtl.cube import bus_words

from .operands import draw_addends, draw_operands, make_near_ties
from .pairs import draw_pairs, identity, pair_results
from .semirings import compute_semirings

__all__ = ["Traffic", "make_traffic"]

#: Share of the beats that start from C whose sums lie next to a tie.
NEAR_TIES = 0.25
#: Share of the runs whose sums are subnormal or overflow.
AT_THE_ENDS = 0.2


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Beats, C fractals and D fractals, each in the order of its stream.

    Attributes
    ----------
    config : MatrixUnitConfig
        Configuration of the unit.
    a, b : (beats, M or N, bytes) ndarray of uint8
        Contents of the buses: rows of A and columns of B.
    index : (beats, M, bytes) ndarray of uint8
        With sparsity, the indices of A's values; otherwise empty.
    precision, operation, start, slot, emit : (beats,) ndarray of uint8
        The other fields of a beat.
    c : (C fractals, M, N) ndarray
        One for each sum of a beat that starts from C.
    d : (D fractals, M, N) ndarray
        One for each sum of a beat that emits.
    """

    config: MatrixUnitConfig
    a: np.ndarray
    b: np.ndarray
    index: np.ndarray
    precision: np.ndarray
    operation: np.ndarray
    start: np.ndarray
    slot: np.ndarray
    emit: np.ndarray
    c: np.ndarray
    d: np.ndarray

    def __len__(self) -> int:
        return len(self.slot)

    @property
    def sums(self) -> np.ndarray:
        """Number of sums of each beat, (beats,) ndarray of int: 2 for a complex beat, else 1."""
        config = self.config
        pairs = [config.precisions.index(name) for name in config.complex_precisions]
        one = config.one_pair & (self.operation != _mma(config))
        return 1 + (np.isin(self.precision, pairs) & ~one)

    @property
    def inputs(self) -> dict[str, Any]:
        """The argument ``inputs`` of ``CompiledModel.stream``."""
        beats = {
            "a": bus_words(self.a),
            "b": bus_words(self.b),
            "precision": self.precision,
            "operation": self.operation,
            "start": self.start,
            "slot": self.slot,
            "emit": self.emit,
        }
        for name, bits in (
            ("precision", self.config.precision_bits),
            ("operation", self.config.operation_bits),
            ("slot", self.config.slot_bits),
        ):
            if not bits:
                del beats[name]
        if self.config.sparsity:
            beats["index"] = bus_words(self.index)
        return {"i": beats, "c": self.c}

    def beat(self, index: int) -> dict[str, Any]:
        """Return a beat in the form of ``sim.bench.bits.pack``."""
        sides = {"a": self.a[index], "b": self.b[index]}
        if self.config.sparsity:
            sides["index"] = self.index[index]
        fields = ("precision", "operation", "start", "slot", "emit")
        return {
            name: [int.from_bytes(row.tobytes(), "little") for row in rows]
            for name, rows in sides.items()
        } | {name: int(getattr(self, name)[index]) for name in fields}


def make_traffic(
    config: MatrixUnitConfig,
    *,
    beats: int,
    seed: int,
    precisions: Sequence[str] | None = None,
    operations: Sequence[str] | None = None,
    slots: np.ndarray | None = None,
    lengths: Sequence[int] = (1, 2, 3, 8),
    emit_rate: float = 0.5,
) -> Traffic:
    """Return random traffic for a unit after a reset.

    Parameters
    ----------
    config : MatrixUnitConfig
        Configuration of the unit.
    beats : int
        Number of beats, at least 1.
    seed : int
    precisions, operations : sequence of str, optional
        Precisions and operations to use; all of the unit's by default. They change from run to run,
        and occasionally within a run.
    slots : (beats,) ndarray of int, optional
        Slot of each beat. By default there are stretches in one slot, in successive slots, and in
        random slots.
    lengths : sequence of int
        Possible numbers of beats in a run.
    emit_rate : float
        Share of the beats that emit. The last beat always does.
    """
    rng = np.random.default_rng(seed)
    if config.one_pair and "mma" not in (operations or config.operations):
        precisions = ("fp32",)
    codes = [config.precisions.index(name) for name in precisions or config.precisions]
    paired = [config.precisions.index(name) for name in config.complex_precisions]
    slot_count = config.slot_count // (2 if paired else 1)
    slot = _interleaved(rng, beats, slot_count) if slots is None else slots
    run, step = _runs(rng, slot, lengths)
    first = step == 0
    from_c = first & (rng.random(beats) < 0.5)
    new = first & ~from_c
    # After a reset all slots are zero, so that the first run of a slot may also accumulate.
    fresh = np.zeros(beats, bool)
    fresh[np.unique(slot, return_index=True)[1]] = True
    accumulate = ~first | (new & fresh & (rng.random(beats) < 0.5))
    start = np.where(
        from_c,
        Start.FROM_C.value,
        np.where(accumulate, Start.ACCUMULATE.value, Start.ZERO.value),
    )
    own = rng.choice(codes, run.max() + 1)[run]
    precision = np.where(rng.random(beats) < 0.9, own, rng.choice(codes, beats))
    if paired:
        mixed = np.isin(precision, paired) | np.isin(own, paired)
        precision = np.where(mixed, own, precision)
        if slots is None:
            slot = 2 * slot + rng.integers(0, 2, run.max() + 1)[run]
    emit = rng.random(beats) < emit_rate
    emit[-1] = True
    scale = rng.integers(-16, 17, run.max() + 1)[run]
    scale = scale + rng.choice([0, 0, 0, -12, 12, -26], beats)
    edge = (rng.choice([-1, 1], run.max() + 1) * (rng.random(run.max() + 1) < AT_THE_ENDS))[run]
    operation = _operations(rng, config, run, operations)
    kind = precision
    if config.one_pair:
        operation = np.where(np.isin(precision, paired), _mma(config), operation)
        pairs = operation != _mma(config)
        kind = np.where(pairs, len(config.precisions) + operation, precision)
        precision = np.where(pairs, rng.integers(0, len(config.precisions), beats), precision)
    beat = np.repeat(np.arange(beats), 1 + np.isin(kind, paired))
    part = np.r_[False, beat[1:] == beat[:-1]]
    if config.semirings and not config.one_pair:
        a, b, c, d, index = compute_semirings(rng, config, operation, run, step, from_c, scale)
    else:
        index = np.zeros((beats, config.m, 0), np.uint8)
        a, b, c, d = _compute(rng, config, kind, run, step, from_c, scale, edge, beat, part)
    return Traffic(
        config=config,
        a=a,
        b=b,
        index=index,
        precision=precision.astype(np.uint8),
        operation=operation.astype(np.uint8),
        start=start.astype(np.uint8),
        slot=slot.astype(np.uint8),
        emit=emit.astype(np.uint8),
        c=c[from_c[beat]],
        d=d[emit[beat]],
    )


def _mma(config: MatrixUnitConfig) -> int:
    """Return the code of the operation mma."""
    return config.operations.index("mma") if config.one_pair else 0


def _operations(
    rng: np.random.Generator,
    config: MatrixUnitConfig,
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


def _compute(
    rng: np.random.Generator,
    config: MatrixUnitConfig,
    kind: np.ndarray,
    run: np.ndarray,
    step: np.ndarray,
    from_c: np.ndarray,
    scale: np.ndarray,
    edge: np.ndarray,
    beat: np.ndarray,
    part: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return random operands, and the contents of the slots after each sum.

    Parameters
    ----------
    rng : numpy.random.Generator
    config : MatrixUnitConfig
        Configuration of the unit.
    kind : (beats,) ndarray of int
        Code of the precision, or the number of precisions plus the code of the semiring.
    run, step : (beats,) ndarray of int
        Number of each beat's run, and index of the beat in the run.
    from_c : (beats,) ndarray of bool
        True for beats that start from C.
    scale, edge : (beats,) ndarray of int
        Exponent near which each beat's products lie, and 1 or −1 to move it to the upper or lower
        end of the range.
    beat : (sums,) ndarray of int
        Beat of each sum.
    part : (sums,) ndarray of bool
        True for the sums of imaginary parts.

    Returns
    -------
    a, b : (beats, m or n, bytes) ndarray of uint8
        Contents of the buses.
    c, d : (sums, m, n) ndarray
        C fractals, and the contents of each sum's slot after it.
    """
    beats, octets = len(run), config.bus_bits // 8
    a = rng.integers(0, 256, (beats, config.m, octets), dtype=np.uint8)
    b = rng.integers(0, 256, (beats, config.n, octets), dtype=np.uint8)
    word = np.dtype(f"u{config.word_bits // 8}")
    c = np.zeros((len(beat), config.m, config.n), word)
    d = np.zeros_like(c)
    state = np.zeros((2 * int(run.max()) + 2, config.m, config.n), word)
    drawn = {}
    count = len(config.precisions)
    for code in np.unique(kind):
        mine = np.flatnonzero(kind == code)
        sums = np.flatnonzero(kind[beat] == code)
        position = np.cumsum(kind[beat] == code) - 1
        if code >= count:
            spec, name = config.spec("fp32"), config.operations[code - count]
            assert isinstance(spec, DotSpec)
            x, y, c[sums] = draw_pairs(rng, name, spec, scale[mine], config.m, config.n)
            _put(a, b, mine, x, y)
            drawn[code] = name, x, y, position
            continue
        name = config.precisions[code]
        spec = config.spec(name)
        centre = scale + edge * spec.output.emax if isinstance(spec, DotSpec) else scale
        x, y = draw_operands(rng, spec, centre[mine], config.m, config.n)
        z = draw_addends(rng, spec, centre[beat[sums]], config.m, config.n)
        ties = from_c[mine] & (rng.random(len(mine)) < NEAR_TIES)
        is_complex = name in config.complex_precisions
        if isinstance(spec, DotSpec) and not is_complex:  # near ties are made for real sums only
            parts = x[ties], y[ties], z[ties]
            make_near_ties(rng, spec, *parts)
            x[ties], y[ties], z[ties] = parts
        c[sums] = z
        if config.result_bits(name) < config.word_bits:  # the unit must ignore the bits above
            above = rng.integers(0, 1 << 32, z.shape, dtype=np.uint64) << np.uint64(32)
            c[sums] |= above
        _put(a, b, mine, x, y)
        at = np.searchsorted(mine, beat[sums])
        x, y = x[at], y[at]
        if is_complex and isinstance(spec, DotSpec):
            x[~part[sums], :, 1::2] ^= spec.input.sign_mask
            y[part[sums]] = (
                y[part[sums]]
                .reshape(-1, config.n, spec.k // 2, 2)[..., ::-1]
                .reshape(-1, config.n, spec.k)
            )
        drawn[code] = spec, x, y, position
    run, step, from_c, kind = 2 * run[beat] + part, step[beat], from_c[beat], kind[beat]
    # The beats of a run depend on each other: compute the first beats of all runs, then the second.
    for index in range(int(step.max()) + 1):
        now = np.flatnonzero(step == index)
        state[run[now[from_c[now]]]] = c[now[from_c[now]]]
        for code, (spec, x, y, position) in drawn.items():
            these = now[kind[now] == code]
            at = position[these]
            if isinstance(spec, str):
                if not index:
                    state[run[these[~from_c[these]]]] = identity(spec)
                state[run[these]] = pair_results(spec, x[at], y[at], state[run[these]])
            elif len(these):
                bits = config.result_bits(config.precisions[code])
                addend = state[run[these]].astype(f"u{bits // 8}")
                value = mmad(x[at], np.swapaxes(y[at], 1, 2), addend, spec=spec)
                state[run[these]] = value.view(addend.dtype)
        d[now] = state[run[now]]
    return a, b, c, d


def _put(a: np.ndarray, b: np.ndarray, beats: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    """Write codes to the low ends of the buses of some beats."""
    for bus, codes in ((a, x), (b, y)):
        raw = np.ascontiguousarray(codes).view(np.uint8)
        bus[beats, :, : raw.shape[-1]] = raw

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
from vitruvian.golden.fp.spec import DotSpec, IntDotSpec
from vitruvian.hdl.cube.config import MatrixUnitConfig
from vitruvian.hdl.cube.mixed import MixedUnitConfig
from vitruvian.hdl.cube.tile import TileConfig
from vitruvian.sim.rtl.tiles import bus_words

from .blocks import block_results, draw_blocks, packed
from .operands import draw_addends, draw_operands, make_near_ties
from .pairs import draw_pairs, identity, pair_results
from .schedule import BeatSchedule, complex_codes, draw_schedule, mma_code
from .semirings import compute_semirings

#: Share of the beats that start from C whose sums lie next to a tie.
NEAR_TIES = 0.25


@dataclass(frozen=True, kw_only=True)
class CubeTraffic:
    """Beats, C fractals and D fractals, each in the order of its stream.

    Attributes
    ----------
    config : MatrixUnitConfig
        Configuration of the unit.
    a, b : (beats, M or N, bytes) ndarray of uint8
        Contents of the buses: rows of A and columns of B.
    index : (beats, M, bytes) ndarray of uint8
        With sparsity, the indices of A's values; otherwise empty.
    precision, precision_b, operation, start, slot, emit : (beats,) ndarray of uint8
        The other fields of a beat. Only units with a precision for each side have ``precision_b``.
    c : (C fractals, M, N) ndarray
        One for each sum of a beat that starts from C.
    d : (D fractals, M, N) ndarray
        One for each sum of a beat that emits.
    """

    config: TileConfig
    a: np.ndarray
    b: np.ndarray
    index: np.ndarray
    precision: np.ndarray
    precision_b: np.ndarray
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
        one = config.one_pair & (self.operation != mma_code(config))
        return 1 + (np.isin(self.precision, complex_codes(config)) & ~one)

    @property
    def inputs(self) -> dict[str, Any]:
        """The argument ``inputs`` of ``CompiledModel.stream``."""
        beats = {
            "a": bus_words(self.a),
            "b": bus_words(self.b),
            "precision": self.precision,
            "precision_b": self.precision_b,
            "operation": self.operation,
            "start": self.start,
            "slot": self.slot,
            "emit": self.emit,
        }
        for name, bits in (
            ("precision", self.config.precision_bits),
            ("precision_b", _bits_of_b(self.config)),
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
        if isinstance(self.config, MixedUnitConfig):
            fields = ("precision", "precision_b", *fields[1:])
        return {
            name: [int.from_bytes(row.tobytes(), "little") for row in rows]
            for name, rows in sides.items()
        } | {name: int(getattr(self, name)[index]) for name in fields}


def _bits_of_b(config: TileConfig) -> int:
    """Return the bits of the precision of B in a beat, 0 if it is that of A."""
    return config.precision_bits if isinstance(config, MixedUnitConfig) else 0


def make_traffic(
    config: TileConfig,
    *,
    beats: int,
    seed: int,
    precisions: Sequence[str] | None = None,
    operations: Sequence[str] | None = None,
    slots: np.ndarray | None = None,
    lengths: Sequence[int] = (1, 2, 3, 8),
    emit_rate: float = 0.5,
) -> CubeTraffic:
    """Return random traffic for a unit after a reset.

    Parameters
    ----------
    config : MatrixUnitConfig
        Configuration of the unit.
    beats : int
        Number of beats, at least 1.
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
        # Semirings have FP32 operands and ignore the precision of a beat.
        precisions = ("fp32",)
    schedule = draw_schedule(
        rng,
        config,
        beats=beats,
        precisions=precisions,
        operations=operations,
        slots=slots,
        lengths=lengths,
        emit_rate=emit_rate,
    )
    return compute_traffic(rng, config, schedule)


def compute_traffic(
    rng: np.random.Generator, config: TileConfig, schedule: BeatSchedule
) -> CubeTraffic:
    """Return traffic that follows a schedule, with random operands and golden's results."""
    if isinstance(config, MatrixUnitConfig) and config.semirings and not config.one_pair:
        a, b, c, d, index = compute_semirings(rng, config, schedule)
    else:
        index = np.zeros((len(schedule), config.m, 0), np.uint8)
        a, b, c, d = _compute(rng, config, schedule)
    return CubeTraffic(
        config=config,
        a=a,
        b=b,
        index=index,
        precision=schedule.precision.astype(np.uint8),
        precision_b=schedule.precision_b.astype(np.uint8),
        operation=schedule.operation.astype(np.uint8),
        start=schedule.start.astype(np.uint8),
        slot=schedule.slot.astype(np.uint8),
        emit=schedule.emit.astype(np.uint8),
        # Only sums that start from C take a fractal of it, and only emitted results appear.
        c=c[schedule.from_c[schedule.beat]],
        d=d[schedule.emit[schedule.beat]],
    )


@dataclass(frozen=True)
class _Factors:
    """The operands of all sums of one kind, in order, and how they are multiplied."""

    rule: DotSpec | IntDotSpec | str  # the name of a semiring, or the arithmetic of mma
    x: np.ndarray
    y: np.ndarray


def _compute(
    rng: np.random.Generator, config: TileConfig, schedule: BeatSchedule
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return random operands, and the contents of the slots after each sum.

    Returns
    -------
    a, b : (beats, m or n, bytes) ndarray of uint8
        Contents of the buses.
    c, d : (sums, m, n) ndarray
        C fractals, and the contents of each sum's slot after it.
    """
    beats, octets = len(schedule), config.bus_bits // 8
    a = rng.integers(0, 256, (beats, config.m, octets), dtype=np.uint8)
    b = rng.integers(0, 256, (beats, config.n, octets), dtype=np.uint8)
    c = np.zeros((len(schedule.beat), config.m, config.n), f"u{config.word_bits // 8}")
    factors: dict[int, _Factors] = {}
    count = len(config.precisions) ** (1 + isinstance(config, MixedUnitConfig))
    for code in np.unique(schedule.kind).tolist():
        mine = np.flatnonzero(schedule.kind == code)
        sums = np.flatnonzero(schedule.kind[schedule.beat] == code)
        if code < count:
            x, y, c[sums] = _draw(rng, config, schedule, code)
            factors[code] = _factors(config, schedule, code, x, y)
        else:
            spec, name = config.spec("fp32"), config.operations[code - count]
            assert isinstance(spec, DotSpec)
            scale = schedule.scale[mine]
            x, y, c[sums] = draw_pairs(rng, name, spec, scale, config.m, config.n)
            factors[code] = _Factors(name, x, y)
        rule = factors[code].rule
        if isinstance(rule, DotSpec) and rule.scales is not None:
            x, y = packed(rule, x), packed(rule, y)
        _put(a, b, mine, x, y)
    return a, b, c, _accumulate(config, schedule, c, factors)


def _rule_of(config: TileConfig, code: int) -> tuple[str, DotSpec | IntDotSpec]:
    """Return the precision of A and the arithmetic of the beats of a kind."""
    if isinstance(config, MixedUnitConfig):
        a, b = (config.precisions[i] for i in divmod(code, len(config.precisions)))
        return a, config.pair_spec(a, b)
    return config.precisions[code], config.spec(config.precisions[code])


def _draw(
    rng: np.random.Generator, config: TileConfig, schedule: BeatSchedule, code: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw the operands A and B of the beats in a precision, and C of each of their sums."""
    name, spec = _rule_of(config, code)
    mine = np.flatnonzero(schedule.kind == code)
    sums = np.flatnonzero(schedule.kind[schedule.beat] == code)
    centre = schedule.scale
    if isinstance(spec, DotSpec):
        centre = centre + schedule.edge * spec.output.emax
    scaled = isinstance(spec, DotSpec) and spec.scales is not None
    draw: Any = draw_blocks if scaled else draw_operands
    x, y = draw(rng, spec, centre[mine], config.m, config.n)
    z = draw_addends(rng, spec, centre[schedule.beat[sums]], config.m, config.n)
    ties = schedule.from_c[mine] & (rng.random(len(mine)) < NEAR_TIES)
    if isinstance(spec, DotSpec) and name not in config.complex_precisions and not scaled:
        # Near ties are made for real sums only.
        parts = x[ties], y[ties], z[ties]
        make_near_ties(rng, spec, *parts)
        x[ties], y[ties], z[ties] = parts
    z = z.astype(f"u{config.word_bits // 8}")
    if config.result_bits(name) < config.word_bits:  # the unit must ignore the bits above
        z |= rng.integers(0, 1 << 32, z.shape, dtype=np.uint64) << np.uint64(32)
    return x, y, z


def _factors(
    config: TileConfig, schedule: BeatSchedule, code: int, x: np.ndarray, y: np.ndarray
) -> _Factors:
    """Return the operands of each sum of the beats in a precision.

    Complex operands hold real and imaginary parts in turn. The real part of a product is the sum
    of Re·Re and −(Im·Im), the imaginary part that of Re·Im and Im·Re.
    """
    name, spec = _rule_of(config, code)
    mine = np.flatnonzero(schedule.kind == code)
    sums = np.flatnonzero(schedule.kind[schedule.beat] == code)
    at = np.searchsorted(mine, schedule.beat[sums])
    x, y = x[at], y[at]
    if name in config.complex_precisions and isinstance(spec, DotSpec):
        imaginary = schedule.part[sums]
        x[~imaginary, :, 1::2] ^= spec.input.sign_mask
        pairs = y[imaginary].reshape(-1, config.n, spec.k // 2, 2)
        y[imaginary] = pairs[..., ::-1].reshape(-1, config.n, spec.k)
    return _Factors(spec, x, y)


def _accumulate(
    config: TileConfig, schedule: BeatSchedule, c: np.ndarray, factors: dict[int, _Factors]
) -> np.ndarray:
    """Return the contents of each sum's slot after the sum, (sums, m, n)."""
    beat = schedule.beat
    step, from_c, kind = schedule.step[beat], schedule.from_c[beat], schedule.kind[beat]
    run = 2 * schedule.run[beat] + schedule.part  # the real and the imaginary part are apart
    position = np.empty(len(beat), int)  # of a sum among those of its kind
    for code in factors:
        position[kind == code] = np.arange(np.count_nonzero(kind == code))
    state = np.zeros((2 * int(schedule.run.max()) + 2, config.m, config.n), c.dtype)
    d = np.zeros_like(c)
    # The beats of a run depend on each other: compute the first beats of all runs, then the second.
    for index in range(int(step.max()) + 1):
        now = np.flatnonzero(step == index)
        state[run[now[from_c[now]]]] = c[now[from_c[now]]]
        for code, f in factors.items():
            these = now[kind[now] == code]
            x, y = f.x[position[these]], f.y[position[these]]
            if isinstance(f.rule, str):
                if not index:
                    state[run[these[~from_c[these]]]] = identity(f.rule)
                state[run[these]] = pair_results(f.rule, x, y, state[run[these]])
            elif len(these):
                bits = config.result_bits(_rule_of(config, code)[0])
                addend = state[run[these]].astype(f"u{bits // 8}")
                if isinstance(f.rule, DotSpec) and f.rule.scales is not None:
                    value = block_results(f.rule, x, y, addend)
                else:
                    value = mmad(x, np.swapaxes(y, 1, 2), addend, spec=f.rule)
                state[run[these]] = value.view(addend.dtype)
        d[now] = state[run[now]]
    return d


def _put(a: np.ndarray, b: np.ndarray, beats: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    """Write codes to the low ends of the buses of some beats."""
    for bus, codes in ((a, x), (b, y)):
        raw = np.ascontiguousarray(codes).view(np.uint8)
        bus[beats, :, : raw.shape[-1]] = raw

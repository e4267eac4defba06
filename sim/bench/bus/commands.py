"""Random commands for a unit behind AXI4-Stream, with their packets and golden's results."""

from dataclasses import dataclass

import numpy as np

from vitruvian.golden.simd2.integer import int_mmo
from vitruvian.hdl.bus.core import BusCore
from vitruvian.hdl.bus.products import TILES_BITS
from vitruvian.hdl.cube.config import MatrixUnitConfig
from vitruvian.hdl.cube.ports import Start
from vitruvian.hdl.simd2.intconfig import IntConfig
from vitruvian.sim.bench.cube.schedule import BeatSchedule, complex_codes, mma_code
from vitruvian.sim.bench.cube.traffic import compute_traffic
from vitruvian.sim.bench.simd2.integer import int_vectors


@dataclass(frozen=True, kw_only=True)
class Packets:
    """Commands and the packets that belong to them, one of each for each command.

    Attributes
    ----------
    commands : list of int
        The words of the commands.
    inputs : dict of str to list of bytes
        The packets of ``a``, ``b``, ``c`` and, with sparsity, ``index``; a packet of ``c`` may be
        empty.
    d : list of bytes
        The packets of results.
    beats : list of int
        Number of beats of each command.
    """

    commands: list[int]
    inputs: dict[str, list[bytes]]
    d: list[bytes]
    beats: list[int]


def command_word(
    *, precision: int = 0, operation: int = 0, start: int = 0, tiles: int = 1, beats: int = 1
) -> int:
    """Return the word of a command; ``tiles`` and ``beats`` are numbers, at least 1."""
    # Fields from the lowest bit on; numbers are stored less one.
    parts = (precision, 4), (operation, 4), (start, 2), (tiles - 1, TILES_BITS), (beats - 1, 16)
    word = shift = 0
    for value, width in parts:
        word |= value << shift
        shift += width
    return word


def most_tiles(core: BusCore, precision: int = 0, operation: int = 0) -> int:
    """Return the largest number of tiles of a command."""
    return core.slot_count // (2 if _paired(core.config, precision, operation) else 1)


def _paired(config: MatrixUnitConfig | IntConfig, precision: int, operation: int) -> bool:
    """Return True if each tile has two results, a real and an imaginary part."""
    if isinstance(config, IntConfig) or precision not in complex_codes(config):
        return False
    return not config.one_pair or operation == mma_code(config)


def make_packets(
    core: BusCore,
    *,
    count: int,
    seed: int,
    tiles: int | None = None,
    beats: int | None = None,
    plain: bool = False,
) -> Packets:
    """Return random commands.

    Parameters
    ----------
    core : BusCore
        The unit.
    count : int
        Number of commands.
    tiles, beats : int, optional
        Number of tiles and beats of each command; random by default.
    plain : bool
        If True, use only commands whose beats take one step.
    """
    rng = np.random.default_rng(seed)
    config = core.config
    codes = list(range(max(len(core.precisions), 1)))
    operations = list(range(len(core.operations)))
    if plain and isinstance(config, MatrixUnitConfig):
        codes = [code for code, name in enumerate(config.precisions) if config.steps(name) == 1]
        if config.one_pair:  # the other operations take FP32 operands
            operations = [mma_code(config)]
    rows = []
    for _ in range(count):
        precision = int(rng.choice(codes))
        operation = int(rng.choice(operations))
        limit = most_tiles(core, precision, operation)
        rows.append(
            {
                "precision": precision,
                "operation": operation,
                "start": int(rng.integers(2)),
                # The ends of the range more often than a uniform choice has them.
                "tiles": tiles or int(rng.choice([1, limit, int(rng.integers(1, limit + 1))])),
                "beats": beats or int(rng.choice([1, 2, 3, 7])),
            }
        )
    if isinstance(config, IntConfig):
        inputs, d = _int_inputs(rng, config, rows)
    else:
        inputs, d = _cube_inputs(rng, config, rows)
    return Packets(
        commands=[command_word(**row) for row in rows],
        inputs=inputs,
        d=d,
        beats=[row["tiles"] * row["beats"] for row in rows],
    )


def _schedule(
    rng: np.random.Generator, config: MatrixUnitConfig, rows: list[dict[str, int]]
) -> BeatSchedule:
    """Return the beats of commands, without their operands."""
    run, step, owner, emit = [], [], [], []
    first = 0
    for number, row in enumerate(rows):
        for beat in range(row["beats"]):
            for tile in range(row["tiles"]):
                run.append(first + tile)
                step.append(beat)
                owner.append(number)
                emit.append(beat == row["beats"] - 1)
        first += row["tiles"]
    owner, run, step = np.array(owner), np.array(run), np.array(step)

    def of_owner(name: str) -> np.ndarray:
        return np.array([row[name] for row in rows])[owner]

    precision, operation, from_c = of_owner("precision"), of_owner("operation"), of_owner("start")
    kind = precision
    if config.one_pair:
        semiring = operation != mma_code(config)
        kind = np.where(semiring, len(config.precisions) + operation, precision)
    # A complex beat has two results.
    beat = np.repeat(np.arange(len(run)), 1 + np.isin(kind, complex_codes(config)))
    start = np.where(step > 0, Start.ACCUMULATE.value, from_c * Start.FROM_C.value)
    return BeatSchedule(
        run=run,
        step=step,
        start=start,
        from_c=start == Start.FROM_C.value,
        slot=np.zeros(len(run), int),
        emit=np.array(emit),
        precision=precision,
        precision_b=precision,
        operation=operation,
        kind=kind,
        # Exponents near each other within a sum, and some far away, so that terms are cut.
        scale=rng.integers(-16, 17, first)[run] + rng.choice([0, 0, 0, -12, 12], len(run)),
        edge=np.zeros(len(run), int),
        beat=beat,
        part=np.r_[False, beat[1:] == beat[:-1]],
    )


def _cube_inputs(
    rng: np.random.Generator, config: MatrixUnitConfig, rows: list[dict[str, int]]
) -> tuple[dict[str, list[bytes]], list[bytes]]:
    schedule = _schedule(rng, config, rows)
    traffic = compute_traffic(rng, config, schedule)
    sizes = np.array([row["tiles"] * row["beats"] for row in rows])
    inputs = {"a": _cut(traffic.a, sizes), "b": _cut(traffic.b, sizes)}
    if config.sparsity:
        inputs["index"] = [
            b"".join(_joined(beat, config.index_bits) for beat in part)
            for part in np.split(traffic.index, np.cumsum(sizes)[:-1])
        ]
    fractals = np.array(
        [
            row["tiles"] * (2 if _paired(config, row["precision"], row["operation"]) else 1)
            for row in rows
        ]
    )
    inputs["c"] = _cut(traffic.c, fractals * np.array([row["start"] for row in rows]))
    return inputs, _cut(traffic.d, fractals)


def _joined(rows: np.ndarray, bits: int) -> bytes:
    """Return rows of ``bits`` bits each, side by side, padded to bytes at the end."""
    value = 0
    for index, row in enumerate(rows):
        value |= int.from_bytes(row.tobytes(), "little") << index * bits
    return value.to_bytes(-(-len(rows) * bits // 8), "little")


def _int_inputs(
    rng: np.random.Generator, config: IntConfig, rows: list[dict[str, int]]
) -> tuple[dict[str, list[bytes]], list[bytes]]:
    sizes = np.array([row["beats"] for row in rows])  # there is a single tile
    vectors = int_vectors(config, int(sizes.sum()), seed=int(rng.integers(1 << 31)))
    at, d = 0, []
    firsts = np.cumsum(sizes) - sizes
    c = vectors["c"][firsts]
    for number, row in enumerate(rows):
        op = config.operations[row["operation"]]
        state = c[number] if row["start"] else None
        for _ in range(row["beats"]):
            a, b = vectors["a"][at], vectors["b"][at].swapaxes(0, 1)
            state = int_mmo(op, a, b, state, config.bits)
            at += 1
        assert state is not None
        d.append(state.astype(f"i{config.bits // 8}").tobytes())
    starts = np.array([row["start"] for row in rows])
    inputs = {name: _cut(vectors[name], sizes) for name in "ab"}
    return inputs | {"c": _cut(c[starts == 1], starts)}, d


def _cut(items: np.ndarray, sizes: np.ndarray) -> list[bytes]:
    """Return the bytes of successive groups of items."""
    return [part.tobytes() for part in np.split(items, np.cumsum(sizes)[:-1])]

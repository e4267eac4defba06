"""Lists of matrix instructions on compiled RTL, with their beats, cycles and rates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from vitruvian.golden.m3xu import operand_dtype, result_dtype
from vitruvian.golden.m3xu.execute import execute
from vitruvian.golden.m3xu.isa import FIELDS, Instruction, Opcode
from vitruvian.hdl.cube import MatrixUnitConfig, Start
from vitruvian.hdl.mma.unit import QUEUE_CYCLES, MmaUnit
from vitruvian.sim.rtl.tiles import bus_words

from . import CompiledModel, compile_unit

#: Rate relative to FP16 by precision, and the source of the figure: the machine that the M³XU
#: extends (baseline), or a corollary of Zhang 2024.
PAPER = {
    "fp16": (Fraction(1), "baseline"),
    "bf16": (Fraction(1), "baseline"),
    "tf32": (Fraction(1, 2), "baseline"),
    "fp32": (Fraction(1, 4), "Corollary 2"),
    "fp32c": (Fraction(1, 16), "Corollary 3"),
}

#: A, B and C of an instruction, in the form of ``golden.m3xu.execute``. C may be None.
Values = tuple[np.ndarray, np.ndarray, np.ndarray | None]


def beats_of(program: Sequence[Instruction], config: MatrixUnitConfig) -> dict[str, np.ndarray]:
    """Return the beats that instructions consist of, in order.

    The RTL is compared with this definition. The tiles of D are numbered down the columns and
    processed in groups. The size of a group is the number of tiles, halved until a group fits into
    the accumulator slots. Within a group, K is the outer loop and the tiles
    are the inner loop. The groups use the slots in turn; a complex tile uses an even slot and the
    next one.

    Parameters
    ----------
    config : MatrixUnitConfig
        Configuration of the unit.

    Returns
    -------
    beats : dict of str to (beats,) ndarray of int
        One array for each field of a beat; ``instruction`` is the index in ``program``.
    """
    beats: list[dict[str, int]] = []
    slots, free = config.slot_count, 0
    for number, instruction in enumerate(program):
        precision, shape = instruction.opcode.precision, instruction.opcode.shape
        width = 2 if precision.is_complex else 1
        terms = config.terms(precision.name) // width
        rows, columns, blocks = shape[0] // config.m, shape[1] // config.n, shape[2] // terms
        tiles = [(row, column) for column in range(columns) for row in range(rows)]
        size = len(tiles)
        while size * width > slots:
            size //= 2
        for first in range(0, len(tiles), size):
            free += free % width
            for block in range(blocks):
                for index, (row, column) in enumerate(tiles[first : first + size]):
                    zero = Start.FROM_C if instruction.accumulates else Start.ZERO
                    beats.append(
                        _fields(instruction.encode())
                        | {
                            "instruction": number,
                            "row": row,
                            "column": column,
                            "block": block,
                            "first": int(block == 0),
                            "last": int(block == blocks - 1),
                            "precision": config.precisions.index(precision.name),
                            "start": (Start.ACCUMULATE if block else zero).value,
                            "slot": (free + width * index) % slots,
                            "emit": int(block == blocks - 1),
                        }
                    )
            free = (free + width * size) % slots
    return {name: np.array([beat[name] for beat in beats]) for name in beats[0]}


def _fields(word: int) -> dict[str, int]:
    return {name: word >> low & (1 << width) - 1 for name, low, width in FIELDS}


def words_of(program: Sequence[Instruction]) -> dict[str, np.ndarray]:
    """Return instructions as payloads of the stream ``i``: one array for each field."""
    words = [_fields(instruction.encode()) for instruction in program]
    return {name: np.array([word[name] for word in words], np.uint8) for name, _, _ in FIELDS}


def expected_results(
    program: Sequence[Instruction], values: Sequence[Values], config: MatrixUnitConfig
) -> list[np.ndarray]:
    """Return golden's D for each instruction on this unit.

    Parameters
    ----------
    values : sequence of Values
        Operands of each instruction.
    config : MatrixUnitConfig
        Configuration of the unit.

    Returns
    -------
    results : list of (M, N) ndarray
    """
    results = []
    for instruction, operands in zip(program, values, strict=True):
        precision, bits = instruction.opcode.precision, config.lane_bits
        own = config.preset != "ieee" and not precision.is_wide(bits)  # a machine's window
        spec = config.float_specs[precision.name]
        unit = {"k": config.k, "multiplier_bits": bits, "preset": config.preset}
        window = None if own else spec.sum.window
        results.append(execute(instruction, *operands, **unit, window=window))
    return results


# Stimuli


def draw_instructions(
    rng: np.random.Generator, opcodes: Sequence[Opcode], *, accumulate: float = 0.5
) -> list[Instruction]:
    """Return an instruction with random registers for each opcode.

    Parameters
    ----------
    accumulate : float
        Probability that an instruction has a C operand.
    """
    program = []
    for opcode in opcodes:
        while True:
            first = {
                name: int(rng.integers(64 // size)) * size
                for name in ("d", "a", "b", "c")
                if (size := opcode.fragment(name).registers)
            }
            if rng.random() >= accumulate:
                del first["c"]
            try:
                program.append(Instruction(opcode=opcode, **first))
                break
            except ValueError:  # D would overlap A or B
                continue
    return program


def draw_values(rng: np.random.Generator, program: Sequence[Instruction]) -> list[Values]:
    """Return random operands for instructions.

    Most values are spread over 17 binades; one in 500 is a random code, which may be a NaN, an
    infinity or a subnormal number.
    """
    values: list[Values] = []
    for instruction in program:
        opcode, precision = instruction.opcode, instruction.opcode.precision
        dtypes = {"a": operand_dtype(precision), "b": operand_dtype(precision)}
        dtypes["c"] = result_dtype(precision)
        operands: list[Any] = []
        for name, dtype in dtypes.items():
            fragment = opcode.fragment(name)
            if name == "c" and not instruction.accumulates:
                operands.append(None)
                continue
            width = fragment.columns * (2 if precision.is_complex else 1)
            real = np.dtype(np.float32) if dtype == np.complex64 else dtype
            shape = fragment.rows, width
            scale = 2.0 ** rng.integers(-8, 9, shape)
            part = (rng.standard_normal(shape) * scale).astype(real)
            codes = part.view(f"u{real.itemsize}")
            is_random = rng.random(shape) < 0.002
            raw = np.frombuffer(rng.bytes(codes.nbytes), codes.dtype).reshape(shape)
            codes[is_random] = raw[is_random]
            operands.append(part.view(dtype))
        values.append((operands[0], operands[1], operands[2]))
    return values


# Runs


@dataclass(frozen=True, kw_only=True)
class MmaRun:
    """The results of a list of instructions on the RTL, with their cycles.

    Attributes
    ----------
    d : list of (M, N) ndarray
        D of each instruction.
    beats : dict
        The expected beats; see ``beats_of``.
    wrong_fetches : int
        Number of items of the stream ``fetch`` that differ from the expected beats.
    ends : (instructions,) ndarray of int
        Cycle in which the unit accepted the last beat of each instruction, counted from the cycle
        in which the first instruction arrived.
    cycles : int
        Cycles from the first instruction to the last result, including both.
    """

    d: list[np.ndarray]
    beats: dict[str, np.ndarray]
    wrong_fetches: int
    ends: np.ndarray
    cycles: int


def run_instructions(
    config: MatrixUnitConfig,
    program: Sequence[Instruction],
    values: Sequence[Values],
    *,
    model: CompiledModel | None = None,
    stall_rate: float | Mapping[str, float] = 0.0,
    seed: int = 0,
    reset_at: int | None = None,
) -> MmaRun:
    """Run instructions back to back on the compiled RTL of an ``MmaUnit``.

    The streams of operands are prepared before the run, in the order of ``beats_of``. If an
    instruction reads a C that an earlier instruction computes, the caller must therefore pass the
    values of that C.

    Parameters
    ----------
    config : MatrixUnitConfig
        Configuration of the unit.
    values : sequence of Values
        Operands of each instruction.
    model : CompiledModel, optional
        Model of the unit; by default it is compiled.
    stall_rate : float or mapping
        Probability that a stream is idle in a cycle, for all streams or by name.
    seed : int
        Seed of the stalls.
    reset_at : int, optional
        Cycle of a reset. All instructions are sent again after it, and the results are those of
        the second time.

    Returns
    -------
    run : MmaRun

    Raises
    ------
    StreamError
        If the unit hangs or returns more results than expected.
    """
    model = model or compile_unit(MmaUnit, config=config)
    beats = beats_of(program, config)
    a, b, c = operands_of(config, program, values, beats)
    tiles = tiles_of(config, program, beats)
    result = model.stream(
        inputs={"i": words_of(program), "ab": {"a": a, "b": b}, "c": c},
        outputs={"fetch": len(beats["row"]), "o": len(tiles)},
        stall_rate=stall_rate,
        stall_seed=seed,
        reset_at=reset_at,
    )
    start = int(result.output_cycles["fetch"][0])
    last_beats = np.flatnonzero(np.diff(beats["instruction"], append=len(program)))
    return MmaRun(
        d=results_of(config, program, tiles, result.outputs["o"]),
        beats=beats,
        wrong_fetches=_count_wrong(result.outputs["fetch"], beats),
        ends=result.input_cycles["ab"][last_beats].astype(int) - start,
        cycles=int(result.output_cycles["o"][-1]) - start + 1,
    )


def results_of(
    config: MatrixUnitConfig,
    program: Sequence[Instruction],
    tiles: Sequence[tuple[int, int, int, int]],
    fractals: np.ndarray,
) -> list[np.ndarray]:
    """Return D of each instruction, put together from the fractals that the unit returned."""
    d = []
    for instruction in program:
        dtype = result_dtype(instruction.opcode.precision)
        d.append(np.empty(instruction.opcode.shape[:2], dtype))
    for (number, row, column, part), fractal in zip(tiles, fractals, strict=True):
        precision = program[number].opcode.precision
        # A result that is narrower than a word of the unit is in the low bits of the word.
        word = f"u{config.result_bits(precision.name) // 8}"
        # The real and the imaginary parts of a complex matrix alternate in memory.
        words = d[number].view(word)[:, part :: 2 if precision.is_complex else 1]
        words[row : row + config.m, column : column + config.n] = fractal.astype(word)
    return d


def _count_wrong(fetched: Mapping[str, np.ndarray], beats: Mapping[str, np.ndarray]) -> int:
    """Return the number of fetches that differ from the expected beats in some field."""
    wrong = np.zeros(len(beats["row"]), bool)
    for name, got in fetched.items():
        wrong |= got != beats[name]
    return int(wrong.sum())


def tiles_of(config, program, beats) -> list[tuple[int, int, int, int]]:
    """Return instruction, first row, first column and part of every D fractal."""
    return [
        (number, row * config.m, column * config.n, part)
        for number, row, column, last in zip(
            *(beats[name].tolist() for name in ("instruction", "row", "column", "last")),
            strict=True,
        )
        if last
        for part in range(2 if program[number].opcode.precision.is_complex else 1)
    ]


def operands_of(config, program, values, beats):
    """Return the bus words of A and of B for each beat, and the C fractals."""
    count, octets = len(beats["row"]), config.bus_bits // 8
    a = np.zeros((count, config.m, octets), np.uint8)
    b = np.zeros((count, config.n, octets), np.uint8)
    c = []
    names = ("instruction", "row", "column", "block", "first")
    for beat, (number, row, column, block, first) in enumerate(
        zip(*(beats[name].tolist() for name in names), strict=True)
    ):
        left, right, addend = values[number]
        precision = program[number].opcode.precision
        terms = config.terms(precision.name) // (2 if precision.is_complex else 1)
        rows = slice(row * config.m, (row + 1) * config.m)
        columns = slice(column * config.n, (column + 1) * config.n)
        k = slice(block * terms, (block + 1) * terms)
        for bus, part in ((a, left[rows, k]), (b, right[k, columns].T)):
            raw = np.ascontiguousarray(part).view(np.uint8)
            bus[beat, :, : raw.shape[-1]] = raw
        if first and addend is not None:
            tile = addend[rows, columns]
            c += [tile.real, tile.imag] if precision.is_complex else [tile]
    word = np.dtype(f"u{config.word_bits // 8}")
    addends = [np.ascontiguousarray(tile).view(f"u{tile.itemsize}").astype(word) for tile in c]
    shape = 0, config.m, config.n
    return bus_words(a), bus_words(b), np.array(addends) if addends else np.zeros(shape, word)


# Rates


@dataclass(frozen=True, kw_only=True)
class IssueRate:
    """The clock cycles of a list of instructions, measured at the hand-shakes of the RTL.

    Attributes
    ----------
    name : str
        Mnemonic of the instructions, or ``mixed``.
    instructions : int
        Length of the list.
    cycles : int
        Cycles from the first instruction to the last result.
    steps : int
        Smallest number of cycles for the beats of the list, computed from the unit's configuration.
    each : tuple of int
        Cycles between the ends of successive instructions, in order.
    macs : int
        Multiply-accumulates of all instructions but the first, which ``each`` does not contain.
    latency : int
        Cycles that a list takes in addition to its steps, according to the unit's description.
    lanes : int
        Number of 16-bit lanes of the unit, M·N·k.
    mismatches : int
        Number of elements of D and of fetches that differ from the expected ones.
    """

    name: str
    instructions: int
    cycles: int
    steps: int
    each: tuple[int, ...]
    macs: int
    latency: int
    lanes: int
    mismatches: int

    @property
    def cycles_each(self) -> Fraction:
        """Average number of cycles of an instruction."""
        return Fraction(sum(self.each), len(self.each))

    @property
    def macs_per_cycle(self) -> Fraction:
        """Multiply-accumulates per cycle; for a complex precision these are complex ones."""
        return Fraction(self.macs, sum(self.each))

    @property
    def fill(self) -> int:
        """Cycles of the list that are not steps."""
        return self.cycles - self.steps

    @property
    def bubbles(self) -> int:
        """Cycles of the list that are neither steps nor the latency."""
        return self.fill - self.latency

    def relative(self, other: "IssueRate") -> Fraction:
        """Return the ratio of this list's multiply-accumulates per cycle and lane to another's."""
        return self.macs_per_cycle / self.lanes / (other.macs_per_cycle / other.lanes)


def measure(
    config: MatrixUnitConfig,
    opcodes: Sequence[Opcode],
    *,
    name: str,
    seed: int = 1,
    model: CompiledModel | None = None,
) -> IssueRate:
    """Run an instruction with random operands for each opcode, and measure the cycles.

    Half of the instructions have a C operand.

    Parameters
    ----------
    config : MatrixUnitConfig
        Configuration of the unit.
    opcodes : sequence of Opcode
        At least two.
    name : str
        Name of the result.
    seed : int
        Seed of the operands.
    model : CompiledModel, optional
        Model of the unit; by default it is compiled.

    Raises
    ------
    ValueError
        If there are fewer than two opcodes.
    """
    if len(opcodes) < 2:
        raise ValueError(f"opcodes must be at least 2, not {len(opcodes)}")
    rng = np.random.default_rng(seed)
    program = draw_instructions(rng, opcodes)
    values = draw_values(rng, program)
    run = run_instructions(config, program, values, model=model)
    expected = expected_results(program, values, config)
    differ = sum(_different(x, y) for x, y in zip(run.d, expected, strict=True))
    steps = [config.steps(config.precisions[code]) for code in run.beats["precision"]]
    return IssueRate(
        name=name,
        instructions=len(program),
        cycles=run.cycles,
        steps=sum(steps),
        each=tuple(np.diff(run.ends).tolist()),
        macs=sum(opcode.macs for opcode in opcodes[1:]),
        latency=QUEUE_CYCLES + config.latency_cycles,
        lanes=config.macs,
        mismatches=differ + run.wrong_fetches,
    )


def _different(got: np.ndarray, expected: np.ndarray) -> int:
    """Return the number of elements whose bits differ."""
    pairs = (np.ascontiguousarray(x).view(np.uint8) for x in (got, expected))
    x, y = (bits.reshape(got.size, got.itemsize) for bits in pairs)
    return int((x != y).any(axis=1).sum())

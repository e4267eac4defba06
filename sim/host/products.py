"""Products of matrices of any size on a board, tile by tile."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.common.validate import one_of, round_up
from vitruvian.golden.cube.mmad import mmad_any
from vitruvian.golden.fp import from_float, to_float
from vitruvian.golden.simd2 import mmo
from vitruvian.hdl.bus.registers import MAP
from vitruvian.hdl.cube import MatrixUnitConfig, Start
from vitruvian.hdl.cube.choices import WIDE
from vitruvian.hdl.simd2.intconfig import IntConfig
from vitruvian.sim.rtl.tiles import INT8, cut_fractals, cut_operands, join_fractals, phases_of

from .board import Board
from .integers import cut_addends, cut_integers, integer_expected, join_integers


@dataclass(frozen=True, kw_only=True)
class BoardProduct:
    """A product that a board computed.

    Attributes
    ----------
    d : (M, N) ndarray
        Codes of the result's format, or int32.
    beats : int
        Beats that the matrix unit executed.
    """

    d: np.ndarray
    beats: int


def precisions_of(config: MatrixUnitConfig | IntConfig) -> list[str]:
    """Return the precisions of a unit that the host can use: those that take one step.

    The layout of the others depends on the width of the multipliers, which a board does not tell.
    """
    if isinstance(config, IntConfig):
        return [f"int{config.bits}"]
    return [name for name in config.precisions if name not in WIDE]


def operations_of(config: MatrixUnitConfig | IntConfig) -> list[str]:
    """Return the operations of a unit, in the order of their codes."""
    if isinstance(config, IntConfig):
        return [op.mnemonic for op in config.operations]
    return list(config.operations)


def matmul(
    board: Board,
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray | None = None,
    *,
    precision: str = "fp16",
    operation: str = "mma",
    progress: Callable[[int, int], object] = lambda *_: None,
) -> BoardProduct:
    """Compute ``C + A · B``, or ``C ⊕ (A ⊗ B)``, on a board.

    Each fractal of A goes over the line once for as many columns of D as the unit has slots.

    Parameters
    ----------
    a : (M, K) ndarray
        Codes of ``precision``, or int8.
    b : (K, N) ndarray
        Codes of the same type.
    c : (M, N) ndarray, optional
        Codes of the result's format, or int32.
    precision, operation : str
        A precision and an operation of the board's unit.
    progress : callable
        Function that is called with the number of finished beats and of all beats after each beat.

    Raises
    ------
    UserError
        If the board lacks the precision or the operation, or if the shapes do not match.
    WorkError
        If the board stops answering, or reports an error.
    """
    config = board.config
    one_of("precision", precision, precisions_of(config))
    one_of("operation", operation, operations_of(config))
    if isinstance(config, MatrixUnitConfig) and config.one_pair and operation != "mma":
        raise UserError(f"board must take FP16 operands for {operation}, not FP32")
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0] or not a.size or not b.size:
        raise UserError(f"a and b must be (M, K) and (K, N), not {a.shape} and {b.shape}")
    if c is not None and c.shape != (len(a), b.shape[1]):
        raise UserError(f"c must be (M, N) = {(len(a), b.shape[1])}, not {c.shape}")
    if isinstance(config, IntConfig):
        octets = cut_integers(config, a, b, operation)
        run = _Run(board, precision, operation, octets[0].shape[1], progress)
        d = run.tiles(*octets, None if c is None else cut_addends(config, c))
        board.check_errors()
        signed = d.view(f"<i{config.bits // 8}")
        return BoardProduct(d=join_integers(signed, len(a), b.shape[1]), beats=run.beats)
    left, right = cut_operands(config, a[None], b.T[None], precision, operation)
    addends = None
    if c is not None:
        addends = cut_fractals(config, c[None], config.result_bits(precision))[0, :, :, 0]
    phases = len(phases_of(config, precision, len(b), operation))
    run = _Run(board, precision, operation, phases, progress)
    d = run.tiles(_octets(left[0], config.bus_bits), _octets(right[0], config.b_bus_bits), addends)
    board.check_errors()
    codes = d.astype(f"<u{config.result_bits(precision) // 8}", copy=False)
    joined = join_fractals(codes[None, :, :, None], len(a), b.shape[1])[0]
    return BoardProduct(d=joined.view(np.int32) if precision == INT8 else joined, beats=run.beats)


def expected(
    config: MatrixUnitConfig | IntConfig,
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray | None = None,
    *,
    precision: str,
    operation: str = "mma",
    accuracy: str = "ieee",
) -> np.ndarray:
    """Return the product that golden computes, in the form of ``matmul``'s result.

    Parameters
    ----------
    config : MatrixUnitConfig
        The parameters of the board's unit.
    a, b, c, precision, operation
        As for ``matmul``.
    accuracy : str
        Preset of the unit, which the registers of a board do not tell.
    """
    if isinstance(config, IntConfig):
        return integer_expected(config, a, b, c, operation)
    if operation == "mma":
        spec = replace(config, preset=accuracy).spec(precision)
        width = config.result_bits(precision) // 8
        kind = np.int32 if precision == INT8 else np.dtype(f"<u{width}")
        zero = np.zeros((len(a), b.shape[1]), kind)  # +0
        return np.asarray(mmad_any(a, b, zero if c is None else c, spec=spec))
    values = (to_float(x, precision).astype(np.float32) for x in (a, b))
    left, right = (x.astype(np.float16) if precision == "fp16" else x for x in values)
    addend = None if c is None else to_float(c, "fp32").astype(np.float32)
    # The unit computes (a − b)² as products of its lanes, whose order golden follows.
    d = mmo(operation, left, right, addend, k=config.k, squares="products")
    return from_float(d, "fp32")


class _Run:
    """A product in progress."""

    def __init__(
        self,
        board: Board,
        precision: str,
        operation: str,
        phases: int,
        progress: Callable[[int, int], object],
    ):
        self._progress = progress
        self.client, self.config, self.phases = board.client, board.config, phases
        self.beats = 0
        config = self.config
        self._code = {
            "precision": 0 if isinstance(config, IntConfig) else config.precisions.index(precision),
            "operation": operations_of(config).index(operation),
        }
        self._word_bits = board.field("unit", "word_bits")
        self._slots = board.field("unit", "slots")
        self._result_words = board.field("result_words", "d")

    def tiles(self, left: np.ndarray, right: np.ndarray, c: np.ndarray | None) -> np.ndarray:
        """Return all fractals of D.

        Parameters
        ----------
        left : (rows, phases, bytes) ndarray of uint8
            Fractals of A.
        right : (columns, phases, bytes) ndarray of uint8
            Fractals of B.
        c : (rows, columns, m, n) ndarray, optional
        """
        config = self.config
        word = np.dtype(f"<u{self._word_bits // 8}")
        d = np.empty((len(left), len(right), config.m, config.n), word)
        beats = len(left) * len(right) * self.phases
        for row in range(len(left)):
            # As many columns of D as the unit has slots are summed side by side, so that A is sent
            # once for all of them.
            for first in range(0, len(right), self._slots):
                group = range(first, min(first + self._slots, len(right)))
                for phase in range(self.phases):
                    self.client.write("a_data", words_of(left[row, phase]))
                    for slot, column in enumerate(group):
                        # C enters with the first beat of a sum.
                        addend = None if c is None or phase else c[row, column]
                        self._beat(right[column, phase], addend, phase, slot)
                        self._progress(self.beats, beats)
                # Results leave in the order of their last beats.
                read = self.client.read("d_data", len(group) * self._result_words)
                octets = np.array(read, "<u4").reshape(len(group), -1).view(np.uint8)
                # The last word may be padded.
                used = config.m * config.n * word.itemsize
                shape = (len(group), config.m, config.n)
                d[row, first : group.stop] = octets[:, :used].copy().view(word).reshape(shape)
        return d

    def _beat(self, b: np.ndarray, c: np.ndarray | None, phase: int, slot: int) -> None:
        """Send B, perhaps C, and the command of a beat."""
        self.client.write("b_data", words_of(b))
        start = Start.ACCUMULATE if phase else Start.ZERO
        if c is not None:
            self.client.write("c_data", words_of(np.ascontiguousarray(c).view(np.uint8)))
            start = Start.FROM_C
        fields = {
            **self._code,
            "start": start.value,
            "emit": int(phase == self.phases - 1),
            "slot": slot,
        }
        places = {field.name: field.low for field in MAP["command"].fields}
        self.client.write("command", [sum(fields[name] << places[name] for name in fields)])
        self.beats += 1


def words_of(octets: np.ndarray) -> list[int]:
    """Return the bytes of an operand as words, the first byte lowest; the last word is padded."""
    flat = np.ascontiguousarray(octets).reshape(-1)
    padded = np.zeros(round_up(flat.size, 4), np.uint8)
    padded[: flat.size] = flat
    return [int(word) for word in padded.view("<u4")]


def _octets(bus: np.ndarray, bits: int) -> np.ndarray:
    """Return bus words as bytes: the lines of a fractal one after the other.

    Parameters
    ----------
    bus : (tiles, phases, lines[, words]) ndarray of uint64
    bits : int
        Width of a line of the bus.
    """
    tiles, phases, lines = bus.shape[:3]
    # A line of the bus may end within a word of 64 bits.
    raw = np.ascontiguousarray(bus, "<u8").view(np.uint8).reshape(tiles, phases, lines, -1)
    return raw[..., : bits // 8].reshape(tiles, phases, -1)

"""An order of a sum: threads, their accumulators, and the halving of what they hold."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vitruvian.common.validate import check_int
from vitruvian.golden.fp.fused import fused

#: Threads of a warp, which exchange their values without memory.
WARP = 32

#: What an accumulator does with a number.
Take = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True, kw_only=True)
class SumOrder:
    """How a kernel divides a sum among threads.

    Thread g of all threads takes each ``threads``-th place from g on; a place is one number, or a
    vector of neighbours. Its accumulators begin at zero, take places in turn, and are added in
    their order. The threads of a block then halve: the first half adds the second one, along x and
    then along y. With several blocks, those of one block add the results of all blocks likewise.

    Parameters
    ----------
    width, height : int
        Threads of a block along x and y that share a sum; powers of two.
    blocks : int
        Blocks that share a sum.
    vector : int
        Neighbours that a thread loads at once, each for an accumulator of its own; 1 for none.
    accumulators : int
        Accumulators of a thread without vectors.
    """

    width: int
    height: int = 1
    blocks: int = 1
    vector: int = 1
    accumulators: int = 4

    def __post_init__(self) -> None:
        for name in ("width", "height", "blocks", "vector", "accumulators"):
            check_int(name, getattr(self, name), 1)
        for name in ("width", "height"):
            value = getattr(self, name)
            if value & (value - 1):
                raise ValueError(f"{name} must be a power of two, not {value}")

    @property
    def threads(self) -> int:
        """The number of threads that share a sum."""
        return self.width * self.height * self.blocks

    def __str__(self) -> str:
        words = [f"{self.width} × {self.height} threads"]
        words += [f"{self.blocks} blocks"] if self.blocks > 1 else []
        many = f"vectors of {self.vector}" if self.vector > 1 else ""
        words.append(many or f"{self.accumulators} accumulators each")
        return "; ".join(words)


def add(x: np.ndarray, order: SumOrder, *, squares: bool = False) -> np.ndarray:
    """Return the sums along the last axis in an order, rounded after each addition.

    Parameters
    ----------
    x : (..., N) ndarray of float32 or float64
        Each row must begin where a vector may: its address is a multiple of the vector's size.
    order : SumOrder
    squares : bool
        If True, an accumulator takes the square of a number by a fused multiply-add.

    Returns
    -------
    (...) ndarray of the type of x

    Raises
    ------
    TypeError
        If x has another type, as float64 with squares.

    Examples
    --------
    >>> import numpy as np
    >>> from vitruvian.golden.reductions import SumOrder, add
    >>> x = np.array([2**24, 1, -(2**24), 1], np.float32)
    >>> float(add(x, SumOrder(width=1, accumulators=1))), float(add(x, SumOrder(width=2)))
    (1.0, 2.0)
    """
    if x.dtype.name not in ("float32", "float64"):
        raise TypeError(f"x must be of float32 or float64, not {x.dtype}")
    if squares and x.dtype != np.float32:
        raise TypeError(f"x must be of float32 for squares, not {x.dtype}")
    take = _with_square if squares else np.add
    rows = x.reshape(-1, x.shape[-1]) if x.size else x.reshape(-1, 0)
    with np.errstate(all="ignore"):
        held = (_vectors if order.vector > 1 else _places)(rows, order, take)
        total = held[:, 0].copy()
        for i in range(1, held.shape[1]):
            total += held[:, i]
        blocks = total.reshape(len(rows), order.blocks, order.height, order.width)
        sums = halved(halved(blocks, 3), 2)[:, :, 0, 0]
        result = _of_blocks(sums, order) if order.blocks > 1 else sums[:, 0]
    return result.reshape(x.shape[:-1])


def _with_square(total: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return total + x² of float32 numbers, rounded once."""
    return fused(x, x, total)


def _accumulated(terms: np.ndarray, take: Take = np.add) -> np.ndarray:
    """Return the sums along axis 1, from zero, one term after the other."""
    total = np.zeros((terms.shape[0], *terms.shape[2:]), terms.dtype)
    for t in range(terms.shape[1]):
        total = take(total, terms[:, t])
    return total


def _places(x: np.ndarray, order: SumOrder, take: Take) -> np.ndarray:
    """Return what each accumulator of each thread holds: (rows, accumulators, threads)."""
    step = order.threads * order.accumulators
    # A place beyond the end adds nothing. A sum from zero is never −0, so +0 is nothing.
    padded = np.pad(x, ((0, 0), (0, -x.shape[1] % step)))
    return _accumulated(padded.reshape(len(x), -1, order.accumulators, order.threads), take)


def _vectors(x: np.ndarray, order: SumOrder, take: Take) -> np.ndarray:
    """Return the same with vectors; the first threads take the numbers behind the last vector."""
    whole = x.shape[1] - x.shape[1] % order.vector
    step = order.threads * order.vector
    padded = np.pad(x[:, :whole], ((0, 0), (0, -whole % step)))
    places = padded.reshape(len(x), -1, order.threads, order.vector)
    held = _accumulated(places, take).swapaxes(1, 2)
    rest = x[:, whole:]
    held[:, 0, : rest.shape[1]] = take(held[:, 0, : rest.shape[1]], rest)
    return held


def halved(x: np.ndarray, axis: int) -> np.ndarray:
    """Return sums along an axis, which stays: the first half adds the second one, and so on."""
    while x.shape[axis] > 1:
        first, second = np.split(x, 2, axis)
        x = first + second
    return x


def _of_blocks(sums: np.ndarray, order: SumOrder) -> np.ndarray:
    """Return the sum of the results of blocks, which the threads of the last block add."""
    step = order.width * order.height
    padded = np.pad(sums, ((0, 0), (0, -sums.shape[1] % step)))
    held = _accumulated(padded.reshape(len(sums), -1, step))
    held = held.reshape(len(sums), order.height, order.width)
    return halved(halved(held, 1), 2)[:, 0, 0]

"""The second-level cache of a chip under kernels whose cores work in step.

All cores begin together and do the same, so the n-th transfers of all cores are taken as
simultaneous: a round. A piece of data that several cores read in a round comes from memory once,
and all of them wait for it. The cache replaces the piece that has not been used for the longest
time.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

from vitruvian.common.validate import ceil_div
from vitruvian.sim.davinci import Chip

#: A piece of data and its bytes.
Piece = tuple[Hashable, int]

#: The pieces that a transfer reads.
Transfer = Sequence[Piece]

#: ``Work.missed`` and ``Work.sharers`` of a transfer.
Missed = tuple[int, int]
NOTHING: Missed = (0, 1)


class CacheRounds:
    """The content of the cache after each round.

    Parameters
    ----------
    chip : Chip
        If it has no cache, nothing misses.
    """

    def __init__(self, chip: Chip) -> None:
        self.room = None if chip.cache is None else chip.cache.nbytes
        self.held: dict[Hashable, int] = {}  # bytes by piece, the least recently used one first
        self.used = 0

    def read(self, round_: Sequence[Sequence[Transfer]]) -> list[tuple[Missed, ...]]:
        """Return what each transfer of each core in a round misses."""
        if self.room is None:
            return [(NOTHING,) * len(transfers) for transfers in round_]
        cores = Counter(
            piece
            for transfers in round_
            for piece in dict.fromkeys(piece for transfer in transfers for piece in transfer)
        )
        shares = {
            piece: NOTHING if piece[0] in self.held else (ceil_div(piece[1], count), count)
            for piece, count in cores.items()
        }
        self.write(cores)
        return [
            tuple(_together([shares[piece] for piece in transfer]) for transfer in transfers)
            for transfers in round_
        ]

    def write(self, pieces: Iterable[Piece]) -> None:
        """Bring pieces into the cache, as a transfer that reads or writes them does."""
        if self.room is None:
            return
        for name, size in pieces:
            self.used += size - self.held.pop(name, 0)
            self.held[name] = size
        while self.used > self.room:
            self.used -= self.held.pop(next(iter(self.held)))


def _together(pieces: Sequence[Missed]) -> Missed:
    """Return what a transfer of several pieces misses."""
    return sum(size for size, _ in pieces), max((cores for _, cores in pieces), default=1)

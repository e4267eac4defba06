"""How a tiled product is cut: tiles, cores, and what stays in L1.

References
----------
Tang 2024, Alg. 3: mTiles, kTiles, nTiles and bNum, the number of control flows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import isqrt, prod

from vitruvian.sim.davinci import Chip
from vitruvian.validate import one_of

__all__ = [
    "DTYPES",
    "Cut",
    "Plan",
    "Tiling",
    "blocks_of",
    "busiest",
    "candidates",
    "choose",
    "feasible",
    "plan",
]

#: By dtype of the operands: terms of a block, dtype in L0C, and dtypes that C may have.
DTYPES = {"fp16": (16, "fp32", ("fp16", "fp32")), "int8": (32, "int32", ("int32",))}

#: Bytes of a fractal of A or B.
FRACTAL = 512


@dataclass(frozen=True, order=True)
class Tiling:
    """The four parameters of Alg. 3.

    Attributes
    ----------
    m_tiles, k_tiles, n_tiles : int
        Tiles along each direction, of the whole product; 1 to the number of blocks there.
    b_num : int
        Control flows, which are slots of L0A and L0B, 1 to 8.
    """

    m_tiles: int
    k_tiles: int
    n_tiles: int
    b_num: int = 2

    def __str__(self) -> str:
        return f"{self.m_tiles}×{self.k_tiles}×{self.n_tiles}, bNum {self.b_num}"


@dataclass(frozen=True)
class Cut:
    """Tiles of one direction: as equal as whole blocks allow, the longer ones first.

    Attributes
    ----------
    blocks, tiles : int
    """

    blocks: int
    tiles: int

    def bound(self, tile: int) -> int:
        """First block of a tile; of the number of tiles, the number of blocks."""
        low, extra = divmod(self.blocks, self.tiles)
        return tile * low + min(tile, extra)

    def size(self, tile: int) -> int:
        """Blocks of a tile."""
        return self.bound(tile + 1) - self.bound(tile)

    @property
    def largest(self) -> int:
        """Blocks of the first tile."""
        return -(-self.blocks // self.tiles)


@dataclass(frozen=True)
class Plan:
    """A tiling on the cores of a chip.

    Attributes
    ----------
    tiling : Tiling
    m, k, n : Cut
    across : tuple of (i0, i1, j0, j1)
        For each core, its tiles: rows i0 … i1 − 1 and columns j0 … j1 − 1.
    keep_a, keep_b : bool
        Whether a row of tiles of A stays in L1 until the next row, and whether a core's part of B
        stays there; else tiles come anew each time, through b_num slots.
    c_slots : int
        Tiles of C in L0C and in UB, 1 or 2.
    """

    tiling: Tiling
    m: Cut
    k: Cut
    n: Cut
    across: tuple[tuple[int, int, int, int], ...]
    keep_a: bool
    keep_b: bool
    c_slots: int


def blocks_of(m: int, k: int, n: int, dtype: str = "fp16") -> tuple[int, int, int]:
    """Blocks of 16 × 16 × 16 (32 of int8) along each direction.

    Raises
    ------
    ValueError
        For sizes below 1, or a dtype that is none of `DTYPES`.
    """
    one_of("dtype", dtype, DTYPES)
    for name, size in (("M", m), ("K", k), ("N", n)):
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(f"{name} must be an integer of 1 or more, not {size!r}")
    return -(-m // 16), -(-k // DTYPES[dtype][0]), -(-n // 16)


def plan(
    chip: Chip, blocks: tuple[int, int, int], tiling: Tiling, cores: int, c_bytes: int = 2
) -> Plan:
    """Deal the tiles to cores, and find what stays in L1.

    Parameters
    ----------
    chip : Chip
        One whose cores have all units.
    blocks : (int, int, int)
        See `blocks_of`.
    tiling : Tiling
    cores : int
    c_bytes : int
        Of an element of C.

    Raises
    ------
    ValueError
        If the chip has no such cores, or the tiles do not fit; the message says which memory.
    """
    kind = chip.kind()
    if not kind.buffers.keys() >= {"L1", "L0A", "L0B", "L0C", "UB"}:
        raise ValueError(f"chip must have cores with all units for Alg. 3, not {chip.name}")
    if isinstance(cores, bool) or not isinstance(cores, int) or not 1 <= cores <= kind.count:
        raise ValueError(f"cores must be 1 … {kind.count}, not {cores!r}")
    most = min(8, chip.event_registers)
    if not 1 <= tiling.b_num <= most:
        raise ValueError(f"bNum must be 1 … {most}, not {tiling.b_num!r}")
    names = ("mTiles", "kTiles", "nTiles")
    counts = (tiling.m_tiles, tiling.k_tiles, tiling.n_tiles)
    for name, tiles, limit in zip(names, counts, blocks, strict=True):
        if not 1 <= tiles <= limit:
            raise ValueError(f"{name} must be 1 … {limit}, the number of blocks, not {tiles!r}")
    m, k, n = (Cut(b, t) for b, t in zip(blocks, counts, strict=True))
    size = {name: buffer.nbytes for name, buffer in kind.buffers.items()}
    a, b = m.largest * k.largest * FRACTAL, k.largest * n.largest * FRACTAL
    c = m.largest * n.largest * 256
    for memory, need, what in (
        ("L0A", a * tiling.b_num, f"{tiling.b_num} tiles of A"),
        ("L0B", b * tiling.b_num, f"{tiling.b_num} tiles of B"),
        ("L0C", c * 4, "a tile of C"),
        ("UB", c * c_bytes, "a tile of C"),
    ):
        if need > size[memory]:
            raise ValueError(
                f"{what} must fit the {size[memory]} bytes of {memory}, not take {need}: {tiling}"
            )
    twice = tiling.b_num > 1 and 2 * c * 4 <= size["L0C"] and 2 * c * c_bytes <= size["UB"]
    across = _deal(m, n, cores)
    keep = _keep(m, k, n, across, tiling.b_num, size["L1"])
    if keep is None:
        raise ValueError(f"{tiling.b_num} tiles of A and B must fit the {size['L1']} bytes of L1")
    return Plan(tiling, m, k, n, across, *keep, 2 if twice else 1)


def _deal(m: Cut, n: Cut, cores: int) -> tuple[tuple[int, int, int, int], ...]:
    """A grid of cores: the fewest blocks on the busiest core, then the fewest to read."""
    best = None
    for down in range(1, cores + 1):
        right = cores // down
        if down > m.tiles or right > n.tiles:
            right, down = min(right, n.tiles), min(down, m.tiles)
        rows, columns = Cut(m.tiles, down), Cut(n.tiles, right)
        wide = m.bound(rows.bound(1)), n.bound(columns.bound(1))
        key = (wide[0] * wide[1], wide[0] + wide[1], down)
        if best is None or key < best[0]:
            best = key, rows, columns
    assert best is not None  # there is always one core
    _, rows, columns = best
    return tuple(
        (rows.bound(i), rows.bound(i + 1), columns.bound(j), columns.bound(j + 1))
        for i in range(rows.tiles)
        for j in range(columns.tiles)
    )


def _keep(
    m: Cut, k: Cut, n: Cut, across: tuple[tuple[int, int, int, int], ...], slots: int, l1: int
) -> tuple[bool, bool] | None:
    """What stays in L1: of what fits, that which reads the least from global memory."""
    i0, i1, j0, j1 = across[0]
    rows, columns = m.bound(i1) - m.bound(i0), n.bound(j1) - n.bound(j0)
    panel, part = m.largest * k.blocks * FRACTAL, k.blocks * columns * FRACTAL
    ring_a = slots * m.largest * k.largest * FRACTAL
    ring_b = slots * k.largest * n.largest * FRACTAL
    found = []
    for keep_a, keep_b in product((True, False), repeat=2):
        if keep_a and k.tiles < slots:
            continue  # a slot of the next row could be overwritten before it has been read
        room = (panel if keep_a else ring_a) + (part if keep_b else ring_b)
        if room <= l1:
            read = rows * (1 if keep_a else j1 - j0) + columns * (1 if keep_b else i1 - i0)
            found.append((read, room, keep_a, keep_b))
    return min(found)[2:] if found else None


def feasible(
    chip: Chip,
    blocks: tuple[int, int, int],
    cores: int,
    *,
    c_bytes: int = 2,
    any_integer: bool = False,
    b_nums: tuple[int, ...] | None = None,
) -> Iterator[Tiling]:
    """Every tiling that fits, in order.

    Parameters
    ----------
    any_integer : bool
        All numbers of tiles and of control flows; else divisors of the blocks, and 1, 2, 4, 8.
    b_nums : tuple of int, optional
        Other numbers of control flows.
    """
    *counts, slots = _candidates(blocks, any_integer, b_nums)
    for m_tiles, k_tiles, n_tiles in product(*counts):
        for b_num in slots:
            tiling = Tiling(m_tiles, k_tiles, n_tiles, b_num)
            try:
                plan(chip, blocks, tiling, cores, c_bytes)
            except ValueError:
                continue
            yield tiling


def candidates(
    blocks: tuple[int, int, int], any_integer: bool = False, b_nums: tuple[int, ...] | None = None
) -> int:
    """Return how many tilings `feasible` tries."""
    return prod(map(len, _candidates(blocks, any_integer, b_nums)))


def _candidates(
    blocks: tuple[int, int, int], any_integer: bool, b_nums: tuple[int, ...] | None
) -> list[Sequence[int]]:
    """Numbers of tiles along each direction, and of control flows."""
    if b_nums is None:
        b_nums = tuple(range(1, 9)) if any_integer else (1, 2, 4, 8)
    return [*(range(1, b + 1) if any_integer else _divisors(b) for b in blocks), b_nums]


def _divisors(number: int) -> list[int]:
    low = [t for t in range(1, isqrt(number) + 1) if number % t == 0]
    return sorted({*low, *(number // t for t in low)})


def choose(chip: Chip, blocks: tuple[int, int, int], cores: int, c_bytes: int = 2) -> Tiling:
    """A tiling without a search: of those that fit, the one that moves the least.

    Tiles have 1, 2, 4, … blocks, or all there are. First come the blocks of the busiest core, then
    two control flows rather than one, bytes from global memory, bytes to L0A and L0B (half as
    fast), and the number of tiles.

    Raises
    ------
    ValueError
        If not even the smallest tiles fit.
    """
    plan(chip, blocks, Tiling(*blocks, 1), cores, c_bytes)  # the smallest tiles there are
    best = None
    counts = [sorted({-(-b >> s) for s in range(b.bit_length() + 1)}) for b in blocks]
    for m_tiles, k_tiles, n_tiles, b_num in product(*counts, (1, 2)):
        tiling = Tiling(m_tiles, k_tiles, n_tiles, b_num)
        try:
            p = plan(chip, blocks, tiling, cores, c_bytes)
        except ValueError:
            continue
        rows, columns, down, right = busiest(p)
        read = rows * (1 if p.keep_a else right) + columns * (1 if p.keep_b else down)
        key = (rows * columns, b_num == 1, read, rows * right + 2 * columns * down, tiling)
        if best is None or key < best[0]:
            best = key, tiling
    assert best is not None  # the smallest tiles are among them
    return best[1]


def busiest(p: Plan) -> tuple[int, int, int, int]:
    """Of the first core, which has the most: rows and columns in blocks, then in tiles."""
    i0, i1, j0, j1 = p.across[0]
    return p.m.bound(i1) - p.m.bound(i0), p.n.bound(j1) - p.n.bound(j0), i1 - i0, j1 - j0

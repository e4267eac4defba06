"""The division of a product into tiles and among cores, and the choice of what stays in L1.

References
----------
Tang 2024, Alg. 3: mTiles, kTiles, nTiles and bNum, the number of control flows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import isqrt, prod

from vitruvian.common.validate import ceil_div, one_of
from vitruvian.sim.davinci import Chip
from vitruvian.sim.kernels.kernel import matrix_kind

#: For each dtype of the operands: terms of a block, dtype in L0C, and the possible dtypes of C.
DTYPES: dict[str, tuple[int, str, tuple[str, ...]]] = {
    "fp16": (16, "fp32", ("fp16", "fp32")),
    "int8": (32, "int32", ("int32",)),
    "bf16": (16, "fp32", ("fp32",)),
    "fp32": (8, "fp32", ("fp32",)),
    "tf32": (8, "fp32", ("fp32",)),
    "fp8e4m3": (32, "fp32", ("fp32",)),
    "fp8e5m2": (32, "fp32", ("fp32",)),
    "fp64": (4, "fp64", ("fp64",)),
    "fp32c": (4, "fp32c", ("fp32c",)),
}

#: Bytes in a fractal of A or B.
FRACTAL = 512


@dataclass(frozen=True, order=True)
class Tiling:
    """The four parameters of Tang 2024, Alg. 3.

    Attributes
    ----------
    m_tiles, k_tiles, n_tiles : int
        Number of tiles of the whole product along each direction, from 1 to the number of blocks.
    b_num : int
        Number of control flows, which is that of the slots of L0A and L0B, 1 to 8.
    """

    m_tiles: int
    k_tiles: int
    n_tiles: int
    b_num: int = 2

    def __str__(self) -> str:
        return f"{self.m_tiles}×{self.k_tiles}×{self.n_tiles}, bNum {self.b_num}"


@dataclass(frozen=True)
class Cut:
    """The tiles along one direction, as equal as whole blocks allow; the longer ones come first.

    Attributes
    ----------
    blocks, tiles : int
        Number of blocks, and of the tiles into which they are cut.
    """

    blocks: int
    tiles: int

    def bound(self, tile: int) -> int:
        """Return the first block of a tile; for ``tile == tiles``, the number of blocks."""
        size, extra = divmod(self.blocks, self.tiles)
        return tile * size + min(tile, extra)

    def size(self, tile: int) -> int:
        """Return the number of blocks of a tile."""
        return self.bound(tile + 1) - self.bound(tile)

    @property
    def largest(self) -> int:
        """The number of blocks of the first tile."""
        return ceil_div(self.blocks, self.tiles)


@dataclass(frozen=True)
class MatmulPlan:
    """A tiling on the cores of a chip.

    Attributes
    ----------
    tiling : Tiling
    m, k, n : Cut
    across : tuple of (i0, i1, j0, j1)
        The tiles of each core: rows i0 … i1 − 1 and columns j0 … j1 − 1.
    keep_a : bool
        If True, a row of tiles of A stays in L1 until the next row; if False, tiles are loaded
        again each time, through b_num slots.
    keep_b : bool
        If True, a core's whole part of B stays in L1; if False, as for A.
    c_slots : int
        Number of slots for tiles of C in L0C and in UB, 1 or 2.
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
    """Return the number of blocks along each direction: 16 × 16, and 32 bytes of K.

    Parameters
    ----------
    m, k, n : int
        Sizes in elements.
    dtype : str
        The dtype of the operands.

    Raises
    ------
    ValueError
        If a size is below 1, or the dtype is not in ``DTYPES``.
    """
    one_of("dtype", dtype, DTYPES)
    for name, size in (("M", m), ("K", k), ("N", n)):
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(f"{name} must be an integer of 1 or more, not {size!r}")
    return ceil_div(m, 16), ceil_div(k, DTYPES[dtype][0]), ceil_div(n, 16)


def plan(
    chip: Chip, blocks: tuple[int, int, int], tiling: Tiling, cores: int, c_bytes: int = 2
) -> MatmulPlan:
    """Distribute the tiles among cores, and choose what stays in L1.

    Parameters
    ----------
    chip : Chip
        A chip with a Cube.
    blocks : (int, int, int)
        See ``blocks_of``.
    c_bytes : int
        The bytes of an element of C.

    Raises
    ------
    ValueError
        If the chip has no such cores, a number is out of range, or the tiles do not fit; the
        message then names the memory.
    """
    kind = matrix_kind(chip)
    if isinstance(cores, bool) or not isinstance(cores, int) or not 1 <= cores <= kind.count:
        raise ValueError(f"cores must be 1 … {kind.count}, not {cores!r}")
    # Each of the b_num control flows of Alg. 3 has a flag register of its own.
    b_num_limit = min(8, chip.event_registers)
    if not 1 <= tiling.b_num <= b_num_limit:
        raise ValueError(f"bNum must be 1 … {b_num_limit}, not {tiling.b_num!r}")
    names = ("mTiles", "kTiles", "nTiles")
    counts = (tiling.m_tiles, tiling.k_tiles, tiling.n_tiles)
    for name, tiles, limit in zip(names, counts, blocks, strict=True):
        if not 1 <= tiles <= limit:
            raise ValueError(f"{name} must be 1 … {limit}, the number of blocks, not {tiles!r}")
    m, k, n = (Cut(b, t) for b, t in zip(blocks, counts, strict=True))
    size = {name: buffer.nbytes for name, buffer in kind.buffers.items()}
    a, b = m.largest * k.largest * FRACTAL, k.largest * n.largest * FRACTAL
    # Elements of a tile of C: L0C has four or eight bytes for each, and UB those of the result.
    c, sum_bytes = m.largest * n.largest * 256, max(4, c_bytes)
    # Cube cores without the vector unit have no UB; FIX moves C out.
    outs = [("UB", c * c_bytes, "a tile of C")] if "UB" in size else []
    for memory, need, contents in (
        ("L0A", a * tiling.b_num, f"{tiling.b_num} tiles of A"),
        ("L0B", b * tiling.b_num, f"{tiling.b_num} tiles of B"),
        ("L0C", c * sum_bytes, "a tile of C"),
        *outs,
    ):
        if need > size[memory]:
            raise ValueError(
                f"{contents} must fit the {size[memory]} bytes of {memory}, "
                f"not take {need}: {tiling}"
            )
    # Two tiles of C let V empty one while the Cube fills the other.
    rooms = [("L0C", sum_bytes), *(("UB", c_bytes) for _ in outs)]
    twice = tiling.b_num > 1 and all(2 * c * each <= size[name] for name, each in rooms)
    across = _deal(m, n, cores)
    keep = _keep(m, k, n, across, tiling.b_num, size["L1"])
    if keep is None:
        raise ValueError(f"{tiling.b_num} tiles of A and B must fit the {size['L1']} bytes of L1")
    return MatmulPlan(tiling, m, k, n, across, *keep, 2 if twice else 1)


def _deal(m: Cut, n: Cut, cores: int) -> tuple[tuple[int, int, int, int], ...]:
    """Choose the grid of cores that leaves the busiest core the fewest blocks of C.

    If several grids do, choose one in which this core reads the fewest blocks of A and B.
    """
    best = None
    for down in range(1, cores + 1):
        right = cores // down
        # Cores beyond the number of tiles stay idle.
        if down > m.tiles or right > n.tiles:
            right, down = min(right, n.tiles), min(down, m.tiles)
        rows, columns = Cut(m.tiles, down), Cut(n.tiles, right)
        # The first core has the most blocks, because ``Cut`` puts the longer parts first.
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
    """Choose what stays in L1: of the choices that fit, the one that reads the fewest bytes.

    Return (keep_a, keep_b), or None if not even the slots fit.
    """
    i0, i1, j0, j1 = across[0]
    rows, columns = m.bound(i1) - m.bound(i0), n.bound(j1) - n.bound(j0)
    panel, part = m.largest * k.blocks * FRACTAL, k.blocks * columns * FRACTAL
    ring_a = slots * m.largest * k.largest * FRACTAL
    ring_b = slots * k.largest * n.largest * FRACTAL
    choices = []
    for keep_a, keep_b in product((True, False), repeat=2):
        if keep_a and k.tiles < slots:
            continue  # the next row could overwrite a tile before it has been read
        room = (panel if keep_a else ring_a) + (part if keep_b else ring_b)
        if room <= l1:
            read = rows * (1 if keep_a else j1 - j0) + columns * (1 if keep_b else i1 - i0)
            choices.append((read, room, keep_a, keep_b))
    return min(choices)[2:] if choices else None


def feasible(
    chip: Chip,
    blocks: tuple[int, int, int],
    cores: int,
    *,
    c_bytes: int = 2,
    any_integer: bool = False,
    b_nums: tuple[int, ...] | None = None,
) -> Iterator[Tiling]:
    """Yield every tiling that fits, in ascending order.

    Parameters
    ----------
    chip, blocks, cores, c_bytes : Chip, (int, int, int), int, int
        As in ``plan``.
    any_integer : bool
        If True, try all numbers of tiles and 1 to 8 control flows. If False, try the divisors of
        the numbers of blocks, and 1, 2, 4 or 8 control flows.
    b_nums : tuple of int, optional
        The numbers of control flows to try instead.
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
    """Return the number of tilings that ``feasible`` tries."""
    return prod(map(len, _candidates(blocks, any_integer, b_nums)))


def _candidates(
    blocks: tuple[int, int, int], any_integer: bool, b_nums: tuple[int, ...] | None
) -> list[Sequence[int]]:
    """Return the numbers of tiles to try along each direction, and of control flows."""
    if b_nums is None:
        b_nums = tuple(range(1, 9)) if any_integer else (1, 2, 4, 8)
    return [*(range(1, b + 1) if any_integer else _divisors(b) for b in blocks), b_nums]


def _divisors(number: int) -> list[int]:
    small = [t for t in range(1, isqrt(number) + 1) if number % t == 0]
    return sorted({*small, *(number // t for t in small)})


def choose(chip: Chip, blocks: tuple[int, int, int], cores: int, c_bytes: int = 2) -> Tiling:
    """Choose a tiling without a search: of those that fit, the one that moves the fewest bytes.

    Tiles of 1, 2, 4, … or all blocks are tried. The criteria, in order, are the number of blocks on
    the busiest core, two control flows rather than one, the bytes from global memory, the bytes to
    L0A and L0B (those to L0B count twice, as that path is half as fast), and the number of tiles.

    Parameters
    ----------
    chip, blocks, cores, c_bytes : Chip, (int, int, int), int, int
        As in ``plan``.

    Raises
    ------
    ValueError
        If not even the smallest tiles fit.
    """
    # If not even the smallest tiles fit, this raises with the reason.
    plan(chip, blocks, Tiling(*blocks, 1), cores, c_bytes)
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
    assert best is not None  # the smallest tiles are among those tried
    return best[1]


def busiest(p: MatmulPlan) -> tuple[int, int, int, int]:
    """Return the rows and columns of the busiest (first) core in blocks, and both in tiles."""
    i0, i1, j0, j1 = p.across[0]
    return p.m.bound(i1) - p.m.bound(i0), p.n.bound(j1) - p.n.bound(j0), i1 - i0, j1 - j0

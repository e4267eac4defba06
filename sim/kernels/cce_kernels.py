"""Kernels in CCE C: the files in ``text/``, with their sizes and expected results."""

from pathlib import Path
from typing import Any

import numpy as np

from vitruvian.golden import vector
from vitruvian.sim.davinci import Chip
from vitruvian.sim.davinci.cce import build, read_file
from vitruvian.sim.kernels import matmul
from vitruvian.sim.kernels.kernel import Kernel, KernelInstance, SimulationCost, complete_kind
from vitruvian.sim.kernels.layout import pack_a, pack_b, unpack_c

_TEXT = Path(__file__).parent / "text"


def _read(
    file: str, chip: Chip, cores: int | None, core_limit: int, arguments: dict[str, Any], data: bool
):
    """Read a kernel and build its program on the cores of a chip that have a vector unit.

    Softmax branches on values that it computes, so it is executed while it is read; the other
    kernels are not.

    Parameters
    ----------
    file : str
        Name of the file in ``text/``.
    cores : int or None
        By default, all cores, but not more than ``core_limit``.
    core_limit : int
        The number of cores that have work.
    arguments : dict of str to value
        The arguments of the kernel.
    data : bool
        If False, drop the data from the program.

    Raises
    ------
    ValueError
        If the chip has no such cores, or fewer than ``cores``.
    """
    kinds = [kind.name for kind in chip.kinds.values() if "UB" in kind.buffers]
    if not kinds:
        raise ValueError(f"chip must have cores with a vector unit, not {chip.name}")
    kind = chip.kind(kinds[0])
    cores = min(kind.count, core_limit) if cores is None else cores
    if not 1 <= cores <= kind.count:
        raise ValueError(f"cores must be 1 … {kind.count}, not {cores!r}")
    kernel = read_file(_TEXT / file)
    execute = file == "softmax.cce"
    program, _ = build(kernel, chip, arguments, blocks=cores, kind=kind.name, execute=execute)
    if not data:
        program.data.clear()
    return program


def _normal(seed: int | None, scale: float, size: int) -> list[np.ndarray]:
    """Return two operands; without a seed they are zeros, which take no memory until written."""
    if seed is None:
        return [np.zeros(size, np.float16) for _ in "ab"]
    rng = np.random.default_rng(seed)
    return [rng.normal(0, scale, size).astype(np.float16) for _ in "ab"]


def _scale_add(
    size: tuple[int, ...], chip: Chip, cores: int | None, seed: int | None
) -> KernelInstance:
    tiles, scale = size[0], 0.75
    a, b = _normal(seed, 100, tiles * 2048)
    arguments = {"a": a, "b": b, "y": np.zeros_like(a), "scale": scale, "tiles": tiles}
    program = _read("scale_add.cce", chip, cores, tiles, arguments, seed is not None)

    def golden() -> np.ndarray:
        return vector.relu(vector.add(vector.mul(a, np.full_like(a, scale)), b))

    return KernelInstance(program, {"y": golden})


def _scale_add_needs(size: tuple[int, ...], chip: Chip, cores: int | None) -> SimulationCost:
    return SimulationCost(size[0] * 16 + 100, 24 * 2 * 2048 * size[0])


def _softmax(
    size: tuple[int, ...], chip: Chip, cores: int | None, seed: int | None
) -> KernelInstance:
    rows, n = size
    # The kernel processes a row in one repeat, which has 128 lanes of FP16.
    if n > 128 or n % 16:
        raise ValueError(f"columns must be a multiple of 16, at most 128, not {n}")
    x, _ = _normal(seed, 2, rows * n)
    arguments = {"x": x, "y": np.zeros(rows * n, np.float16), "rows": rows, "n": n}
    program = _read("softmax.cce", chip, cores, rows, arguments, seed is not None)

    def golden() -> np.ndarray:
        return np.stack([_softmax_golden(row) for row in x.reshape(rows, n)]).ravel()

    return KernelInstance(program, {"y": golden})


def _softmax_needs(size: tuple[int, ...], chip: Chip, cores: int | None) -> SimulationCost:
    return SimulationCost(size[0] * 26 + 100, 24 * size[0] * size[1])


def _softmax_golden(row: np.ndarray) -> np.ndarray:
    """Compute softmax like the kernel: exp(row − max), times the reciprocal of the sum."""
    powers = vector.exp(vector.add(row, np.full_like(row, -row.max())))
    # The device adds a tree of 128 lanes, of which the last ones are disabled in a short row.
    lanes = np.zeros(128, np.float16)
    lanes[: len(row)] = powers
    total = np.float32(vector.sum_tree(lanes, np.arange(128) < len(row)))
    scale = np.float16(np.float32(1) / total)
    return vector.mul(powers, np.full_like(powers, scale))


def _cube(size: tuple[int, ...], chip: Chip, cores: int | None, seed: int | None) -> KernelInstance:
    m, k, n = size
    # A and B are loaded at once into L0A and L0B, which have 64 KiB each.
    if m % 16 or k % 16 or n % 16 or m * k > 32768 or k * n > 32768:
        shown = "×".join(map(str, size))
        raise ValueError(f"M, K, N must be multiples of 16, M·K and K·N up to 32768, not {shown}")
    complete_kind(chip)
    if seed is None:
        data = np.zeros((m, k), np.float16), np.zeros((k, n), np.float16)
    else:
        data = matmul.operands(m, k, n, seed=seed)
    arguments = {"a": pack_a(data[0]).ravel(), "b": pack_b(data[1]).ravel()}
    arguments |= {"c": np.zeros(m * n, np.float16), "m": m, "k": k, "n": n}
    program = _read("cube.cce", chip, cores, m // 16, arguments, seed is not None)

    def matrix(c: np.ndarray) -> np.ndarray:
        return unpack_c(c.reshape(n // 16, m // 16, 16, 16), m, n)

    return KernelInstance(program, {"c": lambda: matmul.expected(*data)}, {"c": matrix})


def _cube_needs(size: tuple[int, ...], chip: Chip, cores: int | None) -> SimulationCost:
    m, k, n = size
    return SimulationCost(
        16 * (chip.kind().count if cores is None else cores),
        16 * (m * k + k * n + m * n),
        m * k * n,
    )


KERNELS = (
    Kernel(
        "cce-scale-add",
        "relu(0.75·a + b), CCE C",
        ("tiles of 2048",),
        (8,),
        _scale_add,
        _scale_add_needs,
        "scale_add.cce",
    ),
    Kernel(
        "cce-softmax",
        "over rows, CCE C",
        ("rows", "columns"),
        (8, 128),
        _softmax,
        _softmax_needs,
        "softmax.cce",
    ),
    Kernel(
        "cce-cube",
        "one product, CCE C",
        ("M", "K", "N"),
        (64, 96, 80),
        _cube,
        _cube_needs,
        "cube.cce",
    ),
)

"""The common interface of the kernels: a program, and the results that it must compute."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from vitruvian.common.collector import paused_collector
from vitruvian.sim.davinci import Chip, Core, Program, Unit, load_chip
from vitruvian.sim.davinci.checks.hazards import PIPELINED
from vitruvian.sim.davinci.chip.file import chip_names
from vitruvian.sim.davinci.chip.model import CoreKind


@dataclass(frozen=True)
class SimulationCost:
    """The cost of simulating a kernel: an upper bound, which is close for large sizes.

    Attributes
    ----------
    instructions : int
        Number of instructions; each takes two kilobytes and about ten microseconds.
    nbytes : int
        Bytes of the data while the kernel is built; 0 if only times are computed.
    products : int
        Multiply-accumulates of the Cube.
    """

    instructions: int
    nbytes: int = 0
    products: int = 0

    def check(self, name: str, limits: "SimulationCost") -> None:
        """Raise ``ValueError`` if a cost of the kernel ``name`` exceeds that of ``limits``."""
        for quantity, need, allowed in (
            ("instructions", self.instructions, limits.instructions),
            ("bytes of data", self.nbytes, limits.nbytes),
            ("multiply-accumulates", self.products, limits.products),
        ):
            if need > allowed:
                raise ValueError(
                    f"{quantity} of {name} must be at most {allowed:,}, not about {need:,}; "
                    "take a smaller size"
                )


#: The largest cost that ``Kernel.build`` accepts: some minutes and four gigabytes.
LIMITS = SimulationCost(instructions=2_000_000, nbytes=1 << 32, products=1 << 36)


@dataclass(frozen=True, eq=False)
class KernelInstance:
    """A kernel built for given sizes.

    Attributes
    ----------
    program : Program
    expected : mapping of str to ndarray or callable
        The final contents of tensors by the golden models, or functions that compute them on
        demand. They must not be used if the program has no data.
    views : mapping of str to callable
        For each tensor whose layout in memory differs from that of ``expected``, a function that
        converts it.
    """

    program: Program
    expected: Mapping[str, np.ndarray | Callable[[], np.ndarray]]
    views: Mapping[str, Callable[[np.ndarray], np.ndarray]] = field(default_factory=dict)

    def golden(self, name: str) -> np.ndarray:
        """Return the expected contents of a tensor."""
        expected = self.expected[name]
        return expected() if callable(expected) else expected

    def compare(self, outputs: Mapping[str, np.ndarray]) -> tuple[int, int]:
        """Compare tensors with the expected contents.

        Returns
        -------
        count, wrong : int
            The number of elements, and of those that differ in any bit.

        Raises
        ------
        ValueError
            If a tensor has the wrong shape or dtype.
        """
        count = wrong = 0
        for name in self.expected:
            expected = self.golden(name)
            result = self.views.get(name, lambda x: x)(outputs[name])
            if result.shape != expected.shape or result.dtype != expected.dtype:
                shown = f"{result.shape} of {result.dtype}"
                raise ValueError(
                    f"{name} must be {expected.shape} of {expected.dtype}, not {shown}"
                )
            # Codes are compared, so that a NaN equals itself and the two zeros differ.
            codes = f"u{expected.dtype.itemsize}"
            wrong += int((result.view(codes) != expected.view(codes)).sum())
            count += expected.size
        return count, wrong


@dataclass(frozen=True)
class Kernel:
    """A kernel that can be built for any size.

    Attributes
    ----------
    name, title : str
    sizes : tuple of str
        Names of the numbers of a size.
    default : tuple of int
        The default size.
    make : callable
        Builds a ``KernelInstance`` from a size, a chip, a number of cores (None for all) and a seed
        (None for a program without data); and from a tiling, if the kernel has one.
    needs : callable
        Returns the ``SimulationCost`` for a size, a chip and a number of cores; and for a tiling,
        if the kernel has one.
    text : str
        The file of a kernel in CCE C, otherwise empty.
    tiling : tuple of str
        Names of the numbers of a tiling; empty if the kernel has none.
    """

    name: str
    title: str
    sizes: tuple[str, ...]
    default: tuple[int, ...]
    make: Callable[..., KernelInstance]
    needs: Callable[..., SimulationCost]
    text: str = ""
    tiling: tuple[str, ...] = ()

    def build(
        self,
        size: tuple[int, ...] | None = None,
        *,
        chip: Chip,
        cores: int | None = None,
        seed: int = 0,
        tiling: tuple[int, ...] | None = None,
        data: bool = True,
        limits: SimulationCost = LIMITS,
    ) -> KernelInstance:
        """Build the kernel for a size.

        Parameters
        ----------
        size : tuple of int, optional
            By default ``default``.
        cores : int, optional
            By default all cores of the chip.
        seed : int
            The seed of the random operands.
        tiling : tuple of int, optional
            By default the kernel chooses a tiling.
        data : bool
            If False, build a program without data, whose times alone can be computed.
        limits : SimulationCost
            The largest cost allowed.

        Raises
        ------
        ValueError
            If the size, the tiling or the number of cores is invalid, or if the cost of the
            simulation exceeds ``limits``.
        """
        size = self.default if size is None else tuple(size)
        if len(size) != len(self.sizes) or min(size) < 1:
            names = "×".join(self.sizes)
            shown = "×".join(map(str, size))
            raise ValueError(f"size of {self.name} must be {names}, each 1 or more, not {shown}")
        # The kernel checks the number again, for the kind of cores that it runs on.
        most_cores = max(kind.count for kind in chip.kinds.values())
        if cores is not None and not 1 <= cores <= most_cores:
            raise ValueError(f"cores must be 1 … {most_cores}, not {cores!r}")
        args = [size, chip, cores]
        if tiling is not None:
            if not self.tiling:
                raise ValueError(f"tiling must be None for {self.name}, which has no tiling")
            if len(tiling) != len(self.tiling) or min(tiling) < 1:
                names, shown = ",".join(self.tiling), ",".join(map(str, tiling))
                raise ValueError(
                    f"tiling of {self.name} must be {names}, each 1 or more, not {shown}"
                )
        more = () if tiling is None else (tiling,)
        needs = self.needs(*args, *more)
        shown = f"{self.name} {'×'.join(map(str, size))}"
        # A program without data computes no products and needs no memory for operands.
        (needs if data else SimulationCost(needs.instructions)).check(shown, limits)
        with paused_collector():
            return self.make(*args, seed if data else None, *more)


def vector_kind(chip: Chip) -> CoreKind:
    """Return the first kind of core of a chip with the vector unit and its buffer.

    Raises
    ------
    ValueError
        If the chip has no such cores.
    """
    return _first_kind(chip, Unit.V, {"UB"}, "a vector unit and its buffer")


def matrix_kind(chip: Chip) -> CoreKind:
    """Return the first kind of core of a chip with the Cube and its buffers.

    Raises
    ------
    ValueError
        If the chip has no such cores.
    """
    return _first_kind(chip, Unit.M, {"L1", "L0A", "L0B", "L0C"}, "a Cube and its buffers")


def _first_kind(chip: Chip, unit: Unit, buffers: set[str], shown: str) -> CoreKind:
    for kind in chip.kinds.values():
        if unit in kind.units and kind.buffers.keys() >= buffers:
            return kind
    raise ValueError(f"chip must have cores with {shown}, not {chip.name}")


def is_split(chip: Chip) -> bool:
    """Return True if a chip has the Cube and the vector unit in cores of their own."""
    return not _is_complete(chip.kind())


def complete_kind(chip: Chip) -> CoreKind:
    """Return the first kind of core of a chip, after checking that it has all units.

    Raises
    ------
    ValueError
        If the chip has separate Cube and vector cores, as the Ascend 910B: these kernels exchange
        data between the Cube and the vector unit through the buffers of one core. The message names
        chips that are allowed.
    """
    kind = chip.kind()
    if _is_complete(kind):
        return kind
    others = [name for name in chip_names() if _is_complete(load_chip(name).kind())]
    raise ValueError(
        f"chip must have cores with all units, not {chip.name} with separate "
        f"{' and '.join(chip.kinds)} cores; {', '.join(others)} have them"
    )


def _is_complete(kind: CoreKind) -> bool:
    return kind.buffers.keys() >= {"L1", "L0A", "L0B", "L0C", "UB"}


def cores_of(program: Program, cores: int | None) -> list[Core]:
    """Return the first cores of a chip, or all of them if ``cores`` is None.

    Raises
    ------
    ValueError
        If the chip has separate Cube and vector cores, or fewer than ``cores`` cores.
    """
    return _cores(program, complete_kind(program.chip), cores)


def vector_cores(program: Program, cores: int | None) -> list[Core]:
    """Return the first cores of ``vector_kind``, or all of them if ``cores`` is None.

    Raises
    ------
    ValueError
        If the chip has fewer than ``cores`` such cores.
    """
    return _cores(program, vector_kind(program.chip), cores)


def matrix_cores(program: Program, cores: int | None) -> list[Core]:
    """Return the first cores of ``matrix_kind``, as ``vector_cores`` does."""
    return _cores(program, matrix_kind(program.chip), cores)


def _cores(program: Program, kind: CoreKind, cores: int | None) -> list[Core]:
    cores = kind.count if cores is None else cores
    if not 1 <= cores <= kind.count:
        raise ValueError(f"cores must be 1 … {kind.count}, not {cores!r}")
    return [program.core(index, kind.name) for index in range(cores)]


def products_need_barrier(rows: int, columns: int) -> bool:
    """Return True if products on one C of so few fractals need a barrier of M between them."""
    return rows * columns < PIPELINED

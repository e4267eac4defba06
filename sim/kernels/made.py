"""What every kernel of this package gives: a program, and what it must compute."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from vitruvian.sim.davinci import Chip, Core, Program, Unit

__all__ = ["MOST", "Kernel", "Made", "Needs", "Ring", "cores_of", "ordered"]


@dataclass(frozen=True)
class Needs:
    """What a kernel takes to simulate: never too little, and about right for large sizes.

    Attributes
    ----------
    instructions : int
        Each takes two kilobytes and some ten microseconds.
    nbytes : int
        Bytes of its data while they are made; 0 if only times are wanted.
    products : int
        Multiply-accumulates of the Cube.
    """

    instructions: int
    nbytes: int = 0
    products: int = 0

    def check(self, name: str, most: "Needs") -> None:
        """Raise ValueError if any of them is more than the same of ``most``."""
        for what, need, allowed in (
            ("instructions", self.instructions, most.instructions),
            ("bytes of data", self.nbytes, most.nbytes),
            ("multiply-accumulates", self.products, most.products),
        ):
            if need > allowed:
                raise ValueError(
                    f"{what} of {name} must be at most {allowed:,}, not about {need:,}; "
                    "take a smaller size"
                )


#: What `Kernel.build` makes at most: some minutes and four gigabytes.
MOST = Needs(instructions=2_000_000, nbytes=1 << 32, products=1 << 36)


@dataclass(frozen=True, eq=False)
class Made:
    """A kernel for given sizes.

    Attributes
    ----------
    program : Program
    wanted : mapping of str to ndarray or callable
        What tensors must hold at the end, by golden; or what computes that when it is asked for.
        Not to be asked for if the program has no data.
    views : mapping of str to callable
        From a tensor as it is in memory to the form of ``wanted``, where they differ.
    """

    program: Program
    wanted: Mapping[str, np.ndarray | Callable[[], np.ndarray]]
    views: Mapping[str, Callable[[np.ndarray], np.ndarray]] = field(default_factory=dict)

    def golden(self, name: str) -> np.ndarray:
        """What a tensor must hold."""
        wanted = self.wanted[name]
        return wanted() if callable(wanted) else wanted

    def compare(self, outputs: Mapping[str, np.ndarray]) -> tuple[int, int]:
        """Elements compared, and how many of them differ in any bit."""
        count = wrong = 0
        for name in self.wanted:
            wanted = self.golden(name)
            found = self.views.get(name, lambda x: x)(outputs[name])
            if found.shape != wanted.shape or found.dtype != wanted.dtype:
                shown = f"{found.shape} of {found.dtype}"
                raise ValueError(f"{name} must be {wanted.shape} of {wanted.dtype}, not {shown}")
            codes = f"u{wanted.dtype.itemsize}"
            wrong += int((found.view(codes) != wanted.view(codes)).sum())
            count += wanted.size
        return count, wrong


@dataclass(frozen=True)
class Kernel:
    """A kernel by name.

    Attributes
    ----------
    name, title : str
    sizes : tuple of str
        What the numbers of a size are.
    default : tuple of int
    make : callable
        From a size, a chip, a number of cores (None for all) and a seed to `Made`, without data if
        the seed is None; and from a tiling as well, if there is such a thing.
    needs : callable
        From a size, a chip and a number of cores to `Needs`; and from a tiling as well.
    text : str
        File of its CCE C, of those that are read from there.
    tiling : tuple of str
        What the numbers of a tiling are.
    """

    name: str
    title: str
    sizes: tuple[str, ...]
    default: tuple[int, ...]
    make: Callable[..., Made]
    needs: Callable[..., Needs]
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
        most: Needs = MOST,
    ) -> Made:
        """The kernel for a size, its default without one; tiled as it sees fit without a tiling.

        Without ``data`` its times alone can be computed.

        Raises
        ------
        ValueError
            For sizes that are not as many as ``sizes``, or not positive, or that need more than
            ``most``; and for tilings in the same way.
        """
        size = self.default if size is None else tuple(size)
        if len(size) != len(self.sizes) or min(size) < 1:
            names = "×".join(self.sizes)
            shown = "×".join(map(str, size))
            raise ValueError(f"size of {self.name} must be {names}, each 1 or more, not {shown}")
        most_cores = max(kind.count for kind in chip.kinds.values())
        if cores is not None and not 1 <= cores <= most_cores:
            raise ValueError(f"cores must be 1 … {most_cores}, not {cores!r}")
        how = [size, chip, cores]
        if tiling is not None:
            if not self.tiling:
                raise ValueError(f"tiling must be of a kernel that has one, not of {self.name}")
            if len(tiling) != len(self.tiling) or min(tiling) < 1:
                names, shown = ",".join(self.tiling), ",".join(map(str, tiling))
                raise ValueError(
                    f"tiling of {self.name} must be {names}, each 1 or more, not {shown}"
                )
        more = () if tiling is None else (tiling,)
        needs = self.needs(*how, *more)
        shown = f"{self.name} {'×'.join(map(str, size))}"
        (needs if data else Needs(needs.instructions)).check(shown, most)
        return self.make(*how, seed if data else None, *more)


def cores_of(program: Program, cores: int | None) -> list[Core]:
    """The first cores of a chip whose cores have all units; all of them without a number.

    Raises
    ------
    ValueError
        For another chip, or a number that it does not have.
    """
    kind = program.chip.kind()
    if "UB" not in kind.buffers or "L1" not in kind.buffers:
        raise ValueError(f"chip must have cores with all units, not {program.chip.name}")
    cores = kind.count if cores is None else cores
    if not 1 <= cores <= kind.count:
        raise ValueError(f"cores must be 1 … {kind.count}, not {cores!r}")
    return [program.core(index) for index in range(cores)]


def ordered(core: Core, source: Unit, target: Unit, register: int = 0) -> None:
    """Let ``target`` wait here for all that ``source`` has done; once for each register."""
    core.set_flag(source, target, register)
    core.wait_flag(source, target, register)


class Ring:
    """Slots that go from a unit to the next and come back free.

    Parameters
    ----------
    core : Core
    source, target : Unit
    slots : int
    """

    def __init__(self, core: Core, source: Unit, target: Unit, slots: int = 2) -> None:
        self.core, self.source, self.target, self.slots = core, source, target, slots
        for slot in range(slots):
            core.set_flag(target, source, slot)

    def begin_write(self, slot: int) -> None:
        """Wait until a slot is free."""
        self.core.wait_flag(self.target, self.source, slot)

    def end_write(self, slot: int) -> None:
        """Say that it is full."""
        self.core.set_flag(self.source, self.target, slot)

    def begin_read(self, slot: int) -> None:
        """Wait until a slot is full."""
        self.core.wait_flag(self.source, self.target, slot)

    def end_read(self, slot: int) -> None:
        """Say that it is free."""
        self.core.set_flag(self.target, self.source, slot)

    def close(self) -> None:
        """Wait for all slots to be free, so that no flag stays set."""
        for slot in range(self.slots):
            self.core.wait_flag(self.target, self.source, slot)

"""The interface of a case study: an operator in steps, each of which changes one thing."""

from collections.abc import Callable
from dataclasses import dataclass

from vitruvian.sim.davinci import Chip, Program, load_chip
from vitruvian.sim.kernels.kernel import LIMITS, KernelInstance, SimulationCost

#: Components whose utilisation a case study follows, in the words of the paper (§4.1).
COMPONENTS = ("MTE-GM", "MTE-L1", "MTE-UB", "Vector", "Cube")

#: A function that builds a step: (size, name of the step, empty program, seed or None).
Maker = Callable[[tuple[int, ...], str, Program, int | None], KernelInstance]


@dataclass(frozen=True)
class CaseStep:
    """A version of an operator.

    Attributes
    ----------
    name : str
        "baseline", or the paper's abbreviation of the strategy that the step applies (Table 1).
    change : str
        One sentence that states how the step differs from the one before it.
    """

    name: str
    change: str


@dataclass(frozen=True)
class CaseStudy:
    """An operator in several versions, from the slowest to the fastest.

    Attributes
    ----------
    name, title : str
    sizes : tuple of str
        Names of the numbers of a size.
    size : tuple of int
        The default size.
    chip : str
        The name of the default chip.
    metric : str
        The component whose utilisation the paper follows, one of ``COMPONENTS``.
    steps : tuple of CaseStep
        The first one is the baseline.
    make : callable
        Builds a step, see ``Maker``.
    section : str
        The place in the paper.
    needs : callable
        Returns an upper bound of the ``SimulationCost`` of all steps for a size.

    References
    ----------
    Zhou et al. 2025, §5 and Table 1.
    """

    name: str
    title: str
    sizes: tuple[str, ...]
    size: tuple[int, ...]
    chip: str
    metric: str
    steps: tuple[CaseStep, ...]
    make: Maker
    section: str
    needs: Callable[[tuple[int, ...]], SimulationCost]

    def step(self, step: int | str) -> CaseStep:
        """Return a step by its number, from 0, or by its name.

        Raises
        ------
        ValueError
            If the case has no such step.
        """
        names = [s.name for s in self.steps]
        if isinstance(step, str) and step in names:
            return self.steps[names.index(step)]
        if isinstance(step, int) and not isinstance(step, bool) and 0 <= step < len(names):
            return self.steps[step]
        shown = f"0 … {len(names) - 1} or one of {', '.join(names)}"
        raise ValueError(f"step of {self.name} must be {shown}, not {step!r}")

    def build(
        self,
        step: int | str,
        chip: Chip | str | None = None,
        *,
        seed: int | None = 0,
        size: tuple[int, ...] | None = None,
    ) -> KernelInstance:
        """Build a step for the first core of a chip.

        Parameters
        ----------
        step : int or str
            The number of a step, from 0, or its name.
        chip : Chip or str, optional
            By default ``chip``.
        seed : int or None
            The seed of the random operands; None for a program without data.
        size : tuple of int, optional
            By default ``size``.

        Raises
        ------
        ValueError
            If the case has no such step, the size is invalid, or the cost of the simulation
            exceeds ``kernel.LIMITS``.
        """
        chosen = self.step(step)
        size = self.size if size is None else tuple(size)
        if len(size) != len(self.sizes) or min(size) < 1:
            names, shown = "×".join(self.sizes), "×".join(map(str, size))
            raise ValueError(f"size of {self.name} must be {names}, each 1 or more, not {shown}")
        # A program without data needs no memory for operands.
        needs = (
            self.needs(size) if seed is not None else SimulationCost(self.needs(size).instructions)
        )
        needs.check(f"{self.name} {'×'.join(map(str, size))}", LIMITS)
        chip = self.chip if chip is None else chip
        chip = load_chip(chip) if isinstance(chip, str) else chip
        title = f"{self.name} {'×'.join(map(str, size))} {chosen.name}"
        return self.make(size, chosen.name, Program(chip, title), seed)

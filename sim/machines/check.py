"""Comparison of golden and of RTL with sets of machines, several sets at a time."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from vitruvian.common.workers import Call, Workers
from vitruvian.sim.machines.samples import samples
from vitruvian.sim.machines.sets import Differences, MachineSet, compare_set, read_set

_DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
#: Folders of sets that may lie beside the repository.
FOLDERS = tuple(_DATA / name for name in ("machines", "silicon_fp8"))


@dataclass(frozen=True, kw_only=True)
class Source:
    """The origin of a set.

    Attributes
    ----------
    path : Path or None
        File of the set; None for a sample.
    sample : str
        Stem of the sample.
    """

    path: Path | None = None
    sample: str = ""

    def read(self) -> MachineSet:
        """Return the set."""
        if self.path is not None:
            return read_set(self.path)
        return samples()[self.sample]


@dataclass(frozen=True, kw_only=True)
class Checked:
    """The comparison of one set.

    Attributes
    ----------
    name, evidence : str
        Name of the set, and how the rule is known.
    zero_known : bool
        If False, the signs of zeros are not asserted.
    golden : Differences
    rtl : Differences or None
        None if no unit has the rule, or if RTL was not asked for.
    unit : str
        The class of the unit, or "".
    reason : str
        Why there is no unit, or "".
    """

    name: str
    evidence: str
    zero_known: bool
    golden: Differences
    rtl: Differences | None
    unit: str
    reason: str

    @property
    def failed(self) -> bool:
        """True if a result differs that is asserted."""
        sides = [self.golden] if self.rtl is None else [self.golden, self.rtl]
        return any(side.values or (self.zero_known and side.zero_signs) for side in sides)


def present() -> list[Source]:
    """Return the sets in ``FOLDERS``, or the samples of all makers if there are none."""
    paths = [path for folder in FOLDERS for path in sorted(folder.glob("*.npz"))]
    if paths:
        return [Source(path=path) for path in paths]
    return [Source(sample=stem) for stem in samples()]


def some_rows(data: MachineSet, rows: int | None) -> MachineSet:
    """Return at most ``rows`` rows of a set, at equal distances; None stands for all."""
    count = len(data.d)
    if rows is None or rows >= count:
        return data
    chosen = np.arange(rows) * count // rows
    arrays = {
        name: array[chosen]
        for name in ("a", "b", "c", "d", "scale_a", "scale_b")
        if (array := getattr(data, name)) is not None
    }
    return replace(data, **arrays)


def check_set(data: MachineSet, *, rtl: bool = True) -> Checked:
    """Compare golden, and RTL if a unit has the rule, with a set."""
    found, unit, reason = None, "", ""
    golden = compare_set(data)  # first, since it refuses what is no set
    if rtl:
        # Golden alone does without the RTL and its imports.
        from vitruvian.hdl.machines import NoUnit
        from vitruvian.sim.machines.rtl import compare_rtl, unit_of

        try:
            unit = unit_of(data.machine.rule).name
            found = compare_rtl(data)
        except NoUnit as error:
            reason = str(error)
    return Checked(
        name=data.name,
        evidence=data.machine.evidence.split(";")[0],
        zero_known=data.machine.zero_known,
        golden=golden,
        rtl=found,
        unit=unit,
        reason=reason,
    )


def check(
    sources: Sequence[Source], *, rows: int | None, rtl: bool, jobs: int
) -> Generator[tuple[int, Checked], None, None]:
    """Compare sets in several processes; yield position and outcome of each as it finishes.

    Raises
    ------
    UserError
        If a file is no set.
    ToolError
        If RTL is wanted, and Verilator or the C++ compiler is missing.
    """
    calls = (
        Call(key=n, function=_one, arguments=(source, rows, rtl))
        for n, source in enumerate(sources)
    )
    with Workers(min(jobs, len(sources))) as workers:
        for event in workers.run(calls):
            if event.kind == "done":
                yield event.key, event.value
            elif event.kind == "failed":
                raise event.value


def _one(source: Source, rows: int | None, rtl: bool) -> Checked:
    return check_set(some_rows(source.read(), rows), rtl=rtl)

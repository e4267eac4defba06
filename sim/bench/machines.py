"""RTL and golden against vectors of NVIDIA's matrix units, measured or from executed models.

The sets are not part of the project. They are looked for in ``../shared/data/machines`` and
``../shared/data/silicon_fp8`` and are rows of ``make sim`` where they are there. A set is
``<preset>_<instruction>_<inputs>_<output>.npz`` with codes ``a``, ``b`` (N, K) and ``c``, ``d``
(N,); it is left out if no preset has this instruction and these formats.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from vitruvian.golden.fp import FORMATS, PRESETS, DotSpec
from vitruvian.sim.bench.silicon import FOLDER, DataSet, run_golden, runs
from vitruvian.sim.verify.check import Check
from vitruvian.sim.verify.compare import Result

__all__ = ["FOLDERS", "checks", "load_set", "spec_of"]

#: Where sets are looked for: beside the repository.
FOLDERS = (FOLDER.parent / "machines", FOLDER.parent / "silicon_fp8")

#: The instructions that presets stand for; the fp8 of the last two is not `mma`'s.
_INSTRUCTIONS = ("mma", "wgmma", "tcgen05")


def spec_of(stem: str) -> DotSpec | None:
    """What the preset says of a set by its name; None if there is no such row."""
    machine, instruction, formats, output = (*stem.split("_"), "", "", "")[:4]
    names = [f"fp8{name}" if name in ("e4m3", "e5m2") else name for name in formats.split("x")]
    if machine not in PRESETS or instruction not in _INSTRUCTIONS or output not in FORMATS:
        return None
    if not all((name, output) in PRESETS[machine].combinations for name in names):
        return None
    return PRESETS[machine].spec(names[0], output, input_b=names[-1])


def load_set(path: Path) -> DataSet | None:
    """Read a set, or None if no preset has it."""
    spec = spec_of(path.stem)
    if spec is None:
        return None
    with np.load(path) as file:
        a, b, c, d = (np.asarray(file[name]) for name in "abcd")
    return DataSet(name=path.stem.replace("_", " "), spec=spec, a=a, b=b, c=c, d=d.astype(c.dtype))


def checks() -> Iterator[Check]:
    """Golden and RTL rows for every set of :data:`FOLDERS`; none when there are none."""
    for folder in FOLDERS:
        for path in sorted(folder.glob("*.npz")):
            data = load_set(path)
            if data is None:
                continue
            source = "measured" if folder.name == "silicon_fp8" else "executed model"
            for unit, run in runs(data):
                yield Check(
                    unit=unit,
                    configuration=f"{path.stem.replace('_', ' ')}, {source}",
                    run=partial(_row, path, run),
                    weight=1 if run is run_golden else 8,
                )


def _row(path: Path, run: Callable[[DataSet], Result], vectors: int, seed: int) -> Result:
    data = load_set(path)
    assert data is not None
    return run(data)

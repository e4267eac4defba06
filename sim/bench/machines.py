"""Comparison of RTL and golden with vectors of NVIDIA's matrix units.

The vectors were measured, or come from models that others have checked against the hardware. They
are not part of the project. If the folders ``../shared/data/machines`` and
``../shared/data/silicon_fp8`` exist, each data set in them is a row of ``make sim``. A data set is
a file ``<preset>_<instruction>_<inputs>_<output>.npz`` with the codes ``a`` and ``b`` (N, K) and
``c`` and ``d`` (N,). A set is ignored if no preset has this instruction and these formats.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from vitruvian.golden.fp import FORMATS, DotSpec
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.sim.bench.silicon import FOLDER, DataSet, run_golden, runs
from vitruvian.sim.verify.check import Check
from vitruvian.sim.verify.compare import Result

#: Folders of the data sets, beside the repository.
FOLDERS = (FOLDER.parent / "machines", FOLDER.parent / "silicon_fp8")

#: The instructions that the presets model. For fp8, the results of the last two differ from those
#: of ``mma``.
_INSTRUCTIONS = ("mma", "wgmma", "tcgen05")


def spec_of(stem: str) -> DotSpec | None:
    """Return the specification of a data set by its file name, or None if no preset has it."""
    machine, instruction, formats, output = (*stem.split("_"), "", "", "")[:4]
    names = [f"fp8{name}" if name in ("e4m3", "e5m2") else name for name in formats.split("x")]
    if machine not in PRESETS or instruction not in _INSTRUCTIONS or output not in FORMATS:
        return None
    if not all((name, output) in PRESETS[machine].combinations for name in names):
        return None
    return PRESETS[machine].spec(names[0], output, input_b=names[-1])


def load_set(path: Path) -> DataSet | None:
    """Read a data set; return None if no preset has it."""
    spec = spec_of(path.stem)
    if spec is None:
        return None
    with np.load(path) as file:
        a, b, c, d = (np.asarray(file[name]) for name in "abcd")
    return DataSet(name=path.stem.replace("_", " "), spec=spec, a=a, b=b, c=c, d=d.astype(c.dtype))


def checks() -> Iterator[Check]:
    """Yield the rows of golden and of RTL for every data set in ``FOLDERS``."""
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

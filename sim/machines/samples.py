"""Sets of machines in small: the rows that ``golden/machines/samples`` has of each of them.

A file there has the sets of one maker. A row of a set is one line of text: its number in the set,
the kind of its operands, and the codes of A, B, the scales, C and D in hexadecimal.
"""

import tomllib
from functools import lru_cache
from pathlib import Path

import numpy as np

from vitruvian.golden.fp.formats import FloatFormat, IntFormat
from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.machines import find
from vitruvian.golden.machines.table import FOLDER as MAKERS
from vitruvian.golden.machines.table import output_format
from vitruvian.sim.machines.sets import MachineSet

#: The folder of the files.
FOLDER = MAKERS.parent / "samples"


@lru_cache
def samples() -> dict[str, MachineSet]:
    """Return the sets of all makers by their stems."""
    return {
        data.machine.stem: data
        for path in sorted(FOLDER.glob("*.toml"))
        for data in read_samples(path)
    }


def read_samples(path: Path) -> list[MachineSet]:
    """Return the sets of a file.

    Raises
    ------
    UserError
        If a set has a name that is not in the table of machines.
    ValueError
        If a row has more or fewer columns or digits than the formats of its set.
    """
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["set"]
    return [_set(entry["stem"], entry["rows"].splitlines()) for entry in entries]


def _set(stem: str, lines: list[str]) -> MachineSet:
    """Return the set of these rows."""
    machine = find(stem)
    output = output_format(machine)
    digits = {"a": _digits(machine.input), "b": _digits(machine.input_b)}
    if isinstance(machine.rule, DotSpec) and machine.rule.scales is not None:
        digits |= {"scale_a": 2, "scale_b": 2}
    digits |= dict.fromkeys("cd", 8 if output is None else _digits(output))
    columns: dict[str, list[list[int]]] = {name: [] for name in digits}
    for line in lines:
        _, _, *words = line.split()
        if len(words) != len(digits):
            raise ValueError(f"a row of {stem} must have {len(digits) + 2} columns, not {line!r}")
        for (name, width), word in zip(digits.items(), words, strict=True):
            codes = [int(word[i : i + width], 16) for i in range(0, len(word), width)]
            if len(word) % width or len(codes) != len((columns[name] or [codes])[0]):
                raise ValueError(f"{name} of {stem} must have {width} digits a code, not {word!r}")
            columns[name].append(codes)
    arrays = {name: np.array(codes, np.uint64) for name, codes in columns.items()}
    c, d = (arrays.pop(name)[:, 0] for name in "cd")
    scales = {name: array.astype(np.uint8) for name, array in arrays.items() if len(name) > 1}
    return MachineSet(
        name=f"{stem} sample", machine=machine, a=arrays["a"], b=arrays["b"], c=c, d=d, **scales
    )


def _digits(format: FloatFormat | IntFormat) -> int:
    """Return how many hexadecimal digits a code has."""
    if isinstance(format, IntFormat):
        return 2
    return 1 if format.width <= 4 else format.storage_bits // 4

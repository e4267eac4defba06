"""A set of operands and results with its comparison, as evidence of a rule."""

import io
import json
from pathlib import Path

import numpy as np

from vitruvian.flows.probes.file import ProbeSection, results_of
from vitruvian.golden.machines.probe import Match


def evidence(section: ProbeSection, device: str, matches: list[Match]) -> tuple[str, bytes]:
    """Return the name and the bytes of the .npz file of an instruction that has run.

    ``vitruvian machines --check`` compares such a file again with the row that its name says, and
    ``vitruvian probe read`` reads it. Its header, JSON, has the formats, the device, and the number
    of rows in which the row of the table gives another value (codes of NaN do not count).

    Parameters
    ----------
    matches : list of Match
        The rows with the fewest wrong results, the best one first; the file has the name of the
        first one if no result is wrong, and otherwise that of the instruction.
    """
    x = results_of(section)
    best = matches[0] if matches else None
    named = best is not None and not best.wrong
    name = best.machine.stem if best is not None and named else section.name
    header = {
        "name": name,
        "instruction": section.name,
        "device": device,
        "formats": {"a": str(x.input), "b": str(x.input_b), "d": str(x.output)},
        "rows": len(x.d),
        "K": x.terms,
        "comparison": {
            "row": None if best is None else best.machine.stem,
            "wrong": None if best is None else best.wrong,
            "first": None if best is None else best.first,
            "equal rows": [m.machine.stem for m in matches] if named else [],
        },
    }
    if x.scale is not None:
        header["formats"]["scale"] = str(x.scale)
    arrays = {"a": x.a, "b": x.b, "c": x.c, "d": x.d}
    arrays |= {
        key: array
        for key, array in (("scale_a", x.scale_a), ("scale_b", x.scale_b))
        if array is not None
    }
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, header=np.array(json.dumps(header)), **arrays)
    return f"{name}.npz", file.getvalue()


def paths(folder: Path, found: list[tuple[str, bytes]]) -> dict[Path, bytes | str]:
    """Return the files of a folder; a second file of a name gets a number."""
    files: dict[Path, bytes | str] = {}
    for name, data in found:
        stem, number = name.removesuffix(".npz"), 1
        while folder / name in files:
            number += 1
            name = f"{stem}.{number}.npz"
        files[folder / name] = data
    return files

"""Results that an NVIDIA H200 returned; tests/data/h200/README.md describes the files."""

import hashlib
import json
from functools import lru_cache
from pathlib import Path

import numpy as np

from vitruvian.flows.probes.cuda import INSTRUCTIONS
from vitruvian.flows.probes.instruction import ProbedInstruction
from vitruvian.golden.machines import find
from vitruvian.golden.machines.probe import Cases, kept_terms
from vitruvian.golden.machines.table import Machine

FOLDER = Path(__file__).parents[1] / "data" / "h200"

#: Name of a format in the probe kit -> its name in a stem, if that is another one.
_SHORT = {"fp8e4m3": "e4m3", "fp8e5m2": "e5m2"}


@lru_cache
def instructions() -> dict[str, dict]:
    """Return what was recorded of each instruction, by its name in the probe kit."""
    header = json.loads(str(np.load(FOLDER / "instructions.npz")["header"]))
    return {entry["name"]: entry for entry in header["instructions"]}


@lru_cache
def by_name() -> dict[str, ProbedInstruction]:
    """Return the instructions of the probe kit by their names."""
    return {each.name: each for each in INSTRUCTIONS}


def results(name: str) -> np.ndarray:
    """Return the codes of D that an instruction returned, for the operands of seed 1."""
    entry = instructions()[name]
    return np.frombuffer(_blob(), entry["dtype"], entry["rows"], entry["offset"])


@lru_cache
def _blob() -> bytes:
    with np.load(FOLDER / "instructions.npz") as file:
        return file["results"].tobytes()


def digest(cases: Cases) -> str:
    """Return the SHA-256 of operands, as it is in the file."""
    return hashlib.sha256(b"".join(x.tobytes() for x in (cases.a, cases.b, cases.c))).hexdigest()


def terms_of(each: ProbedInstruction, cases: Cases) -> Cases:
    """Return the terms that an instruction adds: all, or those that its metadata keep."""
    return kept_terms(cases) if each.sparse else cases


def row_of(each: ProbedInstruction) -> Machine:
    """Return the row of the table of machines of an instruction of the probe kit."""
    words = each.kind.split("_")
    instruction = "wgmma" if words[0] == "wgmma" else "mma"
    formats = [_SHORT.get(name, name) for name in (each.input, each.input_b)]
    if each.sparse:
        instruction += "sp"
    elif instruction == "mma" and formats[0] in _SHORT.values():
        instruction = "mmasync"
    pair = formats[0] if formats[0] == formats[1] else "x".join(formats)
    tail = "_satfinite" if "satfinite" in words else ""
    return find(f"h200_{instruction}_{pair}_{each.output}{tail}")

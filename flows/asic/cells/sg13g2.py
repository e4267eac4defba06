"""The standard cells of IHP's open 130 nm process SG13G2 (typical corner, 1.2 V, 25 °C).

No package on PyPI contains these cells. They are part of IHP's open PDK, which the package ``ciel``
installs (family ``ihp-sg13``), and which has the Apache License 2.0. The files are read where the
PDK lies: in the folder ``$PDK_ROOT/ihp-sg13g2``, or in that of ``~/.ciel`` without the variable.
"""

import hashlib
import os
from pathlib import Path

NAME = "sg13g2"
#: Revision of the PDK whose files have these checksums; others may have the same files.
REVISION = "5cccb161f7492697cfa52eb14dc03beb00bdca9e"
_FOLDER = Path("ihp-sg13g2") / "libs.ref" / "sg13g2_stdcell"
#: Kind of a file -> its place in the PDK, and its SHA-256.
FILES = {
    "liberty": (
        "lib/sg13g2_stdcell_typ_1p20V_25C.lib",
        "7677a8918689f452e80405ad16a83e744709342574f2aedcc507c2758986b396",
    ),
    "technology": (
        "lef/sg13g2_tech.lef",
        "a12fecdead5721dc3bd14fb75bd0915c61afba064e38af8c7b69d59d9da05080",
    ),
    "cells": (
        "lef/sg13g2_stdcell.lef",
        "c9bbc02d0c2cba3b15cd89a208750d25de882f02a2927ae78ba6422109fb01d0",
    ),
    "gds": (
        "gds/sg13g2_stdcell.gds",
        "6ee92931ad70eeb8f79ca89fe0d4f38892d9e7e14d1a1b21bfb7118e55bf232f",
    ),
}
#: Metals and cuts -> their layers in GDS. Of metals, datatype 2 has pins, and 25 has labels.
LAYERS = {
    "Metal1": 8, "Via1": 19, "Metal2": 10, "Via2": 29, "Metal3": 30, "Via3": 49, "Metal4": 50,
    "Via4": 66, "Metal5": 67, "TopVia1": 125, "TopMetal1": 126, "TopVia2": 133, "TopMetal2": 134,
}  # fmt: skip
PINS, LABELS = 2, 25


def root() -> Path:
    """Return the folder of the user's PDKs."""
    return Path(os.environ.get("PDK_ROOT") or Path.home() / ".ciel")


def fetch(kind: str = "liberty") -> Path:
    """Return the path of a file of the library in the user's PDK.

    Parameters
    ----------
    kind : str
        A key of ``FILES``: liberty, LEF of the technology, LEF of the cells, or GDS of the cells.

    Raises
    ------
    RuntimeError
        If there is no such file, or if it differs from the one that was measured.
    """
    name, expected = FILES[kind]
    path = root() / _FOLDER / name
    try:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        raise RuntimeError(
            "sg13g2 needs IHP's open PDK: pip install ciel; ciel enable --pdk-family ihp-sg13 "
            f"{REVISION}; or PDK_ROOT with the folder ihp-sg13g2; there is no {path}"
        ) from None
    if found != expected:
        raise RuntimeError(
            f"{path} must have SHA-256 {expected}, as in revision {REVISION[:8]} of IHP's open "
            f"PDK, not {found}"
        )
    return path

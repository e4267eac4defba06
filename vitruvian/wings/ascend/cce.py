"""Options of the command ``cce``, and the macros and kernel arguments that they give."""

import argparse
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitruvian.commands.options import add_chip, add_seed, at_least
from vitruvian.common.errors import UserError
from vitruvian.common.progress import Progress
from vitruvian.common.validate import one_of
from vitruvian.wings.ascend.cce_arrays import (
    ExpectedArray,
    array_argument,
    expectations,
    structure_argument,
    tolerance,
)

if TYPE_CHECKING:
    from vitruvian.sim.davinci import Program

DESCRIPTION = """Read a kernel in CCE C, run it on the simulated cores of a chip, and print its
time, the findings of the checks, its own output, and the first values of its arrays. The exit code
is 0, or 1 if the checks found something or a result is not as expected, or 2 for a mistake in the
kernel or the arguments."""

EXAMPLE = r"""Example: vitruvian cce sim/kernels/text/softmax.cce --chip ascend910 --blocks 2 \
  --arg x=normal:1024 --arg y=zeros:1024 --arg rows=8 --arg n=128"""

#: Macros that the device's compiler defines by kind of core, on chips with several kinds.
_MACROS = {"cube": {"__DAV_C220_CUBE__": "1"}, "vector": {"__DAV_C220_VEC__": "1"}}

#: Ways to compute the products of a kernel in CCE C.
CUBES = ("golden", "rtl", "fast")

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def add_cce_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the kernel, the chip, and the arguments of the kernel."""
    parser.add_argument("file", metavar="FILE", help="Read the kernel from this source file.")
    add_kernel_options(parser)
    parser.add_argument(
        "--cube",
        default="golden",
        metavar="HOW",
        help="Compute the matrix products by golden, rtl or fast (default: %(default)s).",
    )
    add_seed(parser, default=0)
    add_expectations(parser)


def add_kernel_options(parser: Any) -> None:
    """Add the options that say how the kernel in a file becomes a program."""
    parser.add_argument(
        "--entry",
        metavar="NAME",
        help="Run this function (default: the only __global__ one, or the only function).",
    )
    add_launch_options(parser)


def add_launch_options(parser: Any) -> None:
    """Add the options of the chip, of the launch and of the preprocessor."""
    add_chip(parser)
    parser.add_argument(
        "--blocks",
        type=at_least(1, 65535),
        default=1,
        metavar="N",
        help="Run the kernel on this number of blocks; if the chip has fewer cores, they run in "
        "rounds (default: %(default)s).",
    )
    parser.add_argument(
        "--kind",
        metavar="KIND",
        help="Run on cores of this kind, or on all kinds together with all (default: the chip's "
        "first).",
    )
    parser.add_argument(
        "--define",
        "-D",
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help="Define a macro (default value: 1); may be repeated.",
    )
    parser.add_argument(
        "--include",
        "-I",
        action="append",
        default=[],
        metavar="FOLDER",
        help="Let the kernel include files of this folder, besides those of its own folder; may "
        "be repeated.",
    )
    parser.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="Give a parameter this value, once for each: a number; for a pointer a .npy file, "
        "null, or N elements as zeros:N, arange:N, normal:N (mean 0, deviation 1) or uniform:N (-1 "
        "to 1, or all integers), of the parameter's type or of another, as in normal:fp16:N; a "
        "random array may end in a seed of its own, as in normal:fp16:N:SEED. A structure is given "
        "by its members, as in struct:2If:64,8,0.5 (letters of Python's module struct).",
    )
    parser.add_argument(
        "--steps",
        type=at_least(1),
        default=10_000_000,
        metavar="N",
        help="Stop a core after this number of calls, intrinsics and loop iterations "
        "(default: 10 million).",
    )


def add_expectations(parser: argparse.ArgumentParser) -> None:
    """Add the options that compare the kernel's results with files."""
    parser.add_argument(
        "--expect",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="Compare this array, after the kernel has run, with those of a .npy file, bit by bit "
        "unless a tolerance is given; once for each array. A difference gives exit code 1.",
    )
    parser.add_argument(
        "--rtol",
        type=tolerance,
        metavar="R",
        help="Accept |x - y| up to A + R|y| for a result x and an expected y (with --expect).",
    )
    parser.add_argument(
        "--atol",
        type=tolerance,
        metavar="A",
        help="Accept |x - y| up to A + R|y| for a result x and an expected y (with --expect).",
    )


def macros(texts: Sequence[str]) -> dict[str, str]:
    """Return the values of macros by name, from texts NAME or NAME=VALUE.

    Raises
    ------
    UserError
        If a name is not an identifier of C.
    """
    values: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not _NAME.fullmatch(name):
            raise UserError(f"--define must be NAME or NAME=VALUE with a name of C, not {text!r}")
        # As a C compiler does: -D NAME means NAME=1.
        values[name] = value if equals else "1"
    return values


def folders(texts: Sequence[str]) -> list[Path]:
    """Return the folders of ``--include``.

    Raises
    ------
    UserError
        If a folder does not exist.
    """
    for text in texts:
        if not Path(text).is_dir():
            raise UserError(f"--include must be a folder, not {text!r}")
    return [Path(text) for text in texts]


def kernel_arguments(
    parameters: Sequence[Any], texts: Sequence[str], *, seed: int = 0, structures: bool = False
) -> dict[str, Any]:
    """Return the values of all parameters of a kernel by name.

    Parameters
    ----------
    parameters : sequence of Parameter
        Parameters of the kernel.
    texts : sequence of str
        Values of ``--arg``, NAME=VALUE.
    seed : int
        Seed of the random arrays; each parameter draws its own numbers.
    structures : bool
        If True, a parameter may be a structure by value, whose value is bytes.

    Raises
    ------
    UserError
        If a parameter has no value or two values, a name is unknown, or a value does not fit.
    """
    names = [p.name for p in parameters]
    texts_by_name: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise UserError(f"--arg must be NAME=VALUE, not {text!r}")
        if name not in names:
            allowed = f"be of one of {', '.join(names)}" if names else "not be given"
            why = "" if names else ": the kernel has no parameters"
            raise UserError(f"--arg must {allowed}, not {name!r}{why}")
        if name in texts_by_name:
            raise UserError(
                f"--arg {name} must be given once, not as {texts_by_name[name]!r} and {value!r}"
            )
        texts_by_name[name] = value
    values: dict[str, Any] = {}
    for number, p in enumerate(parameters):
        if p.name not in texts_by_name:
            kind = f"{p.dtype} *" if p.is_pointer else p.dtype
            raise UserError(f"--arg {p.name}=VALUE must be given ({kind})")
        # Each parameter has random numbers of its own, whatever the order of the options.
        text = texts_by_name[p.name]
        by_value = structures and not p.is_pointer
        if by_value and (text.startswith("struct:") or text.endswith(".npy")):
            values[p.name] = structure_argument(p.name, text)
        else:
            values[p.name] = _argument(p, text, (seed, number))
    return values


def _argument(parameter: Any, text: str, seed: tuple[int, int]) -> Any:
    """Return the value of a parameter; an array has the parameter's dtype."""
    name = parameter.name
    if not parameter.is_pointer:
        is_float = parameter.dtype in ("fp16", "fp32", "fp64", "bf16")
        # Base 0 accepts the prefixes 0x and 0b as well.
        read: Callable[[str], Any] = float if is_float else lambda text: int(text, 0)
        try:
            return read(text)
        except ValueError:
            kind = "a number" if is_float else "a whole number"
            shown = text if len(text) <= 80 else f"{text[:80]}..."
            raise UserError(f"--arg {name} must be {kind}, not {shown!r}") from None
    return array_argument(name, text, parameter.dtype, seed)


def cce_program(options: argparse.Namespace) -> "tuple[Program, list[ExpectedArray]]":
    """Return the program of a kernel in CCE C, and the arrays that it is compared with.

    Raises
    ------
    UserError
        If the kernel or an option is wrong.
    """
    from vitruvian.sim.davinci import Deadlock, load_chip
    from vitruvian.sim.davinci.cce import build, build_mixed, read_file

    one_of("--cube", options.cube, CUBES)
    defines, include_path = macros(options.define), folders(options.include)
    try:
        chip = load_chip(options.chip)
        if options.kind is not None:
            one_of("--kind", options.kind, (*chip.kinds, "all"))
        kinds = list(chip.kinds) if options.kind == "all" else [chip.kind(options.kind).name]
        # A kernel for several kinds of cores is read once for each, with the macros of that kind.
        kernels = {
            kind: read_file(
                options.file,
                entry=options.entry,
                defines=_MACROS.get(kind, {}) | defines,
                include_path=include_path,
            )
            for kind in kinds
        }
        kernel = kernels[kinds[0]]
        arguments = kernel_arguments(kernel.parameters, options.arg, seed=options.seed)
        tolerances = {"rtol": options.rtol, "atol": options.atol}
        expected = expectations(options.expect, kernel.parameters, arguments, **tolerances)
        settings: dict[str, Any] = {"blocks": options.blocks, "limit": options.steps}
        with Progress(f"running {kernel.name}", lines=False, counts=False, after_s=2.0):
            if len(kinds) > 1:
                program = build_mixed(kernels, chip, arguments, **settings)
            else:
                program, _ = build(kernel, chip, arguments, kind=kinds[0], **settings)
    except (ValueError, Deadlock) as error:
        raise UserError(str(error)) from None
    return program, expected

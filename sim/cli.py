"""Commands of ``python -m sim``: arguments in, a table or JSON out, an exit code.

Exit codes: 0 all well; 1 a mismatch or a failed check; 2 a wrong argument or a missing tool, with
one line on standard error that says what is allowed or what to install; 130 and 143 after Ctrl-C
and SIGTERM.
"""

import argparse
import importlib
import importlib.metadata
import json
import math
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from sim import interrupt
from sim.files import write_whole

__all__ = ["COMMANDS", "UserError", "build_parser", "main", "write_json"]

#: Modules with ``register(subparsers)``; each adds its commands.
COMMANDS = (
    "sim.commands.verify",
    "sim.commands.silicon",
    "sim.commands.exhaustive",
    "sim.commands.kernels",
    "sim.commands.mma",
    "sim.commands.run",
    "sim.commands.davinci",
    "sim.commands.tune",
)


class UserError(Exception):
    """A wrong argument; the message is one line that says what is allowed."""


class _Parser(argparse.ArgumentParser):
    """Argument parser that answers a mistake with one line and keeps the lines of its texts."""

    def __init__(self, **options: Any):
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **options)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {' '.join(message.split())}\n")


class _Version(argparse.Action):
    """Print the installed package's version; it is looked up only when it is asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any):
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, **options)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        try:
            version = importlib.metadata.version("vitruvian")
        except importlib.metadata.PackageNotFoundError:
            version = "(not installed)"
        print(f"vitruvian {version}")
        parser.exit(0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; Ctrl-C and SIGTERM end it within two seconds."""
    try:
        with interrupt.guarded():
            return _main(arguments)
    except KeyboardInterrupt as stop:
        print("interrupted", file=sys.stderr)
        return getattr(stop, "code", 130)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = _Parser(
        prog="python -m sim",
        description="Run and verify Vitruvian's units.",
        epilog="Exit codes: 0 all well, 1 a difference or a failed check, 2 a wrong argument,\n"
        "130 after Ctrl-C, 143 after SIGTERM.\n\n"
        "example:\n  python -m sim verify 'fp.*' --vectors 1000",
    )
    parser.add_argument("--version", action=_Version, help="print the version and stop")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in COMMANDS:
        importlib.import_module(module).register(commands)
    return parser


def _main(arguments: Sequence[str] | None) -> int:
    from sim.rtl import BuildError, ToolError
    from sim.workers import WorkerKilled

    options = build_parser().parse_args(arguments)
    try:
        return options.run(options)
    except (UserError, ToolError) as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except (BuildError, WorkerKilled) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except MemoryError as error:
        print(f"error: not enough memory: {error or 'take smaller sizes'}", file=sys.stderr)
        return 2
    except RecursionError:
        print("error: the input is nested too deeply", file=sys.stderr)
        return 2


def write_json(path: str, value: Any) -> None:
    """Write a whole JSON file or none; ``-`` is standard output.

    Infinities and NaN, which JSON has no number for, are null.

    Raises
    ------
    UserError
        If the file cannot be written.
    """
    text = json.dumps(_plain(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if path == "-":
        sys.stdout.write(text)
        return
    try:
        write_whole(path, text)
    except OSError as error:
        raise UserError(f"--json must be a file that can be written: {error}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

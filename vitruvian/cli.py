"""The command line: parser, dispatch to a command's module, and exit codes.

The exit code is 0 for success; 1 for a mismatch, a failed check or a failed tool; 2 for a wrong
argument or a missing tool, with one line on standard error that says what is allowed or what to
install; 130 after Ctrl-C and 143 after SIGTERM.
"""

import argparse
import importlib
import importlib.metadata
import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from typing import Any, NoReturn, TextIO, cast

from vitruvian.commands.listing import COMMANDS, overview
from vitruvian.common import interrupt
from vitruvian.common.errors import UserError, WorkError
from vitruvian.common.extras import missing_library
from vitruvian.common.files import OutputPath, reason_of, write_whole
from vitruvian.common.validate import nearest, printable

#: Commands of earlier versions, and what took their place.
_REPLACED = {
    "run": "graph (problems on graphs), kernel (DaVinci kernels), knn (nearest neighbours) or "
    "taylor (series of functions)"
}


#: Earlier names of commands. They stay valid within a minor version (docs/stability.md), and no
#: help shows them.
_RENAMED = {"kernels": "studies"}


class _Parser(argparse.ArgumentParser):
    """An argument parser that reports a mistake in one line and keeps line breaks in help texts."""

    def __init__(self, **options: Any):
        self.commands: dict[str, argparse.ArgumentParser] = {}
        #: Function that completes the help with what the options before --help name
        self.explain: Callable[[argparse.Namespace], None] = lambda _: None
        formatter = argparse.RawDescriptionHelpFormatter
        super().__init__(formatter_class=formatter, add_help=False, **options)
        self.add_argument("-h", "--help", action=_Help, help="Print this help and stop.")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            names = ", ".join(map(repr, action.choices))
            if action.dest == "command":
                names = f"the {len(COMMANDS)} that `vitruvian help --all` lists"
            hint = nearest(str(value), map(str, action.choices))
            given = f"invalid choice: {value!r}"
            # A long list would hide the name that was meant.
            text = f"{given}{hint}" if hint else f"{given} (choose from {names})"
            raise argparse.ArgumentError(action, text)

    def error(self, message: str) -> NoReturn:
        line = _line(message)
        line = line if len(line) <= 400 else line[:400] + "…"
        self.exit(2, f"error: {line} (`{self.prog} --help` lists what is allowed)\n")


class _Overview(_Parser):
    """The parser of the whole command line, whose help is one screen of commands in groups."""

    def format_help(self) -> str:
        return overview()


class _Help(argparse._HelpAction):  # pyright: ignore[reportPrivateUsage]
    """The action of ``--help``, which calls ``explain`` of the parser first."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, *_: Any
    ) -> None:
        if isinstance(parser, _Parser):
            parser.explain(namespace)
        parser.print_help()
        parser.exit()


class _Version(argparse.Action):
    """The action of ``--version``, which reads the package's metadata only when it is used."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any):
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, **options)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        try:
            version = importlib.metadata.version("vitruvian")
        except importlib.metadata.PackageNotFoundError:
            version = "(not installed)"
        print(f"vitruvian {version}")
        parser.exit(0)


class _Commands:
    """The subparsers of the commands, of which only the ``named`` ones get their options."""

    def __init__(self, subparsers: Any, named: set[str]):
        self._subparsers = subparsers
        self._named = named

    def add_parser(self, name: str, **options: Any) -> argparse.ArgumentParser:
        """Add a command with its help line from ``COMMANDS``."""
        return self._subparsers.add_parser(name, help=COMMANDS[name].text, **options)

    def add_all(self) -> None:
        """Add every command in the order of ``COMMANDS``.

        Only the modules of named commands are imported, because most of them take long to import.
        """
        for name, command in COMMANDS.items():
            if name in self._named:
                importlib.import_module(command.module).register(name, self)
            else:
                self.add_parser(name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Ctrl-C and SIGTERM end the command within two seconds.

    Parameters
    ----------
    arguments : sequence of str, optional
        Arguments without the program's name; those of this process by default.
    """
    try:
        with interrupt.guarded():
            return _main(sys.argv[1:] if arguments is None else list(arguments))
    except KeyboardInterrupt as stop:
        print("interrupted", file=sys.stderr)
        return getattr(stop, "code", 130)


def build_parser(named: Sequence[str] = tuple(COMMANDS)) -> _Parser:
    """Return the parser of the command line, in which only the ``named`` commands have options."""
    parser = _Overview(prog="vitruvian", epilog="Example: vitruvian verify 'fp.*' --vectors 1000")
    parser.add_argument("--version", action=_Version, help="Print the version and stop.")
    subparsers = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=_Parser
    )
    _Commands(subparsers, set(named)).add_all()
    parser.commands = dict(subparsers.choices)
    return parser


def _line(message: str) -> str:
    """Return a message as one line without control characters: it may quote a hostile file."""
    return printable(" ".join(message.split()))


def _main(arguments: list[str]) -> int:
    if "_ARGCOMPLETE" in os.environ:
        _complete(os.environ.get("COMP_LINE", ""))
    options = _parsed(arguments)
    try:
        _keep_inputs(options)
        code = options.run(options)
        # A reader that has gone must be noticed here, and not when the interpreter exits.
        sys.stdout.flush()
        return code
    except UserError as error:
        print(f"error: {_line(str(error))}", file=sys.stderr)
        return 2
    except WorkError as error:
        print("error:", printable(str(error), keep="\n\t"), file=sys.stderr)
        return 1
    except BrokenProcessPool:
        print("error: a worker process was killed (lack of memory?)", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # Otherwise Python prints an error at its exit, when it cannot flush standard output.
        sys.stderr.close()
        return 1
    except OSError as error:
        place = f"{error.filename}: " if isinstance(error.filename, str) else ""
        print(f"error: {_line(place + reason_of(error))}", file=sys.stderr)
        return 2
    except MemoryError as error:
        print(f"error: not enough memory: {str(error) or 'take smaller sizes'}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        line = missing_library(error)
        if line is None:
            raise
        print(f"error: {line}", file=sys.stderr)
        return 2
    except RecursionError:
        print("error: the input is nested too deeply", file=sys.stderr)
        return 2


def _parsed(arguments: list[str]) -> argparse.Namespace:
    """Return the options; the message about an unknown one names the nearest that exists."""
    first = next((word for word in arguments if not word.startswith("-")), "")
    if first in _RENAMED:
        place = arguments.index(first)
        arguments = [*arguments[:place], _RENAMED[first], *arguments[place + 1 :]]
    parser = build_parser(_named(arguments))
    if first in _REPLACED:
        parser.error(f"command must be {_REPLACED[first]}, not {first!r}")
    options, rest = parser.parse_known_args(arguments)
    if rest:
        # The parser of the command knows its options, and its help lists them.
        own = parser.commands[options.command]
        names = [name for action in own._actions for name in action.option_strings]
        unknown = next((word for word in rest if word.startswith("-")), rest[0])
        hint = nearest(unknown.partition("=")[0], names)
        own.error(f"unrecognized arguments: {' '.join(rest)}{hint}")
    return options


def _keep_inputs(options: argparse.Namespace) -> None:
    """Raise UserError if an option names an output file that is also an input of the command."""
    values = [
        (name, word)
        for name, value in vars(options).items()
        for word in _words(value)
        if name != "command"
    ]
    outputs = [v for v in values if isinstance(v[1], OutputPath) and os.path.isfile(v[1])]
    # The name of a unit or a kernel has no dot and no slash, even if there is such a file.
    inputs = [w for _, w in values if not isinstance(w, OutputPath) and ("." in w or "/" in w)]
    for name, output in outputs:
        for word in inputs:
            same = False
            with suppress(OSError, ValueError):  # most words are no files
                same = os.path.samefile(output, word)
            if same:
                raise UserError(
                    f"--{name.replace('_', '-')} must be another file than the input {word!r}, "
                    "which it would replace"
                )


def _words(value: object) -> Iterator[str]:
    """Yield the texts in the value of an option, for NAME=FILE also the file's name."""
    if isinstance(value, str):
        yield value
        if "=" in value:
            yield value.partition("=")[2].removeprefix("@")
    elif isinstance(value, list | tuple):
        for item in cast(Sequence[object], value):
            yield from _words(item)


def _named(words: Sequence[str]) -> list[str]:
    """Return the first word that is a command, as a list that is empty if there is none."""
    return [word for word in words if word in COMMANDS][:1]


def _complete(line: str) -> NoReturn:
    """Print the possible completions of ``line`` for a shell, and end the process.

    argcomplete sets ``_ARGCOMPLETE`` and passes the line in the environment instead of in the
    arguments, and reads the answer from file descriptor 8.
    """
    import argcomplete

    from vitruvian.commands.completion import completed, show_unit_options

    words = line.split()
    named = _named(words)
    parser = build_parser(named)
    for name in named:
        show_unit_options(parser.commands[name], words)
    # The words of ``completed`` are for options and arguments without choices.
    argcomplete.autocomplete(parser, default_completer=cast(Any, completed))
    raise SystemExit(1)  # not reached: autocomplete ends the process when the variable is set


def write_json(path: str, value: Any, *, stdout: TextIO | None = None) -> None:
    """Write a complete JSON file, or nothing if it cannot be written.

    Parameters
    ----------
    path : str
        Name of the file, or ``-`` for standard output.
    value : object
        Dicts, lists, tuples, numbers and strings. Infinities and NaN, which JSON cannot express,
        become null.
    stdout : file, optional
        File that ``-`` means; ``sys.stdout`` by default.

    Raises
    ------
    UserError
        If the file cannot be written.
    """
    text = json.dumps(_plain(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if path == "-":
        (stdout or sys.stdout).write(text)
        return
    try:
        write_whole(path, text)
    except OSError as error:
        raise UserError(f"--json must be a file that can be written: {reason_of(error)}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in cast(dict[Any, Any], value).items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast(Sequence[Any], value)]
    return None if isinstance(value, float) and not math.isfinite(value) else value

"""The commands ``board`` and ``host``: a simulated board, and programs that run on a board."""

import argparse
import sys
from typing import Any, cast

from vitruvian.cli import write_json
from vitruvian.commands.board_options import CORE as _CORE
from vitruvian.commands.board_options import SERIAL as _SERIAL
from vitruvian.commands.board_options import board_options
from vitruvian.commands.options import add_json, add_seed, add_size, at_least, compiling
from vitruvian.common.errors import UserError
from vitruvian.common.progress import Progress
from vitruvian.common.validate import nearest, shortened
from vitruvian.common.wings import registered
from vitruvian.hdl.catalogue.unit import Option, Variant
from vitruvian.sim.host.problems import PROBLEMS

#: A bit of the simulated board takes the fewest possible clock cycles, so that it runs fast.
_SIMULATED = {"clock_hz": 4_000_000, "baud": 1_000_000}
# The usual USB bridges reach a million bits a second; an answer takes milliseconds, unless a byte
# was lost.
_BAUD, _TIMEOUT_S = 1_000_000, 2.0
_MOST_S = 86_400.0


def register(name: str, commands: Any) -> None:
    """Add the command ``board`` or ``host`` to the parser."""
    (_register_board if name == "board" else _register_host)(commands)


def _register_board(commands: Any) -> None:
    parser = commands.add_parser(
        "board",
        description="Simulate a board: the RTL of the unit `serial` or `core`, with every bit on\n"
        "the line to it, behind a pseudo-terminal. Print the path of the port and run until "
        "Ctrl-C.",
        epilog="Example: vitruvian board --preset cube_4x4x4",
    )
    for name, option in board_options().items():
        default = (_CORE.default({}) | _SERIAL.default({}) | _SIMULATED)[name]
        known = "given by the preset" if default is None else default
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            type=_value(option),
            dest=f"unit_{name}",
            metavar="…",
            help=f"Build the board with this {name.replace('_', ' ')}: {option.help} "
            f"(default: {known}).",
        )
    parser.add_argument(
        "--stop-after",
        type=_seconds(0),
        metavar="S",
        help="Stop when no byte has come for this many seconds (default: run until Ctrl-C).",
    )
    add_json(parser, "the port and the board")
    parser.set_defaults(run=_board)


def _register_host(commands: Any) -> None:
    parser = commands.add_parser(
        "host",
        description="Solve a problem on a board at a serial port, or on a simulated one (see "
        "`vitruvian board`).",
        epilog="Example: vitruvian host matmul --port /dev/ttyUSB0 --size 16x16x16 --check",
    )
    parser.add_argument(
        "problem",
        metavar="PROBLEM",
        choices=problems(),
        help=f"Solve this: {', '.join(problems())}.",
    )
    for module in registered("hosted"):
        module.add_options(parser)
    parser.add_argument(
        "--port", required=True, metavar="PORT", help="Use the board at this serial port."
    )
    parser.add_argument(
        "--baud",
        type=at_least(1, 50_000_000),
        default=_BAUD,
        metavar="N",
        help="Send this many bits per second (default: %(default)s).",
    )
    parser.add_argument(
        "--timeout",
        type=_seconds(0.001),
        default=_TIMEOUT_S,
        metavar="S",
        help="Repeat a request without an answer after this many seconds (default: %(default)s).",
    )
    add_size(
        parser,
        "Take these sizes: MxNxK or one number for matmul, vertices for apsp, digits for digits.",
    )
    parser.add_argument(
        "--precision",
        metavar="NAME",
        help="Compute in this precision of the board (default: its first one).",
    )
    parser.add_argument(
        "--accuracy",
        default="ieee",
        metavar="NAME",
        help="Expect the accuracy of this preset with --check (default: %(default)s).",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="Compare every product with golden, and distances with those of SciPy.",
    )
    add_seed(parser)
    add_json(parser, "the figures")
    parser.set_defaults(run=_host)


def problems() -> list[str]:
    """Return the names of the problems: those of matrix units, and those of the wings."""
    return [*PROBLEMS, *(module.PROBLEM for module in registered("hosted"))]


def _value(option: Option) -> Any:
    """Return an argument type for one value of an option of a unit."""
    # The help of an option with names lists them so.
    words = option.help.split(" | ")

    def read(text: str) -> Any:
        try:
            return option.read(text)
        except UserError:
            raise argparse.ArgumentTypeError(
                f"must be {option.help}, not {shortened(text)}{nearest(text, words)}"
            ) from None

    return read


def _seconds(minimum: float) -> Any:
    """Return an argument type for seconds."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            # Below every minimum, so that a text is refused like a number out of range.
            value = -1.0
        if not minimum <= value <= _MOST_S:
            raise argparse.ArgumentTypeError(
                f"must be from {minimum:g} to {_MOST_S:g} s, not {shortened(text)}"
            )
        return value

    return read


def _simulated(values: dict[str, Any]) -> Variant:
    """Return the unit of a simulated board.

    Raises
    ------
    UserError
        If an option does not belong to the unit.
    """
    given = {name: value for name, value in values.items() if value is not None}
    unit, core = _SERIAL, given.get("core")
    if core in _CORE.options["preset"].samples():
        unit, given = _CORE, {name: value for name, value in given.items() if name != "core"}
        if "preset" in given:
            raise UserError(f"--preset must not come with --core {core}, which is a preset itself")
        given["preset"] = core
    for name in given:
        if name not in unit.options:
            with_core = f"--core {core}" if core else "a matrix unit"
            option = f"--{name.replace('_', '-')}"
            raise UserError(f"{option} must not come with {with_core}, which has no such option")
    # The defaults of the simulated line, unless an option says otherwise.
    return Variant(unit, unit.default(_SIMULATED | given))


def _board(options: argparse.Namespace) -> int:
    """Simulate a board until it is told to stop."""
    from vitruvian.sim.board.model import LineModel
    from vitruvian.sim.board.terminal import Terminal

    variant = _simulated({name: getattr(options, f"unit_{name}") for name in board_options()})
    variant.check()
    unit = cast(Any, variant).build()
    with compiling("the board"):
        model = LineModel(unit, divisor=unit.divisor)
    with Terminal(model) as terminal:
        out = sys.stderr if options.json == "-" else sys.stdout
        print(f"{terminal.path}: {variant.arguments}", file=out, flush=True)
        if options.json:
            # A program that waits for the port reads this before the first byte is sent.
            document = {"port": terminal.path, "board": variant.arguments, "divisor": unit.divisor}
            write_json(options.json, document)
            sys.stdout.flush()
        terminal.serve(options.stop_after)
    counts = f"{terminal.received:,} bytes received, {terminal.sent:,} sent"
    print(f"{counts}, {model.cycles:,} clock cycles", file=out)
    return 0


def _host(options: argparse.Namespace) -> int:
    """Solve a problem; return 1 if a result differs from golden."""
    from vitruvian.common.validate import one_of
    from vitruvian.golden.machines.presets import PRESETS
    from vitruvian.sim.host.board import Board
    from vitruvian.sim.host.client import connect
    from vitruvian.sim.host.problems import solve

    one_of("accuracy", options.accuracy, [name for name in PRESETS if name != "exact"])
    for module in registered("hosted"):
        if options.problem == module.PROBLEM:
            module.check(options)
            with connect(options.port, baud=options.baud, timeout=options.timeout) as client:
                return module.run(options, client)
        if options.file:
            raise UserError(f"a file must come with {module.PROBLEM}, not with {options.problem}")
    with connect(options.port, baud=options.baud, timeout=options.timeout) as client:
        board = Board.find(client)
        description = board.describe()
        with Progress(f"{options.problem}, beats", after_s=2.0) as progress:
            result = solve(
                options.problem,
                board,
                size=options.size,
                precision=options.precision,
                accuracy=options.accuracy,
                seed=options.seed,
                check=options.check,
                progress=lambda done, total: progress.update(done=done, total=total),
            )
    traffic = client.traffic
    # Requests that the board refused because of a wrong checksum, or that got no answer.
    retries = traffic.refused + traffic.unanswered
    out = sys.stderr if options.json == "-" else sys.stdout
    print(f"{options.port}: {description}", file=out)
    outcome = f": {result.outcome}" if result.outcome else ""
    print(f"{result.title}{outcome}", file=out)
    print(
        f"{result.products:,} multiplications in {result.beats:,} beats, "
        f"{traffic.sent + traffic.received:,} bytes, {retries} repeated requests, "
        f"{result.values['seconds']:.2f} s",
        file=out,
    )
    if options.check:
        print(f"{result.compared:,} values compared, {result.differences:,} differ", file=out)
    if options.json:
        checked = {"compared": result.compared, "differences": result.differences}
        document = {
            "port": options.port,
            "board": description,
            "problem": result.title,
            "products": result.products,
            "beats": result.beats,
            **result.values,
            **vars(traffic),
            **(checked if options.check else {}),
        }
        write_json(options.json, document)
    return int(result.differences > 0)

"""Options of commands that simulate kernels: what is checked, printed and written of a report."""

from typing import Any

from vitruvian.commands.options import at_least
from vitruvian.common.files import output_path

#: The type of a file for the timeline.
TRACE = output_path(".json", ".json.gz")


def add_strict(group: Any) -> None:
    """Add the option ``--strict`` to a parser or an argument group."""
    group.add_argument(
        "--strict",
        action="store_true",
        help="Report dependent instructions of a queue without a pipe_barrier between them, even "
        "if the chip makes the second one wait. The device's compiler inserts those of the vector "
        "unit by default (--cce-auto-sync): see --auto-sync.",
    )
    group.add_argument(
        "--auto-sync",
        action="store_true",
        help="Insert a pipe_barrier before each vector instruction that depends on an earlier one, "
        "as the device's compiler does by default.",
    )


def add_pictures(group: Any, *, timeline: str = "--trace") -> None:
    """Add the options of the files that a report is written to to a parser or an argument group."""
    group.add_argument(
        timeline,
        dest="trace",
        type=TRACE,
        metavar="FILE",
        help="Write the timeline to this file, for ui.perfetto.dev (.json, .json.gz"
        + ("; default: KERNEL.json)." if timeline == "--out" else ")."),
    )
    group.add_argument(
        "--gantt",
        type=output_path(".svg", ".png", ".json"),
        metavar="FILE",
        help="Draw the timeline as a Gantt chart to this file (.svg, .png, or .json for its data).",
    )
    group.add_argument(
        "--csv",
        type=output_path(folder=True),
        metavar="FOLDER",
        help="Write the counters of each core into this folder, as tables with the columns of "
        "msprof (op_summary.csv, PipeUtilization.csv, Memory.csv, …).",
    )
    group.add_argument(
        "--lines",
        nargs="?",
        type=at_least(1),
        const=10,
        metavar="N",
        help="Print the N lines of the source that the total time depends on most, with their "
        "counts, times and bytes (N is 10 if it is not given).",
    )
    group.add_argument(
        "--advise",
        action="store_true",
        help="Leave out each flag and barrier, make each unit and bus twice as fast, and print "
        "what this run does not need and what each change gains, by further simulations.",
    )
    group.add_argument(
        "--timeline", action="store_true", help="Print a line that shows when each unit is busy."
    )

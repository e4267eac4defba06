"""The command ``exhaustive``, which compares RTL and golden on every input of small units."""

import argparse
import sys
import time
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitruvian.cli import write_json
from vitruvian.commands.options import add_jobs, add_json, at_least, compiling, refuse_others
from vitruvian.common.errors import UserError
from vitruvian.common.files import output_path, reason_of
from vitruvian.common.interrupt import at_hard_end
from vitruvian.common.progress import Progress
from vitruvian.common.table import open_console
from vitruvian.common.validate import refusal
from vitruvian.common.workers import WorkerKilled
from vitruvian.sim.verify.check import Outcome

if TYPE_CHECKING:
    from vitruvian.sim.bench.exhaustive import ExhaustiveTask


def register(name: str, commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        name,
        description="Compare RTL and golden on every input of the small units, in chunks.\n"
        "A file records the finished chunks; after an interruption, the same command continues "
        "from there.",
        epilog="Example: vitruvian exhaustive 'DotProduct*' --jobs 2",
    )
    parser.add_argument(
        "task",
        nargs="?",
        default="*",
        metavar="TASK",
        help="Run the task of this name, or all that match a shell pattern (default: all).",
    )
    parser.add_argument("--list", action="store_true", help="List the tasks and stop.")
    parser.add_argument(
        "--chunk",
        type=at_least(1, 1 << 24),
        metavar="N",
        help="Save after every N inputs, a power of two (default: 1048576).",
    )
    parser.add_argument(
        "--limit",
        type=at_least(1, 1 << 40),
        metavar="N",
        help="Compare at most N inputs of each task in this run, in whole chunks (default: all).",
    )
    add_jobs(parser)
    parser.add_argument(
        "--restart", action="store_true", help="Ignore the finished chunks and begin again."
    )
    parser.add_argument(
        "--progress",
        type=output_path(),
        metavar="FILE",
        help="Record finished chunks in this file, which must be absent or written by this command "
        "(default: exhaustive.json in the cache).",
    )
    add_json(parser, "the rows")
    parser.set_defaults(run=_exhaustive)


def _exhaustive(options: argparse.Namespace) -> int:
    from vitruvian.commands.table import as_json, report
    from vitruvian.common.cache import cache_root, check_cache, sweep
    from vitruvian.sim.bench.exhaustive import CHUNK_BITS, tasks
    from vitruvian.sim.bench.exhaustive import ExhaustiveProgress as Done

    everything = tasks()
    chosen = [task for task in everything if fnmatchcase(task.name, options.task)]
    if not chosen:
        names = [task.name for task in everything]
        raise UserError(refusal("task", options.task, names, "match one of"))
    if options.list:
        refuse_others(options, ("chunk", "limit", "restart", "progress", "json"))
        for task in chosen:
            print(f"{task.inputs:14,}  {task.name}")
        return 0
    chunk = options.chunk or 1 << CHUNK_BITS
    if chunk & (chunk - 1):
        raise UserError(f"--chunk must be a power of two, not {chunk}")
    check_cache(write=False)
    path = Path(options.progress) if options.progress else cache_root() / "exhaustive.json"
    try:
        done = Done(path, restart=options.restart)
    except ValueError as error:
        raise UserError(f"--progress: {error}") from None
    try:
        done.save()  # fails now, rather than after the first chunk
    except OSError as error:
        raise UserError(
            f"--progress must be a file that can be written, not {str(path)!r} ({reason_of(error)})"
        ) from None
    outcomes: dict[str, Outcome] = {}

    def report_done() -> int:
        return report(list(outcomes.values()), to_stderr=options.json == "-", of=len(chosen))

    try:
        with at_hard_end(report_done), compiling("the small units"):
            missing, minutes = _run(options, chosen, done, chunk.bit_length() - 1, outcomes)
    # A worker that was killed may have left a partial folder in the cache.
    except (KeyboardInterrupt, WorkerKilled):
        sweep()
        if outcomes:
            report_done()
        raise
    code = report_done()
    if options.json:
        write_json(options.json, as_json(list(outcomes.values())))
    if missing:
        console = open_console(sys.stderr if options.json == "-" else sys.stdout)
        estimate = f", about {minutes:.0f} minutes" if minutes else ""
        console.print(f"{missing:,} inputs are left{estimate}; the same command goes on with them")
    return code


def _run(
    options: argparse.Namespace,
    chosen: list["ExhaustiveTask"],
    done: Any,
    chunk_bits: int,
    outcomes: dict[str, Outcome],
) -> tuple[int, float | None]:
    """Run tasks and show a bar with an estimate of the remaining time.

    Parameters
    ----------
    options : argparse.Namespace
        Options of the command.
    chosen : list of ExhaustiveTask
        Tasks to run.
    done : sim.bench.exhaustive.Progress
        Record of the finished chunks.
    chunk_bits : int
        Base-2 logarithm of the number of inputs in a chunk.
    outcomes : dict
        Receives the outcome of each task by its name.

    Returns
    -------
    inputs : int
        Number of inputs that remain.
    minutes : float or None
        Estimated time for them; None if no chunk has finished.
    """
    from vitruvian.sim.bench.exhaustive import run_tasks

    left_inputs = {task.name: task.inputs for task in chosen}
    began, speed, just_done = time.monotonic(), 0.0, 0
    total = sum(left_inputs.values())
    with Progress(total=total, counts=False) as bar:
        for task, left, inputs, result in run_tasks(
            chosen, progress=done, chunk_bits=chunk_bits, limit=options.limit, jobs=options.jobs
        ):
            now = time.monotonic()
            # A task begins and compiles its model, which must not count as comparing.
            if inputs == 0:
                began, just_done = now, 0
            just_done += inputs
            left_inputs[task.name] = min(left << chunk_bits, task.inputs)
            rest = sum(left_inputs.values())
            if just_done and now > began:
                speed = just_done / (now - began)
            bar.update(
                task.name,
                done=total - rest,
                note=f"{speed / 1e6:.1f} M/s, {rest / speed / 60:.0f} min left" if speed else "",
            )
            # A task yields an outcome after each chunk; the latest one contains the others.
            outcomes[task.name] = Outcome(
                unit="exhaustive",
                configuration=task.name,
                result=result,
                error=None,
                seconds=now - began,
            )
    rest = sum(left_inputs.values())
    return rest, rest / speed / 60 if speed else None

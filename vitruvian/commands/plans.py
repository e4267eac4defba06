"""The command ``plans``: how a library computes its matrix products, recorded on a GPU."""

import argparse
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from vitruvian.cli import write_json
from vitruvian.commands.options import add_json, at_least
from vitruvian.common.errors import UserError
from vitruvian.common.files import output_path
from vitruvian.common.progress import Progress

_DESCRIPTION = """\
Say how a library computes a matrix product: the steps, slices and restarts of its sums.

`list` prints the calls of PyTorch whose plans were measured on an H200, or those of a file, one
line each.

`record` runs the calls on the NVIDIA GPU of this machine, and writes their kernels, and results on
operands that are the same everywhere, into a folder. It needs PyTorch for CUDA and some minutes.

`fit` reads such a folder on any machine and finds the plan of each call: the candidate that returns
half of the results, and then the other half as well. It writes a table that
vitruvian.plans.load and vitruvian.torch.library(plans=FILE) take. A call that no candidate explains
is left out, and counted.
"""
_EPILOG = """\
Examples:
  vitruvian plans list --call 'mm fp16 *'
  vitruvian plans record recorded
  vitruvian plans fit recorded --out my_gpu.csv
"""


def register(name: str, commands: Any) -> None:
    """Add the command ``plans`` to the parser."""
    parser = commands.add_parser(name, description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument(
        "action",
        choices=("list", "record", "fit"),
        metavar="ACTION",
        help="Do this: list, record or fit.",
    )
    parser.add_argument(
        "folder", nargs="?", metavar="FOLDER", help="Record into this folder, or fit its calls."
    )
    parser.add_argument(
        "--call",
        metavar="PATTERN",
        help="List only calls with such a text; * and ? stand for any text.",
    )
    parser.add_argument("--plans", metavar="FILE", help="List the plans of this file.")
    parser.add_argument(
        "--calls",
        type=at_least(1, 10_000),
        metavar="N",
        help="Take about N calls, spread over all (default: all).",
    )
    parser.add_argument(
        "--out", type=output_path(), metavar="FILE", help="Write the plans of fit to this file."
    )
    add_json(parser, "the calls and their plans")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    own = {"list": ("plans", "call"), "record": ("calls",), "fit": ("calls", "out")}
    for name in ("plans", "call", "calls", "out"):
        if getattr(options, name) is not None and name not in own[options.action]:
            actions = " or ".join(action for action, names in own.items() if name in names)
            raise UserError(f"--{name} must come with {actions}")
    if (options.folder is None) != (options.action == "list"):
        some = "without" if options.action == "list" else "with"
        raise UserError(f"{options.action} must come {some} FOLDER")
    return {"list": _list, "record": _record, "fit": _fit}[options.action](options)


def _list(options: argparse.Namespace) -> int:
    from vitruvian.golden.plans import load, recorded

    plans = recorded() if options.plans is None else load(options.plans)
    pattern = options.call or "*"
    chosen = {call: plan for call, plan in plans.items() if fnmatch(str(call), pattern)}
    if not chosen:
        raise UserError(f"--call must select calls such as {next(iter(plans))}, not {pattern!r}")
    if options.json != "-":
        for call, plan in chosen.items():
            print(f"{call}: {plan}")
    _write_json(options, chosen)
    return 0


def _record(options: argparse.Namespace) -> int:
    try:
        import torch
    except ModuleNotFoundError:
        raise UserError("record needs PyTorch for CUDA (pip install torch)") from None
    if not torch.cuda.is_available():  # pyright: ignore
        raise UserError("record must run on a machine with an NVIDIA GPU; PyTorch finds none")
    if options.json:
        raise UserError("--json must come with list or fit")
    from vitruvian.flows.probes.library_record import record

    print(record(Path(options.folder), options.calls))
    return 0


def _fit(options: argparse.Namespace) -> int:
    from vitruvian.flows.probes.library_fit import fit, load, write

    if options.out is None:
        raise UserError("fit must come with --out FILE")
    machine, calls = load(Path(options.folder))
    calls = calls[:: -(-len(calls) // (options.calls or len(calls)))] if calls else []
    found: dict[Any, Any] = {}
    with Progress("fit", len(calls), after_s=2.0) as progress:
        for number, each in enumerate(calls):
            progress(str(each.call), number, len(calls))
            plan = fit(each, machine)
            if plan is not None:
                found[each.call] = plan
    write(Path(options.out), found)
    stream = sys.stderr if options.json == "-" else sys.stdout
    print(f"{options.out}: plans of {len(found)} of {len(calls)} calls ({machine})", file=stream)
    _write_json(options, found)
    return int(len(found) < len(calls))


def _write_json(options: argparse.Namespace, plans: Any) -> None:
    if options.json:
        rows = [
            {"call": str(call), "plan": str(plan), "rule": plan.rule, "evidence": plan.evidence}
            for call, plan in plans.items()
        ]
        write_json(options.json, {"calls": rows})

"""The command ``digits``: a network for handwritten digits on the core in hardware."""

import argparse
import time
from dataclasses import asdict
from typing import Any

from vitruvian.cli import write_json
from vitruvian.commands.options import add_json, at_least, compiling
from vitruvian.common.errors import UserError
from vitruvian.common.files import output_path
from vitruvian.common.progress import Progress
from vitruvian.common.table import counted, open_console
from vitruvian.wings.ascend.core import core_name

_DESCRIPTION = """Classify handwritten digits of 8 x 8 pixels on the core in hardware, compiled from
its RTL: a convolution of 3 x 3 by Im2Col, bias, ReLU, maximum of 2 x 2, a fully connected layer,
and the class with the largest sum, in one program for each batch of images. The bytes of every
layer are compared with golden functions, and all bytes with the simulator. The first digits are
those that the network was not trained on; more than 20 need scikit-learn."""

_EPILOG = """\
Examples:
  vitruvian digits
  vitruvian digits --images 1797 --resume digits.json
"""


def register(name: str, commands: Any) -> None:
    """Add the command to the parser."""
    from vitruvian.sim.kernels.digits.network import DIGITS, SAMPLE
    from vitruvian.sim.kernels.digits.run import MOST

    parser = commands.add_parser(name, description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument(
        "--images",
        type=at_least(1, DIGITS),
        default=SAMPLE,
        metavar="N",
        help="Classify so many images (default: %(default)s).",
    )
    parser.add_argument(
        "--core",
        type=core_name,
        default="tiny",
        metavar="CORE",
        help="Run on this core, tiny or plain (default: %(default)s).",
    )
    parser.add_argument(
        "--batch",
        type=at_least(1, MOST),
        default=100,
        metavar="N",
        help="Put so many images into a program (default: %(default)s).",
    )
    parser.add_argument(
        "--resume",
        type=output_path(),
        metavar="FILE",
        help="Record finished batches in this file, and do not run those again that it has "
        "(default: run all).",
    )
    add_json(parser, "the counts")
    parser.set_defaults(run=_digits)


def _digits(options: argparse.Namespace) -> int:
    from vitruvian.sim.kernels.digits.run import run_all
    from vitruvian.sim.rtl.core import CoreFault, model_key

    with compiling(f"the core {options.core}"):
        model_key(options.core)
    total, seconds = None, time.monotonic()
    task = f"digits on the core {options.core}"
    try:
        with Progress(task, total=options.images, after_s=2.0) as progress:
            batches = run_all(
                options.images, options.core, batch=options.batch, resume=options.resume
            )
            for done in batches:
                total = done if total is None else total + done
                progress.update(done=total.images)
    except (ValueError, CoreFault) as error:
        raise UserError(str(error)) from None
    assert total is not None
    seconds = time.monotonic() - seconds
    console = open_console()
    busy = ", ".join(f"{unit} {cycles / total.cycles:.1%}" for unit, cycles in total.busy.items())
    for line in (
        f"{counted(total.images, 'image')} on the core {options.core}: {total.same:,} classes are "
        f"golden's, {total.correct:,} are the labels ({total.correct / total.images:.2%})",
        f"{total.cycles:,} cycles, {total.cycles / total.images:,.0f} an image; busy: {busy}",
        f"{total.compared:,} bytes of all layers compared with golden functions: {total.differ:,} "
        f"differ; {total.simulated:,} bytes with the simulator: {total.differ_simulated:,} differ; "
        f"{seconds:.1f} s",
    ):
        console.print(line, markup=False, soft_wrap=True)
    if options.json:
        figures = {"core": options.core, "seconds": round(seconds, 2)}
        write_json(options.json, figures | asdict(total))
    return int(total.differ + total.differ_simulated > 0 or total.same < total.images)

"""The problem ``run`` of the command ``host``: a kernel on a board with a core."""

import argparse
import sys
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vitruvian.cli import write_json
from vitruvian.common.errors import UserError, WorkError
from vitruvian.common.progress import Progress
from vitruvian.wings.ascend.cce import add_kernel_options, cce_program

if TYPE_CHECKING:
    from vitruvian.sim.davinci.machine_code.image import ProgramImage

#: Name of the problem, and its part of the help.
PROBLEM = "run"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the problem to the parser of ``host``."""
    parser.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="Run this kernel in CCE C, or the folder of vitruvian assemble (with run).",
    )
    add_kernel_options(parser.add_argument_group("the kernel of run"))


def check(options: argparse.Namespace) -> None:
    """Raise UserError if there is no kernel to run."""
    if not options.file:
        raise UserError("host run must have a kernel: vitruvian host run FILE --port PORT")
    if not Path(options.file).exists():
        raise UserError(f"a kernel must be a file that exists, not {options.file!r}")


def run(options: argparse.Namespace, client: Any) -> int:
    """Run the kernel on the board behind a client; return 1 if a byte differs.

    Raises
    ------
    UserError
        If the kernel, the board or the image is not fit for the others, or if the line is cut or
        the core stops: the exit code 1 says that a byte differs, and nothing else.
    """
    from vitruvian.sim.host.core import CoreOnBoard, run_program

    try:
        board = CoreOnBoard.find(client)
        image, right = _image(options, board.name)
        with Progress("run, bytes", after_s=2.0) as progress:
            done = run_program(
                board,
                image.memory,
                image.words,
                progress=lambda sent, total: progress.update(done=sent, total=total),
            )
    except WorkError as error:
        raise UserError(str(error)) from None
    outputs = {tensor["name"]: _bytes(done.memory, tensor) for tensor in image.tensors}
    differ = sum(int((data != right[name]).sum()) for name, data in outputs.items() if right)
    traffic = client.traffic
    cycles = done.counters["cycles"]
    busy = ", ".join(
        f"{unit.upper()} {n:,}" for unit, n in done.counters.items() if n and unit != "cycles"
    )
    out = sys.stderr if options.json == "-" else sys.stdout
    memory = f"core {board.name}, {board.memory_bytes:,} bytes of memory"
    print(f"{options.port}: {memory}", file=out)
    print(f"{options.file}: {cycles:,} cycles ({busy}); {len(image.words):,} words", file=out)
    print(
        f"{traffic.sent + traffic.received:,} bytes, {traffic.refused + traffic.unanswered} "
        f"repeated requests, {done.seconds:.2f} s",
        file=out,
    )
    count = sum(len(data) for data in outputs.values()) if right else 0
    if right:
        print(f"{count:,} bytes compared with the simulator, {differ:,} differ", file=out)
    if options.json:
        document: dict[str, Any] = {
            "port": options.port,
            "core": board.name,
            "memory_bytes": board.memory_bytes,
            "words": len(image.words),
            "counters": done.counters,
            "seconds": done.seconds,
            **vars(traffic),
            "compared": count,
            "differences": differ,
        }
        write_json(options.json, document)
    return int(differ > 0)


def _image(options: argparse.Namespace, core: str) -> "tuple[ProgramImage, dict[str, np.ndarray]]":
    """Return the machine code, and the bytes of every tensor at the end, if they are known."""
    from vitruvian.sim.davinci import Deadlock, simulate
    from vitruvian.sim.davinci.machine_code.core import core_product, image_of
    from vitruvian.sim.davinci.machine_code.image import ProgramImage
    from vitruvian.sim.rtl.core import core_names

    if core not in core_names():
        raise UserError(f"board must have a core of {', '.join(core_names())}, not {core!r}")
    try:
        if Path(options.file).is_dir():
            return ProgramImage.read(Path(options.file)), {}
        given: dict[str, Any] = {
            **vars(options),
            "cube": "golden",
            "expect": [],
            "rtol": None,
            "atol": None,
        }
        program, _ = cce_program(argparse.Namespace(**given))
        image = image_of(program, core)
        with Progress("simulating", lines=False, counts=False, after_s=2.0):
            report = simulate(program, cube=core_product(core))
    except (ValueError, Deadlock) as error:
        raise UserError(str(error)) from None
    if report.findings:
        raise UserError(
            f"{options.file} must pass the checks of the simulator, which found "
            f"{len(report.findings)}; vitruvian cce prints them"
        )
    right = {
        name: np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        for name, array in report.outputs.items()
    }
    return image, right


def _bytes(memory: np.ndarray, tensor: dict[str, Any]) -> np.ndarray:
    """Return the bytes of a tensor in global memory."""
    from vitruvian.sim.davinci.isa.operands import DTYPES

    kind: Any = DTYPES[tensor["dtype"]]
    count = prod(tensor["shape"]) * np.dtype(kind).itemsize
    return memory[tensor["byte"] : tensor["byte"] + count]

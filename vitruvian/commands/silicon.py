"""``silicon``: golden and RTL against a file of outputs measured on a GPU."""

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from vitruvian.cli import write_json
from vitruvian.commands.options import add_json, compiling
from vitruvian.errors import UserError
from vitruvian.sim.verify.check import Outcome

__all__ = ["register"]


_DESCRIPTION = """\
Compare golden and the compiled RTL with what a GPU's matrix instruction gave, bit for bit.

A file is an .npz called <preset>_<format>.npz, as h100_fp8e4m3.npz, or
<preset>_<format>_<format>.npz for two fp8 formats. It holds
  a, b            (N, K)  operands of N dot products of K terms
  c               (N,)    addends; C = 0 if there is none
  d_fp32, d_fp16  (N,)    what the GPU gave; one of them or both
as codes of the format (uint16 for fp16 and bf16, uint8 for fp8, uint32 for tf32 and fp32;
signed integers of the width are taken as well), as float16, float32 or ml_dtypes arrays, or as
uint32 fp32 bit patterns of values that the format holds. At most 256 MiB of arrays are read.
"""

_EPILOG = """\
Example: vitruvian silicon h100_fp16.npz
  vitruvian silicon my_gpu.npz --preset h100 --input fp8e4m3

docs/units/silicon.md shows how to make such a file.
"""


def register(name: str, commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        name,
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="The .npz files to compare with.")
    parser.add_argument(
        "--preset", help="The GPU, as v100, a100, ada, h100 or b200 (default: by the file's name)."
    )
    parser.add_argument(
        "--input",
        metavar="FORMAT",
        help="The input format, or two joined by _ (default: by the file's name).",
    )
    add_json(parser, "the rows")
    parser.set_defaults(run=_silicon)


def _silicon(options: argparse.Namespace) -> int:
    from vitruvian.commands.table import as_json, report
    from vitruvian.sim.bench import silicon

    def note(text: str) -> None:
        print(f"note: {text}", file=sys.stderr, flush=True)

    given = {"preset": options.preset, "formats": options.input, "note": note}
    outcomes = []
    for name in options.files:
        try:
            sets = silicon.load(Path(name), **given)
        except (OSError, ValueError, TypeError) as error:
            raise UserError(f"{name}: {error}") from None
        for data in sets:
            for unit, run in silicon.runs(data):
                started = time.monotonic()
                with compiling(f"{unit} {data.name}"):
                    result = run(data)
                outcomes.append(
                    Outcome(
                        unit=unit,
                        configuration=f"{data.name} measured",
                        result=result,
                        error=None,
                        seconds=time.monotonic() - started,
                    )
                )
    code = report(outcomes, to_stderr=options.json == "-")
    if options.json:
        write_json(options.json, as_json(outcomes))
    return code

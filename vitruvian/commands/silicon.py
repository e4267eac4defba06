"""The command ``silicon``, which compares golden and RTL with outputs measured on a GPU."""

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from vitruvian.cli import write_json
from vitruvian.commands.options import add_json, compiling
from vitruvian.common.errors import UserError
from vitruvian.common.files import reason_of
from vitruvian.sim.verify.check import Outcome

_DESCRIPTION = """\
Compare golden and the compiled RTL with the results of a GPU's matrix instruction, bit for bit.

The name of a file is <preset>_<format>.npz, such as h100_fp8e4m3.npz, or
<preset>_<format>_<format>.npz for two fp8 formats. It contains
  a, b            (N, K)  operands of N dot products of K terms
  c               (N,)    addends; C = 0 if this array is missing
  d_fp32, d_fp16  (N,)    results of the GPU; one of the two arrays or both
as codes of the format (uint16 for fp16 and bf16, uint8 for fp8, uint32 for tf32 and fp32;
signed integers of that width are accepted as well), as float16, float32 or ml_dtypes arrays, or
as uint32 bit patterns in fp32 of values that the format holds. At most 256 MiB of arrays are read.
"""

_EPILOG = """\
Examples:
  vitruvian silicon h100_fp16.npz
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
    parser.add_argument("files", nargs="+", metavar="FILE", help="Compare with these .npz files.")
    parser.add_argument(
        "--preset",
        metavar="GPU",
        help="Compare with the presets of this GPU: v100, a100, ada, h100 or b200, for example "
        "(default: by the file's name).",
    )
    parser.add_argument(
        "--input",
        metavar="FORMAT",
        help="Read operands of this format, or of two joined by _ (default: by the file's name).",
    )
    add_json(parser, "the rows")
    parser.set_defaults(run=_silicon)


def _silicon(options: argparse.Namespace) -> int:
    from vitruvian.commands.table import as_json, report
    from vitruvian.sim.bench import silicon

    def note(text: str) -> None:
        print(f"note: {text}", file=sys.stderr, flush=True)

    names = {"preset": options.preset, "formats": options.input}
    outcomes: list[Outcome] = []
    for name in options.files:
        try:
            sets = silicon.load(Path(name), note=note, **names)
        except (OSError, ValueError, TypeError) as error:
            raise UserError(f"{name}: {reason_of(error)}") from None
        for data in sets:
            # Golden is one row, and each unit of the RTL that has the format is another one.
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

"""``vitruvian sparse triangles``: count the triangles of a graph, without a simulated machine."""

import argparse
import sys
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from vitruvian.cli import write_json
from vitruvian.common.errors import UserError
from vitruvian.common.files import write_whole
from vitruvian.common.table import open_console
from vitruvian.common.validate import shortened

if TYPE_CHECKING:
    from vitruvian.sparse.matrices import Given

#: What stands in the place of an application
NAME = "triangles"

#: Options of the simulated machine and the values that they have if they are not given
_MACHINE = {"arch": None, "reorder": "none", "blocked": 1}


def run_triangles(options: argparse.Namespace, given: "Given") -> int:
    """Count, print and write; options of the machine are refused."""
    import numpy as np

    from vitruvian.golden.sparse import triangles

    for name, value in _MACHINE.items():
        if getattr(options, name) != value:
            raise UserError(f"--{name} must come with an application of the machine, not {NAME}")
    counts = triangles(given.matrix)
    total, rows = int(counts.sum()) // 3, len(counts)
    console = open_console(sys.stderr if options.json == "-" else sys.stdout)
    line = f"{NAME} of {Path(options.matrix).name}: {rows:,} rows, {total:,} triangles"
    if total:
        place = int(counts.argmax())
        vertex = place if given.vertices is None else given.vertices[place]
        line += f"; at most {counts.max():,} at a vertex, {shortened(str(vertex))}"
    console.print(line, markup=False, soft_wrap=True)
    if options.out:
        buffer = BytesIO()
        np.save(buffer, counts)
        write_whole(Path(options.out) / "values.npy", buffer.getvalue())
        console.print(str(Path(options.out) / "values.npy"), markup=False, soft_wrap=True)
        if given.vertices is not None:
            names = "".join(f"{name}\n" for name in given.vertices)
            write_whole(Path(options.out) / "vertices.txt", names)
    if options.json:
        write_json(options.json, {"application": NAME, "rows": rows, "triangles": total})
    return 0

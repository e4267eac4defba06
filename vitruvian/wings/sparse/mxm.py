"""``vitruvian sparse mxm``: multiply two sparse matrices, without a simulated machine."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitruvian.cli import write_json
from vitruvian.common.errors import UserError
from vitruvian.common.progress import Progress
from vitruvian.common.table import open_console
from vitruvian.common.validate import one_of

if TYPE_CHECKING:
    from vitruvian.sparse import MatrixProduct
    from vitruvian.sparse.matrices import Given

#: What stands in the place of an application
NAME = "mxm"

#: The semiring if none is given: sums of products
_SEMIRING = "mma"


def check(options: argparse.Namespace) -> None:
    """Refuse a product without a second matrix, and anything else with one.

    Raises
    ------
    UserError
        If an option is missing or does not fit.
    """
    from vitruvian.golden.sparse.semirings import SEMIRINGS

    if options.semiring is not None:
        one_of("--semiring", options.semiring, SEMIRINGS)
    if options.application == NAME:
        if options.other is None:
            raise UserError(f"{NAME} must have two files, A and B, not one")
        return
    if options.other is not None:
        raise UserError(f"a second FILE must come with {NAME}, not with {options.application}")
    if options.semiring is not None:
        raise UserError(f"--semiring must come with {NAME}, not with {options.application}")


def read(options: argparse.Namespace, path: str, **conventions: Any) -> "Given":
    """Return the matrix of a file, whose weights are those of ``--weight``."""
    from vitruvian.sparse.matrices import given_matrix

    weight = options.weight or "weight"
    weight = None if weight.lower() == "none" else weight
    matrix = given_matrix(path, weight=weight, **conventions)
    if options.weight and matrix.vertices is None:
        raise UserError(f"--weight must come with a list of edges, not with {path}")
    return matrix


def multiplied(options: argparse.Namespace, progress: Progress) -> "MatrixProduct":
    """Read both matrices and multiply them."""
    from vitruvian.sparse.multiplying import multiply, reading

    semiring = options.semiring or _SEMIRING
    conventions = reading(semiring)
    progress.update(note=f"reads {options.matrix}")
    first = read(options, options.matrix, **conventions)
    progress.update(note=f"reads {options.other}")
    second = read(options, options.other, **conventions)
    progress.update(note="multiplies")
    return multiply(first, second, semiring)


def show(options: argparse.Namespace, product: "MatrixProduct") -> None:
    """Print the size of the product, and write the files."""
    from vitruvian.wings.sparse.output import write_names

    matrix, semiring = product.matrix, options.semiring or _SEMIRING
    rows, columns = matrix.shape
    paths: list[Path] = []
    if options.out:
        # First the file that may be refused: the form has no infinity.
        paths.append(Path(options.out) / "product.mtx")
        product.write(paths[0])
        paths += write_names(options.out, product.vertices)
    if options.values:
        paths.append(Path(options.values))
        product.write(paths[-1])
    console = open_console(sys.stderr if options.json == "-" else sys.stdout)
    names = f"{Path(options.matrix).name} and {Path(options.other).name}"
    line = f"{NAME} of {names} ({semiring}): {rows:,} × {columns:,}, {matrix.nonzeros:,} nonzeros"
    if matrix.nonzeros:
        values = matrix.row_values
        line += f"; values from {values.min():.6g} to {values.max():.6g}"
    console.print(line, markup=False, soft_wrap=True)
    for path in paths:
        console.print(str(path), markup=False, soft_wrap=True)
    if options.json:
        figures = {"application": NAME, "semiring": semiring, "rows": rows, "columns": columns}
        write_json(options.json, figures | {"nonzeros": matrix.nonzeros})

"""The command ``sparse``: run a sparse application, and simulate it on SIDA."""

import argparse
import sys
import warnings
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitruvian.cli import write_json
from vitruvian.commands.options import add_json, add_seed, add_size, at_least
from vitruvian.common.errors import UserError
from vitruvian.common.files import output_path, read_bounded, write_whole
from vitruvian.common.npz import read_all_arrays
from vitruvian.common.table import open_console, print_table
from vitruvian.common.validate import one_of, shortened
from vitruvian.wings.sparse import triangles

if TYPE_CHECKING:
    import numpy as np
    from rich.console import Console

    from vitruvian.sim.sparse.report import SparseReport
    from vitruvian.sparse import Result
    from vitruvian.sparse.matrices import Given

_DESCRIPTION = """\
Run a sparse application on the golden models, and simulate the run on SIDA, a machine
that reads the matrix once for two iterations (Zhang 2024, ch. 4). APPLICATION is one of
pagerank, kcore, bfs, sssp, kmeans, knn, labelprop, gcn, gmres, cg, bicgstab and
components, or triangles, which counts them without the machine. An element (i, j) of
the matrix is an edge from vertex i to vertex j. Vertices count from 0."""

_EPILOG = """\
Example: vitruvian sparse pagerank GRAPH.mtx --reorder windowed --blocked 16 --out pagerank
         vitruvian sparse sssp GRAPH.mtx --source 5 --arch machine.toml
         vitruvian sparse cg SYSTEM.mtx --right-side b.txt --tolerance 1e-10
         vitruvian sparse gcn GRAPH.mtx --size 32x16x8 --json -"""

#: Sizes of the features of gcn, from layer to layer
_FEATURES = (16, 16, 16)


def register(name: str, commands: Any) -> None:
    """Add the command ``sparse`` to the parser."""
    parser = commands.add_parser(name, description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("application", metavar="APPLICATION", help="Run this application.")
    parser.add_argument(
        "matrix",
        metavar="FILE",
        help="Read the matrix from this Matrix Market file (.mtx, also .gz or .bz2), or from this "
        "list of edges (.csv, .tsv, .edges, .txt), which has one edge in a line: source, target "
        "and weight, or columns that a header names.",
    )
    parser.add_argument(
        "--weight",
        metavar="NAME",
        help="Take the weights of a list of edges from this column (default: weight); none gives "
        "1 to all edges.",
    )
    _add_machine(parser.add_argument_group("machine"))
    _add_application(parser.add_argument_group("application"))
    parser.add_argument(
        "--out",
        type=output_path(folder=True),
        metavar="FOLDER",
        help="Write the plots of bandwidth and buffer over time, and the values, into this folder; "
        "for a list of edges also the names of the vertices in the order of the values.",
    )
    add_json(parser, "the figures")
    parser.set_defaults(run=_run)


def _add_machine(group: Any) -> None:
    """Add the options of the simulated machine."""
    group.add_argument(
        "--arch",
        metavar="FILE",
        help="Simulate the machine of this TOML file (default: that of the thesis).",
    )
    group.add_argument(
        "--reorder",
        default="none",
        metavar="ORDER",
        help="Order rows and columns of the simulated machine by none, triangular (towards an "
        "upper triangle) or windowed (neighbours near each other) (default: %(default)s).",
    )
    group.add_argument(
        "--blocked",
        type=at_least(1, 256),
        default=1,
        metavar="N",
        help="Store the simulated machine's matrix in blocks with a side of 1, 2, 4, …, "
        "128 or 256 (default: %(default)s, single nonzeros).",
    )


def _add_application(group: Any) -> None:
    """Add the options that go to the application."""
    add = group.add_argument
    add(
        "--source",
        metavar="VERTEX",
        help="Start bfs, sssp or knn at this vertex: a number, or its name in a list of edges "
        "(default: the first one).",
    )
    add("--hops", type=at_least(1), metavar="N", help="Take N hops for knn (default: 4).")
    add(
        "--damping",
        type=_real,
        metavar="X",
        help="Follow an edge with this probability for pagerank (default: 0.85).",
    )
    add(
        "--clusters",
        type=at_least(1),
        metavar="N",
        help="Choose N centers for kmeans (default: 8).",
    )
    add(
        "--first",
        metavar="VERTEX",
        help="Choose this point as the first center for kmeans, named as for --source (default: a "
        "random one).",
    )
    add(
        "--directed",
        action="store_true",
        default=None,
        help="Count incoming and outgoing edges for kcore (default: if the matrix is not "
        "symmetric).",
    )
    add(
        "--labels",
        metavar="FILE",
        help="Read the class of each vertex for labelprop from this file (.npy, or text with one "
        "number per line): -1 if it is unknown, else counted from 0.",
    )
    add(
        "--right-side",
        metavar="FILE",
        help="Read the right side b of gmres, cg or bicgstab from this file (.npy, or text with "
        "one number per line; default: the row sums, whose solution is a vector of ones).",
    )
    add(
        "--restart-after",
        type=at_least(1),
        metavar="N",
        help="Restart gmres after N products (default: 10).",
    )
    add(
        "--tolerance",
        type=_real,
        metavar="X",
        help="Stop pagerank, labelprop, gmres, cg or bicgstab at this tolerance (default: 1e-6, "
        "1e-9 or 1e-8; units/sparse_machine of the documentation says of what).",
    )
    add(
        "--iterations",
        type=at_least(1),
        metavar="N",
        help="Stop pagerank, labelprop, gmres, cg or bicgstab after N iterations (default: 100 "
        "or 1000).",
    )
    add_size(
        group,
        "Take features of these sizes for gcn, from layer to layer, with random values "
        f"(default: {'x'.join(map(str, _FEATURES))}).",
    )
    add_seed(group)


def _real(text: str) -> float:
    """Return the number that a text denotes; this function is an argument type."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, not {text!r}") from None


#: Parameter of an application by the option's name; the others have the same name.
_PARAMETERS = {"restart_after": "restart", "right_side": "b"}

#: Options that go to the application as they are, if they are given.
_PASSED = (
    "source",
    "hops",
    "damping",
    "clusters",
    "first",
    "directed",
    "labels",
    "right_side",
    "restart_after",
    "tolerance",
    "iterations",
)


def _run(options: argparse.Namespace) -> int:
    from vitruvian.sim.sparse.architecture import load_architecture
    from vitruvian.sim.sparse.pattern import BLOCK_SIDES
    from vitruvian.sim.sparse.reordering import ORDERS
    from vitruvian.sparse import solve
    from vitruvian.sparse.options import OPTIONS

    one_of("APPLICATION", options.application, (*OPTIONS, triangles.NAME))
    one_of("--reorder", options.reorder, ORDERS)
    if options.blocked not in BLOCK_SIDES:
        raise UserError(
            f"--blocked must be one of {', '.join(map(str, BLOCK_SIDES))}, not {options.blocked}"
        )
    try:
        machine = load_architecture(options.arch) if options.arch else load_architecture()
        allowed = OPTIONS.get(options.application, {})
        given = _given(options, allowed)
        if options.application == triangles.NAME:
            return triangles.run_triangles(options, _matrix(options))
        # Recorded, so that each warning is one line even if Python is told to hide warnings.
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            matrix = _matrix(options)
            for name in ("source", "first"):
                if name in given:
                    given[name] = _vertex(f"--{name}", given[name], matrix)
            # Solvers and networks need operands for which most users have no file.
            given |= _made(options, allowed, matrix.matrix, given)
            result = solve(
                options.application,
                matrix,
                simulate=True,
                architecture=machine,
                reorder=options.reorder,
                block=options.blocked,
                **given,
            )
    except (ValueError, TypeError) as error:
        raise UserError(str(error)) from None
    for warning in caught:
        print(
            # The library's message names its parameter; a user of the command knows the option.
            f"warning: {warning.message}".replace("weight=None", "--weight none"),
            file=sys.stderr,
        )
    _show(options, result)
    # A run that has not converged is a result; a breakdown of the method is not.
    return 1 if result.failure else 0


def _matrix(options: argparse.Namespace) -> "Given":
    """Return the matrix of the file."""
    from vitruvian.sparse.matrices import given_matrix
    from vitruvian.sparse.solving import conventions

    weight = options.weight or "weight"
    weight = None if weight.lower() == "none" else weight
    matrix = given_matrix(options.matrix, weight=weight, **conventions(options.application))
    if options.weight and matrix.vertices is None:
        raise UserError(f"--weight must come with a list of edges, not with {options.matrix}")
    return matrix


def _vertex(option: str, text: str, matrix: "Given") -> Any:
    """Return the vertex that an option names."""
    if matrix.vertices is None:
        if not text.isascii() or not text.isdigit():
            raise UserError(f"{option} must be a whole number, 0 or more, not {text!r}")
        return int(text)
    # A list of edges may have vertices with numbers or texts as names; an option is always text.
    named = {str(name): name for name in matrix.vertices}
    return named.get(text, text)


def _given(options: argparse.Namespace, allowed: dict[str, Any]) -> dict[str, Any]:
    """Return the application's parameters among the options; refuse those of others."""
    given: dict[str, Any] = {}
    for option in _PASSED:
        value = getattr(options, option)
        if value is None:
            continue
        name = _PARAMETERS.get(option, option)
        if name not in allowed:
            shown = option.replace("_", "-")
            raise UserError(
                f"--{shown} must come with another application, not with {options.application}"
            )
        if name in ("labels", "b"):
            value = _numbers(f"--{option.replace('_', '-')}", value)
        if name == "labels":
            # Text files hold their numbers as floats.
            value = _whole(value)
        given[name] = value
    if options.size is not None and "features" not in allowed:
        raise UserError(f"--size must come with gcn, not with {options.application}")
    return given


def _made(
    options: argparse.Namespace, allowed: dict[str, Any], matrix: Any, given: dict[str, Any]
) -> dict[str, Any]:
    """Return the parameters that the command makes up: operands that no file gives."""
    import numpy as np

    made: dict[str, Any] = {}
    if "labels" in allowed and "labels" not in given:
        raise UserError("labelprop must have --labels FILE")
    if "b" in allowed and "b" not in given:
        # The row sums, A·1: the solution is then a vector of ones.
        made["b"] = np.bincount(matrix.rows, matrix.row_values, minlength=matrix.shape[0])
    if "seed" in allowed:
        made["seed"] = options.seed
    if "features" in allowed:
        rng, sizes = np.random.default_rng(options.seed), options.size or _FEATURES
        if len(sizes) < 2 or 0 in sizes:
            raise UserError(
                "--size must have at least two sizes from 1 on for gcn, "
                f"not {'x'.join(map(str, sizes))}"
            )
        made["features"] = rng.standard_normal((matrix.shape[0], sizes[0]))
        made["weights"] = [rng.standard_normal(shape) for shape in pairwise(sizes)]
    return made


def _whole(labels: "np.ndarray") -> "np.ndarray":
    """Return the numbers of a text as integers, if they are whole."""
    import numpy as np

    if labels.dtype.kind != "f" or not (labels == labels.round()).all():
        return labels
    # From 2^53 on, a float64 does not tell neighbouring integers apart.
    large = labels[np.abs(labels) >= 2**53]
    if large.size:
        raise UserError(f"labels must be whole numbers below 2^53, not {large[0]:g}")
    return labels.astype(np.int64)


def _numbers(option: str, path: str) -> "np.ndarray":
    """Read a vector from a file; ``option`` is named in messages."""
    import numpy as np

    try:
        if path.endswith(".npy"):
            # A single array has the empty name; an archive has names.
            arrays = read_all_arrays(path, thing="file")
            if "" not in arrays:
                raise UserError("an archive of arrays")
            return arrays[""]
        with warnings.catch_warnings(action="ignore"):  # that a file is empty
            return np.loadtxt(BytesIO(read_bounded(path, thing="file")), ndmin=1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UserError(f"{option} must be a file of numbers, not {path!r} ({reason})") from None


def _show(options: argparse.Namespace, result: "Result") -> None:
    """Print the outcome and the report, and write the files."""
    report = result.report
    console = open_console(sys.stderr if options.json == "-" else sys.stdout)
    for line in _outcome(options, result):
        console.print(line, markup=False, soft_wrap=True)
    if report.iterations:
        _print_report(console, report)
    if options.out:
        for path in _write(options.out, result):
            console.print(str(path), markup=False, soft_wrap=True)
    if options.json:
        write_json(options.json, _figures(result))


def _outcome(options: argparse.Namespace, result: "Result") -> list[str]:
    """Return lines about the values."""
    figures = result.report.figures()
    name = Path(options.matrix).name
    plural = "" if result.iterations == 1 else "s"
    ended = "converged" if result.converged else result.failure or "not converged"
    return [
        f"{result.application} of {name}: {figures['rows']:,} rows, "
        f"{figures['nonzeros']:,} nonzeros",
        f"{ended} after {result.iterations:,} iteration{plural}; {_summary(result)}",
        *(
            []
            if result.residual is None
            else [f"residual ‖b − A·x‖/‖b‖ of these values: {result.residual:.3g}"]
        ),
    ]


def _summary(result: "Result") -> str:
    """Return the range of the values and its places."""
    import numpy as np

    values = result.values
    if values.dtype == bool:
        return f"{int(values.sum()):,} of {values.size:,} vertices are near"
    finite = values[np.isfinite(values)]
    if not len(finite):
        return "no value is finite"
    text = f"values from {finite.min():.6g} to {finite.max():.6g}"
    if values.ndim == 1:
        # Distances of vertices that cannot be reached are infinite.
        largest = int(np.where(np.isfinite(values), values, -np.inf).argmax())
        # The values of k-means are centers, which are no vertices of the list.
        names = None if result.application == "kmeans" else result.vertices
        text += f", the largest at {largest if names is None else shortened(str(names[largest]))}"
    rest = values.size - finite.size
    return text + (f"; {rest:,} of {values.size:,} are not finite" if rest else "")


def _print_report(console: "Console", report: "SparseReport") -> None:
    """Print times, traffic and energy of SIDA beside the baseline and the oracle."""
    from vitruvian.sim.sparse.report import TRAFFIC

    figures: dict[str, Any] = report.figures()
    mega, clock = 1e6, float(report.architecture.clock_hz)
    energy, other = report.energy, report.baseline_energy
    rows = [
        (
            "time [µs]",
            f"{report.seconds * mega:,.3f}",
            f"{float(report.baseline.cycles) / clock * mega:,.3f}",
            f"{float(report.oracle.cycles) / clock * mega:,.3f}",
        ),
        (
            "traffic [MB]",
            f"{report.memory_bytes / mega:,.3f}",
            f"{report.baseline.memory_bytes / mega:,.3f}",
            f"{report.oracle.memory_bytes / mega:,.3f}",
        ),
        # The oracle bounds time and traffic, and has no energy.
        ("energy [mJ]", f"{energy.joules * 1e3:,.4f}", f"{other.joules * 1e3:,.4f}", "–"),
    ]
    kinds = (("memory", "memory"), ("buffer", "buffer"), ("cores", "compute"))
    for label, key in kinds:
        rows.append(
            (
                f"  {label}",
                f"{getattr(energy, key) * 1e3:,.4f}",
                f"{getattr(other, key) * 1e3:,.4f}",
                "–",
            )
        )
    machine = report.architecture.name
    print_table(
        console, ("run", machine, "baseline", "oracle"), rows, right=(machine, "baseline", "oracle")
    )
    sweeps = ", ".join(
        f"{figures[f'{kind}_sweeps']:,} {text}"
        for kind, text in (
            ("oei", "with two products (OEI)"),
            ("stream", "with a product and its transpose"),
            ("product", "with one product"),
            ("vectors", "of vectors"),
        )
        if figures[f"{kind}_sweeps"]
    )
    traffic = ", ".join(f"{kind} {report.traffic[kind] / mega:,.3f}" for kind in TRAFFIC)
    for line in (
        f"speedup over the baseline {report.speedup:.3f}×, over one of single nodes "
        f"{report.single_speedup:.3f}×, share of the oracle "
        f"{report.oracle_share:.1%}, bandwidth in use {report.bandwidth_share:.1%}, "
        f"{report.useful_bandwidth_share:.1%} without reloads",
        f"buffer: at most {report.peak_buffer_bytes / 2**20:,.3f} of "
        f"{report.architecture.buffer_bytes / 2**20:,.3f} MiB; evicted "
        f"{figures['evicted_bytes'] / mega:,.3f} MB, "
        f"repacked {figures['repacked_bytes'] / mega:,.3f} MB",
        f"traffic by kind [MB]: {traffic}",
        f"storage of both orders: {report.storage_share:.1%} of CSC and CSR",
        f"sweeps: {sweeps}",
    ):
        console.print(line, markup=False, soft_wrap=True)


def _write(folder: str, result: "Result") -> list[Path]:
    """Write the values and the plots; return the paths."""
    import numpy as np

    buffer = BytesIO()
    np.save(buffer, result.values)
    paths = [Path(folder) / "values.npy"]
    write_whole(paths[0], buffer.getvalue())
    if result.vertices is not None:
        paths.append(Path(folder) / "vertices.txt")
        write_whole(paths[1], "".join(f"{name}\n" for name in result.vertices))
    if not result.report.iterations:
        return paths
    from vitruvian.sim.sparse.plot import write_plots

    return [*paths, *write_plots(result.report, folder)]


def _figures(result: "Result") -> dict[str, Any]:
    """Return the figures for JSON."""
    figures: dict[str, Any] = {
        "application": result.application,
        "iterations": result.iterations,
        "converged": result.converged,
        "failure": result.failure,
        "residual": result.residual,
        "report": result.report.figures(),
    }
    if result.report.iterations:
        cycles, share = result.report.bandwidth()
        ends, csr, csc = result.report.occupancy()
        figures["bandwidth"] = {"cycles": cycles.tolist(), "share": share.tolist()}
        figures["occupancy"] = {
            "cycles": ends.tolist(),
            "csr_bytes": csr.tolist(),
            "csc_bytes": csc.tolist(),
        }
    return figures

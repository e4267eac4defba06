"""The options of the command ``sparse``, and what they mean for an application."""

import argparse
import warnings
from io import BytesIO
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from vitruvian.commands.options import add_seed, add_size, at_least
from vitruvian.common.errors import UserError
from vitruvian.common.files import read_bounded
from vitruvian.common.npz import read_all_arrays

if TYPE_CHECKING:
    import numpy as np

    from vitruvian.sparse.matrices import Given

#: Sizes of the features of gcn, from layer to layer
_FEATURES = (16, 16, 16)

#: Options of the simulated machine and the values that they have if they are not given
_MACHINE = {
    "arch": None,
    "reorder": "none",
    "blocked": 1,
    "memory": "none",
    "dram_simulator": None,
}

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


def add_machine(group: Any) -> None:
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
    group.add_argument(
        "--memory",
        default="none",
        metavar="NAME",
        help="Simulate a memory with banks, rows and refresh: hbm2, or a TOML file; none is a bare "
        "bandwidth (default: %(default)s).",
    )
    group.add_argument(
        "--dram-simulator",
        metavar="FILE",
        help="Take the times of --memory from DRAMsim3, whose program dramsim3main this is "
        "(default: our model).",
    )


def add_application(group: Any) -> None:
    """Add the options that go to the application."""
    add = group.add_argument
    add(
        "--source",
        metavar="VERTEX",
        help="Start bfs, sssp or knn at this vertex: a number, or its name in a list of edges "
        "(default: the first one).",
    )
    add(
        "--semiring",
        metavar="NAME",
        help="Multiply by this semiring for mxm: mma, minplus, maxplus, minmul, maxmul, minmax, "
        "maxmin, orand or aril (default: mma, sums of products).",
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


def refuse_machine(options: argparse.Namespace) -> None:
    """Refuse the options of the machine for what does not run on it."""
    for name, value in _MACHINE.items():
        if getattr(options, name) != value:
            option = name.replace("_", "-")
            raise UserError(
                f"--{option} must come with an application of the machine, "
                f"not {options.application}"
            )


def vertex(option: str, text: str, matrix: "Given") -> Any:
    """Return the vertex that an option names."""
    if matrix.vertices is None:
        if not text.isascii() or not text.isdigit():
            raise UserError(f"{option} must be a whole number, 0 or more, not {text!r}")
        return int(text)
    # A list of edges may have vertices with numbers or texts as names; an option is always text.
    named = {str(name): name for name in matrix.vertices}
    return named.get(text, text)


def given(options: argparse.Namespace, allowed: dict[str, Any]) -> dict[str, Any]:
    """Return the application's parameters among the options; refuse those of others."""
    found: dict[str, Any] = {}
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
        found[name] = value
    if options.size is not None and "features" not in allowed:
        raise UserError(f"--size must come with gcn, not with {options.application}")
    return found


def made(
    options: argparse.Namespace, allowed: dict[str, Any], matrix: Any, given: dict[str, Any]
) -> dict[str, Any]:
    """Return the parameters that the command makes up: operands that no file gives."""
    import numpy as np

    operands: dict[str, Any] = {}
    if "labels" in allowed and "labels" not in given:
        raise UserError("labelprop must have --labels FILE")
    if "b" in allowed and "b" not in given:
        # The row sums, A·1: the solution is then a vector of ones.
        operands["b"] = np.bincount(matrix.rows, matrix.row_values, minlength=matrix.shape[0])
    if "seed" in allowed:
        operands["seed"] = options.seed
    if "features" in allowed:
        rng, sizes = np.random.default_rng(options.seed), options.size or _FEATURES
        if len(sizes) < 2 or 0 in sizes:
            raise UserError(
                "--size must have at least two sizes from 1 on for gcn, "
                f"not {'x'.join(map(str, sizes))}"
            )
        operands["features"] = rng.standard_normal((matrix.shape[0], sizes[0]))
        operands["weights"] = [rng.standard_normal(shape) for shape in pairwise(sizes)]
    return operands


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

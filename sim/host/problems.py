"""Problems that a board solves: a matrix product, shortest paths, and handwritten digits."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.common.extras import need
from vitruvian.common.validate import one_of
from vitruvian.golden.fp import from_float, to_float

from .board import Board
from .products import expected, matmul, operations_of, precisions_of

#: Neurons of the hidden layer of the network for digits, and digits that it is trained on.
HIDDEN, TRAINED = 32, 1198
_MOST = {"matmul": 1024, "apsp": 128, "digits": 1797 - TRAINED}
#: Largest weight of an edge. Longest paths of 128 vertices are still exact in FP16.
_HEAVIEST = 9


@dataclass
class Result:
    """The outcome of a problem on a board.

    Attributes
    ----------
    title : str
        What was solved, with its sizes.
    outcome : str
        The result in a few words; empty if there is nothing to say.
    products : int
        Multiplications of elements, without padding.
    beats : int
        Beats of the matrix unit.
    compared, differences : int
        Elements compared with golden, and those that differ.
    values : dict
        Further figures by name.
    """

    title: str = ""
    outcome: str = ""
    products: int = 0
    beats: int = 0
    compared: int = 0
    differences: int = 0
    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class _Solver:
    """A board, and how to use it."""

    board: Board
    precision: str
    accuracy: str
    check: bool
    result: Result
    progress: Callable[[int, int], object]

    def product(
        self, a: np.ndarray, b: np.ndarray, c: np.ndarray | None, operation: str = "mma"
    ) -> np.ndarray:
        """Return a product from the board, and compare it with golden if that is wanted."""
        options = {"precision": self.precision, "operation": operation}
        product = matmul(self.board, a, b, c, **options, progress=self.progress)
        # M · K · N multiplications.
        self.result.products += a.shape[0] * b.size
        self.result.beats += product.beats
        if self.check:
            self.result.compared += product.d.size
            right = expected(self.board.config, a, b, c, accuracy=self.accuracy, **options)
            self.result.differences += int((product.d != right).sum())
        return product.d


def solve(
    problem: str,
    board: Board,
    *,
    size: tuple[int, ...] | None = None,
    precision: str | None = None,
    accuracy: str = "ieee",
    seed: int = 1,
    check: bool = False,
    progress: Callable[[int, int], object] = lambda *_: None,
) -> Result:
    """Solve a problem on a board.

    Parameters
    ----------
    problem : str
        A name in ``PROBLEMS``.
    size : tuple of int, optional
        matmul: M, N and K, or one number for all three. apsp: vertices. digits: digits.
    precision : str, optional
        A precision of the board; its first one by default.
    accuracy : str
        Preset of the board's unit, for the comparison.
    seed : int
        Seed of random operands.
    check : bool
        Compare every product with golden.
    progress : callable
        Function that is called with the number of finished beats and of all beats of the product
        that the board computes.

    Raises
    ------
    UserError
        If the size, the precision or the board does not fit the problem, or a package is missing.
    WorkError
        If the board stops answering, or reports an error.
    """
    one_of("problem", problem, PROBLEMS)
    _check_size(problem, size)
    precisions = precisions_of(board.config)
    if not precisions:
        raise UserError(
            f"board must have a precision that takes one step, not only "
            f"{', '.join(board.cube_config.precisions)}"
        )
    precision = one_of("precision", precision or precisions[0], precisions)
    result = Result()
    solver = _Solver(
        board=board,
        precision=precision,
        accuracy=accuracy,
        check=check,
        result=result,
        progress=progress,
    )
    began = time.perf_counter()
    PROBLEMS[problem](solver, size, np.random.default_rng(seed))
    result.values["seconds"] = round(time.perf_counter() - began, 3)
    return result


def _check_size(problem: str, size: tuple[int, ...] | None) -> None:
    """Raise UserError unless a size has the right count and range of numbers."""
    if size is None:
        return
    counts = (1, 3) if problem == "matmul" else (1,)
    limit = _MOST[problem]
    if len(size) not in counts or not all(1 <= number <= limit for number in size):
        allowed = " or ".join(f"{n} number{'s' * (n > 1)}" for n in counts)
        raise UserError(
            f"size must be {allowed} from 1 to {limit} for {problem}, "
            f"not {'x'.join(map(str, size))[:60]}"
        )


def _matmul(solver: _Solver, size: tuple[int, ...] | None, rng: np.random.Generator) -> None:
    """Multiply random matrices."""
    size = size or (16,)
    m, n, k = size * 3 if len(size) == 1 else size
    shapes = (m, k), (k, n)
    if solver.precision.startswith("int"):
        kind = np.iinfo(solver.precision)
        a, b = (rng.integers(kind.min, kind.max, s, kind.dtype, endpoint=True) for s in shapes)
    else:
        a, b = (from_float(rng.normal(size=shape), solver.precision) for shape in shapes)
    solver.product(a, b, None)
    solver.result.title = f"matmul {m}x{n}x{k} {solver.precision}"


def _apsp(solver: _Solver, size: tuple[int, ...] | None, rng: np.random.Generator) -> None:
    """Find all shortest paths of a random graph by squaring its matrix of distances."""
    operations = operations_of(solver.board.config)
    if "minplus" not in operations:
        names = ", ".join(operations)
        raise UserError(f"board must have the operation minplus for apsp, not only {names}")
    if solver.precision != "fp16":
        raise UserError(f"precision must be fp16 for apsp, not {solver.precision}")
    (vertices,) = size or (16,)
    weights = rng.integers(1, _HEAVIEST, (vertices, vertices), endpoint=True).astype(float)
    # About three edges leave each vertex.
    weights[rng.random(weights.shape) > min(1, 3 / vertices)] = np.inf
    np.fill_diagonal(weights, 0)
    # Squaring doubles the number of edges of the paths, until nothing changes.
    distances, rounds = weights, 0
    while True:
        codes = from_float(distances, solver.precision)
        longer = solver.product(codes, codes, from_float(distances, "fp32"), "minplus")
        before, distances, rounds = distances, to_float(longer, "fp32"), rounds + 1
        if np.array_equal(before, distances):
            break
    if solver.check:
        floyd_warshall = need("scipy.sparse.csgraph", "graphs").floyd_warshall

        solver.result.compared += distances.size
        solver.result.differences += int((floyd_warshall(weights) != distances).sum())
    reached = int(np.isfinite(distances).sum())
    solver.result.title = f"apsp of {vertices} vertices, {solver.precision}"
    solver.result.outcome = f"{reached:,} pairs are connected; {rounds} products"
    solver.result.values |= {"connected": reached, "rounds": rounds}


def trained() -> tuple[np.ndarray, np.ndarray, Any]:
    """Return pixels in [0, 1], labels, and a network trained on the first ``TRAINED`` digits.

    Raises
    ------
    UserError
        If scikit-learn is not installed.
    """
    load_digits = need("sklearn.datasets").load_digits
    MLPClassifier = need("sklearn.neural_network").MLPClassifier  # noqa: N806
    pixels, labels = load_digits(return_X_y=True)
    # The digits of scikit-learn have 17 levels of grey.
    pixels = pixels / 16
    network = MLPClassifier((HIDDEN,), alpha=1e-3, max_iter=500, tol=1e-3, random_state=0)
    network.fit(pixels[:TRAINED], labels[:TRAINED])
    return pixels, labels, network


def _digits(solver: _Solver, size: tuple[int, ...] | None, rng: np.random.Generator) -> None:
    """Classify handwritten digits that the network was not trained on."""
    del rng  # the digits are real
    if solver.precision.startswith("int"):
        raise UserError(
            f"precision must be a floating-point one for digits, not {solver.precision}"
        )
    (count,) = size or (16,)
    pixels, labels, network = trained()
    values, labels = pixels[TRAINED : TRAINED + count], labels[TRAINED : TRAINED + count]
    for layer, (weights, bias) in enumerate(zip(network.coefs_, network.intercepts_, strict=True)):
        # ReLU is in front of every layer but the first.
        values = np.maximum(values, 0) if layer else values
        a, b = (from_float(x, solver.precision) for x in (values, weights))
        c = np.broadcast_to(from_float(bias, "fp32"), (count, len(bias))).copy()
        values = to_float(solver.product(a, b, c), "fp32")
    correct = int((values.argmax(axis=1) == labels).sum())
    solver.result.title = f"{count} handwritten digits, {solver.precision}"
    solver.result.outcome = f"{correct} of {count} digits are classified correctly"
    solver.result.values |= {"digits": count, "correct": correct}


#: The problems by name.
PROBLEMS: dict[str, Callable[..., None]] = {
    "matmul": _matmul,
    "apsp": _apsp,
    "digits": _digits,
}

"""Cycles of a SIMD² unit for a problem, beside a vector unit that runs the same algorithm.

Both are as wide as one sub-core of a GPU has them. What is assumed is an attribute of `Core`; what
is counted are the instructions of `Machine`.
"""

from dataclasses import dataclass, field

from golden.fp.formats import check_int
from golden.simd2 import Op, as_op

from ...simd2 import TILE, Counts
from ..engine import Unit
from .closures import BLOCK, most_iterations

__all__ = ["Core", "Cycles", "Estimate", "closure_counts", "estimate"]

#: Bytes of an operand.
_BYTES = {"fp16": 2, "fp32": 4}

#: Vector instructions for one ⊗ and ⊕: a multiply-add; a subtraction and one; else two.
_VECTOR = {Op.MMA: 1, Op.ADDNORM: 2}


@dataclass(frozen=True, kw_only=True)
class Core:
    """A SIMD² unit, a vector unit, and the memory that both load from.

    Attributes
    ----------
    unit : Unit
        4×4×4, the thesis' (004, §3.6.1).
    latency_cycles : int
        From the last operands of an output tile to its results; once a tile. Assumed.
    bytes_per_cycle : int
        Between memory and registers. Assumed: a quarter of the 128 of a multiprocessor.
    lanes : int
        FP32 operations of the vector unit a cycle. Assumed: 16, of a sub-core with a 4×4×4 unit.
    """

    unit: Unit = field(default_factory=lambda: Unit(m=4, n=4, k=4))
    latency_cycles: int = 8
    bytes_per_cycle: int = 32
    lanes: int = 16

    def __post_init__(self) -> None:
        check_int("latency_cycles", self.latency_cycles, 0)
        check_int("bytes_per_cycle", self.bytes_per_cycle, 1)
        check_int("lanes", self.lanes, 1)

    def interval(self, op: Op | str, inputs: str = "fp16") -> int:
        """Cycles of one 16×16×16 instruction behind another.

        An FP32 operand takes two lanes of 16 bits, and where numbers are multiplied two steps, as
        in M³XU: a half, or a quarter, of the rate. Assumed, until a unit with both is measured.
        """
        steps = 1
        if inputs == "fp32":
            steps = 4 if as_op(op).times in ("mul", "sqdiff") else 2
        unit = self.unit
        return -(-TILE // unit.m) * -(-TILE // unit.n) * -(-TILE // unit.k) * steps

    def cycles(self, op: Op | str, counts: Counts, inputs: str = "fp16", *, checked: int = 0):
        """Cycles of instructions on the SIMD² unit.

        Parameters
        ----------
        checked : int
            Elements that the vector unit compares to see whether anything changed.
        """
        compute = counts.mmo * self.interval(op, inputs) + counts.stores * self.latency_cycles
        return self._with_memory(compute, counts, inputs, checked)

    def vector_cycles(
        self, op: Op | str, counts: Counts, inputs: str = "fp16", *, checked: int = 0
    ):
        """Cycles of the same work on the vector unit, with the same tiles in its registers."""
        terms = counts.mmo * TILE**3 * _VECTOR.get(as_op(op), 2)
        return self._with_memory(-(-terms // self.lanes), counts, inputs, checked)

    def _with_memory(self, compute, counts, inputs, checked):
        operands = 2 * counts.mmo
        results = counts.loads - operands + counts.stores
        moved = TILE * TILE * (operands * _BYTES[inputs] + results * 4)
        compare = -(-checked // self.lanes)
        return Cycles(compute, -(-moved // self.bytes_per_cycle), compare)


@dataclass(frozen=True)
class Cycles:
    """Cycles by what they are for.

    Attributes
    ----------
    compute, memory, check : int
    """

    compute: int
    memory: int
    check: int

    @property
    def overlapped(self) -> int:
        """Loads and stores behind the operations: the longer of both, and the check."""
        return max(self.compute, self.memory) + self.check

    @property
    def serial(self) -> int:
        """One after the other."""
        return self.compute + self.memory + self.check


@dataclass(frozen=True)
class Estimate:
    """A row of the table.

    Attributes
    ----------
    vertices : int
    algorithm : str
    iterations : int
    counts : Counts
    simd2, vector : Cycles
    """

    vertices: int
    algorithm: str
    iterations: int
    counts: Counts
    simd2: Cycles
    vector: Cycles

    @property
    def ratio(self) -> float:
        """Vector cycles for one of the SIMD² unit, loads and stores overlapped in both."""
        return self.vector.overlapped / self.simd2.overlapped


def closure_counts(algorithm: str, vertices: int, iterations: int, *, block: int = BLOCK) -> Counts:
    """Instructions of a closure, without running it; Floyd–Warshall without its own check."""
    if algorithm != "floyd-warshall":
        one = Counts.of(vertices, vertices, vertices)
        return one * iterations
    total = Counts()
    for begin in range(0, vertices, block):
        rows = min(block, vertices - begin)
        for _ in range(most_iterations("leyzorek", rows)):
            total += Counts.of(rows, rows, rows)
        total += Counts.of(rows, vertices, rows) + Counts.of(vertices, rows, rows)
        if vertices > block:
            total += Counts.of(vertices, vertices, rows)
    return total


def estimate(
    op: Op | str,
    vertices: int,
    algorithm: str = "leyzorek",
    *,
    inputs: str = "fp16",
    iterations: int | None = None,
    core: Core | None = None,
    block: int = BLOCK,
) -> Estimate:
    """Cycles of a closure of ``vertices``, for as many iterations as the worst graph needs.

    Parameters
    ----------
    iterations : int, optional
        Of another graph, by Bellman–Ford or Leyzorek.
    """
    core = core or Core()
    count = most_iterations(algorithm, vertices, block=block)
    if iterations is not None and algorithm != "floyd-warshall":
        check_int("iterations", iterations, 0, count)
        count = iterations
    counts = closure_counts(algorithm, vertices, count, block=block)
    checked = 0 if algorithm == "floyd-warshall" else count * vertices**2
    return Estimate(
        vertices,
        algorithm,
        count,
        counts,
        core.cycles(op, counts, inputs, checked=checked),
        core.vector_cycles(op, counts, inputs, checked=checked),
    )

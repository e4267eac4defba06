"""Cycles of a SIMD² unit for a problem, beside a vector unit that runs the same algorithm.

Both are as wide as one sub-core of a GPU has them. What is counted are the instructions of
`Machine`; every other number is listed, with its source or as assumed, by `Core.assumptions`.
"""

from dataclasses import dataclass, field, fields

from vitruvian.golden.m3xu import as_precision
from vitruvian.golden.simd2 import Op, as_op
from vitruvian.golden.simd2.op import PARTS
from vitruvian.sim.matrix_unit import Unit
from vitruvian.sim.simd2 import TILE, Counts
from vitruvian.sim.simd2.graph.closures import BLOCK, most_iterations
from vitruvian.validate import check_int

__all__ = ["Assumption", "Core", "Cycles", "Estimate", "closure_counts", "estimate"]

#: Bytes of an operand.
_BYTES = {"fp16": 2, "fp32": 4}

#: Bytes of the indices of a compressed A fragment: two bits for each of its values.
_INDEX_BYTES = TILE * TILE * 2 // 8

#: Vector instructions for one ⊗ and ⊕, and why.
_VECTOR = {True: 1, False: 2}
_VECTOR_SOURCE = (
    "Zhang 2024, §3.6.2: a multiply-add is one instruction; others are two, also addnorm's "
    "difference and multiply-add"
)

_RATE_SOURCE = "the units that hdl.cube builds; their RTL takes these cycles"


@dataclass(frozen=True)
class Assumption:
    """A number that the model takes from elsewhere.

    Attributes
    ----------
    name, value, source : str
        The source says ``assumed`` where there is none.
    """

    name: str
    value: str
    source: str


@dataclass(frozen=True, kw_only=True)
class Core:
    """A SIMD² unit, a vector unit, and the memory that both load from.

    Attributes
    ----------
    unit : Unit
        Rows, columns and terms a cycle.
    latency_cycles : int
        From the last operands of an output tile to its results; once a tile.
    bytes_per_cycle : int
        Between memory and registers.
    lanes : int
        FP32 operations of the vector unit a cycle.
    """

    unit: Unit = field(
        default_factory=lambda: Unit(m=4, n=4, k=4),
        metadata={
            "name": "unit, rows × columns × terms a cycle",
            "source": "Zhang 2024, §3.6.1: 4×4 matrices of 16-bit elements",
        },
    )
    latency_cycles: int = field(
        default=8,
        metadata={
            "name": "latency of an output tile, cycles",
            "source": "assumed: some ranks of registers in the unit",
        },
    )
    bytes_per_cycle: int = field(
        default=32,
        metadata={
            "name": "loads and stores, bytes a cycle",
            "source": "assumed: a quarter of a multiprocessor's 128",
        },
    )
    lanes: int = field(
        default=16,
        metadata={
            "name": "vector unit, FP32 lanes",
            "source": "assumed: a sub-core's, beside one 4×4×4 unit",
        },
    )

    def __post_init__(self) -> None:
        check_int("latency_cycles", self.latency_cycles, 0)
        check_int("bytes_per_cycle", self.bytes_per_cycle, 1)
        check_int("lanes", self.lanes, 1)

    def assumptions(self) -> tuple[Assumption, ...]:
        """Every number that is not counted, and where it is from."""
        default = Core()
        found = []
        for item in fields(self):
            value = getattr(self, item.name)
            given = value != getattr(default, item.name)
            unit = self.unit
            text = f"{unit.m}×{unit.n}×{unit.k}" if item.name == "unit" else str(value)
            source = "given" if given else item.metadata["source"]
            found.append(Assumption(item.metadata["name"], text, source))
        steps = f"{self._fp32_steps} for a pair an element; mma: for {self.unit.k}"
        found.append(Assumption("cycles of FP32 operands", steps, _RATE_SOURCE))
        addnorm = f"{self._addnorm_pairs} a cycle in FP16; none in FP32, it is not built"
        found.append(Assumption("pairs of addnorm an element", addnorm, _RATE_SOURCE))
        vector = f"{_VECTOR[True]} or {_VECTOR[False]}"
        name = "vector instructions a term, of mma or others"
        found.append(Assumption(name, vector, _VECTOR_SOURCE))
        found.append(Assumption("loads and stores overlap", "yes", "assumed, in both units"))
        return tuple(found)

    @property
    def _fp32_steps(self) -> int:
        return as_precision("fp32").steps(self.unit.multiplier_bits)

    @property
    def _addnorm_pairs(self) -> int:
        return self.unit.k // PARTS

    def builds(self, op: Op | str, inputs: str = "fp16") -> bool:
        """Whether there is a unit of these lanes for the operation and the operands."""
        if as_op(op) is not Op.ADDNORM:
            return inputs == "fp16" or self.unit.k > 1
        return inputs == "fp16" and self.unit.k % PARTS == 0

    def interval(self, op: Op | str, inputs: str = "fp16") -> int:
        """Return the cycles of one 16×16×16 instruction behind another, as the RTL takes them.

        An element takes k pairs of FP16 operands a cycle, k/4 of addnorm. Of FP32 operands the
        units for them take one pair in two cycles on 12-bit multipliers; of mma k pairs. One with
        a compressed A takes as long, for twice the depth.

        Raises
        ------
        ValueError
            If no unit is built for it, see `builds`.
        """
        op, unit = as_op(op), self.unit
        if not self.builds(op, inputs):
            raise ValueError(
                f"{op.mnemonic} must have a unit that is built, not {inputs.upper()} operands on "
                f"k = {unit.k}"
            )
        pairs, steps = unit.k, 1
        if op is Op.ADDNORM:
            pairs = self._addnorm_pairs
        elif inputs == "fp32":
            pairs, steps = unit.k if op is Op.MMA else 1, self._fp32_steps
        return -(-TILE // unit.m) * -(-TILE // unit.n) * -(-TILE // pairs) * steps

    def cycles(self, op: Op | str, counts: Counts, inputs: str = "fp16", *, checked: int = 0):
        """Cycles of instructions on the SIMD² unit; ValueError if it is not built, see `builds`.

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
        terms = counts.mmo * TILE**3 * _VECTOR[as_op(op) is Op.MMA]
        return self._with_memory(-(-terms // self.lanes), counts, inputs, checked)

    def _with_memory(self, compute, counts, inputs, checked):
        operands = 2 * counts.mmo + counts.sparse
        results = counts.loads - operands + counts.stores
        moved = TILE * TILE * (operands * _BYTES[inputs] + results * 4)
        moved += counts.sparse * _INDEX_BYTES
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

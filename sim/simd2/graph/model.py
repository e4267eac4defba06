"""A model of the cycles that a problem takes on a SIMD² unit and on a vector unit.

Both units run the same algorithm and are as wide as those of one sub-core of a GPU. The model
counts the instructions of ``Machine``. ``Core.assumptions`` lists every other number with its
source, or states that it is assumed.
"""

from dataclasses import dataclass, field, fields

from vitruvian.common.validate import ceil_div, check_int
from vitruvian.golden.m3xu import as_precision
from vitruvian.golden.simd2 import Op, as_op
from vitruvian.golden.simd2.op import PARTS
from vitruvian.sim.matrix_unit import Unit
from vitruvian.sim.simd2 import TILE, Counts
from vitruvian.sim.simd2.graph.closures import BLOCK, most_iterations

#: Size of an operand in bytes.
_BYTES = {"fp16": 2, "fp32": 4}

#: Size of the indices of a compressed A fragment in bytes: two bits for each value.
_INDEX_BYTES = TILE * TILE * 2 // 8

#: Vector instructions for one ⊗ and one ⊕, by whether the operation is ``mma``.
_VECTOR = {True: 1, False: 2}
_VECTOR_SOURCE = (
    "Zhang 2024, §3.6.2: a multiply-add is one instruction; others are two, also addnorm's "
    "difference and multiply-add"
)

_RATE_SOURCE = "the units that hdl.cube builds; their RTL takes these cycles"


@dataclass(frozen=True)
class Assumption:
    """A number that the model does not count.

    Attributes
    ----------
    name, value, source : str
        The source starts with ``assumed`` if the number has no published source.
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
        Rows, columns and terms that the SIMD² unit computes in a cycle.
    latency_cycles : int
        Cycles from the last operands of an output tile to its results, once for each tile.
    bytes_per_cycle : int
        Bandwidth between memory and registers.
    lanes : int
        FP32 operations of the vector unit in a cycle.

    Raises
    ------
    TypeError, ValueError
        If a number is below 1, or the latency is negative.
    """

    unit: Unit = field(
        default_factory=lambda: Unit(m=4, n=4, k=4),
        metadata={
            "name": "unit, rows × columns × terms per cycle",
            "source": "Zhang 2024, §3.6.1: 4×4 matrices of 16-bit elements",
        },
    )
    latency_cycles: int = field(
        default=8,
        metadata={
            "name": "latency of an output tile, cycles",
            "source": "assumed: some pipeline stages in the unit",
        },
    )
    bytes_per_cycle: int = field(
        default=32,
        metadata={
            "name": "loads and stores, bytes per cycle",
            "source": "assumed: a quarter of the 128 of a multiprocessor",
        },
    )
    lanes: int = field(
        default=16,
        metadata={
            "name": "vector unit, FP32 lanes",
            "source": "assumed: the lanes of a sub-core with one 4×4×4 unit",
        },
    )

    def __post_init__(self) -> None:
        check_int("latency_cycles", self.latency_cycles, 0)
        check_int("bytes_per_cycle", self.bytes_per_cycle, 1)
        check_int("lanes", self.lanes, 1)

    def assumptions(self) -> tuple[Assumption, ...]:
        """Return every number that the model does not count, with its source."""
        default = Core()
        result = []
        for item in fields(self):
            value = getattr(self, item.name)
            given = value != getattr(default, item.name)
            unit = self.unit
            text = f"{unit.m}×{unit.n}×{unit.k}" if item.name == "unit" else str(value)
            source = "given" if given else item.metadata["source"]
            result.append(Assumption(item.metadata["name"], text, source))
        steps = f"{self._fp32_steps} for one pair per element; mma: for {self.unit.k} pairs"
        result.append(Assumption("cycles of FP32 operands", steps, _RATE_SOURCE))
        addnorm = f"{self._addnorm_pairs} per cycle in FP16; FP32 is not built"
        result.append(Assumption("pairs of addnorm per element", addnorm, _RATE_SOURCE))
        vector = f"{_VECTOR[True]} or {_VECTOR[False]}"
        name = "vector instructions per term, in mma or in others"
        result.append(Assumption(name, vector, _VECTOR_SOURCE))
        result.append(Assumption("loads and stores overlap", "yes", "assumed, in both units"))
        return tuple(result)

    @property
    def _fp32_steps(self) -> int:
        """Cycles that the multipliers take for a product of FP32 operands."""
        return as_precision("fp32").steps(self.unit.multiplier_bits)

    @property
    def _addnorm_pairs(self) -> int:
        """Pairs of operands of ``addnorm`` in a cycle; each takes several lanes."""
        return self.unit.k // PARTS

    def builds(self, op: Op | str, inputs: str = "fp16") -> bool:
        """Return True if a unit with these lanes exists for the operation and the operands.

        Parameters
        ----------
        inputs : {"fp16", "fp32"}
        """
        if as_op(op) is not Op.ADDNORM:
            return inputs == "fp16" or self.unit.k > 1
        return inputs == "fp16" and self.unit.k % PARTS == 0

    def interval(self, op: Op | str, inputs: str = "fp16") -> int:
        """Return the cycles between two 16×16×16 instructions; they are those of the RTL.

        In a cycle, an element of the unit takes k pairs of FP16 operands, or k/4 pairs in addnorm.
        With 12-bit multipliers, it takes one pair of FP32 operands in two cycles, or k pairs in
        mma. An instruction with a compressed A takes the same number of cycles for twice the depth.

        Parameters
        ----------
        inputs : {"fp16", "fp32"}

        Raises
        ------
        ValueError
            If no unit exists for the operation and the operands, see ``builds``.
        """
        op, unit = as_op(op), self.unit
        if not self.builds(op, inputs):
            raise ValueError(
                f"{op.mnemonic} must have operands and lanes that a unit exists for, not "
                f"{inputs.upper()} operands on k = {unit.k}"
            )
        pairs, steps = unit.k, 1
        if op is Op.ADDNORM:
            pairs = self._addnorm_pairs
        elif inputs == "fp32":
            pairs, steps = unit.k if op is Op.MMA else 1, self._fp32_steps
        return ceil_div(TILE, unit.m) * ceil_div(TILE, unit.n) * ceil_div(TILE, pairs) * steps

    def cycles(self, op: Op | str, counts: Counts, inputs: str = "fp16", *, checked: int = 0):
        """Return the ``Cycles`` of instructions on the SIMD² unit.

        Parameters
        ----------
        inputs : {"fp16", "fp32"}
        checked : int
            Elements that the vector unit compares to detect convergence.

        Raises
        ------
        ValueError
            If no unit exists for the operation and the operands, see ``builds``.
        """
        # Instructions on one output tile follow each other; its last result costs the latency once.
        compute = counts.mmo * self.interval(op, inputs) + counts.stores * self.latency_cycles
        return self._with_memory(compute, counts, inputs, checked)

    def vector_cycles(
        self, op: Op | str, counts: Counts, inputs: str = "fp16", *, checked: int = 0
    ):
        """Return the ``Cycles`` of the same work on the vector unit, with the same tiles.

        Parameters
        ----------
        op, counts, inputs, checked
            See ``cycles``.
        """
        terms = counts.mmo * TILE**3 * _VECTOR[as_op(op) is Op.MMA]
        return self._with_memory(ceil_div(terms, self.lanes), counts, inputs, checked)

    def _with_memory(self, compute, counts, inputs, checked):
        """Return the ``Cycles`` of operations that take ``compute`` cycles.

        Those of the loads, the stores and the check for convergence are added. They are the same
        for the SIMD² unit and the vector unit.
        """
        # Loads of A and B; a compressed A has a B of two fragments. All other loads are those of C.
        operands = 2 * counts.mmo + counts.sparse
        # Accumulators are FP32, whatever the operands are.
        results = counts.loads - operands + counts.stores
        moved = TILE * TILE * (operands * _BYTES[inputs] + results * 4)
        moved += counts.sparse * _INDEX_BYTES
        compare = ceil_div(checked, self.lanes)
        return Cycles(compute, ceil_div(moved, self.bytes_per_cycle), compare)


@dataclass(frozen=True)
class Cycles:
    """Cycles by their purpose.

    Attributes
    ----------
    compute, memory, check : int
        Cycles of the operations, of the loads and stores, and of the check for convergence.
    """

    compute: int
    memory: int
    check: int

    @property
    def overlapped(self) -> int:
        """Total if loads and stores overlap the operations: the longer of both, and the check."""
        return max(self.compute, self.memory) + self.check

    @property
    def serial(self) -> int:
        """Total if nothing overlaps."""
        return self.compute + self.memory + self.check


@dataclass(frozen=True)
class Estimate:
    """The modelled cycles of one graph size and algorithm.

    Attributes
    ----------
    vertices : int
    algorithm : str
    iterations : int
    counts : Counts
    simd2, vector : Cycles
        Cycles on the SIMD² unit and on the vector unit.
    """

    vertices: int
    algorithm: str
    iterations: int
    counts: Counts
    simd2: Cycles
    vector: Cycles

    @property
    def ratio(self) -> float:
        """Cycles of the vector unit divided by those of the SIMD² unit, both overlapped."""
        return self.vector.overlapped / self.simd2.overlapped


def closure_counts(algorithm: str, vertices: int, iterations: int, *, block: int = BLOCK) -> Counts:
    """Return the instructions of a closure without running it.

    Parameters
    ----------
    vertices, iterations : int
        Floyd–Warshall ignores the iterations; its inner closures run without the check.
    block : int
        Vertices in a block of Floyd–Warshall.
    """
    if algorithm != "floyd-warshall":
        single = Counts.of(vertices, vertices, vertices)
        return single * iterations
    total = Counts()
    for begin in range(0, vertices, block):
        rows = min(block, vertices - begin)
        # The block on the diagonal first: its paths within the block.
        for _ in range(most_iterations("leyzorek", rows)):
            total += Counts.of(rows, rows, rows)
        # The block's row and column of blocks, then all other blocks with them.
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
    """Return the cycles of a closure, by default with the iterations of the worst graph.

    Parameters
    ----------
    inputs : {"fp16", "fp32"}
    iterations : int, optional
        Number of iterations for Bellman–Ford or Leyzorek, at most that of the worst graph.
    core : Core, optional
    block : int
        Vertices in a block of Floyd–Warshall.

    Raises
    ------
    ValueError
        If no unit exists for the operation and the operands, the algorithm is unknown, or there are
        more iterations than the worst graph needs.
    """
    core = core or Core()
    count = most_iterations(algorithm, vertices, block=block)
    if iterations is not None and algorithm != "floyd-warshall":
        check_int("iterations", iterations, 0, count)
        count = iterations
    counts = closure_counts(algorithm, vertices, count, block=block)
    # Each iteration compares all distances with those before; Floyd and Warshall need no check.
    checked = 0 if algorithm == "floyd-warshall" else count * vertices**2
    return Estimate(
        vertices,
        algorithm,
        count,
        counts,
        core.cycles(op, counts, inputs, checked=checked),
        core.vector_cycles(op, counts, inputs, checked=checked),
    )

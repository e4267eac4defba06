"""The Cube with all nine operations of SIMD², dense or with a 2:4 compressed A.

The program is that of ``matmul``: the operation changes what a step computes, not how its operands
move. A step of the Cube takes 16 × 16 × 16 pairs, as for the matrix product, with two exceptions:
``addnorm`` takes a quarter of the pairs, as four products form a square (``golden.simd2.op``), and
a compressed A doubles the depth of a step.
"""

from dataclasses import replace

import numpy as np

from vitruvian.golden.simd2 import Op, as_op, mmo
from vitruvian.golden.simd2.op import GROUP, KEPT, PARTS
from vitruvian.sim.davinci import Chip, Core, Program
from vitruvian.sim.davinci.semantics.matrix import SemiringProduct
from vitruvian.sim.davinci.timing.engine import run
from vitruvian.sim.davinci.timing.lowering import lower_sequences
from vitruvian.sim.kernels import matmul
from vitruvian.sim.kernels.sequences import InstructionTable
from vitruvian.sim.kernels.tiling import FRACTAL, MatmulPlan, blocks_of, choose, feasible, plan

#: Terms of a step of the Cube for each element, FP16.
DEPTH = 16

#: Bytes of a fractal of a compressed A: half of the values, and two bits for each of them.
SPARSE_FRACTAL = FRACTAL * KEPT // GROUP + FRACTAL // 2 * KEPT // GROUP * 2 // 8


def semiring_cube(op: Op | str) -> SemiringProduct:
    """Return the product of a Cube of ``DEPTH`` terms for ``simulate(cube=…)``."""
    return SemiringProduct(op, k=DEPTH)


def expected(op: Op | str, a: np.ndarray, b: np.ndarray, out: str = "fp16") -> np.ndarray:
    """Return A ⊗ B as the Cube computes it, in ``out``."""
    d = mmo(op, a, b, k=DEPTH, squares="products")
    with np.errstate(over="ignore"):
        return d if out == "fp32" else d.astype(np.float16)


def chip_for(chip: Chip, op: Op | str, *, sparse: bool = False) -> Chip:
    """Return the chip with the depth of a step of its Cube for an operation.

    Raises
    ------
    ValueError
        If the chip has no Cube.
    """
    if chip.cube is None:
        raise ValueError(f"chip must have a Cube, not {chip.name}")
    depth = chip.cube.depths["fp16"]
    depth = depth // PARTS if as_op(op) is Op.ADDNORM else depth
    depth *= GROUP // KEPT if sparse else 1
    return replace(chip, cube=replace(chip.cube, depths={**chip.cube.depths, "fp16": depth}))


def build(
    op: Op | str,
    m: int,
    k: int,
    n: int,
    *,
    chip: Chip,
    out: str = "fp16",
    data: tuple[np.ndarray, np.ndarray] | None = None,
) -> Program:
    """Build D (m, n) = A (m, k) ⊗ B (k, n) on one core; see ``matmul.build``.

    Raises
    ------
    ValueError
        As ``matmul.build``, or if k is not a multiple of 16: zeros, which fill the last fractal,
        are terms of most semirings.
    """
    if k % DEPTH:
        raise ValueError(f"k must be a multiple of {DEPTH}, not {k}")
    return matmul.build(m, k, n, chip=chip_for(chip, op), cores=1, out=out, data=data)


class _SparseTable(InstructionTable):
    """The instructions of a plan whose A is compressed: loads of A have fewer bytes."""

    def __init__(self, chip: Chip, p: MatmulPlan, out: str) -> None:
        super().__init__(chip, p, "fp16", out)
        core = Program(chip).core()
        for name in ("A1", "A0"):
            for place in np.ndindex(self.at[name].shape):
                self._halve(core, int(self.at[name][place]), name)

    def _halve(self, core: Core, number: int, name: str) -> None:
        """Replace the load with this index by that of the compressed tile."""
        old = self.instructions[number]
        views = old.operands["dst"], old.operands["src"]
        if name == "A1":
            nbytes = old.fields["burst_bytes"] * SPARSE_FRACTAL // FRACTAL
            core.copy(*views, bursts=1, burst_bytes=nbytes)
        else:  # moved in whole fractals
            core.load(*views, repeat=-(-old.fields["repeat"] * SPARSE_FRACTAL // FRACTAL))
        self.instructions[number] = core.instructions[-1]


def seconds_of(chip: Chip, p: MatmulPlan, out: str, *, sparse: bool = False) -> float:
    """Return the seconds of a plan on a chip of ``chip_for``, on one core, launch included."""
    table = _SparseTable(chip, p, out) if sparse else InstructionTable(chip, p, "fp16", out)
    sequences = {(chip.kind().name, 0): table.sequence(p.across[0])}
    times = run(lower_sequences(chip, table.instructions, sequences)[0])
    return times.total * 1e-18


def seconds(
    op: Op | str,
    m: int,
    k: int,
    n: int,
    *,
    chip: Chip,
    out: str = "fp16",
    sparse: bool = False,
    search: bool = False,
) -> float:
    """Return the seconds of ``build``'s program, or of one with a compressed A.

    Parameters
    ----------
    sparse : bool
        If True, A is 2:4 compressed: half of the steps, 9/16 of the bytes of A, and all of B.
    search : bool
        If True, the tiles are the best of all that divide the matrices into two or four control
        flows; if False, those of ``choose``.
    """
    special = chip_for(chip, op, sparse=sparse)
    blocks = blocks_of(m, k, n)
    c_bytes = 2 if out == "fp16" else 4
    tilings = [choose(special, blocks, 1, c_bytes)]
    if search:
        tilings += feasible(special, blocks, 1, c_bytes=c_bytes, b_nums=(2, 4))
    plans = [plan(special, blocks, tiling, 1, c_bytes) for tiling in dict.fromkeys(tilings)]
    return min(seconds_of(special, p, out, sparse=sparse) for p in plans)

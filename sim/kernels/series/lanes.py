"""Vector instructions on whole views, with a barrier where an operand depends on earlier ones."""

from typing import Any

from vitruvian.sim.davinci import Core, Unit, View

#: FP16 elements of a repeat and of a block.
LANES, BLOCK = 128, 16


class LaneEmitter:
    """A core's vector unit, which computes with views of one size.

    Instructions of the unit may overlap. A barrier comes before an instruction that reads what an
    instruction since the last barrier wrote, or that writes what one of them read or wrote.
    """

    def __init__(self, core: Core) -> None:
        self.core = core
        self._read: set[int] = set()
        self._written: set[int] = set()

    def __call__(
        self,
        op: str,
        dst: View,
        *sources: View,
        reads_dst: bool = False,
        scalar: float | None = None,
        amount: int | None = None,
    ):
        """Emit one instruction.

        Parameters
        ----------
        dst : View
            Whole repeats, at most 255.
        *sources : View
            Views of the size of ``dst``, or of one block, which every block of ``dst`` is
            combined with.
        reads_dst : bool
            True if the instruction reads ``dst``; this matters to the barriers alone.
        scalar : float, optional
            The scalar of the operations that have one.
        amount : int, optional
            The bits of a shift.
        """
        reads = {view.offset for view in sources} | ({dst.offset} if reads_dst else set())
        self._order(reads, {dst.offset})
        names = ("src",) if len(sources) == 1 else ("src0", "src1")
        operands = {"dst": dst} | dict(zip(names, sources, strict=False))
        constant = {name: (0, 0) for name, view in operands.items() if view.size == BLOCK}
        fields: dict[str, Any] = {}
        if scalar is not None:
            fields["scalar"] = scalar
        if amount is not None:
            fields["amount"] = amount
        self.core.vector(op, operands, repeat=dst.size // LANES, strides=constant, **fields)

    def choose(self, values: View, bound: View, *choices: tuple[View, View, View]) -> None:
        """Emit selections by values ≥ bound, one repeat after the other.

        The register of comparisons holds the bits of one repeat, and a selection needs a barrier
        after the comparison.

        Parameters
        ----------
        values : View
            Whole repeats.
        bound : View
            One block.
        *choices : (View, View, View)
            The target of a selection, of the size of ``values``, and the blocks from which it
            takes an element where the comparison holds, and where it does not.
        """
        self._order({values.offset}, {dst.offset for dst, _, _ in choices})
        fixed = (0, 0)
        for at in range(0, values.size, LANES):
            part = slice(at, at + LANES)
            self.core.vcmp(values[part], bound, "ge", repeat=1, strides={"src1": fixed})
            self.core.pipe_barrier(Unit.V)
            for dst, true, false in choices:
                strides = {"src0": fixed, "src1": fixed}
                self.core.vsel(dst[part], true, false, repeat=1, strides=strides)

    def _order(self, reads: set[int], writes: set[int]) -> None:
        """Emit a barrier if a read or a write depends on an instruction since the last one."""
        if reads & self._written or writes & (self._written | self._read):
            self.core.pipe_barrier(Unit.V)
            self._read.clear()
            self._written.clear()
        self._read |= reads
        self._written |= writes

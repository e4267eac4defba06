"""The ways of the Cube's products out of its accumulators, on cores of both kinds.

A core with all units has the vector unit move products from L0C to the Unified Buffer, and MTE3
from there to global memory. A Cube core, as the Ascend 910B has them, has no such buffer: its unit
FIX moves products to global memory and converts them on the way, and vector cores of its group read
them there. Kernels name the tile and its place, and the classes here emit what the core needs.
"""

from collections.abc import Sequence

from vitruvian.sim.davinci import Core, Unit, View
from vitruvian.sim.davinci.program.builder import pass_on_positions
from vitruvian.sim.kernels.ring import Ring, Use, together

V, M, MTE2, MTE3, FIX = Unit.V, Unit.M, Unit.MTE2, Unit.MTE3, Unit.FIX

# Reports name the line of the kernel, not of this file.
pass_on_positions(__file__)


class Exit:
    """The way of tiles of products to global memory.

    Parameters
    ----------
    core : Core
        A core with a Cube.
    elements : int
        Elements of the largest tile.
    dtype : str
        The dtype of the results.
    slots : int
        Slots of L0C, and of the Unified Buffer.
    plan : sequence of Use, optional
        The uses of the slots, see ``Ring``.

    Attributes
    ----------
    sums : Ring
        The flags of the slots of L0C: the Cube writes to them.
    by_vector : bool
        True if the vector unit moves the products, and False if FIX does.
    """

    def __init__(
        self,
        core: Core,
        elements: int,
        dtype: str,
        slots: int = 2,
        *,
        plan: Sequence[Use] | None = None,
    ) -> None:
        self.core = core
        self.by_vector = V in core.kind.units
        self.sums = Ring(core, M, V if self.by_vector else FIX, slots, plan=plan)
        self._outs: Ring | None = None
        if self.by_vector:
            self._outs = Ring(core, V, MTE3, slots, plan=plan)
            self._ub = core.allocate("UB", (slots, elements), dtype, "results in UB")

    def store(self, part: View, sums: View, *, relu: bool = False) -> None:
        """Emit the move of the next tile to global memory.

        Parameters
        ----------
        part : View
            (n, rows, columns, 16) in global memory, for n columns of fractals.
        sums : View
            L0C, whose first axis counts the slots.
        relu : bool
            If True, negative results become 0.
        """
        core, (n, rows, columns, _) = self.core, part.shape
        m = rows * columns
        whole = part.strides[1] == columns * part.strides[2]
        if self._outs is None:
            with self.sums.read() as slot:
                if whole or rows == 1:
                    stride = part.strides[0]
                    core.matrix_out(part, sums[slot], m=m, n=16 * n, dst_stride=stride, relu=relu)
                else:
                    self._rows(part, sums[slot], relu)
            return
        with together(self.sums.read(), self._outs.write()) as (slot, out):
            ub, stride = self._ub[out, : part.size], m * 16 * part.itemsize
            # Rows that only fill up the last fractal are no results, and stay behind.
            core.matrix_out(ub, sums[slot], m=m, n=16 * n, dst_stride=stride, relu=relu)
        with self._outs.read():
            ub = ub.reshape(*part.shape)
            if whole:
                core.copy(part, ub)
            else:
                for c in range(n):
                    core.copy(part[c], ub[c])

    def _rows(self, part: View, sums: View, relu: bool) -> None:
        """Emit a move for each row of a tile whose rows are not adjacent in global memory."""
        n, rows, columns, _ = part.shape
        flat = sums.reshape(sums.size)
        # A column of fractals in L0C has its rows one behind the other, 16 elements each.
        column = -(-rows * columns // 16) * 256 * sums.itemsize
        for row in range(rows):
            self.core.matrix_out(
                part[:, row],
                flat[row * columns * 16 :],
                m=columns,
                n=16 * n,
                dst_stride=part.strides[0],
                src_stride=column,
                relu=relu,
            )

    def close(self) -> None:
        """Wait until all slots are free, if no plan leaves out the last flags."""
        self.sums.close()
        if self._outs is not None:
            self._outs.close()


class CrossAccess:
    """The work of one core on a slot in global memory that cores of its group share.

    A context manager, as ``SlotAccess`` is one for the units of a core.

    Parameters
    ----------
    unit : Unit
        The unit that works on the slot.
    slot : int
    waits, signals : int or None
        The registers of the flags of the beginning and of the end.
    """

    def __init__(
        self, core: Core, unit: Unit, slot: int, waits: int | None, signals: int | None
    ) -> None:
        self.core, self.unit, self.slot = core, unit, slot
        self.waits, self.signals = waits, signals

    def __enter__(self) -> int:
        if self.waits is not None:
            self.core.cross_wait(self.unit, self.waits)
        return self.slot

    def __exit__(self, kind: object, *rest: object) -> None:
        # After an exception the program is not complete, and no flag would help.
        if kind is None and self.signals is not None:
            self.core.cross_set(self.unit, self.signals)


class Handover:
    """Tiles that a Cube core hands over to all vector cores of its group through global memory.

    The memory has some slots, which are used in turn. A slot has a flag in both directions: the
    Cube core says that it is full, and all vector cores of the group say that it is free.

    Parameters
    ----------
    count : int
        Number of tiles; flags for which nobody waits are left out.
    slots : int
        At most 8, half of the registers.
    """

    def __init__(self, count: int, slots: int = 2) -> None:
        self.count, self.slots = count, slots

    def give(self, core: Core, tile: int) -> CrossAccess:
        """Return the access of the Cube core, whose unit FIX writes a tile."""
        slot = tile % self.slots
        waits = self.slots + slot if tile >= self.slots else None
        return CrossAccess(core, FIX, slot, waits, slot)

    def take(self, core: Core, tile: int) -> CrossAccess:
        """Return the access of a vector core, whose unit MTE2 reads a tile or a part of it.

        A vector core that needs no part of a tile takes it all the same, with an empty block.
        """
        slot = tile % self.slots
        signals = self.slots + slot if tile + self.slots < self.count else None
        return CrossAccess(core, MTE2, slot, slot, signals)

"""Emission of comparisons and selections, with vcmp and vsel or by Alg. 5 with ReLU.

All operands are rows of 16 elements of 16 bits: the lanes of a group of queries. An instruction
takes up to eight rows.
"""

from vitruvian.sim.davinci import Core, Unit, View
from vitruvian.sim.kernels.kselection.shape import GROUP

#: Rows of 16 elements in the 128 lanes of an instruction.
ROWS = 8


def _lanes(*views: View) -> int:
    """Return the mask of the lanes of some rows."""
    return (1 << views[0].size) - 1


def _rows(view: View) -> View:
    return view.reshape(view.size)


def emit(core: Core, op: str, operands: dict[str, View], **fields) -> None:
    """Emit an instruction on up to eight rows, and make later ones wait for it."""
    flat = {name: _rows(view) for name, view in operands.items()}
    core.vector(op, flat, repeat=1, mask=_lanes(*flat.values()), **fields)
    core.pipe_barrier(Unit.V)


class HardCompare:
    """Comparison into the mask register, and selection by it."""

    def __init__(self, core: Core) -> None:
        self.core = core

    @staticmethod
    def scratch_bytes() -> int:
        """Return the bytes of the Unified Buffer that the constructor allocates."""
        return 0

    def less(self, a: View, b: View) -> None:
        """Emit a < b; the selections that follow use it."""
        emit(self.core, "vcmp", {"src0": a, "src1": b}, condition="lt")

    def select(self, dst: View, x: View, y: View) -> None:
        """Emit the selection of x where the last comparison is true, else of y."""
        emit(self.core, "vsel", {"dst": dst, "src0": x, "src1": y})


class SoftCompare:
    """Comparison and selection by Alg. 5, for vector units without vcmp and vsel."""

    def __init__(self, core: Core) -> None:
        self.core = core
        shape = (ROWS * GROUP,)
        self.mask = core.allocate("UB", shape, "uint16", "mask")
        self.inverse = core.allocate("UB", shape, "uint16", "inverse mask")
        self.part = core.allocate("UB", shape, "uint16", "part")
        self.sign = core.allocate("UB", shape, "uint16", "sign bits")
        self.one = core.allocate("UB", shape, "uint16", "ones")
        core.vdup(self.sign, 0x8000)
        core.vdup(self.one, 1)
        core.pipe_barrier(Unit.V)

    @staticmethod
    def scratch_bytes() -> int:
        """Return the bytes of the Unified Buffer that the constructor allocates."""
        return 5 * 2 * ROWS * GROUP

    def less(self, a: View, b: View) -> None:
        """Emit the mask of a < b; the selections that follow use it."""
        size = a.size
        mask, inverse = self.mask[:size], self.inverse[:size]
        emit(self.core, "vsub", {"dst": mask.astype("fp16"), "src0": a, "src1": b})
        signs_to_masks(self.core, mask, self.sign[:size], self.one[:size])
        emit(self.core, "vnot", {"dst": inverse, "src": mask})

    def select(self, dst: View, x: View, y: View) -> None:
        """Emit the selection of x where the last comparison is true, else of y."""
        size = dst.size
        mask, inverse, part = self.mask[:size], self.inverse[:size], self.part[:size]
        dst, x, y = (_rows(view).astype("uint16") for view in (dst, x, y))
        # dst may be y or x itself, so it is written only by the last instructions that read both.
        emit(self.core, "vand", {"dst": part, "src0": x, "src1": mask})
        emit(self.core, "vand", {"dst": dst, "src0": y, "src1": inverse})
        emit(self.core, "vor", {"dst": dst, "src0": dst, "src1": part})


def signs_to_masks(core: Core, codes: View, sign: View, one: View) -> None:
    """Emit lines 3 to 6 of Alg. 5 in place: 0xffff for a code with a sign bit, else 0.

    Parameters
    ----------
    codes, sign, one : View
        Up to eight rows of uint16: differences, 0x8000 and 1.
    """
    emit(core, "vand", {"dst": codes, "src0": codes, "src1": sign})
    emit(core, "vor", {"dst": codes, "src0": codes, "src1": one})
    halves, words = codes.astype("fp16"), codes.astype("int16")
    emit(core, "vrelu", {"dst": halves, "src": halves})
    emit(core, "vsub", {"dst": words, "src0": words, "src1": one.astype("int16")})

"""Builder methods of the vector instructions that the table alone describes.

Generated from ``isa.vector.VECTOR_OPS`` by ``python -m vitruvian.sim.davinci.program.generate``;
change the table instead of this file.
"""

from typing import Unpack

from vitruvian.sim.davinci.isa.instruction import Instruction
from vitruvian.sim.davinci.isa.operands import View
from vitruvian.sim.davinci.program.vector import Vector
from vitruvian.sim.davinci.program.vector_keywords import LaneKeywords, ReductionKeywords


class VectorMethods(Vector):
    """A method for each lane-wise instruction and each reduction.

    ``Vector.vector`` describes the keywords of a lane-wise instruction. Without ``repeat``, its
    method may append several instructions. ``Vector.vreduce_lanes`` describes the keywords of a
    reduction.
    """

    def vadd(
        self, dst: View, src0: View, src1: View, **lanes: Unpack[LaneKeywords]
    ) -> list[Instruction]:
        """Set dst to src0 + src1."""
        operands = {"dst": dst, "src0": src0, "src1": src1}
        return self.vector("vadd", operands, **lanes)

    def vsub(
        self, dst: View, src0: View, src1: View, **lanes: Unpack[LaneKeywords]
    ) -> list[Instruction]:
        """Set dst to src0 − src1."""
        operands = {"dst": dst, "src0": src0, "src1": src1}
        return self.vector("vsub", operands, **lanes)

    def vmul(
        self, dst: View, src0: View, src1: View, **lanes: Unpack[LaneKeywords]
    ) -> list[Instruction]:
        """Set dst to src0 · src1."""
        operands = {"dst": dst, "src0": src0, "src1": src1}
        return self.vector("vmul", operands, **lanes)

    def vmax(
        self, dst: View, src0: View, src1: View, **lanes: Unpack[LaneKeywords]
    ) -> list[Instruction]:
        """Set dst to the larger of src0 and src1."""
        operands = {"dst": dst, "src0": src0, "src1": src1}
        return self.vector("vmax", operands, **lanes)

    def vmin(
        self, dst: View, src0: View, src1: View, **lanes: Unpack[LaneKeywords]
    ) -> list[Instruction]:
        """Set dst to the smaller of src0 and src1."""
        operands = {"dst": dst, "src0": src0, "src1": src1}
        return self.vector("vmin", operands, **lanes)

    def vdiv(
        self, dst: View, src0: View, src1: View, **lanes: Unpack[LaneKeywords]
    ) -> list[Instruction]:
        """Set dst to src0 / src1."""
        operands = {"dst": dst, "src0": src0, "src1": src1}
        return self.vector("vdiv", operands, **lanes)

    def vand(
        self, dst: View, src0: View, src1: View, **lanes: Unpack[LaneKeywords]
    ) -> list[Instruction]:
        """Set dst to src0 AND src1, bit by bit."""
        operands = {"dst": dst, "src0": src0, "src1": src1}
        return self.vector("vand", operands, **lanes)

    def vor(
        self, dst: View, src0: View, src1: View, **lanes: Unpack[LaneKeywords]
    ) -> list[Instruction]:
        """Set dst to src0 OR src1, bit by bit."""
        operands = {"dst": dst, "src0": src0, "src1": src1}
        return self.vector("vor", operands, **lanes)

    def vmadd(
        self, dst: View, src0: View, src1: View, **lanes: Unpack[LaneKeywords]
    ) -> list[Instruction]:
        """Set dst to dst · src0 + src1, rounded once."""
        operands = {"dst": dst, "src0": src0, "src1": src1}
        return self.vector("vmadd", operands, **lanes)

    def vmaddrelu(
        self, dst: View, src0: View, src1: View, **lanes: Unpack[LaneKeywords]
    ) -> list[Instruction]:
        """Set dst to the larger of dst · src0 + src1, rounded once, and 0."""
        operands = {"dst": dst, "src0": src0, "src1": src1}
        return self.vector("vmaddrelu", operands, **lanes)

    def vaddrelu(
        self, dst: View, src0: View, src1: View, **lanes: Unpack[LaneKeywords]
    ) -> list[Instruction]:
        """Set dst to the larger of src0 + src1 and 0."""
        operands = {"dst": dst, "src0": src0, "src1": src1}
        return self.vector("vaddrelu", operands, **lanes)

    def vsubrelu(
        self, dst: View, src0: View, src1: View, **lanes: Unpack[LaneKeywords]
    ) -> list[Instruction]:
        """Set dst to the larger of src0 − src1 and 0."""
        operands = {"dst": dst, "src0": src0, "src1": src1}
        return self.vector("vsubrelu", operands, **lanes)

    def vmla(
        self, dst: View, src0: View, src1: View, **lanes: Unpack[LaneKeywords]
    ) -> list[Instruction]:
        """Set dst to dst + src0 · src1, rounded once."""
        operands = {"dst": dst, "src0": src0, "src1": src1}
        return self.vector("vmla", operands, **lanes)

    def vadds(
        self, dst: View, src: View, scalar: float, **lanes: Unpack[LaneKeywords]
    ) -> list[Instruction]:
        """Set dst to src + scalar."""
        operands = {"dst": dst, "src": src}
        return self.vector("vadds", operands, scalar=scalar, **lanes)

    def vmuls(
        self, dst: View, src: View, scalar: float, **lanes: Unpack[LaneKeywords]
    ) -> list[Instruction]:
        """Set dst to src · scalar."""
        operands = {"dst": dst, "src": src}
        return self.vector("vmuls", operands, scalar=scalar, **lanes)

    def vmaxs(
        self, dst: View, src: View, scalar: float, **lanes: Unpack[LaneKeywords]
    ) -> list[Instruction]:
        """Set dst to the larger of src and scalar."""
        operands = {"dst": dst, "src": src}
        return self.vector("vmaxs", operands, scalar=scalar, **lanes)

    def vmins(
        self, dst: View, src: View, scalar: float, **lanes: Unpack[LaneKeywords]
    ) -> list[Instruction]:
        """Set dst to the smaller of src and scalar."""
        operands = {"dst": dst, "src": src}
        return self.vector("vmins", operands, scalar=scalar, **lanes)

    def vlrelu(
        self, dst: View, src: View, scalar: float, **lanes: Unpack[LaneKeywords]
    ) -> list[Instruction]:
        """Set dst to src if it is above 0, else src · scalar."""
        operands = {"dst": dst, "src": src}
        return self.vector("vlrelu", operands, scalar=scalar, **lanes)

    def vaxpy(
        self, dst: View, src: View, scalar: float, **lanes: Unpack[LaneKeywords]
    ) -> list[Instruction]:
        """Set dst to dst + src · scalar, rounded once."""
        operands = {"dst": dst, "src": src}
        return self.vector("vaxpy", operands, scalar=scalar, **lanes)

    def vexp(self, dst: View, src: View, **lanes: Unpack[LaneKeywords]) -> list[Instruction]:
        """Set dst to e to the power of src."""
        operands = {"dst": dst, "src": src}
        return self.vector("vexp", operands, **lanes)

    def vln(self, dst: View, src: View, **lanes: Unpack[LaneKeywords]) -> list[Instruction]:
        """Set dst to the natural logarithm of src."""
        operands = {"dst": dst, "src": src}
        return self.vector("vln", operands, **lanes)

    def vrec(self, dst: View, src: View, **lanes: Unpack[LaneKeywords]) -> list[Instruction]:
        """Set dst to 1 / src."""
        operands = {"dst": dst, "src": src}
        return self.vector("vrec", operands, **lanes)

    def vrsqrt(self, dst: View, src: View, **lanes: Unpack[LaneKeywords]) -> list[Instruction]:
        """Set dst to 1 / the square root of src."""
        operands = {"dst": dst, "src": src}
        return self.vector("vrsqrt", operands, **lanes)

    def vsqrt(self, dst: View, src: View, **lanes: Unpack[LaneKeywords]) -> list[Instruction]:
        """Set dst to the square root of src."""
        operands = {"dst": dst, "src": src}
        return self.vector("vsqrt", operands, **lanes)

    def vabs(self, dst: View, src: View, **lanes: Unpack[LaneKeywords]) -> list[Instruction]:
        """Set dst to |src|."""
        operands = {"dst": dst, "src": src}
        return self.vector("vabs", operands, **lanes)

    def vrelu(self, dst: View, src: View, **lanes: Unpack[LaneKeywords]) -> list[Instruction]:
        """Set dst to the larger of src and 0."""
        operands = {"dst": dst, "src": src}
        return self.vector("vrelu", operands, **lanes)

    def vnot(self, dst: View, src: View, **lanes: Unpack[LaneKeywords]) -> list[Instruction]:
        """Set dst to NOT src, bit by bit."""
        operands = {"dst": dst, "src": src}
        return self.vector("vnot", operands, **lanes)

    def vshl(
        self, dst: View, src: View, amount: int, round: bool = False, **lanes: Unpack[LaneKeywords]
    ) -> list[Instruction]:
        """Set dst to src shifted left by amount."""
        operands = {"dst": dst, "src": src}
        return self.vector("vshl", operands, amount=amount, round=round, **lanes)

    def vshr(
        self, dst: View, src: View, amount: int, round: bool = False, **lanes: Unpack[LaneKeywords]
    ) -> list[Instruction]:
        """Set dst to src shifted right by amount; with round, to nearest, ties up."""
        operands = {"dst": dst, "src": src}
        return self.vector("vshr", operands, amount=amount, round=round, **lanes)

    def vconv(
        self,
        dst: View,
        src: View,
        rounding: str = "none",
        scale: float | None = None,
        **lanes: Unpack[LaneKeywords],
    ) -> list[Instruction]:
        """Set dst to src converted to the dtype of dst; with scale, src · scale converted."""
        operands = {"dst": dst, "src": src}
        if scale is not None:
            return self.vector("vconv", operands, rounding=rounding, scale=scale, **lanes)
        return self.vector("vconv", operands, rounding=rounding, **lanes)

    def vdup(self, dst: View, scalar: float, **lanes: Unpack[LaneKeywords]) -> list[Instruction]:
        """Set dst to scalar."""
        operands = {"dst": dst}
        return self.vector("vdup", operands, scalar=scalar, **lanes)

    def vcadd(self, dst: View, src: View, **options: Unpack[ReductionKeywords]) -> Instruction:
        """Set dst to the sum of each repeat (with accumulate, of all of them, in a register)."""
        return self.vreduce_lanes("vcadd", dst, src, **options)

    def vcmax(
        self, dst: View, src: View, order: str = "value_index", **options: Unpack[ReductionKeywords]
    ) -> Instruction:
        """Set dst to the largest lane of each repeat and its index."""
        return self.vreduce_lanes("vcmax", dst, src, order=order, **options)

    def vcmin(
        self, dst: View, src: View, order: str = "value_index", **options: Unpack[ReductionKeywords]
    ) -> Instruction:
        """Set dst to the smallest lane of each repeat and its index."""
        return self.vreduce_lanes("vcmin", dst, src, order=order, **options)

    def vcgadd(self, dst: View, src: View, **options: Unpack[ReductionKeywords]) -> Instruction:
        """Set dst to the sum of each block of 32 bytes."""
        return self.vreduce_lanes("vcgadd", dst, src, **options)

    def vcgmax(self, dst: View, src: View, **options: Unpack[ReductionKeywords]) -> Instruction:
        """Set dst to the largest lane of each block of 32 bytes."""
        return self.vreduce_lanes("vcgmax", dst, src, **options)

    def vcgmin(self, dst: View, src: View, **options: Unpack[ReductionKeywords]) -> Instruction:
        """Set dst to the smallest lane of each block of 32 bytes."""
        return self.vreduce_lanes("vcgmin", dst, src, **options)

    def vcpadd(self, dst: View, src: View, **options: Unpack[ReductionKeywords]) -> Instruction:
        """Set dst to the sum of each pair of lanes."""
        return self.vreduce_lanes("vcpadd", dst, src, **options)

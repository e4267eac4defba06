"""Builder methods of the vector unit.

Methods of elements take ``repeat``, ``mask`` and strides as the hardware does, and append one
instruction; or leave ``repeat`` away, and append as many instructions as the elements of the
(contiguous) views need. Block and repeat strides are in blocks of 32 bytes.
"""

from collections.abc import Iterator
from typing import Any

from vitruvian.sim.davinci.isa.instruction import Instruction, Unit, Work
from vitruvian.sim.davinci.isa.lanes import ALL, lane_spans, lanes_of, prefix
from vitruvian.sim.davinci.isa.operands import REPEAT_BYTES, Span, View
from vitruvian.sim.davinci.program.builder import Builder

__all__ = ["MAX_REPEAT", "Vector"]

#: Largest repeat of one instruction, eight bits.
MAX_REPEAT = 255


class Vector(Builder):
    """Instructions of the vector unit; see `sim.davinci.isa.operations` for what each computes."""

    def vector(
        self,
        op: str,
        operands: dict[str, View],
        *,
        repeat: int | None = None,
        mask: int = ALL,
        strides: dict[str, tuple[int, int]] | None = None,
        **fields: Any,
    ) -> list[Instruction]:
        """Any operation whose operands are elements lane by lane.

        Parameters
        ----------
        op : str
        operands : dict of str to View
            The first is written, if it is called dst; the others are read.
        repeat : int, optional
            1 … 255; without it the views say how much, and ``mask`` and ``strides`` are not given.
        mask : int
            Bit l enables lane l.
        strides : dict of str to (block stride, repeat stride), optional
            By operand; 1 and the blocks of a repeat by default.
        **fields
            The operation's other fields.
        """
        if Unit.V not in self.units:
            self.fail(f"{op} must be on a core with a vector unit, not on {self}")
        lanes = lanes_of(*operands.values())
        if repeat is None:
            if mask != ALL or strides:
                self.fail(f"{op} must have a repeat if it has a mask or strides")
            pieces = self._pieces(op, operands, lanes)
        else:
            if not 1 <= repeat <= MAX_REPEAT:
                self.fail(f"repeat of {op} must be 1 … {MAX_REPEAT}, not {repeat}")
            if mask != ALL and not 0 <= mask < 1 << lanes:
                self.fail(f"mask of {op} must have {lanes} bits, not {mask:#x}")
            pieces = iter([(operands, repeat, mask)])
        return [
            self._one(op, views, lanes, count, enabled, strides or {}, fields)
            for views, count, enabled in pieces
        ]

    def _pieces(
        self, op: str, operands: dict[str, View], lanes: int
    ) -> Iterator[tuple[dict[str, View], int, int]]:
        sizes = {view.size for view in operands.values()}
        if len(sizes) != 1 or not all(view.is_contiguous for view in operands.values()):
            shown = ", ".join(map(str, operands.values()))
            self.fail(f"operands of {op} must be contiguous and of one size, not {shown}")
        size = sizes.pop()
        flat = {name: view.reshape(size) for name, view in operands.items()}
        at = 0
        while at < size:
            repeat = min((size - at) // lanes, MAX_REPEAT)
            count = repeat * lanes or size - at
            views = {name: view[at : at + count] for name, view in flat.items()}
            yield views, repeat or 1, ALL if repeat else prefix(count)
            at += count

    def _one(
        self,
        op: str,
        operands: dict[str, View],
        lanes: int,
        repeat: int,
        mask: int,
        strides: dict[str, tuple[int, int]],
        fields: dict[str, Any],
    ) -> Instruction:
        all_fields: dict[str, Any] = {
            "repeat": repeat,
            "mask": prefix(lanes) if mask == ALL else mask,
        }
        reads, writes = (), ()
        for name, view in operands.items():
            block, step = strides.get(name, (1, lanes * view.itemsize // 32))
            all_fields[f"{name}_block_stride"], all_fields[f"{name}_repeat_stride"] = block, step
            spans = lane_spans(view, lanes, mask, repeat, block, step)
            if name == "dst":
                writes = spans
            else:
                reads += spans
        if op in _ACCUMULATE:
            reads += writes
        all_fields |= fields
        return self._vector(op, operands, all_fields, reads, writes, repeat, lanes, mask)

    def _vector(
        self,
        op: str,
        operands: dict[str, View],
        fields: dict[str, Any],
        reads: tuple[Span, ...],
        writes: tuple[Span, ...],
        repeat: int,
        lanes: int = 0,
        mask: int = ALL,
    ) -> Instruction:
        if Unit.V not in self.units:
            self.fail(f"{op} must be on a core with a vector unit, not on {self}")
        enabled = lanes if mask == ALL else mask.bit_count()
        widest = max(operands.values(), key=lambda v: v.itemsize).dtype if operands else ""
        work = Work(repeats=repeat, operations=repeat * enabled, precision=widest)
        return self.add(
            Unit.V, op, operands=operands, fields=fields, reads=reads, writes=writes, work=work
        )

    # Two operands.

    def _two(self, op: str, dst: View, src0: View, src1: View, **how: Any) -> list[Instruction]:
        return self.vector(op, {"dst": dst, "src0": src0, "src1": src1}, **how)

    def vadd(self, dst: View, src0: View, src1: View, **how: Any) -> list[Instruction]:
        """dst = src0 + src1; ``how`` as `vector` takes it."""
        return self._two("vadd", dst, src0, src1, **how)

    def vsub(self, dst: View, src0: View, src1: View, **how: Any) -> list[Instruction]:
        """dst = src0 − src1."""
        return self._two("vsub", dst, src0, src1, **how)

    def vmul(self, dst: View, src0: View, src1: View, **how: Any) -> list[Instruction]:
        """dst = src0 · src1."""
        return self._two("vmul", dst, src0, src1, **how)

    def vdiv(self, dst: View, src0: View, src1: View, **how: Any) -> list[Instruction]:
        """dst = src0 / src1."""
        return self._two("vdiv", dst, src0, src1, **how)

    def vmax(self, dst: View, src0: View, src1: View, **how: Any) -> list[Instruction]:
        """dst = the larger of src0 and src1."""
        return self._two("vmax", dst, src0, src1, **how)

    def vmin(self, dst: View, src0: View, src1: View, **how: Any) -> list[Instruction]:
        """dst = the smaller of src0 and src1."""
        return self._two("vmin", dst, src0, src1, **how)

    def vand(self, dst: View, src0: View, src1: View, **how: Any) -> list[Instruction]:
        """dst = src0 and src1, bit by bit."""
        return self._two("vand", dst, src0, src1, **how)

    def vor(self, dst: View, src0: View, src1: View, **how: Any) -> list[Instruction]:
        """dst = src0 or src1, bit by bit."""
        return self._two("vor", dst, src0, src1, **how)

    def vmla(self, dst: View, src0: View, src1: View, **how: Any) -> list[Instruction]:
        """dst = dst + src0 · src1."""
        return self._two("vmla", dst, src0, src1, **how)

    def vsel(
        self, dst: View, src0: View, src1: View, bits: View | None = None, **how: Any
    ) -> list[Instruction]:
        """dst = src0 where the bit of the lane is set, src1 where not.

        The bits are in the mask register that `vcmp` wrote, or, with ``repeat``, at ``bits``:
        a bit for each lane, repeat after repeat.
        """
        if bits is None:
            return self._two("vsel", dst, src0, src1, **how)
        made = self._two("vsel", dst, src0, src1, **how)
        if len(made) != 1:
            self.fail("vsel with bits in memory must be one instruction, with a repeat")
        (one,) = made
        span = Span(bits.buffer, bits.offset, one.fields["repeat"] * lanes_of(dst, src0) // 8)
        operands = {**one.operands, "bits": bits}
        self.instructions.pop()
        return [self._again(one, operands=operands, reads=(*one.reads, span))]

    def _again(self, one: Instruction, **changes: Any) -> Instruction:
        names = ("operands", "fields", "reads", "writes", "path", "work")
        return self.add(
            one.unit, one.op, one.kind, **{n: changes.get(n, getattr(one, n)) for n in names}
        )

    # One operand, with and without a scalar.

    def _unary(self, op: str, dst: View, src: View, **how: Any) -> list[Instruction]:
        return self.vector(op, {"dst": dst, "src": src}, **how)

    def vadds(self, dst: View, src: View, scalar: float, **how: Any) -> list[Instruction]:
        """dst = src + scalar."""
        return self._unary("vadds", dst, src, scalar=scalar, **how)

    def vmuls(self, dst: View, src: View, scalar: float, **how: Any) -> list[Instruction]:
        """dst = src · scalar."""
        return self._unary("vmuls", dst, src, scalar=scalar, **how)

    def vmaxs(self, dst: View, src: View, scalar: float, **how: Any) -> list[Instruction]:
        """dst = the larger of src and scalar."""
        return self._unary("vmaxs", dst, src, scalar=scalar, **how)

    def vmins(self, dst: View, src: View, scalar: float, **how: Any) -> list[Instruction]:
        """dst = the smaller of src and scalar."""
        return self._unary("vmins", dst, src, scalar=scalar, **how)

    def vaxpy(self, dst: View, src: View, scalar: float, **how: Any) -> list[Instruction]:
        """dst = dst + src · scalar."""
        return self._unary("vaxpy", dst, src, scalar=scalar, **how)

    def vabs(self, dst: View, src: View, **how: Any) -> list[Instruction]:
        """dst = |src|."""
        return self._unary("vabs", dst, src, **how)

    def vexp(self, dst: View, src: View, **how: Any) -> list[Instruction]:
        """dst = e to the src."""
        return self._unary("vexp", dst, src, **how)

    def vln(self, dst: View, src: View, **how: Any) -> list[Instruction]:
        """dst = natural logarithm of src."""
        return self._unary("vln", dst, src, **how)

    def vrec(self, dst: View, src: View, **how: Any) -> list[Instruction]:
        """dst = 1 / src."""
        return self._unary("vrec", dst, src, **how)

    def vsqrt(self, dst: View, src: View, **how: Any) -> list[Instruction]:
        """dst = square root of src."""
        return self._unary("vsqrt", dst, src, **how)

    def vrsqrt(self, dst: View, src: View, **how: Any) -> list[Instruction]:
        """dst = 1 / square root of src."""
        return self._unary("vrsqrt", dst, src, **how)

    def vrelu(self, dst: View, src: View, **how: Any) -> list[Instruction]:
        """dst = the larger of src and 0."""
        return self._unary("vrelu", dst, src, **how)

    def vnot(self, dst: View, src: View, **how: Any) -> list[Instruction]:
        """dst = not src, bit by bit."""
        return self._unary("vnot", dst, src, **how)

    def vconv(self, dst: View, src: View, rounding: str = "none", **how: Any) -> list[Instruction]:
        """dst = src converted; a repeat has as many lanes as the wider of the two dtypes."""
        return self._unary("vconv", dst, src, rounding=rounding, **how)

    def vdup(self, dst: View, scalar: float, **how: Any) -> list[Instruction]:
        """dst = scalar."""
        return self.vector("vdup", {"dst": dst}, scalar=scalar, **how)

    # Comparison.

    def vcmp(self, src0: View, src1: View, condition: str, **how: Any) -> list[Instruction]:
        """Compare one repeat into the mask register: "lt", "gt", "ge", "le", "eq" or "ne"."""
        how = {"repeat": 1, **how}
        return self.vector("vcmp", {"src0": src0, "src1": src1}, condition=condition, **how)

    def vcmpv(
        self, dst: View, src0: View, src1: View, condition: str, *, repeat: int, **how: Any
    ) -> list[Instruction]:
        """Compare into bits in memory: one for each lane, repeat after repeat without gaps."""
        sources = {"src0": src0, "src1": src1}
        (one,) = self.vector("vcmpv", sources, repeat=repeat, condition=condition, **how)
        self.instructions.pop()
        bits = Span(dst.buffer, dst.offset, repeat * lanes_of(src0, src1) // 8)
        return [self._again(one, operands={"dst": dst, **sources}, writes=(bits,))]

    # Reductions.

    def vreduce_lanes(
        self,
        op: str,
        dst: View,
        src: View,
        *,
        repeat: int = 1,
        mask: int = ALL,
        dst_repeat_bytes: int | None = None,
        src_block_stride: int = 1,
        src_repeat_stride: int | None = None,
        order: str = "value_index",
    ) -> Instruction:
        """vcadd, vcmax, vcmin (a repeat), vcgadd, vcgmax, vcgmin (each block), vcpadd (pairs).

        ``dst_repeat_bytes`` is from the result of a repeat to that of the next; results follow
        each other by default. vcmax and vcmin give the value and its lane's number, or as
        ``order`` says: "value_index", "index_value", "value", "index".
        """
        lanes = lanes_of(src)
        one = {"vcadd": 1, "vcmax": 2, "vcmin": 2, "vcpadd": lanes // 2}.get(op, 8)
        if op in ("vcmax", "vcmin") and order in ("value", "index"):
            one = 1
        wide = one * src.itemsize
        dst_repeat_bytes = wide if dst_repeat_bytes is None else dst_repeat_bytes
        src_repeat_stride = REPEAT_BYTES // 32 if src_repeat_stride is None else src_repeat_stride
        reads = lane_spans(src, lanes, mask, repeat, src_block_stride, src_repeat_stride)
        writes = Span(dst.buffer, dst.offset, wide, ((repeat, dst_repeat_bytes),))
        fields = {
            "repeat": repeat,
            "mask": prefix(lanes) if mask == ALL else mask,
            "dst_repeat_bytes": dst_repeat_bytes,
            "src_block_stride": src_block_stride,
            "src_repeat_stride": src_repeat_stride,
            "order": order,
        }
        views = {"dst": dst, "src": src}
        return self._vector(op, views, fields, reads, (writes,), repeat, lanes, mask)

    # Whole views: what is read and written are the views themselves.

    def vector_views(
        self, op: str, operands: dict[str, View], *, repeat: int = 1, **fields: Any
    ) -> Instruction:
        """An operation that touches its views as they are: vtranspose, v4dtrans, vgather, …"""
        reads = tuple(view.span for name, view in operands.items() if name != "dst")
        writes = tuple(view.span for name, view in operands.items() if name == "dst")
        if op in _ACCUMULATE:
            reads += writes
        return self._vector(op, operands, {"repeat": repeat, **fields}, reads, writes, repeat)

    def vtranspose(self, dst: View, src: View) -> Instruction:
        """Transpose 16×16 elements of 16 bits."""
        return self.vector_views("vtranspose", {"dst": dst, "src": src}, repeat=2)


#: Operations that read what they write.
_ACCUMULATE = frozenset({"vmla", "vmadd", "vmaddrelu", "vaxpy"})

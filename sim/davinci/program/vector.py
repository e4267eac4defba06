"""General builder methods of the vector unit, which all its other methods call.

``Vector.vector`` makes any lane-wise instruction, ``Vector.vreduce_lanes`` any reduction, and
``Vector.vector_views`` an instruction that accesses exactly its views. The methods with the
names of the instructions are in ``vector_methods``, ``comparisons`` and ``gather_sort``.
Block and repeat strides are in blocks of 32 bytes.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

from vitruvian.sim.davinci.isa.instruction import Instruction, Kind, Unit, Work
from vitruvian.sim.davinci.isa.lanes import ALL, lane_spans, lanes_of, prefix
from vitruvian.sim.davinci.isa.operands import DTYPES, REPEAT_BYTES, Span, View, dtype_bytes
from vitruvian.sim.davinci.isa.vector import REDUCE, VECTOR_OPS
from vitruvian.sim.davinci.program.builder import Builder
from vitruvian.sim.davinci.program.mistakes import no_scalar, no_view
from vitruvian.sim.davinci.program.vector_keywords import LaneKeywords, Strides

#: Largest repeat of one instruction: the hardware's field has eight bits.
MAX_REPEAT = 255

#: Instructions that read what they write.
_READS_DST = frozenset(op.name for op in VECTOR_OPS.values() if op.reads_dst)

#: Reductions, and the orders of the results of those that give a value and its lane.
_REDUCTIONS = tuple(op.name for op in VECTOR_OPS.values() if op.form is REDUCE)
_ORDERS = ("value_index", "index_value", "value", "index")

#: Work is shared: a loop makes many instructions with the same work.
_work = lru_cache(4096)(Work)


class Vector(Builder):
    """Vector instructions by name; ``isa.vector.VECTOR_OPS`` defines the result of each."""

    def vector(
        self,
        op: str,
        operands: dict[str, View],
        *,
        repeat: int | None = None,
        mask: int = ALL,
        strides: Strides | None = None,
        **fields: Any,
    ) -> list[Instruction]:
        """Append any instruction that works on its operands lane by lane.

        With ``repeat``, the method appends one instruction. Without it, the method appends as many
        instructions as the elements need; the views must then be contiguous and of equal size.

        Parameters
        ----------
        op : str
            Name of the instruction.
        operands : dict of str to View
            The instruction writes the operand that is called dst and reads the others.
        repeat : int, optional
            Passes of 256 bytes, 1 … 255. If it is missing, ``mask`` and ``strides`` must be, too.
        mask : int
            Bit l enables lane l.
        strides : mapping of str to (block stride, repeat stride), optional
            Strides by operand; by default 1 block, and the blocks of a repeat.
        **fields
            Other fields of the instruction.

        Returns
        -------
        list of Instruction

        Raises
        ------
        ProgramError
            If the core has no vector unit, or the repeat, the mask, the views, the name of a field,
            or a scalar is not allowed.
        """
        instructions = self._lanewise(op, operands, repeat, mask, strides or {}, fields)
        self.instructions.extend(instructions)
        return instructions

    def _lanewise(
        self,
        op: str,
        operands: dict[str, View],
        repeat: int | None,
        mask: int,
        strides: Strides,
        fields: dict[str, Any],
    ) -> list[Instruction]:
        """Return the instructions that ``vector`` appends."""
        self._check_unit(op)
        try:
            lanes = lanes_of(*operands.values())
        except AttributeError:  # an operand is no view
            self.fail(no_view(op, operands))
        if "scalar" in fields:
            # The scalar has the dtype of the source, or of dst if there is no source.
            wrong = no_scalar(op, fields["scalar"], next(reversed(operands.values())).dtype)
            if wrong:
                self.fail(wrong)
        if repeat is None:
            if mask != ALL or strides:
                self.fail(f"{op} must have a repeat if it has a mask or strides")
            pieces = self._pieces(op, operands, lanes)
        else:
            self._check_repeat(op, repeat)
            if mask != ALL and not 0 <= mask < 1 << lanes:
                self.fail(f"mask of {op} must have {lanes} bits, not {mask:#x}")
            pieces = iter([(operands, repeat, mask)])
        return [
            self._one(op, views, lanes, count, enabled, strides, fields)
            for views, count, enabled in pieces
        ]

    def _check_repeat(self, op: str, repeat: int) -> None:
        """Refuse a repeat that the eight bits of an instruction cannot hold."""
        if not 1 <= repeat <= MAX_REPEAT:
            self.fail(f"repeat of {op} must be 1 … {MAX_REPEAT}, not {repeat}")

    def _check_unit(self, op: str) -> None:
        if Unit.V not in self.units:
            self.fail(f"{op} must be on a core with a vector unit, not on {self}")

    def _pieces(
        self, op: str, operands: dict[str, View], lanes: int
    ) -> Iterator[tuple[dict[str, View], int, int]]:
        """Yield views, repeat and mask of each instruction that is needed to cover the views."""
        sizes = {view.size for view in operands.values()}
        if len(sizes) != 1 or not all(view.is_contiguous for view in operands.values()):
            shown = ", ".join(map(str, operands.values()))
            self.fail(f"operands of {op} must be contiguous and of one size, not {shown}")
        (size,) = sizes
        flat = {
            name: view if len(view.shape) == 1 else view.reshape(size)
            for name, view in operands.items()
        }
        start = 0
        while start < size:
            # Whole repeats first; elements that do not fill a repeat are one masked instruction.
            repeat = min((size - start) // lanes, MAX_REPEAT)
            count = repeat * lanes or size - start
            if count == size:
                views = flat
            else:
                views = {name: view[start : start + count] for name, view in flat.items()}
            yield views, repeat or 1, ALL if repeat else prefix(count)
            start += count

    def _one(
        self,
        op: str,
        operands: dict[str, View],
        lanes: int,
        repeat: int,
        mask: int,
        strides: Strides,
        fields: dict[str, Any],
    ) -> Instruction:
        all_fields: dict[str, Any] = {
            "repeat": repeat,
            "mask": prefix(lanes) if mask == ALL else mask,
        }
        reads, writes = (), ()
        for name, view in operands.items():
            if name in strides:
                block, step = strides[name]
            else:  # the blocks and repeats of the operand follow each other without gaps
                block, step = 1, lanes * DTYPES[view.dtype].itemsize // 32
            all_fields[f"{name}_block_stride"], all_fields[f"{name}_repeat_stride"] = block, step
            spans = lane_spans(view, lanes, mask, repeat, block, step)
            if name == "dst":
                writes = spans
            else:
                reads += spans
        if op in _READS_DST:
            reads += writes
        all_fields |= fields
        return self._make_vector(op, operands, all_fields, reads, writes, repeat, lanes, mask)

    def _make_vector(
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
        """Make an instruction of the vector unit; its work is the enabled lanes of all repeats."""
        # Disabled lanes take time, but they are no work.
        enabled = lanes if mask == ALL else mask.bit_count()
        # The work of a conversion counts for the wider one of its two dtypes.
        widest = max([v.dtype for v in operands.values()], key=dtype_bytes, default="")
        work = _work(0, repeat, repeat * enabled, widest)
        return self._new(Unit.V, op, Kind.NORMAL, operands, fields, reads, writes, "", work)

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
        """Append an instruction of the vector unit whose fields and spans the caller provides."""
        self._check_unit(op)
        instr = self._make_vector(op, operands, fields, reads, writes, repeat, lanes, mask)
        return self.append(instr)

    # Comparison and selection: the lanes' bits are in a register, or one after another in memory.

    def vcmp(
        self,
        src0: View,
        src1: View,
        condition: str,
        *,
        repeat: int | None = 1,
        mask: int = ALL,
        strides: Strides | None = None,
    ) -> list[Instruction]:
        """Compare src0 with src1 into the mask register, one repeat by default.

        Parameters
        ----------
        condition : {"lt", "gt", "ge", "le", "eq", "ne"}
            The comparison; with a NaN only "ne" is true.
        repeat, mask, strides
            As ``vector`` takes them.

        Raises
        ------
        ProgramError
            As for ``vector``.
        """
        sources = {"src0": src0, "src1": src1}
        options: LaneKeywords = {"repeat": repeat, "mask": mask, "strides": strides}
        return self.vector("vcmp", sources, **options, condition=condition)

    def vcmpv(
        self,
        dst: View,
        src0: View,
        src1: View,
        condition: str,
        *,
        repeat: int,
        mask: int = ALL,
        strides: Strides | None = None,
    ) -> list[Instruction]:
        """Compare src0 with src1 into bits at dst, one for each lane, without gaps.

        Parameters
        ----------
        dst : View
            The first bit is the lowest one of its first byte.
        condition : {"lt", "gt", "ge", "le", "eq", "ne"}
            The comparison; with a NaN only "ne" is true.
        repeat, mask, strides
            As ``vector`` takes them.

        Raises
        ------
        ProgramError
            As for ``vector``.
        """
        sources = {"src0": src0, "src1": src1}
        fields = {"condition": condition}
        return self._into_bits("vcmpv", dst, sources, repeat, mask, strides, fields)

    def vcmpvs(
        self,
        dst: View,
        src: View,
        scalar: float,
        condition: str,
        *,
        repeat: int,
        mask: int = ALL,
        strides: Strides | None = None,
    ) -> list[Instruction]:
        """Compare src with a scalar into bits at dst, one for each lane, without gaps.

        Parameters
        ----------
        dst : View
            The first bit is the lowest one of its first byte.
        condition : {"lt", "gt", "ge", "le", "eq", "ne"}
            The comparison; with a NaN only "ne" is true.
        repeat, mask, strides
            As ``vector`` takes them.

        Raises
        ------
        ProgramError
            As for ``vector``.
        """
        fields = {"scalar": scalar, "condition": condition}
        return self._into_bits("vcmpvs", dst, {"src": src}, repeat, mask, strides, fields)

    def _into_bits(
        self,
        op: str,
        dst: View,
        sources: dict[str, View],
        repeat: int,
        mask: int,
        strides: Strides | None,
        fields: dict[str, Any],
    ) -> list[Instruction]:
        (instr,) = self._lanewise(op, sources, repeat, mask, strides or {}, fields)
        # Bits have no blocks and strides, so dst is not one of the lane-wise operands.
        bits = Span(dst.buffer, dst.offset, repeat * lanes_of(*sources.values()) // 8)
        return [self.append(replace(instr, operands={"dst": dst, **sources}, writes=(bits,)))]

    def vsel(
        self,
        dst: View,
        src0: View,
        src1: View,
        bits: View | None = None,
        *,
        repeat: int | None = None,
        mask: int = ALL,
        strides: Strides | None = None,
        scalar: float | None = None,
        source: View | None = None,
    ) -> list[Instruction]:
        """Set dst to src0 where the bit of the lane is set, else to src1.

        Parameters
        ----------
        bits : View, optional
            Bits in memory, one for each lane, repeat after repeat; they need a ``repeat``. Without
            them, the bits are those of the mask register, which ``vcmp`` wrote.
        repeat, mask, strides
            As ``vector`` takes them.
        scalar : float, optional
            With ``bits``: a scalar in a register, which takes the place of src1.
        source : View, optional
            The element that the register was loaded from.

        Raises
        ------
        ProgramError
            As for ``vector``.
        """
        views, fields = {"dst": dst, "src0": src0, "src1": src1}, {}
        more = () if source is None else (Span(source.buffer, source.offset, source.itemsize),)
        if scalar is not None:  # src0 is read twice instead of src1
            views["src1"], fields = src0, {"scalar": scalar}
            strides = {**(strides or {}), "src1": (strides or {}).get("src0", (1, 8))}
        instructions = self._lanewise("vsel", views, repeat, mask, strides or {}, {})
        if bits is not None:
            if len(instructions) != 1:
                self.fail("vsel with bits in memory must be one instruction, with a repeat")
            nbytes = instructions[0].fields["repeat"] * lanes_of(dst, src0) // 8
            reads = (*instructions[0].reads, Span(bits.buffer, bits.offset, nbytes), *more)
            operands, fields = {**views, "bits": bits}, {**instructions[0].fields, **fields}
            instructions = [replace(instructions[0], operands=operands, reads=reads, fields=fields)]
        return [self.append(instr) for instr in instructions]

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
        total: str = "",
    ) -> Instruction:
        """Append a reduction of each repeat, each block of 32 bytes, or each pair of lanes.

        Parameters
        ----------
        op : {"vcadd", "vcmax", "vcmin", "vcgadd", "vcgmax", "vcgmin", "vcpadd"}
            A "g" in the name stands for each block, a "p" for pairs.
        repeat, mask
            As ``vector`` takes them.
        dst_repeat_bytes : int, optional
            Bytes from the results of a repeat to those of the next one. By default, results follow
            each other without a gap.
        src_block_stride, src_repeat_stride : int
            Blocks of 32 bytes from block to block, and from repeat to repeat.
        order : {"value_index", "index_value", "value", "index"}
            The results of vcmax and vcmin: the value, the number of its lane, or both in turn.
        total : {"", "first", "next"}
            If not empty, vcadd adds its sums in a register, which "first" empties, and not to dst.

        Raises
        ------
        ProgramError
            If the core has no vector unit, or the op, the repeat, the mask or the order is not
            allowed.
        """
        if op not in _REDUCTIONS or order not in _ORDERS:
            allowed = f"one of {', '.join(_REDUCTIONS)}, in an order of {', '.join(_ORDERS)}"
            self.fail(f"reduction must be {allowed}, not {op} in {order!r}")
        self._check_repeat(op, repeat)
        lanes = lanes_of(src)
        if mask != ALL and not 0 <= mask < 1 << lanes:
            self.fail(f"mask of {op} must have {lanes} bits, not {mask:#x}")
        width = VECTOR_OPS[op].results_of(lanes, order) * src.itemsize
        dst_repeat_bytes = width if dst_repeat_bytes is None else dst_repeat_bytes
        src_repeat_stride = REPEAT_BYTES // 32 if src_repeat_stride is None else src_repeat_stride
        reads = lane_spans(src, lanes, mask, repeat, src_block_stride, src_repeat_stride)
        writes = Span(dst.buffer, dst.offset, width, ((repeat, dst_repeat_bytes),))
        fields = {
            "repeat": repeat,
            "mask": prefix(lanes) if mask == ALL else mask,
            "dst_repeat_bytes": dst_repeat_bytes,
            "src_block_stride": src_block_stride,
            "src_repeat_stride": src_repeat_stride,
            "order": order,
        }
        fields |= {"total": total} if total else {}
        views = {"dst": dst, "src": src}
        return self._vector(
            op, views, fields, reads, () if total else (writes,), repeat, lanes, mask
        )

    # Whole views.

    def vector_views(
        self, op: str, operands: dict[str, View], *, repeat: int = 1, **fields: Any
    ) -> Instruction:
        """Append an instruction that reads and writes all elements of its views and no others.

        Parameters
        ----------
        op : str
            Name of the instruction.
        operands : dict of str to View
            The instruction writes the operand that is called dst and reads the others.
        repeat : int
            Passes of 256 bytes, for the time that the instruction takes.
        **fields
            Other fields of the instruction.

        Raises
        ------
        ProgramError
            If the core has no vector unit, or the name of the op or of a field is unknown.
        """
        reads = tuple(view.span for name, view in operands.items() if name != "dst")
        writes = tuple(view.span for name, view in operands.items() if name == "dst")
        if op in _READS_DST:
            reads += writes
        return self._vector(op, operands, {"repeat": repeat, **fields}, reads, writes, repeat)

    def vtranspose(self, dst: View, src: View) -> Instruction:
        """Transpose 16×16 elements of 16 bits.

        Parameters
        ----------
        dst, src : View
            256 elements each, row by row.

        Raises
        ------
        ProgramError
            If the core has no vector unit.
        """
        return self.vector_views("vtranspose", {"dst": dst, "src": src}, repeat=2)

    def v4dtrans(
        self, dst: View, src: View, *, pixels: int, channels: int, mode: int = 0
    ) -> Instruction:
        """Turn pixels × channels into channels × pixels, or back.

        Parameters
        ----------
        dst, src : View
            Views of pixels · channels elements.
        pixels, channels : int
            Rows and columns of the matrix in mode 0.
        mode : {0, 1}
            0 is to channels × pixels, 1 is back.

        Raises
        ------
        ProgramError
            If the core has no vector unit.
        """
        fields = {"pixels": pixels, "channels": channels, "mode": mode}
        return self.vector_views("v4dtrans", {"dst": dst, "src": src}, **fields)

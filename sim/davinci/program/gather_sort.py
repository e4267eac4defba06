"""Builder methods of the vector instructions that move elements between lanes and rows.

Some of them read or write a range that depends on data. Such a method takes the bytes or the
number of elements from its caller, who must know the data.
"""

from collections.abc import Iterable, Sequence

from vitruvian.common.validate import ceil_div
from vitruvian.sim.davinci.isa.instruction import Instruction
from vitruvian.sim.davinci.isa.lanes import ALL, lanes_of, prefix
from vitruvian.sim.davinci.isa.operands import BLOCK_BYTES, Span, View
from vitruvian.sim.davinci.isa.vector import PAIR_BYTES, PATTERNS, SORTED
from vitruvian.sim.davinci.program.vector import Vector

#: Pairs that are merged in the time of a repeat. Assumed: a public cost model of the 910B gives
#: 78 cycles for four lists of 64 pairs, and 16 cycles for a repeat.
_MERGED_PER_REPEAT = 64


class GatherSort(Vector):
    """Instructions of the vector unit that gather, compact, sort, merge and broadcast elements."""

    def vgather(
        self,
        dst: View,
        src: View,
        offsets: View,
        *,
        base: int,
        repeat: int = 1,
        mask: int = ALL,
        dst_repeat_stride: int = 8,
        runs: Iterable[tuple[int, int]] | None = None,
    ) -> Instruction:
        """Set each lane to the element of UB at byte ``base`` plus the lane's offset.

        Parameters
        ----------
        src : View
            The elements that the offsets may refer to.
        offsets : View
            Offsets in bytes, a uint32 for every lane of every repeat.
        base : int
            Byte of UB that offset 0 stands for.
        mask : int
            Bit l enables lane l.
        dst_repeat_stride : int
            Blocks of 32 bytes from repeat to repeat.
        runs : iterable of (first byte, bytes), optional
            Bytes of UB that the offsets refer to; by default all of ``src``.

        Raises
        ------
        ProgramError
            If the core has no vector unit, or the repeat is not 1 … 255.
        """
        self._check_repeat("vgather", repeat)
        lanes = lanes_of(dst)
        mask = prefix(lanes) if mask == ALL else mask
        # The offsets are data, which the builder does not see: without ``runs``, all of ``src``
        # counts as read.
        read = (src.span,) if runs is None else tuple(Span(src.buffer, *run) for run in runs)
        levels = ((repeat, dst_repeat_stride * BLOCK_BYTES),)
        # Nothing is written above the highest enabled lane.
        writes = Span(dst.buffer, dst.offset, mask.bit_length() * dst.itemsize, levels)
        views = {"dst": dst, "src": src, "offsets": offsets}
        fields = {
            "repeat": repeat,
            "mask": mask,
            "dst_repeat_stride": dst_repeat_stride,
            "base": base,
        }
        reads = (*read, offsets.span)
        return self._vector("vgather", views, fields, reads, (writes,), repeat, lanes, mask)

    def vreduce(
        self,
        dst: View,
        src: View,
        src1: View | None = None,
        *,
        mode: int,
        count: int,
        repeat: int = 1,
        src_block_stride: int = 1,
        src_repeat_stride: int = 8,
        bits_repeat_stride: int = 0,
        results: int | None = None,
    ) -> Instruction:
        """Write the elements of src that a pattern or bits select, without gaps between them.

        Parameters
        ----------
        src1 : View, optional
            In mode 0, a bit for each element.
        mode : int
            0 takes bits in memory; 1 … 7 are the patterns of ``isa.vector.PATTERNS``.
        count : int
            Elements of a repeat.
        src_block_stride, src_repeat_stride, bits_repeat_stride : int
            Blocks of 32 bytes from block to block, and from repeat to repeat of src and src1.
        results : int, optional
            In mode 0, the number of bits that are set in all repeats.

        Raises
        ------
        ProgramError
            If mode 0 comes without ``src1`` or ``results``, or there is no such mode.
        """
        if mode not in PATTERNS and mode != 0:
            self.fail(f"mode of vreduce must be 0 … {max(PATTERNS)}, not {mode}")
        blocks, rest = divmod(count * src.itemsize, BLOCK_BYTES)
        block, step = src_block_stride * BLOCK_BYTES, src_repeat_stride * BLOCK_BYTES
        reads: list[Span] = []
        if blocks:
            levels = ((repeat, step), (blocks, block))
            reads.append(Span(src.buffer, src.offset, BLOCK_BYTES, levels))
        # The runs of a span have one length, so a partial last block needs a span of its own.
        if rest:
            reads.append(Span(src.buffer, src.offset + blocks * block, rest, ((repeat, step),)))
        views = {"dst": dst, "src": src}
        if mode:
            first, every = PATTERNS[mode]
            results = repeat * len(range(first, count, every))
        else:
            if src1 is None or results is None:
                self.fail("vreduce must have src1 and results in mode 0")
            views["src1"] = src1
            levels = ((repeat, bits_repeat_stride * BLOCK_BYTES),)
            reads.append(Span(src1.buffer, src1.offset, ceil_div(count, 8), levels))
        fields = {
            "repeat": repeat,
            "mode": mode,
            "count": count,
            "src_block_stride": src_block_stride,
            "src_repeat_stride": src_repeat_stride,
            "bits_repeat_stride": bits_repeat_stride,
        }
        writes = Span(dst.buffer, dst.offset, results * src.itemsize)
        return self._vector("vreduce", views, fields, tuple(reads), (writes,), repeat, count)

    def vbitsort(self, dst: View, src: View, src1: View, *, repeat: int = 1) -> Instruction:
        """Sort groups of 32 scores with their indices, the highest score first.

        Parameters
        ----------
        dst : View
            Pairs of 8 bytes: the score first, the index in the last four bytes.
        src : View
            Scores.
        src1 : View
            Indices, uint32.
        repeat : int
            Number of groups, 1 … 255.

        Raises
        ------
        ProgramError
            If the core has no vector unit, or the repeat is not 1 … 255.
        """
        self._check_repeat("vbitsort", repeat)
        count = repeat * SORTED
        views = {"dst": dst, "src": src, "src1": src1}
        reads = tuple(Span(v.buffer, v.offset, count * v.itemsize) for v in (src, src1))
        writes = Span(dst.buffer, dst.offset, count * PAIR_BYTES)
        return self._vector("vbitsort", views, {"repeat": repeat}, reads, (writes,), repeat, SORTED)

    def vmrgsort(
        self,
        dst: View,
        src: View,
        *,
        lists: Sequence[tuple[int, int]],
        repeat: int = 1,
        taken: Sequence[int] | None = None,
    ) -> Instruction:
        """Merge sorted lists of pairs into one, the highest score first.

        Parameters
        ----------
        src : View
            The first list; its buffer is that of all lists.
        lists : sequence of (first byte, pairs)
            Place of each list in the buffer, and its number of pairs.
        repeat : int
            Each further repeat begins where the lists of the previous repeat end.
        taken : sequence of int, optional
            Pairs that are taken from each list before one is exhausted, if the merge ends there.

        Raises
        ------
        ProgramError
            If the core has no vector unit.
        """
        total = sum(length for _, length in lists)
        levels = ((repeat, total * PAIR_BYTES),)
        reads = tuple(Span(src.buffer, start, n * PAIR_BYTES, levels) for start, n in lists)
        writes = Span(dst.buffer, dst.offset, repeat * total * PAIR_BYTES)
        views, fields = {"dst": dst, "src": src}, {"repeat": repeat, "lists": tuple(lists)}
        if taken is not None:
            fields["taken"], total = tuple(taken), sum(taken)
            writes = Span(dst.buffer, dst.offset, total * PAIR_BYTES)
        # The time follows the pairs that are merged, and not the repeats of the instruction.
        passes = -(-repeat * total // _MERGED_PER_REPEAT)
        return self._vector("vmrgsort", views, fields, reads, (writes,), passes, _MERGED_PER_REPEAT)

    def vbrcb(
        self,
        dst: View,
        src: View,
        *,
        repeat: int = 1,
        dst_block_stride: int = 1,
        dst_repeat_stride: int = 8,
    ) -> Instruction:
        """Fill a block of 32 bytes of dst with each of 8 elements of src, in every repeat.

        There is no mask. All elements are read before any block is written.

        Parameters
        ----------
        dst : View
            Only its first byte is used; its dtype is that of ``src``.
        src : View
            Elements of 2 or 4 bytes that follow each other, 8 for each repeat.
        repeat : int
            1 … 255.
        dst_block_stride, dst_repeat_stride : int
            Blocks of 32 bytes from block to block, and from repeat to repeat.

        Raises
        ------
        ProgramError
            If the core has no vector unit, or the repeat or the size of an element is not allowed.
        """
        width = src.itemsize
        if width not in (2, 4):
            self.fail(f"elements of vbrcb must have 2 or 4 bytes, not {width} ({src.dtype})")
        self._check_repeat("vbrcb", repeat)
        strides = (dst_repeat_stride * BLOCK_BYTES, dst_block_stride * BLOCK_BYTES, width)
        shape = (repeat, 8, BLOCK_BYTES // width)
        target = View(dst.buffer, dst.offset, src.dtype, shape, strides, dst.name)
        source = View(src.buffer, src.offset, src.dtype, (8 * repeat,), (width,), src.name)
        fields = {"dst_block_stride": dst_block_stride, "dst_repeat_stride": dst_repeat_stride}
        return self.vector_views("vbrcb", {"dst": target, "src": source}, repeat=repeat, **fields)

    def vnchwconv(
        self,
        dst: Sequence[View],
        src: Sequence[View],
        *,
        repeat: int = 1,
        dst_repeat_stride: int = 0,
        src_repeat_stride: int = 0,
    ) -> Instruction:
        """Transpose 16 rows of one block each, in every repeat.

        Parameters
        ----------
        dst, src : sequence of 16 View
            The rows; those of ``src`` have elements of 2 or of 4 bytes.
        dst_repeat_stride, src_repeat_stride : int
            Blocks of 32 bytes from repeat to repeat of each row.

        Raises
        ------
        ProgramError
            If the core has no vector unit, or the repeat is not 1 … 255.
        """
        self._check_repeat("vnchwconv", repeat)
        fields = {
            "dst": tuple(dst),
            "src": tuple(src),
            "repeat": repeat,
            "dst_repeat_stride": dst_repeat_stride,
            "src_repeat_stride": src_repeat_stride,
        }
        # Each of the 16 rows is one block in every repeat.
        reads, writes = (
            tuple(
                Span(v.buffer, v.offset, BLOCK_BYTES, ((repeat, step * BLOCK_BYTES),))
                for v in views
            )
            for views, step in ((src, src_repeat_stride), (dst, dst_repeat_stride))
        )
        return self._vector("vnchwconv", {}, fields, reads, writes, repeat)

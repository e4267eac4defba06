"""Builder methods for moves between memories and for the Cube."""

from typing import Any

from vitruvian.common.validate import ceil_div, round_up
from vitruvian.sim.davinci.isa.instruction import Instruction, Unit, Work
from vitruvian.sim.davinci.isa.operands import (
    BLOCK_BYTES,
    FOURS,
    FRACTAL_BYTES,
    PLACE_BYTES,
    Span,
    View,
    per_block,
)
from vitruvian.sim.davinci.program.builder import Builder


class Moves(Builder):
    """Moves and matrix products. Strides are in bytes, from first byte to first byte."""

    def _move(
        self,
        op: str,
        dst: View,
        src: View,
        fields: dict[str, Any],
        reads: tuple[Span, ...],
        writes: tuple[Span, ...],
        nbytes: int,
        repeats: int = 0,
        extra: dict[str, View] | None = None,
        missed: tuple[int, int] = (0, 1),
    ) -> Instruction:
        try:
            # The path between two memories decides which unit executes a move.
            route = self.chip.route(src.buffer, dst.buffer, op)
        except ValueError as error:
            self.fail(str(error))
        return self.add(
            route.unit,
            op,
            operands={"dst": dst, "src": src, **(extra or {})},
            fields=fields,
            reads=reads,
            writes=writes,
            path=f"{src.buffer}->{dst.buffer}",
            work=Work(nbytes=nbytes, repeats=repeats, missed=missed[0], sharers=missed[1]),
        )

    def copy(
        self,
        dst: View,
        src: View,
        *,
        bursts: int | None = None,
        burst_bytes: int | None = None,
        dst_stride: int = 0,
        src_stride: int = 0,
        atomic: str = "",
        atomic_operation: str = "add",
        missed: tuple[int, int] = (0, 1),
        padding: tuple[int, int, int, int] | None = None,
    ) -> Instruction:
        """Copy bursts between any two memories that have a path.

        Without ``bursts``, all elements of src are copied to dst. Both views must then have equal
        numbers and sizes of elements, and all gaps in a view must have the same length, as the gaps
        between the rows of a matrix have. With ``bursts``, burst i goes from src + i·src_stride to
        dst + i·dst_stride, and only the first bytes of the views are used.

        Parameters
        ----------
        bursts : int, optional
            Number of bursts.
        burst_bytes : int, optional
            Bytes of a burst.
        dst_stride, src_stride : int
            Bytes from burst to burst, between their first bytes.
        atomic : str
            Dtype of the elements that are combined with those of dst; "" to replace those.
        atomic_operation : {"add", "max", "min"}
            How they are combined.
        missed : (int, int)
            ``missed`` and ``sharers`` of ``Work``.
        padding : (int, int, int, int), optional
            Bytes before and behind each burst in dst, and the bytes and the code of the element
            that fills them; the burst itself then begins behind the first padding.

        Raises
        ------
        ProgramError
            If the views do not fit each other or are not bursts, or the chip has no such path.
        """
        if bursts is None:
            if dst.size != src.size or dst.itemsize != src.itemsize:
                self.fail(f"src of copy must have as many elements and bytes as {dst}, not {src}")
            bursts, burst_bytes, dst_stride, src_stride = self._bursts(dst, src)
        if burst_bytes is None or bursts < 1 or burst_bytes < 1:
            self.fail(f"bursts of copy must be 1 or more, of 1 byte or more, not {bursts}")
        fields: dict[str, Any] = {
            "bursts": bursts,
            "burst_bytes": burst_bytes,
            "dst_stride": dst_stride,
            "src_stride": src_stride,
        }
        if atomic:
            fields |= {"atomic": atomic, "atomic_operation": atomic_operation}
        written = burst_bytes
        if padding is not None:
            left, right, width, code = padding
            written += left + right
            fields |= {"left": left, "right": right, "pad_bytes": width, "pad_code": code}
        # A stride of 0 reads one burst again and again.
        reads = Span(src.buffer, src.offset, burst_bytes, ((bursts, src_stride),))
        writes = Span(dst.buffer, dst.offset, written, ((bursts, dst_stride),))
        nbytes = bursts * burst_bytes
        return self._move("copy", dst, src, fields, (reads,), (writes,), nbytes, missed=missed)

    def _bursts(self, dst: View, src: View) -> tuple[int, int, int, int]:
        # If one view has no gaps, the other one determines the bursts.
        target, source = dst.span, src.span
        run = min(target.run, source.run)
        if max(len(target.levels), len(source.levels)) > 1 or target.run % run or source.run % run:
            self.fail(f"copy must be of bursts with one gap on each side, not {dst} and {src}")
        # A view without gaps is cut into bursts that follow each other.
        strides = []
        for span in (target, source):
            if span.run > run and span.levels:
                self.fail(f"bursts of copy must be as long in {dst} as in {src}")
            strides.append(span.levels[0][1] if span.levels else run)
        return dst.nbytes // run, run, strides[0], strides[1]

    def nd2nz(
        self,
        dst: View,
        src: View,
        *,
        matrices: int = 1,
        rows: int | None = None,
        columns: int | None = None,
        src_matrix_stride: int = 0,
        src_row_stride: int | None = None,
        dst_c0_stride: int | None = None,
        dst_row_stride: int = BLOCK_BYTES,
        dst_matrix_stride: int = 0,
        missed: tuple[int, int] = (0, 1),
    ) -> Instruction:
        """Move row-major matrices to columns of fractals; by default the 2-D view ``src``.

        A row is cut into blocks of 32 bytes. Zeros fill the rest of the last block.

        Parameters
        ----------
        matrices : int
            Number of matrices.
        rows, columns : int, optional
            Size of each matrix, in elements.
        src_matrix_stride, src_row_stride : int
            Bytes from matrix to matrix and from row to row of src.
        dst_c0_stride, dst_row_stride, dst_matrix_stride : int
            Bytes from block to block of a row, from row to row and from matrix to matrix of dst.
        missed : (int, int)
            ``missed`` and ``sharers`` of ``Work``.

        Raises
        ------
        ProgramError
            If sizes are missing and src is not a matrix with dense rows, or the chip has no such
            path.
        """
        if rows is None or columns is None:
            if len(src.shape) != 2 or src.strides[1] != src.itemsize:
                self.fail(f"src of nd2nz must be a matrix with dense rows, not {src}")
            rows, columns, src_row_stride = *src.shape, src.strides[0]
        if src_row_stride is None:
            src_row_stride = columns * src.itemsize
        blocks = ceil_div(columns * src.itemsize, BLOCK_BYTES)
        # By default, columns of whole fractals follow each other.
        if dst_c0_stride is None:
            dst_c0_stride = ceil_div(rows, 16) * FRACTAL_BYTES
        fields = {
            "matrices": matrices,
            "rows": rows,
            "columns": columns,
            "src_matrix_stride": src_matrix_stride,
            "src_row_stride": src_row_stride,
            "dst_c0_stride": dst_c0_stride,
            "dst_row_stride": dst_row_stride,
            "dst_matrix_stride": dst_matrix_stride,
        }
        # The source is read without padding, but whole blocks are written.
        levels = ((matrices, src_matrix_stride), (rows, src_row_stride))
        reads = Span(src.buffer, src.offset, columns * src.itemsize, levels)
        levels = ((matrices, dst_matrix_stride), (blocks, dst_c0_stride), (rows, dst_row_stride))
        writes = Span(dst.buffer, dst.offset, BLOCK_BYTES, levels)
        args = (dst, src, fields, (reads,), (writes,), reads.nbytes)
        return self._move("nd2nz", *args, repeats=matrices * rows, missed=missed)

    def load(
        self,
        dst: View,
        src: View,
        *,
        repeat: int | None = None,
        src_stride: int = FRACTAL_BYTES,
        dst_stride: int = FRACTAL_BYTES,
        transpose: bool = False,
        index: int | None = None,
    ) -> Instruction:
        """Load fractals of 512 bytes to L0A or L0B.

        Parameters
        ----------
        repeat : int, optional
            Number of fractals; by default as many as ``dst`` holds.
        src_stride, dst_stride : int
            Bytes from fractal to fractal; that of src may be 0 or negative.
        transpose : bool
            If True, transpose each fractal, which must have elements of 16 bits.
        index : int, optional
            First byte in L1 of the places of a sparse product, 128 bytes for each fractal.

        Raises
        ------
        ProgramError
            If the repeat is below 1, or the chip has no such path.
        """
        repeat = dst.nbytes // FRACTAL_BYTES if repeat is None else repeat
        if repeat < 1:
            self.fail(f"repeat of load must be 1 or more, not {repeat}")
        fields = {
            "repeat": repeat,
            "src_stride": src_stride,
            "dst_stride": dst_stride,
            "transpose": bool(transpose),
        }
        reads = (Span(src.buffer, src.offset, FRACTAL_BYTES, ((repeat, src_stride),)),)
        writes = Span(dst.buffer, dst.offset, FRACTAL_BYTES, ((repeat, dst_stride),))
        if index is not None:
            fields["index"] = index
            reads += (Span(src.buffer, index, repeat * PLACE_BYTES),)
        nbytes = repeat * FRACTAL_BYTES
        return self._move("load", dst, src, fields, reads, (writes,), nbytes, repeat)

    def load_squares(
        self,
        dst: View,
        src: View,
        *,
        repeat: int,
        src_stride: int,
        dst_stride: int,
        dst_fractal_stride: int,
        src_fractal_stride: int = FRACTAL_BYTES,
    ) -> Instruction:
        """Load squares, transposed; their fractals need not be adjacent in dst.

        A square is 16×16 elements of 32 bits, two fractals side by side, or 32×32 elements of
        8 bits or 64×64 of 4, two or four fractals, one above the other.

        Parameters
        ----------
        repeat : int
            Number of squares.
        src_stride, dst_stride : int
            Bytes from square to square.
        dst_fractal_stride : int
            Bytes from one fractal of a square to the next in dst.
        src_fractal_stride : int
            The same in src.

        Raises
        ------
        ProgramError
            If the chip has no such path.
        """
        fields = {
            "repeat": repeat,
            "src_stride": src_stride,
            "dst_stride": dst_stride,
            "dst_fractal_stride": dst_fractal_stride,
            "transpose": True,
        }
        parts = 4 if src.dtype == FOURS else 2
        reads = Span(src.buffer, src.offset, parts * FRACTAL_BYTES, ((repeat, src_stride),))
        if src_fractal_stride != FRACTAL_BYTES:
            fields["src_fractal_stride"] = src_fractal_stride
            levels = ((repeat, src_stride), (parts, src_fractal_stride))
            reads = Span(src.buffer, src.offset, FRACTAL_BYTES, levels)
        levels = ((repeat, dst_stride), (parts, dst_fractal_stride))
        writes = Span(dst.buffer, dst.offset, FRACTAL_BYTES, levels)
        count = parts * repeat
        nbytes = count * FRACTAL_BYTES
        return self._move("load", dst, src, fields, (reads,), (writes,), nbytes, count)

    def fill(self, dst: View, value: float = 0) -> Instruction:
        """Fill a view of L0A, L0B or L1 with a value; this takes as long as a load of its bytes.

        Parameters
        ----------
        dst : View
            The elements that get the value.
        value : float
            The value, which is rounded to the dtype.
        """
        # No path leads from a register, so a fill has the time of the path from the usual source.
        unit, path = Unit.MTE1, f"L1->{dst.buffer}"
        if path not in self.chip.routes:
            unit, path = Unit.MTE2, f"GM->{dst.buffer}"
        options = {"path": path, "work": Work(nbytes=dst.nbytes), "writes": (dst.span,)}
        return self.add(unit, "fill", operands={"dst": dst}, fields={"value": value}, **options)

    def matrix_out(
        self,
        dst: View,
        src: View,
        *,
        m: int,
        n: int,
        dst_stride: int | None = None,
        src_stride: int | None = None,
        relu: bool = False,
        quant: str = "",
        layout: str = "nz",
        scale: View | None = None,
        factor: float | None = None,
        atomic: str = "",
        atomic_operation: str = "add",
    ) -> Instruction:
        """Move m × n elements out of L0C: unit V to UB, unit FIX to GM or L1.

        Parameters
        ----------
        dst : View
            Its dtype is that of the results.
        src : View
            In L0C: columns of fractals of 16 rows and 16 columns.
        m, n : int
            Rows and columns.
        dst_stride : int, optional
            Bytes from one column of fractals to the next ("nz", 16 columns each, or "split", 8
            columns each), or from row to row ("nd").
        src_stride : int, optional
            Bytes from one column of fractals in L0C to the next.
        relu : bool
            If True, negative results become 0.
        quant : {"", "scalar", "vector"}
            "" only converts. "scalar" multiplies by one factor, "vector" by a factor per column.
        layout : {"nz", "split", "nd"}
            Columns of fractals, halves of them (results of 32 bits only), or rows.
        scale : View, optional
            Factors of quantisation "vector", in FB.
        factor : float, optional
            Factor of quantisation "scalar".
        atomic : str
            Dtype of the elements that are combined with those of dst; "" to replace those.
        atomic_operation : {"add", "max", "min"}
            How they are combined.

        Raises
        ------
        ProgramError
            If there is no such layout, or the chip has no such path.
        """
        if layout not in ("nz", "split", "nd"):
            self.fail(f"layout of matrix_out must be nz, split or nd, not {layout!r}")
        if layout == "split" and dst.itemsize != 4:
            self.fail(f"layout split must come with results of 32 bits, not {dst.dtype}")
        # L0C has whole fractals, but only m rows of each column of them are moved.
        rows, columns = round_up(m, 16), ceil_div(n, 16)
        if src_stride is None:
            src_stride = rows * 16 * src.itemsize
        width = {"nz": 16, "split": 8}.get(layout, 0)
        if dst_stride is None:
            dst_stride = (rows * width or n) * dst.itemsize
        fields: dict[str, Any] = {"m": m, "n": n}
        fields |= {
            "dst_stride": dst_stride,
            "src_stride": src_stride,
            "relu": bool(relu),
            "quant": quant,
            "layout": layout,
        }
        if atomic:
            fields |= {"atomic": atomic, "atomic_operation": atomic_operation}
        if factor is not None:
            fields["factor"] = factor
        read = Span(src.buffer, src.offset, m * 16 * src.itemsize, ((columns, src_stride),))
        # Bursts of the result: columns of fractals, or rows of the matrix.
        length, bursts = (m * width, ceil_div(n, width)) if width else (n, m)
        write = Span(dst.buffer, dst.offset, length * dst.itemsize, ((bursts, dst_stride),))
        extra = {} if scale is None else {"scale": scale}
        reads = (read, *(v.span for v in extra.values()))
        nbytes = read.nbytes
        return self._move("matrix_out", dst, src, fields, reads, (write,), nbytes, extra=extra)

    def mmad(
        self,
        c: View,
        a: View,
        b: View,
        *,
        m: int,
        k: int,
        n: int,
        init: str = "accumulate",
        bias: View | None = None,
        a_transposed: bool = False,
        operation: str = "mma",
        a_layout: str = "",
        sparse: bool = False,
    ) -> Instruction:
        """Compute c = a·b + the start value that ``init`` names.

        The operands are in fractals of 512 bytes, 16 × 32 bytes of a and 32 bytes × 16 of b, and c
        is in fractals of 16 × 16 elements: as many as cover m × k, k × n and m × n.

        Parameters
        ----------
        c, a, b : View
            In L0C, L0A and L0B.
        m, k, n : int
            Sizes in elements.
        init : {"zero", "bias", "accumulate"}
            The start value is 0, ``bias``, or c itself.
        bias : View, optional
            n elements, the same for every row.
        a_transposed : bool
            If True, a is k × m. ``Functional`` does not model this.
        operation : str
            A mnemonic of ``golden.simd2.Op``: its ⊗ and ⊕ take the places of · and +, and the
            identity of ⊕ that of 0. Few Cubes have others than "mma".
        a_layout : {"", "vector", "even"}
            "vector" if the k elements of a single row lie one behind another, "even" if a row of
            fractals of a has an even number of them.
        sparse : bool
            If True, b is (k/2, n): two of each four numbers of a column of int8, at the places that
            ``load`` has taken from its ``index``.

        Raises
        ------
        ProgramError
            If a size is below 1, ``init`` and ``bias`` do not fit, the core has no Cube, or the
            Cube does not multiply the dtype or lacks the operation.
        """
        if init not in ("zero", "bias", "accumulate") or (init == "bias") != (bias is not None):
            self.fail(f"init of mmad must be zero, accumulate, or bias with a bias, not {init!r}")
        if min(m, k, n) < 1:
            self.fail(f"m, k, n of mmad must be 1 or more, not {m}, {k}, {n}")
        cube = self.chip.cube
        if cube is None or Unit.M not in self.units:
            self.fail(f"mmad must be on a core with a Cube, not on {self}")
        try:
            steps = cube.steps(m, k, n, a.dtype, operation)
        except ValueError as error:
            self.fail(str(error))
        if a_layout not in ("", "vector", "even") or (a_layout == "vector" and m != 1):
            self.fail(f"a_layout of mmad must be even, or vector with m = 1, not {a_layout!r}")
        if sparse and (a.dtype != "int8" or b.dtype != "int8" or k % 4):
            self.fail(f"a sparse mmad must be of int8 with k a multiple of 4, not {a}, {b}, {k}")
        deep = ceil_div(k, per_block(a.dtype))
        b_deep = ceil_div(k // 2, per_block(b.dtype)) if sparse else deep
        mf, nf = ceil_div(m, 16), ceil_div(n, 16)
        fractals = ceil_div(deep, 16) if a_layout == "vector" else mf * deep
        if a_layout == "even":
            fractals = mf * (deep + deep % 2)
        # The Cube reads and writes whole fractals, also beyond m, k and n.
        spans = (
            Span(a.buffer, a.offset, fractals * FRACTAL_BYTES),
            Span(b.buffer, b.offset, b_deep * nf * FRACTAL_BYTES),
        )
        out = Span(c.buffer, c.offset, mf * nf * 256 * c.itemsize)
        operands = {"c": c, "a": a, "b": b}
        if bias is not None:
            operands["bias"] = bias
            spans += (Span(bias.buffer, bias.offset, n * bias.itemsize),)
        if init == "accumulate":
            spans += (out,)
        fields: dict[str, Any] = {"m": m, "k": k, "n": n, "init": init}
        if a_transposed:
            fields["a_transposed"] = True
        if operation != "mma":
            fields["operation"] = operation
        if a_layout:
            fields["a_layout"] = a_layout
        if sparse:
            fields["sparse"] = True
        work = Work(repeats=steps, operations=(1 if sparse else 2) * m * n * k, precision=a.dtype)
        return self.add(
            Unit.M, "mmad", operands=operands, fields=fields, reads=spans, writes=(out,), work=work
        )

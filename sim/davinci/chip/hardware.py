"""The cycles of instructions on a core in hardware (``hdl.core``), from its widths and depths.

Every time here follows from how the core is built: how many blocks a port moves in a cycle, and how
many registers lie between a request and the write of its result. No time is measured or fitted; a
test compares all of them with the RTL.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from vitruvian.common.validate import ceil_div
from vitruvian.sim.davinci.chip.beats import BLOCKS, read_cycles
from vitruvian.sim.davinci.chip.products import BeatTiming, TileTiming, product_cycles
from vitruvian.sim.davinci.isa.instruction import Instruction, Unit
from vitruvian.sim.davinci.isa.operands import BLOCK_BYTES, DTYPES, FRACTAL_BYTES, Span
from vitruvian.sim.davinci.isa.vector import VECTOR_OPS

#: Rows of a fractal, and elements of a row.
_ROWS = 16
#: The ports of buffers that several units use, and the bus that stands for all of them.
PORTS = ("UB.read", "UB.write", "L1.write", "L0A.write", "L0B.write")
MEMORY = "buffers"
#: Cycles from the grant of a block of a buffer to its data.
_BUFFER = 1
#: Cycles in which Col2Im finds its first pixel.
_FIRST_PIXEL = 4


@dataclass(frozen=True, kw_only=True)
class Occupied:
    """The time for which an instruction occupies its unit, in cycles.

    Attributes
    ----------
    cycles : int
        All cycles, if no other unit uses its memories.
    moving : int
        Those in which it uses ports of buffers; 0 if it uses none that others use, too.
    ports : mapping of str to int
        Blocks that it moves at each port of ``PORTS``.
    """

    cycles: int
    moving: int = 0
    ports: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """A core in hardware with its global memory.

    Attributes
    ----------
    queue_words : int
        Words that fit into the queue of a unit.
    ahead : int
        Blocks that a move reads ahead of its writes.
    fetch_blocks : int
        Blocks of four words that the fetch reads ahead.
    memory_latency : int
        Cycles from a read of global memory to its data.
    stages : int
        Register ranks of the vector unit.
    line_blocks : int
        Blocks of 32 bytes that MTE1 moves in a cycle.
    lane_blocks : int
        Blocks of a beat of V.
    lane_passes : int
        Cycles in which a beat enters the vector unit.
    ub_banks : int
        Banks of UB, each of which gives and takes a block in a cycle.
    blocks : mapping of str to int
        Cycles of a block in operations of V that take several, by operation and dtype of the
        source ("vcadd fp16").
    latencies : mapping of str to int
        Cycles from the operands of a block to its result where these are not ``stages``.
    tile : TileTiming
    products : mapping of str to BeatTiming
        The beats of each dtype, and of each operation other than mma ("fp16 minplus").
    """

    queue_words: int
    ahead: int
    fetch_blocks: int
    memory_latency: int
    stages: int
    line_blocks: int
    lane_blocks: int
    lane_passes: int
    ub_banks: int
    blocks: Mapping[str, int]
    latencies: Mapping[str, int]
    tile: TileTiming
    products: Mapping[str, BeatTiming]

    @property
    def block_turn(self) -> int:
        """Cycles from the last word of a block of the program to the next block in its place."""
        return self.memory_latency + 2

    def occupied(self, instruction: Instruction) -> Occupied:
        """Return the time of an instruction other than flags and barriers.

        Raises
        ------
        ValueError
            If the core has no such instruction.
        """
        unit, op = instruction.unit, instruction.op
        if unit == Unit.S:
            return Occupied(cycles=self._scalar(instruction))
        if unit == Unit.M:
            f = instruction.fields
            name = instruction.operands["a"].dtype
            name += f" {f['operation']}" if "operation" in f else ""
            cycles = product_cycles(self.tile, self.products[name], f["m"], f["k"], f["n"])
            return Occupied(cycles=cycles + 4)
        if unit == Unit.FIX:  # a row of a fractal is two blocks
            f = instruction.fields
            reads = 2 * _out_rows(instruction) * ceil_div(f["n"], _ROWS)
            narrow = instruction.operands["dst"].dtype == "fp16"
            # The last block has nothing to write if its columns are beyond those of a row.
            none = not narrow and f["layout"] == "nd" and 0 < f["n"] % _ROWS <= _ROWS // 2
            ports = _ports(instruction, 0, reads // 2 if narrow else reads)
            return Occupied(cycles=reads + 4 - none, moving=reads if ports else 0, ports=ports)
        if op == "col2im":  # a row of the image and one of the fractal, by one port
            rows = _ROWS * instruction.fields["repeat"]
            rows *= 2 if instruction.operands["src"].dtype == "fp32" else 1  # two blocks
            ports = {"UB.read": 2 * rows, "UB.write": rows}
            moving = 2 + (rows - 1) * max(2, self.lane_passes) + self.lane_passes - 1
            cycles = moving + self.stages + 3 + _FIRST_PIXEL
            return Occupied(cycles=cycles, moving=moving, ports=self._of_banks(ports))
        if op == "vtranspose":  # all rows, and then all columns
            ports = {"UB.read": _ROWS, "UB.write": _ROWS}
            return Occupied(cycles=2 * _ROWS + 1, moving=2 * _ROWS, ports=self._of_banks(ports))
        if op == "im2col":
            rows = moving = _ROWS * instruction.fields["repeat"]
            if instruction.operands["dst"].buffer == "UB":  # a write of UB takes a line's cycles
                moving *= self.line_blocks
            ports = self._of_banks(_ports(instruction, 0, rows))
            return Occupied(cycles=moving + 6, moving=moving, ports=ports)
        if op in ("copy", "load", "nd2nz", "fill"):
            return self._moved(instruction)
        return self._lanes(instruction)

    def _scalar(self, instruction: Instruction) -> int:
        """Return the cycles behind those of the words."""
        if instruction.op == "scalar_store":
            return 2
        if instruction.op == "scalar_load" and instruction.fields.get("expected") is not None:
            in_memory = instruction.operands["src"].buffer == "GM"
            return 2 + (self.memory_latency if in_memory else _BUFFER)
        return 1

    def _moved(self, instruction: Instruction) -> Occupied:
        op = instruction.op
        if op == "fill":
            count = _blocks_of(instruction.operands["dst"].span, self._line_bytes(instruction))
            ports = self._of_banks(_ports(instruction, 0, count))
            return Occupied(cycles=count + 2, moving=count, ports=ports)
        if op == "load" and instruction.fields["transpose"]:
            # A column of a fractal goes to as many rows at a time as the target has banks.
            to_a = instruction.operands["dst"].buffer == "L0A"
            banks = self.tile.turned_a if to_a else self.tile.turned_b
            count = _ROWS * _ROWS // (banks * self.line_blocks) * instruction.fields["repeat"]
        else:
            line = self._line_bytes(instruction)
            count = {"copy": _copied, "nd2nz": _in_fractals, "load": _loaded}[op](instruction, line)
        source = instruction.operands["src"].buffer
        latency = self.memory_latency if source == "GM" else _BUFFER
        # A place in the queue of pieces is taken for the latency, and two cycles around it.
        turn = latency + 2
        cycles = count
        if turn > self.ahead:
            cycles = (count - 1) // self.ahead * turn + (count - 1) % self.ahead + 1
        ports = self._of_banks(_ports(instruction, count, count))
        return Occupied(cycles=cycles + latency + 2, moving=cycles if ports else 0, ports=ports)

    def _line_bytes(self, instruction: Instruction) -> int:
        """Return the bytes of a line of a move; L0A and L0B take several blocks in a cycle."""
        wide = (
            instruction.operands["dst"].buffer in ("L0A", "L0B") and instruction.unit == Unit.MTE1
        )
        return BLOCK_BYTES * (self.line_blocks if wide else 1)

    def _lanes(self, instruction: Instruction) -> Occupied:
        """Return the time of an instruction that works on blocks of UB or L0C."""
        op, operands, f = instruction.op, instruction.operands, instruction.fields
        per = self.lane_blocks
        if op == "matrix_out":  # a row of 16 FP32 is two blocks
            columns, each = ceil_div(f["n"], _ROWS), _out_rows(instruction)
            rows = each * columns
            beats = 2 * rows if per == 1 else ceil_div(each, per // 2) * columns
            copied = operands["dst"].dtype == operands["src"].dtype
            moving = beats if copied else beats * self.lane_passes
            return Occupied(
                cycles=moving + (3 if copied else self.stages + 3),
                moving=moving,
                ports=self._of_banks(_ports(instruction, 2 * rows, 2 * rows if copied else rows)),
            )
        sources = [v for name, v in operands.items() if name not in ("dst", "bits")]
        key = f"{op} {sources[0].dtype}" if sources else ""
        latency = self.latencies.get(key, self.stages)
        reads = len(sources) + VECTOR_OPS[op].reads_dst if op in VECTOR_OPS else len(sources)
        repeat = f["repeat"]
        beats = BLOCKS // per * repeat
        ports = {"UB.read": reads * BLOCKS * repeat, "UB.write": BLOCKS * repeat}
        # A selection loads the bits of each beat first.
        passes = self.lane_passes + (op == "vsel")
        if latency and key in self.latencies:  # the extension, which takes the next beat meanwhile
            passes = self.blocks.get(key, 1)
        moving = beats * passes
        if sources:
            moving = read_cycles(
                instruction, latency, blocks=per, banks=self.ub_banks, passes=passes
            )
        if key in self.blocks and not (latency and key in self.latencies):
            block = self.blocks[key]
            first = moving // beats if beats else 0
            moving = beats * block
            if op in ("vcadd", "vcmax", "vcmin") and per < BLOCKS:
                # The results of the beats are combined.
                moving += repeat * (block + self.stages)
                ports["UB.write"] = repeat
            return Occupied(
                cycles=moving + first + latency + 2, moving=moving, ports=self._of_banks(ports)
            )
        # Nothing is read before the first result of vdup.
        more = -(op == "vdup")
        if op == "vcmp":
            ports["UB.write"] = 0
        return Occupied(
            cycles=moving + latency + 3 + more, moving=moving, ports=self._of_banks(ports)
        )

    def _of_banks(self, ports: dict[str, int]) -> dict[str, int]:
        """Return the cycles in which ports are in use, given blocks; all banks work at a time."""
        if self.ub_banks == 1:
            return ports
        return {
            name: ceil_div(count, self.ub_banks) if name.startswith("UB") else count
            for name, count in ports.items()
        }


def _out_rows(instruction: Instruction) -> int:
    """Return the rows of 16 words of a column of fractals; one of 64 bits has two for a row."""
    return instruction.fields["m"] * ceil_div(instruction.operands["src"].itemsize, 4)


def _ports(instruction: Instruction, reads: int, writes: int) -> dict[str, int]:
    """Return the blocks that a move reads and writes at ports that others use."""
    names = {f"{instruction.operands['dst'].buffer}.write": writes}
    if "src" in instruction.operands:
        names[f"{instruction.operands['src'].buffer}.read"] = reads
    return {name: count for name, count in names.items() if name in PORTS and count}


def _pieces(run: int, source: int, target: int, line: int = BLOCK_BYTES) -> int:
    """Return into how many pieces a run is cut, at the borders of lines on both sides."""
    source, target = source % line, target % line
    count = 1 + (source + run - 1) // line
    if source != target:
        count += (target + run - 1) // line
    return count


def _copied(instruction: Instruction, line: int) -> int:
    f, src, dst = instruction.fields, instruction.operands["src"], instruction.operands["dst"]
    steps = f["src_stride"], f["dst_stride"]
    return sum(
        _pieces(f["burst_bytes"], src.offset + i * steps[0], dst.offset + i * steps[1], line)
        for i in range(f["bursts"])
    )


def _in_fractals(instruction: Instruction, line: int) -> int:
    f, src, dst = instruction.fields, instruction.operands["src"], instruction.operands["dst"]
    nbytes = f["columns"] * DTYPES[src.dtype].itemsize
    count = 0
    for matrix in range(f["matrices"]):
        for row in range(f["rows"]):
            begin = src.offset + matrix * f["src_matrix_stride"] + row * f["src_row_stride"]
            for block in range(0, nbytes, BLOCK_BYTES):
                run = min(BLOCK_BYTES, nbytes - block)
                count += _pieces(run, begin + block, dst.offset, line)
    return count


def _loaded(instruction: Instruction, line: int) -> int:
    f, src, dst = instruction.fields, instruction.operands["src"], instruction.operands["dst"]
    steps = f["src_stride"], f["dst_stride"]
    return sum(
        _pieces(FRACTAL_BYTES, src.offset + i * steps[0], dst.offset + i * steps[1], line)
        for i in range(f["repeat"])
    )


def _blocks_of(span: Span, line: int) -> int:
    """Return into how many pieces a span is cut at the borders of lines."""
    starts = [span.start]
    for count, stride in span.levels:
        starts = [start + i * stride for start in starts for i in range(count)]
    return sum(1 + (start % line + span.run - 1) // line for start in starts)

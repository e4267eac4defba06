"""Checks of each operand by itself: bounds, alignment, and overlap with the result."""

from collections.abc import Iterable, Iterator

import numpy as np

from vitruvian.sim.davinci.checks.naming import Numbers
from vitruvian.sim.davinci.checks.overlap import overlapping
from vitruvian.sim.davinci.chip.model import GM
from vitruvian.sim.davinci.isa.instruction import Instruction, Unit
from vitruvian.sim.davinci.isa.operands import DTYPES, Span, View
from vitruvian.sim.davinci.isa.vector import VECTOR_OPS
from vitruvian.sim.davinci.program.program import Program
from vitruvian.sim.davinci.report.report import Finding
from vitruvian.sim.davinci.timing.lowering import CoreStream

#: Operations that write only a few elements, so that dst is aligned to elements, not to blocks.
_NARROW = frozenset(op.name for op in VECTOR_OPS.values() if op.short_dst)


def operand_findings(
    program: Program, streams: list[CoreStream], numbers: Numbers
) -> Iterator[Finding]:
    """Check the bounds, alignment and overlap of operands; report each source line once."""
    tensors = sorted(program.tensors.values(), key=lambda view: view.offset)
    starts = [view.offset for view in tensors]
    seen: set[tuple] = set()
    known: set[tuple] = set()
    number = -1
    for stream in streams:
        kind = program.chip.kind(stream.kind)
        for instr in stream.instructions:
            number += 1
            key = (stream.kind, instr.op, instr.reads, instr.writes)
            if key in known:
                continue
            known.add(key)
            for name, span in instr.spans():
                if not span.nbytes:
                    continue
                lower_bound, upper_bound, region = _room(span, kind.buffers, tensors, starts)
                if span.first < lower_bound or span.end > upper_bound:
                    at = ("bounds", instr.position, span.buffer, name)
                    if at not in seen:
                        seen.add(at)
                        mistake = f"{name}s {span}, which must be within {region}"
                        text = f"bounds: {numbers.text(number)} {mistake}"
                        yield Finding("bounds", text, (number,))
            for name, view in _aligned(instr):
                if view.buffer not in kind.buffers:
                    continue
                align = kind.buffers[view.buffer].align
                if instr.op in _NARROW and name == "dst":
                    align = DTYPES[view.dtype].itemsize
                at = ("alignment", instr.position, name)
                if view.offset % align and at not in seen:
                    seen.add(at)
                    mistake = f"has {name} at byte {view.offset} of {view.buffer}"
                    text = f"alignment: {numbers.text(number)} {mistake}, which must be a multiple"
                    yield Finding("alignment", f"{text} of {align}", (number,))
            at = ("overlap", instr.position)
            if at in seen or instr.unit == Unit.S:
                continue
            mistake = overlapping(instr)
            if mistake:
                seen.add(at)
                text = f"overlap: {numbers.text(number)} {mistake}"
                yield Finding("overlap", text, (number,))


def _aligned(instr: Instruction) -> Iterable[tuple[str, View]]:
    """Return the operands that must be aligned: all but the single elements of scalar work."""
    if instr.unit == Unit.S:
        return ()
    return instr.operands.items()


def _room(span: Span, buffers, tensors: list[View], starts: list[int]) -> tuple[int, int, str]:
    """Return the first byte that a span may touch, one past the last, and a name for the region."""
    if span.buffer == GM:
        at = int(np.searchsorted(starts, span.start, side="right")) - 1
        if at < 0:
            return 0, 0, "a tensor"
        view = tensors[at]
        end = view.offset + view.nbytes
        return view.offset, end, f"tensor {view.name}, GM[{view.offset}:{end}]"
    if span.buffer not in buffers:
        return 0, 0, f"a buffer of the core: {', '.join(buffers)}"
    return (
        0,
        buffers[span.buffer].nbytes,
        f"the {buffers[span.buffer].nbytes} bytes of {span.buffer}",
    )

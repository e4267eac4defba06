"""Write ``vector_methods.py`` from the table of vector instructions.

python -m vitruvian.sim.davinci.program.generate
"""

from pathlib import Path

from vitruvian.sim.davinci.isa.vector import REDUCE, VECTOR_OPS
from vitruvian.sim.davinci.isa.vector_op import REQUIRED, VectorOp

#: Longest line of the written file.
_COLUMNS = 100

#: The file that is written.
TARGET = Path(__file__).with_name("vector_methods.py")

_HEAD = '''"""Builder methods of the vector instructions that the table alone describes.

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
'''


def text() -> str:
    """Return the text of the generated file, with lines wrapped as ``ruff format`` does."""
    methods = [_lanewise(op) for op in VECTOR_OPS.values() if op.form.lanewise]
    methods += [_reduction(op) for op in VECTOR_OPS.values() if op.form is REDUCE]
    lines = (_HEAD + "".join(methods)).splitlines()
    return "\n".join(_wrapped(line) for line in lines) + "\n"


def _wrapped(line: str) -> str:
    """Return a line of at most 100 characters, or several ones with its brackets' content."""
    if len(line) <= _COLUMNS:
        return line
    indent = " " * (len(line) - len(line.lstrip()))
    first = min(line.index(bracket) for bracket in "({" if bracket in line)
    last = max(line.rfind(bracket, 0, line.find("->") % len(line)) for bracket in ")}")
    head, inner, tail = line[: first + 1], line[first + 1 : last], line[last:]
    if len(indent) + 4 + len(inner) <= _COLUMNS:
        return f"{head}\n{indent}    {inner}\n{indent}{tail}"
    parts = [f"{indent}    {part},\n" for part in inner.split(", ")]
    return f"{head}\n{''.join(parts)}{indent}{tail}"


def _doc(op: VectorOp) -> str:
    meaning = op.meaning.replace("dst = ", "Set dst to ", 1)
    return f'"""{meaning[0].upper()}{meaning[1:]}."""'


def _lanewise(op: VectorOp) -> str:
    parameters = [f"{name}: View" for name in op.operands]
    for field in op.fields:
        value = repr(field.default).replace("'", '"')
        default = "" if field.default is REQUIRED else f" = {value}"
        parameters.append(f"{field.name}: {field.type}{default}")
    operands = ", ".join(f'"{name}": {name}' for name in op.operands)
    always = [f for f in op.fields if f.default is not None]
    given = "".join(f", {f.name}={f.name}" for f in always)
    lines = [f'return self.vector("{op.name}", operands{given}, **lanes)']
    for field in op.fields:
        if field not in always:  # a field that the instruction has only if it is given
            lines.insert(0, f"if {field.name} is not None:")
            call = f'self.vector("{op.name}", operands{given}, {field.name}={field.name}, **lanes)'
            lines.insert(1, f"    return {call}")
    body = "".join(f"        {line}\n" for line in lines)
    return (
        f"\n    def {op.name}(self, {', '.join(parameters)}, **lanes: Unpack[LaneKeywords]) "
        f"-> list[Instruction]:\n        {_doc(op)}\n"
        f"        operands = {{{operands}}}\n{body}"
    )


def _reduction(op: VectorOp) -> str:
    indexed = op.results == 2  # a value and its index, in an order that may be chosen
    order = ', order: str = "value_index"' if indexed else ""
    given = ", order=order" if indexed else ""
    return (
        f"\n    def {op.name}(self, dst: View, src: View{order}, "
        f"**options: Unpack[ReductionKeywords]) -> Instruction:\n"
        f"        {_doc(op)}\n"
        f'        return self.vreduce_lanes("{op.name}", dst, src{given}, **options)\n'
    )


if __name__ == "__main__":
    TARGET.write_text(text())

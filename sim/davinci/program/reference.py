"""The reference page of every builder method, written from signatures and docstrings."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any, NamedTuple

from vitruvian.sim.davinci.isa.vector import REDUCE, VECTOR_OPS
from vitruvian.sim.davinci.program.program import Core, Program
from vitruvian.sim.davinci.program.vector import Vector

_HEAD = """# Builder methods

This page is written from the docstrings in `sim/davinci/program` when the site is built.

A `Program` has tensors in global memory and cores. A `Core` has a method for every instruction;
each call appends what it returns. A mistake raises `ProgramError` (a `ValueError`), whose message
begins with the file and the line of the call. Addresses, sizes and strides of moves are in bytes.
Strides of vector instructions are in blocks of 32 bytes; a repeat is a pass over 256 bytes.
[DaVinci cores](../units/davinci.md) shows a whole program.
"""

_LANEWISE = tuple(op.name for op in VECTOR_OPS.values() if op.form.lanewise)
_REDUCTIONS = tuple(op.name for op in VECTOR_OPS.values() if op.form is REDUCE)

#: Headings with the class and the names of the methods below them.
GROUPS: tuple[tuple[str, type, tuple[str, ...]], ...] = (
    ("Programs", Program, ("tensor", "core")),
    ("Memory", Core, ("allocate", "release", "view")),
    ("Moves", Core, ("copy", "nd2nz", "load", "load_squares", "fill", "matrix_out")),
    ("Patches of images", Core, ("im2col", "col2im")),
    ("The Cube", Core, ("mmad",)),
    ("Any vector instruction", Core, ("vector", "vector_views")),
    ("Vector instructions, lane by lane", Core, _LANEWISE),
    ("Comparison and selection", Core, ("vcmp", "vcmpv", "vcmpvs", "vsel")),
    ("Reductions", Core, ("vreduce_lanes", *_REDUCTIONS)),
    (
        "Elements that change their lane",
        Core,
        (
            "vbrcb",
            "vgather",
            "vreduce",
            "vbitsort",
            "vmrgsort",
            "vtranspose",
            "v4dtrans",
            "vnchwconv",
        ),
    ),
    (
        "Flags and barriers",
        Core,
        ("set_flag", "wait_flag", "pipe_barrier", "cross_set", "cross_wait"),
    ),
    (
        "The scalar unit",
        Core,
        ("scalar", "scalar_load", "scalar_store", "set_mask", "set_control"),
    ),
    ("Instructions without a method", Core, ("make", "append", "add", "fail")),
)

#: Meanings of parameters that a docstring names without words, or not at all.
_COMMON = {
    "dst": "Where the results go.",
    "src": "The source.",
    "src0": "The first source.",
    "src1": "The second source.",
    "repeat": "Passes of 256 bytes, 1 … 255.",
    "mask": "Bit l enables lane l.",
    "scalar": "Rounded to the dtype of the source; for integers, an integer in its range.",
    "order": "Order of the value and the number of its lane.",
    "amount": "Number of bits, the same for all lanes.",
    "round": "If True, round to nearest, ties up, instead of down.",
    "rounding": "none, rint, round, floor, ceil, trunc or odd.",
    "scale": "Factor of the source.",
}


class _Parameter(NamedTuple):
    names: str
    type: str
    text: str


def public_methods() -> dict[str, type]:
    """Return the names of all public methods of ``Program`` and ``Core``, with the class."""
    return {
        name: cls
        for cls in (Core, Program)
        for name, value in inspect.getmembers(cls, callable)
        if not name.startswith("_")
    }


def builder_page() -> str:
    """Return the page in Markdown: signature, contract, parameters and errors of each method."""
    parts = [_HEAD]
    for heading, cls, names in GROUPS:
        parts.append(f"## {heading}\n")
        if names == _LANEWISE:
            parts.append(_lanewise_text())
        parts += [_method(cls, name) for name in names]
    return "\n".join(parts)


def _lanewise_text() -> str:
    return (
        "Without `repeat`, such a method appends as many instructions as the elements of its\n"
        "views need; the views must then be contiguous and of equal size. With `repeat`, it\n"
        "appends one instruction. `repeat`, `mask`, `strides`, the result and the errors are\n"
        "those of `vector`.\n"
    )


def _method(cls: type, name: str) -> str:
    method = getattr(cls, name)
    text, sections = _sections(inspect.getdoc(method) or "")
    parts = [f"### {name}\n", f"```text\n{_signature(name, method)}\n```\n", f"{text}\n"]
    op = VECTOR_OPS.get(name)
    if op is not None and op.form.lanewise and not op.bitwise and name != "vconv":
        parts.append(f"Elements: {', '.join(op.dtypes.split())}.\n")
    rows = list(_parameters(sections.get("Parameters", "")))
    lanewise = op is not None and (op.form.lanewise or op.form is REDUCE)
    if not lanewise:
        rows += list(_unnamed(method, rows))
    if not rows and op is not None:
        rows = [_Parameter(p.strip("[]"), "View", _COMMON[p.strip("[]")]) for p in op.operands]
        own = list(inspect.signature(method).parameters.values())[1 + len(rows) :]
        rows += [
            _Parameter(p.name, _type(p.annotation), _COMMON[p.name])
            for p in own
            if p.kind != p.VAR_KEYWORD
        ]
    if rows:
        lines = ["| parameter | type | meaning |", "|---|---|---|"]
        lines += [f"| {_names(r.names)} | {_cell(r.type)} | {_cell(r.text)} |" for r in rows]
        parts.append("\n".join(lines) + "\n")
    if name in _REDUCTIONS:
        parts.append("The other keywords and the errors are those of `vreduce_lanes`.\n")
    parts += [f"`{r.names}`: {_line(r.text)}\n" for r in _parameters(sections.get("Raises", ""))]
    return "\n".join(parts)


def _unnamed(method: Any, rows: list[_Parameter]) -> Iterator[_Parameter]:
    """Yield the parameters that a docstring does not name because their names say enough."""
    named = {name.strip("*") for row in rows for name in row.names.split(", ")}
    for parameter in list(inspect.signature(method).parameters.values())[1:]:
        if parameter.name not in named and parameter.name in _COMMON:
            meaning = _COMMON[parameter.name]
            yield _Parameter(parameter.name, _type(parameter.annotation), meaning)


def _type(annotation: object) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def _signature(name: str, method: object) -> str:
    """Return the signature as the source has it, with the keywords that ``**lanes`` stands for."""
    node = _node(method)
    arguments = node.args
    arguments.args = arguments.args[1:]  # self
    shared = {"lanes": Vector.vector, "options": Vector.vreduce_lanes}
    extra = arguments.kwarg.arg if arguments.kwarg else ""
    if extra in shared:
        other = _node(shared[extra]).args
        taken = {a.arg for a in (*arguments.args, *arguments.kwonlyargs)}
        for keyword, default in zip(other.kwonlyargs, other.kw_defaults, strict=True):
            # ``accumulate`` is for the intrinsic vcadd in mode 1.
            if keyword.arg not in (*taken, "order", "accumulate"):
                arguments.kwonlyargs.append(keyword)
                arguments.kw_defaults.append(default)
        arguments.kwarg = None
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    inner = re.split(r", (?![^\[(]*[\])])", ast.unparse(arguments))
    # ``ast`` writes no spaces around the default of a parameter with an annotation.
    inner = [re.sub(r"^(\w+: [^=]+)=", r"\1 = ", part) for part in inner]
    line = f"{name}({', '.join(inner)}){result}"
    if len(line) <= 96:
        return line
    return "\n".join([f"{name}(", *(f"    {part}," for part in inner), f"){result}"])


def _node(method: object) -> ast.FunctionDef:
    source = textwrap.dedent(inspect.getsource(method))  # type: ignore[arg-type]
    (node,) = ast.parse(source).body
    assert isinstance(node, ast.FunctionDef)
    return node


def _sections(doc: str) -> tuple[str, dict[str, str]]:
    """Return the text before the first section, and the sections of a NumPy docstring."""
    parts = re.split(r"(?m)^(\w+)\n-{3,}\n", doc)
    pairs = dict(zip(parts[1::2], (p.strip("\n") for p in parts[2::2]), strict=True))
    return _markdown(parts[0].strip()), pairs


def _parameters(section: str) -> Iterator[_Parameter]:
    """Yield the entries of a section: an entry starts in the first column, its text is indented."""
    for entry in re.split(r"\n(?=\S)", section):
        head, _, rest = entry.partition("\n")
        if not head.strip():
            continue
        names, _, kind = head.partition(" : ")
        text = _line(rest) or " ".join(
            dict.fromkeys(_COMMON[n] for n in names.split(", ") if n in _COMMON)
        )
        yield _Parameter(names.strip(), kind.strip(), text)


def _names(names: str) -> str:
    return ", ".join(f"`{name}`" for name in names.split(", "))


def _line(text: str) -> str:
    return _markdown(" ".join(text.split()))


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _markdown(text: str) -> str:
    # The stars of ``**fields`` would begin bold text outside of code.
    return text.replace("``", "`").replace("**", "\\*\\*")

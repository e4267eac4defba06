"""The generated parts of the documentation.

A page may contain a line like ``<!-- ports: hdl.fp -->``. When the site is built, `filled` puts
the generated text in its place: for ``ports``, ``configurations`` and ``registers`` of a package,
tables from the components themselves (names, directions and widths from their signatures,
descriptions from their docstrings); for ``source`` of a component its RTL, for ``verilog`` of a
unit the Verilog of its first configuration, for ``excerpt`` of a unit the beginning of the Verilog
of its default configuration; for ``instructions`` of some machines their rows, and for ``example``
of a row a worked example; for ``decisions`` of a folder the list of its records, from their first
lines. `picture` draws the pictures that come from tables of the project.

One part is kept in its file, where a reader of the repository needs it: the rooms of
``docs/architecture.md``, from the first lines of the packages. `update` writes what stands between
``<!-- rooms -->`` and ``<!-- /rooms -->``.
"""

import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from amaranth.hdl import Shape, ShapeCastable
from amaranth.lib import data, stream, wiring

from vitruvian.common.errors import UserError
from vitruvian.common.files import write_whole
from vitruvian.common.validate import one_of
from vitruvian.flows.asic.report import markdown
from vitruvian.flows.pages import figures, overview, rooms
from vitruvian.flows.pages.coverage import coverage
from vitruvian.flows.pages.machines import one_sum, pages
from vitruvian.flows.units import reported
from vitruvian.flows.verilog import emit, register_files
from vitruvian.hdl.bus.registers import REGISTERS
from vitruvian.hdl.catalogue import PARTS, UNITS
from vitruvian.hdl.catalogue.unit import Variant
from vitruvian.hdl.core.registers import CORE_REGISTERS
from vitruvian.hdl.cube import BLACKWELL, CONFIGS
from vitruvian.hdl.cube.choices import DATAFLOWS
from vitruvian.hdl.elaborate import only_described

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs"
TUTORIALS = FOLDER / "tutorials"


def _components(package: str) -> list[tuple[str, wiring.Component, frozenset[str]]]:
    """Return the documented components of a package.

    Returns
    -------
    list of (words, component, optional)
        The words that describe the configuration, and the ports that only others have.
    """
    units = [
        (words, component, getattr(component, "optional", frozenset()))
        for unit in UNITS.values()
        if unit.package == package
        for words, partial in unit.documented.items()
        for component in [unit.build(unit.default(partial))]
    ]
    parts = [(part.words, part.build(), part.optional) for part in PARTS if part.package == package]
    return units + parts


#: File name of each picture -> function that draws it.
PICTURES: dict[str, Callable[[], str]] = {
    "m3xu_area.svg": figures.m3xu_area,
    "machines_one_sum.svg": one_sum.draw,
}

#: Pictures that are kept in Git, because the README shows them: path in docs -> function.
_KEPT_PICTURES: dict[str, Callable[[], str]] = {"overview.svg": overview.draw}

#: Lines of the first clocked block in an excerpt.
_EXCERPT = 5

_MARK = re.compile(
    r"^<!-- (ports|configurations|registers|source|verilog|excerpt|instructions|example"
    r"|decisions|coverage): (\S+) -->$",
    re.MULTILINE,
)

#: Parts that are kept in the files.
_KEPT: dict[str, Callable[[Path], str]] = {"rooms": rooms.table}


def filled(page: str) -> str:
    """Return the text of a page with its generated parts.

    Raises
    ------
    UserError
        If a docstring does not describe the ports of its component.
    ValueError
        If a part does not exist.
    """
    return _MARK.sub(lambda match: generate(match[1], match[2]), page)


def picture(name: str) -> str | None:
    """Return the SVG text of a picture by its file name, or None if no function draws it."""
    draw = PICTURES.get(name)
    return draw() if draw else pages.picture(name)


def update(folder: Path = FOLDER, *, check: bool = False) -> list[Path]:
    """Regenerate the parts that are kept in the Markdown files of ``folder``.

    Parameters
    ----------
    folder : Path
        Folder of the documentation.
    check : bool
        If True, write nothing.

    Returns
    -------
    list of Path
        The files whose generated parts were out of date.

    Raises
    ------
    UserError
        If the folder contains no documentation.
    """
    if not any(folder.rglob("*.md")):
        raise UserError(f"docs needs the folder of the documentation, {folder}, of a source tree")
    stale = []
    for path in sorted(folder.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        fresh = text
        for name, make in _KEPT.items():
            part = re.compile(rf"(?<=^<!-- {name} -->\n).*?(?=^<!-- /{name} -->$)", re.M | re.S)
            if part.search(fresh):
                made = f"\n{make(ROOT)}\n"
                fresh = part.sub(lambda _, made=made: made, fresh)
        if fresh != text:
            stale.append(path)
            if not check:
                write_whole(path, fresh)
    for name, draw in _KEPT_PICTURES.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != draw():
            stale.append(path)
            if not check:
                write_whole(path, draw())
    return stale


def generate(kind: str, package: str) -> str:
    """Return the text of one generated part.

    Parameters
    ----------
    kind : str
        ``"ports"``, ``"configurations"``, ``"registers"``, ``"source"``, ``"verilog"``,
        ``"excerpt"``, ``"instructions"``, ``"example"``, ``"decisions"`` or ``"coverage"``.
    package : str
        Package whose components are described, for example ``"hdl.fp"``; for ``"source"`` a
        component, for ``"verilog"`` and ``"excerpt"`` a unit, for ``"instructions"`` machines with
        commas between them, for ``"example"`` a row of the table of machines, for
        ``"decisions"`` the folder of the records, and for ``"coverage"`` a GPU.

    Raises
    ------
    ValueError
        If the package has no such part.
    """
    if kind == "configurations":
        one_of("package with configurations", package, ["hdl.cube"])
        return _configurations()
    if kind == "registers":
        maps = {"hdl.bus": REGISTERS, "hdl.core": CORE_REGISTERS}
        one_of("package with registers", package, maps)
        return "\n" + markdown(register_files.table(maps[package])) + "\n"
    if kind in ("instructions", "example"):
        return pages.instructions(package) if kind == "instructions" else pages.worked(package)
    if kind == "coverage":
        return coverage(package)
    if kind == "excerpt":
        return _excerpt(package)
    if kind == "decisions":
        return f"\n{rooms.decisions(ROOT / package)}\n"
    if kind in ("source", "verilog"):
        return _source(package) if kind == "source" else _verilog(package)
    parts = []
    packages = dict.fromkeys(described.package for described in (*UNITS.values(), *PARTS))
    one_of("package", package, packages)
    for words, component, optional in _components(package):
        columns = ["port", "", "bits", "width", "what it is"]
        parts.append(f"**`{type(component).__name__}`** (bits: {words})\n")
        parts.append(markdown((columns, port_rows(only_described(component), optional=optional))))
    return "\n" + "\n".join(parts) + "\n"


def port_rows(
    component: wiring.Component, *, optional: frozenset[str] = frozenset()
) -> list[list[str]]:
    """Return one row for each port: name, direction, bits, width expression and description.

    Parameters
    ----------
    optional : frozenset of str
        Ports that the docstring describes and that only other configurations have.

    Raises
    ------
    UserError
        If the component's docstring does not describe exactly its ports.
    TypeError
        If a member is neither a port nor a stream.
    """
    words = _described(component)
    rows = []
    for name, member in component.signature.members.items():
        expression, text = words.get(name, ("", ""))
        way = "in" if member.flow == wiring.In else "out"
        if member.is_port:
            bits = Shape.cast(member.shape).width
            rows.append([f"`{name}`", way, str(bits), expression, text])
            continue
        inner = member.signature.flip() if member.flow == wiring.In else member.signature
        if not isinstance(inner, stream.Signature):
            raise TypeError(f"{name} must be a port or a stream, not {inner!r}")
        shape = inner.members["payload"].shape
        rows.append([f"`{name}`", f"{way}, stream", str(Shape.cast(shape).width), expression, text])
        rows += [
            [f"`{name}.payload.{field}`", way, str(bits), layout, ""]
            for field, bits, layout in _fields(shape)
        ]
    # A docstring may describe a port that only some configurations have, but no unknown port.
    missing = set(words) - set(component.signature.members)
    known = set(component.signature.members) <= set(words)
    if not known or missing - optional:
        raise UserError(
            f"docstring of {type(component).__name__} must describe its ports "
            f"{', '.join(component.signature.members)}, not {', '.join(words) or 'none'}"
        )
    return rows


def _fields(shape: object) -> Iterator[tuple[str, int, str]]:
    """Yield the name, the number of bits and the arrangement of each field of a structure."""
    if isinstance(shape, data.StructLayout):
        for name, field in shape:
            yield name, Shape.cast(field.shape).width, _arrangement(field.shape)


def _arrangement(shape: object) -> str:
    if isinstance(shape, data.ArrayLayout):
        return f"{shape.length} × {Shape.cast(shape.elem_shape).width}"
    members = getattr(shape, "__members__", None)
    if members and isinstance(shape, ShapeCastable):
        return ", ".join(f"{m.value} {name}" for name, m in members.items())
    return ""


def _described(component: wiring.Component) -> dict[str, tuple[str, str]]:
    """Return port -> (width, description) from the sections ``Members`` of the docstrings.

    A class describes its own ports, and those that it has from its bases are described there.
    """
    found: dict[str, tuple[str, str]] = {}
    for each in type(component).__mro__:
        own = _members(inspect.cleandoc(each.__doc__ or "")) if each is not wiring.Component else {}
        if each is not type(component):
            own = {
                name: words for name, words in own.items() if name in component.signature.members
            }
        found = own | found
    return found


def _members(text: str) -> dict[str, tuple[str, str]]:
    """Return port -> (width, description) from the section ``Members`` of a docstring."""
    match = re.search(
        r"^Members\n-+\n(.*?)(?=\n\n\S[^\n]*\n-+\n|\Z)", text, re.DOTALL | re.MULTILINE
    )
    descriptions: dict[str, tuple[str, str]] = {}
    if match is None:
        return descriptions
    # An entry starts in the first column; its description is indented.
    for entry in re.split(r"\n(?=\S)", match[1]):
        head, _, rest = entry.partition("\n")
        words = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", " ".join(rest.split())).replace(
            "``", "`"
        )
        # A head may describe several ports: ``a, b : In(8), In(4); c : Out(8)``.
        for part in head.split("; "):
            names, _, types = part.partition(" : ")
            shapes = re.findall(r"(?:In|Out)\((.*?)\)(?=, (?:In|Out)\(|$)", types)
            for index, name in enumerate(names.split(", ")):
                width = shapes[min(index, len(shapes) - 1)] if shapes else ""
                width = re.sub(r"^stream\.Signature\((.*)\)$", r"\1", width)
                descriptions[name.strip()] = (f"`{width}`" if width else "", words)
    return descriptions


def _source(path: str) -> str:
    """Return the method ``elaborate`` of the component ``path`` as a block of Python."""
    module, _, name = path.rpartition(".")
    component = getattr(importlib.import_module(f"vitruvian.{module}"), name)
    return f"\n```python\n{textwrap.dedent(inspect.getsource(component.elaborate))}```\n\n"


def _verilog(unit: str) -> str:
    """Return the Verilog of the first reported configuration of ``unit``."""
    return f"\n```verilog\n{emit.emit(reported(unit)[0])}```\n\n"


def _excerpt(unit: str) -> str:
    """Return the header, the ports and the first registers of a unit's default configuration."""
    chosen = UNITS[one_of("unit", unit, UNITS)]
    lines = emit.emit(Variant(chosen, chosen.default({}))).splitlines()
    ports = lines.index(");", next(i for i, x in enumerate(lines) if x.startswith("module ")))
    clocked = next(i for i, x in enumerate(lines) if x.startswith("  always @(posedge clk)"))
    shown = [*lines[: ports + 1], "  // ...", *lines[clocked : clocked + _EXCERPT], "    // ..."]
    return "\n```verilog\n" + "\n".join(shown) + "\n```\n\n"


def _configurations() -> str:
    """Return the table of the matrix unit's presets, each in both dataflows."""
    columns = ["preset", "dataflow", "M × N × K", "precisions (K)", "accuracy", "pipeline"]
    columns += ["slots", "latency, cycles"]
    rows = []
    for name, base in (CONFIGS | BLACKWELL).items():
        for dataflow in ("broadcast",) if base.slot_memory else DATAFLOWS:
            c = replace(base, dataflow=dataflow)
            terms = ", ".join(f"{p} ({c.terms(p)})" for p in c.precisions)
            shape = f"{c.m} × {c.n} × {c.k}"
            rows.append([f"`{name}`", dataflow, shape, terms, c.preset, str(c.pipeline)])
            rows[-1] += [str(c.slot_count), str(c.latency_cycles)]
    return "\n" + markdown((columns, rows)) + "\n"

"""Generate parts of the documentation: tables of ports and of the matrix unit's presets.

A file under ``docs/units`` contains the line ``<!-- ports: PACKAGE -->`` or
``<!-- configurations: PACKAGE -->``. This module writes the text between that line and
``<!-- /ports -->`` or ``<!-- /configurations -->`` from the components themselves: names,
directions and widths come from their signatures, descriptions from their docstrings. A picture in
``PICTURES`` that a file shows is drawn beside the file.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from amaranth.hdl import Shape, ShapeCastable
from amaranth.lib import data, stream, wiring

from vitruvian.errors import UserError
from vitruvian.files import write_whole
from vitruvian.flows import figures
from vitruvian.flows.report import markdown
from vitruvian.golden.fp.spec import PRESETS, DotSpec, IntDotSpec
from vitruvian.hdl.cube import CONFIGS, MatrixUnit, ProcessingElement
from vitruvian.hdl.cube.assign import DataAssignment
from vitruvian.hdl.cube.choices import DATAFLOWS
from vitruvian.hdl.cube.control import Sequencer
from vitruvian.hdl.cube.grid import Grid
from vitruvian.hdl.fp.add import Adder
from vitruvian.hdl.fp.compare import Compare, MinMax
from vitruvian.hdl.fp.convert import Converter
from vitruvian.hdl.fp.dot import DotProduct
from vitruvian.hdl.fp.exact import ExactDotProduct
from vitruvian.hdl.fp.intdot import IntDotProduct
from vitruvian.hdl.fp.mul import Multiplier
from vitruvian.hdl.fp.multidot import MultiDot
from vitruvian.hdl.m3xu.dot import LaneDot
from vitruvian.hdl.mma.issue import Issue
from vitruvian.hdl.mma.unit import MmaUnit
from vitruvian.validate import one_of

__all__ = ["FOLDER", "generate", "port_rows", "update"]

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "units"
_TENSORCORE = CONFIGS["tensorcore_a100"]
_M3XU = CONFIGS["m3xu"]
_FP16 = PRESETS["a100"].spec("fp16")

#: Package -> documented components; the text names the configuration that the widths belong to.
COMPONENTS: dict[str, list[tuple[str, Callable[[], wiring.Component]]]] = {
    "hdl.fp": [
        ("a100, fp16, K = 8", lambda: DotProduct(spec=_FP16, pipeline=3)),
        ("fp8e4m3, K = 16", lambda: ExactDotProduct(spec=PRESETS["exact"].spec("fp8e4m3"))),
        (
            "fp16, bf16, tf32, int8, K = 8",
            lambda: MultiDot(
                specs={name: PRESETS["a100"].spec(name) for name in ("fp16", "bf16", "tf32")},
                int8_k=16,
            ),
        ),
        ("K = 16", lambda: IntDotProduct(spec=IntDotSpec(k=16))),
        ("fp32", lambda: Adder(format="fp32")),
        ("fp16 to fp32", lambda: Multiplier(format="fp16", output="fp32")),
        ("fp32", lambda: Compare(format="fp32")),
        ("fp32", lambda: MinMax(format="fp32")),
        ("fp32 to fp16", lambda: Converter(source="fp32", target="fp16")),
    ],
    "hdl.cube": [
        ("tensorcore_a100", lambda: MatrixUnit(config=_TENSORCORE)),
        ("tensorcore_a100", lambda: ProcessingElement(config=_TENSORCORE)),
        ("tensorcore_a100", lambda: Grid(config=_TENSORCORE)),
        ("tensorcore_a100", lambda: Sequencer(config=_TENSORCORE)),
    ],
    "hdl.m3xu": [
        ("m3xu", lambda: MmaUnit(config=_M3XU)),
        ("m3xu", lambda: Issue(config=_M3XU)),
        ("m3xu, a row of A", lambda: DataAssignment(config=_M3XU, side="a")),
        (
            "fp32 in 2 steps on 12 bits, 8 lanes",
            lambda: LaneDot(
                spec=DotSpec(input="fp32", output="fp32", k=8, window=48),
                exponent_bits=8,
                a_bits=_M3XU.limb_bits,
                b_bits=_M3XU.lane_bits,
                limbs=_M3XU.limb_counts,
                pipeline=_M3XU.pipeline,
            ),
        ),
    ],
}

#: File name of each picture -> function that draws it.
PICTURES: dict[str, Callable[[], str]] = {"m3xu_area.svg": figures.m3xu_area}

_BLOCK = re.compile(r"<!-- (ports|configurations): (\S+) -->\n(.*?)<!-- /\1 -->", re.DOTALL)


def update(folder: Path = FOLDER, *, check: bool = False) -> list[Path]:
    """Regenerate the generated parts of every Markdown file in ``folder``.

    Parameters
    ----------
    folder : Path
        Folder with the documentation of the units.
    check : bool
        If True, write nothing.

    Returns
    -------
    list of Path
        The files whose generated parts were out of date.

    Raises
    ------
    UserError
        If a file asks for an unknown part, or if the folder contains no documentation.
    """
    if not any(folder.rglob("*.md")):
        raise UserError(f"docs needs the folder of the documentation, {folder}, of a source tree")
    stale = []
    for path in sorted(folder.rglob("*.md")):
        text = path.read_text()
        fresh = _BLOCK.sub(lambda match: _block(match[1], match[2]), text)
        if fresh != text:
            stale.append(path)
            if not check:
                write_whole(path, fresh)
        for name in [name for name in PICTURES if f"]({name})" in text]:
            picture, drawn = path.with_name(name), PICTURES[name]()
            if not picture.exists() or picture.read_text() != drawn:
                stale.append(picture)
                if not check:
                    write_whole(picture, drawn)
    return stale


def _block(kind: str, package: str) -> str:
    return f"<!-- {kind}: {package} -->\n{generate(kind, package)}<!-- /{kind} -->"


def generate(kind: str, package: str) -> str:
    """Return the text of one generated part.

    Parameters
    ----------
    kind : str
        ``"ports"`` or ``"configurations"``.
    package : str
        Package whose components are described, for example ``"hdl.fp"``.

    Raises
    ------
    ValueError
        If the package has no such part.
    """
    if kind == "configurations":
        one_of("package with configurations", package, ["hdl.cube"])
        return _configurations()
    parts = []
    for bits_of, make in COMPONENTS[one_of("package", package, COMPONENTS)]:
        component = make()
        # Amaranth warns about components that are never elaborated; only the ports matter here.
        setattr(component, "_MustUse__used", True)  # noqa: B010
        columns = ["port", "", "bits", "width", "what it is"]
        parts.append(f"**`{type(component).__name__}`** (bits: {bits_of})\n")
        parts.append(markdown((columns, port_rows(component))))
    return "\n" + "\n".join(parts) + "\n"


def port_rows(component: wiring.Component) -> list[list[str]]:
    """Return one row for each port: name, direction, bits, width expression and description.

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
    if not known or missing - _optional(component):
        raise UserError(
            f"docstring of {type(component).__name__} must describe its ports "
            f"{', '.join(component.signature.members)}, not {', '.join(words) or 'none'}"
        )
    return rows


def _optional(component: wiring.Component) -> set[str]:
    """Return the ports that only some configurations of the component have."""
    if isinstance(component, LaneDot):
        return {"chop", "small"}
    return {"precision"} if isinstance(component, MultiDot) else set()


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
    """Return port -> (width, description) from the ``Members`` section of the docstring."""
    text = inspect.getdoc(type(component)) or ""
    match = re.search(
        r"^Members\n-+\n(.*?)(?=\n\n\S[^\n]*\n-+\n|\Z)", text, re.DOTALL | re.MULTILINE
    )
    descriptions: dict[str, tuple[str, str]] = {}
    # An entry starts in the first column; its description is indented.
    for entry in re.split(r"\n(?=\S)", match[1] if match else ""):
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


def _configurations() -> str:
    """Return the table of the matrix unit's presets, each in both dataflows."""
    columns = ["preset", "dataflow", "M × N × K", "precisions (K)", "accuracy", "pipeline"]
    columns += ["slots", "latency, cycles"]
    rows = []
    for name, base in CONFIGS.items():
        for dataflow in DATAFLOWS:
            c = replace(base, dataflow=dataflow)
            terms = ", ".join(f"{p} ({c.terms(p)})" for p in c.precisions)
            shape = f"{c.m} × {c.n} × {c.k}"
            rows.append([f"`{name}`", dataflow, shape, terms, c.preset, str(c.pipeline)])
            rows[-1] += [str(c.slot_count), str(c.latency_cycles)]
    return "\n" + markdown((columns, rows)) + "\n"

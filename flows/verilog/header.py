"""Write the header comment of an emitted file: the unit, its ports, their codes, its arithmetic."""

import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from amaranth.hdl import Shape, ShapeCastable
from amaranth.lib import data, stream, wiring

from vitruvian.flows.verilog.header_rules import stated
from vitruvian.flows.verilog.opcodes import instruction_codes
from vitruvian.flows.verilog.sv_package import ranges
from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.fp.spec import DotSpec, IntDotSpec
from vitruvian.hdl.catalogue.unit import Variant
from vitruvian.hdl.cube.blocks import SCALE_BITS, BlockUnitConfig
from vitruvian.hdl.cube.tile import TileConfig
from vitruvian.hdl.fp.add import Adder
from vitruvian.hdl.fp.compare import Compare, MinMax
from vitruvian.hdl.fp.convert import Converter
from vitruvian.hdl.fp.mul import Multiplier
from vitruvian.hdl.simd2.intconfig import IntConfig
from vitruvian.hdl.simd2.integer import IntTile

_HAND_SHAKE = (
    "Hand-shake: a payload passes at each rising edge of clk at which its valid and its ready are",
    "  1. A sender does not wait for ready before it raises valid, and then holds valid and the",
    "  payload until they have passed.",
)
_CLOCKING = "Clock: clk, rising edge; rst is synchronous, active high (where they are ports)."


def header(variant: Variant, component: Any) -> str:
    """Return the header comment: configuration, command, ports and codes, timing, arithmetic.

    Parameters
    ----------
    variant : Variant
        Supplies the names, the configuration and the command.
    component : wiring.Component
        Supplies the ports and the arithmetic.
    """
    lines = [
        f"{variant.module}: {variant.unit.summary}",
        "",
        "Configuration:",
        *(f"  {name.replace('_', ' ')} = {value}" for name, value in _settings(variant, component)),
        "Made by:",
        f"  vitruvian verilog {variant.arguments}",
        "Ports:",
    ]
    codes = _opcodes(component)
    for path, member, value in component.signature.flatten(component):
        # Amaranth joins the parts of a port's path with two underscores.
        way = "input " if member.flow == wiring.In else "output"
        lines.append(
            f"  {way} {'__'.join(map(str, path))}: {_described(path, member, value, codes)}"
        )
    lines += _placed(component)
    lines += _accessors(component)
    members = component.signature.members.values()
    if any(isinstance(_plain(member), stream.Signature) for member in members):
        lines += _HAND_SHAKE
    lines += [line.replace("MODULE", variant.module) for line in getattr(component, "notes", ())]
    lines += _arithmetic(component)
    latency = getattr(component, "latency", None)
    if latency is not None:
        plural = "" if latency == 1 else "s"
        lines.append(
            f"Latency: {latency} cycle{plural}" if latency else "Latency: 0 (combinational)"
        )
    else:
        lines.append("Latency: depends on the data; a result comes with its valid.")
    lines.append(getattr(component, "clocking", _CLOCKING))
    wrapped = [part for line in "\n".join(lines).split("\n") for part in _wrapped(line)]
    return "\n".join(f"// {line}".rstrip() for line in wrapped)


# 97 columns, and three for the comment mark.
def _wrapped(line: str, width: int = 97) -> list[str]:
    """Break a long line; a command is broken in front of options only."""
    if len(line) <= width:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    command = "vitruvian verilog" in line
    # An option and its value stay together.
    # A byte that is no white space stands for the space between an option and its value while lines
    # are broken.
    text = re.sub(r"(--\S+) (?!--)", "\\1\0", line) if command else line
    lines = textwrap.wrap(text, width, subsequent_indent=indent, break_on_hyphens=False)
    return [part.replace("\0", " ") for part in lines]


def _settings(variant: Variant, component: Any) -> list[tuple[str, Any]]:
    settings = {k: v for k, v in variant.configuration.items() if v is not None}
    config = getattr(component, "config", None)
    if isinstance(config, TileConfig):
        inner = config.settings()
        if "preset" in inner:
            # The command line and the documents call it accuracy.
            settings["accuracy"] = inner.pop("preset")
        settings |= inner
    elif isinstance(config, IntConfig):
        settings |= config.settings()
    return list(settings.items())


def _plain(member: Any) -> Any:
    """Return the signature of a member that is an interface, in the direction of its sender."""
    if member.is_port:
        return None
    # Streams are compared as their sender sees them.
    return member.signature.flip() if member.flow == wiring.In else member.signature


def _placed(component: Any) -> Iterator[str]:
    """Yield the line that says where the scales of a matrix unit are."""
    config = getattr(component, "config", None)
    if isinstance(config, BlockUnitConfig):
        low, bits = config.code_bits, config.bus_bits - config.code_bits
        yield (
            f"A row of a, and a column of b, has its codes at [0 +: {low}] and its scales, "
            f"{SCALE_BITS} bits each in rising k, at [{low} +: {bits}]."
        )


def _accessors(component: Any) -> Iterator[str]:
    """Yield constants with the bits of every field, for modules that connect to the unit."""
    found = list(ranges(component))
    if not found:
        return
    # Parameters of Verilog-2005, because a package is SystemVerilog.
    yield "Fields as constants, to copy: LSB is the lowest bit (in arrays, that of element 0), BITS"
    yield "  the width, and STRIDE the width of an element."
    for part in found:
        name = "_".join(part.path).replace("__", "_").upper()
        values = {"LSB": part.low, "BITS": part.bits, "STRIDE": part.stride}
        text = ", ".join(
            f"{name}_{key} = {value}" for key, value in values.items() if value or key == "LSB"
        )
        yield f"  localparam {text};"


def _described(path: tuple[Any, ...], member: Any, value: Any, codes: Mapping[str, str]) -> str:
    """Return the width and fields of a port, and the meaning of its codes if it has any."""
    text = _describe(value.shape(), codes)
    members = getattr(member.shape, "__members__", None)
    if members and not Shape.cast(member.shape).signed:
        text += ": " + ", ".join(f"{m.value} {n.lower()}" for n, m in members.items())
    elif path[-1] in codes:
        text += f": {codes[path[-1]]}"
    return text


def _describe(shape: Any, codes: Mapping[str, str]) -> str:
    if isinstance(shape, data.ArrayLayout):
        width = Shape.cast(shape.elem_shape).width
        text = f"{shape.length} x {width} bits, element i at [{width}*i +: {width}]"
        if isinstance(shape.elem_shape, data.StructLayout):
            text += ", in which"
        return "\n    ".join([text, *_inner(shape.elem_shape, codes)])
    if isinstance(shape, data.StructLayout):
        return "\n    ".join([f"{Shape.cast(shape).width} bits", *_inner(shape, codes)])
    cast = Shape.cast(shape)
    return f"{cast.width} bit{'s' if cast.width != 1 else ''}{', signed' if cast.signed else ''}"


def _inner(shape: Any, codes: Mapping[str, str]) -> list[str]:
    """Return a line for each field of a structure, and of the structures in it, indented."""
    if not isinstance(shape, data.StructLayout):
        return []
    lines: list[str] = []
    for name, field in shape:
        # A field with a single possible value has no bits and is left out.
        if not field.width:
            continue
        lines.append(_field(name, field, codes))
        element = field.shape
        if isinstance(element, data.ArrayLayout):
            element = element.elem_shape
        lines += [f"  {line}" for line in _inner(element, codes)]
    return lines


def _field(name: str, field: data.Field, codes: Mapping[str, str]) -> str:
    """Return the position of a field, and the meaning of its codes if it has any."""
    text = f"{name} at [{field.offset} +: {field.width}]"
    members = getattr(field.shape, "__members__", None)
    if members and isinstance(field.shape, ShapeCastable):
        text += ": " + ", ".join(f"{m.value} {n.lower()}" for n, m in members.items())
    elif name in codes:
        text += f": {codes[name]}"
    if isinstance(field.shape, data.ArrayLayout):
        width = Shape.cast(field.shape.elem_shape).width
        text += f", {field.shape.length} x {width} bits"
        if isinstance(field.shape.elem_shape, data.StructLayout):
            text += ", in each of which"
    if isinstance(field.shape, data.StructLayout):
        text += ", in which"
    return text


def _opcodes(component: Any) -> dict[str, str]:
    """Return field -> codes as a text; those of ``opcode`` are in base 16."""
    return {
        field: ", ".join(
            f"{code:#04x}={word}" if field == "opcode" else f"{code} {word}"
            for code, word in codes.items()
        )
        for field, codes in instruction_codes(component).items()
    }


def _arithmetic(component: Any) -> Iterator[str]:
    """Yield lines that state what every dot product of the unit computes."""
    # Units of dot products have a rule; all others state their own arithmetic, or one sentence.
    specs = _specs(component)
    if not specs:
        yield from stated(component)
        yield from _scalar(component)
        return
    # The name of the only rule of a plain dot product is empty.
    whose = "the unit is" if "" in specs else "an element is, of every precision,"
    yield f"Arithmetic: {whose} the dot product d = c + the sum of its products."
    rules: dict[tuple[str, ...], list[str]] = {}
    for name, spec in specs.items():
        if isinstance(spec, IntDotSpec):
            signs = ["int8" if signed else "uint8" for signed in (spec.signed_a, spec.signed_b)]
            end = "clipped to int32 once" if spec.saturate else "modulo 2^32"
            text = f"{_products(spec.k, *signs)}; c and d are int32; the exact sum, {end}"
        else:
            text = f"{_products(spec.k, spec.input.name, spec.input_b.name)}"
            text += f"; c and d are {spec.output.name}"
            text += _scales(spec)
            # The names of the complex precisions end in c.
            if name.endswith("c"):
                text += "; each part of a complex result is such a sum"
            rules.setdefault(tuple(_rule(spec)), []).append(name)
        yield f"  {name}: {text}" if name else f"  {text}"
    # Precisions with the same rule share a paragraph.
    for rule, names in rules.items():
        many = len(specs) > 1
        yield from (f"  {line}" for line in ([f"{', '.join(names)}:"] if many else []))
        yield from (f"  {'  ' if many else ''}{line}" for line in rule)


def _scalar(component: Any) -> Iterator[str]:
    """Yield lines that state what a unit of one operation computes."""
    if isinstance(component, IntTile):
        yield f"Arithmetic: operands and results are integers of {component.config.bits} bits."
        return
    sentence = next((text for cls, text in _SCALAR.items() if isinstance(component, cls)), None)
    if sentence is None:
        return
    yield f"Arithmetic: {sentence}"
    source = getattr(component, "source", None) or component.format
    target = getattr(component, "target", None) or getattr(component, "output", source)
    yield f"  Operands are {source.name}" + (
        f"; d is {target.name}." if hasattr(component, "d") else "."
    )
    rounding = getattr(component, "rounding", None)
    if rounding:
        yield f"  Rounding: once, {rounding} ({_ROUNDINGS[rounding]})."
    if hasattr(component, "d") and isinstance(target, FloatFormat) and target.has_nan:
        # Hexadecimal digits of a code.
        digits = -(-target.storage_bits // 4)
        yield f"  NaN: every NaN result has the code 0x{target.canonical_nan:0{digits}x}."


#: Class of a unit -> the sentence that says what it computes.
_SCALAR: dict[type, str] = {
    Adder: "d = a + b, or d = a - b while subtract is 1.",
    Multiplier: "d = a * b.",
    Converter: "d is the number a in another format.",
    Compare: "less is a < b, equal is a = b, unordered is 1 if an operand is NaN.",
    MinMax: "d is the smaller number, or the larger one while maximum is 1; NaN loses.",
}
_ROUNDINGS = {"RNE": "to nearest, ties to even", "RZ": "toward zero", "RTO": "to odd"}
_ZEROS = {
    "ieee": "-0 if every term is -0 or a negative sum rounds to zero, else +0",
    "positive": "always +0",
    "exact": "-0 if a negative sum rounds to zero, else +0",
}


def _specs(component: Any) -> dict[str, Any]:
    """Return precision -> parameter object; a dot product has one entry with an empty name."""
    if isinstance(getattr(component, "spec", None), DotSpec | IntDotSpec):
        return {"": component.spec}
    config = getattr(component, "config", None)
    if isinstance(config, TileConfig):
        return {name: config.spec(name) for name in config.precisions}
    return {}


def _products(k: int, a: str, b: str) -> str:
    return f"{k} product{'s' if k > 1 else ''} {a} x {b}"


def _scales(spec: DotSpec) -> str:
    """Return the end of a sentence about the scales of a rule."""
    if spec.scales is None:
        return ""
    scale, block = spec.scales.format, spec.scales.block
    text = f"; each {block} values of a, and of b, share a factor of {scale.name}"
    text += f" (code {scale.nan:#04x} is NaN)"
    # Blackwell's rule for FP4, see ``golden.machines``.
    if spec.sum.lanes == "sixteens":
        text += "; 16 products are added exactly, and their scaled sum is a term"
    return text


def _rule(spec: DotSpec) -> Iterator[str]:
    """Yield the window, the rounding and the NaN code of a fused dot product."""
    if spec.sum.window is None:
        yield "Window: none; nothing is cut."
    else:
        cut = {
            "magnitude": "magnitudes are chopped",
            "floor": "terms are chopped toward minus infinity, and one sticky bit is kept below",
            "odd": "magnitudes are chopped, and the last bit of one that lost bits is set",
        }[spec.sum.truncate]
        yield f"Window: {spec.sum.window} fraction bits below the largest exponent of a term;"
        yield f"  {cut}."
    if spec.sum.floor is not None and spec.scales is not None:
        yield f"  The largest exponent counts as {spec.sum.floor} if it is smaller."
    rounding = _ROUNDINGS[spec.result.rounding]
    too_large = "NaN" if spec.output.infinity is None else "infinity"
    result = spec.result
    yield f"Rounding: once, {result.rounding} ({rounding}), to {result.bits} fraction bits;"
    yield f"  overflow gives {too_large}."
    yield from _steps(spec)
    digits = -(-spec.output.storage_bits // 4)
    yield f"NaN: every NaN result has the code 0x{spec.nan_code:0{digits}x}."


def _steps(spec: DotSpec) -> Iterator[str]:
    """Yield the steps of a machine's rule that a plain fused dot product does not have."""
    if spec.is_plain and spec.result.zero != "exact":
        return
    yield f"Sign of a zero: {_ZEROS[spec.result.zero]}."
    if spec.a.convert is not None:
        yield f"Operands: converted to {spec.a.convert.name} first, RNE."
    if spec.flush:
        yield f"Operands and c below the least normal {spec.output.name} number are zeros."
    if spec.result.flush is not None:
        yield f"Results below the least normal {spec.output.name} number are zeros."
    if spec.products.exponent == "leading":
        yield "Exponent of a product: that of its leading one."
    if spec.products.slices is not None:
        yield "Significands: cut into slices; the product of each of these pairs is a term:"
        yield "  " + ", ".join(f"{p:#x} x {q:#x}" for p, q in spec.products.slices) + "."
    if spec.sum.lanes == "halves":
        yield "Order: products k mod 4 in {0, 1} are summed first; the others and this sum follow."
    if spec.addend.how == "after":
        yield "c: added exactly to the sum of the cut products; the largest exponent ignores c."
    if spec.addend.how == "late":
        last = "RTO" if spec.result.rounding == "RTO" else "RNE"
        yield f"c: added last to the rounded sum of the products, {last}, zeros as in IEEE 754."

"""Prepare Yosys' Verilog for release: wire order, single port declarations, lint waivers.

A synthesis tool orders the operands of an adder by the order in which a module declares its wires,
and this order affects the adder's area (5 % for an INT8 dot product). Yosys sorts wires by name.
Here they keep the order of the RTLIL, so that the Verilog text synthesises like the RTLIL.
"""

import re
from collections.abc import Mapping

__all__ = ["LINT", "tidy"]

#: Verilator warnings that are switched off, with reasons. There must be no other warning under
#: ``-Wall``. Older names of warning families are used, because every Verilator version knows them.
LINT = {
    "UNUSED": "Adders and comparators are written at full width and some of their bits have no "
    "reader (a carry that cannot be set, the low bits of a rounded sum); combinational units have "
    "no use for rst.",
    "WIDTH": "Operands are written at their own width and rely on the language's extension to the "
    "width of the expression.",
    "UNOPTFLAT": "Carry-save and prefix trees read lower bits of a vector to make higher bits of "
    "the same vector: a cycle between names, not between bits.",
    "DECLFILENAME": "One file holds a unit and the modules it is made of.",
    "CMPCONST": "Reading an array checks the index against its length, which cannot fail where "
    "that is a power of two.",
}

_MODULE = re.compile(r"(?m)^module (\S+)\((.*?)\);\n(.*?)^endmodule\n", re.DOTALL)
_DECLARATION = re.compile(
    r"  (input|output|wire|reg)( signed)? (\[[^\]]+\] )?(\w+)( = [^;\n]+)?( \[[^\]]+\])?;$"
)
_NAMELESS = re.compile(r"\b_\d+_\b")


def tidy(text: str, order: Mapping[str, list[str]]) -> str:
    """Return Yosys' Verilog ``text`` with one declaration per port and ordered wires.

    Parameters
    ----------
    text : str
        Verilog from Yosys' ``write_verilog``.
    order : mapping of str to list of str
        Module -> names of its wires in the order of the RTLIL. Nameless wires follow them in the
        order of their first use.
    """
    remarks = "".join(
        f"{_wrapped(why)}/* verilator lint_off {rule} */\n" for rule, why in LINT.items()
    )
    body = _MODULE.sub(lambda match: _module(match, order.get(match[1], [])), text)
    return f"/* verilator lint_save */\n{remarks}\n{body}/* verilator lint_restore */\n"


def _wrapped(text: str, width: int = 100) -> str:
    lines, line = [], "//"
    for word in text.split():
        if len(line) + 1 + len(word) > width:
            lines.append(line)
            line = "//"
        line += f" {word}"
    return "\n".join([*lines, line, ""])


def _module(match: re.Match[str], order: list[str]) -> str:
    # Yosys breaks a list of more than 20 ports into lines.
    name, ports, inner = match[1], re.findall(r"[^,\s]+", match[2]), match[3].split("\n")
    count = 0
    directions: dict[str, str] = {}
    nets: dict[str, tuple[str, str, str, str]] = {}  # kind, sign and range, start value, length
    kept: set[str] = set()
    keep = False
    for line in inner:
        declaration = _DECLARATION.match(line)
        # The declarations end at the first other line.
        if declaration is None and not line.startswith("  (* keep "):
            break
        count += 1
        if declaration is None:
            keep = True
            continue
        kind, sign, span, net, start, length = declaration.groups(default="")
        kept |= {net} if keep else set()
        keep = False
        if kind in ("input", "output"):
            directions[net] = kind
        else:
            nets[net] = (kind, f"{sign} {span}".lstrip() if sign else span, start, length)
    body = "\n".join(inner[count:])
    body, numbers = _numbered(body)
    # Wires without a name follow those with a name, in the order of their first use.
    position = {net: index for index, net in enumerate(order)}
    wires = [net for net in nets if net not in directions]
    nameless = [net for net in wires if _NAMELESS.fullmatch(net)]
    named = [net for net in wires if not _NAMELESS.fullmatch(net)]
    named.sort(key=lambda net: position.get(net, len(position)))
    nameless.sort(key=lambda net: numbers.get(net, net))
    head = [f"  {directions[p]:<6} {' '.join(nets[p][:2]).rstrip()} {p}" for p in ports]
    lines = [f"module {name} (", ",\n".join(head), ");"] if ports else [f"module {name};"]
    for net in (*named, *nameless):
        kind, shape, _, length = nets[net]
        mark = "(* keep *) " if net in kept else ""
        lines.append(f"  {mark}{kind} {shape}{numbers.get(net, net)}{length};")
    # Yosys writes initial values in declarations; they move to one ``initial`` block.
    starts = [f"    {numbers.get(net, net)}{nets[net][2]};" for net in nets if nets[net][2]]
    if starts:
        lines += ["  initial begin", *starts, "  end"]
    return "\n".join(lines) + f"\n{body}endmodule\n"


def _numbered(body: str) -> tuple[str, dict[str, str]]:
    """Return the text with nameless wires renumbered in the order of their first use.

    The second result maps the old names to the new ones.
    """
    nameless = list(dict.fromkeys(_NAMELESS.findall(body)))
    digits = len(str(len(nameless)))
    fresh = {old: f"_{number:0{digits}}_" for number, old in enumerate(nameless)}
    return _NAMELESS.sub(lambda match: fresh[match[0]], body), fresh

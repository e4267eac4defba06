"""A unit as Verilog that lints clean and says what it is and how to make it again.

Port names are those of the component. A port that is an array is one vector, element i at
``name[W*i +: W]``; a member of an interface is ``port__member``. Inner names are kept where the RTL
gave one, with every character that Verilog does not allow as ``_``; nameless ones are ``_0123_``.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from amaranth.hdl import Shape
from amaranth.lib import data, wiring

from flows.cache import write_atomic
from flows.synth import WORKER, SynthesisError
from flows.unit import Variant
from hdl.elaborate import to_rtlil

WAIVERS = Path(__file__).with_name("lint.vlt")

_IDENTIFIER = re.compile(r'("(?:[^"\\]|\\.)*")|\\(\S+)')
_SCRIPT = (
    "read_rtlil design.il",
    "proc -norom -noopt",  # opt_expr would write == 0 as a logical not of a vector
    "pmuxtree",  # else parallel multiplexers become functions with overlapping cases
    "opt_clean",
    "memory_collect",
    "write_verilog -noattr design.v",
)


def emit(variant: Variant) -> str:
    """Return the Verilog text of `variant`: header comment, then every module.

    Raises
    ------
    SynthesisError
        Yosys could not write the design.
    """
    component = variant.build()
    rtlil = to_rtlil(component, name=variant.module, shared=variant.unit.shared)
    ports = ["__".join(map(str, path)) for path, _, _ in component.signature.flatten(component)]
    body = _write(_readable(_ordered(rtlil, variant.module, ["clk", "rst", *ports])))
    body = re.sub(r"\A/\*.*?\*/\s*", "", body, flags=re.DOTALL)  # Yosys' own header
    return f"{_header(variant, component)}\n`timescale 1ns / 1ps\n\n{body}"


def write(variant: Variant, folder: Path) -> Path:
    """Write ``folder/MODULE.v`` whole or not at all and return its path."""
    path = folder / f"{variant.module}.v"
    write_atomic(path, emit(variant))
    return path


def _header(variant: Variant, component: Any) -> str:
    """Return the comment at the top: what this is, its ports, and how to make it again."""
    settings = {k: v for k, v in variant.configuration.items() if v is not None}
    config = getattr(component, "config", None)
    if config is not None:
        inner = config.settings()
        settings |= {"accuracy": inner.pop("preset"), **inner}
    lines = [
        f"{variant.module}: {variant.unit.summary}",
        "",
        "Configuration:",
        *(f"  {name.replace('_', ' ')} = {value}" for name, value in settings.items()),
        "Made by:",
        f"  python -m flows verilog {variant.arguments}",
        "Ports:",
    ]
    for path, member, value in component.signature.flatten(component):
        way = "input " if member.flow == wiring.In else "output"
        lines.append(f"  {way} {'__'.join(map(str, path))}: {_describe(value.shape())}")
    latency = getattr(component, "latency", None)
    if latency is not None:
        lines.append(f"Latency: {latency} cycles" if latency else "Latency: 0 (combinational)")
    lines.append("Clock: clk, rising edge; rst is synchronous, active high (where they are ports).")
    return "\n".join(f"// {line}".rstrip() for line in lines)


def _describe(shape: Any) -> str:
    if isinstance(shape, data.ArrayLayout):
        width = Shape.cast(shape.elem_shape).width
        return f"{shape.length} x {width} bits, element i at [{width}*i +: {width}]"
    if isinstance(shape, data.StructLayout):
        parts = [f"{name} at [{f.offset} +: {f.width}]" for name, f in shape if f.width]
        return "\n//     ".join([f"{Shape.cast(shape).width} bits", *parts])
    cast = Shape.cast(shape)
    return f"{cast.width} bit{'s' if cast.width != 1 else ''}{', signed' if cast.signed else ''}"


def _ordered(rtlil: str, top: str, ports: list[str]) -> str:
    """Number the ports of module `top` in the order of `ports`."""
    head, body = rtlil.split(f"\nmodule \\{top}\n", 1)
    module, rest = body.split("\nend\n", 1)

    def number(match: re.Match[str]) -> str:
        return f"{match[1]} {ports.index(match[2]) + 1} \\{match[2]}"

    module = re.sub(r"(?m)\b(input|output) \d+\s+\\(\S+)$", number, module)
    return f"{head}\nmodule \\{top}\n{module}\nend\n{rest}"


def _readable(rtlil: str) -> str:
    """Replace every identifier that Verilog would have to escape, the same name everywhere."""
    names = {match[2] for match in _IDENTIFIER.finditer(rtlil) if match[2]}
    plain = {name for name in names if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII)}
    chosen: dict[str, str] = {}
    taken = set(plain)
    for name in sorted(names - plain):
        wish = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "net"
        wish = f"n{wish}" if wish[0].isdigit() else wish
        fresh, number = wish, 1
        while fresh in taken:
            number += 1
            fresh = f"{wish}_v{number}"
        taken.add(fresh)
        chosen[name] = fresh

    def rename(match: re.Match[str]) -> str:
        return match[0] if match[1] else "\\" + chosen.get(match[2], match[2])

    return _IDENTIFIER.sub(rename, rtlil)


def _write(rtlil: str) -> str:
    """Let Yosys write the design, in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="verilog-") as name:
        folder = Path(name)
        (folder / "design.il").write_text(rtlil)
        (folder / "script").write_text("\n".join(_SCRIPT))
        done = subprocess.run(
            [sys.executable, str(WORKER), "script", "usage.json"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            lines = (done.stdout + done.stderr).strip().splitlines() or ["no output"]
            raise SynthesisError(f"Yosys could not write Verilog: {lines[-1]}")
        return (folder / "design.v").read_text()

"""Export a unit as lint-clean Verilog with a header that describes it and says how to rebuild it.

Port names are those of the component. A port that is an array becomes one vector, with element i
at ``name[W*i +: W]``; a member of an interface becomes ``port__member``. An inner name of the RTL
stays, with ``_`` for every character that Verilog does not allow; nets without a name become
``_0123_``.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from vitruvian.files import write_whole
from vitruvian.flows.synth import WORKER, SynthesisError
from vitruvian.flows.verilog_header import header
from vitruvian.flows.verilog_text import tidy
from vitruvian.hdl.catalogue.unit import Variant
from vitruvian.hdl.elaborate import snake, to_rtlil

_IDENTIFIER = re.compile(r'("(?:[^"\\]|\\.)*")|\\(\S+)')
_PORT = re.compile(r"port\$\d+\$\d+")  # a nameless value of the parent module
_WIRE = re.compile(r"(?m)^  (?:wire|memory) .*\\(\S+)$")
_SCRIPT = (
    "read_rtlil design.il",
    "proc -norom -noopt",  # opt_expr would write == 0 as the logical not of a vector
    "pmuxtree",  # parallel multiplexers would become functions with overlapping cases
    "opt_clean -purge",  # removes names that nothing reads
    "memory_collect",
    "write_verilog design.v",
)


def emit(variant: Variant) -> str:
    """Return the Verilog text of ``variant``: the header comment, then every module.

    Raises
    ------
    UserError
        If the variant cannot be built.
    SynthesisError
        If Yosys cannot write the design.
    """
    component = variant.build()
    rtlil = to_rtlil(component, name=variant.module, shared=variant.unit.shared)
    ports = ["__".join(map(str, path)) for path, _, _ in component.signature.flatten(component)]
    rtlil = _ordered(rtlil, variant.module, ["clk", "rst", *ports])
    rtlil = _readable(rtlil, variant.module, [snake(cls.__name__) for cls in variant.unit.shared])
    body = _write(rtlil)
    body = re.sub(r"\A/\*.*?\*/\s*", "", body, flags=re.DOTALL)  # Yosys' own header
    # ``keep`` is the only attribute that matters to another synthesis tool.
    body = re.sub(r"(?m)^ *\(\* (?!keep ).*\*\)\n|\(\* (?!keep )[^*]*\*\) ", "", body)
    body = tidy(*_without_keywords(body, _wires(rtlil)))
    return f"{header(variant, component)}\n`timescale 1ns / 1ps\n{body}"


def write(variant: Variant, folder: Path) -> Path:
    """Write ``folder/MODULE.v`` atomically and return its path."""
    path = folder / f"{variant.module}.v"
    write_whole(path, emit(variant))
    return path


def _ordered(rtlil: str, top: str, ports: list[str]) -> str:
    """Return RTLIL in which the ports of module ``top`` are numbered in the order of ``ports``."""
    head, body = rtlil.split(f"\nmodule \\{top}\n", 1)
    module, rest = body.split("\nend\n", 1)

    def number(match: re.Match[str]) -> str:
        return f"{match[1]} {ports.index(match[2]) + 1} \\{match[2]}"

    module = re.sub(r"(?m)\b(input|output) \d+\s+\\(\S+)$", number, module)
    return f"{head}\nmodule \\{top}\n{module}\nend\n{rest}"


def _readable(rtlil: str, top: str, shared: list[str]) -> str:
    """Replace every identifier that Verilog would have to escape, consistently in the whole text.

    The RTLIL name of a shared module consists of its class and a hash. Its new name consists of
    ``top`` and its class.
    """
    names = dict.fromkeys(match[2] for match in _IDENTIFIER.finditer(rtlil) if match[2])
    plain = {name for name in names if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII)}
    hashed = re.compile(rf"({'|'.join(shared) or '(?!)'})_[0-9a-f]{{8}}(?=\.|$)")
    # A shared module's name contains a hash and is replaced although it is legal.
    plain -= {name for name in plain if hashed.match(name)}
    chosen: dict[str, str] = {}
    taken = set(plain)

    def free(wish: str, joint: str) -> str:
        """Return ``wish``, with a number appended if that name is in use."""
        fresh, number = wish, 1
        while fresh in taken:
            number += 1
            fresh = f"{wish}{joint}{number}"
        taken.add(fresh)
        return fresh

    roles: dict[str, str] = {}
    for name in names:
        role = hashed.match(name)
        if role and role[0] not in roles:
            roles[role[0]] = free(f"{top}_{role[1]}", "_")
    # Values of a parent without a name are numbered in the order of their occurrence.
    ports = [name for name in names if _PORT.fullmatch(name)]
    chosen |= {name: free(f"port_{index}", "_v") for index, name in enumerate(ports)}
    for name in sorted(names.keys() - plain - set(ports)):
        wish = hashed.sub(lambda role: roles[role[0]], name, count=1)
        if name in roles:
            chosen[name] = wish
            continue
        wish = re.sub(r"\W+", "_", wish, flags=re.ASCII).strip("_") or "net"
        chosen[name] = free(f"n{wish}" if wish[0].isdigit() else wish, "_v")

    def rename(match: re.Match[str]) -> str:
        return match[0] if match[1] else "\\" + chosen.get(match[2], match[2])

    return _IDENTIFIER.sub(rename, rtlil)


def _wires(rtlil: str) -> dict[str, list[str]]:
    """Return module -> names of its wires, in the order of the RTLIL."""
    wires: dict[str, list[str]] = {}
    for block in re.split(r"(?m)^module ", rtlil)[1:]:
        wires[block.split(None, 1)[0].lstrip("\\")] = _WIRE.findall(block)
    return wires


def _without_keywords(body: str, wires: dict[str, list[str]]) -> tuple[str, dict[str, list[str]]]:
    """Return both arguments with another name for every one that is a keyword of Verilog.

    After ``_readable``, keywords are the only names that Yosys escapes.
    """
    taken, names = set(re.findall(r"\w+", body)), {}
    for word in dict.fromkeys(re.findall(r"\\(\w+) ", body)):
        fresh = f"{word}_v"
        while fresh in taken:
            fresh += "_v"
        names[word] = fresh
    body = re.sub(r"\\(\w+) ", lambda match: names[match[1]], body)
    return body, {module: [names.get(n, n) for n in wires[module]] for module in wires}


def _write(rtlil: str) -> str:
    """Let Yosys translate the RTLIL text into Verilog."""
    return run_yosys("design.il", rtlil, _SCRIPT, "design.v", task="write Verilog")


def run_yosys(name: str, text: str, script: Sequence[str], result: str, *, task: str) -> str:
    """Run a Yosys script in its own process and return the text of the file that it writes.

    Parameters
    ----------
    name, text : str
        Name and content of the file that the script reads.
    script : sequence of str
        Yosys commands, one per line.
    result : str
        Name of the file that the script writes.
    task : str
        Completes the error message "Yosys could not …".

    Raises
    ------
    SynthesisError
        If Yosys ends with an error.
    """
    with tempfile.TemporaryDirectory(prefix="yosys-") as temporary:
        folder = Path(temporary)
        (folder / name).write_text(text)
        (folder / "script").write_text("\n".join(script))
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
            raise SynthesisError(f"Yosys could not {task}: {lines[-1]}")
        return (folder / result).read_text()

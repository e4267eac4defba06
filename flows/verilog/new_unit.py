"""Write a folder from which a newcomer simulates a unit and builds a bitstream.

The folder is a bundle (``flows.verilog.bundle``) whose module has the name that the user chose,
with a configuration file, a top module for boards and a Makefile with the targets sim, lint and
fpga.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from vitruvian.common.errors import UserError
from vitruvian.common.files import write_all
from vitruvian.common.validate import shortened
from vitruvian.flows.verilog import bundle, unit_file
from vitruvian.flows.verilog.netlist.keywords import KEYWORDS
from vitruvian.hdl.catalogue.unit import Variant

_MOST = 64

# ``start`` counts to 15 after the configuration of the FPGA and holds the unit in reset until then;
# boards need not have a reset pin.
_TOP = """\
// {module}_top: {module} behind registers, for a first bitstream on any board
//
// A shift register takes one bit in every cycle, so that the unit needs no pins of its own, and a
// register keeps the parity of all its outputs. Tools cannot remove the unit, and the delay from
// register to register is that of the unit. Replace this file by the design that uses the unit.
`timescale 1ns / 1ps

module {module}_top (
  input  wire clk,
  input  wire data_in,
  output reg  data_out
);
  reg  [{last}:0] shift;
{wires}  reg  [3:0] start;
  wire rst = ~&start;
  always @(posedge clk) begin
    start <= rst ? start + 4'h1 : start;
    shift <= {{{rest}data_in}};
    data_out <= {fold};
  end
  initial start = 4'h0;
  {module} unit (
{pins}
  );
{unused}endmodule
"""

_MAKEFILE = """\

# Everything below needs Vitruvian.
VITRUVIAN ?= vitruvian
BOARD ?= ulx3s

sim: check

# Writes build/fpga; needs the extra fpga of Vitruvian.
fpga:
	$(VITRUVIAN) fpga --config {module}.toml --board $(BOARD) --bitstream --out build/fpga

# Prints the cells that the unit takes on several families of FPGAs.
cells:
	$(VITRUVIAN) fpga --config {module}.toml

.PHONY: sim fpga cells
"""

_README = """\
# {module}

{summary}

1. `make sim` checks the unit against golden vectors on Icarus Verilog or Verilator.
2. `make fpga BOARD=ulx3s` builds a bitstream.

| file | content |
|---|---|
| `{module}.toml` | the configuration; every command of Vitruvian takes it as `--config` |
| `rtl/{module}.v` | the unit; its header describes ports, codes, latency and arithmetic |
| `top/{module}_top.v` | a top module for any board: the unit behind registers |
| `vectors/*.hex`, `tb/{module}_tb.v` | golden vectors, and the bench that compares with them |
| `Makefile` | `make sim`, `make lint`, `make cells`, `make fpga` |

After a change of `{module}.toml`, write the Verilog again:

```
vitruvian new {name} --config {name}/{module}.toml --replace
```
"""


@dataclass(frozen=True)
class NamedVariant(Variant):
    """A variant whose module has a name that the user chose."""

    name: str = ""

    @property
    def module(self) -> str:
        """Name of the Verilog module and file."""
        return self.name


def identifier(name: str) -> str:
    """Return the name of a module for a folder's name, in which dashes become underscores.

    Raises
    ------
    UserError
        If the result is no identifier of Verilog.
    """
    module = name.replace("-", "_")
    # A name becomes a module, files and a folder: the narrowest rule of all, that of Verilog,
    # holds.
    legal = re.fullmatch(r"[A-Za-z]\w*", module, re.ASCII) and len(module) <= _MOST
    if not legal or module in KEYWORDS:
        raise UserError(
            f"name must be a letter and up to {_MOST - 1} letters, digits, _ or -, and no word of "
            f"Verilog, not {shortened(name)}"
        )
    return module


def files(variant: Variant, name: str, *, vectors: int = bundle.VECTORS) -> dict[str, str]:
    """Return the texts of the folder by the names of its files.

    Parameters
    ----------
    name : str
        Name of the folder, which also names the module.
    vectors : int
        Approximate number of golden vectors.
    """
    module = identifier(name)
    # The header and all files then have the user's name, though the unit is one of the catalogue.
    named = NamedVariant(variant.unit, variant.configuration, module)
    texts = bundle.files(named, vectors=vectors)
    ports = _ports(texts[f"rtl/{module}.v"], module)
    summary = variant.unit.summary
    texts[f"{module}.toml"] = unit_file.written(variant, f"{module}: {summary}")
    texts[f"top/{module}_top.v"] = _top(module, ports)
    # The bundle's targets check and lint stay.
    texts["Makefile"] += _MAKEFILE.format(module=module)
    texts["README.md"] = _README.format(
        module=module,
        name=name,
        summary=f"{summary[0].upper()}{summary[1:]}.",
    )
    return texts


def write(
    variant: Variant,
    name: str,
    parent: Path,
    *,
    vectors: int = bundle.VECTORS,
    replace: bool = False,
) -> dict[str, Path]:
    """Write the folder ``parent/name``, all of it or nothing.

    Parameters
    ----------
    variant, name, vectors
        As for ``files``.
    replace : bool
        If True, the folder may exist and files of the same names are replaced.

    Raises
    ------
    UserError
        If the name is no identifier, or if the folder has content and ``replace`` is False.
    """
    identifier(name)
    folder = parent / name
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} must be a folder, not a file")
    if not replace and folder.is_dir() and any(folder.iterdir()):
        raise UserError(f"{folder} must be new or empty (--replace overwrites the files in it)")
    texts = files(variant, name, vectors=vectors)
    paths = {file: folder / file for file in texts}
    write_all({paths[file]: text for file, text in texts.items()})
    return paths


def _ports(text: str, module: str) -> list[tuple[str, str, int]]:
    """Return direction, name and width of the ports of a module that ``emit`` wrote."""
    head = text[text.index(f"module {module} (") :]
    # Each port is on a line of its own, with its range in front of its name.
    pattern = r"(?m)^ *(input|output) .*?(?:\[(\d+):0\] )?(\w+),?$"
    found = re.findall(pattern, head[: head.index(");")])
    return [(way, name, int(high or 0) + 1) for way, high, name in found]


def _top(module: str, ports: list[tuple[str, str, int]]) -> str:
    """Return a top module with three pins."""
    pins, wires, outputs, low = [], [], [], 0
    clocked = {name for _, name, _ in ports} & {"clk", "rst"}
    for way, name, width in ports:
        span = f"[{width - 1}:0] " if width > 1 else ""
        if name in clocked:
            pins.append(f"    .{name}({name})")
        elif way == "input":
            bits = f"[{low + width - 1}:{low}]" if width > 1 else f"[{low}]"
            pins.append(f"    .{name}(shift{bits})")
            low += width
        else:
            wires.append(f"  wire {span}{name};\n")
            outputs.append(name)
            pins.append(f"    .{name}({name})")
    # A shift register of one bit has no range for the bits that move up.
    size = max(low, 2)
    # Verilator warns of bits that nothing reads, unless their name says so.
    unused = [] if low == size else [f"shift[{size - 1}]"]
    return _TOP.format(
        module=module,
        last=size - 1,
        rest=f"shift[{size - 2}:0], ",
        wires="".join(wires),
        fold=f"^{{{', '.join(outputs)}}}",
        pins=",\n".join(pins),
        unused=f"  wire unused = {unused[0]};\n" if unused else "",
    )

"""A design for Tiny Tapeout as a folder that its templates take: source, info.yaml, and a page."""

from vitruvian.hdl.bus.tapeout import CLEAR, READY, SELECT, WRITE, TinyTapeoutDot
from vitruvian.hdl.catalogue.unit import Variant
from vitruvian.hdl.elaborate import only_described

#: Width and height of projects on the shuttles of IHP's SG13G2, in µm.
TILES_UM = {
    "1x1": (202.08, 154.98),
    "1x2": (202.08, 313.74),
    "2x1": (419.52, 154.98),
    "2x2": (419.52, 313.74),
}
#: Largest K that fits each size with cells on 70 % of its area.
_MOST_K = (("1x1", 4), ("1x2", 8))
_CLOCK_HZ = 50_000_000


def files(variant: Variant, verilog: str) -> dict[str, str]:
    """Return the files of a project by their names; none for other units.

    Parameters
    ----------
    verilog : str
        The text of the design.
    """
    component = only_described(variant.build())
    if not isinstance(component, TinyTapeoutDot):
        return {}
    folder = variant.module
    return {
        f"{folder}/src/{variant.module}.v": verilog,
        f"{folder}/info.yaml": info(variant.module, component.k),
        f"{folder}/docs/info.md": page(component.k),
    }


def tiles(k: int) -> str:
    """Return the size of a project, in tiles."""
    return next(size for size, most in _MOST_K if k <= most)


def pins() -> dict[str, str]:
    """Return the name of each pin that is used."""
    named = {f"ui[{n}]": f"operand {n}" for n in range(8)}
    named |= {f"uo[{n}]": f"sum {n}" for n in range(8)}
    return named | {
        f"uio[{WRITE}]": "write",
        f"uio[{CLEAR}]": "clear",
        f"uio[{SELECT}]": "select 0",
        f"uio[{SELECT + 1}]": "select 1",
        f"uio[{READY}]": "ready",
    }


def info(module: str, k: int) -> str:
    """Return the text of info.yaml."""
    named = pins()
    lines = [
        "# A project for Tiny Tapeout; set author and discord to yours.",
        "project:",
        f'  title: "INT8 dot product of {k} terms"',
        '  author: "Vitruvian contributors"',
        '  discord: ""',
        f'  description: "Adds the dot product of two vectors of {k} signed bytes to a sum"',
        '  language: "Amaranth"',
        f"  clock_hz: {_CLOCK_HZ}",
        f'  tiles: "{tiles(k)}"',
        f'  top_module: "{module}"',
        "  source_files:",
        f'    - "{module}.v"',
        "",
        "pinout:",
    ]
    for bus in ("ui", "uo", "uio"):
        lines += [f'  {bus}[{n}]: "{named.get(f"{bus}[{n}]", "")}"' for n in range(8)]
    return "\n".join([*lines, "", "yaml_version: 6", ""])


def page(k: int) -> str:
    """Return the text of the datasheet's page."""
    return f"""\
## How it works

The design adds the dot product of two vectors of {k} signed bytes to a 32-bit sum, which wraps.

## How to test

1. Reset the design, or hold `clear` for one rising edge of the clock: the sum is 0.
2. Put a byte on `operand` and hold `write` for one rising edge: first the {k} bytes of A, then the
   {k} bytes of B. One edge after the last byte, `ready` is 1 and the sum has changed.
3. Read the sum: `sum` shows the byte that `select` names, 0 for the lowest.

Bytes 1 for all of A and all of B give {k}.

## External hardware

None.
"""

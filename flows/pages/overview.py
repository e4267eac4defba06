"""The picture of the whole: from a parameter to models, hardware, checks and files."""

from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape

_WIDTH, _HEIGHT = 760, 560
_LINE = 17
_CORE = "#fbf6ea"


@dataclass(frozen=True)
class OverviewBox:
    """A box of the picture.

    Attributes
    ----------
    x, y, width, height : int
        Place and size in pixels.
    heading : str
        First line, in bold letters.
    lines : tuple of str
        Lines below it.
    fill : str
        Colour.
    """

    x: int
    y: int
    width: int
    height: int
    heading: str
    lines: tuple[str, ...] = ()
    fill: str = "#eef3f8"


#: The core first, because the others lie upon it.
BOXES = {
    "core": OverviewBox(
        20, 120, 510, 350, "sim.davinci: an Ascend core around the matrix unit", (), _CORE
    ),
    "parameter": OverviewBox(
        130,
        20,
        330,
        64,
        "one parameter object",
        ("DotSpec, MatrixUnitConfig, or a row", "of a maker's table"),
    ),
    "golden": OverviewBox(
        45, 140, 215, 80, "golden", ("NumPy models:", "what is the right answer,", "bit for bit?")
    ),
    "hdl": OverviewBox(290, 140, 215, 80, "hdl", ("Amaranth components:", "what is the hardware?")),
    "sim": OverviewBox(
        45,
        264,
        460,
        64,
        "sim.rtl, sim.bench",
        ("Verilator compiles the hardware; every result", "is compared with golden"),
    ),
    "units": OverviewBox(
        45,
        372,
        460,
        64,
        "sim.kernels, sim.ops: programs in Python or CCE C",
        ("vector, transfer and scalar units; exact results,", "predicted times, races"),
        "#f7e9c8",
    ),
    "flows": OverviewBox(
        560,
        140,
        180,
        134,
        "flows",
        (
            "Verilog and bundles",
            "area and delay",
            "static timing",
            "FPGA bitstreams",
            "formal proofs",
            "these pages",
        ),
    ),
    "machines": OverviewBox(
        560,
        296,
        180,
        64,
        "sim.simd2, sim.sparse",
        ("graphs on semirings,", "the sparse machine SIDA"),
        "#e9f2e6",
    ),
    "command": OverviewBox(
        20,
        490,
        720,
        50,
        "vitruvian",
        ("the command line, and Python: machines, formats, ops, sparse, torch, jax",),
        "#f0f0f0",
    ),
}

#: From the middle of a side of a box to that of another one.
ARROWS = (
    ("parameter", "bottom", "golden", "top"),
    ("parameter", "bottom", "hdl", "top"),
    ("golden", "bottom", "sim", "top"),
    ("hdl", "bottom", "sim", "top"),
    ("hdl", "right", "flows", "left"),
    ("sim", "bottom", "units", "top"),
    ("sim", "right", "machines", "left"),
)


def _point(name: str, side: str, other: str) -> tuple[float, float]:
    """Return the middle of a side; a vertical arrow keeps the column of the narrower box."""
    box, target = BOXES[name], BOXES[other]
    if side in ("left", "right"):
        shared = (max(box.y, target.y) + min(box.y + box.height, target.y + target.height)) / 2
        return box.x + (box.width if side == "right" else 0), shared
    narrow = box if box.width <= target.width else target
    left, right = box.x + 12, box.x + box.width - 12
    middle = min(max(narrow.x + narrow.width / 2, left), right)
    return middle, box.y + (box.height if side == "bottom" else 0)


def _parts() -> Iterator[str]:
    for box in BOXES.values():
        yield (
            f'<rect x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" rx="6" '
            f'fill="{box.fill}" stroke="#31688e"/>'
        )
        # The heading of the core stands at its foot, where no arrow crosses it.
        first = box.y + (20 if box.lines else box.height - 12)
        for number, line in enumerate((box.heading, *box.lines)):
            weight = ' font-weight="bold"' if number == 0 else ""
            yield (
                f'<text x="{box.x + box.width / 2:g}" y="{first + number * _LINE}" '
                f'text-anchor="middle"{weight}>{escape(line)}</text>'
            )
    for first, out, second, into in ARROWS:
        (x, y), (to_x, to_y) = _point(first, out, second), _point(second, into, first)
        yield (
            f'<path d="M{x:g} {y:g}L{to_x:g} {to_y:g}" fill="none" stroke="#444" '
            'marker-end="url(#tip)"/>'
        )


def draw() -> str:
    """Return the SVG text of the picture, with its letters as text."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
            f'width="{_WIDTH}" font-family="sans-serif" font-size="13" role="img">',
            "<title>From one parameter object to the golden model and the hardware, their "
            "comparison, the simulated core around them, and the files that leave</title>",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#444"/></marker></defs>',
            f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
            *_parts(),
            "</svg>\n",
        ]
    )

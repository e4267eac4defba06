"""Format measured rows as a terminal table, as Markdown and as an SVG bar chart."""

from collections.abc import Sequence
from html import escape

from vitruvian.common.table import csv_text, is_number, open_console, print_table
from vitruvian.flows.asic.measure import AreaRow, Settings

NOTE = (
    "Yosys synth -flatten; dfflibmap; abc -constr (BUF_X4 drives, 5 fF load) -D at each target; "
    "delay: longest path with clock-to-output, set-up and the library's wire load, inside one "
    "module of a unit of several: fan-out of buses and hops between modules are left out, so a "
    "whole tile is slower (--tile measures it)"
)
TILE_NOTE = (
    "Yosys synth -flatten; dfflibmap; abc -constr (BUF_X4 drives, 5 fF load) -D at each target, "
    "module by module; buffers between modules; delay: longest path of the whole unit with "
    "clock-to-output, set-up and the library's wire load for each net"
)
_ADDERS = "full adders of the library, found by extract_fa; all else: "

_GATED = "clock gates for {} or more registers with the same enable; "


def note(settings: Settings) -> str:
    """Return the conditions of a table of area or delay."""
    recipe = settings.recipe
    usual = (TILE_NOTE if settings.tile else NOTE).replace(
        "BUF_X4 drives, 5 fF load", f"{recipe.driving_cell} drives, {recipe.load_ff:g} fF load"
    )
    gated = _GATED.format(recipe.clock_gates) if recipe.clock_gates else ""
    return (_ADDERS if recipe.adders else "") + gated + usual


def number(value: float | None, digits: int = 0) -> str:
    """Format ``value``; a missing figure becomes a dash and never a zero."""
    return "–" if value is None else f"{value:.{digits}f}"


def area_table(rows: Sequence[AreaRow]) -> tuple[list[str], list[list[str]]]:
    """Return header and lines: area, area per multiply-accumulate and delay at each target."""
    # All rows were measured with the same settings.
    targets = rows[0].targets_ps
    header = ["unit", "configuration", "MACs"]
    for target in targets:
        header += [f"µm² @{target}", "µm²/MAC", "ns"]
    lines = []
    for row in rows:
        line = [row.variant.unit.name, row.variant.label, str(row.variant.macs or "–")]
        for target in targets:
            delay = row.delay_ps(target)
            line.append(number(row.area_um2(target)))
            line.append(number(row.area_per_mac(target)))
            line.append(number(None if delay is None else delay / 1000, 2))
        lines.append(line)
    return header, lines


def module_table(rows: Sequence[AreaRow]) -> tuple[list[str], list[list[str]]]:
    """Return header and lines: the pieces of each row at its first target, the largest first."""
    header = ["unit", "configuration", "module", "count", "µm² each", "µm²", "share", "ns"]
    lines = []
    for row in rows:
        target = row.targets_ps[0]
        total = row.area_um2(target)
        for piece in sorted(row.pieces, key=lambda p: -p.area_um2(target)):
            delay = piece.timing[target].delay_ps
            lines.append(
                [
                    row.variant.unit.name,
                    row.variant.label,
                    piece.label,
                    str(piece.count),
                    number(piece.mapped[target].area_um2),
                    number(piece.area_um2(target)),
                    f"{100 * piece.area_um2(target) / total:.1f} %" if total else "–",
                    number(None if delay is None else delay / 1000, 2),
                ]
            )
    return header, lines


def timing_table(rows: Sequence[AreaRow]) -> tuple[list[str], list[list[str]]]:
    """Return header and lines: the longest path of each class, and ABC's own figure for logic."""
    header = ["unit", "configuration", "target ps", "ns", "in→out", "in→reg", "reg→reg", "reg→out"]
    header += ["ABC logic", "from", "to"]
    lines = []
    for row in rows:
        for target in row.targets_ps:
            # By the kinds of the path's ends, as static timing analysis divides them.
            classes = row.class_ps(target)
            kinds = ("input->output", "input->register", "register->register", "register->output")
            delays = [row.delay_ps(target), *(classes.get(kind) for kind in kinds)]
            delays.append(row.abc_delay_ps(target))
            worst = row.worst(target)
            ends = ["–", "–"] if worst is None else [worst.start, worst.end]
            lines.append(
                [row.variant.unit.name, row.variant.label, str(target)]
                + [number(None if d is None else d / 1000, 2) for d in delays]
                + ends
            )
    return header, lines


def tile_table(rows: Sequence[AreaRow]) -> tuple[list[str], list[list[str]]]:
    """Return header and lines: buffers and the parts of the longest path of every whole unit."""
    header = ["unit", "configuration", "target ps", "ns", "in one module", "buffers", "µm²"]
    header += ["share", "the longest path, ps"]
    lines = []
    for row in rows:
        for target, whole in row.tiles.items():
            inside = [piece.timing[target].delay_ps for piece in row.pieces]
            longest = max((delay for delay in inside if delay is not None), default=None)
            delay, area = row.delay_ps(target), row.area_um2(target)
            lines.append(
                [
                    row.variant.unit.name,
                    row.variant.label,
                    str(target),
                    number(None if delay is None else delay / 1000, 2),
                    number(None if longest is None else longest / 1000, 2),
                    str(sum(whole.buffers.values())),
                    number(whole.buffer_area_um2),
                    f"{100 * whole.buffer_area_um2 / area:.1f} %" if area else "–",
                    ", ".join(f"{part} {delay:.0f}" for part, delay in whole.split().items()),
                ]
            )
    return header, lines


def path_table(row: AreaRow, target: int) -> tuple[list[str], list[list[str]]]:
    """Return header and lines: the cells on the longest path of ``row``, from start to end."""
    header = ["arrival ps", "delay ps", "edge", "cell", "through", "net"]
    worst = row.worst(target)
    if worst is None:
        return header, []
    lines = [
        [
            f"{step.arrival_ps:.1f}",
            f"{step.delay_ps:.1f}",
            step.edge,
            step.kind,
            step.through,
            step.net,
        ]
        for step in worst.steps
    ]
    # The set-up time ends the path; it belongs to the register that captures the data.
    if worst.setup_ps:
        due = worst.delay_ps + worst.late_ps
        lines.append([f"{due:.1f}", f"{worst.setup_ps:.1f}", "", "", "set-up", worst.end])
    if worst.late_ps:
        lines.append(
            [f"{worst.delay_ps:.1f}", f"{-worst.late_ps:.1f}", "", "", "later clock", worst.end]
        )
    return header, lines


def show(table: tuple[list[str], list[list[str]]], *, title: str, note: str = "") -> None:
    """Print a table on standard output, with columns of numbers aligned to the right."""
    header, rows = table
    print_table(open_console(), header, rows, title=title, note=note or None)


def markdown(table: tuple[list[str], list[list[str]]]) -> str:
    """Return the table as Markdown."""
    header, lines = table
    rule = [
        "---:" if lines and all(is_number(line[i]) for line in lines) else "---"
        for i in range(len(header))
    ]
    rows = [header, rule, *([cell.replace("|", "\\|") for cell in line] for line in lines)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def document(table: tuple[list[str], list[list[str]]], path: str) -> str:
    """Return the table as CSV if the name of its file ends in ``.csv``, and as Markdown if not."""
    return csv_text(*table) if path.lower().endswith(".csv") else markdown(table)


def svg_bars(rows: Sequence[AreaRow], *, library: str) -> str:
    """Return an SVG with one bar for each row and target.

    The bars show µm² per multiply-accumulate (MAC) if every row has MACs, and µm² otherwise.
    """
    targets = rows[0].targets_ps
    per_mac = all(row.variant.macs for row in rows)
    unit = "µm² per multiply-accumulate" if per_mac else "µm²"
    values = [
        [(row.area_per_mac(t) if per_mac else row.area_um2(t)) or 0.0 for t in targets]
        for row in rows
    ]
    # A unit of wires only has no area.
    largest = max((v for line in values for v in line), default=0.0) or 1.0
    # In pixels: the height of a unit, the column of names, the longest bar, and the legend.
    step, left, width, top = 18 * len(targets) + 10, 300, 520, 56
    height = top + step * len(rows) + 16
    colours = ("#31688e", "#e07b39", "#5a9e6f", "#8a5aa8")
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 90}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="12" y="20" font-size="14">Area, {unit}, library {escape(library)}</text>',
    ]
    for index, target in enumerate(targets):
        x = 12 + 150 * index
        out.append(
            f'<rect x="{x}" y="30" width="12" height="12" fill="{colours[index % 4]}"/>'
            f'<text x="{x + 17}" y="40">delay target {target} ps</text>'
        )
    for number_, (row, line) in enumerate(zip(rows, values, strict=True)):
        y = top + step * number_
        name = escape(f"{row.variant.unit.name} {row.variant.label}")
        out.append(f'<text x="{left - 8}" y="{y + step / 2}" text-anchor="end">{name}</text>')
        for index, value in enumerate(line):
            length = width * value / largest
            out.append(
                f'<rect x="{left}" y="{y + 18 * index + 3}" width="{length:.1f}" height="15" '
                f'fill="{colours[index % 4]}"/>'
                f'<text x="{left + length + 5:.1f}" y="{y + 18 * index + 15}">{value:.0f}</text>'
            )
    return "\n".join([*out, "</svg>"]) + "\n"

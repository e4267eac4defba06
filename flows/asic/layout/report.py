"""The figures of a layout as a table, and what they are."""

from vitruvian.flows.asic.layout.measure import LayoutSummary


def table(summary: LayoutSummary) -> tuple[list[str], list[list[str]]]:
    """Return header and lines: a figure in each line."""
    lengths = ", ".join(f"{metal} {length:.0f}" for metal, length in summary.wire_um.items())
    lines = [
        ["cells", f"{summary.cells}"],
        ["area of the cells, µm²", f"{summary.cell_area_um2:.1f}"],
        ["block, µm", f"{summary.width_um:.2f} × {summary.height_um:.2f}"],
        ["rows", f"{summary.rows}"],
        ["utilisation", f"{100 * summary.utilisation:.1f} %"],
        ["nets", f"{summary.nets}"],
        ["half perimeters, µm", f"{summary.half_perimeter_um:.0f}"],
        ["wires, µm", f"{sum(summary.wire_um.values()):.0f} ({lengths})"],
        ["vias", f"{summary.vias}"],
        ["rounds of the router", f"{summary.rounds}"],
        ["open nets", f"{len(summary.opens)}"],
        ["shorts", f"{len(summary.shorts)}"],
        ["missing pins or instances", f"{len(summary.missing)}"],
        ["markers of design rules", f"{len(summary.markers)}"],
        ["wires, pF", f"{summary.wire_ff / 1000:.3f} (model: {summary.model_ff / 1000:.3f})"],
    ]
    for name, delay in summary.delay_ps.items():
        lines.append([f"longest path, {name}, ns", "none" if delay is None else _ns(delay)])
    if summary.hold_ps is not None:
        lines.append(["least slack of a hold time, layout, ns", _ns(summary.hold_ps)])
    for name, energy in summary.pj_per_mac.items():
        lines.append([f"pJ per multiply-accumulate, {name}", f"{energy:.3f}"])
    steps = ", ".join(f"{step} {value:.0f}" for step, value in summary.seconds.items())
    lines.append(["seconds", steps])
    return ["figure", "value"], lines


def _ns(delay: float) -> str:
    return f"{delay / 1000:.3f}"


def note(summary: LayoutSummary) -> str:
    """Return what the figures are, and the first findings of the checks."""
    texts = [
        f"ABC at {summary.target_ps} ps; rules and nets are checked on the GDS by KLayout; "
        "capacitances of wires to ground from the LEF, without coupling, vias and resistance; "
        "the clock is routed as a plain net and is ideal for the longest path",
        summary.licence,
    ]
    texts += [f"open: {net}" for net in summary.opens[:5]]
    texts += [f"short: {' and '.join(names)}" for names in summary.shorts[:5]]
    texts += summary.missing[:5]
    for marker in summary.markers[:5]:
        x, y = marker.box[:2]
        texts.append(f"{marker.rule} at ({x:.3f}, {y:.3f}) µm")
    return "; ".join(texts)

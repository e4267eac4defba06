"""Charts as data: a matplotlib figure as a JSON document, and the picture drawn from it again.

Measurements write such documents beside the pages of the documentation. The site draws them when it
is built, with letters as text, so that no picture is kept in Git. A document holds coordinates in
the units of the axes, rounded to six digits.
"""

# pyright: basic
# Matplotlib's stubs leave most types unknown.

import io
import json
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from vitruvian.common.extras import need
from vitruvian.common.files import write_whole

#: Settings of every picture: letters are text, names of chips are not formulas, and equal charts
#: have equal bytes.
SETTINGS: dict[str, Any] = {
    "svg.hashsalt": "vitruvian",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "text.parse_math": False,
}

_DIGITS = 6


def write_figure(
    path: str | Path,
    fill: Callable[[Any], None],
    width: float = 8,
    height: float = 4.6,
    *,
    layout: str | None = "constrained",
) -> None:
    """Write a picture, or its chart, whose bytes depend on its content alone.

    Parameters
    ----------
    path : str or Path
        The file, whose suffix selects the format: ``.svg``, ``.png``, or ``.json`` for the chart
        from which `draw` makes the picture.
    fill : callable
        Draws into a matplotlib figure.
    width, height : float
        Size in inches. The site shows 8 inches in its column, where 7 points are 9 pixels.
    layout : str or None
        ``"constrained"`` arranges the axes; with None they stay where `fill` places them.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    form = Path(path).suffix.lower().removeprefix(".") or "png"
    write_whole(path, rendered(fill, width, height, form=form, layout=layout))


def rendered(
    fill: Callable[[Any], None],
    width: float = 8,
    height: float = 4.6,
    *,
    form: str = "svg",
    layout: str | None = "constrained",
) -> bytes:
    """Return the bytes of the file that `write_figure` writes.

    Parameters
    ----------
    form : {"svg", "png", "json"}
    """
    matplotlib = need("matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(SETTINGS):
        figure: Any = Figure(figsize=(width, height), layout=layout)  # pyright: ignore
        FigureCanvasAgg(figure)
        fill(figure)
        if form == "json":
            return text(describe(figure)).encode()
        picture = io.BytesIO()
        # Matplotlib would otherwise write today's date, and the file would change every day.
        metadata: Any = {"Date": None, "Creator": None} if form == "svg" else {}
        figure.savefig(picture, format=form, dpi=120, metadata=metadata)
    lines = picture.getvalue()
    if form == "svg":
        # Matplotlib leaves blanks at the ends of lines, which Git reports.
        lines = b"\n".join(line.rstrip() for line in lines.splitlines()) + b"\n"
    return lines


def draw(chart: Mapping[str, Any]) -> str:
    """Return the SVG text of a chart.

    Parameters
    ----------
    chart : mapping
        A document of `describe`.
    """
    width, height = chart["size"]
    return rendered(filler(chart), width, height, layout=chart["layout"]).decode()


def filler(chart: Mapping[str, Any]) -> Callable[[Any], None]:
    """Return the function that draws a chart into a matplotlib figure."""

    def fill(figure: Any) -> None:
        for part in chart["axes"]:
            if "grid" in part:
                rows, columns, place = part["grid"]
                axes = figure.add_subplot(rows, columns, place)
            else:
                axes = figure.add_axes(part["place"])
            _fill(axes, part)

    return fill


def text(chart: Mapping[str, Any]) -> str:
    """Return a chart as JSON with one line for each series."""
    parts = []
    for part in chart["axes"]:
        lines = []
        for key, value in part.items():
            # A line for each series keeps the differences between two measurements small.
            if isinstance(value, list) and value and isinstance(value[0], dict):
                inner = ",\n".join(f"   {_dump(each)}" for each in value)
                lines.append(f"  {_dump(key)}: [\n{inner}]")
            else:
                lines.append(f"  {_dump(key)}: {_dump(value)}")
        parts.append("{\n" + ",\n".join(lines) + "}")
    head = f'{{"size": {_dump(chart["size"])}, "layout": {_dump(chart["layout"])}, "axes": [\n'
    return head + ",\n".join(parts) + "]}\n"


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def describe(figure: Any) -> dict[str, Any]:
    """Return a figure as a document: its axes with lines, bars, areas, texts, scales and legends.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        A figure with lines, bars, broken bars, filled areas and texts.
    """
    # Ticks, limits and places are known only after a layout.
    figure.draw_without_rendering()
    layout = "constrained" if figure.get_layout_engine() is not None else None
    size = [_number(x) for x in figure.get_size_inches()]
    return {"size": size, "layout": layout, "axes": [_axes(axes) for axes in figure.axes]}


def _axes(axes: Any) -> dict[str, Any]:
    spec = axes.get_subplotspec()
    if spec is not None:
        rows, columns, start, _ = spec.get_geometry()
        part: dict[str, Any] = {"grid": [int(rows), int(columns), int(start) + 1]}
    else:
        part = {"place": [_number(x) for x in axes.get_position().bounds]}
    part["title"] = axes.get_title()
    for name, axis, limits in (
        ("x", axes.xaxis, axes.get_xlim()),
        ("y", axes.yaxis, axes.get_ylim()),
    ):
        part[name] = _axis(axis, limits)
    part["hidden"] = [name for name, spine in axes.spines.items() if not spine.get_visible()]
    part["lines"] = [_line(axes, line) for line in axes.lines]
    part["bars"] = [bar for container in axes.containers for bar in _bars(container)]
    part["areas"] = [area for each in axes.collections for area in _areas(each)]
    part["texts"] = [_text(axes, each) for each in axes.texts if each.get_text()]
    legend = axes.get_legend()
    if legend is not None:
        part["legend"] = _legend(axes, legend)
    return {key: value for key, value in part.items() if value not in ("", [])}


def _axis(axis: Any, limits: Iterable[float]) -> dict[str, Any]:
    from matplotlib.ticker import FixedLocator, FuncFormatter, StrMethodFormatter

    entry: dict[str, Any] = {
        "label": axis.get_label_text(),
        "scale": axis.get_scale(),
        "limits": [_number(x) for x in limits],
    }
    category = type(axis.get_major_locator()).__name__ == "StrCategoryLocator"
    fixed = isinstance(axis.get_major_locator(), FixedLocator) or category
    if not fixed and isinstance(axis.get_major_formatter(), (FuncFormatter, StrMethodFormatter)):
        entry["plain"] = True
    if fixed:
        labels = axis.get_ticklabels()
        entry["ticks"] = [_number(x) for x in axis.get_ticklocs()]
        entry["labels"] = [label.get_text() for label in labels]
        if labels:
            entry["font"] = _number(labels[0].get_fontsize())
            entry["rotation"] = _number(labels[0].get_rotation())
    if axis._major_tick_kw.get("gridOn"):
        entry["grid"] = _number(axis._major_tick_kw.get("grid_alpha") or 1)
    return entry


def _line(axes: Any, line: Any) -> dict[str, Any]:
    # A line from edge to edge has one coordinate in data and the other one in the axes; the
    # method's name is misspelt in Matplotlib.
    in_x, in_y = line.get_transform().contains_branch_seperately(axes.transData)
    # The scaled pattern would be scaled again when the chart is drawn.
    offset, dashes = line._unscaled_dash_pattern
    entry = {
        "label": _label(line),
        "across": {(False, True): "x", (True, False): "y"}.get((in_x, in_y), ""),
        "color": _colour(line.get_color()),
        "style": [_number(offset), [_number(x) for x in dashes]] if dashes else "",
        "width": _number(line.get_linewidth()) if line.get_linestyle() != "None" else 0,
        "marker": line.get_marker() if line.get_marker() not in ("None", None) else "",
        "size": _number(line.get_markersize()),
        "x": [_number(x) for x in line.get_xdata(orig=False)],
        "y": [_number(y) for y in line.get_ydata(orig=False)],
    }
    return {key: value for key, value in entry.items() if value != ""}


def _bars(container: Any) -> Iterable[dict[str, Any]]:
    patches = list(container.patches) if hasattr(container, "patches") else []
    if patches:
        boxes = [[p.get_x(), p.get_y(), p.get_width(), p.get_height()] for p in patches]
        yield {
            "label": container.get_label() if not container.get_label().startswith("_") else "",
            "color": _colour(patches[0].get_facecolor()),
            "boxes": [[_number(x) for x in box] for box in boxes],
        }


def _areas(collection: Any) -> Iterable[dict[str, Any]]:
    polygons = [path.vertices for path in collection.get_paths() if len(path.vertices)]
    if not polygons:
        return
    entry: dict[str, Any] = {
        "label": _label(collection),
        "color": _colour(collection.get_facecolor()[0]),
    }
    boxes = [_box(polygon) for polygon in polygons]
    # Bars of broken_barh and bands are rectangles, which need four numbers instead of eight.
    if all(boxes):
        yield entry | {"boxes": [[_number(x) for x in box] for box in boxes if box]}
    else:
        yield entry | {"polygons": [_open(polygon) for polygon in polygons]}


def _open(polygon: Any) -> list[list[float | int]]:
    """Return the corners of a polygon without the repeated first one at its end."""
    corners = [[_number(x) for x in at] for at in polygon]
    while len(corners) > 1 and corners[-1] == corners[0]:
        corners.pop()
    return corners


def _box(polygon: Any) -> list[float] | None:
    """Return the corner, the width and the height of a polygon that is a rectangle."""
    xs, ys = (sorted({float(at[i]) for at in polygon}) for i in (0, 1))
    if len(polygon) != 5 or len(xs) != 2 or len(ys) != 2:
        return None
    return [xs[0], ys[0], xs[1] - xs[0], ys[1] - ys[0]]


def _text(axes: Any, words: Any) -> dict[str, Any]:
    """Return a text with its place in the units of the axes, also if it hangs on a bar."""
    from matplotlib.text import Annotation

    x, y = words.get_position()
    if isinstance(words, Annotation):
        # An annotation is placed by an offset in points, so that its place in data is that of its
        # drawn middle.
        box = words.get_window_extent()
        middle = ((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2)
        x, y = axes.transData.inverted().transform(middle)
        align = ["center", "center"]
    else:
        align = [words.get_horizontalalignment(), words.get_verticalalignment()]
    return {
        "at": [_number(x), _number(y)],
        "text": words.get_text(),
        "align": align,
        "font": _number(words.get_fontsize()),
        "within": bool(words.get_transform() == axes.transAxes),
    }


def _legend(axes: Any, legend: Any) -> dict[str, Any]:
    box = legend.get_bbox_to_anchor()
    entry: dict[str, Any] = {
        "loc": legend._get_loc(),
        "font": _number(legend._fontsize),
        "columns": legend._ncols,
        "frame": bool(legend.get_frame_on()),
    }
    # A legend inside the axes has no anchor of its own.
    if box.bounds != axes.bbox.bounds:
        corner = axes.transAxes.inverted().transform((box.x0, box.y0))
        entry["anchor"] = [_number(x) for x in corner]
        entry["pad"] = _number(legend.borderaxespad)
    return entry


def _label(artist: Any) -> str:
    label = str(artist.get_label())
    return "" if label.startswith("_") else label


def _colour(colour: Any) -> str:
    from matplotlib.colors import to_hex

    return to_hex(colour, keep_alpha=True)


def _number(value: Any) -> float | int:
    """Return a number with six digits, as an integer if it is one."""
    # Six digits are more than a picture shows, and equal on all platforms.
    rounded = float(f"{float(value):.{_DIGITS}g}")
    return int(rounded) if math.isfinite(rounded) and rounded == int(rounded) else rounded


def _fill(axes: Any, part: Mapping[str, Any]) -> None:
    """Draw one part of a chart."""
    options: dict[str, Any]
    for name in "xy":
        # First: a change of the scale resets the ticks.
        getattr(axes, f"set_{name}scale")(part[name]["scale"])
    for line in part.get("lines", ()):
        _fill_line(axes, line)
    for bar in part.get("bars", ()):
        x, y, width, height = zip(*bar["boxes"], strict=True)
        options = {"label": bar["label"]} if bar["label"] else {}
        axes.bar(x, height, width, y, align="edge", color=bar["color"], **options)
    for area in part.get("areas", ()):
        _fill_area(axes, area)
    for words in part.get("texts", ()):
        options = dict(zip(("ha", "va"), words["align"], strict=True))
        if words["within"]:
            options["transform"] = axes.transAxes
        axes.text(*words["at"], words["text"], fontsize=words["font"], **options)
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        _fill_axis(axes, axis, name, part[name])
    for name in part.get("hidden", ()):
        axes.spines[name].set_visible(False)
    axes.set_title(part.get("title", ""))
    if "legend" in part:
        legend = part["legend"]
        options = {"loc": legend["loc"], "fontsize": legend["font"]}
        if "anchor" in legend:
            options |= {"bbox_to_anchor": legend["anchor"], "borderaxespad": legend["pad"]}
        axes.legend(ncols=legend["columns"], frameon=legend["frame"], **options)


def _fill_line(axes: Any, line: Mapping[str, Any]) -> None:
    style = line.get("style", "-")
    options: dict[str, Any] = {
        "label": line.get("label"),
        "color": line["color"],
        "linestyle": (style[0], tuple(style[1])) if isinstance(style, list) else style,
        "linewidth": line["width"],
    }
    if not line["width"]:
        options["linestyle"] = "none"
    across = line.get("across")
    if across:
        place = line["y" if across == "x" else "x"][0]
        (axes.axhline if across == "x" else axes.axvline)(place, **options)
        return
    options |= {"marker": line.get("marker"), "markersize": line["size"]}
    axes.plot(line["x"], line["y"], **options)


def _fill_area(axes: Any, area: Mapping[str, Any]) -> None:
    from matplotlib.collections import PolyCollection

    polygons = area.get("polygons") or [
        [[x, y], [x, y + h], [x + w, y + h], [x + w, y]] for x, y, w, h in area["boxes"]
    ]
    collection = PolyCollection(polygons, facecolors=area["color"], edgecolors="none")
    if area["label"]:
        collection.set_label(area["label"])
    # The limits come from the document.
    axes.add_collection(collection, autolim=False)


def _fill_axis(axes: Any, axis: Any, name: str, entry: Mapping[str, Any]) -> None:
    axis.set_label_text(entry["label"])
    if entry.get("plain"):
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_formatter("")
    if "ticks" in entry:
        # A logarithmic axis would label some of its minor ticks, too.
        axis.set_minor_formatter("")
        axis.set_ticks(entry["ticks"], entry["labels"])
        if entry["labels"]:
            axis.set_tick_params(labelsize=entry["font"], labelrotation=entry["rotation"])
    if "grid" in entry:
        axis.grid(True, which="major", alpha=entry["grid"])
    # Last, as ticks may widen the limits.
    getattr(axes, f"set_{name}lim")(*entry["limits"])

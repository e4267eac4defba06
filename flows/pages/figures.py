"""Draw pictures of the site from checked-in figures, when it is built."""

from typing import Any

from vitruvian.common.charts import rendered
from vitruvian.common.errors import UserError
from vitruvian.flows.asic import baseline

#: Areas of whole units relative to a 16-bit matrix unit, by variant (Zhang 2024, Table 2.4).
PUBLISHED = {"fp32": 1.37, "fp32c": 1.41, "pipelined": 1.47, "naive-fp32": 3.55}
_LABELS = {
    "fp32": "with FP32",
    "fp32c": "with FP32 and FP32C",
    "pipelined": "and a rank behind\nthe data assignment",
    "naive-fp32": "FP32 alone, full multipliers,\nthe 16-bit unit's rate",
}
_LIBRARY, _TARGET, _PIPELINE = "vt45", "10000", 4


def m3xu_ratios() -> dict[str, float]:
    """Return the area of each variant's tile relative to the 16-bit tile.

    The areas are the stored baselines at the relaxed delay target.

    Raises
    ------
    UserError
        If a variant has no baseline.
    """
    stored = baseline.load(_LIBRARY, "m3xu")
    areas = {}
    for name in ("baseline", *PUBLISHED):
        figure = stored.get(f"{name}-p{_PIPELINE}", {}).get(_TARGET, {}).get("area_um2")
        if figure is None:
            raise UserError(f"baseline of m3xu must have {name}, not {', '.join(stored)}")
        areas[name] = figure
    return {name: areas[name] / areas["baseline"] for name in PUBLISHED}


def m3xu_area() -> str:
    """Return the SVG text of a bar chart: one measured and one published bar for each variant."""
    ratios = m3xu_ratios()

    def fill(figure: Any) -> None:
        axes = figure.add_axes((0.30, 0.16, 0.66, 0.74))
        bars = (("measured", ratios, -0.19, "#31688e"), ("published", PUBLISHED, 0.19, "#c9c9c9"))
        for label, values, offset, colour in bars:
            positions = [position + offset for position in range(len(values))]
            axes.barh(positions, list(values.values()), 0.36, color=colour, label=label)
            for position, value in zip(positions, values.values(), strict=True):
                axes.text(value + 0.03, position, f"{value:.2f}", va="center", fontsize=9)
        axes.axvline(1.0, color="black", linewidth=0.8)
        axes.set_yticks(range(len(ratios)), [_LABELS[name] for name in ratios], fontsize=9)
        axes.set_ylim(len(ratios) - 0.5, -0.5)
        axes.set_xlim(0, 3.9)
        axes.set_xlabel("area over the 16-bit unit")
        axes.legend(loc="upper right", frameon=False)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)

    return rendered(fill, 7.2, 3.4, layout=None).decode()

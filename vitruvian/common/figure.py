"""Pictures drawn by matplotlib, whose bytes depend on their content alone."""

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

from vitruvian.common.extras import need
from vitruvian.common.files import write_whole


def write_figure(
    path: str | Path, fill: Callable[[Any], None], width: float = 8, height: float = 4.6
) -> None:
    """Write a picture whose bytes depend on its content alone.

    Parameters
    ----------
    path : str or Path
        The file, whose suffix (.svg or .png) selects the format.
    fill : callable
        Draws into a matplotlib figure.
    width, height : float
        Size in inches. The site shows 8 inches in its column, where 7 points are 9 pixels.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    matplotlib = need("matplotlib")
    matplotlib.use("Agg")
    plt = need("matplotlib.pyplot")
    settings: Any = {"svg.hashsalt": "vitruvian", "svg.fonttype": "path", "font.size": 9}
    settings["text.parse_math"] = False  # names of kernels and chips are not formulas
    with matplotlib.rc_context(settings):
        figure = plt.figure(figsize=(width, height), layout="constrained")
        try:
            fill(figure)
            form = Path(path).suffix.lower().removeprefix(".") or "png"
            metadata = {"Date": None} if form == "svg" else {}
            picture = BytesIO()
            figure.savefig(picture, format=form, dpi=120, metadata=metadata)
        finally:
            plt.close(figure)
    write_whole(path, picture.getvalue())

"""The DaVinci kernels as rows of the command ``list``."""

from fnmatch import fnmatchcase
from typing import Any


def rows(pattern: str) -> list[dict[str, Any]]:
    """Return a row for each kernel whose name matches a shell pattern.

    A pattern that matches the word davinci selects all kernels.
    """
    from vitruvian.sim.kernels import KERNELS

    return [
        {
            "unit": "davinci",
            "configuration": k.name,
            "title": k.title,
            "size": list(k.sizes),
            "default": list(k.default),
            "text": k.text,
        }
        for k in KERNELS.values()
        if fnmatchcase(k.name, pattern) or fnmatchcase("davinci", pattern)
    ]


def line(row: dict[str, Any]) -> str:
    """Return a row of ``rows`` as a line of the command ``list``."""
    default = "x".join(map(str, row["default"]))
    text = f", from {row['text']}" if row["text"] else ""
    size = " x ".join(row["size"])
    return f"{row['configuration']}: {row['title']}; --size {size} ({default}){text}"

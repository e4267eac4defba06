"""Boundaries of the back end that only deep pipelines have."""

from collections.abc import Sequence
from dataclasses import replace

from amaranth.hdl import Value

from ..parts.pipeline import PipelineStages
from ..parts.unpack import UnpackedCode
from .geometry import Lane, ShortWindow


def cross_lanes(
    stages: PipelineStages, stage: str, lanes: Sequence[Lane], c: UnpackedCode | None
) -> tuple[list[Lane], UnpackedCode | None]:
    """Return the products and the addend behind a boundary.

    Parameters
    ----------
    stage : str
        Name of the boundary.
    lanes : sequence of Lane
        The products.
    c : UnpackedCode or None
        The addend, if there is one.
    """
    moved = [lane.cross(stages, stage, f"{stage}{k}") for k, lane in enumerate(lanes)]
    if c is None or stages.skips(stage):
        return moved, c
    return moved, c.cross(stages, stage, f"{stage}_c")


def cross_lists(stages: PipelineStages, stage: str, **lists: Sequence[Value]) -> list[list[Value]]:
    """Return several lists of values behind a boundary, in signals called ``stage_name0`` ….

    Parameters
    ----------
    stage : str
        Name of the boundary.
    lists : sequences of Value
        The values in front of the boundary, by the name of their list.
    """
    return [
        [stages.cross(stage, value, f"{stage}_{name}{k}") for k, value in enumerate(values)]
        for name, values in lists.items()
    ]


def cross_short(
    stages: PipelineStages, stage: str, short: ShortWindow | None
) -> ShortWindow | None:
    """Return the shorter window with its select behind a boundary, or None if there is none.

    Parameters
    ----------
    stage : str
        Name of the boundary.
    short : ShortWindow or None
        The shorter window.
    """
    if short is None:
        return None
    return replace(short, select=stages.cross(stage, short.select, f"{stage}_short"))

"""Options that several units have."""

from collections.abc import Callable
from typing import Any

from vitruvian.hdl.catalogue.unit import Configuration, Option, number
from vitruvian.hdl.fp.parts.multiply import MULTIPLIERS
from vitruvian.hdl.fp.parts.pipeline import DEEP_PIPELINES, PIPELINES
from vitruvian.validate import one_of

__all__ = [
    "DEEP_PIPELINE",
    "MULTIPLIER",
    "NO_SHAPE",
    "PIPELINE",
    "SHAPE",
    "given",
    "with_defaults",
]

#: Rows, columns and 16-bit lanes of a matrix unit; without them, those of the preset apply.
SHAPE = {name: number(name, 1, 64) for name in "mnk"}
NO_SHAPE = dict.fromkeys("mnk")
PIPELINE = number("pipeline", min(PIPELINES), max(PIPELINES))
#: For units that can have the ranks for FPGAs.
DEEP_PIPELINE = number("pipeline", min(DEEP_PIPELINES), max(DEEP_PIPELINES))
#: The default, booth, is stored as None, so that labels do not mention it.
MULTIPLIER = Option(
    lambda text: None if one_of("multiplier", text, MULTIPLIERS) == "booth" else text,
    " | ".join(MULTIPLIERS),
)


def with_defaults(**defaults: Any) -> Callable[[Configuration], dict[str, Any]]:
    """Return a function that completes a configuration by constant values."""
    return lambda given: {**defaults, **given}


def given(c: Configuration, *names: str) -> dict[str, Any]:
    """Return those of the named options that are not None and so override a preset."""
    return {name: c[name] for name in names if c[name] is not None}

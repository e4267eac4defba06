"""Options that several units have."""

from collections.abc import Callable
from typing import Any

from vitruvian.common.errors import UserError
from vitruvian.common.validate import one_of, shortened
from vitruvian.hdl.catalogue.unit import Configuration, Option, number
from vitruvian.hdl.cube.choices import PRECISIONS as KNOWN
from vitruvian.hdl.fp.parts.multiply import MULTIPLIERS
from vitruvian.hdl.fp.parts.pipeline import DEEP_PIPELINES, PIPELINES

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
    samples=lambda: tuple(MULTIPLIERS),
)


def _precisions(text: str) -> str:
    names = text.split("-")
    if len(set(names)) < len(names) or not set(names) <= set(KNOWN):
        raise UserError(
            f"precisions must be different ones of {', '.join(KNOWN)} with - between them, as "
            f"fp16-int8, not {shortened(text)}"
        )
    # The order of the unit, so that two orders of the same names are one configuration.
    return "-".join(name for name in KNOWN if name in names)


#: A comma separates configurations, as for every option; a dash separates the precisions of one.
PRECISIONS = Option(
    _precisions, f"{' | '.join(KNOWN)} | several, as fp16-int8", samples=lambda: tuple(KNOWN)
)


def with_defaults(**defaults: Any) -> Callable[[Configuration], dict[str, Any]]:
    """Return a function that completes a configuration by constant values."""
    return lambda given: {**defaults, **given}


def given(c: Configuration, *names: str) -> dict[str, Any]:
    """Return those of the named options that are not None and so override a preset."""
    return {name: c[name] for name in names if c[name] is not None}

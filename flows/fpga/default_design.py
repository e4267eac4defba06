"""Configurations that suit a board: its default design, and the options that follow from it."""

from collections.abc import Collection
from contextlib import suppress
from typing import Any

from vitruvian.flows.fpga.board import FpgaBoard
from vitruvian.flows.units import UNITS
from vitruvian.hdl.catalogue.unit import Variant


def default_design(board: FpgaBoard) -> Variant:
    """Return the default design of a board: the unit ``serial``, whose ports are pins."""
    unit = UNITS["serial"]
    given = {name: unit.options[name].read(text) for name, text in board.default.items()}
    return suited(Variant(unit, unit.default(given)), board, ())


def suited(variant: Variant, board: FpgaBoard, given: Collection[str]) -> Variant:
    """Return the variant with multipliers for DSP blocks, and clock and ranks for the board.

    With such multipliers, the register ranks are ``FpgaBoard.ranks``, which pay. An
    option whose value the variant does not allow keeps its value.

    Parameters
    ----------
    given : collection of str
        Options that the user has chosen, which stay.
    """
    wanted: dict[str, Any] = {"multiplier": "dsp", "clock_hz": round(board.clock_mhz * 1e6)}
    for name, value in wanted.items():
        variant = _changed(variant, name, value, given)
    if variant.configuration.get("multiplier") == "dsp":
        component, _ = variant.unit.component(variant.configuration)
        if component.__name__ in board.ranks:
            variant = _changed(variant, "pipeline", board.ranks[component.__name__], given)
    return variant


def _changed(variant: Variant, name: str, value: Any, given: Collection[str]) -> Variant:
    """Return the variant with another value of an option, or itself if that is not possible."""
    if name not in variant.unit.options or name in given:
        return variant
    changed = Variant(variant.unit, {**variant.configuration, name: value})
    # Some variants have no multipliers for DSP blocks.
    with suppress(ValueError):
        changed.unit.component(changed.configuration)
        return changed
    return variant


def ranks_note(variant: Variant, fitted: Variant, board: FpgaBoard) -> str | None:
    """Return a sentence about the ranks that ``suited`` has chosen, or None if it chose none.

    Parameters
    ----------
    variant, fitted : Variant
        The argument and the result of ``suited``.
    """
    before, after = (v.configuration.get("pipeline") for v in (variant, fitted))
    if before == after:
        return None
    return (
        f"{fitted.unit.name} {fitted.label}: {after} register ranks pay on {board.name} and are "
        f"the default there, instead of {before}; --pipeline chooses another number"
    )

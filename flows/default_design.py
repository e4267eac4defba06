"""Configurations that suit a board: its default design, and the options that follow from it."""

from collections.abc import Collection
from contextlib import suppress

from vitruvian.flows.board import Board
from vitruvian.flows.units import UNITS
from vitruvian.hdl.catalogue.unit import Variant

__all__ = ["default_design", "suited"]


def default_design(board: Board) -> Variant:
    """Return the default design of a board: the unit ``serial``, whose ports are pins."""
    unit = UNITS["serial"]
    given = {name: unit.options[name].read(text) for name, text in board.default.items()}
    return suited(Variant(unit, unit.default(given)), board, ())


def suited(variant: Variant, board: Board, given: Collection[str]) -> Variant:
    """Return the variant with multipliers for DSP blocks and the clock frequency of the board.

    An option whose value the variant does not allow keeps its value.

    Parameters
    ----------
    variant : Variant
    board : Board
    given : collection of str
        Options that the user has chosen, which stay.
    """
    wanted = {"multiplier": "dsp", "clock_hz": round(board.clock_mhz * 1e6)}
    for name, value in wanted.items():
        if name not in variant.unit.options or name in given:
            continue
        changed = Variant(variant.unit, {**variant.configuration, name: value})
        # Some variants have no multipliers for DSP blocks.
        with suppress(ValueError):
            changed.unit.component(changed.configuration)
            variant = changed
    return variant

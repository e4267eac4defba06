"""The codes of instruction fields whose type is a plain number and not an enumeration."""

from typing import Any

from vitruvian.hdl.mma.issue import opcodes_of
from vitruvian.hdl.mma.unit import MmaUnit
from vitruvian.hdl.simd2.integer import IntTile


def instruction_codes(component: Any) -> dict[str, dict[int, str]]:
    """Return port or field -> code -> mnemonic.

    Parameters
    ----------
    component : wiring.Component
        The top module of a unit.
    """
    if isinstance(component, IntTile):
        return {"op": {op.code: op.mnemonic for op in component.config.operations}}
    if isinstance(component, MmaUnit):
        return {"opcode": {op.code: op.mnemonic for op in opcodes_of(component.config)}}
    return {}

"""The units of the catalogue with options from the command line, and those that are reported."""

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

from vitruvian.common.errors import UserError
from vitruvian.common.validate import one_of
from vitruvian.hdl.catalogue import DESIGNS, UNITS
from vitruvian.hdl.catalogue.element import ELEMENT
from vitruvian.hdl.catalogue.unit import Unit, Variant

#: The largest number of configurations of one unit that a command accepts at once.
MOST = 1000
#: The units, and the designs that can be written, mapped and routed like them.
ROUTED: dict[str, Unit] = {**UNITS, **DESIGNS}
#: The units whose power can be measured.
POWERED: dict[str, Unit] = {name: UNITS[name] for name in ("dot", "intdot")} | {
    ELEMENT.name: ELEMENT
}
_ALL: dict[str, Unit] = {**ROUTED, **POWERED}


def known(command: str) -> dict[str, Unit]:
    """Return what a command takes by name: units, and of some commands the designs as well."""
    if command == "power":
        return POWERED
    if command == "layout":
        return _ALL
    return ROUTED if command in ("fpga", "verilog") else UNITS


def variants(unit: str, given: Mapping[str, Sequence[Any]]) -> list[Variant]:
    """Return ``unit`` in every combination of the given option values.

    Parameters
    ----------
    unit : str
        A key of ``ROUTED`` or ``POWERED``.
    given : mapping of str to sequence
        Option -> its values; the other options keep their defaults.

    Raises
    ------
    UserError
        If the unit or an option is unknown, if a combination is not possible, or if there are
        more than ``MOST`` combinations.
    """
    chosen = _ALL[one_of("unit", unit, _ALL)]
    for name in given:
        options = [f"--{o.replace('_', '-')}" for o in chosen.options]
        one_of(f"option of {unit}", f"--{name.replace('_', '-')}", options)
    many = prod(map(len, given.values()))
    if many > MOST:
        raise UserError(f"at most {MOST} configurations must be asked for at once, not {many}")
    sets = [dict(zip(given, values, strict=True)) for values in product(*given.values())]
    try:
        result = [Variant(chosen, chosen.default(options)) for options in sets]
    except (TypeError, ValueError) as error:
        raise UserError(f"{unit}: {error}") from error
    return result


def reported(unit: str, *, everything: bool = True) -> list[Variant]:
    """Return the variants of ``unit`` that have baselines.

    If ``everything`` is False, return only those that are measured without naming the unit.

    Raises
    ------
    UserError
        If the unit is unknown.
    """
    chosen = _ALL[one_of("unit", unit, _ALL)]
    rows = [*chosen.rows(), *(chosen.more() if everything else ())]
    return [Variant(chosen, chosen.default(row)) for row in rows]

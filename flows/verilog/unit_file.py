"""Configuration files: a unit and its options in TOML, for the designs that people keep."""

import tomllib
from collections.abc import Mapping
from typing import Any

from vitruvian.common.errors import UserError
from vitruvian.common.files import read_whole, reason_of
from vitruvian.common.validate import nearest, shortened
from vitruvian.flows.units import UNITS
from vitruvian.hdl.catalogue.unit import Variant

_MOST_BYTES = 1 << 20


def read(path: str) -> tuple[str, dict[str, str | bool]]:
    """Return the unit that a file names, and its options as the command line would give them.

    Parameters
    ----------
    path : str
        A TOML file with the key ``unit`` and options of this unit. A list stands for names with
        dashes between them.

    Raises
    ------
    UserError
        If the file cannot be read, or if a key or a value is not allowed.
    """
    try:
        table = tomllib.loads(read_whole(path, _MOST_BYTES).decode())
    except UserError:
        raise
    except (ValueError, RecursionError) as error:
        raise UserError(f"{shortened(path)} must be a TOML file: {reason_of(error)}") from error
    unit = table.pop("unit", None)
    if not isinstance(unit, str) or unit not in UNITS:
        hint = nearest(unit, UNITS) if isinstance(unit, str) else ""
        known = ", ".join(UNITS)
        raise UserError(f"{path}: unit must be one of {known}, not {_shown(unit)}{hint}")
    options = UNITS[unit].options
    given: dict[str, str | bool] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in options:
            raise UserError(f"{path}: {_unknown(key, unit)}")
        if name in given:
            raise UserError(f"{path}: {key} must be given once, not with - and with _")
        text = _text(value, flag=options[name].flag)
        if text is None:
            kind = "true or false" if options[name].flag else "a number, a text or a list of texts"
            raise UserError(f"{path}: {key} must be {kind}, not {_shown(value)}")
        if text is not False:
            given[name] = text
    return unit, given


def _unknown(key: str, unit: str) -> str:
    """Return the message about an unknown key, with the nearest allowed name if one is near."""
    names = [name.replace("_", "-") for name in UNITS[unit].options]
    hint = nearest(key.replace("_", "-"), names)
    allowed = ", ".join(["unit", *names])
    return f"a key of {unit} must be one of {allowed}, not {shortened(key)}{hint}"


def _text(value: Any, *, flag: bool) -> str | bool | None:
    if flag or isinstance(value, bool):
        return value if flag and isinstance(value, bool) else None
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return "-".join(value)
    return str(value) if isinstance(value, int | str) else None


def _shown(value: Any) -> str:
    return shortened(value) if isinstance(value, str) else shortened(str(value))


def written(variant: Variant, remark: str = "") -> str:
    """Return the text of a configuration file for ``variant``.

    Parameters
    ----------
    remark : str
        The first line, as a comment.
    """
    lines = [f"# {remark}"] if remark else []
    lines.append(f'unit = "{variant.unit.name}"')
    for name, value in _options(variant.configuration).items():
        key = name.replace("_", "-")
        if value is True:
            lines.append(f"{key} = true")
        elif isinstance(value, int):
            lines.append(f"{key} = {value}")
        else:
            lines.append(f'{key} = "{value}"')
    return "\n".join(lines) + "\n"


def _options(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that the user would have to give; None and False are defaults."""
    return {k: v for k, v in configuration.items() if v is not None and v is not False}

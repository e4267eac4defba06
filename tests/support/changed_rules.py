"""Rules with another value of a parameter, for mutation tests."""

from dataclasses import replace
from typing import Any

from vitruvian.golden.fp import DotSpec


def changed(rule: Any, **parameters: Any) -> Any:
    """Return a rule of any kind with other values of some of its parameters."""
    if isinstance(rule, DotSpec):
        return rule.replace(**parameters)
    return replace(rule, **parameters)

"""The flags that accompany a sum through the back end of a dot product."""

from dataclasses import dataclass, fields
from typing import Any

from amaranth.hdl import Value

from ..parts.pipeline import PipelineStages

#: The ``order`` in a unit that has a bypass and no sums.
BYPASS_ORDER = ("nan", "special", "minus", "below", "missing", "top", "subnormal", "nonzero")

# Default of a flag that every sum has, but that is known in a later pipeline stage only
_LATER: Any = None


@dataclass(frozen=True, kw_only=True)
class SideBand:
    """The flags and selects that travel beside a sum, from the terms to the result's code.

    A flag that the unit does not have, or does not know yet, is None. The names of the attributes
    are also parts of signal names in the emitted Verilog.

    Attributes
    ----------
    nan : Value
        The result is a NaN.
    special : Value
        The result is a NaN or an infinity.
    minus : Value
        Sign of the result if it is special or zero.
    subnormal : Value or None
        All products are zero and C is subnormal or zero.
    short : Value or None
        The short window is in use (``ShortWindow``).
    small : Value or None
        The result has the smaller format (``SmallResult``).
    top : Value
        E_max on the output's biased scale; known behind the stage ``product``.
    flip : Value or None
        The signs of all terms were inverted.
    below : Value
        The sum is negative; known behind the stage ``sum``.
    missing : Value or None
        In a unit with a bypass, the magnitude may be one unit short (``BypassResult.one_short``).
    nonzero : Value
        The sum is not zero; known behind the stage ``total``.
    order : tuple of str
        The order in which the flags cross a boundary, by default that of the attributes above. It
        fixes the order of the signals in the emitted Verilog and has no other effect.
    """

    nan: Value
    special: Value
    minus: Value
    subnormal: Value | None = None
    short: Value | None = None
    small: Value | None = None
    top: Value = _LATER
    flip: Value | None = None
    below: Value = _LATER
    missing: Value | None = None
    nonzero: Value = _LATER
    order: tuple[str, ...] = ()

    @property
    def present(self) -> dict[str, Value]:
        """The flags that are not None, by name."""
        names = self.order or [field.name for field in fields(self) if field.name != "order"]
        flags = {name: getattr(self, name) for name in names}
        return {name: value for name, value in flags.items() if value is not None}

    def cross(self, stages: PipelineStages, stage: str, prefix: str) -> "SideBand":
        """Return the flags behind a boundary, as signals called ``prefix_flag``.

        Parameters
        ----------
        stage : str
            Name of the boundary.
        prefix : str
            First part of every new signal's name.
        """
        flags: dict[str, Any] = stages.cross_all(stage, self.present, prefix)
        return SideBand(**flags, order=self.order)

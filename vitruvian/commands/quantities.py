"""Types of arguments that are times and capacitances of circuits."""

import argparse
from math import isfinite

from vitruvian.common.validate import shortened

# A microsecond: anything slower is a mistake in the unit of the number.
_MOST_DELAY_PS = 1_000_000
_MOST_LOAD_FF = 1e6


def period_ns(text: str) -> float:
    """Return the period of a clock in ns.

    Raises
    ------
    ArgumentTypeError
        If the text is no number above 0, or if the period is above a microsecond.
    """
    try:
        value = float(text)
    except ValueError:
        # Out of the range below, as a text should be.
        value = -1.0
    if not 0 < value <= _MOST_DELAY_PS / 1000:
        raise argparse.ArgumentTypeError(
            f"must be above 0 and at most {_MOST_DELAY_PS // 1000} ns, not {shortened(text)}"
        )
    return value


def delay_ps(text: str) -> int:
    """Return a delay in whole ps.

    Raises
    ------
    ArgumentTypeError
        If the text is no whole number from 1 to a microsecond.
    """
    # The length comes first, because Python refuses to convert thousands of digits.
    if not text.isdecimal() or len(text) > 9 or not 1 <= int(text) <= _MOST_DELAY_PS:
        raise argparse.ArgumentTypeError(
            f"must be a whole number from 1 to {_MOST_DELAY_PS}, not {shortened(text)}"
        )
    return int(text)


def load_ff(text: str) -> float:
    """Return a capacitance in fF.

    Raises
    ------
    ArgumentTypeError
        If the text is no number from 0 to a nanofarad.
    """
    try:
        value = float(text)
    except ValueError:
        # Out of the range below, as a text should be.
        value = -1.0
    # float() reads nan and inf, too.
    if not isfinite(value) or not 0 <= value <= _MOST_LOAD_FF:
        raise argparse.ArgumentTypeError(
            f"must be from 0 to {_MOST_LOAD_FF:g} fF, not {shortened(text)}"
        )
    return value

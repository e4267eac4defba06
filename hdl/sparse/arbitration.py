"""The choice of one among several lanes that wait for a bank."""

from typing import Any, NamedTuple

from amaranth.hdl import Signal, Value


def sum_of(terms: list[Any]) -> Value:
    """Return the sum of some terms, 0 if there are none."""
    total = Value.cast(0)
    for term in terms:
        total = total + term
    return total


def lowest_one(bits: Value) -> Value:
    """Return the lowest bit that is set."""
    return bits & (~bits + 1)[: len(bits)]


def choose_one(chosen: Value, values: list[Any]) -> Value:
    """Return the value whose bit is set in ``chosen``."""
    total = Value.cast(0)
    for k, value in enumerate(values):
        total = total | (value & chosen[k].replicate(len(value)))
    return total


class BankOfRows(NamedTuple):
    """The state of a bank of rows and of the element that it serves."""

    #: The row has no element yet, and needs room for all of its elements.
    wants_room: Value
    #: The row has more elements than its entry says.
    full: Signal
    #: The element leaves stage 1.
    goes: Signal
    #: The lane of the element, one bit for each lane.
    grant: Signal
    #: Its slot.
    slot: Signal

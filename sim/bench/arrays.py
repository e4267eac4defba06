"""Stimuli of benches and golden's results, in the form that compiled models take."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vitruvian.sim.rtl.ports import Interface, Port


@dataclass(frozen=True, kw_only=True)
class Arrays:
    """Stimuli and golden's results.

    Attributes
    ----------
    inputs, outputs, care : mapping of str to array_like or mapping
        Values by the name of the port or stream: see ``sim.rtl.ports.Port.to_memory``, or lists of
        words. The values of ``care`` have ones at the bits of the output that golden determines.
    interface : Interface, optional
        Ports and streams of the unit, if they are not those of its signature.
    after, answers, zeros, nets, bit_cycles
        See ``sim.bench.vectors.GoldenVectors``.
    """

    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]
    care: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[tuple[str, str], Sequence[int]] = field(default_factory=dict)
    answers: Mapping[str, str] = field(default_factory=dict)
    zeros: tuple[str, ...] = ()
    nets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    bit_cycles: int = 0
    interface: Interface | None = None


def words_of_port(port: Port, value: Any) -> list[int]:
    """Return the bits of a port for each row of an array, or of nested mappings of arrays.

    A list has words already.
    """
    if isinstance(value, list):
        return value
    arrays = port.to_memory(value)
    words = [0] * len(arrays[0])
    for leaf, array in zip(port.leaves, arrays, strict=True):
        columns = array.reshape(len(words), len(leaf.pieces())).T
        for (at, width), column in zip(leaf.pieces(), columns, strict=True):
            mask = (1 << width) - 1
            for row, number in enumerate(column.tolist()):
                words[row] |= (number & mask) << at
    return words

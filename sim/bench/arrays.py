"""Stimuli of benches and golden's results, in the form that compiled models take."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Arrays"]


@dataclass(frozen=True, kw_only=True)
class Arrays:
    """Stimuli and golden's results.

    Attributes
    ----------
    inputs, outputs, care : mapping of str to array_like or mapping
        Values by the name of the port or stream; see ``sim.rtl.ports.Port.to_memory``. The values
        of ``care`` have ones at the bits of the output that golden determines.
    after, answers, zeros
        See ``sim.bench.vectors.GoldenVectors``.
    """

    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]
    care: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[tuple[str, str], Sequence[int]] = field(default_factory=dict)
    answers: Mapping[str, str] = field(default_factory=dict)
    zeros: tuple[str, ...] = ()

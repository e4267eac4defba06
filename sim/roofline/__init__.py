"""The component-based roofline of Zhou et al. 2025: which unit bounds an operator, and what to do.

``counters_of`` counts the work and time of each unit in a report of ``sim.davinci``, ``analyse``
computes utilisations and classifies the operator, ``advice`` names strategies, and ``plot`` draws.
"""

from vitruvian.sim.roofline.counters import Count, Counters, counters_of
from vitruvian.sim.roofline.model import Analysis, Bound, CounterError, Thresholds, analyse

__all__ = [
    "Analysis",
    "Bound",
    "Count",
    "CounterError",
    "Counters",
    "Thresholds",
    "analyse",
    "counters_of",
]

"""Conformance vectors of machines: operands in strata with golden's results, and what they notice.

``make_vectors`` draws the operands and computes the results; ``to_text`` and ``to_npz`` write them.
``wrong_rules`` returns wrong implementations that the vectors of RVBNA must notice.
"""

from vitruvian.sim.conformance.faults import wrong_rules
from vitruvian.sim.conformance.files import Vectors, checksum, make_vectors, to_npz, to_text
from vitruvian.sim.conformance.stimulus_classes import STRATA, ConformanceOperands, draw

__all__ = [
    "STRATA",
    "ConformanceOperands",
    "Vectors",
    "checksum",
    "draw",
    "make_vectors",
    "to_npz",
    "to_text",
    "wrong_rules",
]

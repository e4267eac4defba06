"""Reproductions of papers that only benchmarks and tests use, one folder for each paper.

The wheel contains ``sim.papers``, which has the parts that commands of ``vitruvian`` need.
"""

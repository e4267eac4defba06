"""Reproductions of papers that only benchmarks and tests use, one folder for each paper.

What a command of ``vitruvian`` needs is in ``sim.papers``, which the wheel contains.
"""

"""Reproductions of papers that commands and examples need, one folder for each paper.

``rohwedder21`` has the experiments of ``vitruvian pooling``, ``zhou25`` the case studies of
``vitruvian roofline``, and ``tang24`` the features of an audio signal. No other part of ``sim``
imports this folder. What only benchmarks and tests use is in ``benchmarks/papers``.
"""

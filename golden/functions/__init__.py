"""Approximate functions of a GPU: one instruction each, by interpolation in tables."""

from vitruvian.golden.functions.mufu import compute, instructions, missing

__all__ = ["compute", "instructions", "missing"]

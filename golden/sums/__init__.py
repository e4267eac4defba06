"""Windowed sums: a rule becomes the text of one module, which Numba compiles."""

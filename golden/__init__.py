"""Bit-exact NumPy models, one per unit, and the parameter objects that they share with the RTL."""

if __name__ != "vitruvian.golden":
    raise ImportError("import vitruvian.golden, not golden")

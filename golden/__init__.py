"""NumPy models, exact to the bit, one per unit, and the parameter objects shared with the RTL."""

if __name__ != "vitruvian.golden":
    raise ImportError("import vitruvian.golden, not golden")

"""Compiled RTL, benches that compare it with golden, and simulators of cores built from it."""

if __name__ != "vitruvian.sim":
    raise ImportError("import vitruvian.sim, not sim")

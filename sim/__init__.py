"""Does it work, and how fast is a core built from it? Benches, compiled RTL, simulators."""

if __name__ != "vitruvian.sim":
    raise ImportError("import vitruvian.sim, not sim")

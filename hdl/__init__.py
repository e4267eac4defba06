"""Amaranth components: datapaths, matrix units, and the parts that they are built from."""

if __name__ != "vitruvian.hdl":
    raise ImportError("import vitruvian.hdl, not hdl")

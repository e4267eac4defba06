"""Amaranth components: the datapaths, the matrix units and what they are made of."""

if __name__ != "vitruvian.hdl":
    raise ImportError("import vitruvian.hdl, not hdl")

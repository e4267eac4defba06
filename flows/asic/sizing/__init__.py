"""Sizes of cells, and buffers, of a mapped netlist, chosen by its delays."""

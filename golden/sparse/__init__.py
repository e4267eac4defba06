"""Sparse tensor algebra: the order of operations of the cores, and their operators."""

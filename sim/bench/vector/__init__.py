"""Benches of the vector unit: commands and blocks against golden.vector."""

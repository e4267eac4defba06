"""Benches of the sparse cores."""

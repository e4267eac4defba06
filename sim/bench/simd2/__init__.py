"""Benches of the units with semirings."""

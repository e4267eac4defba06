"""Benches of the units for nine semirings."""

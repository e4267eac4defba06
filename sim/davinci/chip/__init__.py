"""Chips: memories, paths, units and speeds, read from TOML files."""

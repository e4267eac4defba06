"""Chips: their memories, paths, units and speeds, read from TOML files."""

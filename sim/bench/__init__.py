"""Benches: cocotb drivers, monitors and scoreboards, and batch comparisons with golden."""

"""Benches: cocotb drivers, monitors and scoreboards, and batch comparisons against golden."""

"""Bench of the matrix unit: traffic with its results, batch checks, cocotb tests."""

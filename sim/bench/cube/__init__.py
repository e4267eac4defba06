"""Benches of the matrix unit: traffic with expected results, batch checks and cocotb tests."""

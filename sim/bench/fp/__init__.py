"""Stimuli, batch checks and cocotb benches of the floating-point units."""

"""Buses in front of the matrix units: AXI4-Stream, AXI4-Lite, and registers over a serial line."""

"""Cells on FPGA families, and whole designs on boards: place and route, bitstreams, projects."""

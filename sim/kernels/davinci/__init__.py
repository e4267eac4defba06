"""Kernels for DaVinci cores, as programs."""

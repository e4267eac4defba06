"""Measured kernels of the Ascend 910B."""

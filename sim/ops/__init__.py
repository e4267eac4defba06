"""Operators with PyTorch's names on NumPy arrays, computed by kernels on a simulated DaVinci chip.

``run`` holds what all operators share; ``pooling`` the pooling functions. Users import them from
``vitruvian.ops``.
"""

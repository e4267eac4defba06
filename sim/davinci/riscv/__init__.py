"""Kernels in CCE C as programs of a RISC-V: unit S runs their loops and their scalar reads."""

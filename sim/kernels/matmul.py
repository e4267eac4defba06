"""The tiled matrix product on DaVinci cores: `sim.kernels.davinci.matmul` by its short name."""

from .davinci.matmul import build, expected, operands, result

__all__ = ["build", "expected", "operands", "result"]

"""Max and average pooling on DaVinci cores: forward, with argmax mask, and backward.

``Pooling`` describes one, ``build`` makes the program. Each has five implementations (``METHODS``):
direct, Im2Col and Col2Im, expansion and X-Y split are those of the paper, strided is ours.

References
----------
Rohwedder 2021, ch. 4 and 5.
"""

from vitruvian.sim.kernels.pooling.build import Pooling, build
from vitruvian.sim.kernels.pooling.plan import METHODS

__all__ = ["METHODS", "Pooling", "build"]

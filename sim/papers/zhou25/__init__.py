"""Case studies of operators: the same result in steps that remove one bottleneck each.

``CASES`` holds them by name.

References
----------
Zhou et al. 2025, §5 and Table 1.
"""

from vitruvian.sim.papers.zhou25 import addrelu, avgpool, conv2d, depthwise, gelu, matmul
from vitruvian.sim.papers.zhou25.case import COMPONENTS, CaseStep, CaseStudy

__all__ = ["CASES", "COMPONENTS", "CaseStudy", "CaseStep"]

_MODULES = (addrelu, depthwise, avgpool, conv2d, matmul, gelu)

#: All case studies by name, in the paper's order.
CASES: dict[str, CaseStudy] = {module.CASE.name: module.CASE for module in _MODULES}

"""The published figures of the case studies, to print them beside the simulated ones.

References
----------
Zhou et al. 2025, §5.1 to §5.3 and Table 1.
"""

from dataclasses import dataclass

from vitruvian.sim.roofline.model import Bound


@dataclass(frozen=True)
class PublishedStep:
    """The figures of a step; None where the text has none.

    Attributes
    ----------
    utilisation : float or None
        The highest utilisation of any component.
    time_ratio : float or None
        The highest time ratio of any component.
    time_us : float or None
        Microseconds of the operator.
    bound : Bound or None
        The class of the operator.
    cube : bool
        If True, the operator has work for the Cube, which decides the threshold.
    """

    utilisation: float | None = None
    time_ratio: float | None = None
    time_us: float | None = None
    bound: Bound | None = None
    cube: bool = False


_IP = Bound.PARALLELISM

#: Keyed by the name of the case study in ``sim.papers.zhou25``, and by the name of the step.
PUBLISHED: dict[str, dict[str, PublishedStep]] = {
    "add_relu": {
        "baseline": PublishedStep(0.3842, 0.5868, 98.673, _IP),
        "RSD": PublishedStep(0.6624, 0.8514, None, Bound.MTE),
        "MRT": PublishedStep(0.7052, None, 57.157, Bound.MTE),
    },
    "depthwise": {
        "baseline": PublishedStep(0.3545, 0.4666, 408.101, _IP, cube=True),
        "AIS": PublishedStep(0.4272, 0.7169, None, _IP, cube=True),
        "RUS": PublishedStep(0.6035, 0.7769, None, _IP, cube=True),
        "PP": PublishedStep(0.7156, 0.9418, None, Bound.INEFFICIENT_MTE, cube=True),
        "ITG": PublishedStep(0.9354, None, 325.121, Bound.MTE, cube=True),
    },
    # The text does not classify the last step; it calls 0.5907 far from the threshold.
    "avgpool": {
        "baseline": PublishedStep(0.1354, 0.8398, 69.821, Bound.INEFFICIENT_COMPUTE),
        "AIP": PublishedStep(0.5907, None, 16.206, None),
    },
}

#: The speedup of each operator from its first to its last step (Table 1).
SPEEDUPS = {
    "add_relu": 1.72,
    "depthwise": 1.26,
    "avgpool": 4.31,
    "conv2d": 2.65,
    "matmul": 1.10,
    "gelu": 1.06,
}

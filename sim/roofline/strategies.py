"""Advice: the optimisation strategies of Zhou et al. 2025, and the symptoms that suggest them.

References
----------
Zhou et al. 2025, §5.1 to §5.4 and Table 1.
"""

from dataclasses import dataclass

from vitruvian.sim.roofline.model import Analysis, Bound


@dataclass(frozen=True)
class Strategy:
    """A way to make an operator faster.

    Attributes
    ----------
    key : str
        The abbreviation in Table 1 of Zhou et al. 2025.
    name : str
    bounds : tuple of Bound
        The classes of operators that it helps.
    symptom : str
        What to look for in the program or its timeline.
    action : str
        What to change.
    section : str
        The section of Zhou et al. 2025.
    """

    key: str
    name: str
    bounds: tuple[Bound, ...]
    symptom: str
    action: str
    section: str


#: All strategies by their abbreviations, in the order of the paper. It abbreviates operator fusion
#: as OP.
STRATEGIES = {
    s.key: s
    for s in (
        Strategy(
            "RSD",
            "reduce spatial dependency",
            (Bound.PARALLELISM,),
            "Transfers of two engines use the same address, so one waits for the other.",
            "Give the result a buffer of its own, so that the next input can be loaded meanwhile.",
            "5.1",
        ),
        Strategy(
            "MRT",
            "minimise redundant transfers",
            (Bound.MTE,),
            "A loop transfers data that do not depend on the loop variable.",
            "Move this transfer out of the loop.",
            "5.1",
        ),
        Strategy(
            "AIS",
            "adjust the instruction sequence",
            (Bound.PARALLELISM,),
            "Many instructions of other units lie between two transfers of an engine, so that the "
            "second one is dispatched late.",
            "Issue the transfer before those instructions.",
            "5.2",
        ),
        Strategy(
            "RUS",
            "remove unnecessary synchronisation",
            (Bound.PARALLELISM,),
            "Barriers for all units stand between units that do not depend on each other.",
            "Remove them, or replace them by flags between the two units that depend.",
            "5.2",
        ),
        Strategy(
            "PP",
            "ping-pong policy",
            (Bound.PARALLELISM,),
            "A buffer is written only after its last reader has ended, and the writer waits.",
            "Split the buffer in two halves; one is written while the other one is read.",
            "5.2",
        ),
        Strategy(
            "ITG",
            "increase the transfer granularity",
            (Bound.INEFFICIENT_MTE,),
            "Single transfers are too small to reach the full bandwidth.",
            "Merge several transfers into one.",
            "5.2",
        ),
        Strategy(
            "AIP",
            "adjust instruction parameters",
            (Bound.INEFFICIENT_COMPUTE,),
            "Vector instructions have a small repeat count or a mask that enables few lanes.",
            "Increase the repeat count, and arrange the data such that the mask enables all lanes.",
            "5.3",
        ),
        Strategy(
            "OP",
            "operator fusion",
            (Bound.MTE,),
            "The result goes to global memory, and the next operator reads it again.",
            "Fuse both operators into one that keeps the result in a buffer of the core.",
            "5.4",
        ),
        Strategy(
            "TT",
            "transfer transformation",
            (Bound.MTE,),
            "Another path between the same memories, or through another buffer, is faster.",
            "Send the data over the path of the higher bandwidth.",
            "5.4",
        ),
        Strategy(
            "EA",
            "enhanced algorithm",
            (Bound.COMPUTE,),
            "An algorithm or an approximation with fewer operations is known.",
            "Use it: depthwise separable convolution, or FastGeLU in place of GeLU.",
            "5.4",
        ),
        Strategy(
            "LC",
            "low-precision calculation",
            (Bound.COMPUTE,),
            "The accuracy of a narrower type is sufficient.",
            "Quantise the operands: the unit does more operations per second in a narrower type.",
            "5.4",
        ),
        Strategy(
            "CT",
            "computation transformation",
            (Bound.COMPUTE,),
            "A slow compute unit is the limit, and a faster one is idle.",
            "Rearrange the data such that the vector unit does the work of the scalar unit, or the "
            "Cube that of the vector unit.",
            "5.4",
        ),
    )
}


def advice(analysis: Analysis) -> list[Strategy]:
    """Return the strategies that suit the class of an operator, in the order of the paper.

    Which one of them helps depends on the program: compare each ``symptom`` with its timeline.
    """
    fitting = [s for s in STRATEGIES.values() if analysis.bound in s.bounds]
    if analysis.bound == Bound.COMPUTE and analysis.cause.component.name == "M":
        # The Cube is the fastest unit, so no work of it can move to a faster one.
        fitting = [s for s in fitting if s.key != "CT"]
    return fitting

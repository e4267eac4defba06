"""Dense convolution: buffers of their own for the results and the next inputs, weights loaded once.

References
----------
Zhou et al. 2025, Table 1; the text does not describe the steps, which are taken to be those of
Add_ReLU on the buffers of a convolution.
"""

from vitruvian.common.validate import ceil_div
from vitruvian.sim.davinci import Program
from vitruvian.sim.kernels.convolution import ConvShape, ConvTiling, build, golden, result
from vitruvian.sim.kernels.convolution.catalogue import random_operands
from vitruvian.sim.kernels.convolution.dense import Buffering
from vitruvian.sim.kernels.kernel import KernelInstance, SimulationCost
from vitruvian.sim.papers.zhou25.case import CaseStep, CaseStudy

#: Output rows of a tile.
_ROWS = 8
_STEPS = {
    "baseline": Buffering(slots=1, keep_weights=False),
    "RSD": Buffering(slots=2, keep_weights=False),
    "MRT": Buffering(slots=2, keep_weights=True),
}


def _make(size: tuple[int, ...], step: str, program: Program, seed: int | None) -> KernelInstance:
    channels, side, filters = size
    s = ConvShape(
        images=1,
        channels=channels,
        height=side,
        width=side,
        filters=filters,
        kernel=(3, 3),
        pad=(1, 1, 1, 1),
    )
    # The tiles are the same in all steps: all channels at once, some rows at a time.
    columns = s.patches.columns
    depth = 64 // 2 // max(-(-_ROWS * columns // 16), s.n1) or 1
    tiling = ConvTiling(_ROWS, columns, s.n1, s.c1, depth)
    data = None if seed is None else random_operands(s, seed, bias=False)
    built = build(
        s,
        chip=program.chip,
        cores=1,
        tiling=tiling,
        relu=True,
        buffering=_STEPS[step],
        data=data,
    )
    built.name = program.name
    if data is None:
        return KernelInstance(built, {})
    return KernelInstance(
        built,
        {"y": lambda: golden.dense(s, data.x, data.w, relu=True)},
        {"y": lambda y: result(y, s.filters)},
    )


def _needs(size: tuple[int, ...]) -> SimulationCost:
    channels, side, filters = (ceil_div(n, 16) for n in size)
    # A tile has some rows. For each it loads weights and pixels, and every product takes 9 Im2Col
    # loads for each group of channels and row of fractals at most.
    tiles = ceil_div(size[1], _ROWS)
    products = 9 * channels * (_ROWS * side + 4 * filters)
    nbytes = 256 * (channels * size[1] ** 2 + 9 * size[0] * filters + filters * size[1] ** 2)
    return SimulationCost(tiles * (products + 60), nbytes, 9 * size[0] * size[1] ** 2 * size[2])


CASE = CaseStudy(
    name="conv2d",
    title="convolution, 3 × 3",
    sizes=("channels", "side", "filters"),
    size=(64, 28, 64),
    chip="ascend310",
    metric="Cube",
    steps=(
        CaseStep(
            "baseline", "Each buffer holds one tile, which is read before the next one comes."
        ),
        CaseStep("RSD", "Each buffer has room for two tiles, so that transfers overlap."),
        CaseStep("MRT", "The weights are loaded once and stay in L1."),
    ),
    make=_make,
    section="Table 1",
    needs=_needs,
)

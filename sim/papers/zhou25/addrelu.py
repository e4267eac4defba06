"""ReLU(x + c): a separate buffer for the result, and a constant that is loaded once.

References
----------
Zhou et al. 2025, §5.1, Fig. 8 to 10.
"""

import numpy as np

from vitruvian.common.validate import ceil_div
from vitruvian.golden import vector
from vitruvian.sim.davinci import Core, Program, Unit, View
from vitruvian.sim.kernels.kernel import KernelInstance, SimulationCost, cores_of
from vitruvian.sim.kernels.ring import Ring, close_rings, together
from vitruvian.sim.papers.zhou25.case import CaseStep, CaseStudy

V, MTE2, MTE3 = Unit.V, Unit.MTE2, Unit.MTE3

#: Elements of a piece; it is loaded, computed and stored at once.
_PIECE = 8192
#: Elements of the constant: the lanes of one repeat, which all repeats read.
_LANES = 128


def _make(size: tuple[int, ...], step: str, program: Program, seed: int | None) -> KernelInstance:
    (count,) = size
    pieces = ceil_div(count, _PIECE)
    x = c = None
    if seed is not None:
        rng = np.random.default_rng(seed)
        x = np.zeros((pieces, _PIECE), np.float16)
        x.reshape(-1)[:count] = rng.normal(0, 4, count)
        # Hard-Swish adds 3; different lanes show that each reads its own.
        c = (3 + np.arange(_LANES) / 64).astype(np.float16)
    gx = program.tensor("x", (pieces, _PIECE), "fp16", x)
    gc = program.tensor("c", (_LANES,), "fp16", c)
    gy = program.tensor("y", (pieces, _PIECE), "fp16")
    (core,) = cores_of(program, 1)
    if step == "baseline":
        _in_place(core, gx, gc, gy)
    else:
        _two_buffers(core, gx, gc, gy, once=step == "MRT")
    if x is None or c is None:
        return KernelInstance(program, {})
    addend = np.broadcast_to(np.tile(c, _PIECE // _LANES), x.shape)
    return KernelInstance(program, {"y": lambda: vector.relu(vector.add(x, addend))})


def _compute(core: Core, result: View, x: View, c: View) -> None:
    """Emit result = ReLU(x + c) as the two instructions of the paper's Fig. 8."""
    repeat = _PIECE // _LANES
    # A repeat stride of 0 makes every repeat read the same constant.
    strides = {"dst": (1, 8), "src0": (1, 8), "src1": (1, 0)}
    core.vadd(result, x, c, repeat=repeat, strides=strides)
    core.pipe_barrier(V)
    core.vrelu(result, result)


def _in_place(core: Core, x: View, c: View, y: View) -> None:
    """Emit all pieces through one buffer: a load waits until the previous piece is stored."""
    u = core.allocate("UB", (_PIECE,), "fp16", "ub_1")
    constant = core.allocate("UB", c.shape, "fp16", "c")
    ring = Ring(core, MTE2, MTE3, 1, through=V)
    for piece in range(x.shape[0]):
        with ring.write():
            core.copy(u, x[piece])
            core.copy(constant, c)
        with ring.update():
            _compute(core, u, u, constant)
        with ring.read():
            core.copy(y[piece], u)
    ring.close()


def _two_buffers(core: Core, x: View, c: View, y: View, *, once: bool) -> None:
    """Emit all pieces through two buffers, so that a load overlaps the store before it.

    Parameters
    ----------
    once : bool
        If True, load the constant before the loop instead of in every turn.
    """
    u = core.allocate("UB", (_PIECE,), "fp16", "ub_1")
    result = core.allocate("UB", (_PIECE,), "fp16", "ub_2")
    constant = core.allocate("UB", c.shape, "fp16", "c")
    full, done = Ring(core, MTE2, V, 1), Ring(core, V, MTE3, 1)
    if once:
        core.copy(constant, c)
    for piece in range(x.shape[0]):
        with full.write():
            core.copy(u, x[piece])
            if not once:
                core.copy(constant, c)
        with together(full.read(), done.write()):
            _compute(core, result, u, constant)
        with done.read():
            core.copy(y[piece], result)
    close_rings(full, done)


def _needs(size: tuple[int, ...]) -> SimulationCost:
    pieces = ceil_div(size[0], _PIECE)
    return SimulationCost(15 * pieces + 10, 16 * pieces * _PIECE)


CASE = CaseStudy(
    name="add_relu",
    title="ReLU(x + c) of Hard-Swish",
    sizes=("elements",),
    # Two images of 112 × 112 pixels and 16 channels, the first Hard-Swish of MobileNetV3.
    size=(2 * 112 * 112 * 16,),
    chip="ascend310",
    metric="MTE-UB",
    steps=(
        CaseStep("baseline", "One buffer holds the input and then the result."),
        CaseStep("RSD", "The result has a buffer of its own, so that loads and stores overlap."),
        CaseStep("MRT", "The constant is loaded once, before the loop."),
    ),
    make=_make,
    section="§5.1",
    needs=_needs,
)

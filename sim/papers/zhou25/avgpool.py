"""Average pooling whose additions have one repeat each, and then 98.

A window slides over the image by one pixel. The pixels at one place of all windows lie one after
the other in memory if windows that cross the end of a row are computed too and not stored; 98
repeats of 8 pixels cover 28 rows of 28 windows.

References
----------
Zhou et al. 2025, §5.3: AIP, "adjusting instruction parameter", repeat 1 to 98.
"""

import numpy as np

from vitruvian.golden import vector
from vitruvian.sim.davinci import Core, Program, Unit, View
from vitruvian.sim.kernels.kernel import KernelInstance, SimulationCost, cores_of
from vitruvian.sim.kernels.ring import Ring, together, uses_of
from vitruvian.sim.papers.zhou25.case import CaseStep, CaseStudy

V, MTE2, MTE3 = Unit.V, Unit.MTE2, Unit.MTE3

#: Side of the window, width of the image, and rows of windows.
_WINDOW, _WIDTH, _ROWS = 3, 28, 28
#: Rows of the image, and windows that are stored of a row.
_HEIGHT, _STORED = _ROWS + _WINDOW - 1, _WIDTH - _WINDOW + 1
#: Repeats that cover all windows: 8 pixels of 16 channels each.
_REPEATS = _ROWS * _WIDTH // 8
#: Pixels after the image that the windows across its end read.
_TAIL = 8


def _make(size: tuple[int, ...], step: str, program: Program, seed: int | None) -> KernelInstance:
    (groups,) = size
    x = None
    if seed is not None:
        shape = (groups, _HEIGHT, _WIDTH, 16)
        x = np.random.default_rng(seed).normal(0, 4, shape).astype(np.float16)
    gx = program.tensor("x", (groups, _HEIGHT, _WIDTH, 16), "fp16", x)
    gy = program.tensor("y", (groups, _ROWS, _STORED, 16), "fp16")
    (core,) = cores_of(program, 1)
    _emit(core, gx, gy, _REPEATS if step == "AIP" else 1)
    if x is None:
        return KernelInstance(program, {})
    return KernelInstance(program, {"y": lambda: _golden(x)})


def _emit(core: Core, x: View, y: View, repeat: int) -> None:
    pixels, groups = _HEIGHT * _WIDTH, x.shape[0]
    ins = core.allocate("UB", (2, pixels + _TAIL, 16), "fp16", "x in UB")
    outs = core.allocate("UB", (2, _ROWS, _WIDTH, 16), "fp16", "y in UB")
    for slot in range(2):
        core.vdup(ins[slot, pixels:], 0.0)
    full = Ring(core, MTE2, V, plan=uses_of(range(groups), 2))
    done = Ring(core, V, MTE3, plan=uses_of(range(groups), 2))
    for group in range(groups):
        with full.write() as slot:
            core.copy(ins[slot, :pixels].reshape(*x.shape[1:]), x[group])
        with together(full.read(), done.write()) as (slot, out):
            _pool(core, outs[out], ins[slot], repeat)
        with done.read() as out:
            core.copy(y[group], outs[out, :, :_STORED])


def _pool(core: Core, y: View, x: View, repeat: int) -> None:
    """Emit the mean of the windows, in instructions of ``repeat`` repeats."""
    flat, total = x.reshape(x.size), y.reshape(y.size)
    for i, j in np.ndindex(_WINDOW, _WINDOW):
        core.pipe_barrier(V)
        first = 16 * (i * _WIDTH + j)
        for at in range(0, y.size, 128 * repeat):
            part, pixels = total[at:], flat[first + at :]
            if (i, j) == (0, 1):
                core.vadd(part, flat[at:], pixels, repeat=repeat)
            elif (i, j) != (0, 0):
                core.vadd(part, part, pixels, repeat=repeat)
    core.pipe_barrier(V)
    for at in range(0, y.size, 128 * repeat):
        core.vmuls(total[at:], total[at:], 1 / _WINDOW**2, repeat=repeat)


def _golden(x: np.ndarray) -> np.ndarray:
    """Add the pixels of a window row by row, each sum rounded, and multiply by 1/9 in FP16."""
    windows = np.lib.stride_tricks.sliding_window_view(x, (_WINDOW, _WINDOW), (1, 2))
    total = windows[..., 0, 0]
    for i, j in list(np.ndindex(_WINDOW, _WINDOW))[1:]:
        total = vector.add(total, windows[..., i, j])
    return vector.mul(total, np.full_like(total, 1 / _WINDOW**2))


def _needs(size: tuple[int, ...]) -> SimulationCost:
    vectors = _WINDOW**2 * (_REPEATS + 1)
    return SimulationCost((vectors + 20) * size[0], 16 * size[0] * _HEIGHT * _WIDTH * 16)


CASE = CaseStudy(
    name="avgpool",
    title="average pooling, 3 × 3 windows over 28 rows",
    sizes=("groups of 16 channels",),
    size=(4,),
    chip="ascend310",
    metric="Vector",
    steps=(
        CaseStep(
            "baseline", "A loop of 98 instructions with one repeat adds a pixel of all windows."
        ),
        CaseStep("AIP", "One instruction with 98 repeats does so."),
    ),
    make=_make,
    section="§5.3",
    needs=_needs,
)

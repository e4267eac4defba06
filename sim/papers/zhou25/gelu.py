"""GeLU by its tanh form, and FastGeLU, which needs half of the instructions.

References
----------
Zhou et al. 2025, §5.4 (EA, "enhanced algorithm") and Table 1.
"""

import numpy as np

from vitruvian.common.validate import ceil_div
from vitruvian.golden import vector
from vitruvian.sim.davinci import Core, Program, Unit, View
from vitruvian.sim.kernels.kernel import KernelInstance, SimulationCost, cores_of
from vitruvian.sim.kernels.ring import Ring, together, uses_of
from vitruvian.sim.papers.zhou25.case import CaseStep, CaseStudy

V, MTE2, MTE3 = Unit.V, Unit.MTE2, Unit.MTE3

#: Elements of a piece.
_PIECE = 8192
#: GeLU is about x / (1 + exp(s · (x + c·x³))), because tanh(u) = 1 − 2 / (1 + exp(2·u)).
_C = 0.044715
_S = -2 * (2 / np.pi) ** 0.5
#: FastGeLU is x / (1 + exp(f · x)).
_F = -1.702


def gelu(core: Core, y: View, x: View) -> None:
    """Emit GeLU in its tanh form: eight instructions for a piece."""
    core.vmul(y, x, x)
    core.pipe_barrier(V)
    core.vmul(y, y, x)
    core.pipe_barrier(V)
    core.vmuls(y, y, _C)
    core.pipe_barrier(V)
    core.vadd(y, y, x)
    core.pipe_barrier(V)
    core.vmuls(y, y, _S)
    _logistic(core, y, x)


def fast_gelu(core: Core, y: View, x: View) -> None:
    """Emit FastGeLU, x / (1 + exp(−1.702·x)): four instructions for a piece."""
    core.vmuls(y, x, _F)
    _logistic(core, y, x)


def _logistic(core: Core, y: View, x: View) -> None:
    """Emit y = x / (1 + exp(y))."""
    core.pipe_barrier(V)
    core.vexp(y, y)
    core.pipe_barrier(V)
    core.vadds(y, y, 1.0)
    core.pipe_barrier(V)
    core.vdiv(y, x, y)


def gelu_golden(x: np.ndarray) -> np.ndarray:
    """Compute ``gelu`` with every operation rounded to FP16."""
    u = vector.mul(_half(_C, x), vector.mul(vector.mul(x, x), x))
    return _quotient(x, vector.mul(vector.add(u, x), _half(_S, x)))


def fast_gelu_golden(x: np.ndarray) -> np.ndarray:
    """Compute ``fast_gelu`` with every operation rounded to FP16."""
    return _quotient(x, vector.mul(x, _half(_F, x)))


def _half(value: float, like: np.ndarray) -> np.ndarray:
    return np.full_like(like, value)


def _quotient(x: np.ndarray, power: np.ndarray) -> np.ndarray:
    return vector.div(x, vector.add(vector.exp(power), _half(1, x)))


def _make(size: tuple[int, ...], step: str, program: Program, seed: int | None) -> KernelInstance:
    (count,) = size
    pieces = ceil_div(count, _PIECE)
    x = None
    if seed is not None:
        x = np.zeros((pieces, _PIECE), np.float16)
        x.reshape(-1)[:count] = np.random.default_rng(seed).normal(0, 2, count)
    gx = program.tensor("x", (pieces, _PIECE), "fp16", x)
    gy = program.tensor("y", (pieces, _PIECE), "fp16")
    some = cores_of(program, None)[:pieces]
    body = fast_gelu if step == "EA" else gelu
    for number, core in enumerate(some):
        part = range(pieces * number // len(some), pieces * (number + 1) // len(some))
        stream(core, gx, gy, part, body)
    if x is None:
        return KernelInstance(program, {})
    golden = fast_gelu_golden if step == "EA" else gelu_golden
    return KernelInstance(program, {"y": lambda: golden(x)})


def stream(core: Core, x: View, y: View, pieces: range, body) -> None:
    """Emit y[p] = body(x[p]) through double buffers.

    Parameters
    ----------
    x, y : View
        The first axis counts the pieces.
    body : callable
        Emits the work on a piece: (core, result, operand).
    """
    ins = core.allocate("UB", (2, x.size // x.shape[0]), "fp16", "x in UB")
    outs = core.allocate("UB", (2, x.size // x.shape[0]), "fp16", "y in UB")
    full = Ring(core, MTE2, V, plan=uses_of(pieces, 2))
    done = Ring(core, V, MTE3, plan=uses_of(pieces, 2))
    for piece in pieces:
        with full.write() as slot:
            core.copy(ins[slot].reshape(*x.shape[1:]), x[piece])
        with together(full.read(), done.write()) as (slot, out):
            core.pipe_barrier(V)
            body(core, outs[out], ins[slot])
        with done.read() as out:
            core.copy(y[piece], outs[out].reshape(*y.shape[1:]))


def _needs(size: tuple[int, ...]) -> SimulationCost:
    pieces = ceil_div(size[0], _PIECE)
    return SimulationCost(30 * pieces, 16 * pieces * _PIECE)


CASE = CaseStudy(
    name="gelu",
    title="GeLU, and FastGeLU instead",
    sizes=("elements",),
    # The activations of 512 positions with 3072 features, as BERT-base has them.
    size=(512 * 3072,),
    chip="ascend910",
    metric="MTE-GM",
    steps=(
        CaseStep("baseline", "GeLU in its tanh form takes eight vector instructions for a piece."),
        CaseStep("EA", "FastGeLU, x / (1 + exp(−1.702·x)), takes four."),
    ),
    make=_make,
    section="§5.4 and Table 1",
    needs=_needs,
)

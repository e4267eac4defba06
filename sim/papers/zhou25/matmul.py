"""A matrix product with FastGeLU behind it: two passes over memory, and then one.

References
----------
Zhou et al. 2025, §5.4 (OP, "operator fusion") and Table 1.
"""

import numpy as np

from vitruvian.common.validate import ceil_div
from vitruvian.sim.davinci import Core, Program, Unit, View
from vitruvian.sim.kernels.kernel import (
    KernelInstance,
    SimulationCost,
    cores_of,
    products_need_barrier,
)
from vitruvian.sim.kernels.layout import pack_a, pack_b, unpack_c
from vitruvian.sim.kernels.matmul import expected, operands
from vitruvian.sim.kernels.ring import Ring, ordered, together, uses_of
from vitruvian.sim.papers.zhou25.case import CaseStep, CaseStudy
from vitruvian.sim.papers.zhou25.gelu import fast_gelu, fast_gelu_golden, stream

V, M, MTE1, MTE2, MTE3 = Unit.V, Unit.M, Unit.MTE1, Unit.MTE2, Unit.MTE3

#: Rows of fractals of a tile of C, and fractals along K in L0A and L0B.
_ROWS, _DEPTH = 4, 8


def _make(size: tuple[int, ...], step: str, program: Program, seed: int | None) -> KernelInstance:
    m, k, n = size
    if m % (16 * _ROWS) or k % (16 * _DEPTH) or n % 16:
        shown = f"multiples of {16 * _ROWS}, {16 * _DEPTH} and 16"
        raise ValueError(f"size of matmul must be {shown}, not {m}×{k}×{n}")
    pair = None if seed is None else _operands(m, k, n, seed)
    a, b = (None, None) if pair is None else (pack_a(pair[0]), pack_b(pair[1]))
    tiles = m // (16 * _ROWS)
    shape = (tiles, n // 16, 16 * _ROWS, 16)
    ga = program.tensor("a", (m // 16, k // 16, 16, 16), "fp16", a)
    gb = program.tensor("b", (k // 16, n // 16, 16, 16), "fp16", b)
    gc = program.tensor("c", shape, "fp16")
    gy = program.tensor("y", shape, "fp16")
    (core,) = cores_of(program, 1)
    if step == "OP":
        _product(core, ga, gb, gy, fused=True)
    else:
        _product(core, ga, gb, gc, fused=False)
        # The second operator reads what the first one stored.
        core.pipe_barrier()
        stream(core, gc, gy, range(tiles), fast_gelu)
    if pair is None:
        return KernelInstance(program, {})
    return KernelInstance(
        program,
        {"y": lambda: fast_gelu_golden(expected(*pair))},
        {"y": lambda y: _matrix(y, m, n)},
    )


def _operands(m: int, k: int, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return A and B whose product is about 1, where FastGeLU bends."""
    a, b = operands(m, k, n, seed=seed)
    return a, b * np.float16(k**-0.5)


def _matrix(y: np.ndarray, m: int, n: int) -> np.ndarray:
    """Convert tiles of columns of fractals to a matrix."""
    tiles, across, rows, _ = y.shape
    fractals = y.reshape(tiles, across, rows // 16, 16, 16).transpose(1, 0, 2, 3, 4)
    return unpack_c(fractals.reshape(across, -1, 16, 16), m, n)


def _product(core: Core, a: View, b: View, y: View, *, fused: bool) -> None:
    """Emit y = a·b, or FastGeLU of it; B stays in L1, A passes through it tile by tile."""
    tiles, n1, k1 = y.shape[0], y.shape[1], a.shape[1]
    steps, piece = k1 // _DEPTH, n1 * _ROWS
    l1_b = core.allocate("L1", (k1 * n1, 256), "fp16", "B in L1")
    l1_a = core.allocate("L1", (2, _ROWS * k1, 256), "fp16", "A in L1")
    l0a = core.allocate("L0A", (2, _ROWS * _DEPTH, 256), "fp16", "A")
    l0b = core.allocate("L0B", (2, _DEPTH * n1, 256), "fp16", "B")
    l0c = core.allocate("L0C", (2, piece * 256), "fp32", "C")
    ub = core.allocate("UB", (2, piece * 256), "fp16", "C in UB")
    out = core.allocate("UB", (2, piece * 256), "fp16", "y in UB") if fused else ub
    in_a = Ring(core, MTE2, MTE1, plan=uses_of(range(tiles), 2))
    loads = Ring(core, MTE1, M, plan=uses_of(range(tiles * steps), 2))
    sums = Ring(core, M, V, plan=uses_of(range(tiles), 2))
    done = Ring(core, V, MTE3, plan=uses_of(range(tiles), 2))
    core.copy(l1_b.reshape(*b.shape), b)
    ordered(core, MTE2, MTE1, 2)
    for tile in range(tiles):
        with in_a.write() as slot:
            part = a[tile * _ROWS : (tile + 1) * _ROWS]
            core.copy(l1_a[slot].reshape(*part.shape), part)
        with together(in_a.read(), sums.write()) as (slot, c):
            for step in range(steps):
                with loads.write() as l0:
                    for row in range(_ROWS):
                        first = row * k1 + step * _DEPTH
                        core.load(
                            l0a[l0, row * _DEPTH : (row + 1) * _DEPTH],
                            l1_a[slot, first : first + _DEPTH],
                        )
                    core.load(l0b[l0], l1_b[step * _DEPTH * n1 : (step + 1) * _DEPTH * n1])
                with loads.read() as l0:
                    init = "accumulate" if step else "zero"
                    if step and products_need_barrier(_ROWS, n1):
                        core.pipe_barrier(M)
                    m, k = 16 * _ROWS, 16 * _DEPTH
                    core.mmad(l0c[c], l0a[l0], l0b[l0], m=m, k=k, n=16 * n1, init=init)
        adding = sums.read()
        c = adding.begin()
        with done.write() as store:
            core.pipe_barrier(V)
            core.matrix_out(ub[store], l0c[c], m=16 * _ROWS, n=16 * n1)
            adding.end()
            if fused:
                core.pipe_barrier(V)
                fast_gelu(core, out[store], ub[store])
        with done.read() as store:
            core.copy(y[tile], out[store].reshape(*y.shape[1:]))


def _needs(size: tuple[int, ...]) -> SimulationCost:
    m, k, n = size
    tiles, steps = ceil_div(m, 16 * _ROWS), ceil_div(k, 16 * _DEPTH)
    return SimulationCost(tiles * (12 * steps + 60) + 20, 16 * (m * k + k * n + m * n), m * k * n)


CASE = CaseStudy(
    name="matmul",
    title="matrix product with FastGeLU",
    sizes=("M", "K", "N"),
    size=(1024, 512, 128),
    chip="ascend910",
    metric="MTE-GM",
    steps=(
        CaseStep("baseline", "The product is stored, and a second operator loads it for FastGeLU."),
        CaseStep("OP", "FastGeLU is applied before the product is stored."),
    ),
    make=_make,
    section="§5.4 and Table 1",
    needs=_needs,
)

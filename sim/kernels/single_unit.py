"""The kernels of single units in Tang 2024, Table 2.4: repeated transfers or computations.

The measured instructions stand between two barriers. The operands are loaded before them, and the
result is stored after them, so that it can be compared.

References
----------
Tang 2024, Table 2.4.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from vitruvian.common.validate import ceil_div
from vitruvian.golden import vector
from vitruvian.sim.davinci import Chip, Core, Program, View
from vitruvian.sim.kernels.kernel import (
    Kernel,
    KernelInstance,
    SimulationCost,
    cores_of,
    matrix_cores,
    vector_cores,
)
from vitruvian.sim.kernels.layout import pack_a, pack_b, unpack_c
from vitruvian.sim.kernels.matmul import expected

#: Rows and columns of the matrices of the kernels for MTE1, the Cube and L0C.
_SIDE = 128

Body = Callable[[Core, int, dict[str, View]], None]


def _needs(
    chip: Chip, cores: int | None, each: int, elements: int, products: int = 0
) -> SimulationCost:
    """Return the cost of a kernel whose cores all do the same, from the cost of one core.

    Parameters
    ----------
    each, elements, products : int
        Instructions, elements of data, and multiply-accumulates of a core.
    """
    count = max(kind.count for kind in chip.kinds.values()) if cores is None else cores
    return SimulationCost(count * each, count * 24 * elements, count * products)


def _matrix(title: str, name: str, body: Body, out: str = "fp16", identity: str = "") -> Kernel:
    """Return a kernel around one product of two matrices.

    Parameters
    ----------
    body : callable
        Emits the measured instructions.
    out : {"fp16", "fp32"}
        The dtype of the result.
    identity : {"", "a", "b"}
        The operand that is the identity matrix, so that the result shows the other operand.
    """

    def make(
        size: tuple[int, ...], chip: Chip, cores: int | None, seed: int | None
    ) -> KernelInstance:
        times = size[0]
        program = Program(chip, f"{name} × {times}")
        # What measures the path from L0C to UB needs both in one core.
        some = (cores_of if name.startswith("cc2ub") else matrix_cores)(program, cores)
        rng = np.random.default_rng(seed)
        references, views = {}, {}
        for core in some:
            a, b = (rng.normal(size=(_SIDE, _SIDE)).astype(np.float16) for _ in "ab")
            eye = np.eye(_SIDE, dtype=np.float16)
            a, b = (eye if identity == "a" else a), (eye if identity == "b" else b)
            c = core.index
            data = (None, None) if seed is None else (pack_a(a), pack_b(b))
            x = program.tensor(f"a{c}", (8, 8, 16, 16), "fp16", data[0])
            w = program.tensor(f"b{c}", (8, 8, 16, 16), "fp16", data[1])
            y = program.tensor(f"c{c}", (8, 8, 16, 16), out)
            v = {
                "a1": core.allocate("L1", x.shape, "fp16", "a1"),
                "b1": core.allocate("L1", w.shape, "fp16", "b1"),
                "a": core.allocate("L0A", x.shape, "fp16", "a"),
                "b": core.allocate("L0B", w.shape, "fp16", "b"),
                "c": core.allocate("L0C", y.shape, "fp32", "c"),
                "x": x,
                "y": y,
            }
            if "UB" in core.kind.buffers:
                v["u"] = core.allocate("UB", y.shape, out, "u")
            _around(core, v, w, body, name, times)
            references[f"c{c}"] = partial(expected, a, b, out)
            views[f"c{c}"] = lambda z: unpack_c(z, _SIDE, _SIDE)
        return KernelInstance(program, references, views)

    def needs(size: tuple[int, ...], chip: Chip, cores: int | None) -> SimulationCost:
        times = size[0] + 1 if name == "cube" else 1
        return _needs(chip, cores, size[0] + 12, 3 * _SIDE**2, times * _SIDE**3)

    return Kernel(name, title, ("times",), (16,), make, needs)


def _around(core: Core, v: dict[str, View], w: View, body: Body, name: str, times: int) -> None:
    """Emit the loads of the operands, the measured instructions, and the store of the result."""
    core.copy(v["a1"], v["x"])
    core.copy(v["b1"], w)
    core.pipe_barrier()
    core.load(v["a"], v["a1"])
    core.load(v["b"], v["b1"])
    core.pipe_barrier()
    if name.startswith("cc2ub"):
        core.mmad(v["c"], v["a"], v["b"], m=_SIDE, k=_SIDE, n=_SIDE, init="zero")
        core.pipe_barrier()
    body(core, times, v)
    core.pipe_barrier()
    # A kernel that measures loads computes its product afterwards, so that the loads show in C.
    if name not in ("cube", "cc2ub", "cc2ub+cast"):
        core.mmad(v["c"], v["a"], v["b"], m=_SIDE, k=_SIDE, n=_SIDE, init="zero")
        core.pipe_barrier()
    if "u" not in v:
        # FIX of a Cube core has no buffer on its way.
        core.matrix_out(v["y"], v["c"], m=_SIDE, n=_SIDE)
        return
    if not name.startswith("cc2ub"):
        core.matrix_out(v["u"], v["c"], m=_SIDE, n=_SIDE)
        core.pipe_barrier()
    core.copy(v["y"], v["u"])


def _mte1a(core: Core, times: int, v: dict[str, View]) -> None:
    for _ in range(times):
        core.load(v["a"], v["a1"])


def _mte1b(core: Core, times: int, v: dict[str, View]) -> None:
    for _ in range(times):
        core.load(v["b"], v["b1"])


def _cube(core: Core, times: int, v: dict[str, View]) -> None:
    for _ in range(times):
        core.mmad(v["c"], v["a"], v["b"], m=_SIDE, k=_SIDE, n=_SIDE, init="zero")


def _cc2ub(core: Core, times: int, v: dict[str, View]) -> None:
    for _ in range(times):
        core.matrix_out(v["u"], v["c"], m=_SIDE, n=_SIDE)


#: Instructions per repetition, by the direction of the transfers.
_TRANSFERS = {"in": 1, "out": 1, "both": 2, "in then out": 4}


def _transfers(title: str, name: str, way: str) -> Kernel:
    """Return a kernel GM → L1 → UB → GM that repeats the transfers from or to global memory.

    Parameters
    ----------
    way : {"in", "out", "both", "in then out"}
        The direction of the repeated transfers.
    """

    def make(
        size: tuple[int, ...], chip: Chip, cores: int | None, seed: int | None
    ) -> KernelInstance:
        times, kib = size
        if kib > 64:
            raise ValueError(f"size of {name} must be at most 64 KiB a transfer, not {kib}")
        program = Program(chip, f"{name} × {times} of {kib} KiB")
        some = cores_of(program, cores)
        rng = np.random.default_rng(seed)
        references = {}
        for core in some:
            data = rng.normal(size=kib * 512).astype(np.float16)
            start = None if seed is None else data
            x = program.tensor(f"x{core.index}", data.shape, "fp16", start)
            y = program.tensor(f"y{core.index}", data.shape, "fp16")
            far = core.allocate("L1", data.shape, "fp16", "far")
            back = core.allocate("L1", data.shape, "fp16", "back")
            near = core.allocate("UB", data.shape, "fp16", "near")
            core.copy(far, x)
            core.pipe_barrier()
            core.copy(near, far)
            core.pipe_barrier()
            for _ in range(times):
                if way != "out":
                    core.copy(back, x)
                # The barriers keep the two directions from overlapping, as they do in "both".
                if way == "in then out":
                    core.pipe_barrier()
                if way != "in":
                    core.copy(y, near)
                if way == "in then out":
                    core.pipe_barrier()
            core.pipe_barrier()
            # The last transfer in must reach y, or the result would not depend on it.
            if way == "in":
                core.copy(near, back)
                core.pipe_barrier()
                core.copy(y, near)
            references[f"y{core.index}"] = data
        return KernelInstance(program, references)

    def needs(size: tuple[int, ...], chip: Chip, cores: int | None) -> SimulationCost:
        return _needs(chip, cores, size[0] * _TRANSFERS[way] + 9, min(size[1], 64) * 512)

    return Kernel(name, title, ("times", "KiB"), (16, 16), make, needs)


def _lanes(title: str, name: str, dtype: str, apply: Callable, golden: Callable) -> Kernel:
    """Return a kernel that repeats a vector operation on the same operands in UB.

    Parameters
    ----------
    dtype : {"fp16", "int16"}
    apply : callable
        Emits the operation: (core, result, first operand, second operand).
    golden : callable
        Computes the expected result from the operands.
    """

    def make(
        size: tuple[int, ...], chip: Chip, cores: int | None, seed: int | None
    ) -> KernelInstance:
        times, count = size
        program = Program(chip, f"{name} × {times} of {count}")
        some = vector_cores(program, cores)
        rng = np.random.default_rng(seed)
        references = {}
        for core in some:
            c = core.index
            u0, u1, u2 = (core.allocate("UB", (count,), dtype, n) for n in ("a", "b", "y"))
            data = _operands(dtype, count, rng) if seed is not None else (None, None)
            x0, x1 = (
                program.tensor(f"{n}{c}", (count,), dtype, d)
                for n, d in zip("ab", data, strict=True)
            )
            y = program.tensor(f"y{c}", (count,), dtype)
            core.copy(u0, x0)
            core.copy(u1, x1)
            core.pipe_barrier()
            for _ in range(times):
                apply(core, u2, u0, u1)
            core.pipe_barrier()
            core.copy(y, u2)
            references[f"y{c}"] = partial(golden, *data)
        return KernelInstance(program, references)

    def needs(size: tuple[int, ...], chip: Chip, cores: int | None) -> SimulationCost:
        repeats = ceil_div(size[1], 128)
        # An instruction has at most 255 repeats, and a partial repeat needs a mask of its own.
        each = repeats // 255 + 2 if repeats > 255 or size[1] % 128 else 1
        return _needs(chip, cores, size[0] * each + 7, 3 * size[1])

    return Kernel(name, title, ("times", "elements"), (16, 4096), make, needs)


def _operands(dtype: str, count: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    if dtype == "fp16":
        return tuple(rng.normal(0, 100, count).astype(np.float16) for _ in "ab")
    return tuple(rng.integers(-(1 << 15), 1 << 15, count, np.int16) for _ in "ab")


KERNELS = (
    _matrix("L1 to L0A", "mte1A", _mte1a, identity="b"),
    _matrix("L1 to L0B", "mte1B", _mte1b, identity="a"),
    _transfers("global memory to L1", "mte2", "in"),
    _transfers("UB to global memory", "mte3", "out"),
    _transfers("in and out, one after the other", "mte2+3Seq", "in then out"),
    _transfers("in and out at once", "mte2+3Con", "both"),
    _matrix("one product on the Cube", "cube", _cube),
    _matrix("L0C to UB", "cc2ub", _cc2ub, "fp32"),
    _matrix("L0C to UB, FP32 to FP16", "cc2ub+cast", _cc2ub, "fp16"),
    _lanes("ReLU", "relu", "fp16", lambda k, y, a, _: k.vrelu(y, a), lambda a, _: vector.relu(a)),
    _lanes("addition", "vadd", "fp16", lambda k, y, a, b: k.vadd(y, a, b), vector.add),
    _lanes(
        "bits inverted",
        "vnot",
        "int16",
        lambda k, y, a, _: k.vnot(y, a),
        lambda a, _: vector.bitwise_not(a),
    ),
    _lanes("the larger of two", "vmax", "fp16", lambda k, y, a, b: k.vmax(y, a, b), vector.maximum),
)

"""Dots of Triton's kernels in its interpreter, against the products of a machine."""

# Triton is optional, and its types are unknown where it is not installed.
# pyright: basic, reportMissingImports=false

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

os.environ["TRITON_INTERPRET"] = "1"
triton: Any = pytest.importorskip("triton", reason="the extra vitruvian[triton] is not installed")
import triton.language as tl  # noqa: E402  (after the check)
from triton.runtime import interpreter  # noqa: E402

from tests.support.measured import FOLDER  # noqa: E402
from vitruvian import functions, gemm, machines, reductions  # noqa: E402
from vitruvian.common.errors import UserError  # noqa: E402
from vitruvian.flows.probes.library_operands import rows, sampled  # noqa: E402
from vitruvian.golden.triton import lower, multiply, multiply_scaled  # noqa: E402
from vitruvian.triton import arithmetic, wrap  # noqa: E402

RNG = np.random.default_rng(36)


@triton.jit
def product(
    a, b, d, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
    ADDED: tl.constexpr, IMPRECISE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    row, column, term = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        x = tl.load(a + row * k + (start + term)[None, :])
        y = tl.load(b + column * k + (start + term)[:, None])
        if ADDED:
            total += tl.dot(x, y, max_num_imprecise_acc=IMPRECISE, input_precision=PRECISION)
        else:
            total = tl.dot(x, y, total, max_num_imprecise_acc=IMPRECISE, input_precision=PRECISION)
    tl.store(d + row * N + column, total)


@triton.jit
def widened(a, b, d, M: tl.constexpr, K: tl.constexpr, TURNED: tl.constexpr):
    row, term = tl.arange(0, M)[:, None], tl.arange(0, K)
    x = tl.load(a + row * K + term[None, :]).to(tl.float16) * 0.5
    if TURNED:
        y = tl.load(b + row * K + term[None, :]).T
    else:
        y = tl.load(b + tl.arange(0, M)[None, :] * K + term[:, None])
    tl.store(d + row * M + tl.arange(0, M)[None, :], tl.dot(x, y.to(tl.float16)))


@triton.jit
def twice(a, d, e, M: tl.constexpr):
    at = tl.arange(0, M)[:, None] * M + tl.arange(0, M)[None, :]
    x = tl.load(a + at)
    p = tl.dot(x, x)
    tl.store(d + at, p + tl.load(d + at))
    tl.store(e + at, p)


@triton.jit
def integers(a, b, d, M: tl.constexpr, K: tl.constexpr):
    row, term = tl.arange(0, M)[:, None], tl.arange(0, K)
    x = tl.load(a + row * K + term[None, :])
    y = tl.load(b + tl.arange(0, M)[None, :] * K + term[:, None])
    tl.store(d + row * M + tl.arange(0, M)[None, :], tl.dot(x, y))


@triton.jit
def scaled(a, b, s, t, d, M: tl.constexpr, K: tl.constexpr):
    row, column, term = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :], tl.arange(0, K)
    x = tl.load(a + row * K + term[None, :])
    y = tl.load(b + column * K + term[:, None])
    block = tl.arange(0, K // 32)[None, :]
    p, q = tl.load(s + row * (K // 32) + block), tl.load(t + row * (K // 32) + block)
    tl.store(d + row * M + column, tl.dot_scaled(x, p, "e4m3", y, q, "e4m3"))


def run(
    a: np.ndarray,
    w: np.ndarray,
    tile: int,
    depth: int,
    added: bool = False,
    imprecise: int | None = None,
    precision: str | None = None,
    **launch: Any,
) -> np.ndarray:
    """Return A·Wᵀ by the kernel, as codes of FP32."""
    d = np.zeros((tile, tile), np.float32)
    more = (a.shape[1], tile, tile, depth, added, imprecise, precision)
    product[(1,)](*map(wrap, (a, w, d)), *more, **launch)
    return d.view(np.uint32)


A, W = (RNG.standard_normal((64, 128)).astype(np.float16) for _ in range(2))


@pytest.mark.parametrize("machine", ["a100", "ada", "h100", "b200", "cdna3"])
@pytest.mark.parametrize("added", [False, True])
def test_a_kernel_has_the_bits_of_the_machine(machine, added):
    with arithmetic(machine=machine) as dots:
        d = run(A, W, 64, 32, added)
    assert np.array_equal(d.view(np.float32), gemm(A, W.T, machine=machine))
    assert list(dots.values()) == [4] and machine in str(*dots)
    assert not np.array_equal(d, run(A, W, 64, 32, added))  # the interpreter's own


with np.load(FOLDER / "triton.npz") as file:
    CALLS = json.loads(file["header"].tobytes())["calls"]
    NARROW = file["samples"][:, 0]


@pytest.mark.parametrize("number", [1, 2, 4, 10, 12, 25, 26, 33, 37])
def test_kernels_have_the_bits_that_an_h200_returned(number):
    call = CALLS[number]
    kinds = {"e4m3": ml_dtypes.float8_e4m3fn, "fp16": np.float16, "fp32": np.float32}
    kinds |= {"bf16": ml_dtypes.bfloat16}
    size = call["m"]
    a, w = (
        rows(call["a"], np.arange(size), call["k"], "narrow", x).view(kinds[call["a"]])
        for x in ("a", "b")
    )
    options = (call["bk"], bool(call["how"]), call["imprecise"], call["precision"])
    with arithmetic(machine="h200") as dots:
        d = run(a, w, size, *options)
    assert [dot.evidence for dot in dots] == ["measured"]
    assert np.array_equal(d[sampled(call["number"], size, size, 192)], NARROW[number])


def test_warps_of_the_launch_or_of_the_context_choose_the_instruction():
    a, w = (rows("e4m3", np.arange(64), 64, "wide", x) for x in ("a", "b"))
    a, w = (x.view(ml_dtypes.float8_e4m3fn) for x in (a, w))
    with arithmetic(machine="h200") as wide:
        d = run(a, w, 64, 64)
    with arithmetic(machine="h200", num_warps=2) as narrow:
        e = run(a, w, 64, 64)
        assert np.array_equal(run(a, w, 64, 64, num_warps=4), d)
    assert [dot.rule for dot in wide] == ["h200_wgmma_e4m3_fp32"]
    assert [dot.rule for dot in narrow] == ["h200_mma_fp16_fp32", "h200_wgmma_e4m3_fp32"]
    assert not np.array_equal(d, e)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    "types", [("int8", "float16"), ("float16", "int8"), ("float16", "float16")]
)
def test_loads_of_fewer_bits_change_the_order_of_k(types, turned):
    a, b = (RNG.integers(-99, 99, (16, 64)).astype(t) for t in types)
    d = np.zeros((16, 16), np.float32)
    with arithmetic(machine="a100"):
        widened[(1,)](*map(wrap, (a, b, d)), 16, 64, turned)
    x, y = ((v.astype(np.float16) * s).astype(np.float16) for v, s in ((a, 0.5), (b, 1)))
    dot = lower("a100", "fp16", (16, 16, 64), loaded=8 if "int8" in types else None)
    zero = np.zeros((16, 16), np.uint32)
    expected = multiply(x.view(np.uint16), np.ascontiguousarray(y.T).view(np.uint16), zero, dot)
    assert np.array_equal(d.view(np.uint32), expected)


def test_a_dot_that_is_used_twice_is_not_joined():
    d, e = np.ones((16, 16), np.float32), np.zeros((16, 16), np.float32)
    with pytest.raises(UserError, match="must be used once"), arithmetic(machine="h100"):
        twice[(1,)](*map(wrap, (A[:16, :16].copy(), d, e)), 16)
    assert not vars(interpreter.interpreter_builder).get("create_dot")  # the context has ended


def test_integers_are_exact():
    a, b = (RNG.integers(-128, 128, (64, 64)).astype(np.int8) for _ in range(2))
    d = np.zeros((64, 64), np.int32)
    with arithmetic(machine="h100"):
        integers[(1,)](*map(wrap, (a, b, d)), 64, 64)
    assert np.array_equal(d, a.astype(int) @ b.T.astype(int))


def test_scales_are_those_of_the_machine():
    if triton.__version__ < "3.7":
        pytest.skip("this version's interpreter has no tl.dot_scaled")
    x, y = (rows("e4m3", np.arange(128), 128, "narrow", v) for v in ("a", "b"))
    s, t = (RNG.integers(120, 134, (128, 4)).astype(np.uint8) for _ in range(2))
    zero = np.zeros((128, 128), np.float32)
    for machine in ("b200", "h200"):
        d = zero.copy()
        typed = [v.view(ml_dtypes.float8_e4m3fn) for v in (x, y)]
        with arithmetic(machine=machine):
            scaled[(1,)](*map(wrap, (*typed, s, t, d)), 128, 128)
        expected, _ = multiply_scaled(
            *(machine, x, y.T, zero.view(np.uint32)),
            formats=("e4m3", "e4m3"), scale_a=s, scale_b=t.T,
        )  # fmt: skip
        assert np.array_equal(d.view(np.uint32), expected)
        if machine == "b200":
            rule = "b200_mxf8f6f4_e4m3_fp32"
            z = machines.multiply(x, y.T, machine=rule, scale_a=s, scale_b=t.T)
            assert np.array_equal(d.view(np.uint32), z)


def test_contexts_nest_and_end():
    before = interpreter.GridExecutor.__call__, interpreter.interpreter_builder.options
    with arithmetic(machine="h100"):
        with arithmetic(machine="a100"):
            d = run(A, W, 64, 32)
        assert not np.array_equal(run(A, W, 64, 32), d)
    assert before == (interpreter.GridExecutor.__call__, interpreter.interpreter_builder.options)
    assert not [n for n in vars(interpreter.interpreter_builder) if n.startswith("create_")]


def test_what_is_not_known_is_refused(monkeypatch):
    with pytest.raises(UserError, match="machine must be one that Triton has dots for"):
        arithmetic(machine="v100")
    with pytest.raises(ValueError, match="num_warps"):
        arithmetic(machine="h100", num_warps=0)
    single = A.astype(np.float32)
    message = "input_precision must be ieee on cdna3"
    with pytest.raises(UserError, match=message), arithmetic(machine="cdna3"):
        run(single, single, 64, 32, precision="tf32")
    with pytest.raises(TypeError, match="array must be of"):
        wrap(np.zeros(2, complex))
    with monkeypatch.context() as patch:
        patch.setattr(triton, "__version__", "3.9.0")
        with pytest.raises(UserError, match=r"not 3\.9\.0: its version is not supported"):
            arithmetic(machine="h100").__enter__()
    with monkeypatch.context() as patch:
        patch.setattr(interpreter.InterpreterBuilder, "create_dot", lambda self, a, b: None)
        with pytest.raises(UserError, match="create_dot has other parameters"):
            arithmetic(machine="h100").__enter__()
    monkeypatch.setenv("TRITON_INTERPRET", "0")
    with pytest.raises(UserError, match="TRITON_INTERPRET must be 1"):
        arithmetic(machine="h100").__enter__()


def test_tensors_of_pytorch_are_arguments():
    torch: Any = pytest.importorskip("torch", reason="the extra vitruvian[torch] is not installed")
    a, w = map(torch.from_numpy, (A, W))
    d = torch.zeros(64, 64)
    with arithmetic(machine="h100"):
        product[(1,)](a, w, d, 128, 64, 64, 32, False, None, None)
    assert np.array_equal(d.numpy(), gemm(A, W.T, machine="h100"))


def test_instructions_are_those_of_the_compiler():
    script = Path(__file__).parents[3] / "benchmarks" / "triton_instructions.py"
    command = [sys.executable, str(script), "--every", "97"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-500:]
    assert ", 0 differ" in done.stdout


def test_the_example_and_the_times_of_it(capsys, monkeypatch):
    from benchmarks import triton_overhead
    from examples import triton_matmul

    assert triton_matmul.main() == 0
    assert "4 different products" in capsys.readouterr().out
    monkeypatch.setattr(triton_matmul, "RULES", 4)  # a machine whose bits were not its own
    assert triton_matmul.main() == 1
    monkeypatch.setattr(sys, "argv", ["triton_overhead", "--size", "64", "--repeats", "1"])
    capsys.readouterr()
    triton_overhead.main()
    assert len(capsys.readouterr().out.splitlines()) == 6


@triton.jit
def softmax(x, y, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    row = tl.load(x + at).to(tl.float32)
    powers = tl.exp(row - tl.max(row, axis=0))
    tl.store(y + at, powers / tl.sum(powers, axis=0))


@triton.jit
def others(x, y, N: tl.constexpr):
    at = tl.arange(0, N)
    a = tl.load(x + at)
    tl.store(y + at, tl.exp2(a))
    tl.store(y + N + at, tl.log(a))
    tl.store(y + 2 * N + at, tl.erf(a))
    tl.store(y + 3 * N + at, tl.sqrt(a))
    tl.store(y + 4 * N + at, tl.rsqrt(a))
    column = tl.arange(0, N // 4)
    total = tl.sum(tl.load(x + tl.arange(0, 4)[:, None] * (N // 4) + column), 0, keep_dims=True)
    tl.store(y + 5 * N + column[None, :], total)


@pytest.mark.parametrize(("dtype", "warps"), [(np.float32, 4), (np.float16, 2)])
def test_a_softmax_has_the_functions_and_sums_of_an_h100(dtype, warps):
    x = RNG.standard_normal((3, 2048)).astype(dtype)
    y = np.zeros((3, 2048), np.float32)
    with arithmetic(machine="h100", assume=True):
        softmax[(3,)](wrap(x), wrap(y), 2048, num_warps=warps)
    wide = x.astype(np.float32)
    powers = functions.cuda("__expf", wide - wide.max(axis=1, keepdims=True))
    each = 16 // x.itemsize
    pairs = triton.__version__.split(".")[:2] >= ["3", "8"]
    order = reductions.TileOrder(each=each, lanes=32, warps=warps, pairs=pairs)
    total = reductions.add_tile(powers, order)
    assert np.array_equal(y, functions.divide_full(powers, total[:, None]))
    plain = np.zeros_like(y)
    with arithmetic(machine="b200", assume=True):  # its functions were not measured
        softmax[(3,)](wrap(x), wrap(plain), 2048, num_warps=warps)
    assert (plain != y).any()
    np.testing.assert_allclose(plain, y, rtol=1e-5)


def test_functions_of_an_h200_are_its_instructions():
    x = RNG.uniform(0.001, 9, 256).astype(np.float32)
    y = np.zeros((6, 256), np.float32)
    with arithmetic(machine="h200"):
        others[(1,)](wrap(x), wrap(y), 256)
    approximate = {0: "ex2", 3: "sqrt", 4: "rsqrt"}
    for row, name in approximate.items():
        assert np.array_equal(y[row], functions.compute(f"{name}.approx.ftz.f32", x)), name
    assert np.array_equal(y[1], functions.cuda("logf", x))
    assert np.array_equal(y[2], functions.cuda("erff", x))
    np.testing.assert_allclose(y[5, :64], x.reshape(4, 64).sum(0), rtol=1e-6)

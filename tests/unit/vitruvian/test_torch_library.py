"""Products of PyTorch by plans: recorded bits of an H200, gradients, refusals, the report."""

# pyright: basic, reportMissingImports=false, reportInvalidTypeForm=false

import sys
import types
from inspect import signature
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra vitruvian[torch] is not installed")

from torch.nn import functional as F  # noqa: E402

from tests.support.library_plans import call_of, record, samples  # noqa: E402
from tests.unit.vitruvian.test_torch import operators  # noqa: E402
from vitruvian import functions, machines, plans, reductions  # noqa: E402
from vitruvian.common.errors import UserError  # noqa: E402
from vitruvian.flows.probes import library_operands  # noqa: E402
from vitruvian.torch import library  # noqa: E402
from vitruvian.torch_library import PRODUCTS  # noqa: E402
from vitruvian.torch_operators import REFUSED, classify  # noqa: E402

DTYPES = {
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "fp32": torch.float32,
    "tf32": torch.float32,
    "fp64": torch.float64,
    "e4m3": torch.float8_e4m3fn,
    "e5m2": torch.float8_e5m2,
}
CALLS = record()["calls"]


def smallest() -> dict[str, int]:
    """Return the smallest recorded call with a plan of each operation, by a name."""
    found: dict[str, int] = {}
    for number, call in enumerate(CALLS):
        if call["plan"] is None or call["op"] == "bmm" or call["k"] < 128:
            continue
        more = "fast" if call.get("fast") else "", call.get("scales") or ""
        name = " ".join((call["op"], call["a"], call["layout"], *more))
        size = call["m"] * call["k"] * call["n"]
        best = found.get(name)
        if best is None or size < CALLS[best]["m"] * CALLS[best]["k"] * CALLS[best]["n"]:
            found[name] = number
    return found


SMALLEST = smallest()


def tensor(codes: np.ndarray, name: str) -> torch.Tensor:
    """Return codes as a tensor of a type."""
    integers = {1: np.uint8, 2: np.int16, 4: np.int32, 8: np.int64}[codes.itemsize]
    return torch.from_numpy(np.ascontiguousarray(codes).view(integers)).view(DTYPES[name])


def operands(call, kind: str) -> tuple[torch.Tensor, torch.Tensor]:
    a = library_operands.rows(call.a, np.arange(call.m), call.k, kind, "a")
    b = library_operands.rows(call.b, np.arange(call.n), call.k, kind, "b")
    x, y = tensor(a, call.a), tensor(b, call.b).t()
    if call.layout[0] == "t":
        x = x.t().contiguous().t()
    return x, (y if call.layout[1] == "t" else y.contiguous())


def compute(call, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return what PyTorch's function returns for a recorded call."""
    if call.op == "mm32":
        return torch.mm(x, y, out_dtype=torch.float32)
    if call.op == "mm":
        return x @ y
    if call.op == "linear":
        name = call.a if call.a == "tf32" else call.output
        bias = library_operands.rows(name, np.array([0]), call.n, "narrow", "bias")[0]
        return F.linear(x, y.t(), tensor(bias, name))
    rows, columns = {
        "tensor": (np.zeros(1, int), np.zeros(1, int)),
        "row": (np.arange(call.m), np.arange(call.n)),
        "block": (np.arange(call.m * (call.k // 128)), np.arange(call.n // 128 * (call.k // 128))),
    }[call.scales]
    first, second = (
        torch.from_numpy(library_operands.scales(places, name))
        for places, name in ((rows, "scale_a"), (columns, "scale_b"))
    )
    if call.scales == "row":
        first, second = first[:, None], second[None]
    if call.scales == "block":
        first = first.reshape(call.m, -1)
        second = second.reshape(-1, call.n // 128)
    dtype = DTYPES[call.output]
    return torch._scaled_mm(x, y, first, second, out_dtype=dtype, use_fast_accum=call.fast)


@pytest.fixture
def tf32():
    before = torch.backends.cuda.matmul.allow_tf32
    yield lambda on: setattr(torch.backends.cuda.matmul, "allow_tf32", on)
    torch.backends.cuda.matmul.allow_tf32 = before


@pytest.mark.parametrize("name", SMALLEST)
def test_calls_return_the_bits_that_the_gpu_did(name, tf32):
    number = SMALLEST[name]
    call = call_of(CALLS[number])
    tf32(call.a == "tf32")
    rows, columns = library_operands.sampled(number, call.m, call.n, 192)
    for kind, measured in samples(CALLS[number]).items():
        x, y = operands(call, kind)
        with library() as context:
            d = compute(call, x, y)
        (explained,) = context.calls
        assert explained.evidence == "measured" and explained.call == str(call)
        size = measured.itemsize
        integers = {2: torch.int16, 4: torch.int32, 8: torch.int64}[size]
        found = d.view(integers).numpy().view(f"u{size}")[rows, columns]
        assert np.array_equal(found[: len(measured)], measured)


def test_gradients_are_such_products_too():
    x, w = (torch.randn(128, 128, dtype=torch.bfloat16, requires_grad=True) for _ in "xw")
    with library(assume=True) as context:
        (x @ w.t()).backward(torch.ones(128, 128, dtype=torch.bfloat16))
    assert [call.call.split()[3] for call in context.calls] == ["nt", "tn", "nn"]
    plan = plans.find(
        plans.LibraryCall(op="mm", a="bf16", b="bf16", m=128, k=128, n=128, output="bf16")
    )
    ones = np.full((128, 128), 0x3F80, np.uint16)
    codes = w.detach().view(torch.int16).numpy().view(np.uint16)
    expected = plans.multiply(ones, codes, plan=plan)
    assert np.array_equal(x.grad.view(torch.int16).numpy().view(np.uint16), expected)


def test_every_operator_that_multiplies_is_replaced_or_refused():
    context, number = library(), torch.ones(1)
    replaced = set()
    for operator in operators():
        if classify(operator) not in REFUSED:
            continue
        name = operator._schema.name
        if name in PRODUCTS:
            replaced.add(name)
            arguments = [a for a in operator._schema.arguments if not a.is_out]
            given = [None for a in arguments if not a.kwarg_only]
            named = {a.name: None for a in arguments if a.kwarg_only}
            signature(PRODUCTS[name]).bind(context, *given, **named)
        else:
            with pytest.raises(UserError, match=name):
                context.__torch_dispatch__(operator, (), (number,))
    assert replaced == set(PRODUCTS)


HALF = torch.ones(128, 128, dtype=torch.float16)
FP8 = torch.ones(256, 256, dtype=torch.float8_e4m3fn)
ONE = torch.ones(())


@pytest.mark.parametrize(
    ("compute", "message"),
    [
        (lambda: HALF @ HALF[0], "aten::mv: cuBLAS computes it by kernels"),
        (lambda: HALF[:3, :7] @ HALF[:7, :9], "such as mm fp16 .* not mm fp16 3×7×9 nn to fp16"),
        (lambda: torch.addmm(HALF, HALF, HALF), "aten::addmm with a matrix C"),
        (lambda: F.conv1d(HALF[None], HALF[:, :, None]), "aten::convolution: cuDNN"),
        (lambda: F.scaled_dot_product_attention(*[HALF[None, None]] * 3), "sdpa_kernel"),
        (lambda: torch.ops.aten._weight_int8pack_mm(HALF, HALF.to(torch.int8), ONE), "int8pack"),
        (lambda: torch._scaled_mm(FP8, FP8, ONE, ONE), "B columns, of adjacent elements"),
        (lambda: torch._scaled_mm(FP8[:, :40], FP8[:, :40].t(), ONE, ONE), "multiples of 16"),
        (lambda: torch._scaled_mm(FP8, FP8.t(), ONE, ONE.half()), "factors must be float32"),
        (lambda: torch._scaled_mm(FP8, FP8.t(), ONE, torch.ones(3)), "factors must be one each"),
        (lambda: torch._scaled_mm(HALF, HALF.t(), ONE, ONE), "must be of 8 bits"),
        (
            lambda: torch._scaled_mm(FP8, FP8.t(), ONE, ONE, bias=torch.ones(256)),
            "bias must have N elements",
        ),
    ],
)
def test_what_has_no_plan_is_refused_by_name(compute, message):
    with library(), pytest.raises(UserError, match=message):
        compute()


def test_integers_are_exact():
    x = torch.randint(-128, 127, (32, 64), dtype=torch.int8)
    with library() as context:
        d = torch._int_mm(x, x.t())
        assert torch.equal(torch.mm(x.int(), x.int().t()), d)
    assert [call.evidence for call in context.calls] == ["exact"]


def test_a_matrix_is_added_to_the_sum_before_it_is_rounded():
    c, x = torch.randn(128, 128).half(), torch.randn(128, 128).half()
    with library(assume=True) as context:
        d = torch.addmm(c, x, x.t(), beta=2, alpha=3)
        wide = torch.mm(x, x.t(), out_dtype=torch.float32)
    assert torch.equal(d, (3 * wide + 2 * c.float()).half())
    added, _ = context.calls
    assert added.evidence == "derived" and any("alpha" in doubt for doubt in added.uncertain)
    assert not torch.equal(d, 3 * wide.half() + 2 * c)


def test_a_convolution_is_a_product_of_patches_if_that_is_assumed():
    x, w = torch.randn(2, 16, 9, 9).half(), torch.randn(32, 16, 3, 3).half()
    with library(assume=True) as context:
        d = F.conv2d(x, w, padding=1)
    (call,) = context.calls
    assert call.call.startswith("mm fp16 162×144×32 ") and call.evidence == "assumed"
    exact = F.conv2d(x.double(), w.double(), padding=1)
    assert (d.double() - exact).abs().max() <= exact.abs().max() * 2**-11


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_gradients_of_a_convolution_are_products_of_patches(dimensions):
    image, size = (9, 8, 7)[:dimensions], (3, 2, 3)[:dimensions]
    x = torch.randn(2, 8, *image).requires_grad_()
    w = torch.randn(12, 4, *size).requires_grad_()
    bias = torch.randn(12).requires_grad_()
    more = {"stride": 2, "padding": 1, "dilation": 2, "groups": 2}
    compute = (F.conv1d, F.conv2d, F.conv3d)[dimensions - 1]
    y = compute(x, w, bias, **more)
    exact = torch.autograd.grad(y.square().sum(), (x, w, bias))
    with library(assume=True) as context:
        y = compute(x, w, bias, **more)
        got = torch.autograd.grad(y.square().sum(), (x, w, bias))
    for ours, theirs in zip(got, exact, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-3)
    assert {call.operator for call in context.calls} >= {"aten::convolution_backward"}
    outs = tuple(torch.empty(0) for _ in range(3))
    parts = (torch.ones(1, 2, 3), torch.ones(1, 2, 3), torch.ones(2, 2, 1))
    with library(assume=True):
        torch.ops.aten.convolution_backward.out(
            *parts, None, [1], [0], [1], False, [0], 1, [True, True, True],
            out0=outs[0], out1=outs[1], out2=outs[2],
        )  # fmt: skip
    assert [out.flatten()[0].item() for out in outs] == [2, 3, 3]
    with pytest.raises(UserError, match="a transposed convolution"), library(assume=True):
        F.conv_transpose1d(torch.randn(1, 4, 5), torch.randn(4, 4, 3))


def test_the_report_says_what_is_not_known(capsys):
    with library(assume=True, explain=True):
        torch.relu(HALF @ HALF.t())
        HALF[:, :24] @ HALF[:24]
    printed = capsys.readouterr().err.splitlines()
    assert "(derived); uncertain: its results were not recorded" in printed[0]
    assert "(assumed); uncertain: the call was not recorded" in printed[1]
    assert printed[2] == "computed by PyTorch on the CPU: aten::relu"


def test_operators_that_are_allowed_are_computed_by_pytorch():
    with library(allow=["aten::mv"]) as context:
        HALF @ HALF[0]
    assert not context.calls and context.others == {"aten::mv": 1}


def test_a_gpu_that_nobody_recorded():
    with pytest.raises(UserError, match="gpu must be one of h200, h100, b200, not 'mi300x'"):
        library(gpu="mi300x")


def test_slices_of_an_h100_come_from_mmaemu(monkeypatch):
    package: Any = types.ModuleType("mmaemu")
    package.errors = types.SimpleNamespace(MmaemuError=KeyError)
    package.resolve_splitk = lambda m, n, k, **_: types.SimpleNamespace(S=2)
    monkeypatch.setitem(sys.modules, "mmaemu", package)
    x = torch.randn(16, 2048).to(torch.float8_e4m3fn)
    with library(gpu="h100") as context:
        d = torch._scaled_mm(x, x.t(), ONE, ONE, out_dtype=torch.float32)
    (call,) = context.calls
    assert call.evidence == "published" and "2 slices from 0, 1024" in call.plan
    codes = x.view(torch.uint8).numpy()
    plan = plans.scaled_mm(2048, slices=2, output="fp32")
    expected = plans.multiply(codes, codes.T, plan=plan, scale_a=1.0, scale_b=1.0)
    assert np.array_equal(d.view(torch.int32).numpy().view(np.uint32), expected)


def test_sums_and_functions_are_those_of_the_gpu():
    x = torch.randn(6, 2052)
    with library(gpu="h200") as context:
        got = {
            "sum": x.sum(-1, keepdim=True),
            "all": x.sum(),
            "first": x.sum(0),
            "mean": x.mean(-1),
            "softmax": torch.softmax(x.half(), -1),
            "log": torch.log_softmax(x, 0),
            "norm": torch.nn.functional.layer_norm(x, (2052,)),
            "exp": x.bfloat16().exp(),
            "sigmoid": torch.sigmoid(x),
            "gelu": torch.nn.functional.gelu(x, approximate="tanh"),
        }
    a = x.numpy()
    expected = {
        "sum": reductions.pytorch_sum(a)[:, None],
        "all": reductions.pytorch_sum(a, None),
        "first": reductions.pytorch_sum(a, 0),
        "mean": reductions.pytorch_mean(a),
        "softmax": reductions.pytorch_softmax(a.astype(np.float16)),
        "log": reductions.pytorch_softmax(a, 0, log=True),
        "norm": reductions.pytorch_layer_norm(a),
    }
    for name, value in expected.items():
        assert np.array_equal(got[name].numpy(), value), name
    wide = x.bfloat16().float().numpy()
    assert torch.equal(
        got["exp"], torch.from_numpy(functions.cuda("expf", wide)).to(torch.bfloat16)
    )
    torch.testing.assert_close(got["sigmoid"], torch.sigmoid(x))
    torch.testing.assert_close(
        got["gelu"], torch.nn.functional.gelu(x, approximate="tanh"), rtol=1e-5, atol=1e-6
    )
    assert context.others.keys() <= {"aten::_to_copy"}
    evidence = {call.operator: call.evidence for call in context.calls}
    assert evidence["aten::sum"] == "measured" and evidence["aten::_softmax"] == "derived"
    with library(gpu="h200") as context:
        torch.softmax(x.t(), -1), x.double().mean((0, 1)), x.half().sum(), x[:, :3].sum((0,))
    assert context.others["aten::_softmax"] == 1 and context.others["aten::sum"] == 2


def test_gradients_pass_through_sums_and_functions():
    layer = torch.nn.Sequential(torch.nn.LayerNorm(64), torch.nn.GELU(), torch.nn.Softmax(-1))
    x = torch.randn(3, 64, requires_grad=True)
    y = torch.randn(3, 64)
    (layer(x) * y).sum().backward()
    alone = x.grad.clone()
    x.grad = None
    with library(gpu="h200"):
        (layer(x) * y).sum().backward()
    torch.testing.assert_close(x.grad, alone)


def tiles(codes: np.ndarray) -> Any:
    """Return factors as cuBLAS reads them, written by index as its documentation says."""
    rows, columns = codes.shape
    flat = np.zeros(-(-rows // 128) * 128 * -(-columns // 4) * 4, np.uint8)
    for r in range(rows):
        for c in range(columns):
            tile = (r // 128) * -(-columns // 4) + c // 4
            flat[512 * tile + 16 * (r % 32) + 4 * (r % 128 // 32) + c % 4] = codes[r, c]
    return torch.from_numpy(flat)


@pytest.mark.parametrize("name", ["mxfp8", "mxfp4", "nvfp4", "nvfp4 with factors of tensors"])
def test_blocks_are_those_of_the_instruction(name):
    m, n, k = 130, 48, 160
    rng = np.random.default_rng(7)
    block, eight = (16, False) if name.startswith("nvfp4") else (32, name == "mxfp8")
    element, scale = ("e4m3" if eight else "e2m1"), ("ue4m3" if block == 16 else "ue8m0")
    low, high = (120, 134) if block == 32 else (40, 72)
    a, b = (
        rng.integers(0, 120 if eight else 256, (rows, k if eight else k // 2), np.uint8)
        for rows in (m, n)
    )
    scales = [rng.integers(low, high, (rows, k // block), np.uint8) for rows in (m, n)]
    kind = {"ue4m3": torch.float8_e4m3fn, "ue8m0": torch.float8_e8m0fnu}[scale]
    dtype = torch.float8_e4m3fn if eight else torch.float4_e2m1fn_x2
    x, y = (torch.from_numpy(v).view(dtype) for v in (a, b))
    factors = [tiles(v).view(kind) for v in scales]
    instruction = {"mxfp8": "mxf8f6f4", "mxfp4": "mxf4"}.get(name, "nvf4_ue4m3")
    expected = machines.multiply(
        a, b.T, machine="b200", instruction=instruction, input=element, packed=not eight,
        scale_a=scales[0], scale_b=scales[1].T,
    ).view(np.float32)  # fmt: skip
    with library(gpu="b200", assume=True) as context:
        if "tensors" in name:
            whole = [torch.tensor([0.75]), torch.tensor([1.5])]
            parts = [[factor, one] for factor, one in zip(factors, whole, strict=True)]
            d = torch.ops.aten._scaled_mm_v2(
                x, y.t(), parts[0], [2, 0], [1, 0], parts[1], [2, 0], [1, 0], None, torch.float32
            )
            expected = expected * np.float32(0.75 * 1.5)
        else:
            d = torch._scaled_mm(x, y.t(), *factors, out_dtype=torch.float32)
    assert np.array_equal(d.numpy(), expected)
    (call,) = context.calls
    assert call.evidence == "assumed" and f"b200_{instruction}" in call.plan
    with pytest.raises(UserError, match="of tiles of 128 × 4"), library(gpu="b200", assume=True):
        torch._scaled_mm(x, y.t(), factors[0][:8], factors[1])
    with pytest.raises(UserError, match="none was recorded"), library(gpu="h200"):
        torch._scaled_mm(x, y.t(), *factors)
    with pytest.raises(UserError, match="products of a B200 must be"), library(gpu="b200"):
        HALF @ HALF

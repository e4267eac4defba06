"""The operator and the context of PyTorch against products by the same arithmetic."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

import sys
import unittest
from itertools import islice
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from vitruvian.common.errors import UserError
from vitruvian.golden.machines import Arithmetic

torch: Any = pytest.importorskip("torch", reason="the extra vitruvian[torch] is not installed")
from vitruvian.torch import arithmetic, gemm  # noqa: E402  (after the check)
from vitruvian.torch_operators import MEANINGS, REFUSED, classify  # noqa: E402

F = torch.nn.functional
H100: dict[str, Any] = {"machine": "h100", "forward": "e4m3", "backward": "e5m2"}
UNIT = Arithmetic(**H100)
#: Ten bits of a significand: close to FP32, and not equal to it.
CLOSE: dict[str, Any] = {"machine": "cdna3", "forward": "xf32"}


def normal(*shape):
    """Return a tensor of normal numbers, the same in every run."""
    seed = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, generator=seed)


def test_the_operator_and_its_gradients_are_products_of_the_machine():
    a, b, gradient = normal(2, 3, 40), normal(40, 4), normal(2, 3, 4)
    x, y = a.clone().requires_grad_(), b.clone().requires_grad_()
    d = gemm(x, y, "h100", "e4m3", "e5m2")
    d.backward(gradient)
    p, q, g = a.numpy(), b.numpy(), gradient.numpy()
    np.testing.assert_array_equal(d.detach().numpy(), UNIT.product(p, q))
    np.testing.assert_array_equal(x.grad.numpy(), UNIT.product(g, q.T, ("backward", "forward")))
    of_b = UNIT.product(p.swapaxes(1, 2), g, ("forward", "backward")).sum(axis=0)
    np.testing.assert_allclose(y.grad.numpy(), of_b, rtol=1e-6)
    assert not torch.equal(d, a @ b)


def test_the_operator_keeps_the_rules_of_operators():
    a, b = normal(2, 3, 8).requires_grad_(), normal(8, 4).requires_grad_()
    results = torch.library.opcheck(gemm, (a, b, "cdna3", "xf32"))
    assert set(results.values()) == {"SUCCESS"}


def test_a_linear_layer_forward_and_backward():
    layer, x = torch.nn.Linear(16, 8), normal(3, 5, 16)
    with arithmetic(**H100):
        y = layer(x)
    weight = layer.weight.detach().numpy()
    expected = UNIT.product(x.numpy().reshape(15, 16), weight.T) + layer.bias.detach().numpy()
    np.testing.assert_array_equal(y.detach().numpy().reshape(15, 8), expected)
    gradient = normal(3, 5, 8)
    y.backward(gradient)  # after the context has ended
    rows, g = x.numpy().reshape(15, 16), gradient.numpy().reshape(15, 8)
    of_weight = UNIT.product(rows.T, g, ("forward", "backward")).T
    np.testing.assert_array_equal(layer.weight.grad.numpy(), of_weight)
    assert torch.equal(layer(x), F.linear(x, layer.weight, layer.bias))  # PyTorch's own again


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (lambda: torch.nn.Conv1d(4, 6, 3, padding="same", dilation=2), (2, 4, 9)),
        (lambda: torch.nn.Conv1d(4, 6, 2, padding="valid", bias=False), (4, 9)),
        (lambda: torch.nn.Conv2d(4, 6, (3, 2), padding=(1, 2), stride=2, groups=2), (2, 4, 9, 8)),
        (lambda: torch.nn.Conv2d(4, 4, 3, padding=1, padding_mode="circular"), (1, 4, 5, 5)),
        (lambda: torch.nn.Conv3d(2, 4, 2), (2, 2, 4, 5, 6)),
        (lambda: torch.nn.MultiheadAttention(16, 4, batch_first=True), (2, 5, 16)),
        (lambda: torch.nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0), (5, 2, 16)),
    ],
)
@pytest.mark.parametrize("training", [True, False])
def test_modules_are_close_to_those_of_pytorch(module, shape, training):
    torch.manual_seed(1)
    layer, x = module().train(training), normal(*shape)
    arguments = (x, x, x) if isinstance(layer, torch.nn.MultiheadAttention) else (x,)

    def run():
        y = layer(*arguments)
        y = y[0] if isinstance(y, tuple) else y
        y.square().sum().backward()
        gradients = [p.grad.clone() for p in layer.parameters()]
        layer.zero_grad()
        return [y.detach(), *gradients]

    expected = run()
    with arithmetic(**CLOSE):
        got = run()
    for x, y in zip(got, expected, strict=True):
        assert x.shape == y.shape
        torch.testing.assert_close(x, y, rtol=1e-2, atol=1e-2)
    assert not torch.equal(got[0], expected[0])


@pytest.mark.parametrize(
    "product",
    [
        lambda a, b, c: a @ b,
        lambda a, b, c: torch.matmul(a, b[:, 0]),
        lambda a, b, c: torch.matmul(a[0], b),
        lambda a, b, c: a[0].matmul(b[:, 0]),
        lambda a, b, c: a.mm(b),
        lambda a, b, c: torch.addmm(c, a, b, beta=2, alpha=3),
        lambda a, b, c: torch.addmm(c, a, b, beta=0),
        lambda a, b, c: torch.bmm(a[None], b[None]),
        lambda a, b, c: torch.baddbmm(c[None], a[None], b[None]),
        lambda a, b, c: a.double() @ b.double(),
        lambda a, b, c: F.scaled_dot_product_attention(a, a, a, is_causal=True),
        lambda a, b, c: F.scaled_dot_product_attention(a, a, a, torch.eye(3).bool(), scale=0.5),
        lambda a, b, c: F.scaled_dot_product_attention(a, a, a, torch.eye(3)),
        lambda a, b, c: F.scaled_dot_product_attention(
            a.reshape(1, 4, 3, 4),
            a.reshape(1, 4, 3, 4)[:, :2],
            b.reshape(1, 2, 8, 4)[:, :, :3],
            enable_gqa=True,
        ),
    ],
)
def test_functions_are_close_to_those_of_pytorch(product):
    a, b, c = normal(3, 16), normal(16, 4), normal(3, 4)
    expected = product(a, b, c)
    with arithmetic(**CLOSE):
        got = product(a, b, c)
    assert got.dtype == expected.dtype and got.shape == expected.shape
    torch.testing.assert_close(got, expected, rtol=1e-2, atol=1e-2)
    assert not torch.equal(got, expected)


def test_integers_and_contexts_within_contexts():
    a, x = torch.arange(6).reshape(2, 3), normal(4, 16)
    with arithmetic(**CLOSE):
        assert torch.equal(a @ a.T, torch.tensor([[5, 14], [14, 50]]))
        outer = x @ x.T
        with arithmetic(**H100):
            inner = x @ x.T
    np.testing.assert_array_equal(inner.numpy(), UNIT.product(x.numpy(), x.T.numpy()))
    assert not torch.equal(inner, outer)


@pytest.mark.parametrize(
    ("name", "product"),
    [
        ("einsum", lambda x: torch.einsum("ij,kj->ik", x, x)),
        ("lstm", lambda x: torch.nn.LSTM(4, 4)(x)),
        ("gru_cell", lambda x: torch.nn.GRUCell(4, 4)(x)),
        ("conv_transpose1d", lambda x: torch.nn.ConvTranspose1d(4, 2, 2)(x[None])),
        ("dot", lambda x: x[0].dot(x[0])),
        ("tensordot", lambda x: torch.tensordot(x, x)),
    ],
)
def test_a_product_that_is_not_replaced_is_refused(name, product):
    with arithmetic(**H100), pytest.raises(UserError, match=f"within arithmetic.., not {name}"):
        product(normal(4, 4))


def eighth(x):
    return x.to(torch.float8_e4m3fn)


ONE = torch.tensor(1.0)
SMALL = torch.ones(32, 32, dtype=torch.int8)
#: Products that are not replaced, on a (16, 16) tensor, and the operator that computes each.
ELSEWHERE: list[tuple[str, Any]] = [
    ("_scaled_mm", lambda x: torch._scaled_mm(eighth(x), eighth(x).t(), ONE, ONE)),
    ("_grouped_mm", lambda x: torch._grouped_mm(x.bfloat16()[None], x.bfloat16()[None])),
    ("_int_mm", lambda x: torch._int_mm(SMALL, SMALL)),
    ("mm", lambda x: SMALL @ SMALL),
    ("mm", lambda x: torch.linalg.matmul(x, x)),
    ("linalg_vecdot", lambda x: torch.linalg.vecdot(x, x)),
    ("_sparse_addmm", lambda x: torch.sparse.mm(x.to_sparse(), x)),
    ("mm", lambda x: torch.ops.aten.mm(x, x)),
    ("mm", lambda x: torch.ops.aten.mm.default(x, x)),
    ("addmm", lambda x: torch.ops.aten.addmm(x, x, x)),
    ("addmm_", lambda x: x.clone().addmm_(x, x)),
    ("mm", lambda x: torch.inner(x, x)),
    ("mm", lambda x: torch.cov(x)),
    ("mm", lambda x: torch.linalg.matrix_power(x, 2)),
    ("linalg_inv_ex", lambda x: torch.linalg.inv(x)),
    ("_cdist_forward", lambda x: torch.cdist(x, x)),
    ("_trilinear", lambda x: torch.nn.Bilinear(16, 16, 2)(x, x)),
    ("addmm", lambda x: torch.nn.RNN(16, 4)(x)),
    ("_embedding_bag", lambda x: F.embedding_bag(torch.tensor([[1, 2]]), x)),
    ("affine_grid_generator", lambda x: F.affine_grid(x[None, :2, :3], [1, 1, 4, 4])),
    ("_native_multi_head_attention", lambda x: native_attention(x)),
    ("bmm", lambda x: torch.ops.aten._scaled_dot_product_attention_math(*[x[None]] * 3)),
]
if hasattr(F, "scaled_mm"):
    scaling = F.ScalingType.TensorWise
    product = lambda x: F.scaled_mm(eighth(x), eighth(x).t(), ONE, scaling, ONE, scaling)  # noqa: E731
    ELSEWHERE.append(("_scaled_mm_v2", product))


def native_attention(x):
    """Call the fused attention of PyTorch's fast path."""
    weight, bias = torch.zeros(48, 16), torch.zeros(48)
    return torch._native_multi_head_attention(*[x[None]] * 3, 16, 2, weight, bias, x, x[0])


@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize(("operator", "product"), ELSEWHERE)
def test_no_product_of_pytorch_passes_silently(operator, product, mode):
    with (
        mode(),
        arithmetic(**H100),
        pytest.raises(UserError, match=rf"\(aten::{operator}") as error,
    ):
        product(normal(16, 16))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("function", [torch.matmul, torch.mm])
def test_the_result_goes_to_out_or_out_is_refused(function):
    x, out = normal(16, 16), torch.empty(16, 16)
    with arithmetic(**H100):
        d = function(x, x)
        assert function(x, x, out=out) is out
        with pytest.raises(UserError, match=r"out of \w+ must be a tensor of .* with the shape"):
            function(x, x, out=torch.empty(3))
        with pytest.raises(UserError, match=r"must be None where gradients are computed"):
            function(x.clone().requires_grad_(), x, out=out)
    assert torch.equal(out, d) and not torch.equal(out, x @ x)


def test_gradients_of_products_of_pytorch_are_refused_within_the_context():
    x = normal(4, 4).requires_grad_()
    loss = (x @ x).sum()
    with arithmetic(**H100), pytest.raises(UserError, match="aten::mm"):
        loss.backward()


def test_a_checkpoint_computes_again_by_the_machine():
    checkpoint = pytest.importorskip("torch.utils.checkpoint").checkpoint
    x, w = normal(8, 8), normal(8, 8).requires_grad_()

    def network(x):
        return torch.relu(x @ w) @ w

    gradients = []
    for again in (False, True):
        w.grad = None
        with arithmetic(**H100):
            y = checkpoint(network, x, use_reentrant=False) if again else network(x)
            y.sum().backward()
        gradients.append(w.grad)
    assert torch.equal(*gradients)


def test_what_is_no_product_is_computed_by_pytorch():
    x, index = normal(16, 16), torch.tensor([1, 2])
    with arithmetic(**H100):
        got = [F.embedding(index, x), torch.softmax(x, 0), F.layer_norm(x, (16,)), x.cumsum(0)]
    expected = [F.embedding(index, x), torch.softmax(x, 0), F.layer_norm(x, (16,)), x.cumsum(0)]
    assert all(torch.equal(y, z) for y, z in zip(got, expected, strict=True))


def test_an_operator_of_others_is_refused_unless_it_is_allowed():
    @torch.library.custom_op("vitruviantest::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:  # pyright: ignore
        return 2 * x

    x = normal(4)
    with arithmetic(**H100), pytest.raises(UserError, match="vitruviantest::twice"):
        twice(x)
    with arithmetic(**H100, allow=["vitruviantest::twice"]):
        assert torch.equal(twice(x), 2 * x)


def operators():
    """Yield all overloads of PyTorch's own operators that are installed."""
    for name in torch._C._dispatch_get_all_op_names():
        space, _, rest = name.partition("::")
        base, _, overload = rest.partition(".")
        if space == "aten":
            yield getattr(getattr(torch.ops.aten, base), overload or "default")


def test_every_operator_of_pytorch_is_classified():
    kinds = {operator.name(): classify(operator) for operator in operators()}
    assert len(kinds) > 2000 and set(kinds.values()) <= set(MEANINGS)
    unknown = [name for name, kind in kinds.items() if kind == "unknown"]
    assert not unknown, "classify these in vitruvian/torch_operators.py"


def test_what_pytorch_counts_as_products_is_refused():
    counter = pytest.importorskip("torch.utils.flop_counter")
    names = [getattr(packet, "_qualified_op_name", "") for packet in counter.flop_registry]
    packets = [getattr(torch.ops.aten, name[6:]) for name in names if name.startswith("aten::")]
    assert len(packets) > 10
    for packet in packets:
        overloads = [getattr(packet, name) for name in packet.overloads()]
        assert {classify(overload) for overload in overloads} <= {"product", "parts"}, packet


def test_no_operator_that_passes_returns_a_product():
    a, b = normal(4, 4), normal(4, 4)
    products = [x @ y for x in (a, a.T) for y in (b, b.T)]
    products += [y @ x for x in (a, a.T) for y in (b, b.T)]
    called = 0
    for operator in operators():
        kind, name = classify(operator), operator.name()
        if kind in (*REFUSED, "parts") or "record_stream" in name:
            continue
        schema = operator._schema.arguments
        needed = [x for x in schema if not x.has_default_value() and not x.is_out]
        tensors = [x for x in needed if "Tensor" in str(x.type)]
        if len(tensors) != len(needed) or len(tensors) not in (2, 3):
            continue
        lists = ["List" in str(x.type) for x in tensors]
        arguments = [a.clone(), b.clone(), torch.zeros(4, 4)][: len(tensors)]
        try:
            packed = [[x] if many else x for x, many in zip(arguments, lists, strict=True)]
            results = operator(*packed)
        except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError):
            continue
        called += 1
        for result in results if isinstance(results, (list, tuple)) else [results]:
            if (
                isinstance(result, torch.Tensor)
                and result.shape == a.shape
                and not result.is_sparse
            ):
                close = [torch.allclose(result.float(), p, atol=1e-5) for p in products]
                assert not any(close), name
    assert called > 100


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_no_operator_that_passes_computes_a_product_inside(monkeypatch):
    """Run PyTorch's own examples of its functions under its profiler."""
    stub: Any = ModuleType("expecttest")  # a library for tests of PyTorch that is not needed here
    stub.TestCase = unittest.TestCase
    monkeypatch.setitem(sys.modules, "expecttest", stub)
    examples = pytest.importorskip("torch.testing._internal.common_methods_invocations")
    kinds = {operator.name().partition(".")[0]: classify(operator) for operator in operators()}
    products = {name for name, kind in kinds.items() if kind == "product"}
    counts = dict.fromkeys(("passed", "refused", "replaced"), 0)
    for example in examples.op_db:
        if torch.float32 not in example.dtypes or example.name.startswith("jiterator"):
            continue
        try:
            samples = list(islice(example.sample_inputs("cpu", torch.float32), 1))
        except RuntimeError:  # a library that is missing
            continue
        for sample in samples:
            with arithmetic(**H100), torch.autograd.profiler.profile() as profile:
                try:
                    example.op(sample.input, *sample.args, **sample.kwargs)
                except UserError:
                    counts["refused"] += 1
                    continue
            names = {event.name for event in profile.function_events}
            replaced = "vitruvian::gemm" in names
            counts["replaced" if replaced else "passed"] += 1
            assert replaced or not names & products, (example.name, names & products)
    assert counts["passed"] > 300 and min(counts.values()) > 10, counts


def test_a_machine_that_does_not_exist_is_refused_at_once():
    with pytest.raises(UserError, match="machine must be one of"):
        arithmetic(machine="h1000", forward="fp16")


def test_a_network_learns():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    x = normal(64, 8)
    target = x[:, :1] * x[:, 1:2]
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    losses = []
    for _ in range(40):
        with arithmetic(**H100):
            loss = (model(x) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.4 * losses[0]

"""The operator and the context of PyTorch against products by the same arithmetic."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

from typing import Any

import numpy as np
import pytest

from vitruvian.errors import UserError
from vitruvian.golden.machines import Arithmetic

torch: Any = pytest.importorskip("torch", reason="the extra vitruvian[torch] is not installed")
from vitruvian.torch import arithmetic, gemm  # noqa: E402  (after the check)

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

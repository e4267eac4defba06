"""Products of PyTorch under the arithmetic of a machine, forward and backward.

``arithmetic`` is a context in which linear layers, convolutions, attention and matrix products are
computed as an instruction of a machine computes them, block after block along K; the operator
``torch.ops.vitruvian.gemm`` is one such product. A library on that machine may order and split its
sums otherwise: ``library`` is a context with the bits of cuBLAS' own products on a GPU, where the
plan of a call is known. Needs the extra ``vitruvian[torch]``. Tensors must be on the CPU.

>>> import torch
>>> from vitruvian.torch import arithmetic
>>> model, x = torch.nn.Linear(64, 10), torch.ones(8, 64)
>>> with arithmetic(machine="h100", forward="e4m3", backward="e5m2"):
...     loss = model(x).square().mean()
>>> loss.backward()  # the gradients, too, are products of the H100
"""

# PyTorch is optional, and its types are unknown where it is not installed.
# pyright: basic, reportMissingImports=false

from collections.abc import Callable, Iterable
from inspect import signature
from types import FunctionType
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from vitruvian.common.errors import UserError
from vitruvian.golden.machines import Arithmetic
from vitruvian.torch_convolution import convolution
from vitruvian.torch_library import library
from vitruvian.torch_operators import MEANINGS, REFUSED, classify, has_numbers, whole

__all__ = ["arithmetic", "gemm", "library"]

_ROLES = {"f": "forward", "b": "backward"}


@torch.library.custom_op("vitruvian::gemm", mutates_args=(), device_types="cpu")
def gemm(
    a: Tensor,
    b: Tensor,
    machine: str,
    forward: str,
    backward: str | None = None,
    instruction: str | None = None,
    scaled: bool | None = None,
    roles: str = "ff",
) -> Tensor:
    """Return A·B as a machine computes it, with gradients that are such products as well.

    Parameters
    ----------
    a, b : (..., M, K), (..., K, N) Tensor
        Floating-point numbers, which are converted to float32 and rounded to the formats.
    machine, forward, backward, instruction, scaled
        As of ``vitruvian.machines.Arithmetic``.
    roles : str
        One letter for each operand: "f" for activations and weights, "b" for gradients.

    Returns
    -------
    (..., M, N) Tensor
        The element type is that of A.
    """
    unit = Arithmetic(machine, forward, backward, instruction, scaled)
    x, y = (v.detach().to(torch.float32).numpy() for v in (a, b))
    d = unit.product(x, y, (_ROLES[roles[0]], _ROLES[roles[1]]))  # pyright: ignore
    return torch.from_numpy(d).to(a.dtype)


@gemm.register_fake
def _(a: Tensor, b: Tensor, *_rule: Any, **_options: Any) -> Tensor:
    lead = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return a.new_empty((*lead, a.shape[-2], b.shape[-1]))


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG001
    a, b, *ctx.rule, ctx.roles = inputs
    ctx.save_for_backward(a, b)


def _backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    a, b = ctx.saved_tensors
    role_a, role_b = ctx.roles
    of_a = of_b = None
    if ctx.needs_input_grad[0]:
        of_a = gemm(gradient, b.mT, *ctx.rule, f"b{role_b}").sum_to_size(a.shape)
    if ctx.needs_input_grad[1]:
        of_b = gemm(a.mT, gradient, *ctx.rule, f"{role_a}b").sum_to_size(b.shape)
    return of_a, of_b, *[None] * 6


gemm.register_autograd(_backward, setup_context=_setup)


class _Refusal(UserError):
    """A product that is not replaced, found at the level of operators."""

    def __init__(self, operator: str, why: str, caller: str = "") -> None:
        self.operator, self.why = operator, why
        name = f"{caller} ({operator})" if caller else operator
        super().__init__(
            f"products must be linear, matmul, convolutions or attention within arithmetic(), "
            f"not {name}: {why}"
        )


class _Guard(TorchDispatchMode):
    """Refuse the operators that multiply matrices, from wherever they are called."""

    def __init__(self, allow: frozenset[str]) -> None:
        super().__init__()
        self._allow = allow

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        kind = classify(func)
        if kind == "parts":  # PyTorch has not taken it apart, as in inference mode
            with self:
                parts = func.decompose(*args, **kwargs)
            if parts is not NotImplemented:
                return parts
        name = func._schema.name
        if kind in REFUSED and name not in self._allow and has_numbers(args, kwargs):
            raise _Refusal(name, MEANINGS[kind])
        return func(*args, **kwargs)


class arithmetic(TorchFunctionMode):  # noqa: N801  (a context manager, used as a function)
    """A context in which the products of networks are those of a machine, forward and backward.

    These functions, their methods and the modules built on them are replaced: ``linear``,
    ``matmul``, ``mm``, ``bmm``, ``addmm``, ``baddbmm``, ``conv1d`` to ``conv3d``,
    ``scaled_dot_product_attention`` and ``multi_head_attention_forward``. Every other product of
    floating-point or 8-bit numbers is refused, whichever function calls it, as is an operator that
    nobody has classified. Everything else, such as the addition of a bias and a softmax, is
    computed by PyTorch.

    A product belongs to the context in which it is computed forward; its gradients may be computed
    after the context has ended. Gradients of products outside of a context are refused within it.
    The context is that of one thread.

    Parameters
    ----------
    machine : str
        A machine of the table, for example "h100".
    forward, backward : str
        Formats of activations and weights, and of gradients.
    instruction : str, optional
        By default the machine's first one that has these formats.
    scaled : bool, optional
        As of ``vitruvian.machines.Arithmetic``.
    allow : iterable of str
        Names of operators that PyTorch computes even though they are refused otherwise, such as
        "torchvision::nms".

    Raises
    ------
    UserError
        If the machine does not have these formats; in the context, for a product that is not
        replaced (``einsum``, ``_scaled_mm``, recurrent layers, transposed convolutions and others).
    """

    def __init__(
        self,
        *,
        machine: str,
        forward: str,
        backward: str | None = None,
        instruction: str | None = None,
        scaled: bool | None = None,
        allow: Iterable[str] = (),
    ) -> None:
        super().__init__()
        Arithmetic(machine, forward, backward, instruction, scaled)  # refuses what does not exist
        self._rule = (machine, forward, backward, instruction, scaled)
        self._allow = frozenset((allow,) if isinstance(allow, str) else allow)
        self._guards: list[_Guard] = []

    def __enter__(self) -> "arithmetic":
        super().__enter__()
        self._guards.append(_Guard(self._allow))
        self._guards[-1].__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._guards.pop().__exit__(*error)
        super().__exit__(*error)

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", str(func))
        if func is functional.multi_head_attention_forward:
            with self:
                return _ATTENTION(*args, **kwargs)
        if func in (
            Tensor.backward,
            torch.autograd.backward,
        ):  # a checkpoint computes forward again there
            with self:
                return (_propagate if func is Tensor.backward else _BACKWARD)(*args, **kwargs)
        if func in _REPLACED and _is_floating(args, kwargs):
            out = kwargs.get("out")
            options = {key: value for key, value in kwargs.items() if key != "out"}
            if _takes(_REPLACED[func], args, options):
                d = _REPLACED[func](self._product, *args, **options)
                return d if out is None else _into(out, d, name)
        operator = name.partition(".")[0]
        if whole(operator) and f"aten::{operator}" not in self._allow:
            raise _Refusal(f"aten::{operator}", MEANINGS["product"], operator)
        try:
            return func(*args, **kwargs)
        except _Refusal as refusal:
            raise _Refusal(refusal.operator, refusal.why, operator) from None

    def _product(self, a: Tensor, b: Tensor) -> Tensor:
        """Return the product of stacks of matrices."""
        for x in (a, b):
            if x.layout != torch.strided:
                raise UserError(f"operands must be dense within arithmetic(), not {x.layout}")
        return gemm(a, b, *self._rule)


Product = Callable[[Tensor, Tensor], Tensor]


def _is_floating(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return True if the first tensor holds floating-point numbers, or tensors in a list do."""
    for value in (*args, *kwargs.values()):
        first = value[0] if isinstance(value, (list, tuple)) and value else value
        if isinstance(first, Tensor):
            return first.is_floating_point()
    return False


def _takes(function: Callable[..., Tensor], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return True if a replacement has these parameters."""
    try:
        signature(function).bind(None, *args, **kwargs)
    except TypeError:
        return False
    return True


def _into(out: Tensor, d: Tensor, name: str) -> Tensor:
    """Write a result into the tensor ``out`` and return it."""
    if d.requires_grad or out.requires_grad:
        raise UserError(f"out of {name} must be None where gradients are computed")
    if not isinstance(out, Tensor) or (out.shape, out.dtype) != (d.shape, d.dtype):
        raise UserError(
            f"out of {name} must be a tensor of {d.dtype} with the shape {tuple(d.shape)}, not of "
            f"{out.dtype} with {tuple(out.shape)}"
        )
    return out.copy_(d)


def _matmul(product: Product, input: Tensor, other: Tensor) -> Tensor:
    a = input[None] if input.ndim == 1 else input
    b = other[:, None] if other.ndim == 1 else other
    if a.ndim > 2 and b.ndim == 2:  # one product of all rows
        rows = a.reshape(-1, a.shape[-1])
        d = product(rows, b).reshape(*a.shape[:-1], b.shape[-1])
    else:
        d = product(a, b)
    d = d[..., 0] if other.ndim == 1 else d
    return d.squeeze(-1 if other.ndim == 1 else -2) if input.ndim == 1 else d


def _reversed_matmul(product: Product, other: Tensor, input: Tensor) -> Tensor:
    return _matmul(product, input, other)


def _strict(product: Product, input: Tensor, mat2: Tensor) -> Tensor:
    return product(input, mat2)


def _linear(product: Product, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    d = _matmul(product, input, weight.mT)
    return d if bias is None else d + bias


def _addmm(
    product: Product,
    input: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    *,
    beta: float = 1,
    alpha: float = 1,
) -> Tensor:
    d = product(mat1, mat2)
    d = d if alpha == 1 else alpha * d
    return d if beta == 0 else d + (input if beta == 1 else beta * input)


def _attention(
    product: Product,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    if enable_gqa:
        many = query.shape[-3]
        key, value = (v.repeat_interleave(many // v.shape[-3], -3) for v in (key, value))
    scores = product(query, key.mT) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(~attn_mask, float("-inf"))
        else:
            scores = scores + attn_mask
    shares = torch.dropout(torch.softmax(scores, -1), dropout_p, dropout_p > 0)
    return product(shares, value)


def _propagate(
    tensor: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Do what ``Tensor.backward`` does."""
    _BACKWARD(tensor, gradient, retain_graph, create_graph, inputs=inputs)


def _without_checks(function: FunctionType) -> Any:
    """Return a function of PyTorch that runs its own body even if a mode is active."""
    checks = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")
    names = function.__globals__ | dict.fromkeys(checks, lambda *_: False)
    copy = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


_ATTENTION = _without_checks(functional.multi_head_attention_forward)  # pyright: ignore

_BACKWARD = _without_checks(torch.autograd.backward)  # pyright: ignore

_REPLACED: dict[Any, Callable[..., Tensor]] = {
    functional.linear: _linear,
    torch.matmul: _matmul,
    Tensor.matmul: _matmul,
    Tensor.__matmul__: _matmul,
    Tensor.__rmatmul__: _reversed_matmul,
    torch.mm: _strict,
    Tensor.mm: _strict,
    torch.bmm: _strict,
    Tensor.bmm: _strict,
    torch.addmm: _addmm,
    Tensor.addmm: _addmm,
    torch.baddbmm: _addmm,
    Tensor.baddbmm: _addmm,
    torch.conv1d: convolution(1),
    torch.conv2d: convolution(2),
    torch.conv3d: convolution(3),
    functional.scaled_dot_product_attention: _attention,
}

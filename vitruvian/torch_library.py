"""Products of PyTorch as cuBLAS computes them on a GPU: each call by its plan."""

# PyTorch is optional, and its types are unknown where it is not installed.
# pyright: basic, reportMissingImports=false

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from vitruvian.common.errors import UserError
from vitruvian.golden.plans import LibraryCall, Plan, find, load
from vitruvian.torch_arrays import array, tensor
from vitruvian.torch_convolution import convolution, convolution_gradients
from vitruvian.torch_functions import FUNCTIONS
from vitruvian.torch_operators import MEANINGS, REFUSED, classify, has_numbers
from vitruvian.torch_scaled import DTYPES, FORMATS, format_of, scaled_mm, scaled_mm_v2, values_of

#: What is not known of a plan, by its evidence.
_UNCERTAIN = {
    "derived": "its results were not recorded, only its kernel",
    "published": "measured by others",
    "assumed": "the call was not recorded: its slices are those of the nearest that was",
}
_ADDED = "how cuBLAS adds a matrix, or multiplies by alpha and beta"
_PATCHES = "cuDNN's order of sums is not known; assume=True takes that of a product"
#: Why products are refused that could be thought to be replaced.
_WHY = {
    "aten::mv": "cuBLAS computes it by kernels whose order of sums is not known",
    "aten::dot": "cuBLAS computes it by kernels whose order of sums is not known",
    "aten::convolution": _PATCHES,
    "aten::convolution_backward": _PATCHES,
    "attention": "fused attention is not known; take "
    "torch.nn.attention.sdpa_kernel(SDPBackend.MATH), whose products are",
}


@dataclass(frozen=True)
class ExplainedCall:
    """A call that was replaced.

    Attributes
    ----------
    operator : str
        Its name in PyTorch.
    call, plan : str
        What was computed, and how.
    evidence : str
        As that of ``vitruvian.plans.Plan``, or "exact" if the result has no rounding.
    uncertain : tuple of str
        What is not known; nothing if it was measured.
    """

    operator: str
    call: str
    plan: str
    evidence: str
    uncertain: tuple[str, ...] = ()

    def __str__(self) -> str:
        doubt = f"; uncertain: {'; '.join(self.uncertain)}" if self.uncertain else ""
        return f"{self.operator}: {self.call}: {self.plan}{doubt}"


class library(TorchDispatchMode):  # noqa: N801  (a context manager, used as a function)
    """A context in which PyTorch's matrix products have the bits that cuBLAS gives on a GPU.

    Replaced, wherever they are called from, also by gradients: ``mm``, ``addmm``, ``bmm``,
    ``baddbmm``, ``_scaled_mm``, ``_scaled_mm_v2`` and ``_int_mm``, and so ``linear``, ``matmul``,
    ``einsum`` and what else PyTorch makes of them. All other products are refused by name.
    Sums, means, softmax, layer norm, exp, log, tanh, erf, rsqrt, sigmoid, SiLU and GELU follow
    PyTorch's kernels for a GPU. Everything else, such as gradients of these, is computed by PyTorch
    on the CPU, whose sums and functions may have other bits. Products of FP32 are computed in TF32
    if ``torch.backends.cuda.matmul.allow_tf32``.

    Parameters
    ----------
    gpu : {"h200", "h100", "b200"}
        Of an H100, ``_scaled_mm`` alone is known; the slices of its calls are read from the
        package mmaemu. Of a B200, ``_scaled_mm`` of MXFP8, MXFP4 and NVFP4 is assumed.
    assume : bool
        Whether calls that were not recorded are computed like the nearest ones that were, products
        with an added matrix in FP32, and convolutions as products of patches.
    plans : path or mapping, optional
        Plans of your own, which go before: a file of ``vitruvian plans fit``, or a mapping as
        ``vitruvian.plans.load`` returns.
    explain : bool
        Whether a report is printed at the end, to standard error.
    allow : iterable of str
        Names of operators that PyTorch computes even though they are refused otherwise.

    Attributes
    ----------
    calls : Counter of ExplainedCall
        Each call that was replaced, and how often.
    others : Counter of str
        Operators with floating-point results that PyTorch computed, but for views.

    Raises
    ------
    UserError
        If there is no such GPU; in the context, for a product that is refused.

    Examples
    --------
    >>> import torch
    >>> x, w = (torch.ones(128, 128, dtype=torch.float16) for _ in "xw")
    >>> with library(gpu="h200") as context:
    ...     y = x @ w.t()
    >>> for call in context.calls:
    ...     print(call.call, "|", call.plan)
    mm fp16 128×128×128 nt to fp16 | h200_mma_fp16_fp32; 16 terms a step; to fp16 (derived)
    """

    def __init__(
        self,
        *,
        gpu: str = "h200",
        assume: bool = False,
        plans: str | Path | Mapping[LibraryCall, Plan] | None = None,
        explain: bool = False,
        allow: Iterable[str] = (),
    ) -> None:
        super().__init__()
        if gpu not in ("h200", "h100", "b200"):
            raise UserError(f"gpu must be one of h200, h100, b200, not {gpu!r}")
        self.gpu, self.assume, self._explain = gpu, assume, explain
        self._plans = load(plans) if isinstance(plans, (str, Path)) else plans
        self._known: dict[LibraryCall, Plan] = {}
        self._allow = frozenset((allow,) if isinstance(allow, str) else allow)
        self.calls: Counter[ExplainedCall] = Counter()
        self.others: Counter[str] = Counter()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        if self._explain:
            print(self.report(), file=sys.stderr)

    def report(self) -> str:
        """Return a line for each distinct call, with its plan, evidence and doubts."""
        lines = [f"{call}{f' ({n} times)' if n > 1 else ''}" for call, n in self.calls.items()]
        if self.others:
            lines.append(f"computed by PyTorch on the CPU: {', '.join(sorted(self.others))}")
        return "\n".join(lines)

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = dict(kwargs or {})
        name, kind = func._schema.name, classify(func)
        if kind == "parts":  # PyTorch has not taken it apart, as in inference mode
            with self:
                parts = func.decompose(*args, **kwargs)
            if parts is not NotImplemented:
                return parts
        if kind in REFUSED and name not in self._allow and has_numbers(args, kwargs):
            product = PRODUCTS.get(name)
            if product is None:
                raise _refusal(name, MEANINGS[kind])
            named = [a.name for a in func._schema.arguments if a.is_out]
            outs = [kwargs.pop(name) for name in named if name in kwargs]
            d = product(self, *args, **kwargs)
            return _written(d, outs) if outs else d
        if (function := FUNCTIONS.get(name)) and "out" not in kwargs:
            computed = function(*args, **kwargs)
            if computed is not None:
                operator = name.removeprefix("aten::")
                self.note(operator, computed.call, computed.order, evidence=computed.evidence)
                return computed.value
        result = func(*args, **kwargs)
        if kind not in ("view", "constant", "plain") and _is_floating(result):
            self.others[name] += 1
        return result

    def plan(self, call: LibraryCall) -> Plan:
        """Return the plan of a call on this GPU."""
        if self.gpu == "b200":
            raise UserError(
                f"products of a B200 must be _scaled_mm in blocks of 16 or 32, not {call}"
            )
        if call not in self._known:  # a search takes a tenth of a second
            self._known[call] = find(call, self.gpu, self.assume, self._plans)
        return self._known[call]

    def note(
        self, operator: str, call: object, plan: object, *doubts: str, evidence: str = "exact"
    ) -> None:
        """Keep a call for the report."""
        evidence = plan.evidence if isinstance(plan, Plan) else evidence
        known = (_UNCERTAIN[evidence],) if evidence in _UNCERTAIN else ()
        self.calls[
            ExplainedCall(f"aten::{operator}", str(call), str(plan), evidence, (*known, *doubts))
        ] += 1


def _refusal(name: str, why: str) -> UserError:
    why = _WHY.get("attention" if "attention" in name else name, why)
    return UserError(
        f"products must be those that cuBLAS computes by a known plan, not {name}: {why}"
    )


def _written(d: Any, outs: Sequence[Tensor]) -> Any:
    """Return the tensors of ``out``, which then hold a result."""
    for part, out in zip(d if isinstance(d, tuple) else (d,), outs, strict=True):
        if part is not None:
            out.resize_(part.shape).copy_(part)
    return outs[0] if len(outs) == 1 else tuple(outs)


def _is_floating(result: Any) -> bool:
    several = result if isinstance(result, (list, tuple)) else (result,)
    return any(isinstance(value, Tensor) and value.is_floating_point() for value in several)


def _orientation(x: Tensor) -> str:
    """Return "n" for rows of adjacent elements, which PyTorch makes of everything but columns."""
    rows, columns = x.shape[-2:]
    row, column = x.stride()[-2:]
    if column == 1 and row >= max(1, columns):
        return "n"
    return "t" if row == 1 and column >= max(1, rows) else "n"


def _product(
    context: library,
    operator: str,
    a: Tensor,
    b: Tensor,
    output: str | None = None,
    bias: Tensor | None = None,
    op: str = "",
    doubts: Sequence[str] | None = None,
) -> Tensor:
    """Return A·B of matrices, or of stacks of as many, with a bias by columns if there is one.

    With doubts, which are noted, the result is the sum before it is rounded to the output.
    """
    names = [format_of(x, operator) for x in (a, b)]
    if names[0] != names[1]:
        raise UserError(f"operands of {operator} must have one type, not {a.dtype} and {b.dtype}")
    native = "fp32" if names[0] == "tf32" else names[0]
    output = output or native
    call = LibraryCall(
        op=op or ("mm" if output == native else "mm32"),
        a=names[0],
        b=names[1],
        m=a.shape[-2],
        k=a.shape[-1],
        n=b.shape[-1],
        batch=a.shape[0] if a.ndim == 3 else 1,
        layout=_orientation(a) + _orientation(b),
        output=output,
        bias=bias is not None,
    )
    if 0 in (call.m, call.k, call.n, call.batch):
        empty = a.new_zeros((*a.shape[:-1], call.n), dtype=DTYPES[output])
        return empty if bias is None else empty + bias
    plan = context.plan(call)
    if doubts is not None:
        plan = replace(plan, output=plan.spec.output.name)
    context.note(operator, call, plan, *(doubts or ()))
    added = None if bias is None else array(bias)
    stacks = [(x,) if x.ndim == 2 else x.unbind() for x in (a, b)]
    parts = [
        tensor(values_of(x, y, plan, bias=added), DTYPES[plan.output])
        for x, y in zip(*stacks, strict=True)
    ]
    return parts[0] if a.ndim == 2 else torch.stack(parts)


def _mm(context: library, a: Tensor, b: Tensor, out_dtype: Any = None) -> Tensor:
    return _product(context, "mm", a, b, _output(out_dtype))


def _bmm(context: library, a: Tensor, b: Tensor, out_dtype: Any = None) -> Tensor:
    return _product(context, "bmm", a, b, _output(out_dtype), op="bmm")


def _output(dtype: Any) -> str | None:
    return None if dtype is None else FORMATS[dtype]


def _addmm(
    context: library,
    c: Tensor,
    a: Tensor,
    b: Tensor,
    out_dtype: Any = None,
    *,
    beta: float = 1,
    alpha: float = 1,
) -> Tensor:
    if c.shape == (b.shape[1],) and beta == alpha == 1 and min(*b.shape) > 1:
        return _product(context, "addmm", a, b, _output(out_dtype), c, op="linear")
    return _added(context, "addmm", (c, a, b), (beta, alpha), _output(out_dtype))


def _baddbmm(
    context: library,
    c: Tensor,
    a: Tensor,
    b: Tensor,
    out_dtype: Any = None,
    *,
    beta: float = 1,
    alpha: float = 1,
) -> Tensor:
    return _added(context, "baddbmm", (c, a, b), (beta, alpha), _output(out_dtype))


def _added(
    context: library,
    operator: str,
    operands: tuple[Tensor, Tensor, Tensor],
    factors: tuple[float, float],
    output: str | None,
) -> Tensor:
    """Return alpha·A·B + beta·C, in the type of the sums and rounded once."""
    c, a, b = operands
    beta, alpha = factors
    op = "bmm" if a.ndim == 3 else ""
    if alpha == 1 and beta == 0:
        return _product(context, operator, a, b, output, op=op)
    if not context.assume:
        raise _refusal(f"aten::{operator} with a matrix C", f"{_ADDED} is not known")
    d = _product(context, operator, a, b, output, op=op, doubts=(_ADDED,))
    total = alpha * d if beta == 0 else alpha * d + beta * c.to(d.dtype)
    return total.to(DTYPES[output] if output else a.dtype)


def _int_mm(context: library, a: Tensor, b: Tensor) -> Tensor:
    context.note("_int_mm", f"{a.shape[0]}×{a.shape[1]}×{b.shape[1]}", "exact in any order")
    return torch.mm(a.to(torch.int32), b.to(torch.int32))


def _convolution(
    context: library,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    transposed: bool,
    output_padding: list[int],
    groups: int,
) -> Tensor:
    product = _of_patches(context, "convolution", transposed or any(output_padding))
    return convolution(len(stride))(product, x, weight, bias, stride, padding, dilation, groups)


def _convolution_backward(
    context: library,
    gradient: Tensor,
    x: Tensor,
    weight: Tensor,
    bias_sizes: list[int] | None,  # noqa: ARG001  (the sizes follow from the weight)
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    transposed: bool,
    output_padding: list[int],
    groups: int,
    output_mask: list[bool],
) -> tuple[Tensor | None, ...]:
    product = _of_patches(context, "convolution_backward", transposed or any(output_padding))
    parts = gradient, x, weight, stride, padding, dilation, groups, output_mask
    return convolution_gradients(product, *parts)


def _of_patches(
    context: library, operator: str, transposed: bool
) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the product of stacks of patches with weights, or refuse it."""
    if not context.assume:
        raise _refusal(f"aten::{operator}", "")
    if transposed:
        raise _refusal("a transposed convolution", "it is no product of patches")

    def product(a: Tensor, b: Tensor) -> Tensor:
        return torch.stack([_product(context, operator, p, q) for p, q in zip(a, b, strict=True)])

    return product


#: The products that have plans, by their names in PyTorch.
PRODUCTS: dict[str, Callable[..., Any]] = {
    "aten::mm": _mm,
    "aten::bmm": _bmm,
    "aten::addmm": _addmm,
    "aten::baddbmm": _baddbmm,
    "aten::_int_mm": _int_mm,
    "aten::_scaled_mm": scaled_mm,
    "aten::_scaled_mm_v2": scaled_mm_v2,
    "aten::convolution": _convolution,
    "aten::convolution_backward": _convolution_backward,
}

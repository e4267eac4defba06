"""Triton's kernels in its interpreter, with the dots of a machine.

``arithmetic`` is a context in which ``tl.dot`` and ``tl.dot_scaled`` have the bits of the
instructions that Triton's compiler makes of them for a machine. For an H100 or H200, ``tl.exp``,
``exp2``, ``log``, ``erf``, ``sqrt``, ``rsqrt`` and the division of FP32 have the GPU's bits too,
and with ``assume=True`` so has ``tl.sum`` in the layout of a tile that was loaded row by row. All
else is the interpreter's, which does not fuse a product with an addition as the compiler does.
Needs the extra ``vitruvian[triton]`` and ``TRITON_INTERPRET=1`` before kernels are
defined. No GPU is needed: the arguments are tensors of PyTorch on the CPU, or wrapped arrays.

>>> import os
>>> os.environ["TRITON_INTERPRET"] = "1"
>>> import numpy as np, triton
>>> import triton.language as tl
>>> from vitruvian.triton import arithmetic, wrap
>>> @triton.jit
... def square(x, y):
...     at = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
...     tl.store(y + at, tl.dot(tl.load(x + at), tl.load(x + at)))
>>> x, y = np.ones((16, 16), np.float16), np.zeros((16, 16), np.float32)
>>> with arithmetic(machine="h100") as dots:
...     square[(1,)](wrap(x), wrap(y))
>>> print(*dots, y[0, 0])
fp16: h100_mma_fp16_fp32 (vendor) 16.0
"""

# Triton is optional, and its types are unknown where it is not installed.
# pyright: basic, reportMissingImports=false

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, wraps
from typing import Any

import ml_dtypes
import numpy as np
import triton
from triton.runtime import interpreter

from vitruvian.common.errors import UserError
from vitruvian.common.validate import check_int
from vitruvian.golden.machines.table import machine_name
from vitruvian.golden.triton import Dot, lower, multiply, multiply_scaled
from vitruvian.golden.triton.dot import FP8, WIDTHS, default_imprecise
from vitruvian.triton_functions import MACHINES, functions, sums

__all__ = ["arithmetic", "wrap"]

#: The first and the last version whose interpreter and compiler were read and run. The first one's
#: interpreter needs NumPy below 2.4, and has no ``tl.dot_scaled``.
SUPPORTED = ("3.6", "3.8")
#: Triton's names of types, and this project's.
_NAMES = {
    "fp16": "fp16",
    "bf16": "bf16",
    "fp32": "fp32",
    "fp64": "fp64",
    "int8": "int8",
    "int32": "int32",
    "fp8e4nv": "e4m3",
    "fp8e5": "e5m2",
    "fp8e4b8": "fp8",
    "fp8e5b16": "bf8",
}
#: Element types of arrays, and Triton's names of them.
_TYPES = {
    "float16": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "float64": "fp64",
    "float8_e4m3fn": "fp8e4nv",
    "float8_e5m2": "fp8e5",
    "float8_e4m3fnuz": "fp8e4b8",
    "float8_e5m2fnuz": "fp8e5b16",
    "int8": "i8",
    "uint8": "u8",
    "int16": "i16",
    "uint16": "u16",
    "int32": "i32",
    "uint32": "u32",
    "int64": "i64",
    "uint64": "u64",
}
#: Parameters of the functions that are replaced.
_DOT = ["self", "a", "b", "d", "input_precision", "max_num_imprecise_acc"]
_MEANING = ["self", "lhs", "rhs", "acc", "input_precision", "max_num_imprecise_acc"]
_MEANING += ["out_dtype"]
_WIDTH = "vitruvian.loaded"
_lower = lru_cache(256)(lower)


class _Product(interpreter.TensorHandle):
    """A dot without an accumulator: the compiler joins it with an addition that follows.

    It is computed when it is used. Added to an accumulator by the only operation that uses it, it
    becomes a dot with that accumulator.
    """

    def __init__(self, compute: Callable[[Any], np.ndarray], zero: Any) -> None:
        self.compute, self.zero, self.dtype = compute, zero, zero.dtype.scalar
        self.attr: dict[str, Any] = {}
        self.value: np.ndarray | None = None
        self.joined = False

    @property
    def data(self) -> np.ndarray:
        if self.joined:
            raise UserError(
                "a tl.dot without acc must be used once, or be added to nothing: the compiler does "
                "not join it with the addition"
            )
        if self.value is None:
            self.value = self.compute(self.zero.data)
        return self.value

    @data.setter
    def data(self, value: np.ndarray) -> None:
        self.value = value


def arithmetic(machine: str, *, num_warps: int = 4, assume: bool = False) -> "KernelArithmetic":
    """Compute the dots of Triton's kernels as a machine does, within a ``with`` statement.

    The context returns a dictionary, which then has each kind of dot (``golden.triton.Dot``, with
    its evidence) and the number of tiles. Contexts change Triton's interpreter, which threads
    share.

    Parameters
    ----------
    machine : str
        A machine of the table that Triton compiles for: a100, ada, h100, h200, b200, cdna3 and
        others.
    num_warps : int
        Of launches that do not give it; it may decide which instruction is taken.
    assume : bool
        If True, the most likely rule is taken where none is known, with the evidence "assumed", and
        the most likely layout of a sum on an H100 or H200.

    Raises
    ------
    UserError
        If Triton has no dots for the machine, if this version's interpreter is not as expected, or
        within the context, if a dot has no known rule.
    """
    return KernelArithmetic(machine, num_warps, assume)


class KernelArithmetic:
    """The context of ``arithmetic``."""

    def __init__(self, machine: str, num_warps: int, assume: bool) -> None:
        lower(machine, "fp16", (64, 64, 64))  # the machine is known
        check_int("num_warps", num_warps, 1)
        self._machine, self._warps, self._assume = machine, num_warps, assume
        self._dots: dict[Dot, int] = {}
        self._fresh = False
        self._undo: list[Callable[[], None]] = []

    def __enter__(self) -> dict[Dot, int]:
        _check()
        builder, semantic = interpreter.interpreter_builder, interpreter.TritonSemantic
        default = builder.options
        if machine_name(self._machine.lower()) in MACHINES:
            for name, create in functions(builder).items():
                self._set(builder, name, create)
            if self._assume:
                before = interpreter.ReduceOps.sum
                added = sums(before, _loaded, lambda: self._warps)
                self._set(interpreter.ReduceOps, "sum", added)
        for name in dir(builder):
            if name.startswith("create_"):
                self._set(builder, name, _tracking(name, getattr(builder, name)))
        self._add = builder.create_fadd
        self._set(builder, "create_fadd", self._create_fadd)
        self._set(builder, "create_dot", self._create_dot)
        self._set(builder, "create_dot_scaled", self._create_dot_scaled)
        self._set(builder, "options", _options(default, self._machine))
        self._set(semantic, "dot", self._semantic_dot(semantic.dot))
        self._set(interpreter, "_patch_lang_tensor", _transposing(interpreter._patch_lang_tensor))
        self._set(interpreter.GridExecutor, "__call__", self._launch())
        return self._dots

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        while self._undo:
            self._undo.pop()()
        cause = error
        while cause is not None and isinstance(cause, interpreter.InterpreterError):
            cause = cause.__cause__
        if isinstance(cause, UserError) and cause is not error:
            raise cause from None

    def _set(self, thing: Any, name: str, value: Any) -> None:
        """Set an attribute until the context ends."""
        own = name in vars(thing)
        before = vars(thing).get(name)
        self._undo.append(lambda: setattr(thing, name, before) if own else delattr(thing, name))
        setattr(thing, name, value)

    def _launch(self) -> Callable[..., Any]:
        """Return the launch of a grid that notes ``num_warps``."""
        before = interpreter.GridExecutor.__call__

        def call(executor: Any, *args: Any, **kwargs: Any) -> Any:
            own = self._warps
            self._warps = kwargs.get("num_warps") or own
            try:
                return before(executor, *args, **kwargs)
            finally:
                self._warps = own

        return call

    def _semantic_dot(self, before: Callable[..., Any]) -> Callable[..., Any]:
        """Return the meaning of ``tl.dot`` that notes whether it has an accumulator."""

        @wraps(before)
        def dot(semantic: Any, lhs: Any, rhs: Any, acc: Any, *more: Any) -> Any:
            self._fresh = acc is None
            return before(semantic, lhs, rhs, acc, *more)

        return dot

    def _create_dot(self, a: Any, b: Any, d: Any, input_precision: Any, imprecise: Any) -> Any:
        x, y = a.data, b.data
        first, second = _name(a.dtype), _name(b.dtype)
        loaded = min(_loaded(a), _loaded(b))
        dot = _lower(
            self._machine,
            first if first == second else f"{first}x{second}",
            (x.shape[-2], y.shape[-1], x.shape[-1]),
            output=_name(d.dtype),
            warps=self._warps,
            imprecise=int(imprecise) if first in FP8 else None,
            precision=_precision(input_precision) if first == "fp32" else None,
            batched=x.ndim == 3,
            loaded=loaded if loaded < WIDTHS[first] else None,
            assume=self._assume,
        )
        self._dots[dot] = self._dots.get(dot, 0) + 1

        def compute(c: np.ndarray) -> np.ndarray:
            return _stacked(x, y, c, dot)

        if self._fresh and not imprecise and first != "int8":
            return _Product(compute, d)
        return interpreter.TensorHandle(compute(d.data), d.dtype.scalar)

    def _create_fadd(self, a: Any, b: Any) -> Any:
        for product, other in ((a, b), (b, a)):
            if isinstance(product, _Product) and product.value is None and not product.joined:
                if product.zero.data.shape == other.data.shape:
                    result = product.compute(other.data)
                    product.joined = True
                    return interpreter.TensorHandle(result, product.dtype)
        return self._add(a, b)

    def _create_dot_scaled(
        self,
        a: Any,
        scale_a: Any,
        format_a: Any,
        b: Any,
        scale_b: Any,
        format_b: Any,
        fast: bool,
        pack_a: bool,
        pack_b: bool,
        c: Any,
    ) -> Any:
        formats = _format(format_a), _format(format_b)
        if a.data.ndim != 2 or not (pack_a and pack_b):
            raise UserError("operands of tl.dot_scaled must have two axes and be packed along K")
        x, y = _codes(a.data), _codes(b.data)
        x = _unpacked(x) if formats[0] == "e2m1" else x
        y = _unpacked(y.T).T if formats[1] == "e2m1" else y
        kinds = {_name_of_scale(s) for s in (scale_a, scale_b) if s is not None}
        if len(kinds) != 1:
            raise UserError("the scales of tl.dot_scaled must have one type")
        d, dot = multiply_scaled(
            *(self._machine, x, y, _codes(c.data)),
            formats=formats,
            scale_a=None if scale_a is None else scale_a.data.view(np.uint8),
            scale_b=None if scale_b is None else scale_b.data.view(np.uint8).T,
            scale=kinds.pop(),
            warps=self._warps,
            fast=fast,
        )
        self._dots[dot] = self._dots.get(dot, 0) + 1
        return interpreter.TensorHandle(d.view(np.float32), c.dtype.scalar)


class _Wrapped:
    """An array with what Triton's interpreter asks of a tensor."""

    def __init__(self, array: np.ndarray, dtype: str) -> None:
        self.array, self.dtype, self.device = array, dtype, "cpu"

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def untyped_storage(self) -> "_Wrapped":
        return self

    def cpu(self) -> "_Wrapped":
        return self

    def copy_(self, other: "_Wrapped") -> None:
        """Do nothing: the storage is that of the array."""

    def storage_offset(self) -> int:
        return 0

    def size(self) -> tuple[int, ...]:
        return self.array.shape

    def stride(self) -> tuple[int, ...]:
        return tuple(step // self.array.itemsize for step in self.array.strides)

    def new_empty(self, size: int, device: str = "cpu") -> "_Wrapped":  # noqa: ARG002
        return _Wrapped(self.array, self.dtype)

    def set_(self, storage: "_Wrapped", *layout: Any) -> None:  # noqa: ARG002
        self.array = storage.array


def wrap(array: np.ndarray) -> Any:
    """Return an array of NumPy as an argument of Triton's kernels in the interpreter.

    A kernel reads and writes the array itself.

    Parameters
    ----------
    array : ndarray
        Of numbers of NumPy or ml_dtypes.

    Raises
    ------
    TypeError
        If Triton has no such element type.
    """
    name = array.dtype.name
    if name not in _TYPES:
        raise TypeError(f"array must be of {', '.join(_TYPES)}, not {name}")
    return _Wrapped(array, _TYPES[name])


def _check() -> None:
    """Refuse a Triton whose interpreter is not as this module expects."""
    version = triton.__version__
    name = ".".join(version.split(".")[:2])
    wrong, meaning = "", interpreter.TritonSemantic
    try:
        if not SUPPORTED[0] <= name <= SUPPORTED[1] or len(name) > 3:
            wrong = "its version is not supported"
        elif list(inspect.signature(interpreter.InterpreterBuilder.create_dot).parameters) != _DOT:
            wrong = "create_dot has other parameters"
        elif list(inspect.signature(meaning.dot).parameters) != _MEANING:
            wrong = "the meaning of tl.dot has other parameters"
        elif not triton.knobs.runtime.interpret:
            raise UserError("TRITON_INTERPRET must be 1 before kernels are defined")
    except AttributeError as error:
        wrong = str(error)
    if wrong:
        raise UserError(
            f"triton must be {SUPPORTED[0]} to {SUPPORTED[1]} with an interpreter as expected, "
            f"not {version}: {wrong}"
        )


def _options(default: Any, machine: str) -> Any:
    """Return the options of the interpreter with what the compiler has for the machine."""
    name = machine_name(machine.lower())
    return replace(
        default,
        default_dot_input_precision="ieee" if name == "cdna3" else "tf32",
        max_num_imprecise_acc_default=default_imprecise(name),
    )


def _tracking(name: str, create: Callable[..., Any]) -> Callable[..., Any]:
    """Return an operation that notes the bits of the narrowest array that a tile was loaded from.

    The compiler arranges the registers of ``mma.sync`` for that array.
    """
    loads = "load" in name

    def tracked(*args: Any, **kwargs: Any) -> Any:
        result = create(*args, **kwargs)
        if isinstance(result, interpreter.TensorHandle):
            if loads:
                result.attr[_WIDTH] = result.dtype.primitive_bitwidth
            else:
                found = [
                    v.attr[_WIDTH]
                    for v in (*args, *kwargs.values())
                    if isinstance(v, interpreter.TensorHandle) and _WIDTH in v.attr
                ]
                if found:
                    result.attr[_WIDTH] = min(found)
        return result

    return tracked


def _transposing(before: Callable[..., Any]) -> Callable[..., Any]:
    """Return the preparation of tensors whose attribute T keeps what ``_tracking`` notes."""

    def patch(tensor: Any, *more: Any) -> Any:
        result = before(tensor, *more)
        transpose = tensor.T.fget

        def transposed(x: Any) -> Any:
            y = transpose(x)
            y.handle.attr.update(x.handle.attr)
            return y

        tensor.T = property(transposed)
        return result

    return patch


def _loaded(handle: Any) -> int:
    return handle.attr.get(_WIDTH, handle.dtype.primitive_bitwidth)


def _name(dtype: Any) -> str:
    """Return this project's name of a type of Triton."""
    name = str(dtype.scalar)
    if name not in _NAMES:
        raise UserError(f"operands of tl.dot must be {', '.join(_NAMES)}, not {name}")
    return _NAMES[name]


def _precision(value: Any) -> str:
    return str(getattr(value, "name", value)).lower()


def _format(value: Any) -> str:
    return str(getattr(value, "name", value)).lower()


def _name_of_scale(handle: Any) -> str:
    return "ue4m3" if str(handle.dtype.scalar) == "fp8e4nv" else "ue8m0"


def _codes(array: np.ndarray) -> np.ndarray:
    """Return an array as codes; int8 and int32 stay."""
    if array.dtype.kind == "f" or array.dtype == ml_dtypes.bfloat16:
        return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
    return np.ascontiguousarray(array)


def _unpacked(codes: np.ndarray) -> np.ndarray:
    """Return codes of e2m1, which are two a byte along the last axis, the first in the low bits."""
    both = np.stack((codes & 15, codes >> 4), axis=-1)
    return both.reshape(*codes.shape[:-1], 2 * codes.shape[-1]).astype(np.uint8)


def _stacked(a: np.ndarray, b: np.ndarray, c: np.ndarray, dot: Dot) -> np.ndarray:
    """Return C + A·B of tiles with two axes, or of a stack of them."""
    x, y, z = _codes(a), _codes(b), _codes(c)
    if x.ndim == 2:
        return multiply(x, y, z, dot).view(c.dtype)
    return np.stack([multiply(*v, dot) for v in zip(x, y, z, strict=True)]).view(c.dtype)

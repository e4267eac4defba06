"""A network from an ONNX file; needs the package ``onnx`` (the extra ``onnx`` of this project).

Batch normalisations and ReLUs that directly follow a convolution run with it. Operators that only
rename or reshape data cost nothing. Every other operator becomes a layer of its own; ``run`` names
and counts those without a kernel.

References
----------
ONNX operator specification, https://onnx.ai/onnx/operators.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

from vitruvian.sim.networks.layers import (
    Conv,
    Elementwise,
    Layer,
    LayerNorm,
    MatMul,
    Network,
    Other,
    Pool,
    Softmax,
)

__all__ = ["OnnxError", "read_onnx"]


class OnnxError(ValueError):
    """An ONNX file that cannot be read, or the package that reads it is missing."""


#: Operators that move no data: names, shapes and constants.
_FREE = frozenset(
    """Cast Concat Constant Dropout Flatten Identity Reshape Shape Squeeze Unsqueeze""".split()
)

#: Operators on each element, by the operation of ``elementwise.RECIPES``.
_EACH = {
    "Add": "add",
    "Gelu": "gelu",
    "HardSigmoid": "hard_sigmoid",
    "HardSwish": "hard_swish",
    "Mul": "mul",
    "Relu": "relu",
    "Sigmoid": "sigmoid",
    "Tanh": "tanh",
}

_Shape = tuple[int, ...]


def read_onnx(path: str | Path) -> Network:
    """Read the layers of an ONNX file.

    Parameters
    ----------
    path : str or Path

    Raises
    ------
    OnnxError
        If the package is missing, the file is no ONNX model, or a tensor has no fixed shape.
    """
    try:
        import onnx  # pyright: ignore[reportMissingImports]
        from onnx import shape_inference  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise OnnxError(
            "the package onnx must be installed to read ONNX files: pip install 'vitruvian[onnx]'"
        ) from None
    try:
        # Weights in separate files are not needed: only their shapes count.
        model = onnx.load(str(path), load_external_data=False)
        model = shape_inference.infer_shapes(model)
    except OSError as error:
        raise OnnxError(f"{path}: model must be a file that can be read: {error}") from None
    except Exception as error:  # protobuf and onnx raise errors of many classes
        reason = " ".join(str(error).split())[:200]
        raise OnnxError(f"{path}: model must be an ONNX file: {reason}") from None
    return _Reader(str(path), model).network()


class _Reader:
    """The graph of a model, and the shapes of its tensors."""

    def __init__(self, path: str, model: Any) -> None:
        self.path, self.graph = path, model.graph
        self.shapes: dict[str, _Shape | None] = {}
        for value in (*self.graph.input, *self.graph.value_info, *self.graph.output):
            dims = value.type.tensor_type.shape.dim
            known = all(d.HasField("dim_value") for d in dims)
            self.shapes[value.name] = tuple(d.dim_value for d in dims) if known else None
        for tensor in self.graph.initializer:
            self.shapes[tensor.name] = tuple(tensor.dims)
        self.readers = Counter(name for node in self.graph.node for name in node.input)
        self.fixed = {tensor.name for tensor in self.graph.initializer}
        self.fixed |= {n.output[0] for n in self.graph.node if n.op_type == "Constant"}
        #: Convolutions that a following normalisation or ReLU may join, by the name of the result.
        self.open: dict[str, int] = {}
        self.layers: list[Layer] = []

    def network(self) -> Network:
        for node in self.graph.node:
            self.node(node)
        name = Path(self.path).stem
        return Network(name, self.graph.name or name, tuple(self.layers))

    def node(self, node: Any) -> None:
        op, source = node.op_type, node.input[0] if node.input else ""
        if op in _FREE:
            return
        if op in ("BatchNormalization", "Relu") and self._joins(source):
            index = self.open.pop(source)
            layer = self.layers[index]
            assert isinstance(layer, Conv)
            if op == "Relu":
                self.layers[index] = replace(layer, relu=True)
            else:
                self.open[node.output[0]] = index
            return
        name = node.name or f"{op}{len(self.layers)}"
        make: Callable[[str, Any], Layer] | None = getattr(self, f"_{op.lower()}", None)
        if op in _EACH:
            elements = prod(self.shape(node.output[0]))
            self.layers.append(Elementwise(name=name, operation=_EACH[op], elements=elements))
        elif op in _MAKERS and make is not None:
            self.layers.append(make(name, node))
        else:
            self.layers.append(Other(name=name, operation=op))
        if op == "Conv":
            self.open[node.output[0]] = len(self.layers) - 1

    def _joins(self, source: str) -> bool:
        """Return True if a convolution makes this tensor, and nothing else reads it."""
        return source in self.open and self.readers[source] == 1

    def shape(self, name: str) -> _Shape:
        """Return the shape of a tensor."""
        shape = self.shapes.get(name)
        if shape is None or 0 in shape:
            raise OnnxError(
                f"{self.path}: tensor {name} must have a fixed shape, not a variable one"
            )
        return shape

    def _image(self, name: str, op: str) -> _Shape:
        shape = self.shape(name)
        if len(shape) != 4:
            raise OnnxError(
                f"{self.path}: input of {op} must be (N, C, H, W), not {len(shape)} dimensions"
            )
        return shape

    def _window(self, node: Any, size: _Shape, kernel: _Shape) -> dict[str, Any]:
        """Return the attributes of a sliding window, with ``auto_pad`` resolved."""
        a = _attributes(node)
        stride = tuple(a.get("strides", (1, 1)))
        dilation = tuple(a.get("dilations", (1, 1)))
        pads = tuple(a.get("pads", (0, 0, 0, 0)))
        pad = (pads[0], pads[2], pads[1], pads[3])
        auto = a.get("auto_pad", b"NOTSET").decode()
        if auto.startswith("SAME"):
            both = []
            for n, k, s, d in zip(size, kernel, stride, dilation, strict=True):
                total = max((-(-n // s) - 1) * s + d * (k - 1) + 1 - n, 0)
                low = total // 2 if auto == "SAME_UPPER" else total - total // 2
                both += [low, total - low]
            pad = tuple(both)
        found = {"kernel": kernel, "stride": stride, "pad": pad}
        return found | ({"dilation": dilation} if dilation != (1, 1) else {})

    def _conv(self, name: str, node: Any) -> Layer:
        n, c, h, w = self._image(node.input[0], "Conv")
        weights = self.shape(node.input[1])
        return Conv(
            name=name,
            times=n,
            channels=c,
            height=h,
            width=w,
            filters=weights[0],
            groups=_attributes(node).get("group", 1),
            **self._window(node, (h, w), weights[2:]),
        )

    def _pool(self, name: str, node: Any, operation: str) -> Layer:
        n, c, h, w = self._image(node.input[0], node.op_type)
        a = _attributes(node)
        whole = node.op_type.startswith("Global")
        kernel = (h, w) if whole else tuple(a["kernel_shape"])
        window = (
            {"kernel": kernel, "stride": (1, 1)} if whole else self._window(node, (h, w), kernel)
        )
        if "dilation" in window or a.get("ceil_mode", 0):
            return Other(name=name, operation=f"{node.op_type} with dilation or ceil_mode")
        return Pool(
            name=name, times=n, operation=operation, channels=c, height=h, width=w, **window
        )

    def _maxpool(self, name: str, node: Any) -> Layer:
        return self._pool(name, node, "max")

    def _averagepool(self, name: str, node: Any) -> Layer:
        return self._pool(name, node, "avg")

    _globalmaxpool, _globalaveragepool = _maxpool, _averagepool

    def _gemm(self, name: str, node: Any) -> Layer:
        a, (m, k) = _attributes(node), self.shape(node.input[0])
        m, k = (k, m) if a.get("transA", 0) else (m, k)
        return MatMul(name=name, m=m, k=k, n=self.shape(node.output[0])[-1])

    def _matmul(self, name: str, node: Any) -> Layer:
        left, right = self.shape(node.input[0]), self.shape(node.input[1])
        if min(len(left), len(right)) < 2:
            return Other(name=name, operation="MatMul with a vector")
        m, k, n = left[-2], left[-1], right[-1]
        batch = prod(self.shape(node.output[0])[:-2])
        if len(right) == 2:
            # One matrix for all: the rows of the batch follow each other.
            return MatMul(name=name, m=batch * m, k=k, n=n)
        return MatMul(name=name, m=m, k=k, n=n, times=batch)

    def _softmax(self, name: str, node: Any) -> Layer:
        shape = self.shape(node.input[0])
        classes = shape[_attributes(node).get("axis", -1)]
        return Softmax(name=name, rows=prod(shape) // classes, classes=classes)

    def _layernormalization(self, name: str, node: Any) -> Layer:
        shape = self.shape(node.input[0])
        features = prod(shape[_attributes(node).get("axis", -1) :])
        return LayerNorm(name=name, rows=prod(shape) // features, features=features)


#: Operators that a method of ``_Reader`` reads.
_MAKERS = frozenset(
    """AveragePool Conv Gemm GlobalAveragePool GlobalMaxPool LayerNormalization MatMul MaxPool
    Softmax""".split()
)


def _attributes(node: Any) -> dict[str, Any]:
    """Return the attributes of a node as numbers, bytes and lists."""
    from onnx import helper  # pyright: ignore[reportMissingImports]

    return {a.name: helper.get_attribute_value(a) for a in node.attribute}

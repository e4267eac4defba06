"""A network from an ONNX file; needs the package ``onnx`` (the extra ``onnx`` of this project).

Batch normalisations and ReLUs that directly follow a convolution run with it. Operators that only
rename or reshape data cost nothing. Every other operator becomes a layer of its own; ``run`` names
and counts those without a kernel. If shape inference does not find the shape of a tensor in a model
whose inputs all have fixed shapes, the operator that needs it is a layer without a kernel, too.

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

from vitruvian.common.extras import missing
from vitruvian.common.validate import ceil_div
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


class _NoKernel(Exception):
    """An operator is of a form that no kernel computes; the message names the form."""


def read_onnx(path: str | Path) -> Network:
    """Read the layers of an ONNX file.

    Raises
    ------
    OnnxError
        If the package is missing, the file is no ONNX model, the model has no layers or its nodes
        are not in the order in which they run, or a tensor depends on an input whose shape is
        variable.
    """
    try:
        import onnx  # pyright: ignore[reportMissingImports]
        from onnx import shape_inference  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise OnnxError(missing("onnx")) from None
    try:
        # Weights in separate files are not needed: only their shapes count.
        model = onnx.load(str(path), load_external_data=False)
        model = shape_inference.infer_shapes(model, data_prop=True)
    except OSError as error:
        raise OnnxError(f"{path}: model must be a file that can be read: {error}") from None
    except Exception as error:  # protobuf and onnx raise errors of many classes
        reason = " ".join(str(error).split())[:200]
        raise OnnxError(f"{path}: model must be an ONNX file: {reason}") from None
    return _OnnxReader(str(path), model).network()


class _OnnxReader:
    """The graph of a model, and the shapes of its tensors."""

    def __init__(self, path: str, model: Any) -> None:
        self.path, self.graph = path, model.graph
        self.shapes: dict[str, _Shape | None] = {}
        for value in (*self.graph.input, *self.graph.value_info, *self.graph.output):
            # An output may be declared without the shape that is known from its node.
            shape = _shape_of(value)
            if shape is not None or value.name not in self.shapes:
                self.shapes[value.name] = shape
        for tensor in self.graph.initializer:
            self.shapes[tensor.name] = tuple(tensor.dims)
        #: An input of the model whose shape is variable, if there is one.
        self.variable = next((i for i in self.graph.input if self.shapes[i.name] is None), None)
        self.readers = Counter(name for node in self.graph.node for name in node.input)
        self.fixed = {tensor.name for tensor in self.graph.initializer}
        self.fixed |= {n.output[0] for n in self.graph.node if n.op_type == "Constant"}
        #: Convolutions that a following normalisation or ReLU may join, by the name of the result.
        self.open: dict[str, int] = {}
        self.layers: list[Layer] = []

    def network(self) -> Network:
        self._check_order()
        for node in self.graph.node:
            try:
                self.node(node)
            except (IndexError, KeyError, TypeError, AttributeError, ValueError) as error:
                if isinstance(error, OnnxError):
                    raise
                raise OnnxError(
                    f"{self.path}: node {node.name or node.op_type} must have the inputs and "
                    f"attributes of {node.op_type} ({type(error).__name__}: {error})"
                ) from None
        if not self.layers:
            raise OnnxError(f"{self.path}: model must have one layer or more, not none")
        name = Path(self.path).stem
        return Network(name, self.graph.name or name, tuple(self.layers))

    def _check_order(self) -> None:
        """Refuse a graph with a node that reads what no input, weight or earlier node makes."""
        known = {""} | {value.name for value in self.graph.input}
        known |= {tensor.name for tensor in self.graph.initializer}
        known |= {tensor.values.name for tensor in self.graph.sparse_initializer}
        for node in self.graph.node:
            for name in node.input:
                if name not in known:
                    raise OnnxError(
                        f"{self.path}: nodes must come after those that they read, unlike "
                        f"{node.name or node.op_type}, which reads {name}"
                    )
            known.update(node.output)

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
        layer = self._layer(name, node)
        self.layers.append(layer)
        if isinstance(layer, Conv):
            self.open[node.output[0]] = len(self.layers) - 1

    def _layer(self, name: str, node: Any) -> Layer:
        """Return the layer of a node that costs something."""
        op = node.op_type
        make: Callable[[str, Any], Layer] | None = getattr(self, f"_{op.lower()}", None)
        try:
            if op in _EACH:
                elements = prod(self.shape(node.output[0]))
                return Elementwise(name=name, operation=_EACH[op], elements=elements)
            if op in _MAKERS and make is not None:
                return make(name, node)
        except _NoKernel as error:
            return Other(name=name, operation=f"{op} {error}")
        return Other(name=name, operation=op)

    def _joins(self, source: str) -> bool:
        """Return True if a convolution makes this tensor, and nothing else reads it."""
        return source in self.open and self.readers[source] == 1

    def shape(self, name: str) -> _Shape:
        """Return the shape of a tensor."""
        shape = self.shapes.get(name)
        if shape is None and self.variable is not None:
            dims = self.variable.type.tensor_type.shape.dim
            shown = "×".join(d.dim_param or str(d.dim_value or "?") for d in dims) or "none"
            raise OnnxError(
                f"{self.path}: tensor {name} must have a fixed shape, and so must the input "
                f"{self.variable.name}, not {shown}"
            )
        if shape is None:
            raise _NoKernel("of unknown shape")
        if 0 in shape:
            raise _NoKernel("without elements")
        return shape

    def _image(self, name: str) -> _Shape:
        shape = self.shape(name)
        if len(shape) != 4:
            raise _NoKernel(f"of {len(shape)} dimensions")
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
                total = max((ceil_div(n, s) - 1) * s + d * (k - 1) + 1 - n, 0)
                low = total // 2 if auto == "SAME_UPPER" else total - total // 2
                both += [low, total - low]
            pad = tuple(both)
        found = {"kernel": kernel, "stride": stride, "pad": pad}
        return found | ({"dilation": dilation} if dilation != (1, 1) else {})

    def _conv(self, name: str, node: Any) -> Layer:
        n, c, h, w = self._image(node.input[0])
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
        n, c, h, w = self._image(node.input[0])
        a = _attributes(node)
        whole = node.op_type.startswith("Global")
        kernel = (h, w) if whole else tuple(a["kernel_shape"])
        window = (
            {"kernel": kernel, "stride": (1, 1)} if whole else self._window(node, (h, w), kernel)
        )
        if "dilation" in window or a.get("ceil_mode", 0):
            raise _NoKernel("with dilation or ceil_mode")
        return Pool(
            name=name, times=n, operation=operation, channels=c, height=h, width=w, **window
        )

    def _maxpool(self, name: str, node: Any) -> Layer:
        return self._pool(name, node, "max")

    def _averagepool(self, name: str, node: Any) -> Layer:
        return self._pool(name, node, "avg")

    _globalmaxpool, _globalaveragepool = _maxpool, _averagepool

    def _gemm(self, name: str, node: Any) -> Layer:
        a, (m, k) = _attributes(node), self._matrix(node.input[0])
        m, k = (k, m) if a.get("transA", 0) else (m, k)
        return MatMul(name=name, m=m, k=k, n=self.shape(node.output[0])[-1])

    def _matrix(self, name: str) -> _Shape:
        shape = self.shape(name)
        if len(shape) != 2:
            raise _NoKernel(f"of {len(shape)} dimensions")
        return shape

    def _matmul(self, name: str, node: Any) -> Layer:
        left, right = self.shape(node.input[0]), self.shape(node.input[1])
        if min(len(left), len(right)) < 2:
            raise _NoKernel("with a vector")
        m, k, n = left[-2], left[-1], right[-1]
        batch = prod(self.shape(node.output[0])[:-2])
        if len(right) == 2:
            # One matrix for all: the rows of the batch follow each other.
            return MatMul(name=name, m=batch * m, k=k, n=n)
        return MatMul(name=name, m=m, k=k, n=n, times=batch)

    def _array(self, name: str) -> _Shape:
        shape = self.shape(name)
        if not shape:
            raise _NoKernel("of a scalar")
        return shape

    def _softmax(self, name: str, node: Any) -> Layer:
        shape = self._array(node.input[0])
        classes = shape[_attributes(node).get("axis", -1)]
        return Softmax(name=name, rows=prod(shape) // classes, classes=classes)

    def _layernormalization(self, name: str, node: Any) -> Layer:
        shape = self._array(node.input[0])
        features = prod(shape[_attributes(node).get("axis", -1) :])
        return LayerNorm(name=name, rows=prod(shape) // features, features=features)


#: Operators that a method of ``_OnnxReader`` reads.
_MAKERS = frozenset(
    """AveragePool Conv Gemm GlobalAveragePool GlobalMaxPool LayerNormalization MatMul MaxPool
    Softmax""".split()
)


def _shape_of(value: Any) -> _Shape | None:
    """Return the shape of a tensor, or None if a dimension or the number of them is not known."""
    kind = value.type.tensor_type
    # A tensor without a shape has no dimensions in the file, as a scalar has none.
    if not value.type.HasField("tensor_type") or not kind.HasField("shape"):
        return None
    if not all(d.HasField("dim_value") for d in kind.shape.dim):
        return None
    return tuple(d.dim_value for d in kind.shape.dim)


def _attributes(node: Any) -> dict[str, Any]:
    """Return the attributes of a node as numbers, bytes and lists."""
    from onnx import helper  # pyright: ignore[reportMissingImports]

    return {a.name: helper.get_attribute_value(a) for a in node.attribute}

"""The layers of a network: their kinds and sizes, without weights."""

from dataclasses import dataclass, replace

from vitruvian.golden.scu import Patches


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A layer.

    Attributes
    ----------
    name : str
        Name in the network.
    times : int
        Number of equal layers that run one after the other, such as the heads of an attention.
    """

    name: str
    times: int = 1

    @property
    def kind(self) -> str:
        """The name of the kind, for tables and messages."""
        return type(self).__name__.lower()

    @property
    def shape(self) -> "Layer":
        """The layer without its name and number: layers of equal shape take the same time."""
        return replace(self, name="", times=1)


@dataclass(frozen=True, kw_only=True)
class Conv(Layer):
    """A 2-D convolution with bias, and with ReLU if ``relu``.

    Attributes
    ----------
    channels, height, width : int
        Size of the input.
    filters : int
    kernel, stride, dilation : (int, int)
        In rows and in columns.
    pad : (int, int, int, int)
        Top, bottom, left and right.
    groups : int
    relu : bool
    """

    channels: int
    height: int
    width: int
    filters: int
    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    pad: tuple[int, int, int, int] = (0, 0, 0, 0)
    groups: int = 1
    relu: bool = False

    @property
    def kind(self) -> str:
        """``depthwise`` if every channel has its own filter, else ``conv``."""
        return "depthwise" if self.groups == self.channels == self.filters > 1 else "conv"

    @property
    def rows(self) -> int:
        """Rows of the output."""
        return _out(
            self.height, self.kernel[0], self.stride[0], self.dilation[0], sum(self.pad[:2])
        )

    @property
    def columns(self) -> int:
        """Columns of the output."""
        return _out(self.width, self.kernel[1], self.stride[1], self.dilation[1], sum(self.pad[2:]))


@dataclass(frozen=True, kw_only=True)
class Pool(Layer):
    """A pooling.

    Attributes
    ----------
    operation : {"max", "avg"}
    channels, height, width : int
        Size of the input.
    kernel, stride : (int, int)
    pad : (int, int, int, int)
    """

    operation: str
    channels: int
    height: int
    width: int
    kernel: tuple[int, int]
    stride: tuple[int, int]
    pad: tuple[int, int, int, int] = (0, 0, 0, 0)

    @property
    def kind(self) -> str:
        """``maxpool`` or ``avgpool``."""
        return f"{self.operation}pool"

    @property
    def patches(self) -> Patches:
        """The windows of 16 channels."""
        return Patches(
            height=self.height,
            width=self.width,
            kernel=self.kernel,
            stride=self.stride,
            pad=self.pad,
        )

    @property
    def rows(self) -> int:
        """Rows of the output."""
        return _out(self.height, self.kernel[0], self.stride[0], 1, sum(self.pad[:2]))

    @property
    def columns(self) -> int:
        """Columns of the output."""
        return _out(self.width, self.kernel[1], self.stride[1], 1, sum(self.pad[2:]))


@dataclass(frozen=True, kw_only=True)
class MatMul(Layer):
    """A product of m × k by k × n."""

    m: int
    k: int
    n: int


@dataclass(frozen=True, kw_only=True)
class Elementwise(Layer):
    """An operation on each element; ``operation`` is a key of ``kernels.RECIPES``."""

    operation: str
    elements: int


@dataclass(frozen=True, kw_only=True)
class Softmax(Layer):
    """A softmax over the classes of each row."""

    rows: int
    classes: int


@dataclass(frozen=True, kw_only=True)
class LayerNorm(Layer):
    """A normalisation over the features of each row."""

    rows: int
    features: int

    @property
    def kind(self) -> str:
        """The name of the kind."""
        return "layer norm"


@dataclass(frozen=True, kw_only=True)
class Other(Layer):
    """A layer that no kernel computes; ``operation`` names it, for example by its ONNX operator."""

    operation: str

    @property
    def kind(self) -> str:
        """The name of the operation."""
        return self.operation


@dataclass(frozen=True)
class Network:
    """A network for one input, as a list of layers.

    Attributes
    ----------
    name, title : str
    layers : tuple of Layer
        In the order in which they run.
    """

    name: str
    title: str
    layers: tuple[Layer, ...]


def _out(size: int, kernel: int, stride: int, dilation: int, pad: int) -> int:
    return (size + pad - dilation * (kernel - 1) - 1) // stride + 1

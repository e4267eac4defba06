"""Tables of three networks for images, with the sizes of their publications; inference, batch 1.

Batch normalisation is folded into the convolutions. A ReLU after a convolution runs with it; other
activations, sums of branches and scalings are layers of their own. Concatenations cost nothing: a
layer writes to its place.

References
----------
He et al. 2016 (ResNet-50, with the stride in the 3 × 3 convolution), Szegedy et al. 2016
(InceptionV3), Howard et al. 2019 (MobileNetV3-Large, Table 1).
"""

from vitruvian.sim.networks.layers import Conv, Elementwise, Layer, MatMul, Network, Pool


class _NetworkBody:
    """A list of layers under construction, with the size of the last result."""

    def __init__(self, channels: int, size: int) -> None:
        self.layers: list[Layer] = []
        self.channels, self.height, self.width = channels, size, size

    @property
    def elements(self) -> int:
        return self.channels * self.height * self.width

    def at(self) -> tuple[int, int, int]:
        """Return the size of the last result, for ``back``."""
        return self.channels, self.height, self.width

    def back(self, place: tuple[int, int, int]) -> None:
        """Continue from an earlier result: the next layer starts another branch."""
        self.channels, self.height, self.width = place

    def conv(
        self,
        filters: int,
        kernel: int | tuple[int, int],
        stride: int = 1,
        *,
        same: bool = True,
        relu: bool = True,
        groups: int = 1,
    ) -> None:
        """Add a convolution; its padding keeps the size at stride 1 if ``same``."""
        k = kernel if isinstance(kernel, tuple) else (kernel, kernel)
        p = (k[0] // 2, k[1] // 2) if same else (0, 0)
        layer = Conv(
            name=f"conv{len(self.layers)}",
            channels=self.channels,
            height=self.height,
            width=self.width,
            filters=filters,
            kernel=k,
            stride=(stride, stride),
            pad=(p[0], p[0], p[1], p[1]),
            groups=groups,
            relu=relu,
        )
        self.layers.append(layer)
        self.channels, self.height, self.width = filters, layer.rows, layer.columns

    def pool(self, operation: str, kernel: int, stride: int, pad: int = 0) -> None:
        """Add a pooling."""
        layer = Pool(
            name=f"pool{len(self.layers)}",
            operation=operation,
            channels=self.channels,
            height=self.height,
            width=self.width,
            kernel=(kernel, kernel),
            stride=(stride, stride),
            pad=(pad, pad, pad, pad),
        )
        self.layers.append(layer)
        self.height, self.width = layer.rows, layer.columns

    def each(self, operation: str) -> None:
        """Add an operation on each element of the last result."""
        name = f"{operation}{len(self.layers)}"
        self.layers.append(Elementwise(name=name, operation=operation, elements=self.elements))

    def dense(self, n: int) -> None:
        """Add a fully connected layer."""
        name = f"dense{len(self.layers)}"
        self.layers.append(MatMul(name=name, m=1, k=self.elements, n=n))
        self.channels, self.height, self.width = n, 1, 1


def resnet50() -> Network:
    """Return ResNet-50 for images of 224 × 224."""
    body = _NetworkBody(3, 224)
    body.conv(64, 7, 2)
    body.pool("max", 3, 2, 1)
    for blocks, width, first in ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2)):
        for block in range(blocks):
            stride, start = first if block == 0 else 1, body.at()
            body.conv(width, 1)
            body.conv(width, 3, stride)
            body.conv(4 * width, 1, relu=False)
            if block == 0:
                end = body.at()
                body.back(start)
                body.conv(4 * width, 1, stride, relu=False)
                assert body.at() == end
            body.each("add_relu")
    body.pool("avg", body.height, 1)
    body.dense(1000)
    return Network("resnet50", "ResNet-50, 224 × 224", tuple(body.layers))


#: Kernel, expanded channels, output channels, squeeze-and-excite, activation, stride.
_MOBILE = (
    (3, 16, 16, False, "relu", 1),
    (3, 64, 24, False, "relu", 2),
    (3, 72, 24, False, "relu", 1),
    (5, 72, 40, True, "relu", 2),
    (5, 120, 40, True, "relu", 1),
    (5, 120, 40, True, "relu", 1),
    (3, 240, 80, False, "hard_swish", 2),
    (3, 200, 80, False, "hard_swish", 1),
    (3, 184, 80, False, "hard_swish", 1),
    (3, 184, 80, False, "hard_swish", 1),
    (3, 480, 112, True, "hard_swish", 1),
    (3, 672, 112, True, "hard_swish", 1),
    (5, 672, 160, True, "hard_swish", 2),
    (5, 960, 160, True, "hard_swish", 1),
    (5, 960, 160, True, "hard_swish", 1),
)


def mobilenet_v3() -> Network:
    """Return MobileNetV3-Large for images of 224 × 224."""
    body = _NetworkBody(3, 224)
    body.conv(16, 3, 2, relu=False)
    body.each("hard_swish")
    for kernel, expanded, out, squeeze, activation, stride in _MOBILE:
        start = body.at()
        fused = activation == "relu"
        if expanded != body.channels:
            body.conv(expanded, 1, relu=fused)
            if not fused:
                body.each(activation)
        body.conv(expanded, kernel, stride, relu=fused, groups=expanded)
        if not fused:
            body.each(activation)
        if squeeze:
            _squeeze(body)
        body.conv(out, 1, relu=False)
        if body.at() == start:
            body.each("add")
    body.conv(960, 1, relu=False)
    body.each("hard_swish")
    body.pool("avg", body.height, 1)
    body.dense(1280)
    body.each("hard_swish")
    body.dense(1000)
    return Network("mobilenet_v3", "MobileNetV3-Large, 224 × 224", tuple(body.layers))


def _squeeze(body: _NetworkBody) -> None:
    """Add a squeeze-and-excite block: channels scaled by a small network of their means."""
    place = body.at()
    channels = body.channels
    # The width is a quarter, rounded to a multiple of 8 that loses at most a tenth.
    width = max(8, (channels // 4 + 4) // 8 * 8)
    width += 8 if width < 0.9 * (channels / 4) else 0
    body.pool("avg", body.height, 1)
    body.dense(width)
    body.each("relu")
    body.dense(channels)
    body.each("hard_sigmoid")
    body.back(place)
    body.each("mul")


def inception_v3() -> Network:
    """Return InceptionV3 for images of 299 × 299, without its auxiliary classifier."""
    body = _NetworkBody(3, 299)
    body.conv(32, 3, 2, same=False)
    body.conv(32, 3, same=False)
    body.conv(64, 3)
    body.pool("max", 3, 2)
    body.conv(80, 1)
    body.conv(192, 3, same=False)
    body.pool("max", 3, 2)
    for features in (32, 64, 64):
        _branches(
            body,
            [(64, 1)],
            [(48, 1), (64, 5)],
            [(64, 1), (96, 3), (96, 3)],
            pooled=features,
        )
    _reduce(body, [(384, 3)], [(64, 1), (96, 3), (96, 3)])
    for c in (128, 160, 160, 192):
        _branches(
            body,
            [(192, 1)],
            [(c, 1), (c, (1, 7)), (192, (7, 1))],
            [(c, 1), (c, (7, 1)), (c, (1, 7)), (c, (7, 1)), (192, (1, 7))],
            pooled=192,
        )
    _reduce(body, [(192, 1), (320, 3)], [(192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3)])
    for _ in range(2):
        # A branch that forks is written as two that share their first layers.
        _branches(
            body,
            [(320, 1)],
            [(384, 1), (384, (1, 3))],
            [(-384, (3, 1))],
            [(448, 1), (384, 3), (384, (1, 3))],
            [(-384, (3, 1))],
            pooled=192,
        )
    body.pool("avg", body.height, 1)
    body.dense(1000)
    return Network("inception_v3", "InceptionV3, 299 × 299", tuple(body.layers))


#: A convolution of a branch: filters and kernel. Negative filters fork: the layer reads what the
#: last layer of the branch before read.
_Step = tuple[int, int | tuple[int, int]]


def _branches(body: _NetworkBody, *branches: list[_Step], pooled: int) -> None:
    """Add branches that keep the size, and one with an average pooling; concatenate them."""
    start, total = body.at(), pooled
    before = start
    for branch in branches:
        body.back(before if branch[0][0] < 0 else start)
        for filters, kernel in branch:
            before = body.at()
            body.conv(abs(filters), kernel)
        total += body.channels
    body.back(start)
    body.pool("avg", 3, 1, 1)
    body.conv(pooled, 1)
    body.channels = total


def _reduce(body: _NetworkBody, *branches: list[_Step]) -> None:
    """Add branches whose last convolution has stride 2, and a max pooling; concatenate them."""
    start, total = body.at(), body.channels
    for branch in branches:
        body.back(start)
        for filters, kernel in branch[:-1]:
            body.conv(filters, kernel)
        filters, kernel = branch[-1]
        body.conv(filters, kernel, 2, same=False)
        total += filters
    body.back(start)
    body.pool("max", 3, 2)
    body.channels = total

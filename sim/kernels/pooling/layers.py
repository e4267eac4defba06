"""The pooling layers of four networks, and the sizes that Rohwedder 2021 measures.

References
----------
Rohwedder 2021, Tables 2.1, 5.1 and 5.2: the sizes, which are those of Keras. Kernel, stride and
padding ("same" or "valid") are those of Keras' models.
"""

from dataclasses import dataclass

from vitruvian.common.validate import ceil_div
from vitruvian.golden.scu import Patches


@dataclass(frozen=True)
class PoolingLayer:
    """A pooling layer of a network.

    Attributes
    ----------
    network : str
    reduction : {"max", "avg"}
    side : int
        Height and width of the input.
    channels : int
    kernel, stride : int
        Both along H and W.
    pad : (int, int)
        Padding before and after the image, along H and along W. An average does not count it.
    count : int
        Number of such layers in the network.
    """

    network: str
    reduction: str
    side: int
    channels: int
    kernel: int
    stride: int
    pad: tuple[int, int] = (0, 0)
    count: int = 1

    def __str__(self) -> str:
        size = f"{self.side}×{self.side}×{self.channels}"
        return f"{self.network} {self.reduction} {size}, {self.kernel}×{self.kernel}/{self.stride}"

    @property
    def groups(self) -> int:
        """C1, the number of groups of 16 channels."""
        return ceil_div(self.channels, 16)

    def patches(self, rows: int | None = None) -> Patches:
        """Return the windows, by default of the whole image, otherwise of its first ``rows``."""
        height = self.side if rows is None else min(rows, self.side)
        return Patches(
            height=height,
            width=self.side,
            kernel=(self.kernel, self.kernel),
            stride=(self.stride, self.stride),
            pad=(*self.pad, *self.pad),
        )


LAYERS = (
    PoolingLayer("InceptionV3", "max", 147, 64, 3, 2),
    PoolingLayer("InceptionV3", "max", 71, 192, 3, 2),
    PoolingLayer("InceptionV3", "max", 35, 288, 3, 2),
    PoolingLayer("InceptionV3", "max", 17, 768, 3, 2),
    PoolingLayer("InceptionV3", "avg", 35, 192, 3, 1, (1, 1)),
    PoolingLayer("InceptionV3", "avg", 35, 256, 3, 1, (1, 1)),
    PoolingLayer("InceptionV3", "avg", 35, 288, 3, 1, (1, 1)),
    PoolingLayer("InceptionV3", "avg", 17, 768, 3, 1, (1, 1), 4),
    PoolingLayer("InceptionV3", "avg", 8, 1280, 3, 1, (1, 1)),
    PoolingLayer("InceptionV3", "avg", 8, 2048, 3, 1, (1, 1)),
    PoolingLayer("InceptionV3", "avg", 8, 2048, 8, 8),
    PoolingLayer("Xception", "max", 147, 128, 3, 2, (1, 1)),
    PoolingLayer("Xception", "max", 74, 256, 3, 2, (0, 1)),
    PoolingLayer("Xception", "max", 37, 728, 3, 2, (1, 1)),
    PoolingLayer("Xception", "max", 19, 1024, 3, 2, (1, 1)),
    PoolingLayer("Xception", "avg", 10, 2048, 10, 10),
    PoolingLayer("ResNet-50", "max", 112, 64, 3, 2, (1, 1)),
    PoolingLayer("ResNet-50", "avg", 7, 2048, 7, 7),
    PoolingLayer("VGG-16", "max", 224, 64, 2, 2),
    PoolingLayer("VGG-16", "max", 112, 128, 2, 2),
    PoolingLayer("VGG-16", "max", 56, 256, 2, 2),
    PoolingLayer("VGG-16", "max", 28, 512, 2, 2),
    PoolingLayer("VGG-16", "max", 14, 512, 2, 2),
)

#: The inputs of Fig. 5.2, from small to large.
MEASURED = (LAYERS[3], LAYERS[2], LAYERS[1])

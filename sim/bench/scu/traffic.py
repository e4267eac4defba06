"""Random Im2Col loads and Col2Im instructions, with what golden says about them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vitruvian.golden.scu import Patches, col2im_add, im2col_load
from vitruvian.golden.scu.patches import ROWS
from vitruvian.hdl.scu import ConversionConfig, Mode

#: Rounds of a geometry's search; nearly all random geometries are valid.
_TRIES = 1000


@dataclass(frozen=True, kw_only=True)
class Walk:
    """The pixels that an instruction touches, fractal after fractal.

    Attributes
    ----------
    address : (repeat·16,) ndarray of int64
        Address of each pixel in C0 rows, modulo the size of the memory. It means nothing outside
        of the image.
    inside : (repeat·16,) ndarray of bool
        False in the padding and after the last patch.
    place : tuple of three (repeat·16,) ndarray
        Group of channels, row and column of each pixel.
    """

    address: np.ndarray
    inside: np.ndarray
    place: tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class ConversionInstruction:
    """One Im2Col load or Col2Im on an image in memory.

    Attributes
    ----------
    patches : Patches
    groups : int
        Groups of channels of the image, C1.
    base : int
        Address of the image's first pixel, in C0 rows.
    position, kernel_position, channel, repeat, mode
        As ``golden.scu.im2col_load`` takes them.
    fill : int
        Code of 16 bits of the padding.
    """

    patches: Patches
    groups: int
    base: int
    position: tuple[int, int]
    kernel_position: tuple[int, int]
    channel: int
    repeat: int
    mode: int = 1
    fill: int = 0

    @property
    def shape(self) -> tuple[int, int, int]:
        """The image's shape without C0: (C1, H, W)."""
        return self.groups, self.patches.height, self.patches.width

    @property
    def where(self) -> dict[str, Any]:
        """The arguments that select the pixels, for functions of ``golden.scu``."""
        return {
            "position": self.position,
            "kernel_position": self.kernel_position,
            "channel": self.channel,
        }

    def command(self) -> dict[str, int]:
        """Return the command of the unit."""
        p = self.patches
        pairs = {"kernel": p.kernel, "stride": p.stride, "dilation": p.dilation}
        sizes = {
            f"{name}_{axis}": value
            for name, pair in pairs.items()
            for axis, value in zip(("height", "width"), pair, strict=True)
        }
        return sizes | {
            "base": self.base,
            "height": p.height,
            "width": p.width,
            "bottom": p.pad[1],
            "left": p.pad[2],
            "right": p.pad[3],
            "row": self.position[0],
            "column": self.position[1],
            "kernel_row": self.kernel_position[0],
            "kernel_column": self.kernel_position[1],
            "channel": self.channel,
            "repeat": self.repeat,
            "mode": self.mode,
            "fill": self.fill,
        }

    def walk(self, address_bits: int) -> Walk:
        """Return the pixels that golden touches, with addresses of so many bits."""
        p = self.patches
        fractals = p.walk(self.position, self.kernel_position, self.channel, self.repeat, self.mode)
        groups = np.repeat([group for group, *_ in fractals], ROWS)
        rows, columns, inside = (
            np.concatenate([fractal[n] for fractal in fractals]) for n in (1, 2, 3)
        )
        address = self.base + (groups * p.height + rows) * p.width + columns
        return Walk(
            address=address % (1 << address_bits), inside=inside, place=(groups, rows, columns)
        )

    def fractals(self, image: np.ndarray) -> np.ndarray:
        """Return the rows (repeat·16, C0) that golden's Im2Col loads from an image of codes."""
        fractals = im2col_load(
            image,
            self.patches,
            repeat=self.repeat,
            mode=self.mode,
            pad_value=self.fill,
            **self.where,
        )
        return fractals.reshape(self.repeat * ROWS, -1)

    def added(self, image: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the image after golden's Col2Im of rows (repeat·16, C0)."""
        return col2im_add(image, rows.reshape(self.repeat, ROWS, -1), self.patches, **self.where)


def bit_patterns(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return random codes of a dtype.

    Half of the floating-point codes have an exponent near that of 1, so that their sums round.
    """
    codes = rng.integers(0, 1 << 8 * dtype.itemsize, shape, np.uint64)
    if dtype.kind == "f":
        # minexp is the exponent of the least normal number, whose field is 1.
        fraction, bias = np.finfo(dtype).nmant, 1 - np.finfo(dtype).minexp
        mask = np.uint64(((1 << 8 * dtype.itemsize - 1) - 1) >> fraction << fraction)
        exponent = rng.integers(bias, bias + 4, shape, np.uint64) << np.uint64(fraction)
        codes = np.where(rng.random(shape) < 0.5, codes & ~mask | exponent, codes)
    return codes.astype(f"u{dtype.itemsize}").view(dtype)


def random_geometry(rng: np.random.Generator) -> Patches:
    """Return small patches with any padding, stride, overlap and dilation."""
    for _ in range(_TRIES):
        kernel, dilation = (tuple(int(x) for x in rng.integers(1, limit, 2)) for limit in (5, 4))
        # With long strides, patches after the last one are far below the image.
        stride = tuple(int(x) for x in rng.choice((1, 1, 2, 3, 7), 2))
        height, width = (int(x) for x in rng.integers(1, 13, 2))
        # At least half of the sides have no padding.
        pad = tuple(int(x) for x in rng.integers(0, 4, 4) * rng.integers(0, 2, 4))
        try:
            return Patches(
                height=height,
                width=width,
                kernel=kernel,  # pyright: ignore[reportArgumentType]
                stride=stride,  # pyright: ignore[reportArgumentType]
                pad=pad,  # pyright: ignore[reportArgumentType]
                dilation=dilation,  # pyright: ignore[reportArgumentType]
            )
        except ValueError:  # the kernel does not fit
            continue
    raise RuntimeError("a random geometry must be possible")


def _position(p: Patches, rng: np.random.Generator) -> tuple[int, int]:
    """Return a legal position: a patch's own, or any other, also below the last patch."""
    if rng.random() < 0.7:
        return p.corner(int(rng.integers(p.count)))
    row = int(rng.integers(-p.pad[0], p.height + p.pad[1] + 1))
    last = p.width + p.pad[3] - p.extent[1]
    return row, int(rng.integers(-p.pad[2], last + 1))


def loads(
    config: ConversionConfig, count: int, rng: np.random.Generator
) -> Iterator[ConversionInstruction]:
    """Yield random Im2Col loads in both modes, with tails past the last patch."""
    for _ in range(count):
        p, groups = random_geometry(rng), int(rng.integers(1, 5))
        mode, (kh, kw) = int(rng.integers(2)), p.kernel
        channel, y, x = (int(rng.integers(n)) for n in (groups, kh, kw))
        # Positions of the kernel that are left in this group of channels and those behind it.
        left = (groups - channel) * kh * kw - y * kw - x
        limit = left if mode == Mode.KERNEL.value else p.fractals + 2
        yield ConversionInstruction(
            patches=p,
            groups=groups,
            base=int(rng.integers(1 << config.address_bits)),
            position=_position(p, rng),
            kernel_position=(y, x),
            channel=channel,
            repeat=int(rng.integers(1, min(limit, 6) + 1)),
            mode=mode,
            fill=int(rng.integers(1 << 16)),
        )


def additions(
    config: ConversionConfig, count: int, rng: np.random.Generator
) -> Iterator[list[ConversionInstruction]]:
    """Yield lists of about ``count`` Col2Im instructions; those of a list share their image."""
    while count > 0:
        p, groups = random_geometry(rng), int(rng.integers(1, 4))
        base = int(rng.integers(1 << config.address_bits))
        part: list[ConversionInstruction] = []
        for _ in range(int(rng.integers(1, 7))):
            kernel_position = (int(rng.integers(p.kernel[0])), int(rng.integers(p.kernel[1])))
            part.append(
                ConversionInstruction(
                    patches=p,
                    groups=groups,
                    base=base,
                    position=_position(p, rng),
                    kernel_position=kernel_position,
                    channel=int(rng.integers(groups)),
                    repeat=int(rng.integers(1, p.fractals + 3)),
                    fill=int(rng.integers(1 << 16)),
                )
            )
        count -= len(part)
        yield part


def overlapping(rng: np.random.Generator) -> list[ConversionInstruction]:
    """Return Col2Im instructions of which each reads first what the one before it wrote last."""
    p = Patches(height=1, width=64, kernel=(1, 1))
    first = ConversionInstruction(
        patches=p,
        groups=1,
        base=int(rng.integers(1 << 8)),
        position=(0, 0),
        kernel_position=(0, 0),
        channel=0,
        repeat=1,
    )
    # Overlaps of one row, of some and of most of a fractal.
    starts = (0, ROWS - 1, 2 * ROWS - 4, 3 * ROWS - 12)
    return [replace(first, position=p.corner(start)) for start in starts]


def conversion(patches: Patches, groups: int, *, base: int = 0) -> list[ConversionInstruction]:
    """Return the instructions that convert a whole image, one for each position of the kernel."""
    kh, kw = patches.kernel
    return [
        ConversionInstruction(
            patches=patches,
            groups=groups,
            base=base,
            position=patches.corner(0),
            kernel_position=(y, x),
            channel=channel,
            repeat=patches.fractals,
        )
        for channel in range(groups)
        for y in range(kh)
        for x in range(kw)
    ]

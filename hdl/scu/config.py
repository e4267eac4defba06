"""The parameters of the storage conversion unit, and the layouts of its streams."""

from dataclasses import dataclass, fields

from amaranth.hdl import Shape, signed
from amaranth.lib import data, enum

from vitruvian.common.validate import check_int, one_of

#: Patches in a fractal (Rohwedder 2021, §3.3)
ROWS = 16

#: Bits of the padding value: one FP16 code, or the code of an 8-bit value twice.
FILL_BITS = 16

#: Largest value of each parameter that counts bits.
_MOST_BITS = 24


class Mode(enum.Enum, shape=1):
    """The index that each repetition advances: the kernel position or the patch.

    References
    ----------
    Rohwedder 2021, §3.3.
    """

    KERNEL = 0
    PATCHES = 1


@dataclass(frozen=True, kw_only=True)
class ConversionConfig:
    """The size of a storage conversion unit.

    Parameters
    ----------
    rows : int
        Patches in a beat, 1, 2, 4, 8 or 16. The memory needs as many read ports of one C0 row.
    c0_bytes : int
        Bytes of the C0 channels of a pixel, an even number from 2 to 128.
    address_bits : int
        Bits of an address in C0 rows. 15 bits address 1 MiB in rows of 32 bytes.
    size_bits : int
        Bits of the height and the width of an image; the other numbers must not be wider.
    kernel_bits, stride_bits, pad_bits, dilation_bits : int
        Bits of a size of the kernel, a stride, a padding and a dilation.
    channel_bits, repeat_bits : int
        Bits of the index of a group of channels, and of the number of fractals of a command.
    ahead : int
        Number of beats that may be requested from the memory before their rows arrive, 2 to 64.
        For one beat per cycle it must be at least the memory's latency in cycles plus 1.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not an int, or is out of range.
    """

    rows: int = 1
    c0_bytes: int = 32
    address_bits: int = 15
    size_bits: int = 12
    kernel_bits: int = 8
    stride_bits: int = 6
    pad_bits: int = 8
    dilation_bits: int = 8
    channel_bits: int = 8
    repeat_bits: int = 8
    ahead: int = 4

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name.endswith("_bits"):
                check_int(field.name, getattr(self, field.name), 1, _MOST_BITS)
        for name in ("kernel_bits", "stride_bits", "pad_bits", "dilation_bits"):
            if getattr(self, name) > self.size_bits:
                raise ValueError(
                    f"{name} must be at most size_bits, {self.size_bits}, "
                    f"not {getattr(self, name)!r}"
                )
        check_int("rows", self.rows, 1, ROWS)
        one_of("rows", self.rows, [n for n in range(1, ROWS + 1) if ROWS % n == 0])
        check_int("c0_bytes", self.c0_bytes, 2, 128)
        if self.c0_bytes % 2:
            raise ValueError(f"c0_bytes must be even, not {self.c0_bytes!r}")
        check_int("ahead", self.ahead, 2, 64)

    @property
    def beats(self) -> int:
        """The number of beats of a fractal."""
        return ROWS // self.rows

    @property
    def coordinate(self) -> Shape:
        """The shape of a row or a column, which is negative in the padding.

        The largest number belongs to a patch of the second beat after the last patch. It is below
        the sum of an image's size, a padding, and a stride for each patch of two beats.
        """
        strides = 2 * self.rows << self.stride_bits
        largest = (1 << self.size_bits) + (1 << self.pad_bits) + strides
        return signed(largest.bit_length() + 1)

    @property
    def command(self) -> data.StructLayout:
        """The layout of a command, the parameters of Rohwedder 2021, §3.3, and dilation.

        ``base`` is the address of the image's first pixel. ``row`` and ``column`` are those of the
        first pixel of the first patch, negative in the padding. ``kernel_row``, ``kernel_column``
        and ``channel`` select the first fractal. ``repeat`` is the number of fractals.
        """
        return data.StructLayout(
            {
                "base": self.address_bits,
                "height": self.size_bits,
                "width": self.size_bits,
                "kernel_height": self.kernel_bits,
                "kernel_width": self.kernel_bits,
                "stride_height": self.stride_bits,
                "stride_width": self.stride_bits,
                "bottom": self.pad_bits,
                "left": self.pad_bits,
                "right": self.pad_bits,
                "dilation_height": self.dilation_bits,
                "dilation_width": self.dilation_bits,
                "row": self.coordinate,
                "column": self.coordinate,
                "kernel_row": self.kernel_bits,
                "kernel_column": self.kernel_bits,
                "channel": self.channel_bits,
                "repeat": self.repeat_bits,
                "mode": Mode,
                "fill": FILL_BITS,
            }
        )

    @property
    def pixels(self) -> data.ArrayLayout:
        """The layout of a beat's pixels: an address each, valid if the pixel is in the image."""
        pixel = data.StructLayout({"address": self.address_bits, "inside": 1})
        return data.ArrayLayout(pixel, self.rows)

    @property
    def beat(self) -> data.StructLayout:
        """The layout of a beat of an address generator: pixels, and the value of the padding."""
        return data.StructLayout({"pixels": self.pixels, "fill": FILL_BITS})

    @property
    def row_data(self) -> data.ArrayLayout:
        """The layout of the C0 rows of a beat."""
        return data.ArrayLayout(8 * self.c0_bytes, self.rows)


def check_config(config: object) -> None:
    """Raise ``TypeError`` if ``config`` is no ``ConversionConfig``."""
    if not isinstance(config, ConversionConfig):
        raise TypeError(f"config must be a ConversionConfig, not {config!r}")

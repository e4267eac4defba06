"""Builder methods of Im2Col and Col2Im: patches of images as fractals, and back."""

from functools import lru_cache

from vitruvian.golden.scu import C0_BYTES, Patches
from vitruvian.golden.scu.patches import ROWS
from vitruvian.sim.davinci.isa.instruction import Instruction
from vitruvian.sim.davinci.isa.operands import FRACTAL_BYTES, REPEAT_BYTES, Span, View
from vitruvian.sim.davinci.program.moves import Moves
from vitruvian.sim.davinci.program.vector import MAX_REPEAT, Vector

#: C0 of Col2Im, which is the same for all dtypes.
CHANNELS = 16


class Images(Moves, Vector):
    """Patches of an image (C1, H, W, C0) that begins at the first byte of a view."""

    def im2col(
        self,
        dst: View,
        src: View,
        patches: Patches,
        *,
        repeat: int | None = None,
        position: tuple[int, int] | None = None,
        kernel_position: tuple[int, int] = (0, 0),
        channel: int = 0,
        mode: int = 0,
        dst_stride: int = FRACTAL_BYTES,
        pad_value: float = 0,
    ) -> Instruction:
        """Load fractals of patches from L1 to L0A, L0B or UB, as ``golden.scu.im2col_load`` does.

        Parameters
        ----------
        src : View
            The image; C0 is 32 bytes of its dtype.
        patches : Patches
            Sizes of the image and of the kernel, stride, padding and dilation.
        repeat : int, optional
            Number of fractals; by default as many as ``dst`` holds.
        position, kernel_position, channel, mode, pad_value
            As ``golden.scu.im2col_load`` takes them.
        dst_stride : int
            Bytes from fractal to fractal.

        Raises
        ------
        ProgramError
            If the repeat is not 1 … 255, a position is outside the image, or the chip has no such
            path.
        """
        repeat = dst.nbytes // FRACTAL_BYTES if repeat is None else repeat
        position = patches.corner(0) if position is None else position
        where = (position, kernel_position, channel, repeat, mode)
        reads = self._pixels("im2col", src, patches, where, C0_BYTES)
        writes = Span(dst.buffer, dst.offset, FRACTAL_BYTES, ((repeat, dst_stride),))
        fields = {
            "repeat": repeat,
            "dst_stride": dst_stride,
            "patches": patches,
            "position": position,
            "kernel_position": kernel_position,
            "channel": channel,
            "mode": mode,
            "pad_value": pad_value,
        }
        nbytes = repeat * FRACTAL_BYTES
        return self._move("im2col", dst, src, fields, reads, (writes,), nbytes, repeat)

    def col2im(
        self,
        dst: View,
        src: View,
        patches: Patches,
        *,
        repeat: int | None = None,
        position: tuple[int, int] | None = None,
        kernel_position: tuple[int, int] = (0, 0),
        channel: int = 0,
    ) -> Instruction:
        """Add fractals in UB to the pixels of an image in UB, as ``golden.scu.col2im_add`` does.

        Parameters
        ----------
        dst : View
            The image, FP16 or FP32; C0 is 16.
        src : View
            Fractals of 16 × 16 elements, one after the other.
        patches, position, kernel_position, channel
            As ``golden.scu.col2im_add`` takes them.
        repeat : int, optional
            Number of fractals; by default as many as ``src`` holds.

        Raises
        ------
        ProgramError
            If the dtype is not fp16 or fp32, the repeat is not 1 … 255, or a position is outside
            the image.
        """
        if dst.dtype not in ("fp16", "fp32") or src.dtype != dst.dtype:
            self.fail(f"col2im must be of fp16 or of fp32, not of {dst.dtype} and {src.dtype}")
        size = ROWS * CHANNELS * src.itemsize
        repeat = src.nbytes // size if repeat is None else repeat
        position = patches.corner(0) if position is None else position
        # Col2Im continues with the next patches in every repeat, which is mode 1 of Im2Col.
        where = (position, kernel_position, channel, repeat, 1)
        pixels = self._pixels("col2im", dst, patches, where, CHANNELS * dst.itemsize)
        fields = {
            "repeat": repeat,
            "patches": patches,
            "position": position,
            "kernel_position": kernel_position,
            "channel": channel,
        }
        reads = (Span(src.buffer, src.offset, repeat * size), *pixels)
        views = {"dst": dst, "src": src}
        # Its speed has not been published; it is assumed to be that of vector instructions.
        passes, lanes = repeat * size // REPEAT_BYTES, REPEAT_BYTES // src.itemsize
        return self._vector("col2im", views, fields, reads, pixels, passes, lanes)

    def _pixels(
        self, op: str, image: View, patches: Patches, where: tuple, pixel_bytes: int
    ) -> tuple[Span, ...]:
        """Return the bytes of the image that an instruction touches."""
        _, _, channel, repeat, _ = where
        if not 1 <= repeat <= MAX_REPEAT:
            self.fail(f"repeat of {op} must be 1 … {MAX_REPEAT}, not {repeat}")
        if channel < 0:
            self.fail(f"channel of {op} must be 0 or more, not {channel}")
        try:
            runs = _runs(patches, *where)
        except ValueError as error:
            self.fail(f"{op}: {error}")
        return tuple(
            Span(
                image.buffer,
                image.offset + first * pixel_bytes,
                pixel_bytes,
                tuple((count, step * pixel_bytes) for count, step in levels),
            ).simplified()
            for first, levels in runs
        )


# Kernels repeat a few loads many times, at other places in the buffers.
@lru_cache(1024)
def _runs(
    patches: Patches,
    position: tuple[int, int],
    kernel_position: tuple[int, int],
    channel: int,
    repeat: int,
    mode: int,
) -> list[tuple[int, tuple[tuple[int, int], tuple[int, int]]]]:
    """Return the pixels of an instruction as (first, ((rows, step), (pixels of a row, step))).

    All numbers count pixels. An item combines rows of equal length at equal distances.
    """
    size = patches.height * patches.width
    items: list[tuple[int, tuple[tuple[int, int], tuple[int, int]]]] = []
    step = patches.stride[1]
    for group, rows, columns, inside in _steps(
        patches, position, kernel_position, channel, repeat, mode
    ):
        # Pixels outside of the image are padding, which no memory holds: only those inside are
        # read.
        lines: dict[int, list[int]] = {}
        for row, column in zip(rows[inside].tolist(), columns[inside].tolist(), strict=True):
            lines.setdefault(row, []).append(column)
        down = patches.stride[0] * patches.width
        fresh = True
        for row, places in lines.items():
            first = group * size + row * patches.width + places[0]
            if not fresh:
                start, ((count, _), (length, _)) = items[-1]
                # Rows of windows at equal distances and of equal length become one item with one
                # more row.
                if length == len(places) and first == start + count * down:
                    items[-1] = (start, ((count + 1, down), (length, step)))
                    continue
            items.append((first, ((1, down), (len(places), step))))
            fresh = False
    return items


def _steps(patches, position, kernel_position, channel, repeat, mode):
    """Return (group of channels, rows, columns, inside) for each part of an instruction.

    ``rows``, ``columns`` and ``inside`` are those of ``Patches.pixels``.
    """
    # The patches of all fractals follow each other, so one part covers them.
    if mode == 1:
        return [(channel, *patches.pixels(position, kernel_position, ROWS * repeat))]
    return patches.walk(position, kernel_position, channel, repeat, mode)

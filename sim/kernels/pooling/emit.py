"""Emission of the instructions of pooling kernels within the limits of their fields.

Operands are views of pixels, (pixels, 16): a pixel's C0 = 16 channels are one block of 32 bytes.
"""

from itertools import count

from vitruvian.sim.davinci import Core, Unit, View
from vitruvian.sim.kernels.ring import ordered

#: Bytes of the 16 FP16 channels of a pixel, and pixels of a repeat of 128 lanes.
PIXEL_BYTES, PER_REPEAT = 32, 8

#: Largest repeat of one instruction. It is even, so that the bits that a comparison writes, 16
#: bytes a repeat, continue at a multiple of 32 bytes.
MOST_REPEAT = 254

#: Most bursts of a copy: the field has 12 bits.
MOST_BURSTS = 4095

#: Mask of the 16 lanes of one pixel.
ONE_PIXEL = (1 << 16) - 1


def pieces(total: int, limit: int):
    """Yield (first, count) of parts of at most ``limit`` out of ``total``."""
    for first in range(0, total, limit):
        yield first, min(limit, total - first)


def behind(view: View, first: int) -> View:
    """Return contiguous pixels from the number ``first`` on: ``view[first:]``, but faster."""
    rest = (view.shape[0] - first, 16)
    return View(
        view.buffer, view.offset + first * PIXEL_BYTES, view.dtype, rest, view.strides, view.name
    )


class Emitter:
    """A core, with methods that emit vector instructions on pixels and synchronisation."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self._registers = count()

    def order(self, source: Unit, target: Unit) -> None:
        """Make ``target`` wait here until ``source`` has ended all earlier work."""
        # Registers are used in turn, so that two orders of the same units may be under way.
        register = next(self._registers) % self.core.chip.event_registers
        ordered(self.core, source, target, register)

    def barrier(self) -> None:
        """Make later vector instructions wait for the earlier ones, on whose results they depend.

        The vector unit of some chips does not wait by itself.
        """
        self.core.pipe_barrier(Unit.V)

    def fill(self, dst: View, value: float) -> None:
        """Fill contiguous pixels with a value, and wait for it."""
        self.core.vdup(dst.reshape(dst.size), value)
        self.barrier()

    def dense(self, op: str, **operands: View) -> None:
        """Emit an instruction on contiguous pixels: all 128 lanes, one repeat for eight pixels."""
        flat = {name: view.reshape(view.size) for name, view in operands.items()}
        self.core.vector(op, flat)

    def with_constant(self, op: str, dst: View, src0: View, constant: View) -> None:
        """Emit an instruction on contiguous pixels whose second source is the same eight pixels."""
        strides = {"src1": (1, 0)}
        whole = dst.shape[0] // PER_REPEAT
        for first, repeat in pieces(whole, MOST_REPEAT):
            at = first * PER_REPEAT
            operands = {"dst": dst[at:], "src0": src0[at:], "src1": constant}
            self.core.vector(op, operands, repeat=repeat, strides=strides)
        rest = dst.shape[0] - whole * PER_REPEAT
        if rest:
            at = whole * PER_REPEAT
            operands = {"dst": dst[at:], "src0": src0[at:], "src1": constant}
            self.core.vector(op, operands, repeat=1, mask=(1 << 16 * rest) - 1, strides=strides)

    def pixels(
        self, op: str, operands: dict[str, View], steps: dict[str, int], number: int
    ) -> None:
        """Emit an instruction on single pixels: 16 of 128 lanes, one repeat for each pixel.

        Parameters
        ----------
        operands : dict of str to View
            The first pixel of each operand is the first of the view.
        steps : dict of str to int
            Pixels from one repeat to the next, by operand; 0 is the same pixel again.
        number : int
            Number of pixels.
        """
        strides = {name: (1, step) for name, step in steps.items()}
        if number <= MOST_REPEAT:
            self.core.vector(op, operands, repeat=number, mask=ONE_PIXEL, strides=strides)
            return
        for first, repeat in pieces(number, MOST_REPEAT):
            views = {name: behind(view, first * steps[name]) for name, view in operands.items()}
            self.core.vector(op, views, repeat=repeat, mask=ONE_PIXEL, strides=strides)

    def copy(
        self, dst: View, src: View, rows: int, pixels: int, dst_step: int, src_step: int
    ) -> None:
        """Emit copies of ``rows`` bursts; the steps from burst to burst are in pixels."""
        # Rows without gaps on both sides are one long burst.
        if rows == 1 or dst_step == src_step == pixels:
            rows, pixels = 1, rows * pixels
        for first, bursts in pieces(rows, MOST_BURSTS):
            self.core.copy(
                dst[first * dst_step :],
                src[first * src_step :],
                bursts=bursts,
                burst_bytes=pixels * PIXEL_BYTES,
                dst_stride=dst_step * PIXEL_BYTES,
                src_stride=src_step * PIXEL_BYTES,
            )

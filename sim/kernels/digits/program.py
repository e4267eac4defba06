"""The network for handwritten digits as one program of one core, for a whole batch of images.

MTE2 spreads an image over the first of 16 channels in L1. MTE1 loads its patches with Im2Col, one
row of the kernel at a time, and the Cube adds their products. V adds the bias to the sums in FP16,
applies ReLU and takes the maximum of 2 × 2 pixels. It writes a pixel of 16 images as one fractal,
so that the pixels of 16 images are the right operand of the fully connected layer; the left one has
a row for each class. V compares the rows of classes one after the other, an image in each lane.

The stages of an image are emitted one image later each, because instructions are dispatched in
program order: while the Cube works on an image, V works on the last one.
"""

from dataclasses import dataclass, field

import numpy as np

from vitruvian.golden.scu import Patches
from vitruvian.sim.davinci import Chip, Program, Unit, load_chip
from vitruvian.sim.kernels.digits.network import C0, CLASSES, FILTERS, SIDE, Layers, Weights
from vitruvian.sim.kernels.layout import pack_a, pack_b
from vitruvian.sim.kernels.ring import Ring, close_rings, open_rings, together

V, M, MTE1, MTE2, MTE3 = Unit.V, Unit.M, Unit.MTE1, Unit.MTE2, Unit.MTE3

PIXELS = SIDE * SIDE
#: Pixels behind the maximum, and images of a fully connected layer.
POOLED, GROUP = 16, 16
#: Rows of fractals of the patches of an image, and steps along K of a row of the kernel.
_ROWS, _STEPS = PIXELS // 16, 3
#: FP32 lanes of the images of a group.
_LANES = (1 << GROUP) - 1
_PATCHES = Patches(height=SIDE, width=SIDE, kernel=(3, 3), pad=(1, 1, 1, 1))


def build(images: np.ndarray, w: Weights, *, chip: Chip | str = "ascend310") -> Program:
    """Build the program for images.

    Parameters
    ----------
    images : (N, 8, 8) ndarray of float16

    Returns
    -------
    Program
        Its tensors are images (N, 64, 1), the weights, and the results of all layers, which
        ``layers`` converts: conv (N, 64, 16), pooled (G, 16, 16, 16) by group of 16 images, pixel,
        image and filter, scores (G, 16, 16) by class and image, and classes (N,).
    """
    count = len(images)
    program = Program(load_chip(chip) if isinstance(chip, str) else chip, f"digits, {count} images")
    groups = -(-count // GROUP)
    full_bias = np.zeros((16, GROUP), np.float32)
    full_bias[:CLASSES] = w.full_bias[:, None]
    tensors = {
        "images": program.tensor("images", (count, PIXELS, 1), "fp16", images.reshape(-1, 64, 1)),
        "conv_w": program.tensor("conv_w", (9, 16, 16), "fp16", pack_b(w.conv_matrix)[:, 0]),
        "conv_bias": program.tensor("conv_bias", (C0,), "fp16", w.conv_bias),
        "full_w": program.tensor("full_w", (POOLED, 16, 16), "fp16", pack_a(w.full_matrix)[0]),
        "full_bias": program.tensor("full_bias", (16, GROUP), "fp32", full_bias),
        "conv": program.tensor("conv", (count, PIXELS, FILTERS), "fp16"),
        "pooled": program.tensor("pooled", (groups, POOLED, GROUP, FILTERS), "fp16"),
        "scores": program.tensor("scores", (groups, 16, GROUP), "fp32"),
        "classes": program.tensor("classes", (count,), "int32"),
    }
    _DigitsEmitter(program, tensors, count).emit()
    return program


def layers(outputs: dict[str, np.ndarray]) -> Layers:
    """Return the results of a program of ``build`` by image."""
    count = len(outputs["classes"])
    pooled = outputs["pooled"].transpose(0, 2, 1, 3).reshape(-1, POOLED, FILTERS)[:count]
    scores = outputs["scores"][:, :CLASSES].transpose(0, 2, 1).reshape(-1, CLASSES)[:count]
    return Layers(outputs["conv"], pooled, scores, outputs["classes"])


@dataclass(eq=False)
class _DigitsEmitter:
    """The emitter of the instructions.

    Attributes
    ----------
    program : Program
    tensors : dict of str to View
    count : int
        Number of images.
    """

    program: Program
    tensors: dict
    count: int
    _rings: list = field(default_factory=list)

    def __post_init__(self) -> None:
        core = self.core = self.program.core()
        self.l1_image = core.allocate("L1", (2, PIXELS, C0), "fp16", "images in L1")
        self.l1_conv = core.allocate("L1", (9, 256), "fp16", "filters in L1")
        self.l1_full = core.allocate("L1", (POOLED, 256), "fp16", "matrix in L1")
        self.l1_pooled = core.allocate("L1", (2, POOLED, 256), "fp16", "features in L1")
        self.l0a = core.allocate("L0A", (2, _ROWS * _STEPS, 256), "fp16", "A")
        self.l0b_conv = core.allocate("L0B", (9, 256), "fp16", "filters")
        self.l0b_pooled = core.allocate("L0B", (POOLED, 256), "fp16", "features")
        self.sums = core.allocate("L0C", (2, _ROWS, 256), "fp32", "sums")
        self.full_sums = core.allocate("L0C", (2, 256), "fp32", "scores in L0C")
        self.conv = core.allocate("UB", (2, PIXELS, FILTERS), "fp16", "convolution")
        self.halves = core.allocate("UB", (PIXELS // 2, FILTERS), "fp16", "maxima of two rows")
        self.pooled = core.allocate("UB", (2, POOLED, GROUP, FILTERS), "fp16", "features")
        self.scores = core.allocate("UB", (2, 16, GROUP), "fp32", "scores")
        self.best = core.allocate("UB", (2, GROUP), "fp32", "largest scores")
        self.found = core.allocate("UB", (2, GROUP), "int32", "classes")
        self.numbers = core.allocate("UB", (CLASSES, GROUP), "int32", "numbers of classes")
        self.conv_bias = core.allocate("UB", (C0,), "fp16", "bias of filters")
        self.full_bias = core.allocate("UB", (16, GROUP), "fp32", "bias of classes")

    def emit(self) -> None:
        """Emit all images: the products of one, the vectors of the last, and so on."""
        self._open()
        last = self.count - 1
        for step in range(self.count + 2):
            if step < self.count:
                self._products(step)
            done = step - 1
            if 0 <= done < self.count:
                self._vectors(done)
                if done % GROUP == GROUP - 1 or done == last:
                    self._full(done // GROUP)
            # The scores are compared one image later, except behind the last image.
            done -= 1
            if done == last or (0 <= done and done % GROUP == GROUP - 1):
                self._compare(done // GROUP)
        close_rings(*self._rings)

    def _open(self) -> None:
        """Load what all images share, and mark all slots as free."""
        core, t = self.core, self.tensors
        self.in_image = Ring(core, MTE2, MTE1, start=False)
        self.left = Ring(core, MTE1, M, start=False)
        self.right = Ring(core, MTE1, M, 1, first=2, start=False)
        self.out_sums = Ring(core, M, V, start=False)
        self.out_full = Ring(core, M, V, first=2, start=False)
        self.to_conv = Ring(core, V, MTE3, start=False)
        self.to_pooled = Ring(core, V, MTE3, first=2, start=False)
        self.to_found = Ring(core, V, MTE3, first=4, start=False)
        self.in_pooled = Ring(core, MTE3, MTE1, start=False)
        self._rings = [ring for ring in vars(self).values() if isinstance(ring, Ring)]
        core.copy(self.l1_conv, t["conv_w"].reshape(9, 256))
        core.copy(self.l1_full, t["full_w"].reshape(POOLED, 256))
        core.copy(self.conv_bias, t["conv_bias"])
        core.copy(self.full_bias, t["full_bias"])
        for target in (MTE1, V):
            core.set_flag(MTE2, target, 2)
            core.wait_flag(MTE2, target, 2)
        core.load(self.l0b_conv, self.l1_conv)
        for number in range(CLASSES):
            core.vdup(self.numbers[number], number)
        open_rings(*self._rings)

    def _products(self, image: int) -> None:
        """Emit the convolution of an image, one row of the kernel after the other."""
        core = self.core
        with self.in_image.write() as slot:
            core.nd2nz(self.l1_image[slot], self.tensors["images"][image])
        reading, summing = self.in_image.read(), self.out_sums.write()
        reading.begin()
        summing.begin()
        for row in range(3):
            with self.left.write() as a:
                for column in range(_STEPS):
                    core.im2col(
                        self.l0a[a, column],
                        self.l1_image[slot],
                        _PATCHES,
                        repeat=_ROWS,
                        kernel_position=(row, column),
                        mode=1,
                        dst_stride=512 * _STEPS,
                    )
            with self.left.read():
                filters = self.l0b_conv[_STEPS * row : _STEPS * (row + 1)]
                size = (PIXELS, 16 * _STEPS, FILTERS)
                self._product(self.sums[summing.slot], self.l0a[a], filters, size, row == 0)
        reading.end()
        summing.end()

    def _product(self, c, a, b, size: tuple[int, int, int], first: bool) -> None:
        m, k, n = size
        if not first:
            self.core.pipe_barrier(M)  # C has few fractals, so a product reads the last one's sums
        self.core.mmad(c, a, b, m=m, k=k, n=n, init="zero" if first else "accumulate")

    def _vectors(self, image: int) -> None:
        """Emit bias, ReLU and maximum of an image."""
        core, place = self.core, image % GROUP
        if place == 0:
            self._pooling = self.to_pooled.write()
            self._pooling.begin()
            if self.count - image < GROUP:
                core.vdup(self.pooled[self._pooling.slot], 0)
        with together(self.out_sums.read(), self.to_conv.write()) as (source, slot):
            y = self.conv[slot]
            core.matrix_out(y, self.sums[source], m=PIXELS, n=FILTERS)
            core.pipe_barrier(V)
            # The bias of 16 filters is one block for all pixels.
            core.vadd(y, y, self.conv_bias, repeat=PIXELS // 8, strides={"src1": (0, 0)})
            core.pipe_barrier(V)
            core.vrelu(y, y)
            core.pipe_barrier(V)
        rows = {"src0": (1, 2 * SIDE), "src1": (1, 2 * SIDE)}
        core.vmax(self.halves, y, y[SIDE:], repeat=SIDE // 2, strides=rows)
        core.pipe_barrier(V)
        # A pixel of this image goes to its row in the fractal of the pixel.
        pairs = {"src0": (2, 16), "src1": (2, 16), "dst": (GROUP, 8 * GROUP)}
        target = self.pooled[self._pooling.slot, 0, place]
        core.vmax(target, self.halves, self.halves[1:], repeat=POOLED // 8, strides=pairs)
        with self.to_conv.read():
            core.copy(self.tensors["conv"][image], y)
        if place == GROUP - 1 or image == self.count - 1:
            self._pooling.end()

    def _full(self, group: int) -> None:
        """Emit the fully connected layer of a group of images."""
        core = self.core
        with together(self.to_pooled.read(), self.in_pooled.write()) as (source, slot):
            core.copy(self.l1_pooled[slot].reshape(POOLED, GROUP, C0), self.pooled[source])
            core.copy(self.tensors["pooled"][group], self.pooled[source])
        with together(self.in_pooled.read(), self.right.write()):
            core.load(self.l0b_pooled, self.l1_pooled[slot])
        with together(self.right.read(), self.out_full.write()) as (_, sums):
            half = POOLED // 2
            for first in (0, half):
                with self.left.write() as a:
                    core.load(self.l0a[a, :half], self.l1_full[first : first + half])
                with self.left.read():
                    part = self.l0b_pooled[first : first + half]
                    size = (16, 16 * half, GROUP)
                    self._product(self.full_sums[sums], self.l0a[a], part, size, first == 0)

    def _compare(self, group: int) -> None:
        """Emit the bias of a group's scores, and the number of the largest score of each image."""
        core = self.core
        with together(self.out_full.read(), self.to_found.write()) as (source, slot):
            scores, best, found = self.scores[slot], self.best[slot], self.found[slot]
            core.matrix_out(scores, self.full_sums[source], m=16, n=GROUP)
            core.pipe_barrier(V)
            core.vadd(scores, scores, self.full_bias)
            core.pipe_barrier(V)
            core.vadds(best, scores[0], 0, repeat=1, mask=_LANES)
            core.vdup(found, 0)
            for number in range(1, CLASSES):
                row = scores[number]
                core.pipe_barrier(V)
                core.vcmp(row, best, "gt", mask=_LANES)
                core.pipe_barrier(V)
                core.vsel(found, self.numbers[number], found, repeat=1, mask=_LANES)
                core.vmax(best, best, row, repeat=1, mask=_LANES)
        with self.to_found.read():
            core.copy(self.tensors["scores"][group], scores)
            images = slice(group * GROUP, min((group + 1) * GROUP, self.count))
            core.copy(self.tensors["classes"][images], found[: images.stop - images.start])

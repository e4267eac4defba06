"""Programs that pool images, and the results that they must compute."""

from dataclasses import dataclass, field, replace

import numpy as np

from vitruvian.common.validate import one_of
from vitruvian.golden.scu import Patches
from vitruvian.sim.davinci import Chip, Instruction, Program, View
from vitruvian.sim.kernels.kernel import vector_cores, vector_kind
from vitruvian.sim.kernels.pooling.backward import Backward
from vitruvian.sim.kernels.pooling.emit import Emitter
from vitruvian.sim.kernels.pooling.forward import Forward
from vitruvian.sim.kernels.pooling.geometry import MOST_STRIDE
from vitruvian.sim.kernels.pooling.plan import (
    METHODS,
    WHOLE,
    PoolingPlan,
    PoolingTask,
    fits_whole,
    plan,
)
from vitruvian.sim.kernels.pooling.whole import emit as emit_whole
from vitruvian.sim.kernels.pooling.worker import PoolingTensors

#: Largest kernel, padding and dilation along an axis: fields of eight bits of Im2Col.
_MOST_FIELD = 255


@dataclass(frozen=True, eq=False)
class Pooling:
    """A pooling of images (N, C1, H, W, 16).

    Parameters
    ----------
    patches : Patches
        The windows of an H × W image.
    images, groups : int
        N and C1.
    reduction : {"max", "avg"}
    method : {"direct", "im2col", "expansion", "xy", "strided", "whole"}
        The last one is for one window, which is the image, without a mask.
    backward : bool
        If True, the kernel computes the gradient of the pixels.
    argmax : bool
        If True, a forward max pooling also saves the mask (N, C1, Kh, Kw, Oh, Ow, 16), which is 1
        at the first largest pixel of each window and 0 elsewhere.
    ties : {"first", "all"}
        The largest pixels of a window that the mask has: the first one, as in PyTorch, or all of
        them, as in Rohwedder 2021.
    divisors : (Oh, Ow) array_like of int, optional
        The divisors of an average; by default Kh·Kw.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not allowed, or beyond the fields of the instructions.
    """

    patches: Patches
    images: int = 1
    groups: int = 1
    reduction: str = "max"
    method: str = "im2col"
    backward: bool = False
    argmax: bool = False
    divisors: np.ndarray | None = None
    ties: str = "first"
    task: PoolingTask = field(init=False)

    def __post_init__(self) -> None:
        one_of("reduction", self.reduction, ("max", "avg"))
        one_of("method", self.method, (*METHODS, WHOLE))
        forward = not (self.backward or self.argmax)
        if self.method == WHOLE and not fits_whole(self.patches, forward=forward):
            raise ValueError("method whole must be for forward poolings of whole images")
        one_of("ties", self.ties, ("first", "all"))
        p = self.patches
        if self.argmax and (self.backward or self.reduction != "max"):
            raise ValueError("argmax must be False, unless the kernel is a forward max pooling")
        for name, value in (("kernel", p.kernel), ("pad", p.pad), ("dilation", p.dilation)):
            if max(value) > _MOST_FIELD:
                raise ValueError(f"{name} must be at most {_MOST_FIELD}, not {value}")
        for stride, count in zip(p.stride, (p.rows, p.columns), strict=True):
            if stride > MOST_STRIDE and count > 1:
                raise ValueError(f"stride must be at most {MOST_STRIDE}, not {p.stride}")
        # A window of padding alone would have no pixel, and so no maximum.
        if max(p.pad[:2]) >= p.extent[0] or max(p.pad[2:]) >= p.extent[1]:
            raise ValueError(f"pad must be smaller than the kernel, not {p.pad} for {p.extent}")
        task = PoolingTask(
            p,
            self.reduction,
            self.method,
            self.backward,
            self.argmax,
            self._varying() is not None,
            self.ties == "all",
        )
        object.__setattr__(self, "task", task)

    def _varying(self) -> np.ndarray | None:
        """Return the divisors as FP16 pixels (Oh·Ow, 16), or None if they are all the same."""
        if self.divisors is None or self.reduction != "avg":
            return None
        values = np.asarray(self.divisors).reshape(-1, 1)
        # One divisor is a scalar of an instruction and needs no tensor.
        if (values == values[0]).all():
            return None
        return np.repeat(values, 16, axis=1).astype(np.float16)

    @property
    def divisor(self) -> float:
        """The divisor of the first window, which is that of all unless they have different ones."""
        if self.divisors is not None:
            return float(np.asarray(self.divisors).flat[0])
        return float(self.patches.kernel[0] * self.patches.kernel[1])

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of x (pixels), y (windows) and mask."""
        p, lead = self.patches, (self.images, self.groups)
        return {
            "x": (*lead, p.height, p.width, 16),
            "y": (*lead, p.rows, p.columns, 16),
            "mask": (*lead, *p.kernel, p.rows, p.columns, 16),
        }

    def plan(self, chip: Chip) -> PoolingPlan:
        """Return the tiles of the kernel on a chip; see ``plan``."""
        return plan(self.task, chip)


def build(
    pooling: Pooling,
    chip: Chip,
    *,
    cores: int | None = None,
    data: dict[str, np.ndarray] | None = None,
    name: str = "",
) -> Program:
    """Build the program of a pooling; the images of 16 channels are dealt to the cores.

    Parameters
    ----------
    chip : Chip
        A chip whose cores have all units.
    cores : int, optional
        By default all cores of the chip.
    data : dict of str to ndarray, optional
        The contents of the operands: "x" forward; "dy", and "mask" for max pooling, backward. By
        default the program has no data.
    name : str
        Name of the program in reports.

    Returns
    -------
    Program
        Its results are the tensors "y" and "mask", or backward "dx".

    Raises
    ------
    ValueError
        If the chip has no such cores, or a window does not fit their buffers.
    """
    kind = "backward" if pooling.backward else "forward"
    program = Program(chip, name or f"{pooling.reduction} pooling {kind}, {pooling.method}")
    some = vector_cores(program, cores)
    made = None if pooling.method == WHOLE else pooling.plan(chip)
    names = {"x": "dx", "y": "dy"} if pooling.backward else {}
    blocks = pooling.images * pooling.groups
    views: dict[str, View] = {}
    masked = pooling.argmax or (pooling.backward and pooling.reduction == "max")
    for key, shape in pooling.shapes.items():
        if key != "mask" or masked:
            label = names.get(key, key)
            tensor = program.tensor(label, shape, "fp16", (data or {}).get(label))
            views[key] = tensor.reshape(blocks, tensor.size // blocks // 16, 16)
    varying = pooling._varying()
    if varying is not None:
        views["divisors"] = program.tensor(
            "divisors", varying.shape, "fp16", None if data is None else varying
        )
    tensors = PoolingTensors(**views)
    for index, core in enumerate(some):
        part = range(blocks * index // len(some), blocks * (index + 1) // len(some))
        if not part:
            continue
        if made is None:
            emit_whole(core, pooling.task, views["x"], views["y"], part, pooling.divisor)
        else:
            kernel = Backward if pooling.backward else Forward
            worker = kernel(Emitter(core), pooling.task, made, tensors, pooling.divisor)
            for block in part:
                worker.block(block)
    return program


def timed(pooling: Pooling, chip: Chip) -> Program:
    """Return a program with the times of ``build``'s, made in a fraction of the time.

    Cores with equally many images of 16 channels share their instructions, because the times of
    instructions do not depend on addresses. The program must not compute data.
    """
    cores = vector_kind(chip)
    blocks = pooling.images * pooling.groups
    kind = "backward" if pooling.backward else "forward"
    program = Program(chip, f"{pooling.reduction} pooling {kind}, {pooling.method}")
    made: dict[int, list[Instruction]] = {}
    for index in range(cores.count):
        count = blocks * (index + 1) // cores.count - blocks * index // cores.count
        if count and count not in made:
            one = build(replace(pooling, images=1, groups=count), chip, cores=1)
            made[count] = one.core(0, cores.name).instructions
        if count:
            program.core(index, cores.name).instructions.extend(made[count])
    return program

"""The convolution kernels by name, for square images, kernels, strides and paddings."""

import numpy as np

from vitruvian.common.validate import ceil_div
from vitruvian.golden.scu import from_nc1hwc0
from vitruvian.sim.davinci import Chip, Program
from vitruvian.sim.kernels.convolution import depthwise, golden
from vitruvian.sim.kernels.convolution.dense import ConvOperands, build, result
from vitruvian.sim.kernels.convolution.shape import ConvShape
from vitruvian.sim.kernels.convolution.tiling import ConvPlan, choose
from vitruvian.sim.kernels.kernel import (
    Kernel,
    KernelInstance,
    SimulationCost,
    matrix_cores,
    vector_cores,
)

#: Multiply-accumulates for which no tiling is chosen, because there are too many to compare.
_TOO_MANY = 1 << 38
#: More multiply-accumulates than a product has whose fractals fill halves of L0A, L0B and L0C.
_LARGEST = 724 * 16**3

_SIZES = ("images", "channels", "side", "filters", "kernel", "stride")


def _shape(size: tuple[int, ...], groups: int = 1) -> ConvShape:
    """Return a convolution whose padding keeps the size at stride 1."""
    images, channels, side, filters, kernel, stride = size
    half = kernel // 2
    return ConvShape(
        images=images,
        channels=channels,
        height=side,
        width=side,
        filters=filters,
        kernel=(kernel, kernel),
        stride=(stride, stride),
        pad=(half, half, half, half),
        groups=groups,
    )


def random_operands(s: ConvShape, seed: int, *, bias: bool = True) -> ConvOperands:
    """Return normal images and weights, scaled so that results have a variance of about 1."""
    rng = np.random.default_rng(seed)
    depth = s.channels // s.groups
    x = rng.normal(size=(s.images, s.channels, s.height, s.width)).astype(np.float16)
    w = rng.normal(0, (depth * s.taps) ** -0.5, (s.filters, depth, *s.kernel)).astype(np.float16)
    return ConvOperands(x, w, rng.normal(size=s.filters).astype(np.float16) if bias else None)


def _conv2d(
    size: tuple[int, ...], chip: Chip, cores: int | None, seed: int | None
) -> KernelInstance:
    s = _shape(size)
    data = None if seed is None else random_operands(s, seed)
    program = build(s, chip=chip, cores=cores, bias=True, relu=True, data=data)
    if data is None:
        return KernelInstance(program, {})
    return KernelInstance(
        program,
        {"y": lambda: golden.dense(s, data.x, data.w, data.b, relu=True)},
        {"y": lambda y: result(y, s.filters)},
    )


def dense_needs(s: ConvShape, chip: Chip, cores: int | None = None) -> SimulationCost:
    """Return the cost of simulating a convolution on the Cube, with data.

    Parameters
    ----------
    cores : int, optional
        By default all cores of the chip.

    Raises
    ------
    ValueError
        If the chip has no such cores, or no tile fits their buffers.
    """
    count = len(matrix_cores(Program(chip), cores))
    nbytes = 2 * s.images * (s.c1 * s.height * s.width + s.n1 * s.patches.count) * 16
    nbytes = 4 * (nbytes + 2 * s.c1 * s.taps * s.n1 * 256)
    if s.products > _TOO_MANY:
        return SimulationCost(s.products // _LARGEST, nbytes, s.products)
    plan = ConvPlan(s, choose(s, chip, count), chip, count)
    return SimulationCost(plan.instructions, nbytes, s.products)


def _conv2d_needs(size: tuple[int, ...], chip: Chip, cores: int | None) -> SimulationCost:
    return dense_needs(_shape(size), chip, cores)


def _depthwise_shape(size: tuple[int, ...]) -> ConvShape:
    images, channels, side, kernel, stride = size
    return _shape((images, channels, side, channels, kernel, stride), channels)


def _depthwise(
    size: tuple[int, ...], chip: Chip, cores: int | None, seed: int | None
) -> KernelInstance:
    s = _depthwise_shape(size)
    data = None if seed is None else random_operands(s, seed)
    program = depthwise.build(s, chip=chip, cores=cores, bias=True, relu=True, data=data)
    if data is None:
        return KernelInstance(program, {})
    return KernelInstance(
        program,
        {"y": lambda: golden.depthwise(s, data.x, data.w, data.b, relu=True)},
        {"y": lambda y: np.ascontiguousarray(from_nc1hwc0(y, s.channels))},
    )


def depthwise_needs(s: ConvShape, chip: Chip, cores: int | None = None) -> SimulationCost:
    """Return the cost of simulating a depthwise convolution on the vector unit; see dense_needs."""
    area = depthwise.choose(s, chip, len(vector_cores(Program(chip), cores)))
    nbytes = 32 * s.images * ceil_div(s.channels, 16) * (s.height * s.width + s.patches.count)
    return SimulationCost(depthwise.instructions(s, area, chip), 8 * nbytes)


def _depthwise_needs(size: tuple[int, ...], chip: Chip, cores: int | None) -> SimulationCost:
    return depthwise_needs(_depthwise_shape(size), chip, cores)


KERNELS = (
    Kernel(
        "conv2d",
        "2-D convolution on the Cube, with bias and ReLU",
        _SIZES,
        (1, 32, 28, 64, 3, 1),
        _conv2d,
        _conv2d_needs,
    ),
    Kernel(
        "depthwise",
        "2-D convolution of each channel by itself, on the vector unit",
        ("images", "channels", "side", "kernel", "stride"),
        (1, 64, 28, 3, 1),
        _depthwise,
        _depthwise_needs,
    ),
)

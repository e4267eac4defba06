"""Layers as the unoptimised operators of the case studies: single buffers, no fusion, repeat 1.

A convolution, dense or depthwise, and a matrix product have one slot of each buffer and load their
weights again for every tile, as ``sim.papers.zhou25`` has ``conv2d`` at its step "baseline". A
depthwise convolution runs on the Cube with diagonal weights, as in ``depthwise``. An operation on
each element waits for the store of a piece before it loads the next one, as in ``add_relu``, and a
pooling has instructions of one repeat for each row of a window, as in ``avgpool``. Hard-Swish and
hard sigmoid are two operators each. Softmax and layer normalisation have no case study; they are
those of the optimised network.

References
----------
Zhou et al. 2025, §5 and §6.2.2.
"""

from collections.abc import Sequence
from dataclasses import replace

from vitruvian.common.validate import ceil_div, round_up
from vitruvian.sim.davinci import Chip, Core, Program, Unit, View
from vitruvian.sim.kernels import convolution, pooling
from vitruvian.sim.kernels.convolution.dense import Buffering
from vitruvian.sim.kernels.kernel import vector_cores
from vitruvian.sim.kernels.ring import Ring, uses_of
from vitruvian.sim.networks.elementwise import RECIPES
from vitruvian.sim.networks.layers import Conv, Elementwise, Layer, MatMul, Network, Pool

V, MTE2, MTE3 = Unit.V, Unit.MTE2, Unit.MTE3

#: Elements of a piece, and those of a constant: the lanes of a repeat, which all repeats read.
_PIECE, _LANES = 4096, 128

#: The operators that an operation is made of. "shift_relu" is ReLU(x + c), the paper's Add_ReLU.
_PARTS = {"hard_swish": ("shift_relu", "mul"), "hard_sigmoid": ("shift_relu", "scale")}

_SINGLE = Buffering(slots=1, keep_weights=False)


def unfused(network: Network) -> Network:
    """Return a network whose fused operations on elements are operators of their own."""
    layers: list[Layer] = []
    for layer in network.layers:
        names = _PARTS.get(layer.operation) if isinstance(layer, Elementwise) else None
        if names is None:
            layers.append(layer)
            continue
        assert isinstance(layer, Elementwise)
        layers += [replace(layer, name=f"{layer.name} {name}", operation=name) for name in names]
    return replace(network, layers=tuple(layers))


def build_baseline(layer: Layer, chip: Chip) -> Program | None:
    """Build a layer of ``unfused`` without data, for all cores of a chip.

    Parameters
    ----------
    chip : Chip
        A chip whose cores have all units.

    Returns
    -------
    Program or None
        None if no case study has a baseline for this kind of layer.

    Raises
    ------
    ValueError
        If the chip cannot run the kernel.
    """
    if isinstance(layer, Conv):
        return convolution.build(conv_shape(layer), chip=chip, relu=layer.relu, buffering=_SINGLE)
    if isinstance(layer, MatMul):
        # A product is a convolution of one pixel's kernel over m pixels of k channels.
        shape = convolution.ConvShape(
            images=1, channels=layer.k, height=1, width=layer.m, filters=layer.n, kernel=(1, 1)
        )
        return convolution.build(shape, chip=chip, buffering=_SINGLE)
    if isinstance(layer, Pool):
        groups = ceil_div(layer.channels, 16)
        made = pooling.Pooling(layer.patches, 1, groups, reduction=layer.operation, method="direct")
        return pooling.build(made, chip)
    if isinstance(layer, Elementwise) and (
        layer.operation == "shift_relu" or layer.operation in RECIPES
    ):
        return _elementwise(layer.operation, layer.elements, chip)
    return None


def conv_shape(layer: Conv) -> convolution.ConvShape:
    """Return the convolution on the Cube that the baseline of a layer is."""
    depthwise = layer.kind == "depthwise"
    # Each group of 16 channels is an image of its own: its weights are diagonal matrices.
    return convolution.ConvShape(
        images=ceil_div(layer.channels, 16) if depthwise else 1,
        channels=16 if depthwise else layer.channels,
        height=layer.height,
        width=layer.width,
        filters=16 if depthwise else layer.filters,
        kernel=layer.kernel,
        stride=layer.stride,
        dilation=layer.dilation,
        pad=layer.pad,
        groups=1 if depthwise else layer.groups,
    )


def _elementwise(operation: str, elements: int, chip: Chip) -> Program:
    """Build an operation whose loads, computation and stores do not overlap."""
    operands = 1 if operation == "shift_relu" else RECIPES[operation][0]
    pieces = ceil_div(elements, _PIECE)
    size = min(_PIECE, round_up(elements, _LANES))
    program = Program(chip, f"{operation} {elements}, baseline")
    gx = [program.tensor(f"x{i}", (pieces, size), "fp16") for i in range(operands)]
    gc = program.tensor("c", (_LANES,), "fp16") if operation == "shift_relu" else None
    gy = program.tensor("y", (pieces, size), "fp16")
    cores = vector_cores(program, None)
    for number, core in enumerate(cores):
        part = range(pieces * number // len(cores), pieces * (number + 1) // len(cores))
        if part:
            _serial(core, gx, gc, gy, part, operation)
    return program


def _serial(
    core: Core, gx: Sequence[View], gc: View | None, gy: View, part: range, operation: str
) -> None:
    size = gy.shape[1:]
    ins = [core.allocate("UB", size, "fp16", "in") for _ in gx]
    out = core.allocate("UB", size, "fp16", "out")
    room = core.allocate("UB", size, "fp16", "room")
    constant = core.allocate("UB", (_LANES,), "fp16", "constant") if gc is not None else None
    ring = Ring(core, MTE2, MTE3, 1, through=V, plan=uses_of(part, 1))
    for piece in part:
        with ring.write():
            for target, source in zip(ins, gx, strict=True):
                core.copy(target, source[piece])
            if gc is not None and constant is not None:
                core.copy(constant, gc)  # every piece loads it again, as add_relu before MRT does
        with ring.update():
            if constant is not None:
                strides = {"dst": (1, 8), "src0": (1, 8), "src1": (1, 0)}
                repeat = size[0] // _LANES
                core.vadd(out, ins[0], constant, repeat=repeat, strides=strides)
                core.pipe_barrier(V)
                core.vrelu(out, out)
            else:
                for index, step in enumerate(RECIPES[operation][1]):
                    if index:
                        core.pipe_barrier(V)
                    step(core, out, ins, room)
        with ring.read():
            core.copy(gy[piece], out)

"""Times and classes of the layers of a network on a simulated chip."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from vitruvian.common.collector import paused_collector
from vitruvian.common.validate import ceil_div
from vitruvian.sim.davinci import Chip, Program, simulate
from vitruvian.sim.kernels import KERNELS, convolution, pooling
from vitruvian.sim.kernels.convolution.catalogue import dense_needs, depthwise_needs
from vitruvian.sim.kernels.kernel import LIMITS, SimulationCost, vector_kind
from vitruvian.sim.kernels.pooling.build import timed
from vitruvian.sim.kernels.pooling.catalogue import needs as pooling_needs
from vitruvian.sim.kernels.pooling.plan import WHOLE, default_method
from vitruvian.sim.networks import elementwise
from vitruvian.sim.networks.baseline import build_baseline, conv_shape, unfused
from vitruvian.sim.networks.elementwise import RECIPES, build_elementwise, build_layer_norm
from vitruvian.sim.networks.layers import (
    Conv,
    Elementwise,
    Layer,
    LayerNorm,
    MatMul,
    Network,
    Pool,
    Softmax,
)
from vitruvian.sim.roofline import Analysis, Bound, Thresholds, analyse, counters_of
from vitruvian.sim.roofline.components import ComponentKind

#: The versions of the layers: the baselines of the case studies, or the fastest kernels.
STEPS = ("baseline", "optimised")

#: The most classes of the softmax kernel, and the positions that it processes at once.
_CLASSES, _POSITIONS = 128, 128


class UnknownLayers(ValueError):
    """A network has layers that no kernel computes; the message names and counts their kinds."""


@dataclass(frozen=True)
class LayerTime:
    """The result of one layer.

    Attributes
    ----------
    layer : Layer
    analysis : Analysis or None
        The roofline of one run of the layer, or None if no kernel computes it.
    """

    layer: Layer
    analysis: Analysis | None

    @property
    def seconds(self) -> float:
        """Seconds of all runs of the layer without their launches; 0 if no kernel computes it."""
        return self.layer.times * self.analysis.counters.total_s if self.analysis else 0.0


@dataclass(frozen=True)
class NetworkTimes:
    """The results of all layers of a network.

    Attributes
    ----------
    network : Network
    chip : str
    layers : tuple of LayerTime
    step : str
        One of ``STEPS``.
    """

    network: Network
    chip: str
    layers: tuple[LayerTime, ...]
    step: str = "optimised"

    @property
    def seconds(self) -> float:
        """Seconds of all layers, one after the other, without their launches."""
        return sum(layer.seconds for layer in self.layers)

    @property
    def skipped(self) -> Counter[str]:
        """The number of layers by kind that no kernel computes."""
        return Counter(x.layer.kind for x in self.layers if x.analysis is None)

    def distribution(
        self, *, by_time: bool = False, buses: bool = True, launch_s: float = 0.0
    ) -> dict[Bound, float]:
        """Return the share of each class, without classes that do not occur.

        Parameters
        ----------
        by_time : bool
            If True, weight each layer by its time; otherwise count runs of layers.
        buses : bool
            If False, leave out the buses, which are no components in Zhou et al. 2025.
        launch_s : float
            Seconds that are added to the time of each run of a layer before it is classified.
        """
        weights = dict.fromkeys(Bound, 0.0)
        for x in self.layers:
            if x.analysis:
                bound = _bound(x.analysis, buses, launch_s)
                weights[bound] += x.seconds if by_time else x.layer.times
        total = sum(weights.values())
        return {bound: weight / total for bound, weight in weights.items() if weight}

    def as_dict(self) -> dict[str, Any]:
        """Return the results in types that JSON can hold."""
        return {
            "network": self.network.name,
            "chip": self.chip,
            "step": self.step,
            "total_us": self.seconds * 1e6,
            "skipped": dict(self.skipped),
            "share_of_layers": {b.value: x for b, x in self.distribution().items()},
            "share_of_layers_without_buses": {
                b.value: x for b, x in self.distribution(buses=False).items()
            },
            "share_of_time": {b.value: x for b, x in self.distribution(by_time=True).items()},
            "layers": [
                {
                    "name": x.layer.name,
                    "kind": x.layer.kind,
                    "times": x.layer.times,
                    "us": x.seconds * 1e6,
                    "roofline": x.analysis.as_dict() if x.analysis else None,
                }
                for x in self.layers
            ],
        }


def _bound(analysis: Analysis, buses: bool, launch_s: float) -> Bound:
    """Return the class of a layer under another definition of the components or of the time."""
    if buses and not launch_s:
        return analysis.bound
    c = analysis.counters
    counts = [x for x in c.counts if buses or x.component.kind != ComponentKind.BUS]
    changed = replace(c, counts=counts, total_s=c.total_s + launch_s)
    return analyse(changed, analysis.thresholds).bound


def run(
    network: Network,
    chip: Chip,
    *,
    step: str = "optimised",
    skip_unknown: bool = False,
    thresholds: Thresholds | None = None,
    tell: Callable[[Layer], object] = lambda layer: None,
) -> NetworkTimes:
    """Simulate every layer of a network, each shape once.

    Parameters
    ----------
    chip : Chip
    step : {"baseline", "optimised"}
        The layers as the unoptimised operators of the case studies (``baseline.build_baseline``),
        or as the fastest kernels.
    skip_unknown : bool
        If True, leave out the layers that no kernel computes.
    thresholds : Thresholds, optional
    tell : callable
        Called with each layer before it is simulated or taken from those of its shape.

    Raises
    ------
    UnknownLayers
        If no kernel computes some layers, and ``skip_unknown`` is False. This is checked before
        any layer is simulated.
    ValueError
        If the step is unknown, the chip cannot run a kernel, or the simulation of a layer would
        take more than some minutes (``kernels.LIMITS``); the message names the layer. Sizes are
        checked before any layer is simulated.
    """
    if step not in STEPS:
        raise ValueError(f"step must be one of {', '.join(STEPS)}, not {step!r}")
    missing = [layer for layer in network.layers if not _is_known(layer)]
    unknown = Counter(layer.kind for layer in missing)
    if unknown and not skip_unknown:
        kinds = ", ".join(f"{kind} ({count})" for kind, count in sorted(unknown.items()))
        raise UnknownLayers(
            f"layers of {network.name} must have kernels, and these do not: {kinds}; "
            "they can be skipped on request"
        )
    if step == "baseline":
        network = unfused(network)
    _check_sizes(network, chip, step, missing)
    known: dict[Layer, Analysis] = {}
    times: list[LayerTime] = []
    for layer in network.layers:
        tell(layer)
        if layer in missing:
            times.append(LayerTime(layer, None))
            continue
        # Layers that differ in their names alone take equal times.
        if layer.shape not in known:
            try:
                with paused_collector():
                    program = build_baseline(layer, chip) if step == "baseline" else None
                    program = _timed(layer, chip) if program is None else program
                    # Times do not depend on data, and the kernels pass the checks in their own
                    # tests.
                    report = simulate(program, cube=None, checks=False)
                    known[layer.shape] = analyse(counters_of(report), thresholds)
            except ValueError as error:
                raise ValueError(f"{network.name}, {layer.name}: {error}") from None
        times.append(LayerTime(layer, known[layer.shape]))
    return NetworkTimes(network, chip.name, tuple(times), step)


def _check_sizes(network: Network, chip: Chip, step: str, missing: list[Layer]) -> None:
    """Refuse a network with a layer whose simulation takes too long."""
    checked: set[Layer] = set()
    for layer in network.layers:
        if layer in missing or layer.shape in checked:
            continue
        checked.add(layer.shape)
        try:
            needs = SimulationCost(instructions_of(layer, chip, step))
            needs.check(f"the {layer.kind}", LIMITS)
        except ValueError as error:
            raise ValueError(f"{network.name}, {layer.name}: {error}") from None


def instructions_of(layer: Layer, chip: Chip, step: str = "optimised") -> int:
    """Return an upper bound of the instructions that one run of a layer takes to simulate.

    Parameters
    ----------
    layer : Layer
        A layer that a kernel computes.
    step : str
        One of ``STEPS``.

    Raises
    ------
    ValueError
        If the chip cannot run the kernel.
    """
    baseline = step == "baseline"
    if isinstance(layer, Conv):
        # The baseline of a depthwise convolution is one on the Cube, with diagonal matrices as
        # weights.
        if layer.kind == "depthwise" and not baseline:
            return depthwise_needs(_shape(layer), chip).instructions
        return dense_needs(conv_shape(layer) if baseline else _shape(layer), chip).instructions
    if isinstance(layer, Pool):
        if baseline:
            return pooling_needs(replace(_pooling(layer, chip), method="direct"), chip).instructions
        # One of the cores is built, see ``pooling.build.timed``.
        made = _pooling(layer, chip)
        groups = ceil_div(made.groups, vector_kind(chip).count)
        return pooling_needs(replace(made, groups=groups), chip, 1).instructions
    if isinstance(layer, MatMul):
        size = (layer.m, layer.k, layer.n)
        return KERNELS["matmul"].needs(size, chip, None).instructions
    if isinstance(layer, Softmax):
        size = (ceil_div(layer.rows, _POSITIONS), layer.classes)
        return KERNELS["softmax"].needs(size, chip, None).instructions
    if isinstance(layer, LayerNorm):
        return elementwise.layer_norm_instructions(layer.rows, layer.features)
    assert isinstance(layer, Elementwise)
    return elementwise.instructions(layer.operation, layer.elements)


def program_of(layer: Layer, chip: Chip) -> Program:
    """Build a layer without data, for all cores of a chip.

    Raises
    ------
    UnknownLayers
        If no kernel computes the layer.
    ValueError
        If the chip cannot run the kernel.
    """
    if not _is_known(layer):
        raise UnknownLayers(f"layer must have a kernel, not {layer.kind}")
    if isinstance(layer, Conv):
        return _convolution(layer, chip)
    if isinstance(layer, Pool):
        return pooling.build(_pooling(layer, chip), chip)
    if isinstance(layer, MatMul):
        size = (layer.m, layer.k, layer.n)
        return KERNELS["matmul"].build(size, chip=chip, data=False).program
    if isinstance(layer, Softmax):
        size = (ceil_div(layer.rows, _POSITIONS), layer.classes)
        return KERNELS["softmax"].build(size, chip=chip, data=False).program
    if isinstance(layer, LayerNorm):
        return build_layer_norm(layer.rows, layer.features, chip)
    assert isinstance(layer, Elementwise)
    return build_elementwise(layer.operation, layer.elements, chip)


def _timed(layer: Layer, chip: Chip) -> Program:
    """Return a program with the times of ``program_of``'s, made faster if there is a way to."""
    if isinstance(layer, Pool):
        return timed(_pooling(layer, chip), chip)
    return program_of(layer, chip)


def _is_known(layer: Layer) -> bool:
    if isinstance(layer, Softmax):
        return layer.classes <= _CLASSES
    if isinstance(layer, Elementwise):
        return layer.operation in RECIPES
    return isinstance(layer, Conv | Pool | MatMul | LayerNorm)


def _pooling(layer: Pool, chip: Chip) -> pooling.Pooling:
    groups = ceil_div(layer.channels, 16)
    method = default_method(chip, layer.patches)
    # With one window, Im2Col has no pixels to repeat; direct pooling is twice as fast then.
    if method != WHOLE and layer.patches.count == 1:
        method = "direct"
    return pooling.Pooling(layer.patches, 1, groups, reduction=layer.operation, method=method)


def _shape(layer: Conv) -> convolution.ConvShape:
    return convolution.ConvShape(
        images=1,
        channels=layer.channels,
        height=layer.height,
        width=layer.width,
        filters=layer.filters,
        kernel=layer.kernel,
        stride=layer.stride,
        dilation=layer.dilation,
        pad=layer.pad,
        groups=layer.groups,
    )


def _convolution(layer: Conv, chip: Chip) -> Program:
    build = convolution.depthwise.build if layer.kind == "depthwise" else convolution.build
    return build(_shape(layer), chip=chip, bias=True, relu=layer.relu)

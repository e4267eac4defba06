"""Whole networks as tables of layers: time and class of each layer on a simulated chip.

``NETWORKS`` holds the tables by name; ``run`` times a network, and ``read_onnx`` reads another one.
"""

from collections.abc import Callable

from vitruvian.sim.networks.layers import Network
from vitruvian.sim.networks.text import bert_base
from vitruvian.sim.networks.vision import inception_v3, mobilenet_v3, resnet50

__all__ = ["NETWORKS", "Network"]

#: The networks by name; each value builds one.
NETWORKS: dict[str, Callable[[], Network]] = {
    "mobilenet_v3": mobilenet_v3,
    "resnet50": resnet50,
    "inception_v3": inception_v3,
    "bert_base": bert_base,
}

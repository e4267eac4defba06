"""Words that a shell completes in the commands of the Ascend wing.

Each function imports what it needs, because a shell waits for the answer.
"""

from collections.abc import Callable, Iterable


def _chips() -> Iterable[str]:
    from vitruvian.sim.davinci.chip.file import chip_names

    return chip_names()


def _kernels() -> Iterable[str]:
    from vitruvian.sim.kernels import KERNELS

    return KERNELS


def _functions() -> Iterable[str]:
    from vitruvian.sim.kernels.series.functions import FUNCTIONS

    return FUNCTIONS


def _selections() -> Iterable[str]:
    from vitruvian.sim.kernels.selbknn.build import METHODS

    return METHODS


def _evaluations() -> Iterable[str]:
    from vitruvian.sim.kernels.series.build import METHODS

    return ("cube", *METHODS)


def _targets() -> Iterable[str]:
    from vitruvian.sim.papers.zhou25 import CASES

    return [*CASES, *_kernels()]


def _studies() -> Iterable[str]:
    from vitruvian.sim.studies import KERNELS

    return KERNELS


def _networks() -> Iterable[str]:
    from vitruvian.sim.networks import NETWORKS

    return NETWORKS


#: Names by command and attribute, or by attribute alone
NAMES: dict[str, Callable[[], Iterable[str]]] = {
    "chip": _chips,
    "cube": lambda: ("golden", "rtl", "fast", "none"),
    "kernel problem": _kernels,
    "trace problem": _kernels,
    "knn method": _selections,
    "knn metric": lambda: ("l2", "cosine", "cosine-product"),
    "taylor functions": _functions,
    "taylor method": _evaluations,
    "tune kernel": lambda: ("matmul",),
    "roofline target": _targets,
    "studies name": _studies,
    "network network": _networks,
}

#: Endings of the files that may stand in the place of a name
FILES = {
    "chip": "toml",
    "network network": "onnx",
    "taylor input": "npy",
    "train": "npy",
    "query": "npy",
}

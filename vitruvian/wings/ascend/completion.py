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
    from vitruvian.sim.ops.series import METHODS

    return METHODS


def _targets() -> Iterable[str]:
    from vitruvian.sim.papers.zhou25 import CASES

    return [*CASES, *_kernels()]


def _studies() -> Iterable[str]:
    from vitruvian.sim.studies import KERNELS

    return KERNELS


def _methods() -> Iterable[str]:
    from vitruvian.sim.studies import METHODS

    return METHODS


def _types() -> Iterable[str]:
    from vitruvian.sim.kernels.tiling import DTYPES

    return DTYPES


def _output_types() -> Iterable[str]:
    from vitruvian.sim.kernels.tiling import DTYPES

    return dict.fromkeys(name for entry in DTYPES.values() for name in entry[2])


def _kinds() -> Iterable[str]:
    from vitruvian.sim.davinci import load_chip
    from vitruvian.sim.davinci.chip.file import chip_names

    kinds = dict.fromkeys(kind for chip in chip_names() for kind in load_chip(chip).kinds)
    return [*kinds, "all"]


def _cores() -> Iterable[str]:
    from vitruvian.sim.rtl.core import core_names

    return core_names()


def _steps() -> Iterable[str]:
    from vitruvian.sim.networks.run import STEPS

    return STEPS


def _networks() -> Iterable[str]:
    from vitruvian.sim.networks import NETWORKS

    return NETWORKS


#: Names by command and attribute, or by attribute alone
NAMES: dict[str, Callable[[], Iterable[str]]] = {
    "chip": _chips,
    "cube": lambda: ("golden", "rtl", "fast", "none"),
    "cce cube": lambda: ("golden", "rtl", "fast"),
    "cce kind": _kinds,
    "ascendc cube": lambda: ("golden", "rtl", "fast"),
    "ascendc kind": _kinds,
    "assemble cube": lambda: ("golden", "rtl", "fast"),
    "assemble kind": _kinds,
    "host kind": _kinds,
    "core": _cores,
    "feed": lambda: ("stream", "riscv"),
    "kernel problem": _kernels,
    "trace problem": _kernels,
    "knn method": _selections,
    "knn metric": lambda: ("l2", "cosine", "cosine-product"),
    "taylor functions": _functions,
    "taylor input": lambda: (),  # a file, not the format that other commands call input
    "taylor method": _evaluations,
    "tune kernel": lambda: ("matmul",),
    "tune dtype": _types,
    "tune output_dtype": _output_types,
    "tune method": lambda: ("exhaustive", "guided"),
    "roofline target": _targets,
    "roofline core": lambda: ("busiest", "all"),
    "studies name": _studies,
    "studies methods": _methods,
    "studies backend": lambda: ("golden", "rtl"),
    "network network": _networks,
    "network step": _steps,
}

#: Endings of the files that may stand in the place of a name
FILES = {
    "chip": "toml",
    "network network": "onnx",
    "taylor input": "npy",
    "train": "npy",
    "query": "npy",
}

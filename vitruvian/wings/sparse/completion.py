"""Words that a shell completes in the commands of the sparse wing.

Each function imports what it needs, because a shell waits for the answer.
"""

from collections.abc import Callable, Iterable


def _applications() -> Iterable[str]:
    from vitruvian.sparse.options import OPTIONS

    return [*OPTIONS, "mxm"]


def _orders() -> Iterable[str]:
    from vitruvian.sim.sparse.reordering import ORDERS

    return ORDERS


def _semirings() -> Iterable[str]:
    from vitruvian.golden.sparse.semirings import SEMIRINGS

    return SEMIRINGS


def _memories() -> Iterable[str]:
    from vitruvian.sim.sparse.dram import MEMORIES

    return ["none", *MEMORIES]


#: Names by command and attribute
NAMES: dict[str, Callable[[], Iterable[str]]] = {
    "sparse application": _applications,
    "sparse memory": _memories,
    "sparse reorder": _orders,
    "sparse semiring": _semirings,
}

#: Endings of the files that may stand in the place of a name
FILES: dict[str, str] = {"sparse memory": "toml"}

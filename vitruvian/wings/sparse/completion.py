"""Words that a shell completes in the commands of the sparse wing.

Each function imports what it needs, because a shell waits for the answer.
"""

from collections.abc import Callable, Iterable


def _applications() -> Iterable[str]:
    from vitruvian.sparse.solving import OPTIONS

    return [*OPTIONS, "triangles"]


def _orders() -> Iterable[str]:
    from vitruvian.sim.sparse.reordering import ORDERS

    return ORDERS


#: Names by command and attribute
NAMES: dict[str, Callable[[], Iterable[str]]] = {
    "sparse application": _applications,
    "sparse reorder": _orders,
}

#: Endings of the files that may stand in the place of a name
FILES: dict[str, str] = {}

"""Array operations for static timing: batches of table look-ups, and topological levels."""

from collections.abc import Sequence

import numpy as np

from vitruvian.flows.asic.liberty import LibertyTable


class TableSet:
    """All tables of a library in one array, so that a batch of look-ups is one NumPy expression."""

    def __init__(self) -> None:
        self._tables: list[LibertyTable] = []
        self._number: dict[int, int] = {}

    def add(self, table: LibertyTable) -> int:
        """Return the index of ``table``; adding the same table again returns the same index."""
        # The list keeps every table alive, so no other table can get its id.
        if id(table) not in self._number:
            self._number[id(table)] = len(self._tables)
            self._tables.append(table)
        return self._number[id(table)]

    def freeze(self) -> None:
        """Copy the tables into arrays, padded to the largest; no table can be added afterwards."""
        slews = max((len(t.slews) for t in self._tables), default=2)
        loads = max((len(t.loads) for t in self._tables), default=2)
        count = len(self._tables)
        # No look-up reaches an infinite axis entry, so padding is never selected.
        self.slews = np.full((count, slews), np.inf)
        self.loads = np.full((count, loads), np.inf)
        self.values = np.zeros((count, slews, loads))
        self.size = np.array([t.values.shape for t in self._tables]).reshape(-1, 2)
        for n, t in enumerate(self._tables):
            self.slews[n, : len(t.slews)] = t.slews
            self.loads[n, : len(t.loads)] = t.loads
            self.values[n, : len(t.slews), : len(t.loads)] = t.values

    def __call__(self, number: np.ndarray, slew: np.ndarray, load: np.ndarray) -> np.ndarray:
        """Look up table ``number[i]`` at ``slew[i]`` and ``load[i]``, as ``LibertyTable`` does.

        Parameters
        ----------
        number : (N,) ndarray of int
            Indices that ``add`` returned.
        slew, load : (N,) ndarray of float
            Input slew in ps and load in fF.

        Returns
        -------
        (N,) ndarray of float
            Delays or slews in ps.
        """
        slews, loads = self.slews[number], self.loads[number]
        # Beyond an axis, the outermost interval is extrapolated.
        i = np.clip((slews <= slew[:, None]).sum(1) - 1, 0, self.size[number, 0] - 2)
        j = np.clip((loads <= load[:, None]).sum(1) - 1, 0, self.size[number, 1] - 2)
        n = np.arange(len(number))
        x = (slew - slews[n, i]) / (slews[n, i + 1] - slews[n, i])
        y = (load - loads[n, j]) / (loads[n, j + 1] - loads[n, j])
        values = self.values
        low = values[number, i, j] * (1 - x) + values[number, i + 1, j] * x
        high = values[number, i, j + 1] * (1 - x) + values[number, i + 1, j + 1] * x
        return low + y * (high - low)


def levels(arcs: np.ndarray, count: int) -> Sequence[np.ndarray]:
    """Group the rows of ``arcs`` by the topological level of their source net.

    Parameters
    ----------
    arcs : (N, ≥ 2) ndarray of int
        Source and target node of each arc; node = 2 × net + edge.
    count : int
        Number of nodes.

    Returns
    -------
    sequence of ndarray
        Indices into ``arcs``; every level comes after the levels that it depends on.

    Raises
    ------
    ValueError
        If the netlist contains a combinational loop.
    """
    # Kahn's algorithm on nets, one whole level at a time.
    net_of = arcs[:, :2] // 2
    nets = count // 2
    pairs = np.unique(net_of, axis=0) if len(net_of) else net_of
    order = np.argsort(pairs[:, 0], kind="stable")
    sources, targets = pairs[order].T
    first = np.searchsorted(sources, np.arange(nets + 1))
    waiting = np.bincount(targets, minlength=nets)
    level = np.zeros(nets, dtype=np.int64)
    ready = np.flatnonzero(waiting == 0)
    depth, seen = 0, 0
    while len(ready):
        level[ready] = depth
        seen += len(ready)
        pieces = [targets[first[n] : first[n + 1]] for n in ready]
        reached = np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.int64)
        np.subtract.at(waiting, reached, 1)
        ready = np.unique(reached[waiting[reached] == 0])
        depth += 1
    if seen != nets:
        raise ValueError("netlist must not hold a combinational loop")
    of_arc = level[net_of[:, 0]]
    order = np.argsort(of_arc, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(of_arc[order])) + 1) if len(order) else []

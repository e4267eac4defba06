"""The detailed router: negotiated congestion on a grid of tracks that obeys the design rules.

Every net takes its cheapest tree. Links that several nets claim become dearer from round to round,
and their nets are ripped up and routed again, until no link has two nets (PathFinder). The grid
leaves no other way to break a rule: see ``maze`` and ``floorplan.track_steps``.

References
----------
L. McMurchie and C. Ebeling, "PathFinder: a negotiation-based performance-driven router for FPGAs",
FPGA 1995.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vitruvian.common.compiling import fitting
from vitruvian.flows.asic.layout import maze
from vitruvian.flows.asic.layout.floorplan import Floorplan

#: Rounds of negotiation, and the price of a link for each other net in the first round.
ROUNDS, _PRESS = 100, 30.0
#: The price rises from round to round, up to so many times; then only history decides. If it rose
#: further, two nets would stay in conflict where a third one has to make room.
_MOST_PRESS = 6.0
#: Part of the price that a conflict adds to the history of a link. If it grew with the rounds, the
#: last conflicts of a large design would multiply.
_HISTORY = 0.4
#: Price of the nodes of a pin together: wires of other nets leave pins with few nodes alone.
_PIN = 30.0
#: Searches with other prices for a net without a path, and the most that they add to a link.
_RETRIES, _NOISE = 4, 400.0
#: Costs: microns along a track cost 100, and a via as much as 0.5 µm.
_MICRON, _VIA = 100.0, 50.0
#: Most edges of a net.
_MOST_EDGES = 1 << 17
#: Number of nodes that the search may go beyond the box around a net, in the first round.
_BEYOND = 12


@dataclass
class RoutedNet:
    """Edges between nodes of the grid, and the node where the net meets each terminal."""

    edges: np.ndarray
    pins: np.ndarray
    links: np.ndarray = field(repr=False)


@dataclass
class Routing:
    """All routed nets, by number; None for a net that has no path or joins a single terminal.

    ``conflicts`` has, for every round, the number of links that several nets claim.
    """

    nets: list[RoutedNet | None]
    conflicts: list[int]
    failed: list[int]


class Router:
    """The grid of tracks, the nets that claim its links, and the negotiation between them.

    Parameters
    ----------
    plan : Floorplan
    terminals : sequence
        For every net, the nodes of each of its terminals.
    """

    def __init__(self, plan: Floorplan, terminals: Sequence[Sequence[np.ndarray]]) -> None:
        self.plan, self.terminals = plan, terminals
        self.layers = len(plan.layers)
        self.columns, self.lines = plan.columns, plan.lines
        self.line_stride = self.lines + 1
        self.layer_stride = (self.columns + 1) * self.line_stride
        # A spare column and line at the end hold the last links, and spare nodes surround all.
        size = self.layers * self.layer_stride + self.layer_stride
        self.use = np.zeros(size, np.int32)
        self.history = np.zeros(size)
        self.steps = np.array(plan.step, np.int64)
        self.bumps = np.array(plan.bumps, np.int64)
        micron = plan.technology.per_micron
        pitch = plan.technology.metals[2].pitch
        self.weights = np.array(
            [_MICRON * pitch / micron, _MICRON * plan.technology.site[0] / micron, _VIA]
        )
        self._cost, self._heap = np.zeros(size), np.zeros(4 * size)
        self._marks = [np.zeros(size, np.int64) for _ in range(5)]
        self._parent = np.full(size, -1, np.int64)
        self._goal = np.zeros((size, 2), np.int64)
        self._heap_node = np.zeros(4 * size, np.int64)
        self._out = np.zeros((min(size, _MOST_EDGES), 2), np.int64)
        self._out_pins = np.zeros(max([len(t) for t in terminals], default=0) + 1, np.int64)
        self._stamp = 1
        self._search = fitting(maze.route, 4 * len(terminals))

    def node(self, layer: int, column: int, line: int) -> int:
        """Return the number of a node."""
        return layer * self.layer_stride + column * self.line_stride + line

    def places(self, nodes: np.ndarray) -> np.ndarray:
        """Return layer, column and line of nodes, as an array with three columns."""
        layer, rest = np.divmod(nodes, self.layer_stride)
        column, line = np.divmod(rest, self.line_stride)
        return np.stack([layer, column, line], -1)

    def links(self, nodes: np.ndarray) -> np.ndarray:
        """Return the links that nodes claim."""
        ahead = np.where(nodes // self.layer_stride % 2 == 1, self.line_stride, 1)
        return np.unique(np.concatenate([nodes, nodes + ahead]))

    def run(
        self, *, rounds: int = ROUNDS, tell: Callable[[str, int, int], None] = lambda w, d, t: None
    ) -> Routing:
        """Route all nets, and rip up those in conflict until none is left or the rounds end."""
        count = len(self.terminals)
        routing = Routing([None] * count, [], [])
        wanted = [n for n in range(count) if len(self.terminals[n]) > 1]
        boxes = {n: self._box(n) for n in wanted}
        # Short nets have the fewest ways, so they go first.
        wanted.sort(key=lambda n: (boxes[n][1] - boxes[n][0]) + (boxes[n][3] - boxes[n][2]))
        waiting = list(wanted)
        for net in [n for n in range(count) if len(self.terminals[n]) == 1]:
            at = self.terminals[net][0][:1]
            if self._at_border(int(at[0])):  # a port that nothing uses keeps other nets away
                nothing = np.empty((0, 2), np.int64)
                routing.nets[net] = self._claimed(at, self._lengthened(nothing, at, _PRESS))
        for nodes in [t for n in wanted for t in self.terminals[n]]:
            self.history[self.links(nodes)] += _PIN / len(nodes)
        for number in range(rounds):
            press = _PRESS * min(1.25**number, _MOST_PRESS)
            beyond = _BEYOND * (1 + number // 2)
            for done, net in enumerate(waiting):
                self._rip(routing.nets[net])
                routing.nets[net] = self._route(net, boxes[net], beyond, press)
                if done % 64 == 0:
                    tell(f"route, round {number + 1}", done, len(waiting))
            crowded = np.flatnonzero(self.use > 1)
            routing.conflicts.append(len(crowded))
            routing.failed = [n for n in wanted if routing.nets[n] is None]
            if not len(crowded) and not routing.failed:
                break
            self.history[crowded] += _HISTORY * press * np.minimum(self.use[crowded] - 1, 4)
            bad = self.use > 1
            waiting = [
                n for n in wanted if (routed := routing.nets[n]) is None or bad[routed.links].any()
            ]
        return routing

    def _rip(self, net: RoutedNet | None) -> None:
        if net is not None:
            self.use[net.links] -= 1

    def _box(self, net: int) -> tuple[int, int, int, int]:
        places = self.places(np.concatenate(list(self.terminals[net])))
        columns, lines = places[:, 1], places[:, 2]
        return int(columns.min()), int(columns.max()), int(lines.min()), int(lines.max())

    def _route(self, net: int, box: Any, beyond: int, press: float) -> RoutedNet | None:
        nodes = self.terminals[net]
        first = np.cumsum([0] + [len(t) for t in nodes]).astype(np.int64)
        window = np.array(
            [
                max(0, box[0] - beyond), min(self.columns - 1, box[1] + beyond),
                max(0, box[2] - beyond), min(self.lines - 1, box[3] + beyond),
            ]
        )  # fmt: skip
        edges = self._find(nodes, first, window, press, self.history)
        for number in range(_RETRIES if edges < 0 else 0):
            # The search keeps a single way to each node, from which rules may forbid the next step.
            # Other prices let other ways come first.
            noise = np.random.default_rng(number).random(len(self.history))
            edges = self._find(nodes, first, window, press, self.history + _NOISE * noise)
            if edges >= 0:
                break
        if edges < 0:
            return None
        pins = self._out_pins[: len(nodes)].copy()
        return self._claimed(pins, self._lengthened(self._out[:edges].copy(), pins, press))

    def _claimed(self, pins: np.ndarray, edges: np.ndarray) -> RoutedNet:
        """Return a net of some edges, which claims its links."""
        links = self.links(np.unique(np.concatenate([edges.ravel(), pins])))
        self.use[links] += 1
        return RoutedNet(edges, pins, links)

    def _lengthened(self, edges: np.ndarray, pins: np.ndarray, press: float) -> np.ndarray:
        """Return the edges of a net, with more of them where a wire would have too little area."""
        least = self.plan.least_nodes
        if max(least) == 1:
            return edges
        areas = [metal.least_area for metal in self.plan.layers]
        nodes = {int(n) for n in np.concatenate([edges.ravel(), pins])}
        more = []
        for layer in np.flatnonzero(areas).tolist():
            ahead = self.line_stride if layer % 2 else 1
            for start in sorted(n for n in nodes if n // self.layer_stride == layer):
                if start - ahead in nodes:
                    continue
                ends = [start, start]
                while ends[1] + ahead in nodes:
                    ends[1] += ahead
                # At the border, a wire cannot become longer at both ends.
                border = any(self._at_border(n) for n in ends)
                wanted = max(least[layer], 2 if border else 1)
                while (ends[1] - ends[0]) // ahead + 1 < wanted:
                    ways = [(ends[0], -ahead), (ends[1], ahead)]
                    ways = [(n, step) for n, step in ways if self._inside(n + step, layer)]
                    at, step = min(ways, key=lambda way: self._price(way[0] + way[1], ahead, press))
                    more.append((at, at + step))
                    nodes.add(at + step)
                    ends[step > 0] += step
        return np.concatenate([edges, np.array(more, np.int64).reshape(-1, 2)])

    def _at_border(self, node: int) -> bool:
        """Return whether a node is the first or the last one of its track."""
        layer, column, line = self.places(np.array([node]))[0].tolist()
        return (column in (0, self.columns - 1)) if layer % 2 else (line in (0, self.lines - 1))

    def _inside(self, node: int, layer: int) -> bool:
        (_, column, line) = self.places(np.array([node]))[0].tolist()
        return (
            node // self.layer_stride == layer
            and 0 <= column < self.columns
            and 0 <= line < self.lines
        )

    def _price(self, node: int, ahead: int, press: float) -> float:
        """Return what the two links of a node cost."""
        return float(
            self.history[[node, node + ahead]].sum() + press * self.use[[node, node + ahead]].sum()
        )

    def _find(
        self,
        nodes: Sequence[np.ndarray],
        first: np.ndarray,
        window: np.ndarray,
        press: float,
        history: np.ndarray,
    ) -> int:
        """Search a tree of a net, and return the number of its edges, or -1."""
        seen, tree, cuts, pin_cuts, _ = self._marks
        edges = self._search(
            np.concatenate(list(nodes)).astype(np.int64), first, self.columns, self.lines,
            self.layers, self.steps, self.bumps, self.weights, self.use, history, press, window,
            self._stamp, self._cost, seen, self._parent, tree, self._goal, cuts, pin_cuts,
            self._heap, self._heap_node, self._out, self._out_pins,
        )  # fmt: skip
        # A call uses a number for itself and one for each of its searches.
        self._stamp += len(nodes) + 1
        return edges

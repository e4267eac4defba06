"""Derive delay and area of a static CMOS cell from its transistor networks, by logical effort.

A cell is a chain of inverting stages. A stage is given by the condition under which its pull-down
network conducts, a product or sum of inputs; the pull-up network is its dual. From this follow:

- the input capacitance: ``CAP_FF`` per gate finger (one NMOS and one PMOS transistor) and unit of
  strength;
- the drive: one resistance per transistor in series on the weakest path through the switching
  input, so that the logical effort of every gate follows from its topology;
- the parasitic capacitance: one drain per transistor that touches the output and, by Elmore's sum,
  the inner nodes between the output and the transistor that switches;
- the area: fingers in a row, ``(fingers + 1) x pitch x height``. The published areas of the 45 nm
  library follow this rule (INV 2, NAND2 3, XOR2 = NOR2 + AOI21 6 columns of 0.266 µm²).

A stage with delay T at zero slew has the delay ``T sqrt(1 + beta slew / T)`` for a slow input and
the output slew ``sqrt((alpha T)² + (kappa slew)²)``; both forms follow Horowitz (1984). Pull-up and
pull-down networks have separate constants, because pull-up transistors are narrower than an equal
drive would need.

References
----------
I. Sutherland, R. Sproull, D. Harris, Logical Effort, 1999, chapter 4.
M. Horowitz, Timing Models for MOS Circuits, Stanford, 1984, section 5.4.
"""

import math
import re
from dataclasses import dataclass

COLUMN_UM2 = 0.266  # 0.19 µm gate pitch x 1.4 µm row height
CAP_FF = 1.56  # per finger at strength 1
INNER_WIRE_FF = 0.7  # between two stages of a cell, per unit of strength of the later one


@dataclass(frozen=True, kw_only=True)
class Edge:
    """Constants of one output edge, fitted once to a 45 nm process at 1.1 V and 25 °C."""

    resistance: float  # ps/fF of one transistor at strength 1
    series: float  # factor: resistance that each further transistor in series adds
    drain_ff: float  # parasitic capacitance of one drain at the output, strength 1
    inner: float  # factor: capacitance of a drain inside a stack (shared diffusion)
    beta: float
    alpha: float
    kappa: float


FALL = Edge(
    resistance=1.36, series=0.79, drain_ff=1.45, inner=0.4, beta=0.71, alpha=0.72, kappa=0.26
)
RISE = Edge(
    resistance=2.57, series=1.07, drain_ff=1.36, inner=0.62, beta=1.31, alpha=0.83, kappa=0.30
)
EDGES = (FALL, RISE)


@dataclass(frozen=True)
class TransistorNetwork:
    """A series (``&``) or parallel (``|``) connection of inputs and networks."""

    operator: str
    parts: tuple["TransistorNetwork | str", ...]

    def leaves(self) -> list[str]:
        """Return the inputs of the network, one entry per transistor."""
        inputs: list[str] = []
        for part in self.parts:
            inputs += [part] if isinstance(part, str) else part.leaves()
        return inputs

    def path(self, pin: str, series: str = "&") -> "_Path | None":
        """Return the worst path through ``pin``.

        Parameters
        ----------
        pin : str
            The switching input; if empty, the longest path of all is returned.
        series : str
            Operator that means a series connection: ``&`` in the pull-down network, ``|`` in its
            dual.

        Returns
        -------
        _Path or None
            None if the network does not contain ``pin``.
        """
        # The first part of a series connection is next to the output.
        through = [_part_path(part, pin, series) for part in self.parts]
        # In parallel the worst branch counts.
        if self.operator != series:
            return max((p for p in through if p is not None), key=_Path.cost, default=None)
        if pin and all(path is None for path in through):
            return None
        # The parts that do not switch conduct already; the longest of their paths is the worst.
        longest = [_part_path(part, "", series) or _Path(1, ()) for part in self.parts]
        drains = [_part_drains(part, series) for part in self.parts]
        candidates = []
        for switching, path in enumerate(through):
            if path is None:
                continue
            chosen = [*longest[:switching], path, *longest[switching + 1 :]]
            nodes: tuple[int, ...] = ()
            # An inner node joins the drains of the parts above and below it.
            for index, piece in enumerate(chosen):
                joint = () if index == 0 else (drains[index - 1] + drains[index],)
                nodes += joint + piece.nodes
            before = sum(piece.length for piece in chosen[:switching])
            length = sum(piece.length for piece in chosen)
            candidates.append(_Path(length, nodes, before + path.switching if pin else 0))
        return max(candidates, key=_Path.cost)

    def drains(self, series: str = "&") -> int:
        """Return how many transistors touch the output end of the network."""
        sizes = [_part_drains(part, series) for part in self.parts]
        return sizes[0] if self.operator == series else sum(sizes)


@dataclass(frozen=True)
class _Path:
    """Transistors in series from the output to the supply rail.

    ``nodes`` counts the drains at each inner node, from the output down; ``switching`` is the
    position of the transistor that turns on (0 is next to the output).
    """

    length: int
    nodes: tuple[int, ...]
    switching: int = 0

    def cost(self) -> tuple[int, int, int]:
        """Return a key by which a slower path compares greater."""
        return self.length, self.switching, sum(self.nodes)


def _part_path(part: "TransistorNetwork | str", pin: str, series: str) -> _Path | None:
    if isinstance(part, str):
        return _Path(1, ()) if pin in ("", part) else None
    return part.path(pin, series)


def _part_drains(part: "TransistorNetwork | str", series: str) -> int:
    return 1 if isinstance(part, str) else part.drains(series)


def network(text: str) -> TransistorNetwork:
    """Parse a condition such as ``A & (B | C)``; ``&`` binds tighter than ``|``."""
    tokens = re.findall(r"\w+|[&|()]", text)

    def group(level: str) -> "TransistorNetwork | str":
        parts = [group("&") if level == "|" else atom()]
        while tokens and tokens[0] == level:
            tokens.pop(0)
            parts.append(group("&") if level == "|" else atom())
        return parts[0] if len(parts) == 1 else TransistorNetwork(level, tuple(parts))

    def atom() -> "TransistorNetwork | str":
        token = tokens.pop(0)
        if token != "(":
            return token
        inner = group("|")
        tokens.pop(0)
        return inner

    whole = group("|")
    return whole if isinstance(whole, TransistorNetwork) else TransistorNetwork("|", (whole,))


@dataclass(frozen=True)
class Stage:
    """An inverting stage: ``output`` is low when ``pull_down`` conducts."""

    output: str
    pull_down: TransistorNetwork
    strength: float = 1.0

    def input_ff(self, pin: str) -> float:
        """Return the capacitance of the input ``pin`` in fF."""
        return CAP_FF * self.strength * self.pull_down.leaves().count(pin)

    @property
    def fingers(self) -> int:
        """Number of gate columns in the layout; a narrow finger takes a whole column."""
        return len(self.pull_down.leaves()) * math.ceil(self.strength)

    def response(self, pin: str, edge: int, slew: float, load: float) -> tuple[float, float]:
        """Return delay and output slew (ps) of an output edge.

        Parameters
        ----------
        pin : str
            The input that switches.
        edge : int
            Output edge: 0 for fall, 1 for rise.
        slew : float
            Input slew in ps.
        load : float
            Load in fF.

        Raises
        ------
        ValueError
            If ``pin`` is not an input of the stage.
        """
        constants, series = EDGES[edge], "&|"[edge]
        path = self.pull_down.path(pin, series)
        if path is None:
            raise ValueError(f"pin must be an input of {self.output!r}, not {pin!r}")

        def resistance(transistors: int) -> float:
            return constants.resistance * (1 + constants.series * (transistors - 1))

        drain = constants.drain_ff
        parasitic = drain * self.pull_down.drains(series)
        time = resistance(path.length) * (load / self.strength + parasitic)
        # Elmore: the nodes above the switching transistor discharge through those below it.
        for index, drains in enumerate(path.nodes[: path.switching]):
            inner = constants.inner * drain * drains
            time += resistance(path.length - 1 - index) * inner
        delay = time * math.sqrt(1 + constants.beta * slew / time)
        return delay, math.hypot(constants.alpha * time, constants.kappa * slew)


@dataclass(frozen=True)
class StageResponse:
    """Delay and slew in ps of one output edge, caused by one input edge of a cell."""

    delay: float
    slew: float


def propagate(
    stages: tuple[Stage, ...], pin: str, edge: int, slew: float, load: float
) -> dict[int, StageResponse]:
    """Return output edge -> worst response of the last stage to one input edge.

    Every inner stage drives the input capacitance of the stages behind it; the last drives
    ``load``.

    Parameters
    ----------
    stages : tuple of Stage
        The chain, in the direction of the signal.
    pin : str
        Input that switches.
    edge : int
        Input edge: 0 for fall, 1 for rise.
    slew : float
        Input slew in ps.
    load : float
        Load of the last stage in fF.
    """
    # Key: (net, edge). Stages come in signal order, so all inputs of a stage are known.
    seen: dict[tuple[str, int], StageResponse] = {(pin, edge): StageResponse(0.0, slew)}
    for stage in stages:
        behind = [s for s in stages if stage.output in s.pull_down.leaves()]
        inner = sum(s.input_ff(stage.output) + INNER_WIRE_FF * s.strength for s in behind)
        output_load = load if stage is stages[-1] else inner
        for source in dict.fromkeys(stage.pull_down.leaves()):
            for before in (0, 1):
                start = seen.get((source, before))
                if start is None:
                    continue
                delay, out = stage.response(source, 1 - before, start.slew, output_load)
                key = (stage.output, 1 - before)
                last = seen.get(key, StageResponse(0.0, 0.0))
                seen[key] = StageResponse(max(last.delay, start.delay + delay), max(last.slew, out))
    output = stages[-1].output
    return {e: seen[output, e] for e in (0, 1) if (output, e) in seen}

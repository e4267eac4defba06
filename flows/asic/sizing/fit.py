"""Cells of other sizes, fewer buffers, and gates for late full adders: area against delay.

ABC sees the logic around full adders in pieces, and takes every piece for as urgent as the longest
path. Here the delays of the whole netlist decide. Two steps alternate:

- ``recover`` removes buffers, and takes smaller cells, where the longest path does not suffer.
- ``hasten`` shortens the longest path by the change that gives most for its area: a larger cell, an
  input on a faster pin, a buffer less, or a full adder that becomes gates.

No net gets more load than the library allows its driver, unless it had more before.
"""

import heapq
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from vitruvian.flows.asic.adders import CELL
from vitruvian.flows.asic.liberty import LibertyCell, Library
from vitruvian.flows.asic.power.functions import MOST_INPUTS, truth_table
from vitruvian.flows.asic.sizing.netlist import SizedNetlist

#: Weight of the longest path beside the sum of the delays beyond the target, when a step is chosen.
_LONGEST = 5.0
#: Area that a change costs at least when it is compared with others, µm².
_LEAST_AREA = 0.1
#: Changes of the longest path that are made before it is looked for again.
_TOGETHER = 16
#: Two delays that differ by less are equal, ps.
_EQUAL_PS = 1e-6
#: Cells of the gates that replace a full adder, and the functions that they must have.
_HALF, _BOTH, _EITHER = "XNOR2_X1", "NAND2_X1", "OAI21_X1"
_FUNCTIONS = (
    (CELL, ("A", "B", "CI"), {"S": "A ^ B ^ CI", "CO": "A B | A CI | B CI"}),
    (_HALF, ("A", "B"), {"ZN": "!(A ^ B)"}),
    (_BOTH, ("A1", "A2"), {"ZN": "!(A1 & A2)"}),
    (_EITHER, ("A", "B1", "B2"), {"ZN": "!(A & (B1 | B2))"}),
)

#: A change of the netlist, which returns the nets to follow.
_Change = Callable[[], list[int]]


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """Area in µm² and longest path in ps, before and after, and the numbers of changes."""

    area_before: float
    area: float
    delay_before: float
    delay: float
    recovered: int
    hastened: int
    dissolved: int


def fit(
    netlist: dict[str, Any],
    library: Library,
    *,
    target_ps: float | None,
    driving_cell: str,
    load_ff: float,
) -> Fitted:
    """Change the cells of a netlist, in place, such that its longest path meets a target.

    Parameters
    ----------
    netlist : dict
        A module in the form of ``flows.asic.synth.Mapped.netlist``.
    target_ps : float or None
        Longest path that is wanted. It is met with little area, or else approached. With None, no
        path becomes longer than the longest one was.

    Returns
    -------
    Fitted
    """
    sized = SizedNetlist(netlist, library, driving_cell=driving_cell, load_ff=load_ff)
    result = _Sizer(sized, sized.late()[0] if target_ps is None else target_ps).run()
    sized.write_back()
    return result


class _Sizer:
    """The steps on one netlist."""

    def __init__(self, netlist: SizedNetlist, target_ps: float) -> None:
        self.netlist, self.target = netlist, target_ps
        self._larger = _larger(netlist.cells)
        self._smaller = {other: one for one, other in self._larger.items()}
        self._equal_pins = {
            kind: _equal_pins(cell, netlist.slots[kind]) for kind, cell in enumerate(netlist.cells)
        }
        self._may_dissolve = _may_dissolve(netlist)
        self._dissolved = 0

    def run(self) -> Fitted:
        area, (delay, _) = self.netlist.area, self.netlist.late()
        recovered = self.recover(max(delay, self.target))
        hastened = self.hasten()
        recovered += self.recover(max(self.netlist.late()[0], self.target))
        return Fitted(
            area_before=area,
            area=self.netlist.area,
            delay_before=delay,
            delay=self.netlist.late()[0],
            recovered=recovered,
            hastened=hastened,
            dissolved=self._dissolved,
        )

    def recover(self, limit_ps: float) -> int:
        """Save area as long as no path is longer than a limit; return the number of changes."""
        netlist, done = self.netlist, 0
        buffers = [inst for inst in range(len(netlist.names)) if self._is_buffer(inst)]
        for inst in sorted(buffers, key=lambda i: -netlist.cell(i).area_um2):
            front = netlist.input_nets(inst)
            if self._may_go(inst):
                done += self._try(lambda i=inst: netlist.bypass(i), front, limit_ps)
        for inst in range(len(netlist.names)):
            while inst not in netlist.gone:
                kind = self._smaller.get(int(netlist.circuit.kind[inst]))
                if kind is None or not self._try(
                    lambda i=inst, k=kind: netlist.resize(i, k), netlist.output_nets(inst), limit_ps
                ):
                    break
                done += 1
        return done

    def _try(self, change: _Change, loaded: list[int], limit_ps: float) -> bool:
        """Make a change and keep it if paths and loads stay within their limits."""
        netlist = self.netlist
        over = sum(map(netlist.overloaded, loaded))
        netlist.begin()
        netlist.follow(change())
        if (
            netlist.late()[0] <= limit_ps + _EQUAL_PS
            and sum(map(netlist.overloaded, loaded)) <= over
        ):
            return True
        netlist.undo()
        return False

    def hasten(self) -> int:
        """Shorten the longest paths until they meet the target; return the number of changes."""
        netlist, done, every = self.netlist, 0, False
        while netlist.late()[0] > self.target + _EQUAL_PS:
            offers: list[tuple[float, int, _Change, list[int], bool]] = []
            for inst, slot in netlist.longest():
                for change, loaded, dissolves in self._changes(inst, slot, every):
                    worth = self._worth(change, loaded)
                    netlist.undo()
                    if worth > 0:
                        offers.append((worth, inst, change, loaded, dissolves))
            changed: set[int] = set()
            for _, inst, change, loaded, dissolves in heapq.nlargest(
                _TOGETHER, offers, key=lambda offer: offer[0]
            ):
                if inst in changed:
                    continue
                if self._worth(change, loaded) <= 0:
                    netlist.undo()
                    continue
                changed.add(inst)
                self._dissolved += dissolves
            if not changed and every:
                break
            every = not changed
            done += len(changed)
            netlist.refresh()
        return done

    def _worth(self, change: _Change, loaded: list[int]) -> float:
        """Make a change, and return the time that it gains for its area, or 0 if it may not stay.

        Time is that of all ends beyond the target and, with a weight, that of the longest path.
        """
        netlist = self.netlist
        over, area = sum(map(netlist.overloaded, loaded)), netlist.area
        longest, late = netlist.late(self.target)
        netlist.begin()
        netlist.follow(change())
        now, behind = netlist.late(self.target)
        gain = late - behind + _LONGEST * (longest - now)
        if (
            gain <= _EQUAL_PS
            or now > longest + _EQUAL_PS
            or sum(map(netlist.overloaded, loaded)) > over
        ):
            return 0.0
        return gain / max(netlist.area - area, _LEAST_AREA)

    def _changes(
        self, inst: int, slot: int, every: bool
    ) -> Iterator[tuple[_Change, list[int], bool]]:
        """Yield changes of a cell on a path, the nets that they load, and if an adder goes.

        An input takes the place of one that arrives earlier, or if ``every`` is true, of any.
        """
        netlist = self.netlist
        kind = int(netlist.circuit.kind[inst])
        larger = self._larger.get(kind)
        if larger is not None:
            yield (lambda: netlist.resize(inst, larger)), netlist.input_nets(inst), False
        if slot >= 0:
            pins = netlist.circuit.pins[inst]
            for other in self._equal_pins[kind].get(slot, ()):
                arrivals = netlist.arrival(pins[other]), netlist.arrival(pins[slot])
                if pins[other] >= 0 and (every or arrivals[0] < arrivals[1]):
                    yield (
                        (lambda o=other: netlist.swap(inst, slot, o)),
                        netlist.input_nets(inst),
                        False,
                    )
        if self._is_buffer(inst) and self._may_go(inst):
            yield (lambda: netlist.bypass(inst)), netlist.input_nets(inst), False
        if self._may_dissolve and netlist.cells[kind].name == CELL:
            inputs = [netlist.net(inst, pin) for pin in ("A", "B", "CI")]
            if min(inputs) >= 0 and netlist.room(5):
                loaded = [*inputs, *netlist.output_nets(inst)]
                yield (lambda: _dissolve(netlist, inst)), loaded, True

    def _is_buffer(self, inst: int) -> bool:
        cell = self.netlist.cell(inst)
        return (
            inst not in self.netlist.gone
            and list(cell.outputs.values()) in (["A"], ["I"])
            and list(cell.caps) == list(cell.outputs.values())
        )

    def _may_go(self, inst: int) -> bool:
        """Return whether the netlist allows that a buffer goes: its output is no port."""
        netlist = self.netlist
        front, behind = netlist.input_nets(inst), netlist.output_nets(inst)
        return (
            len(front) == 1
            and len(behind) == 1
            and behind[0] not in netlist.port_nets
            and netlist.circuit.driver[front[0]] != -1
        )


def _dissolve(netlist: SizedNetlist, inst: int) -> list[int]:
    """Replace a full adder by gates, with the shortest path from its latest input.

    The sum is two XNOR; the carry is NAND (NAND (a, b), NAND (a or b, late)).
    """
    pins = {pin: netlist.net(inst, pin) for pin in ("A", "B", "CI", "S", "CO")}
    latest = max(("A", "B", "CI"), key=lambda pin: netlist.arrival(pins[pin]))
    late = pins[latest]
    a, b = (pins[pin] for pin in ("A", "B", "CI") if pin != latest)
    name, rank = netlist.names[inst], int(netlist.circuit.rank[inst])
    netlist.remove(inst)
    fresh: list[int] = []
    if pins["S"] >= 0:
        half = netlist.new_net()
        fresh.append(half)
        netlist.add(_HALF, {"A": a, "B": b, "ZN": half}, name=f"{name}.half", rank=rank)
        sum_pins = {"A": half, "B": late, "ZN": pins["S"]}
        netlist.add(_HALF, sum_pins, name=f"{name}.sum", rank=rank + 1)
    if pins["CO"] >= 0:
        both, either = netlist.new_net(), netlist.new_net()
        fresh += [both, either]
        netlist.add(_BOTH, {"A1": a, "A2": b, "ZN": both}, name=f"{name}.both", rank=rank)
        carried = {"A": late, "B1": a, "B2": b, "ZN": either}
        netlist.add(_EITHER, carried, name=f"{name}.either", rank=rank)
        carry = {"A1": both, "A2": either, "ZN": pins["CO"]}
        netlist.add(_BOTH, carry, name=f"{name}.carry", rank=rank + 1)
    return [*(net for net in pins.values() if net >= 0), *fresh]


def _may_dissolve(netlist: SizedNetlist) -> bool:
    """Return whether the library has a full adder, and the gates that can replace it."""
    for name, inputs, outputs in _FUNCTIONS:
        if name not in netlist.number:
            return False
        cell = netlist.cells[netlist.number[name]]
        if set(cell.caps) != set(inputs) or set(cell.outputs) != set(outputs):
            return False
        for pin, text in outputs.items():
            if truth_table(cell.outputs[pin], inputs) != truth_table(text, inputs):
                return False
    return True


def _larger(cells: Sequence[LibertyCell]) -> dict[int, int]:
    """Return kind -> the next size of it, if that one is larger."""
    families: dict[str, list[tuple[int, int]]] = {}
    for kind, cell in enumerate(cells):
        match = re.fullmatch(r"(.+_X)(\d+)", cell.name)
        # The loads of clocks, which decide the sizes of clock gates, are not known here.
        if match and cell.gate is None:
            families.setdefault(match[1], []).append((int(match[2]), kind))
    return {
        one[1]: other[1]
        for sizes in map(sorted, families.values())
        for one, other in pairwise(sizes)
        if cells[other[1]].area_um2 > cells[one[1]].area_um2
    }


def _equal_pins(cell: LibertyCell, slots: dict[str, int]) -> dict[int, list[int]]:
    """Return input -> the other inputs that can take its net if it takes theirs.

    All outputs must be functions that stay the same when the two inputs are exchanged.
    """
    inputs = sorted(cell.caps)
    if cell.clock is not None or not 2 <= len(inputs) <= MOST_INPUTS:
        return {}
    try:
        words = [truth_table(text, inputs).word for text in cell.outputs.values()]
    except ValueError:
        return {}
    patterns = np.arange(1 << len(inputs))
    found: dict[int, list[int]] = {}
    for i, one in enumerate(inputs):
        for j, other in enumerate(inputs):
            if i == j:
                continue
            different = (patterns >> i ^ patterns >> j) & 1
            swapped = patterns ^ (different << i | different << j)
            if all(
                (word >> int(p) & 1) == (word >> int(q) & 1)
                for word in words
                for p, q in zip(patterns, swapped, strict=True)
            ):
                found.setdefault(slots[one], []).append(slots[other])
    return found

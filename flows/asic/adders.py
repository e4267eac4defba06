"""Full adders of a library in a mapped design.

ABC maps to cells with one output, so a library's full adder, which is smaller than the gates that
replace it, is never used. The recipe here finds full adders in the gates of a design, keeps them
out of ABC's sight, and gives it the rest.

A full adder inverts its outputs if all its inputs are inverted. The finder leaves inverters between
adders wherever a sum was written that way, and ABC cannot move them across. ``orient`` chooses for
each adder whether it works on inverted values, such that few inverters are left. ``sort_pins``
gives the input that arrives last the fastest pin.
"""

import math
import random
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vitruvian.common.errors import UserError
from vitruvian.flows.asic import sta
from vitruvian.flows.asic.liberty import Library

#: Cell of the libraries vt45 and Nangate45, and its pins.
CELL = "FA_X1"
_INPUTS, _SUM, _CARRY = ("A", "B", "CI"), "S", "CO"
_OUTPUTS = (_SUM, _CARRY)
_INVERTER = "$_NOT_"

#: Verilog with which ``techmap`` makes library cells of the adders that ``extract_fa`` has found.
MAP = f"""(* techmap_celltype = "$fa" *)
module _full_adders (A, B, C, X, Y);
  parameter WIDTH = 1;
  input [WIDTH-1:0] A, B, C;
  output [WIDTH-1:0] X, Y;
  genvar i;
  generate
    for (i = 0; i < WIDTH; i = i + 1) begin: bits
      {CELL} adder (.A(A[i]), .B(B[i]), .CI(C[i]), .{_CARRY}(X[i]), .{_SUM}(Y[i]));
    end
  endgenerate
endmodule
"""

#: Inverters that one is worth between an adder and other logic, which often takes it in for free.
_IN_LOGIC = 0.25
#: Begin of the name of a cell -> inverters that its inverted output would cost in its place. A
#: library's AND is half an inverter larger than its NAND, and an AOI with an inverter a whole one.
_OTHER_FORM = {
    **dict.fromkeys(("AND", "OR"), -0.5),
    **dict.fromkeys(("NAND", "NOR"), 0.5),
    **dict.fromkeys(("AOI", "OAI"), 1.0),
    "INV": -1.0,
}
#: Tries for each adder, and the temperatures of the annealing at its begin and end, in inverters.
_TRIES, _HOT, _COLD = 600, 1.5, 0.02
_ROUNDS = 4

_Module = dict[str, Any]


def check(library: Library) -> None:
    """Raise UserError if a library has no full adder that is known here."""
    if CELL not in library.cells:
        raise UserError(
            f"--adders must have a library with a full adder {CELL}, as vt45 and nangate45 have"
        )


@dataclass(frozen=True)
class Oriented:
    """What ``orient`` has done: adders, those that are turned, and inverters before and after.

    The inverters are those of its estimate.
    """

    adders: int
    turned: int
    before: float
    after: float
    names: frozenset[str]


def orient(
    module: _Module, *, seed: int = 1, in_front: Mapping[tuple[str, str], float] | None = None
) -> Oriented:
    """Let adders of a module work on inverted values where that saves inverters.

    The module is changed in place; it is a flat one of Yosys' JSON, of adders ``CELL``, inverters
    ``$_NOT_`` and other cells. Its function stays the same.

    Parameters
    ----------
    in_front : mapping, optional
        What ``learn`` returned for an earlier choice. Without it, logic in front of an adder gives
        both forms of its output at the same cost.
    """
    nets = _Nets(module)
    couplings = _Couplings(nets, in_front or {})
    turned = couplings.solve(random.Random(seed))
    result = Oriented(
        adders=len(turned),
        turned=sum(turned),
        before=couplings.inverters([0] * len(turned)),
        after=couplings.inverters(turned),
        names=frozenset(name for name, turns in zip(nets.adders, turned, strict=True) if turns),
    )
    nets.turn(turned)
    return result


def learn(
    netlist: _Module, turned: frozenset[str], library: Library
) -> dict[tuple[str, str], float]:
    """Return what the forms of the inputs of adders cost in a mapped netlist.

    Parameters
    ----------
    netlist : dict
        A mapped module in which the adders ``turned`` work on inverted values.

    Returns
    -------
    dict of (str, str) to float
        Adder and input -> inverters that it costs if this adder works on inverted values, less
        those if it does not; only for inputs that one cell of logic drives for this adder alone.
    """
    drivers: dict[Any, str] = {}
    readers: Counter[Any] = Counter()
    for cell in netlist["cells"].values():
        for pin, bits in cell["connections"].items():
            for bit in bits:
                if pin in library.cells[cell["type"]].outputs:
                    drivers[bit] = cell["type"]
                else:
                    readers[bit] += 1
    ports = {bit for port in netlist["ports"].values() for bit in port["bits"]}
    costs: dict[tuple[str, str], float] = {}
    for name, cell in netlist["cells"].items():
        for pin in _INPUTS if cell["type"] == CELL else ():
            bit = cell["connections"][pin][0]
            family = re.match("[A-Z]*", drivers.get(bit, ""))
            other = _OTHER_FORM.get(family[0] if family else "", 0.0)
            if other and readers[bit] == 1 and bit not in ports:
                costs[name, pin] = -other if name in turned else other
    return costs


class _Nets:
    """The nets of a module, as a bit without inverters in front of it, and whether it is inverted.

    Attributes
    ----------
    adders : list of str
        Names of the adders.
    owner : dict
        Net of an output of an adder -> number of the adder.
    users : dict
        Net -> (adder's number or None, weight of an inverter there, whether one is there) of each
        input that reads it.
    """

    def __init__(self, module: _Module):
        self._cells = module["cells"]
        self._drivers = {
            cell["connections"][port][0]: name
            for name, cell in self._cells.items()
            for port, way in cell["port_directions"].items()
            if way == "output" and cell["connections"][port]
        }
        bits = [b for c in self._cells.values() for p in c["connections"].values() for b in p]
        bits += [b for port in module["ports"].values() for b in port["bits"]]
        self._last = max((b for b in bits if isinstance(b, int)), default=0)
        self.adders = [name for name, cell in self._cells.items() if cell["type"] == CELL]
        self.owner = {
            self._cells[name]["connections"][port][0]: number
            for number, name in enumerate(self.adders)
            for port in _OUTPUTS
        }
        self.users: dict[Any, list[tuple[int | None, float, bool]]] = {}
        numbers = {name: number for number, name in enumerate(self.adders)}
        for name, cell in self._cells.items():
            if cell["type"] == _INVERTER:
                continue
            weight = 1.0 if _is_register(cell) or name in numbers else _IN_LOGIC
            for port, way in cell["port_directions"].items():
                for bit in cell["connections"][port] if way != "output" else ():
                    net, inverted = self.source(bit)
                    self.users.setdefault(net, []).append((numbers.get(name), weight, inverted))
        for port in module["ports"].values():
            for bit in port["bits"] if port["direction"] == "output" else ():
                net, inverted = self.source(bit)
                self.users.setdefault(net, []).append((None, 1.0, inverted))

    def source(self, bit: Any) -> tuple[Any, bool]:
        """Return the net from which a bit comes, through inverters, and if their number is odd."""
        inverted = False
        while True:
            driver = self._cells.get(self._drivers.get(bit, ""))
            if driver is None or driver["type"] != _INVERTER:
                return bit, inverted
            bit, inverted = driver["connections"]["A"][0], not inverted

    def is_free(self, net: Any) -> bool:
        """Return whether a net comes inverted at no cost: from logic, or as a constant."""
        driver = self._cells.get(self._drivers.get(net, ""))
        return isinstance(net, str) or (driver is not None and not _is_register(driver))

    def comes_free(self, name: str, pin: str) -> bool:
        """Return whether the estimate has no cost for an input of an adder: it is from logic."""
        net = self.source(self._cells[name]["connections"][pin][0])[0]
        return net not in self.owner and self.is_free(net)

    def turn(self, turned: list[int]) -> None:
        """Let the adders with a 1 work on inverted values."""
        pins = {
            (name, port): self.source(self._cells[name]["connections"][port][0])
            for name in self.adders
            for port in _INPUTS
        }
        inverse: dict[Any, Any] = {"0": "1", "1": "0", "x": "x"}
        for name, turns in zip(self.adders, turned, strict=True):
            for port in _OUTPUTS if turns else ():
                net = self._cells[name]["connections"][port][0]
                inverse[net] = self._new_bit()
                self._cells[name]["connections"][port] = [inverse[net]]
                self._invert(inverse[net], net)
        for name, turns in zip(self.adders, turned, strict=True):
            for port in _INPUTS:
                net, inverted = pins[name, port]
                if inverted != bool(turns):
                    if net not in inverse:
                        inverse[net] = self._new_bit()
                        self._invert(net, inverse[net])
                    net = inverse[net]
                self._cells[name]["connections"][port] = [net]

    def _new_bit(self) -> int:
        self._last += 1
        return self._last

    def _invert(self, bit: Any, result: int) -> None:
        self._cells[f"turn_{bit}_{result}"] = {
            "hide_name": 1,
            "type": _INVERTER,
            "parameters": {},
            "attributes": {},
            "port_directions": {"A": "input", "Y": "output"},
            "connections": {"A": [bit], "Y": [result]},
        }


def _is_register(cell: Mapping[str, Any]) -> bool:
    return "DFF" in cell["type"]


class _Couplings:
    """What turned adders cost in inverters: those between two adders, and those around one.

    Attributes
    ----------
    between : list
        For each adder, (another one, whether an inverter is between them) for each wire.
    around : list
        For each adder, the inverters between it and all else, as it is and turned.
    """

    def __init__(self, nets: _Nets, in_front: Mapping[tuple[str, str], float]):
        count = len(nets.adders)
        self.between: list[list[tuple[int, bool]]] = [[] for _ in range(count)]
        self.around = [[0.0, 0.0] for _ in range(count)]
        for net, users in nets.users.items():
            owner, free = nets.owner.get(net), nets.is_free(net)
            for user, weight, inverted in users:
                if owner is not None and user is not None:
                    if owner != user:
                        self.between[owner].append((user, inverted))
                        self.between[user].append((owner, inverted))
                    continue
                adder = user if owner is None else owner
                if adder is not None and not (owner is None and free):
                    self.around[adder][inverted ^ 1] += weight
        numbers = {name: number for number, name in enumerate(nets.adders)}
        for (name, pin), cost in in_front.items():
            if name in numbers and nets.comes_free(name, pin):
                self.around[numbers[name]][1] += cost

    def inverters(self, turned: list[int]) -> float:
        """Return the inverters of a choice."""
        both = sum(
            turned[a] ^ turned[b] ^ inverted
            for a, wires in enumerate(self.between)
            for b, inverted in wires
        )
        return both / 2 + sum(cost[t] for cost, t in zip(self.around, turned, strict=True))

    def _gain(self, adder: int, turned: list[int]) -> float:
        """Return the inverters that turning one more adder saves."""
        now = turned[adder]
        gain = self.around[adder][now] - self.around[adder][1 - now]
        for other, inverted in self.between[adder]:
            gain += 1 if now ^ turned[other] ^ inverted else -1
        return gain

    def solve(self, chance: random.Random) -> list[int]:
        """Return a choice with few inverters, by simulated annealing."""
        count = len(self.around)
        turned = [0] * count
        tries = _TRIES * count
        for step in range(tries):
            adder = chance.randrange(count)
            gain = self._gain(adder, turned)
            heat = _HOT * (_COLD / _HOT) ** (step / tries)
            if gain >= 0 or chance.random() < math.exp(gain / heat):
                turned[adder] ^= 1
        for adder in range(count):
            if self._gain(adder, turned) > 0:
                turned[adder] ^= 1
        return turned


def sort_pins(netlist: _Module, library: Library, *, driving_cell: str, load_ff: float) -> None:
    """Give the input of each adder that arrives last its fastest pin, in place.

    Arrivals depend on the pins, so that this is done several times; the best result stays.
    """
    adders = [cell for cell in netlist["cells"].values() if cell["type"] == CELL]
    if not adders:
        return
    arcs = [arc for arc in library.cells[CELL].arcs if arc.kind == "delay"]
    typical = {pin: sum(a.delay(30.0, 5.0) for a in arcs if a.source == pin) for pin in _INPUTS}
    slowest_first = sorted(_INPUTS, key=lambda pin: -typical[pin])
    best: tuple[float, list[dict[str, Any]]] | None = None
    for _ in range(_ROUNDS):
        delay, arrivals = sta.arrivals(netlist, library, driving_cell=driving_cell, load_ff=load_ff)
        if best is None or delay < best[0]:
            best = delay, [dict(cell["connections"]) for cell in adders]
        for cell in adders:
            pins = cell["connections"]
            bits = sorted((pins[p] for p in _INPUTS), key=lambda b: arrivals.get(b[0], -math.inf))
            pins.update(zip(slowest_first, bits, strict=True))
    assert best is not None
    for cell, pins in zip(adders, best[1], strict=True):
        cell["connections"].update(pins)

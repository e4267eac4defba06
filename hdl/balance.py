"""The number of registers on every path of a pipeline, counted in the elaborated netlist.

A pipeline is balanced if every path from an input to an output has the same number of registers:
then the parts of a result belong to the same beat. A comparison with golden finds a path that lacks
a register only in the configurations that it compares, and only if a stimulus tells two beats
apart there. This count needs no stimulus and takes a fraction of a second, so every configuration
can have it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Fragment, Signal, Value
from amaranth.hdl import _ast as ast
from amaranth.hdl import _nir as nir
from amaranth.hdl._ir import NetlistEmitter
from amaranth.lib import wiring

from .elaborate import elaborating, without_collection
from .quick import sharing


class NotAPipeline(ValueError):
    """A register depends on itself and is not named as state."""


@dataclass(frozen=True)
class BalancePath:
    """The arrival of an output, in cycles after the arrival of the inputs.

    Attributes
    ----------
    least, most : int
        Registers on the shortest and on the longest path to any of its bits.
    """

    least: int
    most: int

    def is_balanced(self, latency: int) -> bool:
        """Return True if every path has ``latency`` registers."""
        return self.least == self.most == latency


def paths(
    component: wiring.Component,
    *,
    late: Iterable[tuple[Any, int]] = (),
    ignored: Iterable[Any] = (),
    state: Collection[str] = (),
    enables: Collection[str] = (),
) -> dict[str, BalancePath]:
    """Return the least and the greatest number of registers in front of each output.

    Paths start at the inputs. A register that only keeps its value while its enable is low counts
    as enabled. Outputs that depend on no input are left out.

    Parameters
    ----------
    component : Component
        The pipeline.
    late : iterable of (port or part of a port, int)
        Inputs that arrive this number of cycles after the others; the cycles count as registers.
    ignored : iterable of port or part of a port
        Inputs where no path starts, such as an enable of all registers.
    state : collection of str
        Names of registers and of memories that hold state. No path starts at them. What is written
        to them is reported like an output, under the name with those of the modules around it, as
        ``element_0_1.slot0``.
    enables : collection of str
        Names of signals inside the component that stall it; no path starts at them.

    Raises
    ------
    NotAPipeline
        If a register depends on itself, and ``state`` does not name it.
    ValueError
        If the component lacks a register, memory or signal that ``state`` or ``enables`` names.
    """
    with without_collection():
        return _paths(*_counted(component, late, ignored, state, enables))


def _paths(counter: "_Counter", sinks: Mapping[str, list[nir.Net]]) -> dict[str, BalancePath]:
    """Return the least and the greatest number of registers in front of each output and state."""
    found: dict[str, BalancePath] = {}
    for name, nets in sinks.items():
        counts = [count for count in map(counter.count, nets) if count is not None]
        if counts:
            found[name] = BalancePath(
                min(low for low, _ in counts), max(high for _, high in counts)
            )
    return found


def signals_on_paths(
    component: wiring.Component,
    *,
    late: Iterable[tuple[Any, int]] = (),
    ignored: Iterable[Any] = (),
    state: Collection[str] = (),
    enables: Collection[str] = (),
) -> set[str]:
    """Return the names of the signals through which a path from an input to an output leads.

    The others are constant, or no output depends on them. The parameters are those of ``paths``.
    """
    counter, sinks = _counted(component, late, ignored, state, enables)
    for nets in sinks.values():
        for net in nets:
            counter.count(net)
    return {
        signal.name
        for signal, value in counter.signals.items()
        if any(counter.known.get(net) is not None for net in value)
    }


def _counted(
    component: wiring.Component,
    late: Iterable[tuple[Any, int]],
    ignored: Iterable[Any],
    state: Collection[str],
    enables: Collection[str],
) -> tuple["_Counter", dict[str, list[nir.Net]]]:
    """Return a counter for a component, and the nets of each output and each state."""
    netlist = _netlist(component)
    top: Any = netlist.cells[0]
    starts = {
        net: 0
        for name, (start, width) in top.ports_i.items()
        # A clock or a reset arrives in every cycle; counted from there, no path would be balanced.
        if name not in ("clk", "rst")
        for net in (nir.Net.from_cell(0, bit) for bit in range(start, start + width))
    }
    for value, cycles in late:
        starts |= dict.fromkeys(_nets(top, value), cycles)
    for value in ignored:
        for net in _nets(top, value):
            del starts[net]
    sinks: dict[str, list[nir.Net]] = {name: list(value) for name, value in top.ports_o.items()}
    held = _state(netlist, frozenset(state), sinks) | _named(netlist, frozenset(enables))
    return _Counter(netlist, starts, held), sinks


def _netlist(component: wiring.Component) -> Any:
    """Return the netlist of a component, without what only its conversion to RTLIL needs.

    That are the ports of the modules in it, and a search for combinational loops: the count finds
    those on the paths.
    """
    ports: Any = list(_ports(component))
    with elaborating(), sharing():
        design = Fragment.get(component, None).prepare(ports=ports)
        netlist: Any = nir.Netlist()
        NetlistEmitter(netlist, design).emit_fragment(design.fragment, None)
        netlist.resolve_all_nets()
    return netlist


def _ports(component: wiring.Component) -> Iterator[tuple[str, Any, None]]:
    """Return the ports as Amaranth's netlist builder takes them."""
    for path, _, value in component.signature.flatten(component):
        yield "__".join(map(str, path)), Value.cast(value), None


def _nets(top: Any, port: Any) -> list[nir.Net]:
    """Return the nets of an input, or of a part of it."""
    # A member of a structure is a slice, perhaps of a slice, of the port.
    value, low, width = Value.cast(port), 0, len(Value.cast(port))
    while isinstance(value, ast.Slice):
        low += value.start
        value = value.value
    assert isinstance(value, Signal), "a part of a port is a slice of it"
    start, _ = top.ports_i[value.name]
    return [nir.Net.from_cell(0, start + low + bit) for bit in range(width)]


def _state(
    netlist: Any, names: frozenset[str], sinks: dict[str, list[nir.Net]]
) -> frozenset[nir.Net]:
    """Return the nets of the registers in ``names``; add what is written to state to ``sinks``."""
    held: dict[nir.Net, None] = {}
    found: set[str] = set()

    def report(name: str, cell: Any, written: Iterable[nir.Net]) -> None:
        found.add(name)
        path = ".".join((*netlist.modules[cell.module_idx].name[1:], name))
        sinks.setdefault(path, []).extend(written)

    for signal, value in netlist.signals.items():
        cells = [_register(netlist, net) for net in value if signal.name in names]
        for cell, net in zip(cells, value, strict=False):
            if cell is not None:
                # A path ends where it enters a state, and another one starts behind it: both ends
                # are counted.
                held[net] = None
                report(signal.name, cell, [cell.data[net.bit]])
    # Memories have no register cell; whatever one of their write ports takes is written to state.
    ports: list[Any] = [cell for cell in netlist.cells if type(cell) is nir.SyncWritePort]
    for cell in ports:
        name = netlist.cells[cell.memory].name
        if name in names:
            report(name, cell, [*cell.data, *cell.addr, *cell.en])
    if names - found:
        missing = ", ".join(sorted(names - found))
        raise ValueError(f"state must name registers or memories, not {missing}")
    return frozenset(held)


def _named(netlist: Any, names: frozenset[str]) -> frozenset[nir.Net]:
    """Return the nets of the signals in ``names``."""
    nets = {
        signal.name: [net for net in value if not net.is_const]
        for signal, value in netlist.signals.items()
        if signal.name in names
    }
    if names - nets.keys():
        raise ValueError(f"enables must name signals, not {', '.join(sorted(names - nets.keys()))}")
    return frozenset(net for value in nets.values() for net in value)


def _register(netlist: Any, net: nir.Net) -> Any:
    """Return the register that drives a net, if one does."""
    if net.is_const:
        return None
    cell = netlist.cells[net.cell]
    return cell if isinstance(cell, nir.FlipFlop) else None


class _Counter:
    """Counts registers backwards from a net, once for each net of a netlist."""

    def __init__(
        self,
        netlist: Any,
        starts: Mapping[nir.Net, int],
        held: Collection[nir.Net],
    ):
        self._cells: Any = netlist.cells
        self.signals = netlist.signals
        self._held = held
        self.known: dict[nir.Net, tuple[int, int] | None] = {
            net: (cycles, cycles) for net, cycles in starts.items()
        }

    def _sources(self, net: nir.Net) -> list[nir.Net]:
        """Return the nets that determine a net, in this cycle or in the one before."""
        # A net is a number: 0 and 1 are constants, others are a cell and a bit. Nets of the top
        # cell are inputs.
        if net < 1 << 16 or net in self._held:
            return []
        cell, bit = self._cells[net >> 16], net & 0xFFFF
        if self._is_register(net):
            return [cell.data[bit]]
        return [source for source, _ in cell.comb_edges_to(bit)]

    def count(self, root: nir.Net) -> tuple[int, int] | None:
        """Return the least and the greatest number of registers in front of a net."""
        known = self.known
        # A depth-first search with a stack of its own: paths of large units are deeper than
        # Python's recursion allows.
        stack, open_ = [root], {}
        registers: list[nir.Net] = []  # those of ``open_``, in the order of the path
        while stack:
            net = stack[-1]
            if net in known:
                stack.pop()
                continue
            if net not in open_:
                sources = self._sources(net)
                if self._is_register(net):
                    registers.append(net)
                waiting = [source for source in sources if source not in known]
                if waiting:
                    open_[net] = sources
                    for source in waiting:
                        # A register that keeps its value is the last register of the path.
                        if source in open_ and registers[-1:] != [source]:
                            raise NotAPipeline(f"{self._name(source)} depends on itself")
                    stack += [source for source in waiting if source not in open_]
                    continue
            else:
                sources = open_.pop(net)
            # All sources have been counted; a constant has no count and is in step with every beat.
            counts = [count for source in sources if (count := known.get(source)) is not None]
            more = 0
            if self._is_register(net):
                registers.pop()
                more = 1
            known[net] = None
            if counts:
                low, high = min(low for low, _ in counts), max(high for _, high in counts)
                known[net] = low + more, high + more
            stack.pop()
        return known[root]

    def _name(self, net: nir.Net) -> str:
        """Return the name of a signal that has a net."""
        names = (s.name for s, value in self.signals.items() if net in value)
        return next(names, f"a net of cell {net.cell}")

    def _is_register(self, net: nir.Net) -> bool:
        return net > 1 and type(self._cells[net >> 16]) is nir.FlipFlop

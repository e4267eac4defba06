"""The harness of a proof: a component with free inputs, assumptions about them, and rules.

A proof begins in any state of the registers, with one cycle of reset. Every rule must then hold in
every cycle. The registers of the harness itself are reset in the same cycle.
"""

from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

from amaranth.back import rtlil as rtlil_backend  # pyright: ignore[reportAttributeAccessIssue]
from amaranth.hdl import Assert, Assume, Cat, Module, Mux, ResetSignal, ShapeLike, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from vitruvian.hdl.quick import quick

#: Prefix of the signals that hold rules, and the register that is 0 in the cycle of the reset.
RULE, STARTED = "rule_", "started"


class ProofHarness:
    """A module around a component under proof.

    Parameters
    ----------
    clocked : bool
        If False, the design has no registers, and the rules hold without a reset.

    Attributes
    ----------
    m : Module
        The module, to which a proof may add logic.
    started : Value
        0 in the cycle of the reset, then 1.
    """

    def __init__(self, *, clocked: bool = True):
        self.m = Module()
        self.clocked = clocked
        self.rules: dict[str, Signal] = {}
        self._ports: list[Value] = []
        self._abstract: dict[type, Any] = {}
        self.started = Signal(name=STARTED, reset_less=True, init=0)
        if clocked:
            self.m.d.sync += self.started.eq(1)
            self.m.d.comb += Assume(ResetSignal() == ~self.started)  # pyright: ignore[reportCallIssue]
        else:
            # Yosys simulates a trace only if the module has a clock.
            tick = Signal()
            self.m.d.sync += tick.eq(~tick)

    def add(self, component: Any, name: str = "dut", *, driven: Iterable[Any] = ()) -> Any:
        """Add a component and return it; its inputs are free, except those in ``driven``."""
        self.m.submodules[name] = component
        fixed = {id(Value.cast(value)) for value in driven}
        for _, member, value in component.signature.flatten(component):
            value = Value.cast(value)
            if member.flow == In and len(value) and id(value) not in fixed:
                self._ports.append(value)
        return component

    def abstract(self, cls: type, elaborate: Any) -> None:
        """Replace the function ``elaborate`` of a class of components in this proof.

        Only a datapath may be replaced, whose results no control depends on.
        """
        self._abstract[cls] = elaborate

    def free(self, name: str, shape: ShapeLike = 1) -> Signal:
        """Return a new input that may have any value in any cycle."""
        signal = Signal(shape, name=name)
        if len(signal):
            self._ports.append(signal)
        return signal

    def constant(self, name: str, shape: ShapeLike = 1) -> Signal:
        """Return a value that is unknown and never changes."""
        any_value = self.free(f"any_{name}", shape)
        held = Signal.like(any_value, name=f"held_{name}", reset_less=True)
        value = Signal.like(any_value, name=name)
        self.m.d.comb += value.eq(Mux(self.started, held, any_value))
        self.m.d.sync += held.eq(value)
        return value

    def past(self, value: Any, name: str) -> Signal:
        """Return the value of the cycle before, which is 0 in the cycle after the reset."""
        value = Value.cast(value)
        register = Signal(len(value), name=f"past_{name}")
        self.m.d.sync += register.eq(value)
        return register

    def assume(self, condition: Any) -> None:
        """Consider only executions in which the condition holds in every cycle after the reset."""
        if self.clocked:
            condition = ~self.started | condition
        self.m.d.comb += Assume(condition)  # pyright: ignore[reportCallIssue]

    def rule(self, name: str, condition: Any) -> None:
        """Demand that the condition holds in every cycle after the reset."""
        signal = Signal(name=f"{RULE}{name}")
        self.m.d.comb += signal.eq(Value.cast(condition).bool())
        self.rules[name] = signal

    def stable_streams_in(self, component: Any) -> None:
        """Assume that an item offered on an input of a component stays until it is taken."""
        for name, member in component.signature.members.items():
            if not member.is_port and member.flow == In:
                self.assume(self._stable(getattr(component, name), name))

    def stable_streams(self, component: Any) -> None:
        """Assume stability of all input streams of a component, and demand it of its outputs."""
        self.stable_streams_in(component)
        for name, member in component.signature.members.items():
            if not member.is_port and member.flow != In:
                self.rule(f"{name}_stable", self._stable(getattr(component, name), name))

    def _stable(self, end: Any, name: str) -> Value:
        payload = Value.cast(end.payload)
        waits = self.past(end.valid & ~end.ready, f"{name}_waits")
        same = payload == self.past(payload, f"{name}_payload") if len(payload) else 1
        return ~waits | (end.valid & same)

    def to_rtlil(self) -> str:
        """Return the harness as RTLIL text; it can be called once."""
        if not self.rules:
            raise ValueError("a proof must have at least one rule")
        hold = Cat(self.rules.values()).all()
        condition = hold | ~self.started if self.clocked else hold
        self.m.d.comb += Assert(condition)  # pyright: ignore[reportCallIssue]
        with ExitStack() as stack:
            for cls, elaborate in self._abstract.items():
                stack.callback(setattr, cls, "elaborate", cls.elaborate)  # type: ignore
                cls.elaborate = elaborate  # type: ignore
            stack.enter_context(quick())
            return rtlil_backend.convert(self.m, name="top", ports=self._ports, emit_src=False)


def transfers(end: Any) -> Value:
    """Return 1 if a stream transfers an item in this cycle."""
    return end.valid & end.ready


class Tracker:
    """A token that follows one item, any of them, from an input to its place in the output.

    The tracker counts the items that went in and have not come out. A free input marks one item;
    its expected result is kept until all items before it have come out. The next item to come out
    must then be this result. As the choice is free, every item arrives, once and in its place.

    Parameters
    ----------
    entered, left : Value
        1 if an item goes in, and if one comes out.
    offered : Value
        1 if the component offers an item.
    expected : Value
        The result that the item that goes in now must have.
    actual : Value, optional
        The result that is offered. Without it, the proof compares ``value`` itself.
    most : int
        Largest number of items in the component.
    at_once : bool
        If True, an item may leave in the cycle in which it enters.
    name : str
        First part of the names of rules and signals.
    """

    def __init__(
        self,
        h: ProofHarness,
        *,
        entered: Any,
        left: Any,
        offered: Any,
        expected: Any,
        actual: Any = None,
        most: int,
        at_once: bool = False,
        name: str = "item",
    ):
        expected = Value.cast(expected)
        m, mark = h.m, h.free(f"{name}_mark")
        self.level = level = Signal(range(most + 2), name=f"{name}_level")
        self.marked = marked = Signal(name=f"{name}_marked")
        self.ahead = ahead = Signal(range(most + 2), name=f"{name}_ahead")
        value = Signal(len(expected), name=f"{name}_expected")
        m.d.sync += level.eq(level + entered - left)
        with m.If(~marked & mark & entered):
            m.d.sync += [marked.eq(1), value.eq(expected), ahead.eq(level - left)]
            if at_once:
                with m.If((level == 0) & left):
                    m.d.sync += marked.eq(0)
        with m.Elif(marked & left):
            m.d.sync += [ahead.eq(ahead - 1), marked.eq(ahead != 0)]
        passes = (level == 0) & entered if at_once else 0
        h.rule(f"{name}_not_invented", ~offered | (level != 0) | passes)
        h.rule(f"{name}_not_lost", level <= most)
        next_out = marked & (ahead == 0)
        self.head = next_out & offered  # the marked item is offered
        self.value = value
        if actual is None:
            return
        actual = Value.cast(actual)
        correct = ~(next_out & offered) | (actual == value)
        if at_once:
            correct = correct & (~((level == 0) & offered & entered) | (actual == expected))
        h.rule(f"{name}_in_order", correct)


def arrives(
    h: ProofHarness, *, waiting: Iterable[Any], offered: Any, cycles: int, name: str
) -> None:
    """Demand that an output offers an item after so many cycles in which all are ``waiting``.

    Parameters
    ----------
    waiting : iterable of Value
        Conditions, among them that an item is inside and that nothing stops the component.
    offered : Value
        1 if the component offers an item.
    cycles : int
        Largest number of such cycles in a row without an offer.
    name : str
        First part of the rule's name.
    """
    count = Signal(range(cycles + 2), name=f"{name}_waited")
    waits = Cat(*(Value.cast(each).bool() for each in waiting)).all() & ~offered
    h.m.d.sync += count.eq(Mux(waits, Mux(count <= cycles, count + 1, count), 0))
    h.rule(f"{name}_arrives", count <= cycles)


def ports_of(component: wiring.Component) -> list[str]:
    """Return the names of a component's streams."""
    return [name for name, member in component.signature.members.items() if not member.is_port]

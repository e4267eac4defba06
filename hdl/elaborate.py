"""Conversion of a component to RTLIL text, with equal sub-components written only once.

Amaranth elaborates and emits every instance separately, so 256 processing elements take minutes and
hundreds of megabytes. Components of the classes in ``shared`` become instances of a module that is
elaborated once for each distinct configuration. That module has clean port names as well.
"""

import gc
import hashlib
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from amaranth.back import rtlil as rtlil_backend  # pyright: ignore[reportAttributeAccessIssue]
from amaranth.hdl import ClockSignal, Instance, ResetSignal, Value
from amaranth.lib import wiring

from .quick import quick

C = TypeVar("C", bound=wiring.Component)

#: Frames of Python while a component is converted. Amaranth follows combinational paths by
#: recursion. The longest ones, those of AMX with FP16, need 1200 frames, and Python allows 1000.
_FRAMES = 20_000


def to_rtlil(
    component: wiring.Component,
    *,
    name: str = "top",
    shared: Sequence[type] = (),
    check: bool = False,
    sources: bool = False,
) -> str:
    """Return ``component`` as RTLIL text.

    Two equal designs have equal texts if the text has no source locations.

    Parameters
    ----------
    component : wiring.Component
        The top module.
    name : str
        Name of the top module.
    shared : sequence of Component classes
        Sub-components of these classes become instances of modules of their own. The logic of such
        a component must depend only on its attributes, which are compared by ``repr``.
    check : bool
        If True, elaborate a second instance of each shared module and compare the two.
    sources : bool
        If True, the attribute ``src`` says which line of the source made a wire, cell or module.

    Raises
    ------
    ValueError
        If the two differ.
    """
    bodies: dict[str, str] = {}
    with _shared(tuple(shared), bodies, check, sources), elaborating():
        top = rtlil_backend.convert(component, name=name, emit_src=sources)
    return "\n".join([top, *bodies.values()])


def name_states(fsm: Any) -> None:
    """Write the names of the states of an ``m.FSM()`` as those of an enumeration into the RTLIL.

    The emitted Verilog and waveforms have the names then. Call it behind the block of the machine.
    """
    width = len(fsm.state)
    fsm.state.attrs["enum_base_type"] = "State"
    for code, name in fsm.decoding.items():
        fsm.state.attrs[f"enum_value_{code:0{width}b}"] = name


def only_described(component: C) -> C:
    """Return a component that serves to describe an interface and need not be elaborated.

    Amaranth warns about components that are never elaborated. The attribute that switches the
    warning off is private, so this is the only place that names it.
    """
    setattr(component, "_MustUse__used", True)  # noqa: B010
    return component


@contextmanager
def elaborating() -> Iterator[None]:
    """Let Amaranth elaborate large components fast while the block runs."""
    with without_collection(), _deep_logic(), quick():
        yield


@contextmanager
def without_collection() -> Iterator[None]:
    """Disable garbage collection while the block runs.

    Elaboration creates millions of small objects, and collections would take a third of its time.
    They should not be in use at the end of the block, as a collection follows it.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def _deep_logic() -> Iterator[None]:
    """Allow as many frames as long combinational paths need while the block runs."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


@contextmanager
def _shared(
    classes: tuple[Any, ...], bodies: dict[str, str], check: bool, sources: bool
) -> Iterator[None]:
    """Replace ``elaborate`` of ``classes`` while the block runs; collect texts in ``bodies``."""
    originals = {cls: cls.elaborate for cls in classes}
    emitting: set[int] = set()
    uses: dict[str, int] = {}

    def elaborate(self: Any, platform: Any) -> Any:
        original = originals[type(self)]
        if id(self) in emitting:
            # The conversion below elaborates the same component again.
            return original(self, platform)
        name = f"{snake(type(self).__name__)}_{_identity(self)}"
        uses[name] = uses.get(name, 0) + 1
        # With ``check`` the second instance is elaborated as well and compared.
        if uses[name] <= 1 + check:
            emitting.add(id(self))
            body = rtlil_backend.convert(self, name=name, emit_src=sources)
            emitting.discard(id(self))
            body = body.replace("attribute \\top 1\n", "")
            if bodies.setdefault(name, body) != body:
                raise ValueError(f"{type(self).__name__} must depend on its attributes alone")
        return _instance(self, name, bodies[name])

    try:
        for cls in classes:
            cls.elaborate = elaborate
        yield
    finally:
        for cls, original in originals.items():
            cls.elaborate = original


def _instance(component: Any, name: str, body: str) -> Instance:
    """Return an instance of the module ``name``, connected to the ports of ``component``."""
    top = body[body.index(f"module \\{name}\n") :].split("\nend\n")[0]
    wires = re.findall(r"(?m)^  wire .*\b(input|output) \d+\s+\\(\S+)$", top)
    ports = {port: direction for direction, port in wires}
    connections: dict[str, Any] = {}
    for path, _, value in component.signature.flatten(component):
        port = "__".join(str(part) for part in path)
        if port in ports:
            connections[f"{ports[port][0]}_{port}"] = Value.cast(value)
    if "clk" in ports:
        connections["i_clk"] = ClockSignal()
    if "rst" in ports:
        connections["i_rst"] = ResetSignal()
    unknown = {f"{direction[0]}_{port}" for port, direction in ports.items()} - connections.keys()
    if unknown:
        raise ValueError(f"ports of {name} must be in its signature, not {sorted(unknown)}")
    return Instance(name, **connections)


def state_of(component: Any) -> str:
    """Return as text everything that the elaboration of ``component`` may depend on.

    The text has the signature and the attributes, but not the signals of the ports.
    """
    ports = set(component.signature.members)
    state = sorted(
        (name, repr(value))
        for name, value in vars(component).items()
        if name not in ports and not name.startswith("_MustUse")
    )
    return repr((type(component).__qualname__, component.signature, state))


def _identity(component: Any) -> str:
    """Return a short digest of the component's state, a part of its module's name."""
    return hashlib.sha256(state_of(component).encode()).hexdigest()[:8]


def snake(name: str) -> str:
    """Return ``ClassName`` as ``class_name``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()

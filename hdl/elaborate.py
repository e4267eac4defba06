"""A component as RTLIL text, with chosen sub-components written once however often they occur.

Amaranth elaborates and emits every instance anew; 256 processing elements cost minutes and
hundreds of megabytes. Classes given as `shared` are replaced by instances of a module that is
elaborated once for each distinct configuration, which also gives that module clean port names.
"""

import gc
import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from amaranth.back import rtlil as rtlil_backend  # pyright: ignore[reportAttributeAccessIssue]
from amaranth.hdl import ClockSignal, Instance, ResetSignal, Value
from amaranth.lib import wiring

from .quick import quick

__all__ = ["snake", "state_of", "to_rtlil"]


def to_rtlil(
    component: wiring.Component,
    *,
    name: str = "top",
    shared: Sequence[type] = (),
    check: bool = False,
) -> str:
    """Return `component` as RTLIL text without source locations, so equal designs are equal.

    Parameters
    ----------
    name : str
        Name of the top module.
    shared : sequence of Component classes
        Sub-components of these classes become instances of modules of their own. What such a
        component does must depend only on its attributes, which are compared by `repr`.
    check : bool
        Whether to elaborate a second instance of each as well, and see that it is the same.

    Raises
    ------
    ValueError
        If it is not.
    """
    bodies: dict[str, str] = {}
    with _shared(tuple(shared), bodies, check), _without_collection(), quick():
        top = rtlil_backend.convert(component, name=name, emit_src=False)
    return "\n".join([top, *bodies.values()])


@contextmanager
def _without_collection() -> Iterator[None]:
    """No search for garbage while millions of small objects are made: a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def _shared(classes: tuple[Any, ...], bodies: dict[str, str], check: bool) -> Iterator[None]:
    """Replace `elaborate` of `classes` while the block runs; collect module texts in `bodies`."""
    originals = {cls: cls.elaborate for cls in classes}
    emitting: set[int] = set()
    uses: dict[str, int] = {}

    def elaborate(self: Any, platform: Any) -> Any:
        original = originals[type(self)]
        if id(self) in emitting:
            return original(self, platform)
        name = f"{snake(type(self).__name__)}_{_identity(self)}"
        uses[name] = uses.get(name, 0) + 1
        if uses[name] <= 1 + check:
            emitting.add(id(self))
            body = rtlil_backend.convert(self, name=name, emit_src=False)
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
    """Return an instance of module `name`, connected to the ports of `component`."""
    top = body[body.index(f"module \\{name}\n") :].split("\nend\n")[0]
    found = re.findall(r"(?m)^  wire .*\b(input|output) \d+\s+\\(\S+)$", top)
    ports = {port: direction for direction, port in found}
    connections: dict[str, Any] = {}
    for path, _, value in component.signature.flatten(component):
        port = "__".join(str(part) for part in path)
        if port in ports:
            connections[f"{ports[port][0]}_{port}"] = Value.cast(value)
    if "clk" in ports:
        connections["i_clk"] = ClockSignal()
    if "rst" in ports:
        connections["i_rst"] = ResetSignal()
    unknown = {f"{way[0]}_{port}" for port, way in ports.items()} - connections.keys()
    if unknown:
        raise ValueError(f"ports of {name} must be in its signature, not {sorted(unknown)}")
    return Instance(name, **connections)


def state_of(component: Any) -> str:
    """Everything about `component` that its elaboration may depend on, as text; not its ports."""
    ports = set(component.signature.members)
    state = sorted(
        (name, repr(value))
        for name, value in vars(component).items()
        if name not in ports and not name.startswith("_MustUse")
    )
    return repr((type(component).__qualname__, component.signature, state))


def _identity(component: Any) -> str:
    return hashlib.sha256(state_of(component).encode()).hexdigest()[:8]


def snake(name: str) -> str:
    """Return ``ClassName`` as ``class_name``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()

"""RTL as a function on NumPy arrays: Verilator, a C++ batch driver, ctypes.

>>> model = compile(DotProduct(spec=spec))            # built once per design
>>> d = model.run(a=a, b=b, c=c, threads=2)           # a, b: (N, K); c, d: (N,)
"""

from typing import TYPE_CHECKING, Any

from .model import CompiledModel
from .ports import Interface
from .streams import StreamError, StreamResult
from .toolchain import BuildError, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from amaranth.lib import wiring

__all__ = [
    "BuildError",
    "CompiledModel",
    "Interface",
    "StreamError",
    "StreamResult",
    "ToolError",
    "compile",
    "compile_unit",
    "compile_verilog",
]


def compile(
    component: "wiring.Component",
    *,
    name: str | None = None,
    latency: int | None = None,
    identity: str | None = None,
) -> CompiledModel:
    """Compile an Amaranth component; a design seen before is loaded from the cache.

    Parameters
    ----------
    component : wiring.Component
        The unit. One without streams has a fixed latency, one vector a clock, and no stall.
    name : str, optional
        Name for messages; the class name by default.
    latency : int, optional
        Cycles from an input to its output; ``component.latency`` by default, else 0.
    identity : str, optional
        Text that, with the sources of ``hdl``, determines the component. A model compiled under it
        before is found without elaborating the component; see :func:`compile_unit`.

    Raises
    ------
    ToolError
        If Verilator or the C++ compiler is missing.
    BuildError
        If one of them fails.
    """
    from .alias import remembered
    from .build import build_key, build_library
    from .emit import interface_of, to_rtlil, verilog_of

    interface = interface_of(component)
    cycles = _latency(getattr(component, "latency", 0) if latency is None else latency, interface)

    # The key is the RTLIL, not the Verilog: with a warm cache no Yosys has to run.
    text: list[str] = []  # elaborated at most once

    def rtlil() -> str:
        if not text:
            text.append(to_rtlil(component))
        return text[0]

    def find() -> str:
        return build_key("rtlil", rtlil(), interface, cycles)

    key = find() if identity is None else remembered(build_key(identity, cycles), find)

    def build(folder: Any) -> dict[str, Any]:
        verilog = verilog_of(rtlil())
        return build_library(
            folder, verilog=verilog, top="top", interface=interface, latency=cycles
        )

    return _load(key, build, name or type(component).__name__, interface, cycles)


def compile_unit(
    unit: "Callable[..., wiring.Component]", /, *, name: str | None = None, **parameters: Any
) -> CompiledModel:
    """Compile ``unit(**parameters)``; parameters compiled before are found by their ``repr``.

    Faster than :func:`compile` on a warm cache, for the unit is not elaborated. Every parameter
    must have a ``repr`` that says all about it, as numbers, strings and dataclasses do.
    """
    from .alias import identity_of

    return compile(unit(**parameters), name=name, identity=identity_of(unit, parameters))


def compile_verilog(
    text: str,
    *,
    top: str = "top",
    interface: "Interface | wiring.Component | None" = None,
    latency: int | None = None,
    name: str | None = None,
) -> CompiledModel:
    """Compile Verilog text: a unit from elsewhere, or one with a deliberate fault in it.

    Parameters
    ----------
    text : str
        Verilog of the unit; its clock is called ``clk``, its reset (active high) ``rst``.
    top : str
        Module to compile.
    interface : Interface or wiring.Component, optional
        What the ports mean; a component lends its own (and its latency). Without it every port is
        one plain number, as declared.
    latency : int, optional
        Cycles from an input to its output.
    name : str, optional
        Name for messages; ``top`` by default.
    """
    from .build import build_key, build_library
    from .emit import interface_from_verilog, interface_of

    default = getattr(interface, "latency", 0)
    if interface is None:
        interface = interface_from_verilog(text, top)
    elif not isinstance(interface, Interface):
        interface = interface_of(interface)
    face = interface
    cycles = _latency(default if latency is None else latency, face)

    def build(folder: Any) -> dict[str, Any]:
        return build_library(folder, verilog=text, top=top, interface=face, latency=cycles)

    key = build_key("verilog", text, top, face, cycles)
    return _load(key, build, name or top, face, cycles)


def _latency(value: Any, interface: Interface) -> int:
    if interface.has_streams:
        return 0  # the hand-shake says when
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"latency must be a number of cycles from 0 on, not {value!r}")
    return value


def _load(key: str, build: Any, name: str, interface: Interface, latency: int) -> CompiledModel:
    from vitruvian.cache import entry

    folder, facts = entry("rtl", key, build)
    return CompiledModel(
        folder / "model.so", name=name, interface=interface, latency=latency, facts=facts
    )

"""Compiled RTL as a function on NumPy arrays, by Verilator, a C++ batch driver and ctypes.

>>> model = compile(DotProduct(spec=spec))            # compiled once per design
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
    component: "wiring.Component[Any]",
    *,
    name: str | None = None,
    latency: int | None = None,
    identity: str | None = None,
) -> CompiledModel:
    """Compile an Amaranth component, or load its model from the cache.

    Parameters
    ----------
    component : wiring.Component
        The unit. A unit without streams must accept one vector in every clock cycle and return
        each result after a fixed latency.
    name : str, optional
        Name for messages; the class name by default.
    latency : int, optional
        Cycles from an input to its output; ``component.latency`` by default, or 0 if the component
        has no such attribute.
    identity : str, optional
        Text that determines the component together with the sources of ``hdl``. If a model with
        the same identity is in the cache, it is found without elaborating the component; see
        ``compile_unit``.

    Returns
    -------
    model : CompiledModel

    Raises
    ------
    ToolError
        If Verilator or the C++ compiler is missing.
    BuildError
        If Verilator or the C++ compiler fails.
    ValueError
        If the latency is negative or not an int.
    """
    from .build import build_key, build_library
    from .elaboration_cache import remembered
    from .emit import interface_of, to_rtlil, verilog_of

    interface = interface_of(component)
    cycles = _latency(getattr(component, "latency", 0) if latency is None else latency, interface)

    # The key depends on the RTLIL, not on the Verilog, so that Yosys need not run if the model is
    # in the cache.
    text: list[str] = []  # the RTLIL, once the component is elaborated

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
    unit: "Callable[..., wiring.Component[Any]]", /, *, name: str | None = None, **parameters: Any
) -> CompiledModel:
    """Compile ``unit(**parameters)``, or load its model from the cache.

    If the model is in the cache, this function is faster than ``compile``, because it finds the
    model by the ``repr`` of the parameters without elaborating the unit.

    Parameters
    ----------
    unit : callable
        Class of the component, or a function that returns a component.
    name : str, optional
        Name for messages; the class name by default.
    **parameters
        Arguments of ``unit``. The ``repr`` of each must describe it completely, as that of a
        number, a string or a dataclass does.

    Raises
    ------
    ToolError, BuildError, ValueError
        As ``compile``.

    Examples
    --------
    >>> from vitruvian import compile_unit
    >>> from vitruvian.hdl.fp.add import Adder
    >>> adder = compile_unit(Adder, format="fp16")  # built by Verilator, cached by content
    >>> hex(int(adder.run(a=[0x3C00], b=[0x4000], subtract=[0])[0]))  # 1.0 + 2.0
    '0x4200'
    """
    from .elaboration_cache import identity_of

    return compile(unit(**parameters), name=name, identity=identity_of(unit, parameters))


def compile_verilog(
    text: str,
    *,
    top: str = "top",
    interface: "Interface | wiring.Component[Any] | None" = None,
    latency: int | None = None,
    name: str | None = None,
) -> CompiledModel:
    """Compile Verilog text, for example of a foreign unit or of one with a deliberate fault.

    Parameters
    ----------
    text : str
        Verilog of the unit. Its clock must be called ``clk`` and its reset, which is active high,
        ``rst``.
    top : str
        Module to compile.
    interface : Interface or wiring.Component, optional
        Structure of the ports. A component stands for its own interface and latency. By default,
        every port is one number of the declared width.
    latency : int, optional
        Cycles from an input to its output.
    name : str, optional
        Name for messages; ``top`` by default.

    Raises
    ------
    ToolError, BuildError
        As ``compile``.
    ValueError
        If the text has no module ``top`` or lacks a port of the interface, or if the latency is
        wrong.
    """
    from .build import build_key, build_library
    from .emit import interface_from_verilog, interface_of

    default = getattr(interface, "latency", 0)
    if interface is None:
        interface = interface_from_verilog(text, top)
    elif not isinstance(interface, Interface):
        interface = interface_of(interface)
    found = interface
    cycles = _latency(default if latency is None else latency, found)

    def build(folder: Any) -> dict[str, Any]:
        return build_library(folder, verilog=text, top=top, interface=found, latency=cycles)

    key = build_key("verilog", text, top, found, cycles)
    return _load(key, build, name or top, found, cycles)


def _latency(value: Any, interface: Interface) -> int:
    if interface.has_streams:
        return 0  # the hand-shake determines the latency
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"latency must be a number of cycles, 0 or more, not {value!r}")
    return value


def _load(key: str, build: Any, name: str, interface: Interface, latency: int) -> CompiledModel:
    from vitruvian.common.cache import entry

    folder, facts = entry("rtl", key, build)
    return CompiledModel(
        folder / "model.so", name=name, interface=interface, latency=latency, facts=facts
    )

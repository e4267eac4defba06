"""Named pipeline cuts: one place decides where registers stand."""

from collections.abc import Iterable, Mapping

from amaranth.hdl import Module, Shape, Signal, Value

__all__ = ["Cuts"]


class Cuts:
    """Registers at named places of a datapath.

    Parameters
    ----------
    m : Module
        Where the registers are added (domain ``sync``).
    names : iterable of str
        The places that are registered; every other place is a wire.

    A datapath passes each value that crosses a place through :meth:`cross`; whether it is a
    register is decided by configuration, so all values at a place stay aligned by construction.
    """

    def __init__(self, m: Module, names: Iterable[str]):
        self._m = m
        self.names = frozenset(names)

    def cross(self, place: str, value: Value, name: str) -> Signal:
        """``value`` on the far side of ``place``, under the name ``name``."""
        signal = Signal(Shape.cast(value.shape()), name=name, reset_less=True)
        if place in self.names:
            self._m.d.sync += signal.eq(value)
        else:
            self._m.d.comb += signal.eq(value)
        return signal

    def cross_all(self, place: str, values: Mapping[str, Value], prefix: str) -> dict[str, Value]:
        """Several named values at once, each under the name ``prefix_key``."""
        return {key: self.cross(place, value, f"{prefix}_{key}") for key, value in values.items()}

"""Two executors of one unit that share its ports; never both have an instruction."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In

from .mover import Mover
from .ports import BLOCK_BYTES, connect_read, connect_write
from .record import RECORD_BITS, is_op


class LaneMover(wiring.Component):
    """Copies from UB to UB or L0C, with the ports of a ``LaneFeeder``.

    Parameters
    ----------
    ahead, span : int
        As a ``Mover`` takes them; both sides have the same span.

    Members
    -------
    i, idle, ub, w, target
        As those of a ``LaneFeeder``.
    """

    if TYPE_CHECKING:
        i: stream.Interface
        idle: Signal
        ub: Any
        w: Any
        target: Signal

    def __init__(self, *, ahead: int, span: int):
        self.mover = Mover(ops=("copy",), ahead=ahead, spans=(span, span), grain=BLOCK_BYTES)
        members = dict(self.mover.signature.members)
        members["ub"] = members.pop("r")
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.mover = mover = self.mover
        wiring.connect(m, wiring.flipped(self.i), mover.i)
        wiring.connect(m, mover.r, wiring.flipped(self.ub))
        wiring.connect(m, mover.w, wiring.flipped(self.w))
        m.d.comb += [self.idle.eq(mover.idle), self.target.eq(mover.target)]
        return m


class Either(wiring.Component):
    """Unit that gives some operations to one executor and all others to another.

    Parameters
    ----------
    plain, special : wiring.Component
        Executors with the members ``i``, ``idle`` and ports.
    ops : tuple of str
        The operations of ``special``.

    Members
    -------
    i, idle
        As those of the executors.
    others
        The ports of ``plain``. Those of ``special`` have the same names; where ``plain`` has an
        array of ports, one port of ``special`` is the first of them, and its lines may be shorter.
    """

    if TYPE_CHECKING:
        i: stream.Interface
        idle: Signal

    def __init__(self, *, plain: Any, special: Any, ops: tuple[str, ...]):
        self.plain, self.special, self.ops = plain, special, ops
        super().__init__(
            {"i": In(stream.Signature(RECORD_BITS))}
            | {name: m for name, m in plain.signature.members.items() if name != "i"}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.plain, m.submodules.special = self.plain, self.special
        here = is_op(self.i.payload, *self.ops)
        works = ~self.special.idle
        plain, special = self.plain, self.special
        m.d.comb += [
            plain.i.payload.eq(self.i.payload),
            special.i.payload.eq(self.i.payload),
            plain.i.valid.eq(self.i.valid & ~here & ~works),
            special.i.valid.eq(self.i.valid & here & plain.idle),
            self.i.ready.eq(
                (here & plain.idle & special.i.ready) | (~here & ~works & plain.i.ready)
            ),
            self.idle.eq(plain.idle & special.idle),
        ]
        for name, member in self.plain.signature.members.items():
            if name in ("i", "idle"):
                continue
            mine, own = getattr(self, name), getattr(plain, name)
            if member.is_port:
                chosen = getattr(special, name, own)
                m.d.comb += mine.eq(Mux(works, chosen, own))
                continue
            others = self._ports(getattr(special, name, None))
            for n, (port, first) in enumerate(
                zip(self._ports(mine), self._ports(own), strict=True)
            ):
                with m.If(works):
                    if n < len(others):
                        self._join(m, others[n], port)
                with m.Else():
                    self._join(m, first, port)
        return m

    @staticmethod
    def _ports(port: Any) -> list[Any]:
        if port is None:
            return []
        return list(port) if isinstance(port, (list, tuple)) else [port]

    @staticmethod
    def _join(m: Module, part: Any, mine: Any) -> None:
        """Connect a port of an executor to the unit's own."""
        join = connect_write if hasattr(mine, "enable") else connect_read
        join(m, part, mine)

"""Two executors of one unit that share its ports; never both have an instruction."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .mover import Mover
from .record import RECORD_BITS, is_op


class LaneMover(wiring.Component):
    """Copies from UB to UB or L0C, with the ports of a ``LaneFeeder``.

    Parameters
    ----------
    ahead : int
        As a ``Mover`` takes it.

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

    def __init__(self, *, ahead: int):
        self.mover = Mover(ops=("copy",), ahead=ahead)
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
        The ports of ``plain``. Those of ``special`` have the same names.
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
            mine = getattr(self, name)
            parts = [getattr(plain, name)]
            if name in special.signature.members:
                parts.append(getattr(special, name))
            with m.If(works):
                self._join(m, mine, parts[-1], member)
            with m.Else():
                self._join(m, mine, parts[0], member)
        return m

    @staticmethod
    def _join(m: Module, mine: Any, part: Any, member: Any) -> None:
        if member.is_port:
            m.d.comb += mine.eq(part)
            return
        for name, inner in member.signature.members.items():
            if inner.flow is Out:
                m.d.comb += getattr(mine, name).eq(getattr(part, name))
            else:
                m.d.comb += getattr(part, name).eq(getattr(mine, name))

"""An adder without a comparator of its own."""

from typing import TYPE_CHECKING

from amaranth.hdl import Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from ..fp.add import Adder


class OrderedAdder(Adder):
    """``hdl.fp.Adder`` that is told which operand has the larger magnitude.

    Members
    -------
    larger_b : In(1)
        If set, the magnitude of ``b`` is larger than that of ``a``.

    Notes
    -----
    The parameters and the other members are those of ``hdl.fp.Adder``.
    """

    if TYPE_CHECKING:
        larger_b: Signal

    def _derived_ports(self) -> dict[str, wiring.Member]:
        return {"larger_b": In(1)}

    def _b_is_larger(self) -> Value:
        return self.larger_b

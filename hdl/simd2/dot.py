"""The arithmetic of an element with semirings: one number out of K pairs, and what C has."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from golden.fp.formats import FloatFormat
from golden.fp.spec import DotSpec
from golden.simd2.op import Op, as_op

from ..fp.core import PIPELINES, DotCore
from ..fp.dot import geometry_of, lane
from ..fp.geometry import Lane
from ..fp.multiply import multiply
from ..fp.pipeline import Cuts
from ..fp.unpack import Unpacked, unpack
from .operand import lane_layout
from .winner import candidate, least, winner_of

__all__ = ["SemiringDot", "better", "mode_layout", "mode_of", "shape_of"]


def mode_layout() -> data.StructLayout:
    """What an element is told with its operands, one bit each."""
    return data.StructLayout(
        {
            "semiring": 1,  # ⊕ is not a sum
            "multiply": 1,  # ⊗ is ×
            "larger": 1,  # ⊗ is max
            "truth": 1,  # ⊗ is and
            "turn": 1,  # the result has the other sign
        }
    )


def mode_of(op: Op) -> dict[str, int]:
    """`mode_layout` of an operation."""
    return {
        "semiring": int(op.plus != "add"),
        "multiply": int(op.plus != "add" and op.times == "mul"),
        "larger": int(op.times in ("min", "max")),
        "truth": int(op.times == "and"),
        "turn": int(op.plus in ("max", "or")),
    }


def shape_of(op: Op, side: str) -> dict[str, int]:
    """How the operands of a side are decoded; see `hdl.simd2.operand.shape_layout`.

    Both operands of a sum, and of an extremum, have their signs turned for ⊕ = max; of a product
    it is A alone.
    """
    turned = op.plus == "max" and (op.times != "mul" or side == "a")
    return {
        "product": int(op.plus != "add" and op.times == "mul"),
        "fixed": int(op.plus != "add" and op.times != "mul"),
        "turn": int(turned),
    }


class SemiringDot(wiring.Component):
    """Fused dot product and the semirings of ⊕ = min, max, or; bits as ``golden.simd2.mmo``.

    Parameters
    ----------
    spec : DotSpec
        Of the sums: an ``ieee`` one with FP32 results, and a window that holds a sum of two
        operands.
    operations : sequence of Op or str
        At least one, "mma" among them or not; addnorm is not one of them yet.
    pipeline : int
        Register ranks, 0 to 4.

    Members
    -------
    a, b : In(k × lane_layout)
        Operands, from `hdl.simd2.operand.Decode`.
    mode : In(mode_layout)
        What to do with them.
    c : In(32)
        Addend of sums.
    d : Out(32)
        The sum; where ``mode.semiring`` the least candidate, ties and signs not yet turned: what
        `better` makes a result of.

    Latency
    -------
    ``latency = pipeline`` cycles, one result a cycle, whatever the operation.
    """

    if TYPE_CHECKING:
        a: data.View
        b: data.View
        mode: data.View
        c: Signal
        d: Signal

    def __init__(self, *, spec: DotSpec, operations: Sequence[Op | str], pipeline: int = 0):
        if pipeline not in PIPELINES:
            raise ValueError(f"pipeline must be one of {sorted(PIPELINES)}, not {pipeline!r}")
        self.operations = tuple(sorted({as_op(op) for op in operations}, key=lambda op: op.code))
        if not self.operations or Op.ADDNORM in self.operations:
            raise ValueError(
                f"operations must be at least one, and not addnorm, not {list(operations)!r}"
            )
        if spec.truncate != "floor" or spec.rounding != "RNE" or spec.window is None:
            raise ValueError(f"spec must be of the preset ieee, not {spec!r}")
        self.spec, self.pipeline, self.latency = spec, pipeline, pipeline
        lanes = data.ArrayLayout(lane_layout(spec.input), spec.k)
        super().__init__(
            {
                "a": In(lanes),
                "b": In(lanes),
                "mode": In(mode_layout()),
                "c": In(spec.output.storage_bits),
                "d": Out(spec.output.storage_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        spec, k = self.spec, self.spec.k
        format = spec.input
        names = {op.times for op in self.operations if op.plus != "add"}
        mode = {
            "semiring": self.mode.semiring if names else Const(0, 1),
            "multiply": self.mode.multiply if "mul" in names else Const(0, 1),
            "larger": self.mode.larger if names & {"min", "max"} else Const(0, 1),
            "truth": self.mode.truth if "and" in names else Const(0, 1),
            "turn": self.mode.turn if Op.MAXPLUS in self.operations else Const(0, 1),
        }
        products = [
            multiply(m, self.a[i].significand, self.b[i].significand, name=f"p{i}")
            for i in range(k)
        ]
        winner = None
        if names:
            keys = [
                candidate(
                    m,
                    self.a[i],
                    self.b[i],
                    products[i],
                    format=format,
                    multiply=mode["multiply"],
                    larger=mode["larger"],
                    truth=mode["truth"],
                    turn=mode["turn"],
                    name=f"x{i}",
                )
                for i in range(k)
            ]
            key = least(m, keys, name="least")
            winner = winner_of(
                key,
                format=format,
                output=spec.output,
                select=mode["semiring"],
                multiply=mode["multiply"],
            )
        core = DotCore(
            m,
            geometry=geometry_of(spec),
            rounding=spec.rounding,
            nan_code=spec.nan_code,
            cuts=Cuts(m, PIPELINES[self.pipeline]),
            winner=winner,
        )
        fraction = 2 * format.fraction_bits
        lanes = [
            self._lane(m, self.a[i], self.b[i], products[i], fraction, mode["semiring"], i)
            for i in range(k)
        ]
        m.d.comb += self.d.eq(core.build(lanes, unpack(m, self.c, spec.output, name="c")))
        return m

    @staticmethod
    def _lane(m: Module, a, b, product: Value, fraction: int, off: Value, index: int) -> Lane:
        """A product on its way into the sum; −0 where there is none."""
        x, y = (
            Unpacked(
                sign=operand.sign,
                exponent=operand.exponent[:-1],
                significand=operand.significand,
                zero=operand.zero,
                inf=operand.inf,
                nan=operand.nan,
            )
            for operand in (a, b)
        )
        found = lane(m, x, y, product, fraction, f"p{index}")
        if isinstance(off, Const):
            return found
        return Lane(
            sign=found.sign | off,
            exponent=found.exponent & (~off).replicate(len(found.exponent)),
            significand=found.significand & (~off).replicate(len(product)),
            fraction=fraction,
            nan=found.nan & ~off,
            inf=found.inf & ~off,
        )


def better(
    m: Module,
    found: Value,
    kept: Value,
    *,
    output: FloatFormat,
    turn: Value,
    truth: Value,
    keep: Value,
    name: str,
) -> Value:
    """⊕ of a result of `SemiringDot` and what a slot holds.

    Parameters
    ----------
    found : Value
        Code of the least candidate, its sign not turned back.
    kept : Value
        Code of the other operand of ⊕.
    turn, truth : Value
        As in the mode of the result.
    keep : Value
        Whether ``kept`` counts; else the result is what was found.
    """
    bits = len(found)
    sign = found[-1]
    other_sign = kept[-1] ^ turn
    ranks = []
    for code, s in ((found, sign), (kept, other_sign)):
        ranks.append(Cat(code[:-1] ^ s.replicate(bits - 1), ~s))
    not_number = [_is_nan(code, output) for code in (found, kept)]
    first, second = ranks
    takes = Signal(name=f"{name}_takes")
    m.d.comb += takes.eq(~keep | not_number[1] | (~not_number[0] & (first <= second)))
    turned = Cat(found[:-1], sign ^ (turn & ~not_number[0]))
    chosen = Mux(takes, turned, kept)
    true = found[:-1].any() | (keep & kept[:-1].any() & ~not_number[1])
    one = output.bias << output.fraction_bits
    return Mux(truth, Const(one, bits) & true.replicate(bits), chosen)


def _is_nan(code: Value, format: FloatFormat) -> Value:
    f = format.fraction_bits
    return code[f:-1].all() & code[:f].any()

"""Integer dot product ``D = C + sum(A[k] * B[k])``: 8-bit operands, 32-bit accumulation."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data
from amaranth.lib.wiring import In

from vitruvian.golden.fp.spec import IntDotSpec

from .parts.carrysave import CarrySaveRow, add_rows, compress, reduce_spans
from .parts.pipeline import DEEP_PIPELINES, PipelineStages
from .parts.unit import PipelinedUnit, dot_ports

#: The stage boundaries that have registers at each pipeline depth. With a carry-save tree, ``tree``
#: is a level inside the tree and ``sum`` holds the two rows of the result. In a DSP block chain,
#: ``tree`` holds the products and ``sum`` the exact sum. ``total`` is the 32-bit result.
_PIPELINES: dict[int, tuple[str, ...]] = {
    0: (),
    1: ("sum",),
    2: ("tree", "sum"),
    3: ("tree", "sum", "total"),
    4: ("tree", "sum", "total", "output"),
    5: ("operand", "tree", "products", "sum", "total"),
    6: ("operand", "tree", "products", "sum", "total", "output"),
}
#: Above that, ranks behind the result only make the latency that of a floating-point unit.
_PIPELINES |= {
    depth: (*_PIPELINES[6], *(f"delay{n}" for n in range(7, depth + 1)))
    for depth in DEEP_PIPELINES
    if depth > max(_PIPELINES)
}


def int_ranks(pipeline: int, multiplier: str) -> tuple[str, ...]:
    """Return the stage boundaries that have registers.

    Parameters
    ----------
    pipeline : int
        Number of boundaries with registers, 0 to 11.
    multiplier : {"booth", "dsp"}
        Form of the multipliers. With DSP blocks, four ranks are those of five without the one
        behind the sum, because wires to and from the blocks are long.
    """
    if multiplier == "dsp" and pipeline == 4:
        return _PIPELINES[5][:-1]
    return _PIPELINES[pipeline]


class IntDotProduct(PipelinedUnit):
    """Dot product of 8-bit integers, bit-exact with ``golden.fp.int_dot``.

    Without DSP blocks the unit never forms a single product. Two products share their rows: bit j
    of B[k] and of B[k+1] choose one of 0, A[k], A[k+1] and A[k] + A[k+1]. One nine-bit adder thus
    halves the number of rows that the carry-save tree has to add
    (``docs/decisions/0003-int8-dot.md`` compares both forms). With ``multiplier="dsp"`` every
    product is a ``*`` and is added to the sum of C and the products before it, as the DSP blocks
    of an FPGA do.

    Parameters
    ----------
    spec : IntDotSpec
        Number of products, signs of the operands, and whether the sum saturates or wraps.
    pipeline : int
        Number of register ranks, 0 (combinational) to 11.
    addend_cycles : int
        Cycles by which ``c`` comes later than ``a`` and ``b``, at most the number of ranks in
        front of its addition.
    multiplier : {"booth", "dsp"}
        ``booth``: shared rows and a carry-save tree, for standard cells. ``dsp``: a chain of ``*``
        and ``+``, for the DSP blocks of an FPGA.
    gated : bool
        If True, the unit has the port ``used``.

    Members
    -------
    a, b : In(ArrayLayout(8, k))
        Operands.
    used : In(pipeline)
        With ``gated``, a bit for each rank, the first one lowest: whether its registers take new
        values.
    c : In(32)
        Addend, int32.
    d : Out(32)
        Result, int32.

    Latency
    -------
    ``latency = pipeline`` cycles, with one result per cycle. The unit never stalls.

    Raises
    ------
    ValueError
        If the pipeline depth or the multiplier is unknown.
    """

    #: Ports that only some configurations have.
    optional = frozenset({"used"})

    if TYPE_CHECKING:
        a: data.View
        b: data.View
        c: Signal
        d: Signal
        used: Signal

    def __init__(
        self,
        *,
        spec: IntDotSpec,
        pipeline: int = 0,
        multiplier: str = "booth",
        addend_cycles: int = 0,
        gated: bool = False,
    ):
        self.spec, self.addend_cycles, self.gated = spec, addend_cycles, gated
        super().__init__(
            {**dot_ports(spec.k, (8, 8), 32), **({"used": In(pipeline)} if gated else {})},
            pipeline=pipeline,
            depths=_PIPELINES,
            multiplier=multiplier,
        )
        self._ranks = int_ranks(pipeline, multiplier)

    @property
    def sum_bits(self) -> int:
        """Bits of the sum: 32, or with saturation as many as the exact sum needs.

        A product's magnitude is at most 255 * 255 < 2**16, so k of them and C, at most 2**31 in
        magnitude, stay below 2**32 in magnitude up to k = 2**15.
        """
        k = self.spec.k
        return max(33, 16 + k.bit_length() + 1) + (k >= 1 << 15) if self.spec.saturate else 32

    def elaborate(self, platform: object) -> Module:
        m = Module()
        used = dict(zip(self._ranks, self.used, strict=True)) if self.gated else None
        stages = PipelineStages(m, self._ranks, self.addend_cycles, used=used)
        operands = _IntOperands(
            *(
                [
                    stages.cross_extra("operand", Value.cast(port[k]), f"operand_{name}{k}")
                    for k in range(self.spec.k)
                ]
                for name, port in (("a", self.a), ("b", self.b))
            ),
            c=stages.cross_addend("operand", self.c, "operand_c")
            if "operand" in stages.names
            else self.c,
        )
        if self.multiplier == "booth":
            total = self._build_tree(m, stages, operands)
        elif "products" in stages.names:
            total = self._build_sums(m, stages, operands)
        else:
            total = self._build_chain(m, stages, operands)
        result: Value = total
        if self.spec.saturate:
            fits = (total[31:] == 0) | total[31:].all()
            limit = Cat((~total[-1]).replicate(31), total[-1])
            result = Mux(fits, total[:32], limit)
        result = stages.cross("total", result, "total_d")
        result = stages.cross("output", result, "output_d")
        for name in self._ranks[6:]:
            result = stages.cross(name, result, f"{name}_d")
        m.d.comb += self.d.eq(result)
        return m

    def _product(self, stages: PipelineStages, operands: "_IntOperands", k: int) -> Signal:
        """Return a product behind the boundary ``tree``."""
        a, b = (
            word.as_signed() if signed else word
            for word, signed in (
                (operands.a[k], self.spec.signed_a),
                (operands.b[k], self.spec.signed_b),
            )
        )
        return stages.cross("tree", a * b, f"product{k}")

    def _build_sums(self, m: Module, stages: PipelineStages, operands: "_IntOperands") -> Signal:
        """Return C plus the sum of the products, which a balanced tree of adders computes."""
        c = stages.cross_addend("tree", operands.c, "tree_c")
        sums: list[Value] = [self._product(stages, operands, k) for k in range(self.spec.k)]
        level = 0
        while len(sums) > 1:
            following = sums[len(sums) // 2 * 2 :]
            for i in range(0, len(sums) - 1, 2):
                width = max(len(sums[i]), len(sums[i + 1])) + 1
                # For ``keep`` see the chain.
                pair = Signal(signed(width), name=f"sum{level}_{i // 2}", attrs={"keep": 1})
                m.d.comb += pair.eq(sums[i] + sums[i + 1])
                following.insert(i // 2, pair)
            sums, level = following, level + 1
        products = stages.cross("products", sums[0], "sum_of_products")
        c = stages.cross_addend("products", c, "products_c")
        partial = Signal(signed(self.sum_bits), name="partial")
        m.d.comb += partial.eq(c.as_signed() + products)
        total = stages.cross("sum", partial, "sum_total")
        unsigned = Signal(self.sum_bits, name="total")
        m.d.comb += unsigned.eq(total)
        return unsigned

    def _build_chain(self, m: Module, stages: PipelineStages, operands: "_IntOperands") -> Signal:
        """Return C plus one product after the other."""
        c = stages.cross_addend("tree", operands.c, "tree_c")
        total: Value = c.as_signed()
        for k in range(self.spec.k):
            product = self._product(stages, operands, k)
            # Without ``keep``, Yosys would merge the additions into one of full adders in LUTs.
            partial = Signal(signed(self.sum_bits), name=f"partial{k}", attrs={"keep": 1})
            m.d.comb += partial.eq(total + product)
            total = partial
        total = stages.cross("sum", total, "sum_total")
        unsigned = Signal(self.sum_bits, name="total")
        m.d.comb += unsigned.eq(total)
        return unsigned

    def _build_tree(self, m: Module, stages: PipelineStages, operands: "_IntOperands") -> Signal:
        """Return the sum of the rows of all products, compressed to two rows and added."""
        width = self.sum_bits
        rows, constant = self._build_rows(m, operands)

        def registered(rows: list[CarrySaveRow], stage: str) -> list[CarrySaveRow]:
            return [
                CarrySaveRow(value=stages.cross(stage, row.value, f"{stage}_row{i}"), lsb=row.lsb)
                for i, row in enumerate(rows)
            ]

        c = stages.cross_addend("tree", operands.c, "tree_c")
        if "products" in stages.names:
            c = stages.cross_addend("products", c, "products_c")
        c = CarrySaveRow(value=Cat(c, c[-1].replicate(width - 32)), lsb=0)
        rows = registered(reduce_spans(m, rows, width=width, target=8, name="early"), "tree")
        rows = reduce_spans(m, rows, width=width, target=2, name="sum")
        if "products" in stages.names:
            rows = registered(rows, "products")
        rows = compress(m, [*rows, c], width=width, name="sum_c")
        if constant:
            row = _constant_row(constant, width)
            rows = compress(m, [*rows, row], width=width, name="sum_constant")
        rows = registered(rows, "sum")
        total = Signal(width, name="total")
        m.d.comb += total.eq(add_rows(m, rows, width=width))
        return total

    def _build_rows(self, m: Module, operands: "_IntOperands") -> tuple[list[CarrySaveRow], int]:
        """Return rows and a constant that together have the sum of the products.

        The top bit of a row has a negative weight if A is signed, and so has the whole top row if B
        is signed. Baugh-Wooley's method avoids negative weights: -w·b = w·(1 - b) - w, so such bits
        are inverted and their weights are subtracted through the constant.
        """
        rows: list[CarrySaveRow] = []
        constant = 0
        for k in range(0, self.spec.k, 2):
            words, selects = self._choices(m, operands, k)
            n = len(words[0])
            for j in range(8):
                word: Value = Const(0, n)
                for choice, select in zip(words, selects, strict=True):
                    word = word | (choice & select[j].replicate(n))
                negative = self.spec.signed_b and j == 7
                inverted = (1 << (n - 1) if self.spec.signed_a else 0) ^ (
                    -negative & ((1 << n) - 1)
                )
                row = Signal(n, name=f"row{k}_{j}")
                m.d.comb += row.eq(word ^ Const(inverted, n))
                rows.append(CarrySaveRow(value=row, lsb=j))
                constant -= inverted << j
        return rows, constant

    def _choices(
        self, m: Module, operands: "_IntOperands", k: int
    ) -> tuple[list[Value], list[Value]]:
        """Return the possible words of the rows of products k and k + 1, and their selects.

        Bit j of a select belongs to row j.
        """
        a, b = (port[k : k + 2] for port in (operands.a, operands.b))
        if len(a) == 1:
            return a, b
        wide = [Cat(x, x[-1] & self.spec.signed_a) for x in a]
        both = Signal(9, name=f"pair{k}")
        m.d.comb += both.eq(wide[0] + wide[1])
        return [*wide, both], [b[0] & ~b[1], ~b[0] & b[1], b[0] & b[1]]


@dataclass(frozen=True)
class _IntOperands:
    """The operands behind the boundary ``operand``.

    Attributes
    ----------
    a, b : list of Value
        Words of 8 bits.
    c : Value
        The addend.
    """

    a: list[Value]
    b: list[Value]
    c: Value


def _constant_row(constant: int, width: int) -> CarrySaveRow:
    """Return a constant modulo ``2**width`` as a row without its trailing zeros."""
    constant %= 1 << width
    lsb = (constant & -constant).bit_length() - 1
    return CarrySaveRow(value=Const(constant >> lsb, width - lsb), lsb=lsb)

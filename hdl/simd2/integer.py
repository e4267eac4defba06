"""SIMD² on integers that wrap around: the processing element and a tile of such elements."""

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..fp.parts.carrysave import CarrySaveRow, add_plainly, add_rows
from ..fp.parts.pipeline import PipelineStages
from . import intparts
from .intconfig import IntConfig

#: The stage boundaries that have registers at each pipeline depth. ``terms``: the results of ⊗, or
#: two rows of their sum. ``total``: the ⊕ of all lanes.
_STAGES: dict[int, tuple[str, ...]] = {0: (), 1: ("terms",), 2: ("terms", "total")}


class IntElement(wiring.Component):
    """Processing element that computes ``d = (c or d) ⊕ (A[0] ⊗ B[0]) ⊕ …`` in every cycle.

    If the operations need only the sum of the products, two products share their rows, as in
    ``hdl.fp.intdot``. If an operation needs every product, each lane has a Booth array. The adder
    of a lane computes a + b and a − b. In a unit with single products it stands in front of the
    multiplier, which then multiplies by 1 (docs/decisions/0006-simd2-integer.md). With
    ``multiplier="dsp"`` every product is a ``*``, and sums are plain additions.

    Parameters
    ----------
    config : IntConfig
        The unit that the element belongs to.

    Members
    -------
    a, b : In(config.a_layout), In(config.b_layout)
        Buses of the element's row and column, prepared at the edge of the tile.
    control : In(ArrayLayout(config.control_layout, pipeline + 1))
        Control bits of each stage; entry s belongs to the beat that arrived s cycles ago.
    c : In(bits)
        Initial value that a ``first`` beat takes instead of ``d``, ``pipeline`` cycles after its
        operands.
    d : Out(bits)
        The accumulator.

    Latency
    -------
    ``pipeline + 1`` cycles for every operation, with one beat per cycle. It never stalls.
    """

    if TYPE_CHECKING:
        a: data.View
        b: data.View
        control: data.View
        c: Signal
        d: Signal

    def __init__(self, *, config: IntConfig):
        self.config = config
        self.latency = config.pipeline + 1
        super().__init__(
            {
                "a": In(config.a_layout),
                "b": In(config.b_layout),
                "control": In(data.ArrayLayout(config.control_layout, config.pipeline + 1)),
                "c": In(config.bits),
                "d": Out(config.bits),
            }
        )

    def _told(self, stage: int, name: str) -> Value:
        """Return a control bit in a stage; it may be a constant."""
        constant = self.config.controls.constants.get(name)
        if constant is not None:
            return Const(constant, 1)
        return self.control[min(stage, self.config.pipeline)][name]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        stages = PipelineStages(m, _STAGES[self.config.pipeline])
        build = self._build_separate if self.config.separate else self._build_summed
        rows = build(m, stages)
        hit: Value = Const(0, 1)
        # The edge of the tile reduces each word to one bit, nonzero or not, for or-and.
        if self.config.plus("or"):
            hit = (Value.cast(self.a.truth) & Value.cast(self.b.truth)).any()
            hit = stages.cross("total", stages.cross("terms", hit, "s1_hit"), "s2_hit")
        self._build_accumulator(m, rows, hit)
        return m

    def _build_separate(self, m: Module, stages: PipelineStages) -> list[CarrySaveRow]:
        """Return the ⊕ of all A ⊗ B as one row, from a separate product in every lane."""
        config = self.config
        sums, picked = self._build_adders(m)
        terms = []
        for k in range(config.k):
            term = self._build_product(m, sums, k)
            if picked:  # for ⊗ = min or max the product is zero
                term = term | picked[k]
            terms.append(stages.cross("terms", term, f"s1_term{k}"))
        total: Value = Const(0, config.bits)
        if config.plus("add"):
            total = self._build_total(m, terms, name="sum")
        if config.extrema:
            extreme = self._build_extremum(m, terms, 1)
            is_extreme = self._told(1, "extreme")
            total = Mux(is_extreme, extreme, total) if config.plus("add", "or") else extreme
        return [CarrySaveRow(value=stages.cross("total", total, "s2_total"), lsb=0)]

    def _build_product(self, m: Module, sums: list[Value], k: int) -> Value:
        """Return the low bits of a lane's product: a square, or a product with B."""
        config = self.config
        if config.multiplier == "dsp":
            x, y = self._factors(m, sums, k)
            return intparts.named(m, (x * y)[: config.bits], f"lane{k}_product")
        x = sums[k] if config.adder_feeds else self.a.a[k]
        word: Value = self.b.multiplier[k]
        if config.edge_recoded:
            digits = [[word[3 * i + j] for j in range(3)] for i in range(config.bits // 2)]
        else:
            y = Mux(self._told(0, "square"), sums[k], word)
            digits = intparts.booth_digits(intparts.named(m, y, f"multiplier{k}"))
        rows = intparts.booth_rows(m, x, digits, name=f"lane{k}")
        rows = intparts.two_rows(m, rows, width=config.bits, name=f"lane{k}")
        return add_rows(m, rows, width=config.bits)

    def _factors(self, m: Module, sums: list[Value], k: int) -> tuple[Value, Value]:
        """Return the two factors of a lane's product."""
        config = self.config
        if config.array == "squares":
            return sums[k], sums[k]
        x: Value = sums[k] if config.adder_feeds else self.a.a[k]
        y: Value = self.b.multiplier[k]
        if config.times("sqdiff"):
            y = intparts.named(m, Mux(self._told(0, "square"), sums[k], y), f"multiplier{k}")
        return x, y

    def _build_total(self, m: Module, words: list[Value], *, name: str) -> Value:
        """Return the sum of words."""
        if self.config.multiplier == "booth":
            return intparts.sum_rows(m, words, name=name)
        rows = [CarrySaveRow(value=word, lsb=0) for word in words]
        (row,), _ = add_plainly(m, rows, width=self.config.bits, target=1, name=name)
        return row.bits(0, self.config.bits)

    def _build_summed(self, m: Module, stages: PipelineStages) -> list[CarrySaveRow]:
        """Return two rows that have the sum of products, or one row with the extremum."""
        config = self.config
        sums, picked = self._build_adders(m)
        if config.plus("add"):
            rows = self._build_sum(m, sums)
        elif config.extrema:
            rows = []
        else:
            return []
        if config.extrema:
            terms = sums if config.times("add") else picked
            if config.times("add") and picked:
                terms = [
                    Mux(self._told(0, "pick"), pick, total)
                    for pick, total in zip(picked, sums, strict=True)
                ]
            extreme = self._build_extremum(m, terms, 0)
            if not rows:
                rows = [CarrySaveRow(value=extreme, lsb=0)]
            else:
                is_extreme = self._told(0, "extreme")
                first, second = (row.bits(0, config.bits) for row in rows)
                rows = [
                    CarrySaveRow(value=Mux(is_extreme, extreme, first), lsb=0),
                    CarrySaveRow(value=second & ~is_extreme.replicate(config.bits), lsb=0),
                ]
        rows = [
            CarrySaveRow(value=stages.cross("terms", row.value, f"s1_row{i}"), lsb=row.lsb)
            for i, row in enumerate(rows)
        ]
        if "total" not in stages.names:
            return rows
        total = add_rows(m, rows, width=config.bits)
        return [CarrySaveRow(value=stages.cross("total", total, "s2_total"), lsb=0)]

    def _build_sum(self, m: Module, sums: list[Value]) -> list[CarrySaveRow]:
        """Return two rows that have the sum of all products or squares."""
        config = self.config
        rows: list[CarrySaveRow] = []
        if config.multiplier == "dsp":
            words = [self._build_product(m, sums, k) for k in range(config.k)]
            rows = [CarrySaveRow(value=word, lsb=0) for word in words]
            return add_plainly(m, rows, width=config.bits, target=2, name="sum")[0]
        if config.array == "squares":
            for k, word in enumerate(sums):
                rows += intparts.square_rows(m, word, name=f"square{k}")
            return intparts.two_rows(m, rows, width=config.bits, name="sum")
        for k in range(0, config.k, 2):
            if config.edge_recoded:
                words = [self.a.a[k], self.a.a[k + 1], self.a.both[k // 2]]
                packed = Value.cast(self.b.multiplier)
                n = config.bits
                selects = [packed[(3 * k // 2 + i) * n :][:n] for i in range(3)]
            else:
                words = [*sums[k : k + 2]]
                both, _ = intparts.ripple(m, words[0], words[1], Const(0, 1), name=f"pair{k}")
                words.append(intparts.named(m, both, f"both{k}"))
                square = self._told(0, "square")
                ys = [Mux(square, sums[i], self.b.multiplier[i]) for i in (k, k + 1)]
                selects = intparts.pair_selects(ys)
            rows += intparts.pair_rows(m, words, selects, name=f"pair{k}")
        return intparts.two_rows(m, rows, width=config.bits, name="sum")

    def _build_adders(self, m: Module) -> tuple[list[Value], list[Value]]:
        """Return the adder's result of each lane, and the operand that ⊗ = min or max selects.

        The adder's result is a + b, a − b or a. The selected operand is 0 for all other ⊗.
        """
        config = self.config
        sums: list[Value] = []
        picked: list[Value] = []
        if not config.adder:
            return sums, picked
        top = config.bits - 1
        for k in range(config.k):
            a, addend = self.a.a[k], self.b.addend[k]
            carry = self._told(0, "carry")
            add = intparts.plain if config.multiplier == "dsp" else intparts.ripple
            total, carries = add(m, a, addend, carry, name=f"lane{k}_add")
            sums.append(intparts.named(m, total, f"lane{k}_sum"))
            if config.times("min", "max"):
                # a < b is the sign of the exact a − b. The addend is ~b, so equal top bits mean
                # that the signs of a and b differ.
                below = Mux(a[top] == addend[top], a[top], ~carries[-1])
                first = below ^ self._told(0, "pick_largest")
                gate = self._told(0, "pick") if config.separate else Const(1, 1)
                gates = [(s & gate).replicate(config.bits) for s in (first, ~first)]
                word = (a & gates[0]) | (~addend & gates[1])
                picked.append(intparts.named(m, word, f"lane{k}_picked"))
        return sums, picked

    def _build_extremum(self, m: Module, words: list[Value], stage: int) -> Value:
        """Return the least or the largest word, from a balanced tree."""
        largest = self._told(stage, "largest")
        level = 0
        while len(words) > 1:
            pairs = [words[i : i + 2] for i in range(0, len(words), 2)]
            words = [
                intparts.extremum(m, *pair, largest, name=f"extreme{level}_{i}")
                if len(pair) == 2
                else pair[0]
                for i, pair in enumerate(pairs)
            ]
            level += 1
        return words[0]

    def _build_accumulator(self, m: Module, rows: list[CarrySaveRow], hit: Value) -> None:
        """Combine the accumulator with the lanes' result; ``hit`` is set if some pair is true."""
        config = self.config
        last = config.pipeline
        held = Signal(config.bits, name="accumulator", reset_less=True)
        base = intparts.named(m, Mux(self.control[last].first, self.c, held), "base")
        result: Value = Const(0, config.bits)
        if config.plus("add"):
            words = [base, *(row.bits(0, config.bits) for row in rows)]
            result = self._build_total(m, words, name="accumulated")
        if config.extrema:
            largest = self._told(last, "largest")
            extreme = intparts.extremum(m, base, rows[0].value, largest, name="better")
            more = config.plus("add", "or")
            result = Mux(self._told(last, "extreme"), extreme, result) if more else extreme
        if config.plus("or"):
            either = hit | base.any()
            is_truth = self._told(last, "truth").replicate(config.bits)
            result = (result & ~is_truth) | (either & is_truth)
        # The accumulator keeps its value in cycles without a beat.
        with m.If(self.control[last].valid):
            m.d.sync += held.eq(result)
        m.d.comb += self.d.eq(held)


class IntTile(wiring.Component):
    """Tile of m × n elements on broadcast buses with registers at the edge.

    Zhang 2024 (chapter 3) measures a unit of this form.

    Parameters
    ----------
    config : IntConfig
        The parameters of the unit.

    Members
    -------
    valid : In(1)
        Set if there is a beat in this cycle.
    first : In(1)
        Set if the beat starts from ``c`` instead of the accumulators.
    op : In(4)
        Opcode, ``Op.code``. The result of an opcode that the unit does not have is undefined.
    a : In(m × k × bits)
        Rows of A.
    b : In(n × k × bits)
        Columns of B.
    c : In(m × n × bits)
        C of the beat that arrived ``pipeline + 1`` cycles ago.
    d : Out(m × n × bits)
        The accumulators.
    done : Out(1)
        Set in the first cycle in which the accumulators hold the result of a beat.

    Latency
    -------
    ``latency = pipeline + 2`` cycles for every operation, with one beat per cycle. It never stalls.
    """

    #: Components of which all instances are identical.
    shared = (IntElement,)

    if TYPE_CHECKING:
        valid: Signal
        first: Signal
        op: Signal
        a: data.View
        b: data.View
        c: data.View
        d: data.View
        done: Signal

    def __init__(self, *, config: IntConfig):
        self.config = config
        self.latency = config.pipeline + 2
        word = data.ArrayLayout(config.bits, config.k)
        matrix = data.ArrayLayout(data.ArrayLayout(config.bits, config.n), config.m)
        super().__init__(
            {
                "valid": In(1),
                "first": In(1),
                "op": In(4),
                "a": In(data.ArrayLayout(word, config.m)),
                "b": In(data.ArrayLayout(word, config.n)),
                "c": In(matrix),
                "d": Out(matrix),
                "done": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        controls = self._build_control(m)
        rows = [self._build_row(m, i) for i in range(config.m)]
        columns = [self._build_column(m, j) for j in range(config.n)]
        for i, row in enumerate(rows):
            for j, column in enumerate(columns):
                m.submodules[f"element_{i}_{j}"] = element = IntElement(config=config)
                m.d.comb += [
                    Value.cast(element.a).eq(row),
                    Value.cast(element.b).eq(column),
                    Value.cast(element.control).eq(Cat(*controls)),
                    element.c.eq(self.c[i][j]),
                    self.d[i][j].eq(element.d),
                ]
        return m

    def _build_control(self, m: Module) -> list[Value]:
        """Return the control bits of each stage."""
        config = self.config
        bits: list[Value] = [self.valid, self.first]
        for name in config.controls.varying:
            chosen = config.controls.operations_with(name)
            bits.append(Cat(*(self.op == op.code for op in chosen)).any())
        stages: list[Value] = []
        word: Value = Cat(*bits)
        for stage in range(config.pipeline + 1):
            rank = Signal(len(word), name=f"s{stage}_control")
            m.d.sync += rank.eq(word)
            stages.append(rank)
            word = rank
        m.d.sync += self.done.eq(word[0])
        return stages

    def _register(self, m: Module, layout: data.StructLayout, fields: dict, name: str) -> Value:
        """Return a register with a layout; ``fields`` has the words of each field."""
        rank = Signal(layout, name=name, reset_less=True)
        for field, words in fields.items():
            m.d.sync += Value.cast(rank[field]).eq(Cat(*words))
        return Value.cast(rank)

    def _build_row(self, m: Module, i: int) -> Value:
        """Return the register of row i, whose bus brings A to the row's elements."""
        layout = self.config.a_layout
        words = [self.a[i][k] for k in range(self.config.k)]
        fields: dict[str, list[Value]] = {"a": words}
        if "both" in layout.members:
            fields["both"] = [
                (words[k] + words[k + 1])[: self.config.bits] for k in range(0, len(words), 2)
            ]
        if "truth" in layout.members:
            fields["truth"] = [word.any() for word in words]
        return self._register(m, layout, fields, f"row{i}")

    def _is(self, *times: str) -> Value:
        """Return 1 if the beat's ⊗ is one of these; a constant if all operations agree."""
        config = self.config
        codes = [op.code for op in config.operations if op.times in times]
        if len(codes) in (0, len(config.operations)):
            return Const(bool(codes), 1)
        return Cat(*(self.op == code for code in codes)).any()

    def _build_column(self, m: Module, j: int) -> Value:
        """Return the register of column j, with B prepared for the operation."""
        config = self.config
        layout, n = config.b_layout, config.bits
        words = [self.b[j][k] for k in range(config.k)]
        fields: dict[str, list[Value]] = {}
        if "addend" in layout.members:
            # a - b = a + ~b + 1; the carry-in is a control bit.
            flip = self._is("sqdiff", "min", "max").replicate(n)
            # The adder feeds the multiplier, so a product needs a + 0.
            keep = ~self._is("mul").replicate(n) if config.adder_feeds else Const((1 << n) - 1, n)
            fields["addend"] = [(word ^ flip) & keep for word in words]
        if "multiplier" in layout.members:
            if config.separate:  # factor 1 if the adder has the result, 0 if there is no product
                keep = ~self._is("add", "min", "max").replicate(n)
                words = [(word & keep) | self._is("add") for word in words]
            if not config.edge_recoded:
                fields["multiplier"] = words
            elif config.array == "booth":
                fields["multiplier"] = [
                    Cat(*(Cat(*digit) for digit in intparts.booth_digits(word))) for word in words
                ]
            else:
                fields["multiplier"] = [
                    Cat(*intparts.pair_selects(words[k : k + 2])) for k in range(0, config.k, 2)
                ]
        if "truth" in layout.members:
            fields["truth"] = [self.b[j][k].any() for k in range(config.k)]
        return self._register(m, layout, fields, f"column{j}")

"""One fidelity phase of Tenstorrent's matrix-vector multiplication (MVMUL).

``golden.machines.phases`` defines the rule, and docs/units/machines.md names its source. Sixteen
products of slices of the significands form two groups of eight. ``[name]`` is a boundary between
pipeline stages:

1. In a group, every product is shifted to the group's largest exponent and rounded half up
   ``[product]``; the sum of the group is exact ``[group]``.
2. Both groups and Dst are shifted to the largest of their three exponents and rounded, ties of
   negative groups down. A 16-bit Dst rounds each of them again, to multiples of 2^13.
3. Their sum ``[total]`` is normalised and rounded half up.

A number that was shifted right by n and rounded up is its upper bits plus the bit below them. So a
shifter that keeps one bit more gives the number and the bit to add, and the negative of both is
their complement: the bit goes to a free column of the adder tree.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data
from amaranth.lib.wiring import In

from vitruvian.golden.machines.spec import TERMS, PhaseSpec

from .parts.align import maximum, shift_right
from .parts.carrysave import CarrySaveRow, add_rows, reduce_rows
from .parts.normalise import normalise
from .parts.pipeline import PipelineStages
from .parts.unit import PipelinedUnit, dot_ports
from .parts.unpack import store

#: The boundaries that have registers at each pipeline depth.
PIPELINES: dict[int, tuple[str, ...]] = {
    0: (),
    1: ("group",),
    2: ("group", "total"),
    3: ("product", "group", "total"),
}

_GROUP = 8  # products that are aligned among themselves
_SCALE = 13  # low bits that the sum of a group gets, so that it has the unit of Dst's 24 bits
_PRODUCT = 12  # bits of a product of slices: 5 bits of A and 7 bits of B
_SUM = 30  # bits of the magnitude of both groups and Dst together
#: The slices that the phases shift the exponent by.
_STEPS = (5, 7)


@dataclass(frozen=True, kw_only=True)
class _Number:
    """A number on the way to the sum: its exponent field is 0 if it is nothing."""

    negative: Value
    magnitude: Value
    field: Value


class MatrixPhase(PipelinedUnit):
    """One phase of MVMUL: 16 products of slices are added to Dst.

    It is bit-exact with a phase of ``golden.machines.phase_dot``.

    Parameters
    ----------
    spec : PhaseSpec
        Formats, number of phases, and Wormhole or Blackhole. Operands of 8-bit exponents come with
        an fp32 or bf16 Dst, those of 5-bit exponents (fp16 and fp8) with fp32 or fp16. With
        ``shared_bits`` the 16 operands share an exponent.
    pipeline : int
        Number of register ranks, 0 (combinational) to 3.

    Members
    -------
    a, b : In(ArrayLayout(shared_bits or input.storage_bits, 16))
        Codes of the operands (SrcA and SrcB).
    c : In(output.storage_bits)
        Code of Dst.
    phase : In(range(phases))
        The phase; only if there are several.
    d : Out(output.storage_bits)
        Code of the new Dst.

    Latency
    -------
    ``latency = pipeline`` cycles, with one result per cycle. The unit never stalls and has no
    valid bit.

    Notes
    -----
    With ``shared_bits`` there are two more inputs, ``scale_a`` and ``scale_b``, of 8 bits: the
    shared exponents of the operands.

    Raises
    ------
    ValueError
        If no machine has this pair of formats, or if the pipeline depth is unknown.
    """

    if TYPE_CHECKING:
        a: data.View
        b: data.View
        c: Signal
        scale_a: Signal
        scale_b: Signal
        phase: Signal
        d: Signal

    def __init__(self, *, spec: PhaseSpec, pipeline: int = 0):
        allowed = ("fp32", "fp16") if spec.narrow else ("fp32", "bf16")
        if spec.output.name not in allowed:
            raise ValueError(
                f"output must be {' or '.join(allowed)} for {spec.input.name}, "
                f"not {spec.output.name!r}"
            )
        self.spec = spec
        bits = spec.shared_bits or spec.input.storage_bits
        ports = dot_ports(TERMS, (bits, bits), spec.output.storage_bits)
        if spec.shared_bits is not None:
            ports |= {"scale_a": In(8), "scale_b": In(8)}
        if spec.phases > 1:
            ports["phase"] = In((spec.phases - 1).bit_length())
        super().__init__(ports, pipeline=pipeline, depths=PIPELINES)

    @property
    def base(self) -> int:
        """Exponent that is added to the fields of A and B in the first phase."""
        if not self.spec.narrow:
            return -127
        return 97 if self.spec.output.name == "fp32" else -15

    @property
    def offset(self) -> int:
        """Constant that makes every exponent of a product positive."""
        return max(0, sum(_STEPS) - self.base)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        stages = PipelineStages(m, PIPELINES[self.pipeline])
        phase = self._phase_bits()
        adjust, nothing = self._adjustment(m, phase)
        terms = [self._term(m, k, phase, adjust, nothing) for k in range(TERMS)]
        numbers = [
            self._group(m, stages, terms[start : start + _GROUP], start // _GROUP)
            for start in range(0, TERMS, _GROUP)
        ]
        dst = self._dst()
        dst = _Number(
            negative=stages.cross("group", stages.cross("product", dst.negative, "c_n"), "c_neg"),
            magnitude=stages.cross("group", stages.cross("product", dst.magnitude, "c_m"), "c_mag"),
            field=stages.cross("group", stages.cross("product", dst.field, "c_e"), "c_exp"),
        )
        total, largest = self._total(m, [*numbers, dst])
        total = stages.cross("total", total, "s_total")
        largest = stages.cross("total", largest, "s_largest")
        m.d.comb += self.d.eq(self._result(m, total, largest))
        return m

    # ---------------------------------------------------------------- products

    def _phase_bits(self) -> tuple[Value, Value]:
        """Return the two bits of the phase."""
        if self.spec.phases == 1:
            return Const(0, 1), Const(0, 1)
        return self.phase[0], self.phase[1] if self.spec.phases > 2 else Const(0, 1)

    def _adjustment(self, m: Module, phase: tuple[Value, Value]) -> tuple[Value, Value]:
        """Return what is added to the sum of the fields, and the exponent of a zero product."""
        choices = [
            self.base - sum(step for bit, step in enumerate(_STEPS) if p >> bit & 1)
            for p in range(4)
        ]
        bits = self.offset + max(self.base, 0)
        width = bits.bit_length() + 1
        adjust, nothing = Signal(width, name="adjust"), Signal(width, name="nothing")
        shown = [choice + self.offset for choice in choices]
        zeros = [max(choice, 0) + self.offset for choice in choices]
        for signal, values in ((adjust, shown), (nothing, zeros)):
            low, high = (Mux(phase[0], values[2 * i + 1], values[2 * i]) for i in (0, 1))
            m.d.comb += signal.eq(Mux(phase[1], high, low))
        return adjust, nothing

    def _source(self, m: Module, code: Value, name: str) -> tuple[Value, Value, Value]:
        """Return sign, exponent field and 11-bit significand, which is 0 for a zero."""
        f = self.spec.input
        code = code[f.storage_shift :]
        fraction = code[: f.fraction_bits]
        field = code[f.fraction_bits : f.width - 1]
        normal = Signal(name=f"{name}_normal")
        m.d.comb += normal.eq(field.any())
        wide = Cat(Const(0, 10 - f.fraction_bits), fraction)
        ones = f.name == "fp8e4m3" or (f.name == "fp8e5m2" and self.spec.blackhole)
        if ones:
            wide = wide | code[: f.width - 1].all().replicate(10)
        if f.name == "fp8e4m3":
            # The field is raised from a bias of 7 to that of fp16.
            raised = Signal(5, name=f"{name}_field")
            m.d.comb += raised.eq(field + 8)
            field = raised
        significand = Cat(wide & normal.replicate(10), normal)
        return code[f.width - 1], field, significand

    def _term(
        self, m: Module, k: int, phase: tuple[Value, Value], adjust: Value, nothing: Value
    ) -> _Number:
        """Return a product of slices."""
        codes = [Value.cast(self.a[k]), Value.cast(self.b[k])]
        if self.spec.shared_bits is not None:
            scales = (self.scale_a, self.scale_b)
            codes = [
                _widen_shared(m, code, scale, f"{name}{k}")
                for code, scale, name in zip(codes, scales, "ab", strict=True)
            ]
        sign_a, field_a, x = self._source(m, codes[0], f"a{k}")
        sign_b, field_b, y = self._source(m, codes[1], f"b{k}")
        p = Mux(phase[0], x[1:6], x[6:])
        q = Mux(phase[1], Cat(Const(0, 3), y[:4]), y[4:])
        zero = Signal(name=f"zero{k}")
        product = Signal(_PRODUCT, name=f"product{k}")
        total = len(field_a) + 2
        exponent = Signal(max(total, len(adjust) + 1), name=f"exponent{k}")
        m.d.comb += [
            zero.eq(~(x[-1] & y[-1])),
            # A zero product may still have the largest exponent of its group.
            product.eq((p * q) & (~zero).replicate(_PRODUCT)),
            exponent.eq(Mux(zero, nothing, field_a + field_b + adjust)),
        ]
        return _Number(negative=sign_a ^ sign_b, magnitude=product, field=exponent)

    def _group(
        self, m: Module, stages: PipelineStages, terms: Sequence[_Number], number: int
    ) -> _Number:
        """Return the sum of a group, in units of the 24-bit significand of Dst."""
        name = f"g{number}"
        top = maximum(m, [term.field for term in terms], name=f"{name}_largest")
        top = stages.cross("product", top, f"{name}_top")
        rows: list[CarrySaveRow] = []
        ones: list[Value] = []
        width, sign_at = _PRODUCT + 4, _PRODUCT
        for k, term in enumerate(terms):
            word = stages.cross("product", term.magnitude, f"{name}_{k}_product")
            sign = stages.cross("product", term.negative, f"{name}_{k}_sign")
            field = stages.cross("product", term.field, f"{name}_{k}_exponent")
            distance = Signal(len(top), name=f"{name}_{k}_distance")
            m.d.comb += distance.eq(top - field)
            shifted, _ = shift_right(
                m, Cat(Const(0, 1), word), distance, name=f"{name}_{k}_align", sticky=False
            )
            row = Signal(_PRODUCT + 1, name=f"{name}_{k}_term")
            m.d.comb += row.eq(Cat(shifted[1:] ^ sign.replicate(_PRODUCT), ~sign))
            rows.append(CarrySaveRow(value=row, lsb=0))
            ones.append(shifted[0] ^ sign)
        # An inverted sign bit makes each row one unit of that bit too large.
        rows.append(
            CarrySaveRow(value=Const(-(len(terms) << sign_at) % (1 << width), width), lsb=0)
        )
        rows, ones = reduce_rows(m, rows, width=width, name=name, ones=ones)
        assert len(ones) <= 1, "one carry-in is left for the adder"
        total = Signal(width, name=f"{name}_sum")
        carry = ones[0] if ones else None
        m.d.comb += total.eq(add_rows(m, rows, width=width, carry_in=carry))
        present = Signal(name=f"{name}_present")
        field = Signal(len(top), name=f"{name}_field")
        m.d.comb += [
            present.eq(top > self.offset),
            field.eq((top - self.offset)[: len(top)] & present.replicate(len(top))),
        ]
        magnitude = Signal(width - 1, name=f"{name}_magnitude")
        m.d.comb += magnitude.eq((total[:-1] ^ total[-1].replicate(width - 1)) + total[-1])
        return _Number(
            negative=stages.cross("group", total[-1] & present, f"{name}_negative"),
            magnitude=Cat(
                Const(0, _SCALE),
                stages.cross("group", magnitude & present.replicate(width - 1), f"{name}_number"),
            ),
            field=stages.cross("group", field, f"{name}_exponent"),
        )

    def _dst(self) -> _Number:
        """Return Dst with a 24-bit significand, which is 0 if the exponent field is 0."""
        out = self.spec.output
        f = out.fraction_bits
        field = self.c[f : out.width - 1]
        normal = field.any()
        word = Cat(Const(0, 23 - f), self.c[:f] & normal.replicate(f), normal)
        return _Number(negative=self.c[out.width - 1], magnitude=word, field=field)

    # ---------------------------------------------------------------- sum

    def _total(self, m: Module, numbers: Sequence[_Number]) -> tuple[Value, Value]:
        """Return the signed sum of both groups and Dst, and the largest exponent."""
        largest = maximum(m, [x.field for x in numbers], name="largest")
        width = _SUM + 1
        rows: list[CarrySaveRow] = []
        ones: list[Value] = []
        for n, x in enumerate(numbers):
            is_group = n < 2
            distance = Signal(len(largest), name=f"distance{n}")
            m.d.comb += distance.eq(largest - x.field)
            shifted, lost = shift_right(
                m, Cat(Const(0, 1), x.magnitude), distance, name=f"shift{n}", sticky=is_group
            )
            kept, up = shifted[1:], _up(shifted[0], lost, x.negative if is_group else None)
            low = 0
            if self.spec.output.name != "fp32":
                rounded = Signal(len(kept) + 1, name=f"rounded{n}")
                m.d.comb += rounded.eq(kept + up)
                low = _SCALE
                below = rounded[: low - 1].any()
                kept = rounded[low:]
                up = _up(rounded[low - 1], below, x.negative if is_group else None)
            sign_at = len(kept)
            row = Signal(sign_at + 1, name=f"row{n}")
            m.d.comb += row.eq(Cat(kept ^ x.negative.replicate(sign_at), ~x.negative))
            rows.append(CarrySaveRow(value=row, lsb=0))
            ones.append(up ^ x.negative)
        width -= low
        constant = -sum(1 << (len(row.value) - 1) for row in rows) % (1 << width)
        rows.append(CarrySaveRow(value=Const(constant, width), lsb=0))
        rows, ones = reduce_rows(m, rows, width=width, name="total", ones=ones)
        assert len(ones) <= 1, "one carry-in is left for the adder"
        total = Signal(width, name="total")
        carry = ones[0] if ones else None
        m.d.comb += total.eq(add_rows(m, rows, width=width, carry_in=carry))
        return Cat(Const(0, low), total), largest

    def _result(self, m: Module, total: Value, largest: Value) -> Value:
        """Return the code of a sum: normalised and rounded half up."""
        out, f = self.spec.output, self.spec.output.fraction_bits
        negative = total[-1]
        magnitude = Signal(_SUM, name="magnitude")
        m.d.comb += magnitude.eq((total[:-1] ^ negative.replicate(_SUM)) + negative)
        number = normalise(m, magnitude, limit=None, name="normalise")
        shift: Value = number.shift
        if not self.spec.blackhole and out.name == "fp32":
            # Wormhole's erratum: a negative sum of one unit is shifted by −4 instead of 23.
            unit = Signal(name="unit")
            m.d.comb += unit.eq(negative & magnitude[0] & ~magnitude[1:].any())
            shift = Mux(unit, _SUM - 24 - 4, shift)
        low = _SUM - 1 - f  # the fraction's last bit
        rounded = Signal(f + 1, name="fraction_rounded")
        m.d.comb += rounded.eq(number.word[low:-1] + number.word[low - 1])
        field = Signal(signed(len(largest) + 3), name="field")
        m.d.comb += field.eq(largest + (_SUM - 24) - shift + rounded[-1])
        over = Signal(name="over")
        m.d.comb += over.eq(field >= (32 if out.name == "fp16" else out.exponent_ones))
        full = Const(out.exponent_mask | out.fraction_mask if out.name == "fp16" else out.overflow)
        nothing = Signal(name="result_zero")
        m.d.comb += nothing.eq(~magnitude.any() | (field <= 0) | ~largest.any())
        code = Mux(over, full, Cat(rounded[:f], field[: out.exponent_bits]))[: out.width - 1]
        code = Cat(code, negative) & (~nothing).replicate(out.width)
        return store(code, out)


def _widen_shared(m: Module, code: Value, exponent: Value, name: str) -> Value:
    """Return the bf16 code of an operand with a shared exponent; −0 becomes −∞."""
    bits = len(code)
    magnitude = Cat(Const(0, 8 - bits), code[:-1])
    number = normalise(m, magnitude, limit=None, name=f"{name}_shared")
    zero = Signal(name=f"{name}_shared_zero")
    field = Signal(8, name=f"{name}_shared_field")
    m.d.comb += [
        zero.eq(~magnitude.any()),
        field.eq(Mux(zero, code[-1].replicate(8), exponent - number.shift)),
    ]
    fraction = Cat(Const(0, 1), number.word[:6]) & (~zero).replicate(7)
    return Cat(fraction, field, code[-1])


def _up(guard: Value, rest: Value, negative: Value | None) -> Value:
    """Return the bit that rounds half up, or half down where ``negative`` is set."""
    return guard if negative is None else guard & (rest | ~negative)

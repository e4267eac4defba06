"""Dot product of FP4 numbers whose terms are exact sums of 16 scaled products: MXFP4 and NVFP4."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In

from vitruvian.golden.fp.formats import FloatFormat

from .core.geometry import Lane
from .core.scaled import ScaledCore, ScaledGeometry
from .parts.carrysave import CarrySaveRow, add_rows, reduce_rows
from .parts.multiply import multiply
from .parts.pipeline import DEEP_PIPELINES, PipelineStages
from .parts.unit import DotUnit
from .parts.unpack import unpack
from .scaled import check_scaled

#: Products in an exact sum.
GROUP = 16


def _integer_bits(format: FloatFormat) -> int:
    """Return the bits of the largest magnitude in units of the least subnormal number."""
    return format.fraction_bits + 1 + format.emax - format.emin


def _product(m: Module, a: Value, b: Value, format: FloatFormat, name: str) -> Value:
    """Return the magnitude of a product as an integer, in units of the least product.

    The significands of FP4 have two bits, so that a few gates multiply them. The shift by the sum
    of the exponents has few distances.
    """
    x, y = unpack(m, a, format, name=f"{name}_a"), unpack(m, b, format, name=f"{name}_b")
    bits = 2 * _integer_bits(format)
    product = Signal(bits, name=name)
    distance = x.exponent + y.exponent - 2
    m.d.comb += product.eq((x.significand * y.significand) << distance[:3])
    return product


def group_sum(m: Module, a: Sequence[Value], b: Sequence[Value], format: FloatFormat, name: str):
    """Return the exact sum of products as sign and magnitude, and 1 if a product is not zero."""
    top = format.width - 1
    bits = 2 * _integer_bits(format)
    rows, ones, present = [], [], []
    for k, (x, y) in enumerate(zip(a, b, strict=True)):
        sign = Signal(name=f"{name}_sign{k}")
        m.d.comb += sign.eq(x[top] ^ y[top])
        product = _product(m, x, y, format, f"{name}_p{k}")
        row = Signal(bits + 1, name=f"{name}_row{k}")
        # The inverted sign ~s has the value 1 - s, so a constant corrects all rows together.
        m.d.comb += row.eq(Cat(product ^ sign.replicate(bits), ~sign))
        rows.append(CarrySaveRow(value=row, lsb=0))
        ones.append(sign)
        present.append(x[:top].any() & y[:top].any())
    width = bits + len(a).bit_length()
    constant = -(len(a) << bits) % (1 << width)
    rows.append(CarrySaveRow(value=Const(constant, width), lsb=0))
    rows, ones = reduce_rows(m, rows, width=width, name=f"{name}_sum", ones=ones)
    total = Signal(width, name=f"{name}_total")
    carry = ones[0] if ones else None
    m.d.comb += total.eq(add_rows(m, rows, width=width, carry_in=carry))
    sign = total[-1]
    magnitude = Signal(width - 1, name=f"{name}_magnitude")
    m.d.comb += magnitude.eq((total[:-1] ^ sign.replicate(width - 1)) + sign)
    return sign, magnitude, Cat(*present).any()


class GroupDot(DotUnit):
    """Dot product of FP4 blocks with scales, bit-exact with ``golden.fp.fused_dot``.

    The products of 16 pairs are added exactly, and the sum is multiplied by both scales. These
    terms and C are then aligned, added and rounded once. The latency is that of ``DotUnit``.

    Parameters
    ----------
    spec : DotSpec
        A rule with ``lanes="sixteens"``; ``k`` and ``block`` are multiples of 16.
    pipeline : int
        Number of register ranks, 0 (combinational) to 11, as in ``DotProduct``.
    multiplier : {"booth", "dsp"}
        Form of the multipliers of the scales and of the additions of the terms.

    Members
    -------
    a, b : In(ArrayLayout(width, k))
        Codes of the operands, 4 bits each.
    scale_a, scale_b : In(ArrayLayout(8, k / block))
        Codes of the scales of A's and of B's blocks.
    c : In(output.storage_bits)
        Code of the addend, which has no scale.
    d : Out(output.storage_bits)
        Code of the result; a NaN if a scale is a NaN.

    Raises
    ------
    ValueError
        If the pipeline depth or the multiplier is unknown, or if the rule is another one.
    """

    scale_a: data.View
    scale_b: data.View

    def check(self) -> None:
        """Raise ``ValueError`` if the unit does not have the rule ``spec``."""
        spec = self.spec
        check_scaled(spec, "sixteens")
        assert spec.scales is not None
        for format in (spec.input, spec.input_b):
            if format.name != "fp4e2m1":
                raise ValueError(f"input must be fp4e2m1, not {format.name!r}")
        for name, value in (("k", spec.k), ("block", spec.scales.block)):
            if value % GROUP:
                raise ValueError(f"{name} must be a multiple of {GROUP}, not {value!r}")

    def depths(self) -> Mapping[int, object]:
        """Return the stage boundaries with registers at each depth of the pipeline."""
        return DEEP_PIPELINES

    def operand_bits(self) -> tuple[int, int]:
        """Return the bits of an operand of A and of B: those of FP4 codes alone."""
        return self.spec.input.width, self.spec.input_b.width

    def scale_ports(self) -> dict[str, wiring.Member]:
        """Return a port for the scales of A and one for those of B."""
        assert self.spec.scales is not None
        scales = In(data.ArrayLayout(8, self.spec.k // self.spec.scales.block))
        return dict.fromkeys(("scale_a", "scale_b"), scales)

    @property
    def fraction(self) -> int:
        """Fraction bits of a term in units of the exponents of its scales."""
        spec = self.spec
        assert spec.scales is not None
        return 2 * (spec.input.fraction_bits - spec.input.emin + spec.scales.format.fraction_bits)

    @property
    def largest(self) -> int:
        """The largest magnitude of a term, in units of its last bit."""
        spec = self.spec
        assert spec.scales is not None
        number = spec.input.max_finite & spec.input.fraction_mask | 1 << spec.input.fraction_bits
        number <<= spec.input.emax - spec.input.emin
        scale = (2 << spec.scales.format.fraction_bits) - 1
        return GROUP * (number * scale) ** 2

    @property
    def geometry(self) -> ScaledGeometry:
        """The widths of the back end."""
        spec = self.spec
        assert spec.scales is not None and spec.sum.window is not None
        headroom = max(self.largest.bit_length() - self.fraction - 2, 0)
        # The exponent of a term is the sum of both fields, which must not be 0: subnormal scales
        # have the field 1, and without them 1 is added.
        one = not spec.scales.format.subnormals
        least = 1 if one else 2
        greatest = (spec.scales.format.max_finite >> spec.scales.format.fraction_bits) * 2 + one
        offset = spec.output.bias - 2 * spec.scales.format.bias - one + headroom
        floor = spec.output.emin if spec.sum.floor is None else spec.sum.floor
        # Every term is above the floor if it is above the least normal number.
        above = least + offset - headroom >= 1
        groups = spec.k // GROUP
        unit = self.fraction + headroom
        return ScaledGeometry(
            lanes=groups,
            window=spec.sum.window + headroom,
            sticky=False,
            output=spec.output,
            result_bits=spec.result.bits,
            exponent_min=least,
            exponent_max=greatest,
            offset=offset,
            sum_limit=(groups * self.largest + (2 << unit - headroom)) // (1 << unit) + 1,
            headroom=headroom,
            zero_code=1 if above else floor + spec.output.bias,
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        spec, geometry = self.spec, self.geometry
        assert spec.scales is not None
        stages = PipelineStages(m, DEEP_PIPELINES[self.pipeline])

        def operand(port: data.View, name: str) -> list[Value]:
            codes = enumerate(Value.cast(code) for code in port)
            return [stages.cross_extra("operand", x, f"operand_{name}{k}") for k, x in codes]

        a, b = operand(self.a, "a"), operand(self.b, "b")
        both = zip(operand(self.scale_a, "scale_a"), operand(self.scale_b, "scale_b"), strict=True)
        scales = [self._scale(m, x, y, f"scale{k}") for k, (x, y) in enumerate(both)]
        lanes = []
        for g in range(geometry.lanes):
            exponent, factor, zero, _ = scales[g * GROUP // spec.scales.block]
            group = slice(g * GROUP, (g + 1) * GROUP)
            name = f"g{g}"
            sign, word, present = group_sum(m, a[group], b[group], spec.input, name)
            if factor is not None:
                word = multiply(m, word, factor, name=f"{name}_term", multiplier=self.multiplier)
            own = Signal(len(exponent), name=f"{name}_exponent")
            m.d.comb += own.eq(exponent & (present & ~zero).replicate(len(exponent)))
            lanes.append(
                Lane(
                    sign=sign,
                    exponent=own,
                    significand=word[: self.largest.bit_length()],
                    fraction=self.fraction + geometry.headroom,
                    nan=Const(0, 1),
                    inf=Const(0, 1),
                )
            )
        core = ScaledCore(
            m,
            geometry=geometry,
            scale=Const(0, 1),
            rounding=spec.result.rounding,
            nan_code=spec.nan_code,
            stages=stages,
            multiplier=self.multiplier,
        )
        c = unpack(m, stages.cross_extra("operand", self.c, "operand_c"), spec.output, name="c")
        no_number = Cat(*[nan for *_, nan in scales]).any()
        m.d.comb += self.d.eq(core.build(lanes, replace(c, nan=c.nan | no_number)))
        return m

    def _scale(self, m: Module, a: Value, b: Value, name: str):
        """Return the product of two scales: exponent, significand or None, if zero, if NaN."""
        assert self.spec.scales is not None and self.spec.scales.format.nan is not None
        scale = self.spec.scales.format
        f = scale.fraction_bits
        a, b = a[: scale.width], b[: scale.width]
        nan = (a == scale.nan) | (b == scale.nan)
        if not scale.subnormals:
            exponent = Signal(scale.width + 1, name=f"{name}_exponent")
            m.d.comb += exponent.eq(a + b + 1)
            return exponent, None, Const(0, 1), nan
        fields, words = [], []
        for code in (a, b):
            field, normal = code[f:], code[f:].any()
            fields.append(Cat(field[0] | ~normal, field[1:]))
            words.append(Cat(code[:f], normal))
        exponent = Signal(scale.exponent_bits + 1, name=f"{name}_exponent")
        m.d.comb += exponent.eq(fields[0] + fields[1])
        word = multiply(m, *words, name=name, multiplier=self.multiplier)
        return exponent, word, ~a.any() | ~b.any(), nan

"""A fused multiply-add with the flushing of subnormals that matrix units have."""

from amaranth.hdl import Cat, Module, Value

from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.fp.spec import DotSpec

from ..elaborate import only_described
from .dot import DotProduct
from .parts.unit import DotUnit
from .parts.unpack import store


class FusedMultiplyAdd(DotUnit):
    """Fused multiply-add ``d = c + a·b``, rounded once, bit-exact with ``golden.fp.fused_dot``.

    The datapath is a ``DotProduct`` of one product. Flushing changes only codes in front of it and
    behind it, so it costs one gate for each fraction bit; "unbounded" flushing takes place inside.
    The other ports, latency and ``multiplier`` are those of ``DotUnit``.

    Parameters
    ----------
    spec : DotSpec
        Formats and rounding, with ``k`` = 1. ``flush`` makes subnormal operands zeros of their
        sign, and ``flush_result`` subnormal results.
    pipeline : int
        Number of register ranks, 0 (combinational) to 4.

    Members
    -------
    a, b : In(ArrayLayout(storage_bits, 1))
        Codes of the factors.

    Raises
    ------
    ValueError
        If ``spec`` has more products than one or another rule, or if the pipeline depth or the
        multiplier is unknown.
    """

    def check(self) -> None:
        """Raise ``ValueError`` if the unit does not have the rule ``spec``."""
        spec = self.spec
        if spec.k != 1:
            raise ValueError(f"k must be 1, not {spec.k!r}")
        check_flushing(spec)
        only_described(DotProduct(spec=self._rule))

    @property
    def _rule(self) -> DotSpec:
        """The rule of the dot product, without flushing that codes alone tell."""
        unbounded = self.spec.result.flush == "unbounded"
        return self.spec.replace(
            flush=False, flush_result=self.spec.result.flush if unbounded else None
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dot = dot = DotProduct(
            spec=self._rule, pipeline=self.pipeline, multiplier=self.multiplier
        )
        spec, out = self.spec, self.spec.output
        operands = [
            flushed(code, f) if spec.flush and f.emin == out.emin else code
            for code, f in (
                (Value.cast(self.a), spec.input),
                (Value.cast(self.b), spec.input_b),
                (Value.cast(self.c), out),
            )
        ]
        m.d.comb += [
            Value.cast(dot.a).eq(operands[0]),
            Value.cast(dot.b).eq(operands[1]),
            dot.c.eq(operands[2]),
            self.d.eq(flushed(dot.d, out) if spec.result.flush else dot.d),
        ]
        return m


def check_flushing(spec: DotSpec) -> None:
    """Check that the flushing of a rule depends on the exponent fields of codes alone.

    Raises
    ------
    ValueError
        If results are flushed before they are rounded to nearest even, or if only some subnormals
        of an operand are below the least normal number of the output.
    """
    # Truncated and odd results are below the least normal number if the exact ones are.
    if spec.result.flush == "before" and spec.result.rounding == "RNE":
        raise ValueError("flush_result must be None or 'after' with RNE, not 'before'")
    for f in (spec.input, spec.input_b):
        kept = f.emin - f.fraction_bits >= spec.output.emin
        if spec.flush and not kept and f.emin != spec.output.emin:
            raise ValueError(f"input must not be {f.name!r}, of which a part would be flushed")


def flushed(code: Value, format: FloatFormat) -> Value:
    """Return a code in which a subnormal number is a zero of its sign."""
    return _kept(code, format, sign=True)


def cleared(code: Value, format: FloatFormat) -> Value:
    """Return a code in which a subnormal number, and −0, is +0."""
    return _kept(code, format, sign=False)


def _kept(code: Value, format: FloatFormat, *, sign: bool) -> Value:
    """Return a code that is zero if its exponent field is zero, with its sign or without."""
    f, top = format.fraction_bits, format.width - 1
    code = code[format.storage_shift :]
    field = code[f:top]
    normal = field.any()
    above = code[top] if sign else code[top] & normal
    return store(Cat(code[:f] & normal.replicate(f), field, above), format)

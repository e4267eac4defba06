"""The exact dot product: a fixed-point sum over the whole range of the products, rounded once."""

from collections.abc import Mapping

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from vitruvian.golden.fp.spec import DotSpec

from .core.dotcore import DotCore
from .core.geometry import Geometry, Lane, check_rule
from .parts.carrysave import CarrySaveRow, add_plainly, add_rows, reduce_rows
from .parts.multiply import multiply
from .parts.pipeline import PipelineStages
from .parts.unit import DotUnit
from .parts.unpack import UnpackedCode, unpack

#: Largest sum unless another limit is asked for. The fixed-point sum of FP16 products needs about
#: 85 bits; that of BF16 products needs over 520.
MAX_SUM_BITS = 128

#: The stage boundaries that have registers at each pipeline depth; ``sum`` and ``total`` belong to
#: the back end.
_STAGES: dict[int, tuple[str, ...]] = {
    0: (),
    1: ("fixed",),
    2: ("fixed", "sum"),
    3: ("products", "fixed", "sum"),
    4: ("products", "fixed", "sum", "total"),
}


class ExactDotProduct(DotUnit):
    """Dot product ``D = C + sum(A[k] * B[k])`` with an exact sum, rounded once.

    It is bit-exact with ``golden.fp.fused_dot`` without a window. Ports, latency and ``multiplier``
    are those of ``DotUnit``.

    Every product is shifted to its absolute position and added in carry-save form. The total goes
    to the back end of ``hdl.fp.dot.DotProduct`` as a single lane with a constant exponent. The
    window is wide enough for a correctly rounded sum with C; ``golden.fp.spec.ieee_window`` gives
    the argument, which holds with the total in place of the product of two subnormal numbers.

    Parameters
    ----------
    spec : DotSpec
        Formats and K, with ``window=None`` and ``rounding="RNE"``, as the preset ``exact`` has.
    pipeline : int
        Register ranks, 0 (combinational) to 4.
    max_sum_bits : int
        Limit on the bits of the sum. A wide sum is a large unit, so that it must be asked for.

    Raises
    ------
    ValueError
        If the spec has a window or another rounding, if the sum of the products spans more than
        ``max_sum_bits`` bits (by default BF16, TF32 and wider formats), or if the pipeline depth or
        the multiplier is unknown.
    """

    def __init__(
        self,
        *,
        spec: DotSpec,
        pipeline: int = 0,
        multiplier: str = "booth",
        max_sum_bits: int = MAX_SUM_BITS,
    ):
        self.max_sum_bits = max_sum_bits
        super().__init__(spec=spec, pipeline=pipeline, multiplier=multiplier)

    def check(self) -> None:
        """Raise ``ValueError`` if the unit does not have the rule ``spec``."""
        spec = self.spec
        check_rule(spec.replace(zero="ieee"))
        if spec.sum.window is not None:
            raise ValueError(f"window must be None, not {spec.sum.window!r}; use DotProduct")
        if spec.result.rounding != "RNE" or spec.sum.floor is not None:
            raise ValueError("rounding must be RNE without emax_floor, as in preset exact")
        if not spec.output.has_infinity or spec.output.storage_shift:
            raise ValueError(f"output must be fp16, bf16, fp32 or fp64, not {spec.output.name!r}")
        if self.magnitude_bits > self.max_sum_bits:
            names = " x ".join(dict.fromkeys((spec.input.name, spec.input_b.name)))
            raise ValueError(
                f"input must be a format whose sums have at most {self.max_sum_bits} bits, as "
                f"fp16, not {names!r}, whose sum of {spec.k} products spans {self.magnitude_bits} "
                "bits"
            )

    def depths(self) -> Mapping[int, object]:
        """Return the stage boundaries with registers at each depth of the pipeline."""
        return _STAGES

    @property
    def largest_shift(self) -> int:
        """Largest shift of a product; the sum of two biased exponents is at least 2."""
        a, b = self.spec.input, self.spec.input_b
        return a.emax + a.bias + b.emax + b.bias - 2

    @property
    def product_bits(self) -> int:
        """Bits of a product at its absolute position."""
        a, b = self.spec.input, self.spec.input_b
        return a.significand_bits + b.significand_bits + self.largest_shift

    @property
    def magnitude_bits(self) -> int:
        """Bits of the sum of K products without its sign."""
        return self.product_bits + (self.spec.k - 1).bit_length()

    @property
    def geometry(self) -> Geometry:
        """The widths of the back end: one lane with the exponent 1 on a scale of its own."""
        a, b, out = self.spec.input, self.spec.input_b, self.spec.output
        # A lane's significand is below 4, so all but two bits of the total are fraction bits.
        fraction = self.magnitude_bits - 2
        lowest = a.emin - a.fraction_bits + b.emin - b.fraction_bits
        return Geometry(
            lanes=1,
            window=fraction + out.fraction_bits + 2,
            sticky=True,
            output=out,
            result_bits=self.spec.result.bits,
            exponent_min=1,
            exponent_max=1,
            offset=lowest + fraction + out.bias - 1,
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        spec = self.spec
        stages = PipelineStages(m, _STAGES[self.pipeline])
        products = [
            self._product(
                m,
                stages,
                unpack(m, Value.cast(self.a[k]), spec.input, name=f"a{k}"),
                unpack(m, Value.cast(self.b[k]), spec.input_b, name=f"b{k}"),
                name=f"p{k}",
            )
            for k in range(spec.k)
        ]
        total = stages.cross("fixed", self._total(m, products), "fixed_total")
        # ∞ - ∞ is an invalid operation (IEEE 754, section 7.2).
        positive = Cat(*[p.inf & ~p.sign for p in products]).any()
        negative = Cat(*[p.inf & p.sign for p in products]).any()
        nan = Cat(*[p.nan for p in products]).any() | (positive & negative)
        minus = Mux(positive | negative, negative, Cat(*[p.sign for p in products]).all())
        special = stages.cross("fixed", positive | negative | nan, "fixed_special")
        nan = stages.cross("fixed", nan, "fixed_nan")
        minus = stages.cross("fixed", minus, "fixed_minus")

        below = total[-1]
        # The magnitude of a negative total is ~total + 1. It fits, because the magnitude of a sum
        # of K products is below 2**magnitude_bits.
        magnitude = Signal(self.magnitude_bits, name="total_magnitude")
        m.d.comb += magnitude.eq((total[:-1] ^ below.replicate(self.magnitude_bits)) + below)
        nonzero = Signal(name="total_nonzero")
        m.d.comb += nonzero.eq(total.any())
        lane = Lane(
            # A zero total is -0 only if all products are negative, that is, if all are -0.
            # Products that cancel have both signs.
            sign=Mux(nonzero & ~special, below, minus),
            exponent=nonzero,
            significand=magnitude,
            fraction=self.magnitude_bits - 2,
            nan=nan,
            inf=special,
        )
        c = stages.cross("fixed", stages.cross("products", self.c, "products_c"), "fixed_c")
        core = DotCore(
            m,
            geometry=self.geometry,
            rounding=spec.result.rounding,
            nan_code=spec.nan_code,
            stages=stages,
            multiplier=self.multiplier,
            zero=spec.result.zero,
        )
        m.d.comb += self.d.eq(core.build([lane], unpack(m, c, spec.output, name="c")))
        return m

    def _product(
        self, m: Module, stages: PipelineStages, a: UnpackedCode, b: UnpackedCode, *, name: str
    ) -> Lane:
        """Return the exact product; its exponent is its distance from the lowest position."""
        bits = self.largest_shift.bit_length()
        distance = Signal(bits, name=f"{name}_distance")
        m.d.comb += distance.eq(a.exponent + b.exponent - 2)
        word = multiply(m, a.significand, b.significand, name=name, multiplier=self.multiplier)

        def cross(value: Value, what: str) -> Signal:
            return stages.cross("products", value, f"{name}_{what}")

        return Lane(
            sign=cross(a.sign ^ b.sign, "sign"),
            exponent=cross(distance, "shift"),
            significand=cross(word, "word"),
            fraction=0,
            nan=cross(a.nan | b.nan | (a.inf & b.zero) | (a.zero & b.inf), "nan"),
            inf=cross(a.inf | b.inf, "inf"),
        )

    def _total(self, m: Module, products: list[Lane]) -> Signal:
        """Return the signed sum of all products at their absolute positions.

        Negations work as in ``hdl.fp.core.dotcore``: an inverted word under an inverted sign bit,
        ones in free columns of the tree, and one constant that corrects all inverted signs.
        """
        bits, width = self.product_bits, self.magnitude_bits + 1
        rows: list[CarrySaveRow] = []
        for k, product in enumerate(products):
            word = Cat(product.significand, Const(0, bits - len(product.significand)))
            for bit, select in enumerate(product.exponent):
                stage = Signal(bits, name=f"p{k}_by{1 << bit}")
                moved = Cat(Const(0, 1 << bit), word)[:bits]
                m.d.comb += stage.eq(Mux(select, moved, word))
                word = stage
            row = Signal(bits + 1, name=f"p{k}_term")
            m.d.comb += row.eq(Cat(word ^ product.sign.replicate(bits), ~product.sign))
            rows.append(CarrySaveRow(value=row, lsb=0))
        # An inverted sign bit ~s has the value (1 - s)·2**bits, which is 2**bits too much.
        constant = -(len(products) << bits) % (1 << width)
        rows.append(CarrySaveRow(value=Const(constant, width), lsb=0))
        ones = [product.sign for product in products]
        if self.multiplier == "dsp":
            rows, ones = add_plainly(m, rows, width=width, target=2, name="fixed", ones=ones)
        else:
            rows, ones = reduce_rows(m, rows, width=width, name="fixed", ones=ones)
        total = Signal(width, name="total_fixed")
        m.d.comb += total.eq(add_rows(m, rows, width=width, carry_in=ones[0] if ones else None))
        return total

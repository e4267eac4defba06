"""The exact dot product: products summed in fixed point over their whole range, rounded once."""

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from vitruvian.golden.fp.spec import DotSpec
from vitruvian.validate import one_of

from .carrysave import Row, add_plainly, add_rows, reduce_rows
from .core import DotCore, Geometry, Lane
from .multiply import check_multiplier, multiply
from .pipeline import Cuts
from .unpack import Unpacked, unpack

__all__ = ["MAX_SUM_BITS", "ExactDotProduct"]

#: Where the RTL stops: the fixed-point sum of FP16 products needs some 85 bits, of BF16 over 520.
MAX_SUM_BITS = 128

#: The places that are registered at each pipeline depth; ``sum`` and ``total`` are the back end's.
_PLACES: dict[int, tuple[str, ...]] = {
    0: (),
    1: ("fixed",),
    2: ("fixed", "sum"),
    3: ("products", "fixed", "sum"),
    4: ("products", "fixed", "sum", "total"),
}


class ExactDotProduct(wiring.Component):
    """``D = C + sum(A[k] * B[k])`` without a window, bit for bit as ``golden.fp.fused_dot``.

    Every product is shifted to its absolute position and added in carry-save form. The total goes
    to the back end of :class:`~hdl.fp.dot.DotProduct` as one lane of constant exponent, under a
    window that makes the sum with C correctly rounded: the argument is that of
    ``golden.fp.spec.ieee_window``, with the total in the place of the product of two subnormals.

    Parameters
    ----------
    spec : DotSpec
        With ``window=None`` and ``rounding="RNE"``, as preset ``exact`` gives it.
    pipeline : int
        Register ranks, 0 (combinational) to 4.
    multiplier : {"booth", "dsp"}
        Booth rows and carry-save trees, or ``*`` and ``+``, which an FPGA has blocks for.

    Members
    -------
    a, b : In(ArrayLayout(storage_bits, k))
        Codes of the operands.
    c : In(output.storage_bits)
        Code of the addend.
    d : Out(output.storage_bits)
        Code of the result.

    Latency
    -------
    ``latency = pipeline`` cycles, one result a cycle; it never stalls and has no valid bit.

    Raises
    ------
    ValueError
        For a spec with a window or another rounding, for operands whose products span more than
        ``MAX_SUM_BITS`` bits (BF16, TF32 and wider), and for a pipeline depth or multiplier that
        does not exist.
    """

    if TYPE_CHECKING:
        a: data.View
        b: data.View
        c: Signal
        d: Signal

    def __init__(self, *, spec: DotSpec, pipeline: int = 0, multiplier: str = "booth"):
        if spec.window is not None:
            raise ValueError(f"window must be None, not {spec.window!r}; use DotProduct")
        if spec.rounding != "RNE" or spec.emax_floor is not None:
            raise ValueError("rounding must be RNE without emax_floor, as in preset exact")
        one_of("pipeline", pipeline, tuple(_PLACES))
        self.multiplier = check_multiplier(multiplier)
        if not spec.output.has_infinity or spec.output.storage_shift:
            raise ValueError(f"output must be fp16, bf16, fp32 or fp64, not {spec.output.name!r}")
        self.spec, self.pipeline, self.latency = spec, pipeline, pipeline
        if self.magnitude_bits > MAX_SUM_BITS:
            names = " x ".join(dict.fromkeys((spec.input.name, spec.input_b.name)))
            raise ValueError(
                f"input must be fp8e4m3, fp8e5m2 or fp16 (a sum of at most {MAX_SUM_BITS} bits), "
                f"not {names!r}, whose sum of {spec.k} products spans {self.magnitude_bits} bits"
            )
        super().__init__(
            {
                "a": In(data.ArrayLayout(spec.input.storage_bits, spec.k)),
                "b": In(data.ArrayLayout(spec.input_b.storage_bits, spec.k)),
                "c": In(spec.output.storage_bits),
                "d": Out(spec.output.storage_bits),
            }
        )

    @property
    def largest_shift(self) -> int:
        """Positions of a product: biased exponents add up to 2 at least."""
        a, b = self.spec.input, self.spec.input_b
        return a.emax + a.bias + b.emax + b.bias - 2

    @property
    def product_bits(self) -> int:
        """A product at its absolute position."""
        a, b = self.spec.input, self.spec.input_b
        return a.significand_bits + b.significand_bits + self.largest_shift

    @property
    def magnitude_bits(self) -> int:
        """The sum of K products without its sign."""
        return self.product_bits + (self.spec.k - 1).bit_length()

    @property
    def geometry(self) -> Geometry:
        """The back end's widths: one lane whose exponent is 1 on a scale of its own."""
        a, b, out = self.spec.input, self.spec.input_b, self.spec.output
        fraction = self.magnitude_bits - 2
        lowest = a.emin - a.fraction_bits + b.emin - b.fraction_bits
        return Geometry(
            lanes=1,
            window=fraction + out.fraction_bits + 2,
            sticky=True,
            output=out,
            result_bits=self.spec.result_bits,
            exponent_min=1,
            exponent_max=1,
            offset=lowest + fraction + out.bias - 1,
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        spec = self.spec
        cuts = Cuts(m, _PLACES[self.pipeline])
        products = [
            self._product(
                m,
                cuts,
                unpack(m, Value.cast(self.a[k]), spec.input, name=f"a{k}"),
                unpack(m, Value.cast(self.b[k]), spec.input_b, name=f"b{k}"),
                name=f"p{k}",
            )
            for k in range(spec.k)
        ]
        total = cuts.cross("fixed", self._total(m, products), "fixed_total")
        positive = Cat(*[p.inf & ~p.sign for p in products]).any()
        negative = Cat(*[p.inf & p.sign for p in products]).any()
        nan = Cat(*[p.nan for p in products]).any() | (positive & negative)
        minus = Mux(positive | negative, negative, Cat(*[p.sign for p in products]).all())
        special = cuts.cross("fixed", positive | negative | nan, "fixed_special")
        nan = cuts.cross("fixed", nan, "fixed_nan")
        minus = cuts.cross("fixed", minus, "fixed_minus")

        below = total[-1]
        magnitude = Signal(self.magnitude_bits, name="total_magnitude")
        m.d.comb += magnitude.eq((total[:-1] ^ below.replicate(self.magnitude_bits)) + below)
        nonzero = Signal(name="total_nonzero")
        m.d.comb += nonzero.eq(total.any())
        lane = Lane(
            # Of zeros only, it is negative if all products are; cancellation has both signs.
            sign=Mux(nonzero & ~special, below, minus),
            exponent=nonzero,
            significand=magnitude,
            fraction=self.magnitude_bits - 2,
            nan=nan,
            inf=special,
        )
        c = cuts.cross("fixed", cuts.cross("products", self.c, "products_c"), "fixed_c")
        core = DotCore(
            m,
            geometry=self.geometry,
            rounding=spec.rounding,
            nan_code=spec.nan_code,
            cuts=cuts,
            multiplier=self.multiplier,
            zero=spec.zero,
        )
        m.d.comb += self.d.eq(core.build([lane], unpack(m, c, spec.output, name="c")))
        return m

    def _product(self, m: Module, cuts: Cuts, a: Unpacked, b: Unpacked, *, name: str) -> Lane:
        """The exact product; its exponent is the distance from the lowest position."""
        bits = self.largest_shift.bit_length()
        distance = Signal(bits, name=f"{name}_distance")
        m.d.comb += distance.eq(a.exponent + b.exponent - 2)
        word = multiply(m, a.significand, b.significand, name=name, multiplier=self.multiplier)

        def cross(value: Value, what: str) -> Signal:
            return cuts.cross("products", value, f"{name}_{what}")

        return Lane(
            sign=cross(a.sign ^ b.sign, "sign"),
            exponent=cross(distance, "shift"),
            significand=cross(word, "word"),
            fraction=0,
            nan=cross(a.nan | b.nan | (a.inf & b.zero) | (a.zero & b.inf), "nan"),
            inf=cross(a.inf | b.inf, "inf"),
        )

    def _total(self, m: Module, products: list[Lane]) -> Signal:
        """The signed sum of all products at their positions.

        A negative product is the complement of its word under an inverted sign; the ones that
        complete the complements fill free columns of the tree, and one constant makes up for the
        inverted signs.
        """
        bits, width = self.product_bits, self.magnitude_bits + 1
        rows: list[Row] = []
        for k, product in enumerate(products):
            word = Cat(product.significand, Const(0, bits - len(product.significand)))
            for bit, select in enumerate(product.exponent):
                stage = Signal(bits, name=f"p{k}_by{1 << bit}")
                moved = Cat(Const(0, 1 << bit), word)[:bits]
                m.d.comb += stage.eq(Mux(select, moved, word))
                word = stage
            row = Signal(bits + 1, name=f"p{k}_term")
            m.d.comb += row.eq(Cat(word ^ product.sign.replicate(bits), ~product.sign))
            rows.append(Row(value=row, lsb=0))
        constant = -(len(products) << bits) % (1 << width)
        rows.append(Row(value=Const(constant, width), lsb=0))
        ones = [product.sign for product in products]
        if self.multiplier == "dsp":
            rows, ones = add_plainly(m, rows, width=width, target=2, name="fixed", ones=ones)
        else:
            rows, ones = reduce_rows(m, rows, width=width, name="fixed", ones=ones)
        total = Signal(width, name="total_fixed")
        m.d.comb += total.eq(add_rows(m, rows, width=width, carry_in=ones[0] if ones else None))
        return total

"""What a fused dot product computes, as a parameter object, and the presets of real machines."""

from dataclasses import dataclass, field

from vitruvian.golden.fp.formats import FORMATS, FloatFormat, as_format
from vitruvian.validate import check_int

__all__ = ["PRESETS", "DotSpec", "IntDotSpec", "Preset", "ieee_window"]


def ieee_window(input, output, input_b=None) -> int:
    """Window F that makes K = 1, floor with sticky, RNE a correctly rounded fused multiply-add.

    F = f_a + f_b + f_o + 2, with f the fraction bits of the operands and of the output; but
    F = max(f_a + f_b, max(f_a, f_b) + f_o + 2) where the product of two subnormals lies below
    every C (emin_a + emin_b < emin_o, as in fp32, fp64, bf16, tf32 and fp16 to fp16).

    Parameters
    ----------
    input, output, input_b : FloatFormat or str
        `input_b` is the second operand's format, that of the first by default.

    Notes
    -----
    Units: q = 2^(E_max − F). A sum known as n·q plus a sticky bit (something in (0, q)) is rounded
    correctly when the result's last place is at least 2q: then the half-way point is a multiple
    of q, and the sticky bit says on which side of it the sum lies. It is trivially correct when
    nothing was cut. So for each case: either nothing is cut or the last place is ≥ 2q.

    *Case 1, E_max = E_p ≥ E_c.* The product's last bit has weight 2^(E_p − f_a − f_b) ≥ q: it is
    not cut. C's has weight 2^(E_c − f_o): C is cut only if E_c ≤ E_max − F + f_o − 1
    = E_p − f_a − f_b − 3, that is |C| < 2^(E_p − f_a − f_b − 2). The product is not normalised:
    two subnormals leave up to f_a + f_b zeros above its leading one, so all that is known is
    |P| ≥ 2^(E_p − f_a − f_b). Then |P + C| > ¾ · 2^(E_p − f_a − f_b): the sum's exponent is at
    least E_p − f_a − f_b − 1 and its last place at least 2^(E_p − f_a − f_b − 1 − f_o) = 2q.

    *Case 2, E_max = E_c > E_p.* C's last bit has weight 2^(E_c − f_o) ≥ q: C is not cut. The
    product is cut only if E_p − f_a − f_b < E_c − F, that is E_p ≤ E_c − f_o − 3, and since
    |P| < 2^(E_p + 2), |P| < 2^(E_c − f_o − 1), half of C's last place. If C is normal, the sum's
    exponent is at least E_c − 1 and its last place 2^(E_c − 1 − f_o) ≥ 2q, as F ≥ f_o + 2. If C is
    subnormal, E_c = emin and no result has a last place below 2^(emin − f_o) = 2^(E_c − f_o) > 2q.

    *Case 3, one of them is zero.* E_max is the other's exponent and nothing is cut.

    *One bit less is too few* where C reaches down to the witness: fp16 to fp32 (F = 45),
    P = 2^−24 · 2^−24 = 2^−48 with E_p = −28, and C = −(1 + 5 · 2^−23) · 2^−51. The sum lies in
    (2^−49, 2^−48), its last place is 2^−72, and C's last bit is a quarter of that. With F = 44, q
    is the last place itself: what is cut becomes a sticky bit of weight q/2, just like a tie.

    *The narrow rule.* Where emin_a + emin_b < emin_o, a product of two subnormals meets only C = 0
    (nothing is cut, F ≥ f_a + f_b) or a C that dominates (case 2). In case 1 at most one operand is
    subnormal, |P| ≥ 2^(E_p − max(f_a, f_b)), and case 1 holds with max(f_a, f_b) in the place of
    f_a + f_b. fp32 needs 48 bits, not 71; fp64 106, not 158.

    For K > 1 at most K of the K + 1 terms are cut, each by less than q: the result is within
    half a last place + K·q of the exact sum.
    """
    a, output = as_format(input, "input"), as_format(output, "output")
    b = a if input_b is None else as_format(input_b, "input_b")
    product_fraction = a.fraction_bits + b.fraction_bits
    if a.emin + b.emin < output.emin:
        leading_zeros = max(a.fraction_bits, b.fraction_bits)
        return max(product_fraction, leading_zeros + output.fraction_bits + 2)
    return product_fraction + output.fraction_bits + 2


@dataclass(frozen=True, init=False)
class DotSpec:
    """The fused dot product D = C + Σ_{k<K} A_k·B_k, defined to the bit.

    1. E_max is the largest exponent E_a + E_b of a nonzero product (not normalised), E_c of a
       nonzero C, and `emax_floor`.
    2. Every term is cut to a multiple of q = 2^(E_max − window).
    3. The cut terms are added exactly; the sum is normalised and rounded once.

    Parameters
    ----------
    input, output : FloatFormat or str
        Format of A and B; format of C and D.
    input_b : FloatFormat or str, optional
        Format of B where it is another one than A's.
    k : int
        Terms of a block, at least 1. More terms are done block after block, D the next C.
    window : int or None
        Fraction bits F kept below E_max. None: no window, nothing is cut.
    truncate : str
        "magnitude": magnitudes are chopped and what is cut is forgotten. "floor": two's complement
        values are chopped, and one sticky bit, the OR of everything cut from any term, joins the
        sum as a bit of weight q/2: the number normalised and rounded is 2·Σ + sticky, in q/2.
    rounding : str
        "RNE" or "RZ". Overflow gives infinity under both (NaN where the format has none).
    result_bits : int, optional
        Fraction bits of the result, all of the output format's by default; the bits below are
        zero. A subnormal result is a multiple of 2^(emin − result_bits).
    emax_floor : int, optional
        Lower bound on E_max.
    nan : int, optional
        The code every NaN result has; the output format's canonical NaN by default.
    zero : str
        Sign of a zero result. "ieee": a sum that is exactly zero is +0, but −0 where C and every
        product are zeros with the sign −; a negative sum that rounds to zero is −0. "positive":
        every zero is +0, as on the machines of `PRESETS`.

    Raises
    ------
    TypeError, ValueError
        For a parameter outside its range, and for a `nan` that is not a NaN of the output format.
    """

    input: FloatFormat
    output: FloatFormat
    k: int
    window: int | None
    truncate: str
    rounding: str
    result_bits: int
    emax_floor: int | None
    nan: int | None
    zero: str
    input_b: FloatFormat

    def __init__(
        self,
        *,
        input,
        output,
        k,
        window,
        truncate="floor",
        rounding="RNE",
        result_bits=None,
        emax_floor=None,
        nan=None,
        zero="ieee",
        input_b=None,
    ):
        input, output = as_format(input, "input"), as_format(output, "output")
        input_b = input if input_b is None else as_format(input_b, "input_b")
        check_int("k", k, 1)
        if window is not None:
            check_int("window", window, 1)
        if truncate not in ("floor", "magnitude"):
            raise ValueError(f"truncate must be 'floor' or 'magnitude', not {truncate!r}")
        if rounding not in ("RNE", "RZ"):
            raise ValueError(f"rounding must be 'RNE' or 'RZ', not {rounding!r}")
        if result_bits is None:
            result_bits = output.fraction_bits
        check_int("result_bits", result_bits, 1, output.fraction_bits)
        if emax_floor is not None:
            check_int("emax_floor", emax_floor, -(1 << 15), 1 << 15)
        if nan is not None:
            check_int("nan", nan, 0, (1 << output.storage_bits) - 1)
            if not output.is_nan(nan):
                raise ValueError(f"nan must be a NaN code of {output.name}, not {nan:#x}")
        if zero not in ("ieee", "positive"):
            raise ValueError(f"zero must be 'ieee' or 'positive', not {zero!r}")
        for name, value in (
            ("input", input),
            ("output", output),
            ("k", k),
            ("window", window),
            ("truncate", truncate),
            ("rounding", rounding),
            ("result_bits", result_bits),
            ("emax_floor", emax_floor),
            ("nan", nan),
            ("zero", zero),
            ("input_b", input_b),
        ):
            object.__setattr__(self, name, value)

    @property
    def nan_code(self):
        """The code of a NaN result."""
        return self.output.canonical_nan if self.nan is None else self.nan


@dataclass(frozen=True, kw_only=True)
class IntDotSpec:
    """The integer dot product D = C + Σ_{k<K} A_k·B_k of 8-bit operands in 32 bits.

    Parameters
    ----------
    k : int
        Terms of a block, at least 1.
    signed_a, signed_b : bool
        int8 or uint8.
    saturate : bool
        Whether a block's exact sum, C included, is clipped to int32 instead of wrapping.

    Raises
    ------
    TypeError, ValueError
        For a parameter outside its range.
    """

    k: int
    signed_a: bool = True
    signed_b: bool = True
    saturate: bool = False

    def __post_init__(self):
        check_int("k", self.k, 1)
        for name in ("signed_a", "signed_b", "saturate"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be True or False, not {getattr(self, name)!r}")


@dataclass(frozen=True)
class _Row:
    """One line of a preset: which formats, and the parameters that go with them."""

    inputs: tuple
    output: str
    k: int
    window: int
    rounding: str
    result_bits: int

    def spec(self, a, b, k, floor):
        return DotSpec(
            input=a,
            input_b=b,
            output=self.output,
            k=self.k if k is None else k,
            window=self.window,
            truncate="magnitude",
            rounding=self.rounding,
            result_bits=self.result_bits,
            emax_floor=floor,
            nan=0x7FFF if self.output == "fp16" else 0x7FFFFFFF,
            zero="positive",
        )


@dataclass(frozen=True)
class Preset:
    """A named machine (or standard) that gives a `DotSpec` for a choice of formats.

    Every row of a machine sets `emax_floor` (of its generation, by output format), the NaN code
    and `zero="positive"`. The rows were held against measured results of V100, A100, A2, L40S
    (Ada), H100, H200 and B200, fp16 results included; known from an executed model only are the
    sign of zero, the floors (but for one measured H100 vector), and these rows:

    - fp8 of `h100` is that of its `wgmma` instruction: measured with C = 0 and fp32 results, the
      fp16 results not.
    - fp8 of `b200` is that of its `tcgen05` instruction: 25 fraction bits and a full fp32 result,
      not Hopper's 13.

    The fp8 `mma.sync` of Hopper with fp16 results and of Blackwell, which adds C last and rounds
    once more, has no preset yet, nor have other machines.
    """

    name: str
    description: str
    rows: tuple = field(default=(), repr=False)
    floors: tuple = field(default=(), repr=False)  # emax_floor by the output's name

    @property
    def inputs(self) -> tuple:
        """Names of the input formats."""
        if not self.rows:
            return tuple(FORMATS)
        return tuple(dict.fromkeys(name for row in self.rows for name in row.inputs))

    @property
    def combinations(self) -> tuple:
        """Every pair of names (input, output)."""
        if not self.rows:
            return tuple((i, o) for i in FORMATS for o in self._wide_outputs)
        return tuple((i, row.output) for row in self.rows for i in row.inputs)

    @property
    def _wide_outputs(self):
        return tuple(FORMATS) if self.name == "exact" else ("fp16", "fp32", "fp64")

    def spec(self, input, output="fp32", *, k=None, input_b=None) -> DotSpec:
        """Return the parameters for these formats.

        Parameters
        ----------
        input, output, input_b : FloatFormat or str
            `input_b` is for the two fp8 formats mixed, and for any mix in `ieee` and `exact`.
        k : int, optional
            Terms of a block; the machine's own by default.

        Raises
        ------
        ValueError
            When the preset has no such combination.
        """
        a, out = as_format(input, "input"), as_format(output, "output")
        b = a if input_b is None else as_format(input_b, "input_b")
        if self.rows:
            for row in self.rows:
                if (
                    a.name in row.inputs
                    and b.name in row.inputs
                    and out.name == row.output
                    and (a == b or a.storage_bits == b.storage_bits == 8)
                ):
                    return row.spec(a, b, k, dict(self.floors)[row.output])
        elif out.name in self._wide_outputs:
            if k is None:
                k = {8: 16, 16: 8}.get(max(a.storage_bits, b.storage_bits), 4)
            window = None if self.name == "exact" else ieee_window(a, out, b)
            return DotSpec(input=a, input_b=b, output=out, k=k, window=window)
        allowed = ", ".join(f"{i} -> {o}" for i, o in self.combinations)
        pair = a.name if a == b else f"{a.name} x {b.name}"
        raise ValueError(
            f"formats of preset {self.name} must be one of {allowed}, "
            f"not {pair + ' -> ' + out.name!r}"
        )


_FP8 = ("fp8e4m3", "fp8e5m2")
_V100 = (
    _Row(("fp16",), "fp32", 4, 23, "RZ", 23),
    _Row(("fp16",), "fp16", 4, 23, "RNE", 10),
)
_A100 = (
    _Row(("fp16", "bf16"), "fp32", 8, 24, "RZ", 23),
    _Row(("fp16",), "fp16", 8, 24, "RNE", 10),
    _Row(("tf32",), "fp32", 4, 24, "RZ", 23),
)
_ADA = (
    *_A100,
    _Row(_FP8, "fp32", 16, 13, "RZ", 13),
    _Row(_FP8, "fp16", 16, 13, "RNE", 10),
)
_HOPPER = (
    _Row(("fp16", "bf16"), "fp32", 16, 25, "RZ", 23),
    _Row(("fp16",), "fp16", 16, 25, "RNE", 10),
    _Row(("tf32",), "fp32", 8, 25, "RZ", 23),
)
_H100 = (
    *_HOPPER,
    _Row(_FP8, "fp32", 32, 13, "RZ", 13),
    _Row(_FP8, "fp16", 32, 13, "RNE", 10),
)
_B200 = (
    *_HOPPER,
    _Row(_FP8, "fp32", 32, 25, "RZ", 23),
    _Row(_FP8, "fp16", 32, 25, "RNE", 10),
)
# The exponent that a generation's hardware gives to zero terms
_VOLTA_FLOORS = (("fp32", -131), ("fp16", -19))
_AMPERE_FLOORS = (("fp32", -132), ("fp16", -20))
_HOPPER_FLOORS = (("fp32", -133), ("fp16", -21))

PRESETS = {
    p.name: p
    for p in (
        Preset("v100", "NVIDIA V100", _V100, _VOLTA_FLOORS),
        Preset("a100", "NVIDIA A100", _A100, _AMPERE_FLOORS),
        Preset("a2", "NVIDIA A2, as the A100", _A100, _AMPERE_FLOORS),
        Preset("ada", "NVIDIA Ada (L40S), as the A100, and fp8", _ADA, _AMPERE_FLOORS),
        Preset("h100", "NVIDIA H100 and H200 (fp8: wgmma)", _H100, _HOPPER_FLOORS),
        Preset("b200", "NVIDIA B200, as the H100 (fp8: tcgen05)", _B200, _HOPPER_FLOORS),
        Preset("ieee", "K = 1 is IEEE 754 fusedMultiplyAdd; wide window, rounded once"),
        Preset("exact", "no window: the exact sum, rounded once"),
    )
}

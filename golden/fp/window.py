"""The window of a correctly rounded fused multiply-add, with the proof that it is enough."""

from vitruvian.golden.fp.formats import FloatFormat, as_format


def ieee_window(
    input: FloatFormat | str, output: FloatFormat | str, input_b: FloatFormat | str | None = None
) -> int:
    """Return the window F with which K = 1 is a correctly rounded fused multiply-add.

    The claim holds for floor truncation with a sticky bit and rounding RNE. With f the fraction
    bits of an operand or of the output, F = f_a + f_b + f_o + 2. If the product of two subnormals
    lies below every nonzero C (emin_a + emin_b < emin_o, as for fp32, fp64, bf16, tf32, and fp16
    to fp16), F = max(f_a + f_b, max(f_a, f_b) + f_o + 2) is enough.

    Parameters
    ----------
    input, output : FloatFormat or str
        Format of A; format of C and D.
    input_b : FloatFormat or str, optional
        Format of B, by default that of A.

    Returns
    -------
    int
        Fraction bits F that are kept below E_max.

    Raises
    ------
    TypeError, ValueError
        If a format is not a ``FloatFormat`` or the name of one.

    Notes
    -----
    Let q = 2^(E_max − F) be the unit. A sum that is known as n·q plus a sticky bit (something in
    (0, q)) is rounded correctly if the result's last place is at least 2q: then the half-way point
    is a multiple of q, and the sticky bit tells on which side of it the sum lies. If nothing was
    cut, the rounding is trivially correct. So each case below shows that either nothing is cut or
    the last place is at least 2q.

    *Case 1, E_max = E_p ≥ E_c.* The product's last bit has weight 2^(E_p − f_a − f_b) ≥ q, so the
    product is not cut. C's last bit has weight 2^(E_c − f_o), so C is cut only if
    E_c ≤ E_max − F + f_o − 1 = E_p − f_a − f_b − 3, that is |C| < 2^(E_p − f_a − f_b − 2). The
    product is not normalised: two subnormals leave up to f_a + f_b zeros above its leading one, so
    all that is known is |P| ≥ 2^(E_p − f_a − f_b). Then |P + C| > ¾ · 2^(E_p − f_a − f_b), the
    sum's exponent is at least E_p − f_a − f_b − 1, and its last place is at least
    2^(E_p − f_a − f_b − 1 − f_o) = 2q.

    *Case 2, E_max = E_c > E_p.* C's last bit has weight 2^(E_c − f_o) ≥ q, so C is not cut. The
    product is cut only if E_p − f_a − f_b < E_c − F, that is E_p ≤ E_c − f_o − 3. Since
    |P| < 2^(E_p + 2), |P| < 2^(E_c − f_o − 1), which is half of C's last place. If C is normal, the
    sum's exponent is at least E_c − 1 and its last place 2^(E_c − 1 − f_o) ≥ 2q, as F ≥ f_o + 2. If
    C is subnormal, E_c = emin and no result has a last place below
    2^(emin − f_o) = 2^(E_c − f_o) > 2q.

    *Case 3, the product or C is zero.* E_max is the other's exponent, and nothing is cut.

    *One bit less is not enough* if C can be as small as in this example: fp16 to fp32 (F = 45),
    P = 2^−24 · 2^−24 = 2^−48 with E_p = −28, and C = −(1 + 5 · 2^−23) · 2^−51. The sum lies in
    (2^−49, 2^−48), its last place is 2^−72, and C's last bit is a quarter of that. With F = 44, q
    is the last place itself, and the part that is cut becomes a sticky bit of weight q/2, which
    looks exactly like a tie.

    *The narrow rule.* If emin_a + emin_b < emin_o, a product of two subnormals meets only C = 0
    (nothing is cut, F ≥ f_a + f_b) or a C that dominates (case 2). So in case 1 at most one operand
    is subnormal, |P| ≥ 2^(E_p − max(f_a, f_b)), and case 1 holds with max(f_a, f_b) in place of
    f_a + f_b. fp32 needs 48 bits instead of 71, and fp64 106 instead of 158.

    For K > 1, at most K of the K + 1 terms are cut, each by less than q: the result differs from
    the exact sum by at most half a last place + K·q.

    Examples
    --------
    >>> ieee_window("fp16", "fp32")
    45
    """
    a, output = as_format(input, "input"), as_format(output, "output")
    b = a if input_b is None else as_format(input_b, "input_b")
    product_fraction = a.fraction_bits + b.fraction_bits
    if a.emin + b.emin < output.emin:
        leading_zeros = max(a.fraction_bits, b.fraction_bits)
        return max(product_fraction, leading_zeros + output.fraction_bits + 2)
    return product_fraction + output.fraction_bits + 2

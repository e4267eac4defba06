"""A schedule by which narrow multipliers form a wide product, on single integers.

A significand is cut into n limbs, and a product takes n steps of n limb products. This module
states the schedule of Zhang 2024, chapter 2, in which the limbs of B rotate between the lanes. A
unit may form the same limb products in another order (docs/decisions/0005); the fused sum does not
depend on it, because every limb product is exact.
"""


def split(significand: int, *, limbs: int, bits: int) -> list[int]:
    """Split an unsigned integer into ``limbs`` limbs of ``bits`` bits, least significant first.

    Parameters
    ----------
    significand : int
        At least 0, of at most ``limbs * bits`` bits.
    limbs : int
        Number of limbs.
    bits : int
        Width of a limb, which is the width of the multipliers.

    Raises
    ------
    ValueError
        If the integer has more than ``limbs * bits`` bits.

    Examples
    --------
    >>> split(0x123, limbs=2, bits=8)
    [35, 1]
    """
    if significand < 0 or significand >> limbs * bits:
        raise ValueError(f"significand must have at most {limbs * bits} bits, not {significand!r}")
    return [significand >> bits * i & (1 << bits) - 1 for i in range(limbs)]


def limb_pairs(step: int, limbs: int) -> list[tuple[int, int]]:
    """Return the numbers of the limbs, of A and of B, that each lane multiplies in a step.

    Examples
    --------
    >>> limb_pairs(1, 2)
    [(0, 1), (1, 0)]
    """
    # With i + j = step modulo n, every pair of limbs occurs in exactly one step.
    return [(lane, (step - lane) % limbs) for lane in range(limbs)]


def step_shifts(step: int, limbs: int, bits: int) -> list[int]:
    """Return the shift of each lane's product in a step, for limbs of ``bits`` bits.

    Examples
    --------
    >>> step_shifts(0, 2, 12)
    [0, 24]
    """
    # i + j is either ``step`` or ``step + limbs``, so a lane needs only two shift amounts.
    return [bits * (i + j) for i, j in limb_pairs(step, limbs)]


def product_by_steps(a: int, b: int, *, limbs: int, bits: int) -> int:
    """Return the product of two significands, formed in ``limbs`` steps of ``limbs`` products.

    Parameters
    ----------
    a, b : int
        Significands of at most ``limbs * bits`` bits.
    limbs, bits : int
        Number and width of the limbs.

    Raises
    ------
    ValueError
        If a significand has more than ``limbs * bits`` bits.

    Examples
    --------
    >>> product_by_steps(1000, 2000, limbs=2, bits=12)
    2000000
    """
    x, y = split(a, limbs=limbs, bits=bits), split(b, limbs=limbs, bits=bits)
    total = 0
    for step in range(limbs):
        shifts = step_shifts(step, limbs, bits)
        for (i, j), shift in zip(limb_pairs(step, limbs), shifts, strict=True):
            total += x[i] * y[j] << shift
    return total

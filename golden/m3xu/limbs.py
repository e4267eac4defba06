"""Limbs and steps: how a wide product comes out of narrow multipliers, one integer at a time.

This is the schedule of the hardware in its plainest form, to be read and to be tested against. The
fused sum does not depend on it, for every limb product is exact.
"""

__all__ = ["limb_pairs", "product_by_steps", "split", "step_shifts"]


def split(significand, *, limbs, bits):
    """Cut an unsigned integer into `limbs` pieces of `bits`, the least significant first.

    Raises
    ------
    ValueError
        If it does not fit.
    """
    if significand < 0 or significand >> limbs * bits:
        raise ValueError(f"significand must have at most {limbs * bits} bits, not {significand!r}")
    return [significand >> bits * i & (1 << bits) - 1 for i in range(limbs)]


def limb_pairs(step, limbs):
    """For each lane of an element in this step, (limb of A, limb of B)."""
    return [(lane, (step - lane) % limbs) for lane in range(limbs)]


def step_shifts(step, limbs, bits):
    """Weight of each lane's product in this step, as a shift; there are at most two amounts."""
    return [bits * (i + j) for i, j in limb_pairs(step, limbs)]


def product_by_steps(a, b, *, limbs, bits):
    """The product of two significands, from `limbs` steps of `limbs` narrow products each."""
    x, y = split(a, limbs=limbs, bits=bits), split(b, limbs=limbs, bits=bits)
    total = 0
    for step in range(limbs):
        shifts = step_shifts(step, limbs, bits)
        for (i, j), shift in zip(limb_pairs(step, limbs), shifts, strict=True):
            total += x[i] * y[j] << shift
    return total

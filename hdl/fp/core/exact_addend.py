"""Rules in which C is added exactly to the exact sum of the truncated products (Gaudi 2)."""

from dataclasses import replace

from .geometry import Geometry

#: The boundaries with registers in the sum of the products, and in the addition of C, at each
#: pipeline depth.
AFTER_PIPELINES: dict[int, tuple[tuple[str, ...], tuple[str, ...]]] = {
    0: ((), ()),
    1: (("sum",), ()),
    2: (("sum",), ("product",)),
    3: (("product", "sum"), ("product",)),
    4: (("product", "sum"), ("product", "sum")),
    5: (("product", "sum"), ("product", "sum", "normalised")),
    6: (("product", "sum"), ("product", "sum", "total", "normalised")),
}


def geometry_after(products: Geometry) -> Geometry:
    """Return the widths of the addition of C to a sum of products, its only lane.

    The window is wide enough for a correctly rounded sum. ``golden.fp.window.ieee_window`` gives
    the argument, which holds with the sum of the products in place of the product of two subnormal
    numbers: a nonzero sum is at least one unit of its last place.

    Parameters
    ----------
    products : Geometry
        The widths of the sum of the products.
    """
    # A lane has two integer bits; all further ones of the sum are in its exponent.
    above = products.integer_bits - 2
    fraction = products.magnitude_bits - 2
    return replace(
        products,
        lanes=1,
        products=None,
        addend=True,
        window=fraction + products.output.fraction_bits + 2,
        sticky=True,
        floor=None,
        exponent_min=products.exponent_min + above,
        exponent_max=products.exponent_max + above,
    )

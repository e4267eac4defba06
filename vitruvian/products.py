"""Matrix products on arrays of values: by a matrix unit of this project, or by a machine."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from vitruvian.golden.plans import Plan


def gemm(
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike | None = None,
    *,
    machine: str | None = None,
    plan: "Plan | None" = None,
    **options: Any,
) -> np.ndarray:
    """Return D = C + A·B as a matrix unit or an instruction of a machine computes it, to the bit.

    With a machine, the bits are those of its instruction, repeated along K block after block; a
    library on that machine may order and split the sums otherwise, and then returns other bits:
    those of a plan.

    Parameters
    ----------
    a, b, c : array_like
        Matrices, or stacks of matrices; C is zero by default.
    machine : str, optional
        A machine or a row of ``vitruvian machines``. By default the unit M³XU computes.
    plan : Plan, optional
        How a library computes the product (``vitruvian.plans``), instead of a machine; without C.
    **options
        With a machine, those of ``vitruvian.machines.multiply`` (instruction, input, output,
        scale_a, scale_b, tensor_scale, packed, out, threads, progress); with a plan, those of
        ``vitruvian.plans.multiply`` (bias, scale_a, scale_b, threads); otherwise those of
        ``vitruvian.golden.m3xu.gemm`` (precision, k, multiplier_bits, preset, window).

    Returns
    -------
    ndarray

    Raises
    ------
    UserError
        If the table has no such machine, instruction or formats.
    TypeError, ValueError
        If an option, a type or a shape does not fit.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.full((2, 2), 3, np.float16)
    >>> gemm(x, x, machine="h100")
    array([[18., 18.],
           [18., 18.]], dtype=float32)
    """
    if plan is not None:
        from vitruvian.golden import plans

        if machine is not None or c is not None:
            raise ValueError("machine and c must be None with a plan")
        return plans.multiply(a, b, plan=plan, **options)
    if machine is not None:
        from vitruvian.golden.machines import multiply

        return multiply(a, b, c, machine=machine, **options)
    from vitruvian.golden import m3xu

    return m3xu.gemm(a, b, c, **options)

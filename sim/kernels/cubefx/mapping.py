"""The mapping of Cube-fx to matrix products: merged matrices, and their cost.

References
----------
Tang 2024, §4.3, eq. 4.6 to 4.11.
"""

from dataclasses import dataclass, field

from vitruvian.common.validate import ceil_div, check_int

#: Side s of the Cube, and number of columns of the matrix of logarithms.
SIDE = 16


@dataclass(frozen=True)
class Mapping:
    """The mapping of polynomials of one order to the Cube.

    Attributes
    ----------
    order : int
        Number k of coefficients, those of the powers 0 … k − 1.
    functions : int
        Number j of functions.
    merged : int
        Number t of sequence matrices in a block-diagonal one, 1 … 16. The naive mapping has 1.
    loops : int
        Number L of matrix products over all inputs in each stage (eq. 4.6).
    power_columns : int
        Columns of fractals of a sequence matrix, ⌈k·t / s⌉.
    result_columns : int
        Columns of fractals of the coefficient matrix, ⌈j·t / s⌉.
    """

    order: int
    functions: int
    merged: int = 1
    loops: int = field(init=False)
    power_columns: int = field(init=False)
    result_columns: int = field(init=False)

    def __post_init__(self) -> None:
        check_int("order", self.order, 1)
        check_int("functions", self.functions, 1)
        check_int("merged", self.merged, 1, SIDE)
        object.__setattr__(self, "loops", ceil_div(SIDE, self.merged))
        object.__setattr__(self, "power_columns", ceil_div(self.order * self.merged, SIDE))
        object.__setattr__(self, "result_columns", ceil_div(self.functions * self.merged, SIDE))

    @property
    def mac_count(self) -> int:
        """Steps of the Cube for s² inputs, the Matrix MAC Count M (eq. 4.7 to 4.9)."""
        return self.loops * self.power_columns * (1 + self.result_columns)

    @property
    def moved(self) -> int:
        """Elements of the matrices that are moved for s² inputs, S_z (eq. 4.10)."""
        return SIDE**2 * (1 + self.mac_count)


def best(order: int, functions: int) -> Mapping:
    """Return the mapping with the smallest cost (eq. 4.11).

    The cost M + b·S_z grows with M at any b, so M alone decides. Among equal ones, the mapping with
    the smallest t is returned: it is the naive one if merging gains nothing.

    Raises
    ------
    TypeError, ValueError
        If a number is not an integer of 1 or more.
    """
    mappings = [Mapping(order, functions, merged) for merged in range(1, SIDE + 1)]
    return min(mappings, key=lambda mapping: mapping.mac_count)

"""The text of the driver of matrix products: strips of columns, tiles of rows, and steps of K.

The arrays of a strip stay in the first-level cache. Windowed sums, rounded steps and Tenstorrent's
phases have the same driver.
"""

from vitruvian.golden.sums.decode import indented
from vitruvian.golden.sums.rule import CodeFacts

STRIP = 256  # columns whose working arrays stay in the first-level cache
TILE = 64  # rows of D between two steps
#: The place of column ``j`` in a row. Numba does not look for negative numbers among unsigned ones,
#: which would be a branch in the loop.
AT = "at = np.uint64(start + j)"


def codes(bits: int) -> str:
    """Return the type of a matrix of codes that is only read."""
    return f'types.Array(types.uint{max(bits, 8)}, 2, "C", readonly=True)'


def over_columns(loop: tuple[str, list[str]], *lines: str) -> list[str]:
    """Return a loop over terms, each pass of which computes ``lines`` for all columns.

    The numbers of A are x0, x1 …, those of B y0[at], y1[at] …

    Parameters
    ----------
    loop : tuple of str and list of str
        Its first line, and the indices of the terms of one pass.
    """
    head, terms = loop
    body = [f"x{i}, y{i} = left[{term}], right[{term}]" for i, term in enumerate(terms)]
    body += ["for j in range(n):", *indented([AT, *lines])]
    return [head, *indented(body)]


def driver(
    c: CodeFacts,
    kinds: list[str],
    arguments: list[str],
    real: str,
    step: str,
    arrays: list[str],
    body: list[str],
    views: list[str] | None = None,
) -> str:
    """Return the function ``rows``, which computes rows of D, strip by strip and step by step.

    Parameters
    ----------
    c : CodeFacts
        The encoding of C and D.
    kinds, arguments : list of str
        Types and names of the arrays of the operands, of which the last one has K rows.
    real : str
        Type of C while it is computed.
    step : str
        Number of terms of a step.
    arrays, views : list of str
        Statements that allocate working arrays, and that name parts of the operands.
    body : list of str
        Statements that add terms ``first`` to ``first + step`` to the strip ``own`` of row ``i``,
        which has ``n`` columns from ``start`` on.
    """
    bits = c.storage_bits
    kinds = [*kinds, codes(bits), f"types.uint{bits}[:, ::1]"]
    text = [
        f"z = np.empty(({TILE}, {STRIP}), np.{real})",
        *arrays,
        f"terms, (m, columns) = {arguments[-1]}.shape[0], c.shape",
        f"step = {step}",
        *(views or []),
        f"for start in range(0, columns, {STRIP}):",
        f"    n = min({STRIP}, columns - start)",
        f"    for upper in range(0, m, {TILE}):",
        f"        lower = min(upper + {TILE}, m)",
        "        for i in range(upper, lower):",
        "            addends(c[i, start : start + n], z[i - upper], n)",
        "        for first in range(0, terms, step):",
        "            for i in range(upper, lower):",
        "                own = z[i - upper]",
        *indented(indented(indented(indented(body)))),
        "        for i in range(upper, lower):",
        "            codes(z[i - upper], d[i, start : start + n], n)",
    ]
    lines = [
        f"@numba.njit(types.void({', '.join(kinds)}), cache=True, nogil=True, error_model='numpy')",
        f"def rows({', '.join([*arguments, 'c', 'd'])}):",
        *indented(text),
        "",
    ]
    return "\n".join(lines)

"""Largest errors of ``ops.taylor`` over all finite FP16 inputs, with order 16.

python benchmarks/taylor_errors.py    # the table of docs/units/cubefx.md, about a minute

The error of a result y of a function f is |y − f(x)| / max(1, |f(x)|), in units of 2⁻¹¹.
"""

import warnings

import numpy as np

from vitruvian import ops
from vitruvian.sim.kernels.series.cordic import CIRCULAR, HYPERBOLIC
from vitruvian.sim.kernels.series.functions import FUNCTIONS
from vitruvian.sim.ops.series import METHODS, stated_error


def largest_error(name: str, method: str, x: np.ndarray) -> float:
    """Return the largest error of a function."""
    y = ops.taylor([name], x, method=method)[0].astype(float)
    with np.errstate(all="ignore"):
        exact = FUNCTIONS[name].reference(x.astype(float))
    known = ~np.isnan(exact)
    near, bound = (np.clip(v[known], -65520, 65520) for v in (y, exact))
    return float((np.abs(near - bound) / np.maximum(1, np.abs(bound))).max())


def main() -> None:
    """Print a row for each function."""
    warnings.simplefilter("ignore", UserWarning)
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    x = x[np.isfinite(x)]
    print("| function |", " | ".join(METHODS), "|")
    print("|---|" + "---:|" * len(METHODS))
    for name in FUNCTIONS:
        row = []
        for method in METHODS:
            known = method != "cordic" or name in CIRCULAR + HYPERBOLIC
            row.append(f"{largest_error(name, method, x) * 2**11:.1f}" if known else "")
        print(f"| {name} | {' | '.join(row)} |", flush=True)
    print("| stated |", " | ".join(f"{stated_error(m) * 2**11:g}" for m in METHODS), "|")


if __name__ == "__main__":
    main()

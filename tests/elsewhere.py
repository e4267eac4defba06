"""``make elsewhere``: run the tests that could depend on the machine as other machines would.

    python -m tests.elsewhere --jobs 2 [--only NAME] [TEST ...]

A product of NumPy, a compiled loop and a test's expectation may differ with the processor and with
the number of threads. Each environment below sets what a library reads to choose its code; the
tests must pass in each. The RTL and the tools that build it do not depend on these settings, so
that the tests of the models, the simulators and the command line are enough.
"""

import argparse
import importlib
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]

#: The folders with tests that compute in floating point outside of the RTL.
TESTS = (
    "tests/unit/golden",
    "tests/unit/sim",
    "tests/unit/vitruvian",
    "tests/paper",
    "tests/system/test_selbknn_cli.py",
    "tests/system/test_cubefx_cli.py",
    "tests/system/test_sparse_cli.py",
    "tests/system/test_digits.py",
    "tests/system/test_train_digits.py",
)

_THREADS: tuple[str, ...] = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "MKL_NUM_THREADS",
)


def features() -> tuple[list[str], set[str]]:
    """Return the processor features that NumPy chooses code by, and those that are present."""
    core: Any = importlib.import_module("numpy._core._multiarray_umath")
    return list(core.__cpu_dispatch__), {name for name, on in core.__cpu_features__.items() if on}


def environments(dispatched: Sequence[str], present: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the variables of each environment by its name.

    A setting stands in one environment, together with settings of other libraries.

    Parameters
    ----------
    dispatched : sequence of str
        Processor features that NumPy chooses code by.
    present : iterable of str
        Features of this processor. OpenBLAS' kernels for AVX-512 and AVX2 run on a processor that
        has these only.
    """
    present = set(present)
    one, four = (dict.fromkeys(_THREADS, number) for number in "14")
    # The names differ between versions of NumPy; all that is not the baseline includes AVX-512
    # and FMA.
    chosen = " ".join(name for name in dispatched if name in present)
    plain = {"NUMBA_CPU_NAME": "generic"} | ({"NPY_DISABLE_CPU_FEATURES": chosen} if chosen else {})
    if {"AVX2", "X86_V3"} & present:
        one["OPENBLAS_CORETYPE"], plain["OPENBLAS_CORETYPE"] = "Haswell", "Zen"
    if {"AVX512_SKX", "X86_V4"} & present:
        four["OPENBLAS_CORETYPE"] = "SkylakeX"
    return {"haswell-one-thread": one, "zen-generic": plain, "skylakex-four-threads": four}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests in each environment; return 1 if they fail in one."""
    known = environments(*features())
    parser = argparse.ArgumentParser(prog="python -m tests.elsewhere")
    parser.add_argument("--jobs", default="auto", help="number of test processes")
    parser.add_argument("--only", choices=known, action="append", help="run these environments")
    parser.add_argument("tests", nargs="*", default=TESTS, help="test files or folders")
    options = parser.parse_args(arguments)
    print(f"NumPy {np.__version__}; environments: {', '.join(known)}", flush=True)
    results: dict[str, str] = {}
    for name in options.only or known:
        variables = known[name]
        text = " ".join(f"{key}={value!r}" for key, value in variables.items())
        print(f"{name}: {text}", flush=True)
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-m", "not slow"]
            + ["-n", options.jobs, "--dist", "worksteal"]
            + ["-p", "no:cacheprovider", *options.tests],
            cwd=ROOT,
            env={**os.environ, **variables},
            check=False,
        )
        state = "passed" if done.returncode == 0 else f"FAILED (exit {done.returncode})"
        results[name] = f"{state}, {time.monotonic() - began:.0f} s"
    for name, state in results.items():
        print(f"{name:24} {state}")
    return int(any("FAILED" in state for state in results.values()))


if __name__ == "__main__":
    sys.exit(main())

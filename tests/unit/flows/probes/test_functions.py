"""Approximate functions of an H200: the recorded results keep the bounds that PTX documents."""

import numpy as np
import pytest

from tests.support.measured import FOLDER

#: Function -> exact values, and the largest error that the PTX ISA states: relative or absolute.
BOUNDS = {
    "rcp.approx.ftz.f32": (lambda x: 1 / x, 2**-23, 0.0),
    "sqrt.approx.ftz.f32": (np.sqrt, 2**-23, 0.0),
    "rsqrt.approx.ftz.f32": (lambda x: 1 / np.sqrt(x), 2**-22.9, 0.0),
    "ex2.approx.ftz.f32": (np.exp2, 2**-22.5, 0.0),
    "lg2.approx.ftz.f32": (np.log2, 2**-22, 2**-22),
    "sin.approx.ftz.f32": (np.sin, 0.0, 2**-20.5),
    "cos.approx.ftz.f32": (np.cos, 0.0, 2**-20.5),
    "tanh.approx.f32": (np.tanh, 2**-11, 0.0),
}
HALVES = {
    "tanh.approx.f16": (np.tanh, np.float16, 0.0, 2**-10.987),
    "ex2.approx.f16": (np.exp2, np.float16, 2**-9.9, 0.0),
}


def stored() -> dict[str, np.ndarray]:
    """Return the arrays: differences of neighbours, but for the sums of hashes."""
    with np.load(FOLDER / "functions.npz") as file:
        return {
            name: file[name] if name.endswith(".sums") else np.cumsum(file[name], dtype=np.int64)
            for name in file.files
        }


FILE = stored()
SEGMENTS = [name for name in FILE if name.count(".f32.") == 1 and not name.endswith(".sums")]


@pytest.mark.parametrize("name", SEGMENTS)
def test_results_of_fp32_keep_their_bounds(name):
    function, _, start = name.rpartition(".")
    i = np.arange(1 << 16, dtype=np.uint64)
    codes = (int(start, 16) + 128 * i + (i * 37 & 127)).astype(np.uint32)
    exact_of, relative, absolute = BOUNDS[function]
    exact = exact_of(codes.view(np.float32).astype(np.float64))
    error = np.abs(FILE[name].astype(np.uint32).view(np.float32) - exact)
    assert (error <= np.maximum(relative * np.abs(exact), absolute) * 1.001).all(), error.max()
    assert (error > 0).mean() > 0.2  # they are approximations


@pytest.mark.parametrize("name", HALVES)
def test_results_of_fp16_keep_their_bounds(name):
    exact_of, kind, relative, absolute = HALVES[name]
    x = np.arange(1 << 16, dtype=np.uint16).view(kind)
    with np.errstate(all="ignore"):
        exact = exact_of(x.astype(np.float64))
    got = FILE[name].astype(np.uint16).view(kind).astype(np.float64)
    normal = np.isfinite(exact) & (np.abs(exact) >= 2.0**-14) & (np.abs(exact) < 65504)
    error, exact = np.abs(got[normal] - exact[normal]), np.abs(exact[normal])
    assert (error <= np.maximum(relative * exact, absolute)).all()
    assert np.isnan(got[np.isnan(x)]).all() and normal.sum() > 30_000


def test_all_arguments_of_every_function_are_in_a_sum():
    sums = {name: array for name, array in FILE.items() if name.endswith(".sums")}
    assert len(sums) == 15 and all(array.shape == (1024,) for array in sums.values())
    # Flushing changes nothing where no argument and no result is subnormal.
    same = sums["rcp.approx.f32.sums"] == sums["rcp.approx.ftz.f32.sums"]
    assert 1000 < same.sum() < 1024

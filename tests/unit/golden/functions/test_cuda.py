"""CUDA's functions against NVIDIA's own bitcode, run on this machine with MUFU's rules beneath."""

import ctypes
import importlib.util
import math
import re
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

from vitruvian import functions
from vitruvian.common.errors import UserError

RNG = np.random.default_rng(36)
NAMES = {
    "expf": "__nv_expf",
    "logf": "__nv_logf",
    "tanhf": "__nv_tanhf",
    "erff": "__nv_erff",
    "rsqrtf": "__nv_rsqrtf",
    "__expf": "__nv_fast_expf",
    "__logf": "__nv_fast_logf",
}
#: Functions that the bitcode calls, in LLVM's language.
OWN = """
declare float @llvm.fma.f32(float, float, float)
declare float @llvm.fabs.f32(float)
declare double @llvm.floor.f64(double)
define float @saturate(float %x) {
  %above = fcmp ogt float %x, 0.0
  %y = select i1 %above, float %x, float 0.0
  %below = fcmp olt float %y, 1.0
  %z = select i1 %below, float %y, float 1.0
  ret float %z
}
define float @down(float %a, float %b, float %c) { ; a result of 2^23 to 2^24 has no fraction
  %p = fpext float %a to double
  %q = fpext float %b to double
  %r = fmul double %p, %q
  %s = call double @llvm.floor.f64(double %r)
  %t = fpext float %c to double
  %u = fadd double %s, %t
  %v = fptrunc double %u to float
  ret float %v
}
"""
APPROXIMATE = {
    "ex2_ftz": "ex2.approx.ftz.f32",
    "ex2": "ex2.approx.f32",
    "lg2": "lg2.approx.f32",
    "rcp_ftz": "rcp.approx.ftz.f32",
    "rsqrt": "rsqrt.approx.f32",
}
#: What the bitcode calls -> what is called here. It flushes subnormal numbers only if
#: ``__nvvm_reflect`` says so, but for ``ex2`` and ``rcp``.
CALLED = {
    r"@llvm\.nvvm\.fma\.rn(\.ftz)?\.f\(": "@llvm.fma.f32(",
    r"@llvm\.nvvm\.fma\.rm(\.ftz)?\.f\(": "@down(",
    r"@llvm\.nvvm\.saturate(\.ftz)?\.f\(": "@saturate(",
    r"@llvm\.nvvm\.fabs(\.ftz)?\.f(32)?\(": "@llvm.fabs.f32(",
    r"@llvm\.nvvm\.ex2\.approx\.ftz\.f(32)?\(": "@ex2_ftz(",
    r"@llvm\.nvvm\.ex2\.approx\.f(32)?\(": "@ex2(",
    r"@llvm\.nvvm\.lg2\.approx(\.ftz)?\.f(32)?\(": "@lg2(",
    r"@llvm\.nvvm\.rsqrt\.approx(\.ftz)?\.f(32)?\(": "@rsqrt(",
    r'asm "rcp\.approx\.ftz\.f32[^(]*\(': "@rcp_ftz(",
    r"call i32 @__nvvm_reflect\([^)]*\)": "add i32 0, 0",
    r", !\w+ !\d+": "",
    r" #\d+": "",
}
FLOAT = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_float)


@pytest.fixture(scope="module")
def library():
    """Return NVIDIA's functions as Python functions of a number."""
    found = importlib.util.find_spec("triton")
    if found is None or found.origin is None:
        pytest.skip("NVIDIA's bitcode is in the package triton")
    bitcode = Path(found.origin).parent / "backends/nvidia/lib/libdevice.10.bc"
    module = llvm.parse_bitcode(bitcode.read_bytes())
    text = "".join(str(module.get_function(name)) for name in NAMES.values())
    for pattern, own in CALLED.items():
        text = re.sub(pattern, own, text)
    assert "nvvm" not in text.replace("__nv_", ""), text
    text += OWN + "".join(f"declare float @{name}(float)\n" for name in APPROXIMATE)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    held = {name: FLOAT(_one(instruction)) for name, instruction in APPROXIMATE.items()}
    for name, function in held.items():
        llvm.add_symbol(name, ctypes.cast(function, ctypes.c_void_p).value)
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    compiled = {name: FLOAT(engine.get_function_address(theirs)) for name, theirs in NAMES.items()}
    yield compiled
    del held, engine


def _one(instruction: str):
    return lambda x: float(functions.compute(instruction, np.array([x], np.float32))[0])


def arguments(name: str) -> np.ndarray:
    """Return numbers of all exponents, of the range of interest, and the ends."""
    codes = RNG.integers(0, 1 << 32, 1500, dtype=np.uint32).view(np.float32)
    near = RNG.uniform(-110, 110, 1500) if name in ("expf", "__expf") else RNG.normal(0, 2, 1500)
    ends = [0.0, -0.0, np.inf, -np.inf, np.nan, 0.6, 1.00296, 2 / 3, 4 / 3, 9.010914, 1e-40, -104]
    return np.concatenate(
        [codes, near, ends, np.nextafter(np.array(ends, np.float32), 9)], dtype=np.float32
    )


@pytest.mark.parametrize("name", NAMES)
def test_functions_equal_those_of_the_bitcode(library, name):
    x = arguments(name)
    theirs = np.array([library[name](float(v)) for v in x], np.float32)
    ours = functions.cuda(name, x)
    different = (ours.view(np.uint32) != theirs.view(np.uint32)) & ~np.isnan(theirs)
    assert not different.any(), x[different]
    assert np.array_equal(np.isnan(ours), np.isnan(theirs))


@pytest.mark.parametrize(
    ("name", "exact", "most"),
    [("expf", math.exp, 2), ("logf", math.log, 1), ("tanhf", math.tanh, 2), ("erff", math.erf, 2)],
)
def test_errors_are_small(name, exact, most):
    """Units of the last place; another coefficient, or another step, gives larger errors."""
    x = RNG.uniform(0.01 if name == "logf" else -20, 20, 4000).astype(np.float32)
    expected = np.array([exact(float(v)) for v in x])
    error = np.abs(functions.cuda(name, x) - expected)
    assert (error <= most * np.spacing(np.abs(expected).astype(np.float32))).all()
    assert functions.cuda(name, x.reshape(40, 100)).shape == (40, 100)
    assert functions.cuda(name, np.ones((), np.float32)).shape == ()


def test_divisions_are_products_with_a_reciprocal():
    a, b = (RNG.integers(0, 1 << 32, 4000, np.uint32).view(np.float32) for _ in "ab")
    got = functions.divide_full(a, b)
    with np.errstate(all="ignore"):
        exact = a.astype(np.float64) / b.astype(np.float64)
        ends = np.isinf(exact.astype(np.float32)) | (np.abs(exact) < 2.0**-126)
        error = np.abs(got - exact) / np.spacing(np.abs(exact).astype(np.float32))
    usual = np.isfinite(exact) & ~ends
    assert usual.sum() > 1000 and (error[usual] <= 2).all()  # as the instruction is documented
    assert np.array_equal(np.isnan(got), np.isnan(a) | np.isnan(b) | np.isnan(exact))
    one = np.array([1, 1, 1, -1, 0, np.inf], np.float32)
    by = np.array([2.0**127, 2.0**-130, np.inf, 0, 0, 1], np.float32)
    expected = np.array([2.0**-127, np.inf, 0, -np.inf, np.nan, np.inf], np.float32)
    assert np.array_equal(functions.divide_full(one, by), expected, equal_nan=True)


def test_others_are_refused():
    with pytest.raises(UserError, match=r"^function must be one of expf, .*, not 'sinf'$"):
        functions.cuda("sinf", np.zeros(1, np.float32))
    with pytest.raises(TypeError, match="x must be of float32, not float64"):
        functions.cuda("expf", np.zeros(1))
    with pytest.raises(TypeError, match="b must be of float32, not float64"):
        functions.divide_full(np.zeros(1, np.float32), np.zeros(1))

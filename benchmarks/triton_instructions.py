"""Compare golden.triton's choice of instruction with what Triton's compiler writes, without a GPU.

    python benchmarks/triton_instructions.py [--every N]

Needs the extra ``vitruvian[triton]``. A kernel with one dot is compiled for each case, and the
instruction in its assembly and the arrangement of its operands are compared with ``lower``.
"""

# Triton is optional, and its types are unknown where it is not installed.
# pyright: basic, reportMissingImports=false

import argparse
import os
import re
import sys
import tempfile
from itertools import product
from typing import Any

os.environ.pop("TRITON_INTERPRET", None)
os.environ.setdefault("TRITON_CACHE_DIR", tempfile.mkdtemp())

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from vitruvian.common.errors import UserError
from vitruvian.golden.triton import Dot, lower
from vitruvian.golden.triton.dot import TARGETS

TYPES = {"fp16": "*fp16", "bf16": "*bf16", "fp32": "*fp32", "e4m3": "*fp8e4nv", "e5m2": "*fp8e5"}
TYPES |= {"int8": "*i8", "fp64": "*fp64", "fp8": "*fp8e4b8", "bf8": "*fp8e5b16"}
RESULTS = {"fp32": ("*fp32", tl.float32), "fp16": ("*fp16", tl.float16)}
RESULTS |= {"fp64": ("*fp64", tl.float64), "int32": ("*i32", tl.int32)}
#: The compiler's words for a unit, in its assembly.
UNITS = {"wgmma": "wgmma", "tcgen05": "tcgen05", "mma": "mma.sync", "mfma": "v_mfma"}


@triton.jit
def kernel(
    a, b, d, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
    IMPRECISE: tl.constexpr, PRECISION: tl.constexpr, OUT: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Add one dot for each tile along K."""
    row, column, term = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    total = tl.zeros((M, N), OUT)
    for start in range(0, k, K):
        x = tl.load(a + row * k + (start + term)[None, :])
        y = tl.load(b + column * k + (start + term)[:, None])
        if WIDE:
            x, y = x.to(tl.float16), y.to(tl.float16)
        total = tl.dot(
            x, y, total, max_num_imprecise_acc=IMPRECISE, input_precision=PRECISION, out_dtype=OUT
        )
    tl.store(d + row * N + column, total)


def compiled(case: dict[str, Any]) -> dict[str, str]:
    """Return the texts of a compiled kernel."""
    name = TARGETS[case["machine"]]
    amd = name.startswith("gfx")
    target = GPUTarget("hip", name, 64) if amd else GPUTarget("cuda", int(name[2:]), 32)
    pointer, out = RESULTS[case["output"]]
    m, n, k = case["shape"]
    constants = {"M": m, "N": n, "K": k, "IMPRECISE": case["imprecise"], "OUT": out}
    constants |= {"PRECISION": case["precision"] or ("ieee" if amd else "tf32")}
    constants |= {"WIDE": case["wide"]}
    types = {"a": TYPES[case["input"]], "b": TYPES[case["input"]], "d": pointer, "k": "i32"}
    source = ASTSource(
        kernel,
        signature=types | dict.fromkeys(constants, "constexpr"),
        constexprs={(kernel.arg_names.index(key),): value for key, value in constants.items()},
        attrs={(i,): [["tt.divisibility", 16]] for i in range(4)},
    )
    return triton.compile(source, target=target, options={"num_warps": case["warps"]}).asm


def seen(texts: dict[str, str]) -> tuple[str, int]:
    """Return the unit whose instructions a kernel has, and how many terms lie side by side."""
    text = texts.get("ptx") or texts["amdgcn"]
    unit = next((unit for unit, word in UNITS.items() if word in text), "fma")
    found = re.findall(r"kWidth = (\d+)", texts["ttgir"])
    return unit, int(found[0]) if found and unit == "mma" else 0


def expected(dot: Dot, case: dict[str, Any]) -> tuple[str, int]:
    """Return the same by ``lower``."""
    if dot.rule.startswith("fma"):  # the same bits on any unit
        return "fma", 0
    if dot.rule == "int32":
        return "int32", 0
    unit = dot.rule.removeprefix(case["machine"] + "_").split("_")[0]
    return ("mma" if unit == "mmasync" else unit), dot.group


def cases() -> list[dict[str, Any]]:
    """Return all cases."""
    found: list[dict[str, Any]] = []
    tiles = [((64, 64, 64), 4), ((16, 16, 64), 4), ((64, 64, 64), 2), ((128, 16, 64), 8)]
    tiles += [((32, 64, 32), 4), ((64, 64, 32), 16)]
    for machine, input, (shape, warps) in product(TARGETS, TYPES, tiles):
        outputs = {"int8": ("int32",), "fp64": ("fp64",), "fp16": ("fp32", "fp16")}
        for output in outputs.get(input, ("fp32",)):
            more: list[dict[str, Any]] = [{}]
            if input in ("e4m3", "e5m2"):
                more += [{"imprecise": n} for n in (0, 16, 32, 64)]
            if input == "e5m2":
                more += [{"wide": True}]
            if input == "fp32" and machine != "cdna3":
                more += [{"precision": p} for p in ("tf32x3", "ieee")]
            base = {"machine": machine, "input": input, "shape": shape, "warps": warps}
            base |= {"output": output, "imprecise": None, "precision": None, "wide": False}
            found += [base | m for m in more]
    return found


def main() -> int:
    """Print each case, and return 1 if one differs."""
    parser = argparse.ArgumentParser(description="Compare instructions with Triton's compiler.")
    parser.add_argument("--every", type=int, default=1, help="Take each n-th case.")
    wrong = compared = refused = 0
    for case in cases()[:: parser.parse_args().every]:
        options = {key: case[key] for key in ("output", "warps", "imprecise", "precision")}
        input, loaded = ("fp16", 8) if case["wide"] else (case["input"], None)
        try:
            dot = lower(
                case["machine"], input, case["shape"], loaded=loaded, assume=True, **options
            )
        except UserError:
            refused += 1
            continue
        want = expected(dot, case)
        got = seen(compiled(case))
        if want[0] in ("fma", "int32"):
            continue
        compared += 1
        if got != want:
            wrong += 1
            print(f"{case}: {dot}: {want}, but the compiler has {got}")
    print(f"Triton {triton.__version__}: {compared} compared, {wrong} differ, {refused} refused")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())

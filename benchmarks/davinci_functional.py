"""Measure vector instructions, multiply-accumulates, and intrinsics of CCE C per second.

Rates are per second of processor time on one core, the best of three runs.

python benchmarks/davinci_functional.py [--json FILE]
"""

import argparse
import json
import time

import numpy as np

from vitruvian.golden.cube import mmad
from vitruvian.golden.fp import IntDotSpec
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.sim.davinci import Program, View, load_chip
from vitruvian.sim.davinci.cce import build, read
from vitruvian.sim.davinci.semantics import Functional
from vitruvian.sim.davinci.semantics.functional import COMPILE_AFTER

CASES = (
    ("vadd", "fp16", 1, {}),
    ("vadd", "fp16", 8, {}),
    ("vadd", "fp32", 1, {}),
    ("vmax", "fp16", 1, {}),
    ("vmuls", "fp16", 1, {"scalar": 1.5}),
    ("vexp", "fp16", 1, {}),
    ("vexp", "fp32", 1, {}),
    ("vconv", "fp32", 1, {"rounding": "none"}),
)

KERNEL = """__global__ __aicore__ void k(__gm__ half *x, int n) {
    __ubuf__ half *a = (__ubuf__ half *)get_imm(0);
    set_vector_mask(-1, -1);
    for (int i = 0; i < n; ++i) vadd(a + i % 16 * 128, a + 128, a + 256, 1, 1, 1, 1, 8, 8, 8);
}"""


def best(run, count):
    """Return the best rate per second of three runs after one for warm-up."""
    run()
    rates = []
    for _ in range(3):
        start = time.process_time()
        run()
        rates.append(count / (time.process_time() - start))
    return max(rates)


def vectors(op, dtype, repeat, fields, *, twin, count=3000):
    """Return the vector instructions per second, with the compiled twin or with NumPy alone."""
    core = Program(load_chip("ascend310")).core()
    functional = Functional(core.program)
    buffer = functional.memory(core).buffers["UB"]
    numbers = np.random.default_rng(0).normal(0, 4, 32768).astype(np.float16)
    # Normal numbers: special values would take other paths.
    buffer[:65536] = numbers.view(np.uint8)
    names = ("dst", "src") if fields or op == "vexp" else ("dst", "src0", "src1")
    views = {n: View("UB", 8192 * i, dtype, (), ()) for i, n in enumerate(names)}
    if op == "vconv":
        views["src"] = View("UB", 8192, "fp16", (), ())
    (instr,) = core.vector(op, views, repeat=repeat, **fields)

    def run():
        # The compiled twin begins after a number of instructions, so that the counter chooses
        # between both.
        functional.vectors = COMPILE_AFTER if twin else -count - 1
        for _ in range(count):
            functional.execute(core, instr)

    return best(run, count)


def products(size, dtype):
    """Return the multiply-accumulates per second of ``golden.cube.mmad``."""
    rng = np.random.default_rng(1)
    if dtype == "int8":
        spec, c = IntDotSpec(k=32), np.zeros((size, size), np.int32)
        a, b = (rng.integers(-128, 128, (size, size)).astype(np.int8) for _ in range(2))
    else:
        spec, c = PRESETS["ieee"].spec("fp16", k=16), np.zeros((size, size), np.uint32)
        a, b = (rng.normal(size=(size, size)).astype("f2").view(np.uint16) for _ in range(2))
    # Some million operations a run, small products often.
    times = max(1, 2**21 // size**3)

    def run():
        for _ in range(times):
            mmad(a, b, c, spec=spec)

    return best(run, times * size**3)


def kernels(execute, count=5000):
    """Return the intrinsics per second from text to instructions."""
    kernel, chip = read(KERNEL), load_chip("ascend910")
    arguments = {"x": np.zeros(1024, np.float16), "n": count}
    return best(lambda: build(kernel, chip, arguments, execute=execute), count)


def main():
    """Measure all cases and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    rows = []
    for op, dtype, repeat, fields in CASES:
        name = f"{op} {dtype}, {repeat} repeat{'s' * (repeat > 1)}"
        plain, twin = (vectors(op, dtype, repeat, fields, twin=t) for t in (False, True))
        rows.append({"what": name, "numpy_per_s": plain, "per_s": twin})
        print(f"{name:24} {twin / 1e3:8.0f} thousand a second, NumPy alone {plain / 1e3:.0f}")
    for dtype in ("fp16", "int8"):
        for size in (16, 32, 64, 128):
            rows.append({"what": f"mmad {dtype} {size}", "per_s": products(size, dtype)})
            print(
                f"mmad {dtype} {size}³".ljust(24),
                f"{rows[-1]['per_s'] / 1e6:8.0f} million MACs a s",
            )
    for execute in (True, False):
        name = f"CCE C {'carried out' if execute else 'to instructions'}"
        rows.append({"what": name, "per_s": kernels(execute)})
        print(f"{name:24} {rows[-1]['per_s'] / 1e3:8.0f} thousand intrinsics a second")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()

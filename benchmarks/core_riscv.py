"""Unit S as a RISC-V: cycles of S for each intrinsic, and idle cycles of the units.

    python benchmarks/core_riscv.py intrinsics
    python benchmarks/core_riscv.py kernels tiny
    python benchmarks/core_riscv.py kernels plain

The first command needs no core, only unit S; the words are never refused there. Both need the
package ziglang.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from vitruvian.golden.core import memory_map
from vitruvian.hdl.core.riscv_board import ScalarBoard
from vitruvian.sim.davinci import load_chip
from vitruvian.sim.davinci.cce import build, read_file
from vitruvian.sim.davinci.machine_code.core import core_product, run_on_core
from vitruvian.sim.davinci.machine_code.encode import EncodingError
from vitruvian.sim.davinci.riscv.compiler import compile_kernel, with_arguments
from vitruvian.sim.davinci.riscv.run import kernel_image, run_riscv
from vitruvian.sim.davinci.riscv.source import kernel_text
from vitruvian.sim.davinci.semantics import Functional
from vitruvian.sim.rtl import compile_unit
from vitruvian.sim.rtl.core import core_config, core_names

_MEMORY = 8192
_TIMES = 100
_HEAD = """__global__ __aicore__ void k(int32_t n, uint32_t r, __gm__ half *x) {
__ubuf__ half *a = (__ubuf__ half *)get_imm(64); __cbuf__ half *l1 = (__cbuf__ half *)get_imm(0);
__ca__ half *l0a = (__ca__ half *)get_imm(512); __cb__ half *l0b = (__cb__ half *)get_imm(512);
__cc__ float *l0c = (__cc__ float *)get_imm(1024);
"""
#: Bodies of a loop over i; r and x are arguments.
_BODIES = {
    "set_flag, constant": "set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);",
    "set_flag, number of a variable": "set_flag(PIPE_V, PIPE_MTE3, (event_t)(i & 1));",
    "vadd, constants": "vadd(a, a, a, 1, 1, 1, 1, 8, 8, 8);",
    "vadd, variables": "vadd(a + i * 16, a + i * 32, a + i * 48, r, 1, 1, 1, 8, 8, 8);",
    "vadd, variables, masked": "vadd(a + i * 16, a + i * 32, a + i * 48, r, 1, 1, 1, 8, 8, 8); ",
    "vadds, scalar of an integer": "vadds(a + i * 16, a, (half)i, r, 1, 1, 8, 8);",
    "copy_gm_to_ubuf, variables": "copy_gm_to_ubuf(a + i * 16, x + i * r, 0, r, i + 1, r, r);",
    "load_cbuf_to_ca, variables": (
        "load_cbuf_to_ca(l0a + i * 256, l1 + i * 256, 0, r, 1, 0, 0, false, inc);"
    ),
    "mad, variables": "mad(l0c + i * 256, l0a + i * 256, l0b, r * 16, r, i + 1, 1);",
    "half: multiply, add": "vector_dup(a, (half)i * (half)r + (half)1, 1, 1, 1, 8, 8);",
    "float: divide": "vadds(a, a, (half)(1.0f / (float)(i + 1)), 1, 1, 1, 8, 8);",
}


def _cycles(body: str, times: int) -> tuple[int, int]:
    """Return the cycles and the words of a loop."""
    masked = "r" if body.endswith(" ") else "(uint64_t)-1"
    mask = f"set_vector_mask({masked}, (uint64_t)-1);\n"
    loop = f"{_HEAD}{mask}for (int i = 0; i < n; ++i) {{ {body} }} }}\n"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "k.cce"
        path.write_text(loop)
        text = kernel_text(path)
    image = compile_kernel(text.text, text.entry, memory_bytes=_MEMORY)
    numbers = (np.int32(times), np.uint32(3), np.uint32(memory_map.GM))
    image = with_arguments(image, [number.tobytes() for number in numbers])
    model = compile_unit(ScalarBoard, memory_bytes=_MEMORY, ub_bytes=1024, gm_bytes=_MEMORY)
    blocks = len(image) // 32
    rows = np.zeros((blocks + 1, 4), np.uint64)
    rows[:blocks] = image.view(np.uint64).reshape(blocks, 4)
    inputs = {
        "kind": np.array([0] * blocks + [1], np.uint8),
        "address": np.array([*range(0, len(image), 32), 0], np.uint32),
        "data": rows,
    }
    words = _word_count(image)
    done = model.stream(inputs={"i": inputs}, outputs={"o": words}, quiet_limit=100_000)
    return done.cycles, words


def _word_count(image: np.ndarray) -> int:
    """Return the number of words that a kernel passes, by golden's hart."""
    from vitruvian.golden.core.riscv import Hart

    class Bus:
        def __init__(self) -> None:
            self.own = bytearray(image.tobytes().ljust(_MEMORY, b"\0"))
            self.words = 0

        def load(self, address: int, size: int) -> int:
            place = address - memory_map.CODE
            return int.from_bytes(self.own[place : place + size], "little")

        def store(self, address: int, size: int, value: int) -> None:
            if address >= memory_map.QUEUE:
                self.words += address == memory_map.QUEUE + 4
                return
            place = address - memory_map.CODE
            self.own[place : place + size] = (value % (1 << 8 * size)).to_bytes(size, "little")

    bus = Bus()
    hart, last = Hart(bus, memory_map.CODE), 0
    while hart.pc != last:  # it ends with a jump to itself
        last = hart.pc
        hart.step()
    return bus.words


def intrinsics() -> None:
    """Print the cycles and words of a pass of each loop."""
    for name, body in _BODIES.items():
        (low, few), (high, many) = (_cycles(body, times) for times in (_TIMES, 2 * _TIMES))
        cycles, words = (high - low) / _TIMES, (many - few) / _TIMES
        print(f"{name:32} {words:3.0f} words {cycles:7.1f} cycles", flush=True)


def _numbers(count: int) -> np.ndarray:
    return np.random.default_rng(count).standard_normal(count).astype(np.float16)


#: Kernels in CCE C with arguments.
_KERNELS: dict[str, dict[str, Any]] = {
    "sim/kernels/text/scale_add.cce": {
        "a": _numbers(16384),
        "b": _numbers(16384),
        "y": np.zeros(16384, np.float16),
        "scale": 2.0,
        "tiles": 8,
    },
    "sim/kernels/text/softmax.cce": {
        "x": _numbers(1024),
        "y": np.zeros(1024, np.float16),
        "rows": 8,
        "n": 128,
    },
    "sim/kernels/text/cube.cce": {
        "a": _numbers(64 * 64),
        "b": _numbers(64 * 64),
        "c": np.zeros(64 * 64, np.float16),
        "m": 64,
        "k": 64,
        "n": 64,
    },
    "tests/unit/sim/davinci/cce/kernels/vec_add.cce": {
        "data_a": _numbers(3072),
        "data_b": _numbers(3072),
        "res": np.zeros(3072, np.float16),
    },
}


def kernels(core: str) -> None:
    """Print cycles and idle cycles of the units for both ways of feeding."""
    chip, memory_bytes = load_chip("ascend310"), core_config(core).scalar_bytes
    for name, arguments in _KERNELS.items():
        path = Path(name)
        program, _ = build(read_file(path), chip, arguments)
        image = kernel_image(program, path, arguments, memory_bytes=memory_bytes)
        functional = Functional(program, core_product(core))
        functional.run()
        outputs = dict(functional.tensors())
        try:
            runs = {
                "stream": run_on_core(program, core),
                "riscv": run_riscv(program, image, core),
            }
        except EncodingError as error:
            print(f"{path.stem:10} refused: {error}", flush=True)
            continue
        for feed, done in runs.items():
            idle = {u: done.run.cycles - n for u, n in done.run.busy.items() if n and u != "S"}
            shown = ", ".join(f"{unit} {count:,}" for unit, count in idle.items())
            wrong = sum(done.differing(outputs).values())
            row = f"{done.run.cycles:7,} cycles, idle: {shown}; {wrong} bytes differ"
            print(f"{path.stem:10} {feed:6} {row}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("what", choices=("intrinsics", "kernels"), help="Print this table.")
    parser.add_argument("core", nargs="?", default="tiny", choices=core_names())
    options = parser.parse_args()
    if options.what == "intrinsics":
        intrinsics()
    else:
        kernels(options.core)

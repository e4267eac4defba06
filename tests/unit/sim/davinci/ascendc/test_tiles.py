"""Kernels of tile libraries, whose words only the device's compiler knows."""

import platform
import shutil
from pathlib import Path

import numpy as np
import pytest

from vitruvian.sim.davinci import load_chip, simulate
from vitruvian.sim.davinci.ascendc import build, compile_kernel
from vitruvian.sim.davinci.ascendc.units import in_plain_words

FILE = Path(__file__).parent / "kernels" / "tiles.cpp"
CHIP = load_chip("ascend910b")

needs_compiler = pytest.mark.skipif(
    shutil.which("g++") is None or platform.machine() != "x86_64",
    reason="AscendC is compiled by g++ on x86-64",
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("__global__ [aicore] void k();", "__global__  void k();"),
        ("[ aicore ] inline int f();", " inline int f();"),
        ("[host, aicore] int f();", " int f();"),
        ("constexpr [aicore] ~T();", "constexpr  ~T();"),
        ("a[aicore] = 1;", "a[aicore] = 1;"),
        ("[aicore](int x) { return x; }", "[aicore](int x) { return x; }"),
        ("[[aicore]] int f();", "[[aicore]] int f();"),
    ],
)
def test_the_attribute_of_the_device(text, expected):
    """The attribute is left out; an index and a capture of that name are kept."""
    assert in_plain_words(text) == expected


@needs_compiler
@pytest.mark.parametrize("flag", [True, False])
def test_a_kernel_of_tiles(flag):
    """It computes what it says, and a missing flag is found at the user's line."""
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=256).astype(np.float16) for _ in "xy")
    defines = {} if flag else {"WITHOUT_FLAG": "1"}
    compiled = compile_kernel(str(FILE), CHIP, kind="vector", defines=defines)
    program, functional = build({"vector": compiled}, CHIP, {"x": x, "y": y, "flags": 0}, blocks=2)
    assert np.array_equal(functional.read("x"), x + y)
    found = simulate(program).findings
    assert {finding.check for finding in found} == (set() if flag else {"race"})
    if not flag:
        lines = FILE.read_text().splitlines()
        line = next(n for n, text in enumerate(lines, 1) if "copy_ubuf_to_gm" in text)
        assert all(f"tiles.cpp:{line} on MTE3" in finding.message for finding in found)


LIBRARY = """#pragma once
#ifndef MEMORY_BASE
#error a library of tiles asks which kind of chip it is for
#endif
[aicore] inline void TMULS(__ubuf__ half *x) { vmuls(x, x, (half)2, 1, 1, 1, 8, 8); }
"""
USER = """#include <pto/pto-inst.hpp>
__global__ [aicore] void twice(__gm__ half *x) {
    copy_gm_to_ubuf((__ubuf__ half *)0, x, 0, 1, 8, 0, 0);
    TMULS((__ubuf__ half *)0);
    pipe_barrier(PIPE_ALL);
    copy_ubuf_to_gm(x, (__ubuf__ half *)0, 0, 1, 8, 0, 0);
}
"""


@needs_compiler
@pytest.mark.parametrize("inner", ["include", "."])
def test_a_clone_of_a_tile_library(tmp_path, inner):
    """``--headers`` takes one; its lines are not the user's, who finds the call."""
    headers = tmp_path / "library" / inner / "pto" / "pto-inst.hpp"
    headers.parent.mkdir(parents=True)
    headers.write_text(LIBRARY)
    file = tmp_path / "kernel" / "twice.cpp"
    file.parent.mkdir()
    file.write_text(USER)
    compiled = compile_kernel(str(file), CHIP, headers=str(tmp_path / "library"))
    program, functional = build({"vector": compiled}, CHIP, {"x": np.ones(128, np.float16)})
    assert (functional.read("x") == 2).all()
    found = simulate(program).findings
    assert found and all("twice.cpp:4 on V" in finding.message for finding in found)

"""The fragments of matrix instructions: as data, and as the program for CUDA loads them."""

import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from vitruvian.flows.probes import layouts
from vitruvian.flows.probes.common import COMMON
from vitruvian.flows.probes.cuda import INSTRUCTIONS, program
from vitruvian.flows.probes.cuda_device import DEVICE
from vitruvian.flows.probes.file import Section, pack

#: Terms and bits of an operand of the shapes of mma.sync
SHAPES = [(16, 16), (8, 16), (4, 32), (8, 32), (32, 8), (16, 8), (64, 4)]


@pytest.mark.parametrize(
    ("fragments", "m", "n", "k"),
    [
        *((layouts.mma(k, bits), 16, 8, k) for k, bits in SHAPES),
        (layouts.mma_fp64(), 8, 8, 4),
        (layouts.volta(32), 8, 8, 4),
        (layouts.volta(16), 8, 8, 4),
        *((layouts.mfma(k), 16, 16, k) for k in (4, 8, 16, 32)),
        (layouts.mfma(4, fp64=True), 16, 16, 4),
    ],
)
def test_a_matrix_that_is_spread_and_gathered_is_the_same(fragments, m, n, k):
    for fragment, shape in zip(fragments, ((m, k), (k, n), (m, n)), strict=True):
        matrix = np.arange(shape[0] * shape[1]).reshape(shape) + 1
        held = fragment.spread(matrix)
        assert held.size == matrix.size  # every element is in one place
        np.testing.assert_array_equal(fragment.gather(held, shape), matrix)


def test_a_few_places_are_those_of_the_manual():
    """Places as the PTX ISA prints them in the figures of its fragments."""
    a, b, c = layouts.mma(16, 16)
    assert (a.row[5, 2], a.column[5, 2]) == (9, 2)  # a2 of thread 5: row 9, column 2
    assert (a.row[31, 7], a.column[31, 7]) == (15, 15)
    assert (b.row[6, 3], b.column[6, 3]) == (13, 1)
    assert (c.row[9, 3], c.column[9, 3]) == (10, 3)
    a, _, _ = layouts.mma(32, 8)
    assert (a.row[1, 4], a.column[1, 4]) == (8, 4)
    assert (a.row[1, 8], a.column[1, 8]) == (0, 20)
    _, _, c = layouts.volta(32)
    assert (c.row[1, 0], c.column[1, 0]) == (1, 0) and (c.row[2, 2], c.column[2, 2]) == (2, 2)
    assert (c.row[4, 7], c.column[4, 7]) == (6, 5)


# ------------------------------------------------------------------ the program's own functions

_STUB = """
#define __device__
#define __global__
#define __shared__ static
struct Three { int x; };
static Three threadIdx, blockIdx;
template <class T, class F> static T bits_as(F from) {
  T to;
  memcpy(&to, &from, sizeof to);
  return to;
}
static float __uint_as_float(uint32_t x) { return bits_as<float>(x); }
static uint32_t __float_as_uint(float x) { return bits_as<uint32_t>(x); }
static double __longlong_as_double(long long x) { return bits_as<double>(x); }
static long long __double_as_longlong(double x) { return bits_as<long long>(x); }
"""
_DENSE = [(16, 16), (16, 8), (32, 4), (32, 8), (8, 32), (8, 16), (4, 64)]
_SPARSE = [(16, 16), (16, 32), (32, 8), (32, 16), (8, 32), (8, 64)]


def harness():
    """Return a C++ program that prints the registers of all threads for the first eight cases."""
    lines = []
    for number, (bits, terms) in enumerate([*_DENSE, *_SPARSE]):
        sparse = number >= len(_DENSE)
        load = f"load_a<{bits}, {terms}>(x, A)"
        if sparse:
            load = f"A[8] = load_sparse<{bits}, {terms}>(x, A)"
        lines.append(
            f"    if (i == {number}) {{ {load}; load_b<{bits}, {terms}>(x, B); load_c<4>(x, D); }}"
        )
    text = "\n".join(lines)
    return f"""{COMMON}
{_STUB}
{DEVICE.replace("#include <cuda_runtime.h>", "")}
int main(int, char **arguments) {{
  read_inputs(arguments[1]);
  for (uint32_t i = 0; i < section_count(); i++) {{
    Section *s = section_at(i);
    Operands o = operands_of(s);
    Case x = {{o.a, o.b, o.c, o.scale_a, o.scale_b, o.d, (int)s->rows, (int)s->terms,
              (int)s->scales, (int)s->size_a, (int)s->size_b, (int)s->size_c}};
    for (threadIdx.x = 0; threadIdx.x < 32; threadIdx.x++) {{
      uint32_t A[9] = {{0}}, B[8] = {{0}};
      float D[4] = {{0}};
{text}
      for (int r = 0; r < 9; r++) printf("%u ", A[r]);
      for (int r = 0; r < 8; r++) printf("%u ", B[r]);
      for (int r = 0; r < 4; r++) printf("%u ", __float_as_uint(D[r]));
      printf("\\n");
      store_c<4>(x, D);
    }}
    for (uint32_t r = 0; r < 8; r++) printf("%u ", ((uint32_t *)o.d)[r]);
    printf("\\n");
  }}
}}
"""


def elements(registers, bits):
    """Return the elements of registers, from the lowest bits on."""
    shifts = np.arange(0, 32, bits, dtype=np.uint64)
    parts = registers[:, :, None] >> shifts & np.uint64((1 << bits) - 1)
    return parts.reshape(len(registers), -1)


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not there")
def test_the_program_loads_what_the_layouts_say(tmp_path):
    by_shape = {}
    for each in INSTRUCTIONS:
        if each.output == "fp32" and each.kind in ("mma", "sp", "mxf4"):
            bits = {"mxf4": 4}.get(each.kind) or {"tf32": 32, "fp16": 16}.get(each.input, 8)
            if each.input != "bf16":
                by_shape.setdefault((each.sparse, bits, each.terms), each)
    chosen = [by_shape[False, *shape] for shape in _DENSE]
    # Integers have the sparse shape of 32 terms of 8 bits; their addends are codes as well.
    chosen += [by_shape.get((True, *s)) or by_shape[True, 8, 64] for s in _SPARSE]
    chosen[len(_DENSE) + 4] = next(e for e in INSTRUCTIONS if e.name == "sp_m16n8k32_s8_s32")
    cases = [last(each.cases(3)) for each in chosen]
    (tmp_path / "inputs.bin").write_bytes(
        pack([Section(e.name, c) for e, c in zip(chosen, cases, strict=True)], 3)
    )
    (tmp_path / "harness.cpp").write_text(harness())
    subprocess.run(
        ["g++", "-O0", "-w", "-o", "harness", "harness.cpp"], cwd=tmp_path, check=True, timeout=120
    )
    done = subprocess.run(
        ["./harness", "inputs.bin"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    lines = iter(done.stdout.splitlines())
    for number, ((bits, terms), given) in enumerate(zip([*_DENSE, *_SPARSE], cases, strict=True)):
        words = np.array([next(lines).split() for _ in range(32)], dtype=np.uint64)
        stored = np.array(next(lines).split(), dtype=np.uint64)
        a, b, c = (given.a[:8].astype(np.uint64), given.b[:8], given.c[:8])
        matrix_c = np.zeros((16, 8), np.uint64)
        matrix_c[np.arange(8), np.arange(8)] = c
        sparse = number >= len(_DENSE)
        fragment_a, fragment_b, fragment_c = layouts.mma(terms, bits)
        if sparse:
            fragment_a = layouts.mma(terms // 2, bits)[0]
            packed = fragment_a.gather(
                elements(words[:, : fragment_a.row.shape[1] * bits // 32], bits), (16, terms // 2)
            )
            matrix_a = unpacked(packed[:8], words[::4, 8], bits, terms)
            np.testing.assert_array_equal(matrix_a, a)
        else:
            matrix_a = np.zeros((16, terms), np.uint64)
            matrix_a[:8] = a
            held = elements(words[:, : fragment_a.row.shape[1] * bits // 32], bits)
            np.testing.assert_array_equal(held, fragment_a.spread(matrix_a))
        held = elements(words[:, 9 : 9 + fragment_b.row.shape[1] * bits // 32], bits)
        np.testing.assert_array_equal(held, fragment_b.spread(b.astype(np.uint64).T))
        np.testing.assert_array_equal(words[:, 17:21], fragment_c.spread(matrix_c))
        np.testing.assert_array_equal(stored, c)


def last(given):
    """Return the last rows, which hold random bits."""
    parts = {n: getattr(given, n) for n in ("a", "b", "c", "scale_a", "scale_b")}
    return replace(given, **{n: x if x is None else x[-64:] for n, x in parts.items()})


def unpacked(packed, metadata, bits, terms):
    """Return the dense rows of sparse ones; a metadata word is that of 16 columns, twice."""
    dense = np.zeros((8, terms), np.uint64)
    group = 2 if bits == 32 else 4
    for row in range(8):
        word = int(metadata[row])
        assert word >> 16 == word & 0xFFFF
        for index in range(terms // 2):
            chunk, within = divmod(index, group // 2)
            nibble = word >> 4 * (chunk % 4) & 15
            if group == 2:
                place = {0x4: 0, 0xE: 1}[nibble]
            else:
                assert nibble & 3 < nibble >> 2
                place = nibble >> 2 * within & 3
            dense[row, group * chunk + place] = packed[row, index]
    return dense


def test_every_kernel_names_its_operands_once():
    """The assembly of an instruction has as many operands as the constraints."""
    text = program(list(INSTRUCTIONS))["probe.cu"]
    bodies = re.findall(r'asm volatile\("((?:w?g?mma)[^"]*)"\s*: ([^;]*)\);', text)
    assert len(bodies) == len(INSTRUCTIONS)
    for assembly, constraints in bodies:
        given = len(re.findall(r'"[+=]?[frdl]"\(', constraints))
        assert {int(n) for n in re.findall(r"%(\d+)", assembly)} == set(range(given)), assembly

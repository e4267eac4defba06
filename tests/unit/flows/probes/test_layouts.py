"""The fragments of matrix instructions: as data, and as the program for CUDA loads them."""

import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from vitruvian.flows.probes import layouts, tcgen05
from vitruvian.flows.probes.common import COMMON
from vitruvian.flows.probes.cuda import INSTRUCTIONS, program
from vitruvian.flows.probes.cuda_device import DEVICE
from vitruvian.flows.probes.file import ProbeSection, pack

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


#: Bits and elements in 16 bytes of the operands of tcgen05, with their terms
ELEMENTS = [(16, 8, 16), (32, 4, 8), (8, 16, 32), (6, 16, 32), (4, 16, 32), (4, 32, 64)]


@pytest.mark.parametrize(("bits", "per", "terms"), ELEMENTS)
def test_an_operand_in_shared_memory_is_read_back(bits, per, terms):
    matrix = np.random.default_rng(bits).integers(0, 1 << bits, (128, terms), np.uint64)
    places = layouts.shared(128, terms, bits, per)
    memory = places.pack(matrix)
    assert memory.size == places.size == 4096  # K is 32 bytes in every format
    np.testing.assert_array_equal(places.unpack(memory), matrix)
    starts = np.sort(places.first.ravel())
    assert np.diff(starts).min() >= bits  # no element overlaps another one


def test_a_few_places_in_shared_memory_are_those_of_the_manual():
    assert layouts.shared(128, 16, 16, 8).first[9, 8] == 8 * (256 + 128 + 16)
    assert layouts.shared(128, 32, 6, 16).first[0, 15] == 90  # packed, and 32 bits of padding
    assert layouts.shared(128, 32, 4, 16).first[0, 16] == 8 * 128  # after 64 bits of padding
    assert layouts.shared(128, 64, 4, 32).first[1, 31] == 8 * 16 + 124
    words = layouts.tensor_scales(np.arange(128, dtype=np.uint8)[:, None])
    assert (words[5] == 0x01010101 * np.array([5, 37, 69, 101])).all()
    assert (words[5] == words[101]).all()


# ------------------------------------------------------------------ the program's own functions

_STUB = """
#define __device__
#define __global__
#define __shared__ static
struct Three { int x; };
static Three threadIdx, blockIdx;
static void __syncthreads() {}
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


def run_on_host(tmp_path, text, sections, seed):
    """Compile a program with g++ and return the numbers of each line that it prints."""
    (tmp_path / "inputs.bin").write_bytes(pack(sections, seed))
    (tmp_path / "harness.cpp").write_text(text)
    subprocess.run(
        ["g++", "-O0", "-w", "-o", "harness", "harness.cpp"], cwd=tmp_path, check=True, timeout=300
    )
    done = subprocess.run(
        ["./harness", "inputs.bin"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    return iter(done.stdout.splitlines())


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not there")
def test_the_program_fills_shared_memory_as_the_layouts_say(tmp_path):
    """All pairs of formats of ``tcgen05.mma``, with the scales if there are any."""
    chosen = {}
    for each in tcgen05.INSTRUCTIONS:
        shapes = (tcgen05.element(each, each.input), tcgen05.element(each, each.input_b))
        chosen.setdefault((shapes, each.scale, each.block), each)
    chosen = list(chosen.values())
    assert {tcgen05.element(e, e.input) for e in chosen} == {(b, p) for b, p, _ in ELEMENTS}
    given = [last(each.cases(5)) for each in chosen]
    fills = []
    for number, each in enumerate(chosen):
        for name, format in (("a", each.input), ("b", each.input_b)):
            bits, per = tcgen05.element(each, format)
            fill = f"fill_shared<{bits}, {per}>(x, x.{name}, x.size_{name}, {name})"
            fills.append(f"if (i == {number}) {fill};")
    text = f"""{COMMON}
{_STUB}
{DEVICE.replace("#include <cuda_runtime.h>", "")}
{tcgen05.DEVICE}
int main(int, char **arguments) {{
  read_inputs(arguments[1]);
  for (uint32_t i = 0; i < section_count(); i++) {{
    Section *s = section_at(i);
    Operands o = operands_of(s);
    Case x = {{o.a, o.b, o.c, o.scale_a, o.scale_b, o.d, (int)s->rows, (int)s->terms,
              (int)s->scales, (int)s->size_a, (int)s->size_b, (int)s->size_c}};
    static uint8_t a[4096], b[512];
    memset(a, 255, sizeof a), memset(b, 255, sizeof b);
    blockIdx.x = 1;
    for (threadIdx.x = 0; threadIdx.x < 128; threadIdx.x++)
      clear_shared(a, 4096), clear_shared(b, 512);
    for (threadIdx.x = 0; threadIdx.x < 128; threadIdx.x++) {{ {" ".join(fills)} }}
    for (uint8_t byte : a) printf("%d ", byte);
    for (uint8_t byte : b) printf("%d ", byte);
    printf("\\n");
    for (threadIdx.x = 0; threadIdx.x < 32 && x.scales; threadIdx.x++)
      printf("%u %u ", scale_word(x, x.scale_a), scale_word(x, x.scale_b));
    printf("\\n");
  }}
}}
"""
    sections = [ProbeSection(e.name, c) for e, c in zip(chosen, given, strict=True)]
    lines = run_on_host(tmp_path, text, sections, 5)
    for each, cases in zip(chosen, given, strict=True):
        memory = np.array(next(lines).split(), dtype=np.uint8)
        for part, codes, rows, format in (
            (memory[:4096], cases.a, 128, each.input),
            (memory[4096:], cases.b, 16, each.input_b),
        ):
            matrix = np.zeros((rows, each.terms), np.uint64)
            matrix[:8] = codes[8:16]  # those of the second block of threads
            places = layouts.shared(rows, each.terms, *tcgen05.element(each, format))
            np.testing.assert_array_equal(part, places.pack(matrix))
        words = np.array(next(lines).split(), dtype=np.uint32).reshape(-1, 2)
        for column, scales in enumerate((cases.scale_a, cases.scale_b)):
            if scales is not None:
                rows = np.zeros((128, scales.shape[1]), np.uint8)
                rows[:8] = scales[8:16]
                np.testing.assert_array_equal(words[:, column], layouts.tensor_scales(rows)[:32, 0])


def test_the_descriptors_of_tcgen05_are_those_of_the_manual():
    words = {e.name: tcgen05.descriptor(e) for e in tcgen05.INSTRUCTIONS}
    shape = 2 << 17 | 8 << 24  # N / 8 and M / 16
    assert words["tcgen05_f16_m128n16k16_f16_f32"] == shape | 1 << 4
    assert words["tcgen05_f16_m128n16k16_f16_f16"] == shape
    assert words["tcgen05_f16_m128n16k16_bf16_f32"] == shape | 1 << 4 | 1 << 7 | 1 << 10
    assert words["tcgen05_tf32_m128n16k8_tf32_f32"] == shape | 1 << 4 | 2 << 7 | 2 << 10
    assert words["tcgen05_i8_m128n16k32_s8_u8_s32"] == shape | 2 << 4 | 1 << 7
    assert words["tcgen05_f8f6f4_m128n16k32_e2m3_e2m1_f32"] == shape | 1 << 4 | 3 << 7 | 5 << 10
    mixed = words["tcgen05_mxf8f6f4_m128n16k32_e5m2_e3m2_f32_ue8m0_32"]
    assert mixed == shape | 1 << 7 | 4 << 10 | 1 << 23
    assert words["tcgen05_mxf4nvf4_m128n16k64_e2m1_f32_ue4m3_16"] == shape | 1 << 7 | 1 << 10


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
    sections = [ProbeSection(e.name, c) for e, c in zip(chosen, cases, strict=True)]
    lines = run_on_host(tmp_path, harness(), sections, 3)
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
    bodies += re.findall(r'"(tcgen05.mma[^"]*)"\s*:: ([^;]*)\);', text)
    assert len(bodies) == len(INSTRUCTIONS)
    for assembly, constraints in bodies:
        given = len(re.findall(r'"[+=]?[frdl]"\(', constraints))
        assert {int(n) for n in re.findall(r"%(\d+)", assembly)} == set(range(given)), assembly

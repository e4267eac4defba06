"""Kernels for ``tcgen05.mma`` of data-centre Blackwell, with 128 × 16 results of one block.

A and B lie in shared memory, C and D and the scales in tensor memory. As elsewhere in the program,
case r of eight is row r of A and column r of B; the other rows and columns are zero.

References
----------
NVIDIA PTX ISA 9, sections "Instruction Descriptor", "Shared Memory Descriptor", "Packing formats of
elements in Tensor and Shared memory" and "Block Scaling" of the fifth-generation tensor cores.
"""

from itertools import product

from vitruvian.flows.probes.instruction import ProbedInstruction
from vitruvian.flows.probes.ptx import SMALL, instruction

_ROWS, _COLUMNS = 128, 16
#: Code of a format in the descriptor, by the instruction's kind.
_CODES = {
    "f16": {"fp16": 0, "bf16": 1},
    "tf32": {"tf32": 2},
    "f8f6f4": {"fp8e4m3": 0, "fp8e5m2": 1, "fp6e2m3": 3, "fp6e3m2": 4, "fp4e2m1": 5},
    "i8": {"uint8": 0, "int8": 1},
    "mxf4": {"fp4e2m1": 1},
}
_CODES |= {"mxf8f6f4": _CODES["f8f6f4"], "mxf4nvf4": _CODES["mxf4"]}
_OUTPUTS = {"fp16": 0, "fp32": 1, "int32": 2}
_SCALES = {"ue4m3": 0, "ue8m0": 1}


def _all() -> list[ProbedInstruction]:
    rows: list[tuple[str, str, str, str, int, str, dict[str, object]]] = []
    rows += [("f16", "f16", "f16", out, 16, "", {}) for out in ("f32", "f16")]
    rows += [("f16", "bf16", "bf16", "f32", 16, "", {}), ("tf32", "tf32", "tf32", "f32", 8, "", {})]
    for a, b in product(SMALL, SMALL):
        rows += [("f8f6f4", a, b, out, 32, "", {}) for out in ("f32", "f16")]
        by_32 = {"scale": "ue8m0", "block": 32}
        rows.append(("mxf8f6f4", a, b, "f32", 32, ".block_scale.scale_vec::1X", by_32))
    rows += [("i8", a, b, "s32", 32, "", {}) for a, b in product(("s8", "u8"), repeat=2)]
    for kind, vector, scale, block in (
        ("mxf4", "2X", "ue8m0", 32),
        ("mxf4nvf4", "2X", "ue8m0", 32),
        ("mxf4nvf4", "4X", "ue8m0", 16),
        ("mxf4nvf4", "4X", "ue4m3", 16),
    ):
        tail = f".block_scale.scale_vec::{vector}"
        rows.append((kind, "e2m1", "e2m1", "f32", 64, tail, {"scale": scale, "block": block}))
    return [
        instruction(
            f"tcgen05_{kind}",
            f"m{_ROWS}n{_COLUMNS}k{terms}",
            *(a, b, out, 100),
            f"tcgen05.mma.cta_group::1.kind::{kind}{tail}",
            **more,
        )
        for kind, a, b, out, terms, tail, more in rows
    ]


INSTRUCTIONS = tuple(_all())


def _kind(each: ProbedInstruction) -> str:
    return each.kind.removeprefix("tcgen05_")


def descriptor(each: ProbedInstruction) -> int:
    """Return the instruction descriptor: formats, shape, and the format of the scales."""
    codes = _CODES[_kind(each)]
    # PTX ISA, instruction descriptor of tcgen05.mma: formats of A and B from bits 7 and 10, N / 8
    # from bit 17, M / 16 from bit 24.
    word = codes[each.input] << 7 | codes[each.input_b] << 10
    word |= (_COLUMNS >> 3) << 17 | (_ROWS >> 4) << 24
    if each.scale is not None:
        # With block scales, bit 23 has the scales' format, and results are always FP32.
        return word | _SCALES[each.scale] << 23
    return word | _OUTPUTS[each.output] << 4


def element(each: ProbedInstruction, format: str) -> tuple[int, int]:
    """Return the bits of an element in shared memory, and the elements in 16 bytes.

    Sixteen elements of 6 or 4 bits are packed and padded to 16 bytes, but for the kinds that have
    only elements of 4 bits; these hold 32.
    """
    bits = {"fp16": 16, "bf16": 16, "tf32": 32, "fp4e2m1": 4, "fp6e2m3": 6, "fp6e3m2": 6}
    width = bits.get(format, 8)
    return width, 32 if _kind(each) in ("mxf4", "mxf4nvf4") else min(16, 128 // width)


DEVICE = r"""
#if defined(__CUDA_ARCH_FEAT_SM100_ALL) || defined(__CUDA_ARCH_FEAT_SM103_ALL)
#define HAS_SM100A 1
#else
#define HAS_SM100A 0
#endif

/* The first bit of an element of A or B in shared memory. Eight rows of 16 bytes follow each other;
   then come their next 16 bytes of k, and then the next eight rows. */
template <int BITS, int PER>
__device__ inline int shared_bit(int row, int k) {
  return 8 * (128 * (k / PER) + 256 * (row / 8) + 16 * (row % 8)) + k % PER * BITS;
}

__device__ inline void clear_shared(uint8_t *shared, int size) {
  for (int i = threadIdx.x; i < size; i += 128) shared[i] = 0;
}

template <int BITS, int PER>
__device__ inline void fill_shared(const Case &x, const uint8_t *base, int size, uint8_t *shared) {
  int row = 8 * blockIdx.x + threadIdx.x;
  if (threadIdx.x > 7 || row >= x.rows) return;
  for (int k = 0; k < x.terms; k++) {
    uint64_t code = code_at(base, (size_t)row * x.terms + k, size);
    int at = shared_bit<BITS, PER>(threadIdx.x, k);
    for (int i = 0; i < BITS; i += 2)
      shared[(at + i) / 8] |= (uint8_t)((code >> i & 3) << (at + i) % 8);
  }
}

/* The four bytes of the scales of a case; those of fewer scales are repeated. The scales of row r
   lie in lane r mod 32, in each quarter of the lanes, and in a column for 32 rows. All columns hold
   the same here, as the other rows are zero. */
__device__ inline uint32_t scale_word(const Case &x, const uint8_t *base) {
  int lane = lane_of(), row = 8 * blockIdx.x + lane;
  uint32_t word = 0;
  for (int i = 0; i < 4 && lane < 8 && row < x.rows; i++)
    word |= (uint32_t)base[(size_t)row * x.scales + i % x.scales] << (8 * i);
  return word;
}

#if HAS_SM100A
/* Columns of the 32 of tensor memory: C and D come first, then the scales of A and of B. */
enum { SCALE_A = 16, SCALE_B = 24 };

struct Tensor {
  uint32_t memory, barrier;
  uint64_t a, b;
};

__device__ inline uint32_t shared_address(const void *pointer) {
  return (uint32_t)__cvta_generic_to_shared(pointer);
}

/* No swizzle; 128 bytes to the next 16 bytes of k, 256 to the next eight rows. */
__device__ inline uint64_t shared_matrix(const uint8_t *shared) {
  return (uint64_t)(shared_address(shared) >> 4 & 0x3FFF) | (uint64_t)(128 >> 4) << 16 |
         (uint64_t)(256 >> 4) << 32 | (uint64_t)1 << 46;
}

__device__ inline void synchronize() {
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

__device__ inline void store_columns(uint32_t address, const uint32_t *D) {
  asm volatile("tcgen05.st.sync.aligned.32x32b.x8.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8};"
               :: "r"(address), "r"(D[0]), "r"(D[1]), "r"(D[2]), "r"(D[3]), "r"(D[4]), "r"(D[5]),
                  "r"(D[6]), "r"(D[7]) : "memory");
}

template <int BITS_A, int PER_A, int BITS_B, int PER_B>
__device__ inline Tensor tensor_begin(const Case &x, uint8_t *a, uint8_t *b, uint32_t *place,
                                      uint64_t *barrier) {
  clear_shared(a, 4096), clear_shared(b, 512);
  __syncthreads();
  fill_shared<BITS_A, PER_A>(x, x.a, x.size_a, a);
  fill_shared<BITS_B, PER_B>(x, x.b, x.size_b, b);
  Tensor t;
  t.a = shared_matrix(a), t.b = shared_matrix(b), t.barrier = shared_address(barrier);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(t.barrier) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (threadIdx.x < 32) {
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;"
                 :: "r"(shared_address(place)) : "memory");
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  synchronize();
  t.memory = *place;
  /* A warp writes its own 32 lanes. Element (r, r) of C is in lane and column r. */
  uint32_t own = t.memory + (threadIdx.x / 32 * 32 << 16), D[8];
  for (int i = 0; i < 8; i++) D[i] = threadIdx.x == i ? addend(x, 8 * blockIdx.x + i) : 0;
  store_columns(own, D);
  for (int i = 0; i < 8; i++) D[i] = 0;
  store_columns(own + 8, D);
  if (x.scales) {
    for (int i = 0; i < 8; i++) D[i] = scale_word(x, x.scale_a);
    store_columns(own + SCALE_A, D);
    for (int i = 0; i < 8; i++) D[i] = scale_word(x, x.scale_b);
    store_columns(own + SCALE_B, D);
  }
  asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
  synchronize();
  return t;
}

__device__ inline void tensor_end(const Case &x, Tensor t) {
  if (threadIdx.x == 0)
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];"
                 :: "r"(t.barrier) : "memory");
  uint32_t done = 0, D[8];
  while (!done)
    asm volatile("{\n\t.reg .pred p;\n\t"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\n\t"
                 "selp.b32 %0, 1, 0, p;\n\t}"
                 : "=r"(done) : "r"(t.barrier) : "memory");
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  if (threadIdx.x < 32) {
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                 : "=r"(D[0]), "=r"(D[1]), "=r"(D[2]), "=r"(D[3]), "=r"(D[4]), "=r"(D[5]),
                   "=r"(D[6]), "=r"(D[7])
                 : "r"(t.memory) : "memory");
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
    for (int i = 0; i < 8; i++)
      if (threadIdx.x == i) keep(x, 8 * blockIdx.x + i, D[i]);
  }
  synchronize();
  if (threadIdx.x < 32)
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;"
                 :: "r"(t.memory));
}
#endif
"""


def kernel(each: ProbedInstruction) -> str:
    """Return the kernel: operands to shared and tensor memory, the instruction, the results."""
    sizes = (*element(each, each.input), *element(each, each.input_b))
    scales = ", [%4], [%5]" if each.scale is not None else ""
    inputs = '"r"(t.memory), "l"(t.a), "l"(t.b), "r"(descriptor)'
    if each.scale is not None:
        inputs += ', "r"(t.memory + SCALE_A), "r"(t.memory + SCALE_B)'
    return f"""\
__global__ void {each.name}(Case x, int *ran) {{
#if HAS_SM100A
  __shared__ alignas(128) uint8_t a[4096], b[512];
  __shared__ uint64_t barrier;
  __shared__ uint32_t place;
  const uint32_t descriptor = {descriptor(each):#010x};
  Tensor t = tensor_begin<{", ".join(map(str, sizes))}>(x, a, b, &place, &barrier);
  if (threadIdx.x == 0)
    asm volatile("{{\\n\\t.reg .pred p;\\n\\tsetp.eq.u32 p, 0, 0;\\n\\t"
                 "{each.text} [%0], %1, %2, %3{scales}, p;\\n\\t}}"
                 :: {inputs} : "memory");
  tensor_end(x, t);
  *ran = 1;
#endif
}}
"""

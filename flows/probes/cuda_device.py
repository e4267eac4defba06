"""Functions of the CUDA program that load and store fragments, and those of its host side."""

DEVICE = r"""
#include <cuda_runtime.h>

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define HAS_SM90A 1
#else
#define HAS_SM90A 0
#endif
#if defined(__CUDA_ARCH_FEAT_SM120_ALL)
#define HAS_SM120A 1
#else
#define HAS_SM120A 0
#endif

/* The operands of all cases. A warp takes eight of them: row r of A and column r of B are case
   8 * blockIdx.x + r, so the diagonal of the product holds eight dot products. */
struct Case {
  const uint8_t *a, *b, *c, *scale_a, *scale_b;
  uint8_t *d;
  int rows, terms, scales, size_a, size_b, size_c;
};

__device__ inline int lane_of() { return threadIdx.x & 31; }

__device__ inline uint64_t code_at(const uint8_t *base, size_t index, int size) {
  uint64_t code = 0;
  for (int i = 0; i < size; i++) code |= (uint64_t)base[index * size + i] << (8 * i);
  return code;
}

__device__ inline uint64_t factor(const Case &x, const uint8_t *base, int size, int r, int k) {
  int row = 8 * blockIdx.x + r;
  if (r > 7 || row >= x.rows || threadIdx.x > 31) return 0;
  return code_at(base, (size_t)row * x.terms + k, size);
}

template <int BITS, int TERMS, int SHIFT = 0>
__device__ inline void load_a(const Case &x, uint32_t *A) {
  const int per = 32 / BITS, g = lane_of() >> 2, t = lane_of() & 3;
  for (int r = 0; r < TERMS * BITS / 64; r++) {
    A[r] = 0;
    for (int e = 0; e < per; e++) {
      int row = g + 8 * (r & 1), k = t * per + e + 4 * per * (r >> 1);
      A[r] |= (uint32_t)(factor(x, x.a, x.size_a, row, k) << SHIFT) << (BITS * e);
    }
  }
}

template <int BITS, int TERMS, int SHIFT = 0>
__device__ inline void load_b(const Case &x, uint32_t *B) {
  const int per = 32 / BITS, g = lane_of() >> 2, t = lane_of() & 3;
  for (int r = 0; r < TERMS * BITS / 128; r++) {
    B[r] = 0;
    for (int e = 0; e < per; e++) {
      int k = t * per + e + 4 * per * r;
      B[r] |= (uint32_t)(factor(x, x.b, x.size_b, g, k) << SHIFT) << (BITS * e);
    }
  }
}

/* A 2:4 sparse row: the values that are kept, in A, and their places, in the metadata. Every 16 (in
   tf32 every 8) columns have the same places, so that all threads of a group can hold the same word
   twice, whatever columns and rows it stands for in an instruction's shape. */
template <int BITS, int TERMS>
__device__ inline uint32_t load_sparse(const Case &x, uint32_t *A) {
  const int per = 32 / BITS, g = lane_of() >> 2, t = lane_of() & 3;
  const int group = BITS == 32 ? 2 : 4, kept = group / 2;
  int place[4][2];
  uint32_t meta = 0;
  for (int i = 0; i < 4; i++) {
    unsigned used = 0;
    for (int k = 0; k < TERMS; k++)
      if (k / group % 4 == i && factor(x, x.a, x.size_a, g, k)) used |= 1u << (k % group);
    int count = 0;
    for (int j = 0; j < group; j++) count += used >> j & 1;
    for (int j = 0; j < group && count < kept; j++)
      if (!(used >> j & 1)) used |= 1u << j, count++;
    int n = 0;
    for (int j = 0; j < group && n < kept; j++)
      if (used >> j & 1) place[i][n++] = j;
    if (group == 4) meta |= (uint32_t)(place[i][0] | place[i][1] << 2) << (4 * i);
    else meta |= (place[i][0] ? 0xEu : 0x4u) << (4 * i);
  }
  for (int r = 0; r < TERMS * BITS / 128; r++) {
    A[r] = 0;
    for (int e = 0; e < per; e++) {
      int row = g + 8 * (r & 1), packed = t * per + e + 4 * per * (r >> 1);
      int chunk = packed / kept;
      int k = group * chunk + place[chunk % 4][packed % kept];
      A[r] |= (uint32_t)factor(x, x.a, x.size_a, row, k) << (BITS * e);
    }
  }
  return meta | meta << 16;
}

/* Every thread of a group holds the scales of its row of A, or its column of B, so that it does not
   matter from which one the instruction takes them. */
template <int COUNT>
__device__ inline uint32_t load_scale(const Case &x, const uint8_t *base) {
  int row = 8 * blockIdx.x + (lane_of() >> 2);
  uint32_t word = 0;
  for (int i = 0; i < 4; i++) {
    uint8_t code = row < x.rows ? base[(size_t)row * COUNT + i % COUNT] : 0;
    word |= (uint32_t)code << (8 * i);
  }
  return word;
}

/* The element of C or D in a register of a thread: its place on the diagonal, or −1. */
__device__ inline int diagonal(int element) {
  int g = lane_of() >> 2, t = lane_of() & 3;
  int row = g + 8 * (element >> 1), column = 2 * t + (element & 1);
  int at = 8 * blockIdx.x + row;
  return row == column && threadIdx.x < 32 ? at : -1;
}

__device__ inline uint32_t addend(const Case &x, int at) {
  return at >= 0 && at < x.rows ? (uint32_t)code_at(x.c, at, x.size_c) : 0;
}

__device__ inline void keep(const Case &x, int at, uint64_t code) {
  if (at < 0 || at >= x.rows) return;
  for (int i = 0; i < x.size_c; i++) x.d[(size_t)at * x.size_c + i] = (uint8_t)(code >> (8 * i));
}

template <int COUNT>
__device__ inline void load_c(const Case &x, float *D) {
  for (int i = 0; i < COUNT; i++) D[i] = __uint_as_float(addend(x, diagonal(i)));
}

/* Four registers of 32-bit integers, or two of pairs of fp16 */
template <int COUNT>
__device__ inline void load_c(const Case &x, uint32_t *D) {
  for (int i = 0; i < COUNT; i++)
    D[i] = COUNT == 4 ? addend(x, diagonal(i))
                      : addend(x, diagonal(2 * i)) | addend(x, diagonal(2 * i + 1)) << 16;
}

template <int COUNT>
__device__ inline void store_c(const Case &x, const float *D) {
  for (int i = 0; i < COUNT; i++) keep(x, diagonal(i), __float_as_uint(D[i]));
}

template <int COUNT>
__device__ inline void store_c(const Case &x, const uint32_t *D) {
  for (int i = 0; i < COUNT; i++) {
    if (COUNT == 4) {
      keep(x, diagonal(i), D[i]);
    } else {
      keep(x, diagonal(2 * i), D[i] & 0xFFFF);
      keep(x, diagonal(2 * i + 1), D[i] >> 16);
    }
  }
}

/* m8n8k4 with fp16: four products, of which threads 0 to 3 and 16 to 19 compute the one that is
   kept. The other threads hold zeros. */
__device__ inline bool in_first() { return (lane_of() & 12) == 0; }
__device__ inline int volta_row() { return (lane_of() & 3) + (lane_of() >> 4) * 4; }

__device__ inline int volta_place(int element, bool wide) {
  int lane = lane_of(), row = volta_row(), column = element;
  if (wide) {
    row = (lane & 1) + (element & 2) + (lane >> 4) * 4;
    column = (element & 4) + (lane & 2) + (element & 1);
  }
  return in_first() && row == column ? 8 * (int)blockIdx.x + row : -1;
}

__device__ inline void load_volta_c(const Case &x, float *D) {
  for (int i = 0; i < 8; i++) D[i] = __uint_as_float(addend(x, volta_place(i, true)));
}

__device__ inline void load_volta_c(const Case &x, uint32_t *D) {
  for (int i = 0; i < 4; i++)
    D[i] = addend(x, volta_place(2 * i, false)) | addend(x, volta_place(2 * i + 1, false)) << 16;
}

template <class T>
__device__ inline void load_volta(const Case &x, uint32_t *A, uint32_t *B, T *D) {
  for (int r = 0; r < 2; r++) {
    A[r] = B[r] = 0;
    for (int e = 0; e < 2 && in_first(); e++) {
      A[r] |= (uint32_t)factor(x, x.a, 2, volta_row(), 2 * r + e) << (16 * e);
      B[r] |= (uint32_t)factor(x, x.b, 2, volta_row(), 2 * r + e) << (16 * e);
    }
  }
  load_volta_c(x, D);
}

template <int COUNT>
__device__ inline void store_volta(const Case &x, const float *D) {
  for (int i = 0; i < COUNT; i++) keep(x, volta_place(i, true), __float_as_uint(D[i]));
}

template <int COUNT>
__device__ inline void store_volta(const Case &x, const uint32_t *D) {
  for (int i = 0; i < 2 * COUNT; i++)
    keep(x, volta_place(i, false), D[i / 2] >> (16 * (i & 1)) & 0xFFFF);
}

__device__ inline double as_double(uint64_t code) { return __longlong_as_double((long long)code); }

/* The element of C or D in a register of a thread; m8n8k4 has the first half of the rows. */
__device__ inline int diagonal_fp64(const Case &x, int element) {
  int at = diagonal(element);
  return at < x.rows ? at : -1;
}

template <int COUNT_A, int COUNT_B, int COUNT_C>
__device__ inline void load_fp64(const Case &x, double *A, double *B, double *D) {
  const int rows = COUNT_C / 2, g = lane_of() >> 2, t = lane_of() & 3;
  for (int i = 0; i < COUNT_A; i++)
    A[i] = as_double(factor(x, x.a, 8, g + 8 * (i % rows), t + 4 * (i / rows)));
  for (int i = 0; i < COUNT_B; i++) B[i] = as_double(factor(x, x.b, 8, g, t + 4 * i));
  for (int i = 0; i < COUNT_C; i++) {
    int at = diagonal_fp64(x, i);
    D[i] = at >= 0 ? as_double(code_at(x.c, at, 8)) : 0.0;
  }
}

template <int COUNT>
__device__ inline void store_fp64(const Case &x, const double *D) {
  for (int i = 0; i < COUNT; i++)
    keep(x, diagonal_fp64(x, i), (uint64_t)__double_as_longlong(D[i]));
}

/* wgmma reads B from shared memory: core matrices of eight rows of 16 bytes, one after the other
   along k, without a swizzle. Their distance is 128 bytes; there is only one along n. */
#define LOAD_WGMMA_B(BYTES)                                                                  \
  __shared__ alignas(128) uint8_t shared_b[8 * BYTES];                                       \
  for (int i = threadIdx.x; i < 8 * BYTES; i += 128) {                                       \
    int n = i % 128 / 16, byte = i / 128 * 16 + i % 16;                                      \
    int row = 8 * blockIdx.x + n;                                                            \
    shared_b[i] = row < x.rows ? x.b[(size_t)row * BYTES + byte] : 0;                        \
  }                                                                                          \
  asm volatile("fence.proxy.async;" ::: "memory");                                           \
  __syncthreads();                                                                           \
  uint64_t descriptor = (uint64_t)__cvta_generic_to_shared(shared_b);                        \
  descriptor = (descriptor & 0x3FFFF) >> 4;                                                  \
  descriptor |= (uint64_t)(128 >> 4) << 16 | (uint64_t)(128 >> 4) << 32
struct Entry {
  const char *name;
  int device;
  void (*kernel)(Case, int *);
};

#define WGMMA_BEGIN() asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define WGMMA_END()                                                 \
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");    \
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory")

"""

HOST = r"""
static int device_level;

static void start(void) {
  cudaDeviceProp properties;
  if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess) fail("there is no CUDA device");
  device_level = 10 * properties.major + properties.minor;
  set_device(properties.name);
}

static const char *run_section(Section *s) {
  const Entry *entry = NULL;
  for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
    if (!strcmp(entries[i].name, s->name)) entry = &entries[i];
  if (!entry) return "unknown to this program";
  if (device_level < entry->device) return "not on this device";
  Operands host = operands_of(s);
  size_t length = (size_t)(host.d - host.a) + (size_t)s->rows * s->size_c;
  uint8_t *memory = NULL;
  int *ran = NULL, flag = 0;
  if (cudaMalloc(&memory, length) || cudaMalloc(&ran, sizeof flag)) fail("there is no memory");
  cudaMemcpy(memory, host.a, length, cudaMemcpyHostToDevice);
  cudaMemset(ran, 0, sizeof flag);
  Case x;
  x.a = memory, x.b = memory + (host.b - host.a), x.c = memory + (host.c - host.a);
  x.scale_a = memory + (host.scale_a - host.a), x.scale_b = memory + (host.scale_b - host.a);
  x.d = memory + (host.d - host.a);
  x.rows = s->rows, x.terms = s->terms, x.scales = s->scales;
  x.size_a = s->size_a, x.size_b = s->size_b, x.size_c = s->size_c;
  /* A warp for eight cases; wgmma and tcgen05 take four, of which the first holds the cases. */
  int threads = strncmp(s->name, "wgmma", 5) && strncmp(s->name, "tcgen05", 7) ? 32 : 128;
  entry->kernel<<<(s->rows + 7) / 8, threads>>>(x, ran);
  cudaError_t error = cudaDeviceSynchronize();
  if (error != cudaSuccess) return cudaGetErrorString(error);
  cudaMemcpy(&flag, ran, sizeof flag, cudaMemcpyDeviceToHost);
  cudaMemcpy(host.d, x.d, (size_t)s->rows * s->size_c, cudaMemcpyDeviceToHost);
  cudaFree(memory), cudaFree(ran);
  return flag ? NULL : "not in this build; choose another ARCH";
}
"""

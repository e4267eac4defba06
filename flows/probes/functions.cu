/* Record the functions of the GPU beside the matrix product: approximations of one instruction.

   For functions of fp32: the sum of a hash of each argument and result for every block of 2^22 of
   all 2^32 arguments, and results at 65,536 arguments of some binades. For functions of 16 bits and
   of pairs of them: all 65,536 results. The file is a line of text for each array (name, bytes an
   element, count) followed by its bytes. */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(x)                                                                  \
  do {                                                                            \
    cudaError_t error = (x);                                                      \
    if (error != cudaSuccess) {                                                   \
      fprintf(stderr, "%s: %s\n", #x, cudaGetErrorString(error));                 \
      exit(1);                                                                    \
    }                                                                             \
  } while (0)

#define HALF(NAME, TEXT)                                                          \
  struct NAME {                                                                   \
    static __device__ uint16_t of(uint16_t x) {                                   \
      uint16_t y;                                                                 \
      asm volatile(TEXT " %0, %1;" : "=h"(y) : "h"(x));                           \
      return y;                                                                   \
    }                                                                             \
  };
#define FLOAT(NAME, TEXT)                                                         \
  struct NAME {                                                                   \
    static __device__ uint32_t of(uint32_t x) {                                   \
      float y;                                                                    \
      asm volatile(TEXT " %0, %1;" : "=f"(y) : "f"(__uint_as_float(x)));          \
      return __float_as_uint(y);                                                  \
    }                                                                             \
  };

FLOAT(Ex2, "ex2.approx.f32")
FLOAT(Ex2Ftz, "ex2.approx.ftz.f32")
FLOAT(Lg2, "lg2.approx.f32")
FLOAT(Lg2Ftz, "lg2.approx.ftz.f32")
FLOAT(Rcp, "rcp.approx.f32")
FLOAT(RcpFtz, "rcp.approx.ftz.f32")
FLOAT(Rsqrt, "rsqrt.approx.f32")
FLOAT(RsqrtFtz, "rsqrt.approx.ftz.f32")
FLOAT(Sqrt, "sqrt.approx.f32")
FLOAT(SqrtFtz, "sqrt.approx.ftz.f32")
FLOAT(Sin, "sin.approx.f32")
FLOAT(SinFtz, "sin.approx.ftz.f32")
FLOAT(Cos, "cos.approx.f32")
FLOAT(CosFtz, "cos.approx.ftz.f32")
FLOAT(Tanh, "tanh.approx.f32")
HALF(TanhF16, "tanh.approx.f16")
HALF(TanhBf16, "tanh.approx.bf16")
HALF(Ex2F16, "ex2.approx.f16")
HALF(Ex2FtzBf16, "ex2.approx.ftz.bf16")

__device__ uint64_t mixed(uint32_t x, uint32_t y) {
  uint64_t z = ((uint64_t)x << 32 | y) * 0x9E3779B97F4A7C15ull;
  z = (z ^ z >> 29) * 0xBF58476D1CE4E5B9ull;
  return z ^ z >> 32;
}

template <class F>
__global__ void hash_all(unsigned long long *sums) {
  uint32_t base = blockIdx.x << 22;
  uint64_t sum = 0;
  for (uint32_t i = threadIdx.x; i < 1u << 22; i += blockDim.x) sum += mixed(base + i, F::of(base + i));
  atomicAdd(&sums[blockIdx.x], (unsigned long long)sum);
}

template <class F>
__global__ void sample(uint32_t *out, uint32_t start) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = F::of(start + 128 * i + (i * 37 & 127)); /* every low digit occurs */
}

template <class F>
__global__ void every16(uint16_t *out) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = F::of((uint16_t)i);
}

static FILE *file;

static void put(const char *name, const void *data, size_t size, size_t count) {
  fprintf(file, "%s %zu %zu\n", name, size, count);
  fwrite(data, size, count, file);
}

template <class F>
static void wide(const char *name, std::vector<uint32_t> starts) {
  unsigned long long *sums;
  CHECK(cudaMalloc(&sums, 1024 * 8));
  CHECK(cudaMemset(sums, 0, 1024 * 8));
  hash_all<F><<<1024, 512>>>(sums);
  CHECK(cudaDeviceSynchronize());
  std::vector<uint64_t> host(1024);
  CHECK(cudaMemcpy(host.data(), sums, 1024 * 8, cudaMemcpyDeviceToHost));
  char label[64];
  snprintf(label, sizeof label, "%s.sums", name);
  put(label, host.data(), 8, 1024);
  uint32_t *out;
  CHECK(cudaMalloc(&out, 65536 * 4));
  for (uint32_t start : starts) {
    sample<F><<<256, 256>>>(out, start);
    std::vector<uint32_t> values(65536);
    CHECK(cudaMemcpy(values.data(), out, 65536 * 4, cudaMemcpyDeviceToHost));
    snprintf(label, sizeof label, "%s.%08X", name, start);
    put(label, values.data(), 4, 65536);
  }
  cudaFree(sums), cudaFree(out);
  printf("%s %016llx\n", name, (unsigned long long)host[0x3F8 >> 2 ]);
}

template <class F>
static void narrow(const char *name) {
  uint16_t *out;
  CHECK(cudaMalloc(&out, 65536 * 2));
  every16<F><<<256, 256>>>(out);
  std::vector<uint16_t> values(65536);
  CHECK(cudaMemcpy(values.data(), out, 65536 * 2, cudaMemcpyDeviceToHost));
  put(name, values.data(), 2, 65536);
  cudaFree(out);
  printf("%s %04x\n", name, values[0x3C00]);
}

int main(int count, char **arguments) {
  file = fopen(count > 1 ? arguments[1] : "functions.bin", "wb");
  const uint32_t one = 0x3F800000, two = 0x40000000, half = 0x3F000000, four = 0x40800000;
  wide<Ex2Ftz>("ex2.approx.ftz.f32", {one, half, 0x3E800000, 0xBF800000, two});
  wide<Lg2Ftz>("lg2.approx.ftz.f32", {one, half, two});
  wide<RcpFtz>("rcp.approx.ftz.f32", {one});
  wide<RsqrtFtz>("rsqrt.approx.ftz.f32", {one, two});
  wide<SqrtFtz>("sqrt.approx.ftz.f32", {one, two});
  wide<SinFtz>("sin.approx.ftz.f32", {one, half, two});
  wide<CosFtz>("cos.approx.ftz.f32", {one, half, two});
  wide<Tanh>("tanh.approx.f32", {0x3D000000, 0x3E000000, half, one, two, four});
  wide<Ex2>("ex2.approx.f32", {});
  wide<Lg2>("lg2.approx.f32", {});
  wide<Rcp>("rcp.approx.f32", {});
  wide<Rsqrt>("rsqrt.approx.f32", {});
  wide<Sqrt>("sqrt.approx.f32", {});
  wide<Sin>("sin.approx.f32", {});
  wide<Cos>("cos.approx.f32", {});
  narrow<TanhF16>("tanh.approx.f16");
  narrow<TanhBf16>("tanh.approx.bf16");
  narrow<Ex2F16>("ex2.approx.f16");
  narrow<Ex2FtzBf16>("ex2.approx.ftz.bf16");
  fclose(file);
}

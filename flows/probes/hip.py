"""The program for AMD's GPUs: HIP with the builtin functions of MFMA and WMMA."""

from vitruvian.flows.probes.common import COMMON, MAIN
from vitruvian.flows.probes.instruction import ProbedInstruction


def _one(
    name: str, a: str, b: str, out: str, terms: int, text: str, device: int
) -> ProbedInstruction:
    return ProbedInstruction(
        f"mfma_{name}", a, b, out, terms, text=text, device=device, kind=_kind(text)
    )


def _kind(text: str) -> str:
    """Return the type of an operand's registers, as the builtin function takes it."""
    if "fp8" in text or "bf8" in text:
        return "long"
    for end, kind in (
        ("x4f32", "float"),
        ("f64", "double"),
        ("xf32", "xf32"),
        ("bf16_1k", "short4"),
    ):
        if text.endswith(end):
            return kind
    # Before CDNA 2, BF16 came in pairs of 16-bit integers.
    return "short2" if text.endswith("bf16") else "half4"


_FP8 = (("fp8", "fp8e4m3fnuz"), ("bf8", "fp8e5m2fnuz"))
#: Formats of FP8 from gfx950 on, which has the builtin functions of gfx940
_OCP = (("fp8", "e4m3"), ("bf8", "e5m2"))


def _wmma(device: int, format: str, output: str) -> ProbedInstruction:
    """Return an instruction of a wave of 32 threads."""
    short = {"fp16": "f16", "bf16": "bf16"}[format]
    # Terms, the end of the builtin function's name, and the values that a thread holds
    terms, end, many = {
        0x1100: (16, "_w32", 16),
        0x1200: (16, "_w32_gfx12", 8),
        0x1250: (32, "", 16),
    }[device]
    return ProbedInstruction(
        f"wmma_gfx{device:x}_16x16x{terms}_{short}",
        format,
        format,
        output,
        terms,
        text=f"f32_16x16x{terms}_{short}{end}",
        device=device,
        kind=f"{short}x{many}",
    )


#: Instructions of 16 × 16 results; the device is the least of gfx908 (MI100), gfx90a (MI210,
#: MI250X) and gfx940 (MI300), as a number; gfx950 (MI355X), gfx1100 (RDNA 3), gfx1200 (RDNA 4) and
#: gfx1250.
INSTRUCTIONS = (
    _one("16x16x16_f16", "fp16", "fp16", "fp32", 16, "f32_16x16x16f16", 0x908),
    _one("16x16x8_bf16", "bf16", "bf16", "fp32", 8, "f32_16x16x8bf16", 0x908),
    _one("16x16x4_f32", "fp32", "fp32", "fp32", 4, "f32_16x16x4f32", 0x908),
    _one("16x16x16_bf16_1k", "bf16", "bf16", "fp32", 16, "f32_16x16x16bf16_1k", 0x90A),
    _one("16x16x4_f64", "fp64", "fp64", "fp64", 4, "f64_16x16x4f64", 0x90A),
    _one("16x16x8_xf32", "tf32", "tf32", "fp32", 8, "f32_16x16x8_xf32", 0x940),
    *(
        _one(f"16x16x32_{a}_{b}", format_a, format_b, "fp32", 32, f"f32_16x16x32_{a}_{b}", 0x940)
        for a, format_a in _FP8
        for b, format_b in _FP8
    ),
    *(
        ProbedInstruction(
            f"mfma_16x16x32_{n}", f, f, "fp32", 32, text=f"f32_16x16x32_{n}", device=0x950, kind=k
        )
        for n, f, k in (("f16", "fp16", "f16x8"), ("bf16", "bf16", "bf16x8"))
    ),
    *(
        ProbedInstruction(
            f"mfma_16x16x32_{x}_{y}",
            f"fp8{x}",
            f"fp8{y}",
            "fp32",
            32,
            text=f"f32_16x16x32_{a}_{b}",
            device=0x950,
            kind="long",
        )
        for a, x in _OCP
        for b, y in _OCP
    ),
    *(_wmma(device, f, "fp32") for device in (0x1100, 0x1200, 0x1250) for f in ("fp16", "bf16")),
)

#: Builtin functions that CDNA 3 no longer has; it keeps those of the form "_1k".
_UNTIL_90A = ("f32_16x16x8bf16",)

_DEVICE = r"""
#include <hip/hip_runtime.h>

typedef _Float16 half4 __attribute__((ext_vector_type(4)));
typedef _Float16 half8 __attribute__((ext_vector_type(8)));
typedef _Float16 half16 __attribute__((ext_vector_type(16)));
typedef __bf16 bfloat8 __attribute__((ext_vector_type(8)));
typedef __bf16 bfloat16_t __attribute__((ext_vector_type(16)));
typedef short short8_t __attribute__((ext_vector_type(8)));
typedef short short16_t __attribute__((ext_vector_type(16)));
typedef float float8_t __attribute__((ext_vector_type(8)));
typedef short short2_t __attribute__((ext_vector_type(2)));
typedef short short4_t __attribute__((ext_vector_type(4)));
typedef float float2_t __attribute__((ext_vector_type(2)));
typedef float float4_t __attribute__((ext_vector_type(4)));
typedef double double4_t __attribute__((ext_vector_type(4)));

/* The operands of all cases. A wave takes sixteen of them: row r of A and column r of B are case
   16 * blockIdx.x + r, so the diagonal of the product holds sixteen dot products. */
struct Case {
  const uint8_t *a, *b, *c;
  uint8_t *d;
  int rows, terms, size_a, size_b, size_c;
};

struct Entry {
  const char *name;
  int device, threads;
  void (*kernel)(Case, int *);
};

/* A thread holds the values of row (of A) or column (of B) lane mod 16, and of the k that follow
   (lane / 16) times their number. */
template <class T>
__device__ inline T fragment(const Case &x, const uint8_t *base, int size) {
  T held;
  memset(&held, 0, sizeof held);
  int row = 16 * blockIdx.x + threadIdx.x % 16, each = sizeof(T) / size;
  if (row < x.rows) {
    const uint8_t *from = base + ((size_t)row * x.terms + threadIdx.x / 16 * each) * size;
    for (size_t i = 0; i < sizeof(T); i++) reinterpret_cast<uint8_t *>(&held)[i] = from[i];
  }
  return held;
}

/* The case whose result is element i of a thread's accumulator, or −1. */
__device__ inline int place(int i, bool fp64) {
  int column = threadIdx.x % 16, group = threadIdx.x / 16;
  int row = fp64 ? 4 * i + group : 4 * group + i;
  return row == column ? 16 * (int)blockIdx.x + row : -1;
}

template <class T, class V>
__device__ inline V load_c(const Case &x) {
  V held;
  for (int i = 0; i < 4; i++) {
    T value = 0;
    int at = place(i, sizeof(T) == 8);
    if (at >= 0 && at < x.rows)
      for (size_t j = 0; j < sizeof(T); j++)
        reinterpret_cast<uint8_t *>(&value)[j] = x.c[at * sizeof(T) + j];
    held[i] = value;
  }
  return held;
}

template <class T, class V>
__device__ inline void store_c(const Case &x, V held) {
  for (int i = 0; i < 4; i++) {
    T value = held[i];
    int at = place(i, sizeof(T) == 8);
    if (at >= 0 && at < x.rows)
      for (size_t j = 0; j < sizeof(T); j++)
        x.d[at * sizeof(T) + j] = reinterpret_cast<uint8_t *>(&value)[j];
  }
}

/* WMMA: a wave of 32 threads. On RDNA 3, thread t holds all sixteen k of row t mod 16, and the
   results of rows 2i + t / 16. On RDNA 4 it holds k = 0 to 3 and 8 to 11, or the four after each,
   and the results of rows i + 8 (t / 16). On gfx1250 it holds k = 0 to 7 and 16 to 23, or the eight
   after each. */
template <class T, int terms>
__device__ inline T wmma_fragment(const Case &x, const uint8_t *base) {
  T held;
  memset(&held, 0, sizeof held);
  int row = 16 * blockIdx.x + threadIdx.x % 16, half = threadIdx.x / 16;
  if (row < x.rows)
    for (int i = 0; i < (int)sizeof(T) / 2; i++) {
      int part = terms / 4, k = i % part + part * half + i / part * 2 * part;
      if (sizeof(T) == 2 * terms) k = i;
      memcpy(reinterpret_cast<uint8_t *>(&held) + 2 * i, base + 2 * ((size_t)row * x.terms + k), 2);
    }
  return held;
}

template <bool rdna3>
__device__ inline int wmma_place(int i) {
  int column = threadIdx.x % 16, half = threadIdx.x / 16;
  int row = rdna3 ? 2 * i + half : i + 8 * half;
  return row == column ? 16 * (int)blockIdx.x + row : -1;
}

template <bool rdna3>
__device__ inline float8_t wmma_load(const Case &x) {
  float8_t held;
  for (int i = 0; i < 8; i++) {
    int at = wmma_place<rdna3>(i);
    float value = 0;
    if (at >= 0 && at < x.rows) memcpy(&value, x.c + (size_t)at * 4, 4);
    held[i] = value;
  }
  return held;
}

template <bool rdna3>
__device__ inline void wmma_store(const Case &x, float8_t held) {
  for (int i = 0; i < 8; i++) {
    int at = wmma_place<rdna3>(i);
    float value = held[i];
    if (at >= 0 && at < x.rows) memcpy(x.d + (size_t)at * 4, &value, 4);
  }
}

#if defined(__gfx908__) || defined(__gfx90a__) || defined(__gfx940__) || defined(__gfx941__) || \
    defined(__gfx942__) || defined(__gfx950__)
#define LEVEL_908 1
#endif
#if defined(__gfx90a__) || defined(__gfx940__) || defined(__gfx941__) || defined(__gfx942__) || \
    defined(__gfx950__)
#define LEVEL_90A 1
#endif
#if defined(__gfx950__)
#define LEVEL_950 1
#endif
#if defined(__gfx1100__) || defined(__gfx1101__) || defined(__gfx1102__) || \
    defined(__gfx1103__) || defined(__gfx1150__) || defined(__gfx1151__) || defined(__gfx1152__)
#define LEVEL_1100 1
#endif
#if defined(__gfx1200__) || defined(__gfx1201__)
#define LEVEL_1200 1
#endif
#if defined(__gfx1250__)
#define LEVEL_1250 1
#endif
#if defined(__gfx940__) || defined(__gfx941__) || defined(__gfx942__)
#define LEVEL_940 1
#endif

"""

_HOST = r"""
static void start(void) {
  hipDeviceProp_t properties;
  if (hipGetDeviceProperties(&properties, 0) != hipSuccess) fail("there is no HIP device");
  set_device(properties.gcnArchName);
}

static const char *run_section(Section *s) {
  const Entry *entry = NULL;
  for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
    if (!strcmp(entries[i].name, s->name)) entry = &entries[i];
  if (!entry) return "unknown to this program";
  Operands host = operands_of(s);
  size_t length = (size_t)(host.d - host.a) + (size_t)s->rows * s->size_c;
  uint8_t *memory = NULL;
  int *ran = NULL, flag = 0;
  if (hipMalloc((void **)&memory, length) || hipMalloc((void **)&ran, sizeof flag))
    fail("there is no memory");
  if (hipMemcpy(memory, host.a, length, hipMemcpyHostToDevice) != hipSuccess ||
      hipMemset(ran, 0, sizeof flag) != hipSuccess)
    fail("the operands cannot be copied to the device");
  Case x;
  x.a = memory, x.b = memory + (host.b - host.a), x.c = memory + (host.c - host.a);
  x.d = memory + (host.d - host.a);
  x.rows = s->rows, x.terms = s->terms;
  x.size_a = s->size_a, x.size_b = s->size_b, x.size_c = s->size_c;
  entry->kernel<<<(s->rows + 15) / 16, entry->threads>>>(x, ran);
  hipError_t error = hipDeviceSynchronize();
  if (error != hipSuccess) return hipGetErrorString(error);
  if (hipMemcpy(&flag, ran, sizeof flag, hipMemcpyDeviceToHost) != hipSuccess ||
      hipMemcpy(host.d, x.d, (size_t)s->rows * s->size_c, hipMemcpyDeviceToHost) != hipSuccess)
    fail("the results cannot be copied from the device");
  (void)hipFree(memory), (void)hipFree(ran);
  return flag ? NULL : "not in this build; choose another ARCH";
}
"""

#: The type of the registers of an operand, by the kind of an instruction.
_TYPES = {
    "half4": "half4",
    "short2": "short2_t",
    "short4": "short4_t",
    "float": "float",
    "double": "double",
    "xf32": "float2_t",
    "long": "long",
    "f16x8": "half8",
    "bf16x8": "bfloat8",
    "f16x16": "half16",
    "bf16x16": "short16_t",
}


def _threads(each: ProbedInstruction) -> int:
    """Return the threads of a wave."""
    return 32 if each.name.startswith("wmma") else 64


def _kernel(each: ProbedInstruction) -> str:
    """Return the kernel of an instruction: load fragments, call the builtin function, store."""
    if each.name.startswith("wmma"):
        return _wmma_kernel(each)
    kind = _TYPES[each.kind]
    scalar = "double" if each.output == "fp64" else "float"
    guard = f"defined(LEVEL_{each.device:X})"
    if each.text in _UNTIL_90A:
        # A missing builtin function is an error of the compiler, and not of the run.
        guard += " && !defined(LEVEL_940) && !defined(LEVEL_950)"
    return f"""\
__global__ void {each.name}(Case x, int *ran) {{
#if {guard}
  {kind} a = fragment<{kind}>(x, x.a, x.size_a), b = fragment<{kind}>(x, x.b, x.size_b);
  {scalar}4_t c = load_c<{scalar}, {scalar}4_t>(x);
  store_c<{scalar}>(x, __builtin_amdgcn_mfma_{each.text}(a, b, c, 0, 0, 0));
  *ran = 1;
#endif
}}
"""


def _wmma_kernel(each: ProbedInstruction) -> str:
    """Return the kernel of an instruction of WMMA."""
    # Vectors of BF16 are those of 16-bit integers in the older builtin functions.
    kind, rdna3 = _TYPES[each.kind], "true" if each.device == 0x1100 else "false"
    call = "(a, b, c)"
    if each.device == 0x1250:
        call = "(0, a, 0, b, 0, c, 0, 0)"
        kind = "bfloat16_t" if each.kind == "bf16x16" else kind
    elif each.kind == "bf16x8":
        kind = "short8_t"
    load = f"wmma_fragment<{kind}, {each.terms}>"
    return f"""\
__global__ void {each.name}(Case x, int *ran) {{
#if defined(LEVEL_{each.device:X})
  {kind} a = {load}(x, x.a), b = {load}(x, x.b);
  float8_t c = wmma_load<{rdna3}>(x);
  wmma_store<{rdna3}>(x, __builtin_amdgcn_wmma_{each.text}{call});
  *ran = 1;
#endif
}}
"""


def program(instructions: list[ProbedInstruction]) -> dict[str, str]:
    """Return the source and the Makefile for these instructions."""
    table = "".join(
        f'  {{"{each.name}", {each.device:#x}, {_threads(each)}, {each.name}}},\n'
        for each in instructions
    )
    source = [
        COMMON,
        _DEVICE,
        "\n".join(_kernel(each) for each in instructions),
        "\nstatic const Entry entries[] = {\n" + table + "};\n",
        _HOST,
        "\n" + MAIN,
    ]
    makefile = (
        "ARCH ?= native\n\noutputs.bin: probe inputs.bin\n\t./probe inputs.bin outputs.bin\n\n"
        "probe: probe.hip\n\thipcc -O1 --offload-arch=$(ARCH) -o probe probe.hip\n"
    )
    return {"probe.hip": "".join(source), "Makefile": makefile}

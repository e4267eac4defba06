"""The program for AMX and AVX-512 BF16: C with intrinsics."""

from vitruvian.flows.probes.common import COMMON, MAIN
from vitruvian.flows.probes.instruction import ProbedInstruction

AMX = (
    ProbedInstruction("amx_tdpbf16ps", "bf16", "bf16", "fp32", 32),
    # The four products of signed and unsigned bytes: the letters of an instruction are those of A
    # and of B.
    *(
        ProbedInstruction(f"amx_tdpb{a}{b}d", f"{s[a]}int8", f"{s[b]}int8", "int32", 64)
        for s in ({"s": "", "u": "u"},)
        for a, b in ("ss", "su", "us", "uu")
    ),
    *(
        ProbedInstruction(f"amx_{name}", "fp16", "fp16", "fp32", 32)
        for name in ("tdpfp16ps", "tcmmrlfp16ps", "tcmmimfp16ps")
    ),
    # Letters as above: BF8 is E5M2, and HF8 is E4M3.
    *(
        ProbedInstruction(f"amx_tdp{letters}f8ps", f"fp8{a}", f"fp8{b}", "fp32", 64)
        for letters, a, b in (
            ("b", "e5m2", "e5m2"),
            ("h", "e4m3", "e4m3"),
            ("bh", "e5m2", "e4m3"),
            ("hb", "e4m3", "e5m2"),
        )
    ),
)
# One instruction adds the two products of a lane of 32 bits to C.
AVX512 = (ProbedInstruction("avx512_vdpbf16ps", "bf16", "bf16", "fp32", 2),)

_AMX = r"""
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Row r of a tile of A is the row of A of case r, and column r of B that of case r, so the diagonal
   of the product holds 16 dot products. */
typedef struct {
  uint8_t palette, start_row, reserved[14];
  uint16_t bytes[16];
  uint8_t rows[16];
} TileConfig;

static void start(void) {
  TileConfig config;
  memset(&config, 0, sizeof config);
  config.palette = 1;
  for (int tile = 0; tile < 3; tile++) config.bytes[tile] = 64, config.rows[tile] = 16;
  /* The kernel hands out the tile registers on request: ARCH_REQ_XCOMP_PERM, XTILEDATA. */
  if (syscall(SYS_arch_prctl, 0x1023, 18)) fail("this processor or kernel has no AMX tiles");
  _tile_loadconfig(&config);
  set_device("x86 with AMX");
}

/* Instructions that few assemblers know, as bytes: tmm0 += tmm1 * tmm2. A processor has them if the
   bit of EAX or EDX of its leaf and subleaf of CPUID is set. */
#define NEW(name, bytes) \
  static void name(void) { __asm__ volatile(".byte " bytes ::: "memory"); }
NEW(tdpfp16ps, "0xc4, 0xe2, 0x6b, 0x5c, 0xc1")
NEW(tcmmrlfp16ps, "0xc4, 0xe2, 0x68, 0x6c, 0xc1")
NEW(tcmmimfp16ps, "0xc4, 0xe2, 0x69, 0x6c, 0xc1")
NEW(tdpbf8ps, "0xc4, 0xe5, 0x68, 0xfd, 0xc1")
NEW(tdphf8ps, "0xc4, 0xe5, 0x69, 0xfd, 0xc1")
NEW(tdpbhf8ps, "0xc4, 0xe5, 0x6b, 0xfd, 0xc1")
NEW(tdphbf8ps, "0xc4, 0xe5, 0x6a, 0xfd, 0xc1")
static const struct {
  const char *name;
  void (*run)(void);
  uint32_t leaf, edx, bit;
} news[] = {
  {"amx_tdpfp16ps", tdpfp16ps, 7, 0, 21},
  {"amx_tcmmrlfp16ps", tcmmrlfp16ps, 7, 1, 8},
  {"amx_tcmmimfp16ps", tcmmimfp16ps, 7, 1, 8},
  {"amx_tdpbf8ps", tdpbf8ps, 0x1e, 0, 4},
  {"amx_tdphf8ps", tdphf8ps, 0x1e, 0, 4},
  {"amx_tdpbhf8ps", tdpbhf8ps, 0x1e, 0, 4},
  {"amx_tdphbf8ps", tdphbf8ps, 0x1e, 0, 4},
};

static int has(uint32_t leaf, uint32_t edx, uint32_t bit) {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(leaf, 1, &a, &b, &c, &d) && ((edx ? d : a) >> bit & 1);
}

static const char *run_section(Section *s) {
  Operands x = operands_of(s);
  void (*other)(void) = NULL;
  for (size_t i = 0; i < sizeof news / sizeof *news; i++)
    if (!strcmp(s->name, news[i].name)) {
      if (!has(news[i].leaf, news[i].edx, news[i].bit)) return "not in this processor";
      other = news[i].run;
    }
  uint32_t pair = 4 / s->size_a; /* values that stand together in B */
  for (uint32_t first = 0; first < s->rows; first += 16) {
    uint32_t many = s->rows - first < 16 ? s->rows - first : 16;
    static uint8_t a[1024], b[1024];
    static uint32_t c[256];
    memset(a, 0, sizeof a), memset(b, 0, sizeof b), memset(c, 0, sizeof c);
    for (uint32_t r = 0; r < many; r++) {
      memcpy(a + 64 * r, x.a + (size_t)(first + r) * 64, 64);
      for (uint32_t k = 0; k < s->terms; k++)
        memcpy(b + 64 * (k / pair) + 4 * r + (k % pair) * s->size_b,
               x.b + ((size_t)(first + r) * s->terms + k) * s->size_b, s->size_b);
      memcpy(c + 17 * r, x.c + (size_t)(first + r) * 4, 4);
    }
    _tile_loadd(0, c, 64);
    _tile_loadd(1, a, 64);
    _tile_loadd(2, b, 64);
    if (other) other();
    else if (!strcmp(s->name, "amx_tdpbf16ps")) _tile_dpbf16ps(0, 1, 2);
    else if (!strcmp(s->name, "amx_tdpbssd")) _tile_dpbssd(0, 1, 2);
    else if (!strcmp(s->name, "amx_tdpbsud")) _tile_dpbsud(0, 1, 2);
    else if (!strcmp(s->name, "amx_tdpbusd")) _tile_dpbusd(0, 1, 2);
    else if (!strcmp(s->name, "amx_tdpbuud")) _tile_dpbuud(0, 1, 2);
    else return "unknown to this program";
    _tile_stored(0, c, 64);
    for (uint32_t r = 0; r < many; r++) memcpy(x.d + (size_t)(first + r) * 4, c + 17 * r, 4);
  }
  return NULL;
}
"""

_AVX512 = r"""
#include <immintrin.h>

static void start(void) {
  if (!__builtin_cpu_supports("avx512bf16")) fail("this processor has no AVX-512 BF16");
  set_device("x86 with AVX-512 BF16");
}

/* Each of the 16 lanes is a dot product of two terms. */
static const char *run_section(Section *s) {
  Operands x = operands_of(s);
  if (strcmp(s->name, "avx512_vdpbf16ps")) return "unknown to this program";
  for (uint32_t first = 0; first < s->rows; first += 16) {
    uint32_t many = s->rows - first < 16 ? s->rows - first : 16;
    uint8_t a[64] = {0}, b[64] = {0}, c[64] = {0};
    memcpy(a, x.a + (size_t)first * 4, many * 4);
    memcpy(b, x.b + (size_t)first * 4, many * 4);
    memcpy(c, x.c + (size_t)first * 4, many * 4);
    __m512 d = _mm512_dpbf16_ps(_mm512_loadu_ps(c), (__m512bh)_mm512_loadu_si512(a),
                                (__m512bh)_mm512_loadu_si512(b));
    _mm512_storeu_ps(c, d);
    memcpy(x.d + (size_t)first * 4, c, many * 4);
  }
  return NULL;
}
"""


def program(target: str) -> dict[str, str]:
    """Return the source and the Makefile of the target ``amx`` or ``avx512``."""
    flags = {"amx": "-mamx-tile -mamx-bf16 -mamx-int8", "avx512": "-mavx512f -mavx512bf16"}[target]
    makefile = (
        "outputs.bin: probe inputs.bin\n\t./probe inputs.bin outputs.bin\n\n"
        f"probe: probe.c\n\t$(CC) -O1 {flags} -o probe probe.c\n"
    )
    body = {"amx": _AMX, "avx512": _AVX512}[target]
    return {"probe.c": COMMON + body + "\n" + MAIN, "Makefile": makefile}

"""The part of the header that is the same for every kernel, in C++."""

from vitruvian.golden.core import memory_map
from vitruvian.golden.core.encoding import DTYPES
from vitruvian.sim.davinci.cce.language.keywords import CONSTANTS, SPACES, TYPE_NAMES

#: Types of C++ by dtype.
C_TYPES = {"fp16": "half", "fp32": "float", "bf16": "bfloat16_t"} | {
    name: f"{name}_t" for name in DTYPES if "int" in name
}
_KINDS = {
    ("i", 1): "signed char",
    ("i", 2): "short",
    ("i", 4): "int",
    ("i", 8): "long long",
    ("u", 1): "unsigned char",
    ("u", 2): "unsigned short",
    ("u", 4): "unsigned int",
    ("u", 8): "unsigned long long",
    ("f", 2): "_Float16",
    ("f", 4): "float",
}
#: Names that the compiler has already.
_BUILT_IN = ("_Float16", "__bf16", "__fp16")

_TEXT = """
#define INLINE static inline __attribute__((always_inline))
#define BEGIN asm volatile("" ::: "memory")

// The queue register: the lower half of a word, then its upper half, which commits the word.
INLINE void put(uint32_t low, uint32_t high)
{
    volatile uint32_t *queue = (volatile uint32_t *)QUEUE_ADDRESS;
    queue[0] = low;
    queue[1] = high;
}

template <class T> struct same { typedef T type; };
template <class T> struct bare { typedef T type; };
template <class T> struct bare<const T> { typedef T type; };
template <class T> struct bare<volatile T> { typedef T type; };
template <class T> struct dtype_of { enum { code = DTYPE_UINT8, size = 1 }; };
template <class T> struct dtype_of<const T> : dtype_of<T> {};
template <class T> struct dtype_of<volatile T> : dtype_of<T> {};
#define DTYPE(type, number) \\
    template <> struct dtype_of<type> { enum { code = number, size = sizeof(type) }; };

// The code of a number: its bits, with zeros above them.
template <class T> INLINE uint64_t code_of(T value)
{
    uint64_t code = 0;
    __builtin_memcpy(&code, &value, sizeof(T));
    return code;
}

// A pointer to global memory is 0x80000000 above the place in it; all others are places.
template <class T> INLINE uint32_t place(T pointer) { return (uint32_t)pointer & 0x7FFFFFFF; }

static uint32_t mask_part[4] = {~0u, ~0u, ~0u, ~0u};
static uint32_t mask_words_128 = 0, mask_words_64 = 0;
static uint64_t fmatrix = 0, fcol2img = 0, padding = 0;

INLINE void set_vector_mask(uint64_t high, uint64_t low)
{
    mask_part[0] = (uint32_t)low;
    mask_part[1] = (uint32_t)(low >> 32);
    mask_part[2] = (uint32_t)high;
    mask_part[3] = (uint32_t)(high >> 32);
    mask_words_128 = ~(high & low) ? (high ? 2 : 1) : 0;
    mask_words_64 = ~low ? 1 : 0;
}
INLINE void set_vector_mask_dup(uint64_t mask) { set_vector_mask(mask, mask); }
INLINE void set_fmatrix(uint64_t config) { fmatrix = config; }
INLINE void set_fcol2img(uint64_t config) { fcol2img = config; }
INLINE void set_padding(uint64_t config) { padding = config; }

struct piece { uint32_t first, count, words, part[4]; };
INLINE piece masked(uint32_t lanes, uint32_t repeat)
{
    uint32_t words = lanes > 64 ? mask_words_128 : mask_words_64;
    return {0, repeat, words, {mask_part[0], mask_part[1], mask_part[2], mask_part[3]}};
}
INLINE void put_mask(const piece &p)
{
    if (p.words) {
        put(p.part[0], p.part[1]);
        if (p.words > 1) put(p.part[2], p.part[3]);
    }
}

template <class A, class B> INLINE auto max(A a, B b)
{
    typedef decltype(true ? a : b) C;
    return (C)b > (C)a ? (C)b : (C)a;
}
template <class A, class B> INLINE auto min(A a, B b)
{
    typedef decltype(true ? a : b) C;
    return (C)b < (C)a ? (C)b : (C)a;
}
template <class A> INLINE A abs(A a) { return a < 0 ? (A)-a : a; }
INLINE float sqrt(float a) { return __builtin_sqrtf(a); }
INLINE half sqrt(half a) { return (half)__builtin_sqrtf((float)a); }
INLINE uint64_t get_imm(uint64_t value) { return value; }
INLINE int64_t get_block_idx() { return HEAD[2]; }
INLINE int64_t get_block_num() { return HEAD[3]; }
#define block_idx get_block_idx()
#define block_num get_block_num()
template <class... A> INLINE int printf(A...) { return 0; }
"""

_COUNTING = """
static bool counting = false;
INLINE void set_mask_norm() { counting = false; }
INLINE void set_mask_count() { counting = true; }
template <class F> INLINE void pieces(uint32_t lanes, uint32_t repeat, F issue)
{
    if (!counting) {
        if (repeat) issue(masked(lanes, repeat));
        return;
    }
    uint32_t first = 0, whole = mask_part[0] / lanes, rest = mask_part[0] % lanes;
    while (first < whole) {
        uint32_t count = whole - first < 255 ? whole - first : 255;
        issue(piece{first, count, 0, {0, 0, 0, 0}});
        first += count;
    }
    if (!rest) return;
    uint64_t low = rest >= 64 ? ~0ull : (1ull << rest) - 1;
    uint64_t high = rest > 64 ? (1ull << (rest - 64)) - 1 : 0;
    issue(piece{whole, 1, rest > 64 ? 2u : 1u, {(uint32_t)low, (uint32_t)(low >> 32),
                                               (uint32_t)high, (uint32_t)(high >> 32)}});
}
"""

_NOT_COUNTING = """
INLINE void set_mask_norm() {}
template <class F> INLINE void pieces(uint32_t lanes, uint32_t repeat, F issue)
{
    if (repeat) issue(masked(lanes, repeat));
}
"""


def prelude(*, counting: bool) -> str:
    """Return types, registers and functions that kernels and intrinsics need.

    Parameters
    ----------
    counting : bool
        Include the mode in which the mask is a number of elements.
    """
    lines = []
    for name, kind in TYPE_NAMES.items():
        if name in _BUILT_IN or any(name == enumeration for enumeration, _ in CONSTANTS.values()):
            continue
        if kind in _KINDS:
            lines.append(f"typedef {_KINDS[kind]} {name};")
    lines.append("struct bfloat16_t { uint16_t code; };")
    for number, word in enumerate(SPACES, start=1):
        lines.append(f"#define {word} __attribute__((address_space({number})))")
    for enumeration in dict.fromkeys(enumeration for enumeration, _ in CONSTANTS.values()):
        members = [f"{n} = {v}" for n, (kind, v) in CONSTANTS.items() if kind == enumeration]
        lines.append(f"enum {enumeration} {{ {', '.join(members)} }};")
    lines.append(f"#define QUEUE_ADDRESS {memory_map.QUEUE:#x}u")
    lines.append(f"#define HEAD ((volatile const uint32_t *){memory_map.CODE:#x}u)")
    lines.append(f"#define DTYPE_UINT8 {DTYPES.index('uint8')}")
    codes = [f"DTYPE({kind}, {DTYPES.index(dtype)})" for dtype, kind in C_TYPES.items()]
    codes += [f"DTYPE(char, {DTYPES.index('int8')})", f"DTYPE(bool, {DTYPES.index('uint8')})"]
    return "\n".join([*lines, _TEXT, *codes, _COUNTING if counting else _NOT_COUNTING])

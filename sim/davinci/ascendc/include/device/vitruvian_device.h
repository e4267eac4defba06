// What the device's compiler knows before the first line of a kernel: qualifiers, types, queries.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <math.h>  // for pow of integers in the global namespace

#define __aicore__
#define __gm__
#define __ubuf__
#define __cbuf__
#define __ca__
#define __cb__
#define __cc__
#define __fbuf__
#define __biasbuf__
#define __ssbuf__
#define __global__
#define __vector__
#define __cube__
#define __mix__(...)
#define __aicpu__
#define __host_aicore__
#define __sync_alias__
#define __sync_noalias__
#define __sync_in__
#define __sync_out__
#define __check_sync_alias__
#define __inout_pipe__(...)
#define __in_pipe__(...)
#define __out_pipe__(...)
#define __kfc_workspace__
#define __launch_bounds__(...)
#define __tf__
#define __in__
#define __out__
#define __cce_get_tile_ptr(place) (place)
#define __forceinline__ inline

// g++ refuses it for a function whose body is in another file.
#define always_inline unused

using half = _Float16;
using float16_t = _Float16;
using float32_t = float;
#define __fp16 half

// The upper half of FP32, rounded to nearest, ties to even.
struct bfloat16_t {
    uint16_t bits = 0;
    bfloat16_t() = default;
    constexpr bfloat16_t(float value) {
        uint32_t word = __builtin_bit_cast(uint32_t, value);
        bool nan = (word & 0x7FFFFFFF) > 0x7F800000;
        bits = static_cast<uint16_t>(nan ? word >> 16 | 64 : (word + 0x7FFF + (word >> 16 & 1)) >> 16);
    }
    template <class T> constexpr explicit bfloat16_t(T value) : bfloat16_t(static_cast<float>(value)) {}
    constexpr operator float() const {
        return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16);
    }
};
#define __bf16 bfloat16_t

#include "vitruvian_recorder.h"
#include "vitruvian_faults.h"
#include "vitruvian_intrinsics.h"

inline int64_t block_idx, block_num = 1;

inline int64_t get_block_idx() { return static_cast<int64_t>(vitruvian::state.block); }
inline int64_t get_block_num() { return static_cast<int64_t>(vitruvian::state.blocks); }
inline int64_t get_coreid() { return get_block_idx(); }
inline int64_t get_subblockid() { return static_cast<int64_t>(vitruvian::state.sub); }
inline int64_t get_subblockdim() { return static_cast<int64_t>(vitruvian::state.subs); }
inline int64_t get_task_ration() { return get_subblockdim(); }
inline uint64_t get_ctrl() { return vitruvian::state.registers[0]; }
inline uint64_t get_fpc() { return vitruvian::state.registers[1]; }
inline int64_t get_rsvd_cnt() { return vitruvian::query(0); }
inline int64_t get_acc_val() { return vitruvian::query(1); }
inline int64_t get_max_min_cnt() { return vitruvian::query(2); }
inline int64_t get_vms4_sr() { return vitruvian::query(3); }
inline uint64_t get_status() { return 0; }
inline uint64_t get_overflow_status() { return 0; }
inline int64_t get_st_atomic_cfg() { return 0; }
inline int64_t get_sys_cnt() { return 0; }
template <class T> inline T get_imm(T value) { return value; }

using std::max;
using std::min;

inline int64_t bcnt1(uint64_t x) { return __builtin_popcountll(x); }
inline int64_t bcnt0(uint64_t x) { return 64 - __builtin_popcountll(x); }
inline int64_t clz(uint64_t x) { return x ? __builtin_clzll(x) : 64; }
inline int64_t sff0(uint64_t x) { return ~x ? __builtin_ctzll(~x) : -1; }
inline int64_t sff1(uint64_t x) { return x ? __builtin_ctzll(x) : -1; }
inline uint64_t sbitset0(uint64_t x, int64_t bit) { return x & ~(1ull << bit); }
inline uint64_t sbitset1(uint64_t x, int64_t bit) { return x | 1ull << bit; }
inline int64_t sflbits(int64_t x) { return x == 0 || x == -1 ? 63 : __builtin_clzll(x < 0 ? ~x : x) - 1; }

inline int64_t conv_f322s32r(float x) { return static_cast<int64_t>(nearbyintf(x)); }
inline int64_t conv_f322s32a(float x) { return static_cast<int64_t>(roundf(x)); }
inline int64_t conv_f322s32f(float x) { return static_cast<int64_t>(floorf(x)); }
inline int64_t conv_f322s32c(float x) { return static_cast<int64_t>(ceilf(x)); }
inline int64_t conv_f322s32z(float x) { return static_cast<int64_t>(truncf(x)); }

// Scalar accesses past the cache, which is not modelled; only the offset 0 is known.
template <class T, class N> inline T ld_dev(T *place, N offset) {
    if (offset) vitruvian::missing("ld_dev with an offset");
    return *place;
}
template <class V, class T, class N> inline void st_dev(V value, T *place, N offset) {
    if (offset) vitruvian::missing("st_dev with an offset");
    *place = static_cast<T>(value);
}

// Rounded to odd: an inexact result has its last bit set.
inline half conv_f322f16o(float x) {
    half result = static_cast<half>(x);
    float back = static_cast<float>(result);
    if (back == x || x != x) return result;
    uint16_t bits;
    __builtin_memcpy(&bits, &result, 2);
    if (fabsf(back) > fabsf(x)) bits--;
    bits |= 1;
    __builtin_memcpy(&result, &bits, 2);
    return result;
}

namespace vitruvian {

template <class... A> __attribute__((noinline)) inline void print_text(const char *format, A... a) {
    char text[4001];
    if constexpr (sizeof...(A) == 0) snprintf(text, sizeof text, "%s", format);
    else snprintf(text, sizeof text, format, promoted(a)...);
    print(text);
}

}  // namespace vitruvian

// The linker sends the program's own printf here.
extern "C" {
__attribute__((noinline, weak)) int __wrap_printf(const char *format, ...) {
    char text[4001];
    __builtin_va_list values;
    __builtin_va_start(values, format);
    int count = vsnprintf(text, sizeof text, format, values);
    __builtin_va_end(values);
    vitruvian::print(text);
    return count;
}
}

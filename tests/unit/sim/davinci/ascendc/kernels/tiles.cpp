// A kernel in the words of tile libraries: the device compiler's own attribute and qualifiers.
#include <runtime/rt_ffts.h>

#define AICORE [aicore]
#define LIBRARY AICORE inline __attribute__((always_inline))

using namespace std;
using __cce_scalar::addr_cal_mode_t;

template <class T> struct Tile {
    using Data = __ubuf__ T *;
    LIBRARY constexpr explicit Tile(uint64_t place) : data(reinterpret_cast<Data>(place)) {}
    Data data;
};

template <class T>
__tf__ LIBRARY void add(typename Tile<T>::Data __out__ to, typename Tile<T>::Data __in__ from,
                        unsigned rows) {
    auto *place = (__ubuf__ T *)__cce_get_tile_ptr(to);
    vadd(place, (__ubuf__ T *)__cce_get_tile_ptr(from), place, max(rows, 1u), 1, 1, 1, 8, 8, 8);
}

template <pipe_t from, pipe_t to> LIBRARY void order() {
    set_flag(from, to, EVENT_ID0);
    wait_flag(from, to, EVENT_ID0);
}

__global__ AICORE void sum(__gm__ half *x, __gm__ half *y, uint64_t flags) {
#if defined(__DAV_C220_VEC__)
    set_ffts_base_addr(flags);
    set_mask_norm();
    set_vector_mask(-1, -1);
    Tile<float16_t> a(0), b(0x1000);
    __gm__ half *mine = x + 128 * get_block_idx();
    copy_gm_to_ubuf(a.data, mine, 0, 1, 8, 0, 0);
    copy_gm_to_ubuf(b.data, y + 128 * block_idx, 0, 1, 8, 0, 0);
    order<PIPE_MTE2, PIPE_V>();
    add<half>(a.data, b.data, 1);
#ifndef WITHOUT_FLAG
    order<PIPE_V, PIPE_MTE3>();
#endif
    copy_ubuf_to_gm(mine, a.data, 0, 1, 8, 0, 0);
    pipe_barrier(PIPE_ALL);
#endif
}

// The host's part is compiled, and not called.
extern "C" void call_sum(uint32_t blocks, void *stream, uint8_t *x, uint8_t *y) {
    uint64_t flags = 0;
    uint32_t bytes = 0;
    rtGetC2cCtrlAddr(&flags, &bytes);
    sum<<<blocks, nullptr, stream>>>((__gm__ half *)x, (__gm__ half *)y, flags);
}

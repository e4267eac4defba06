// Scalar accesses of every size, in UB and in global memory, and loops that depend on data.
#include "kernel_operator.h"
using namespace AscendC;

struct Tiling {
    uint32_t rows, columns;
    uint64_t wide;
    int8_t small[20];
    float scale;
};

template <class T> static void twice(__gm__ T *x, LocalTensor<T> a) {
    a.SetValue(0, x[0]);
    T value = a.GetValue(0);
    a.SetValue(1, value + value);
    x[1] = a.GetValue(1);
    x[2] += x[1];
    x[3]++;
    const T *from = a.GetPhyAddr();
    x[4] = from[x[3] > T(0) ? 1 : 0] * T(3);
}

extern "C" __global__ __aicore__ void sizes(__gm__ int8_t *b, __gm__ uint16_t *s, __gm__ int32_t *w,
                                            __gm__ uint64_t *l, __gm__ half *h, __gm__ float *f) {
    twice(b, LocalTensor<int8_t>(TPosition::VECCALC, 0, 32));
    twice(s, LocalTensor<uint16_t>(TPosition::VECCALC, 64, 32));
    twice(w, LocalTensor<int32_t>(TPosition::VECCALC, 128, 32));
    twice(l, LocalTensor<uint64_t>(TPosition::VECCALC, 256, 32));
    twice(h, LocalTensor<half>(TPosition::VECCALC, 512, 32));
    twice(f, LocalTensor<float>(TPosition::VECCALC, 1024, 32));
}

// Sum the elements before the first that is not positive, after the vector unit has doubled them.
extern "C" __global__ __aicore__ void loop(__gm__ half *x, __gm__ float *out, __gm__ uint8_t *words) {
    Tiling tiling = *reinterpret_cast<__gm__ Tiling *>(words);
    LocalTensor<half> a(TPosition::VECCALC, 0, 128);
    GlobalTensor<half> gm;
    gm.SetGlobalBuffer(x, 128);
    DataCopy(a, gm, 128);
#ifndef WITHOUT_COPY_FLAG
    SetFlag<HardEvent::MTE2_V>(0);
    WaitFlag<HardEvent::MTE2_V>(0);
#endif
    Add(a, a, a, 128);
#ifndef WITHOUT_FLAG
    SetFlag<HardEvent::V_S>(0);
    WaitFlag<HardEvent::V_S>(0);
#endif
    float sum = 0;
    for (int i = 0; i < 128 && a.GetValue(i) > half(0); i++) sum += float(a.GetValue(i));
    *out = sum * tiling.scale + tiling.rows * 1000 + tiling.small[19] + tiling.wide;
    PRINTF("rows %u, scale %g, half %g\n", tiling.rows, tiling.scale, a.GetValue(0));
    DumpTensor(a, 5, 4);
}

template <class T, int n> __global__ __aicore__ void filled(__gm__ T *x) {
    for (int i = 0; i < n; i++) x[i] = T(GetBlockIdx() * 10 + i);
}

// Copy 40 elements of each of two repeats, or 70 elements, over −1.
extern "C" __global__ __aicore__ void copies(__gm__ int32_t *x, __gm__ int32_t *y, int32_t counting) {
    LocalTensor<int32_t> a(TPosition::VECCALC, 0, 128), b(TPosition::VECCALC, 512, 128);
    GlobalTensor<int32_t> from, to;
    from.SetGlobalBuffer(x, 128);
    to.SetGlobalBuffer(y, 128);
    DataCopy(a, from, 128);
    Duplicate(b, -1, 128);
    pipe_barrier(PIPE_ALL);
    if (counting) {
        set_mask_count();
        set_vector_mask(0, counting);
    } else {
        set_vector_mask(0, (1ull << 40) - 1);
    }
    if (counting > 64) vcopy(b.GetPhyAddr(), a.GetPhyAddr(), 1, 1, 1, 0, 0);
    else vcopy(b.GetPhyAddr(), a.GetPhyAddr(), 2, 1, 1, 8, 8);
    pipe_barrier(PIPE_ALL);
    DataCopy(to, b, 128);
}

// One instruction that reads and writes its place, one of eight bytes, and a copy of words.
extern "C" __global__ __aicore__ void updates(__gm__ int32_t *x, __gm__ uint64_t *y) {
    asm volatile("addl $3, (%0)" ::"r"(x + 1) : "memory");
    asm volatile("notq 8(%0)" ::"r"(y) : "memory");
    auto *to = y + 2;
    auto *from = y;
    int64_t count = 2;
    asm volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(count)::"memory");
}

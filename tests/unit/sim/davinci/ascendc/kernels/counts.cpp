// Registers that instructions of the vector unit set, products of 4 bits and sparse products.
#include "kernel_operator.h"
using namespace AscendC;

// out = the sum of n elements of x, which are in one repeat or several, and nothing else is written.
template <class T>
inline void sum_of(__gm__ T *x, __gm__ T *out, int64_t n, bool repeats) {
    LocalTensor<T> from(TPosition::VECIN, 256, 1024);
    GlobalTensor<T> all;
    all.SetGlobalBuffer(x);
    DataCopy(from, all, 1024);
    SetFlag<HardEvent::MTE2_V>(0);
    WaitFlag<HardEvent::MTE2_V>(0);
    T *nowhere = nullptr;
    if (repeats) {
        vcadd(nowhere, from.GetPhyAddr(), n * sizeof(T) / 256, 1, 1, 8, true);
    } else {
        Counting counting(n);
        vcadd(nowhere, from.GetPhyAddr(), 1, 1, 1, 8, true);
    }
    SetFlag<HardEvent::V_S>(0);
    WaitFlag<HardEvent::V_S>(0);
    int64_t sum = get_acc_val();
    out[0] = *reinterpret_cast<T *>(&sum);
}
extern "C" __global__ __vector__ void sums(__gm__ half *x, __gm__ half *out, int64_t n, int64_t r) {
    sum_of(x, out, n, r);
}
extern "C" __global__ __vector__ void singles(__gm__ float *x, __gm__ float *out, int64_t n,
                                              int64_t r) {
    sum_of(x, out, n, r);
}

// out = the codes and the indices of the largest and of the smallest of eight repeats.
extern "C" __global__ __vector__ void extremes(__gm__ half *x, __gm__ int64_t *out) {
    LocalTensor<half> from(TPosition::VECIN, 0, 1024), to(TPosition::VECOUT, 4096, 64);
    GlobalTensor<half> all;
    all.SetGlobalBuffer(x);
    DataCopy(from, all, 1024);
    SetFlag<HardEvent::MTE2_V>(0);
    WaitFlag<HardEvent::MTE2_V>(0);
    vcmax(to.GetPhyAddr(), from.GetPhyAddr(), 8, 1, 1, 8, VALUE_INDEX);
    SetFlag<HardEvent::V_S>(0);
    WaitFlag<HardEvent::V_S>(0);
    out[0] = get_max_min_cnt();
    vcmin(to[32].GetPhyAddr(), from.GetPhyAddr(), 8, 1, 1, 8, VALUE_INDEX);
    SetFlag<HardEvent::V_S>(0);
    WaitFlag<HardEvent::V_S>(0);
    out[1] = get_max_min_cnt();
}

// y = what a merge of four lists of 32 pairs leaves that stops when one is exhausted.
extern "C" __global__ __vector__ void merges(__gm__ float *x, __gm__ float *y, __gm__ int64_t *out,
                                             int64_t control) {
    LocalTensor<float> from(TPosition::VECIN, 0, 256), to(TPosition::VECOUT, 4096, 256);
    GlobalTensor<float> all, back;
    all.SetGlobalBuffer(x);
    back.SetGlobalBuffer(y);
    DataCopy(from, all, 256);
    DataCopy(to, back, 256);
    SetFlag<HardEvent::MTE2_V>(0);
    WaitFlag<HardEvent::MTE2_V>(0);
    float *lists[4] = {from.GetPhyAddr(), from[64].GetPhyAddr(), from[128].GetPhyAddr(),
                       from[192].GetPhyAddr()};
    vmrgsort4(to.GetPhyAddr(), lists, uint64_t{0x0020002000200020}, uint64_t(control));
    SetFlag<HardEvent::V_MTE3>(0);
    WaitFlag<HardEvent::V_MTE3>(0);
    DataCopy(back, to, 256);
    SetFlag<HardEvent::V_S>(0);
    WaitFlag<HardEvent::V_S>(0);
    out[0] = get_vms4_sr();
}

// c = a · b: numbers of 4 bits (16 × 64 · 64 × 16), or a sparse b of 8 bits.
extern "C" __global__ __cube__ void products(__gm__ int8_t *a, __gm__ int8_t *b,
                                             __gm__ int8_t *places, __gm__ int32_t *c) {
    auto *a1 = reinterpret_cast<int8_t *>(0x1000), *b1 = reinterpret_cast<int8_t *>(0x2000);
    auto *p1 = reinterpret_cast<int8_t *>(PLACES);
    LocalTensor<int32_t> c0(TPosition::CO1, 0, 256);
    copy_gm_to_cbuf(a1, a, 0, 1, 32, 0, 0, PAD_NONE);
    copy_gm_to_cbuf(b1, b, 0, 1, 16, 0, 0, PAD_NONE);
    copy_gm_to_cbuf(p1, places, 0, 1, 4, 0, 0, PAD_NONE);
    SetFlag<HardEvent::MTE2_MTE1>(0);
    WaitFlag<HardEvent::MTE2_MTE1>(0);
    int8_t *near = nullptr;
#ifdef SPARSE
    load_cbuf_to_ca(near, a1, 0, 2, 1, 0, 0, false, inc);
    // The address of the places is in the upper half of the word.
    load_cbuf_to_cb_sp(near, reinterpret_cast<int8_t *>(0x2000 | uint64_t{PLACES} << 32), 0, 1);
#else
    load_cbuf_to_ca_s4((void *)near, (void *)a1, 0, 1, 1, 0, 0, false, inc);
    load_cbuf_to_cb_s4((void *)near, (void *)b1, 0, 1, 1, 0, 0, false, inc);
#endif
    SetFlag<HardEvent::MTE1_M>(0);
    WaitFlag<HardEvent::MTE1_M>(0);
#ifdef SPARSE
    mad_sp(c0.GetPhyAddr(), near, near, 16, 64, 16, 0, false, true);
#else
    mad_s4(c0.GetPhyAddr(), (void *)near, (void *)near, 16, 64, 16, 0, false, false, true);
#endif
    SetFlag<HardEvent::M_FIX>(0);
    WaitFlag<HardEvent::M_FIX>(0);
    GlobalTensor<int32_t> out;
    out.SetGlobalBuffer(c);
    Fixpipe(out, c0, FixpipeParamsV220{16, 16, 16, 16});
}

// y = x in 4 bits, rounded up.
extern "C" __global__ __vector__ void casts(__gm__ half *x, __gm__ uint8_t *y, int64_t n) {
    LocalTensor<half> from(TPosition::VECIN, 0, 512);
    LocalTensor<uint8_t> to(TPosition::VECOUT, 4096, 256);
    GlobalTensor<half> all;
    GlobalTensor<uint8_t> back;
    all.SetGlobalBuffer(x);
    back.SetGlobalBuffer(y);
    DataCopy(from, all, 512);
    DataCopy(to, back, 256);
    SetFlag<HardEvent::MTE2_V>(0);
    WaitFlag<HardEvent::MTE2_V>(0);
    {
        Counting counting(n);
        vconv_f162s4c((void *)to.GetPhyAddr(), from.GetPhyAddr(), 1, 1, 1, 2, 8);
    }
    SetFlag<HardEvent::V_MTE3>(0);
    WaitFlag<HardEvent::V_MTE3>(0);
    DataCopy(back, to, 256);
}

extern "C" __global__ __vector__ void unset(__gm__ int64_t *out) { out[0] = get_acc_val(); }

// The functions of this project's own kernel_operator.h.
#include "kernel_operator.h"
using namespace AscendC;

// y = trunc(min(max(2 (|x| + 1), 3), 7)) / 2 of 100 elements, and the sum of the first 64.
extern "C" __global__ __vector__ void vectors(__gm__ half *x, __gm__ int32_t *y, __gm__ float *sum) {
    TPipe pipe;
    TQue<TPosition::VECIN, 1> in;
    TBuf<> work, whole;
    pipe.InitBuffer(in, 1, 256);
    pipe.InitBuffer(work, 512);
    pipe.InitBuffer(whole, 512);
    GlobalTensor<half> from;
    GlobalTensor<int32_t> to;
    from.SetGlobalBuffer(x, 100);
    to.SetGlobalBuffer(y, 100);
    DataCopyExtParams bytes{1, 200, 0, 0, 0};
    auto a = in.AllocTensor<half>();
    DataCopyPad(a, from, bytes, DataCopyPadExtParams<half>{});
    in.EnQue(a);
    a = in.DeQue<half>();
    auto f = work.Get<float>();
    auto i = whole.Get<int32_t>();
    Cast(f, a, RoundMode::CAST_NONE, 100);
    PipeBarrier<PIPE_V>();
    Abs(f, f, 100);
    PipeBarrier<PIPE_V>();
    Adds(f, f, 1.0f, 100);
    PipeBarrier<PIPE_V>();
    Add(f, f, f, 64, 1, BinaryRepeatParams{});
    Muls(f[64], f[64], 2.0f, 36);
    PipeBarrier<PIPE_V>();
    Maxs(f, f, 3.0f, 100);
    PipeBarrier<PIPE_V>();
    Mins(f, f, 7.0f, 100);
    PipeBarrier<PIPE_V>();
    Cast(i, f, RoundMode::CAST_TRUNC, 100);
    WholeReduceSum(f[100], f, 64, 1, 1, 1, 8);
    in.FreeTensor(a);
    SetFlag<HardEvent::V_MTE3>(0);
    WaitFlag<HardEvent::V_MTE3>(0);
    DataCopyPad(to, i, DataCopyExtParams{1, 400, 0, 0, 0});
    SetFlag<HardEvent::V_S>(0);
    WaitFlag<HardEvent::V_S>(0);
    sum[0] = f.GetValue(100);
}

// c = a · b of 32×32 elements.
extern "C" __global__ __cube__ void product(__gm__ half *a, __gm__ half *b, __gm__ float *c) {
    constexpr uint16_t n = 32;
    LocalTensor<half> a1(TPosition::A1, 0, n * n), b1(TPosition::B1, 2 * n * n, n * n);
    LocalTensor<half> a2(TPosition::A2, 0, n * n), b2(TPosition::B2, 0, n * n);
    LocalTensor<float> c1(TPosition::CO1, 0, n * n);
    GlobalTensor<half> ga, gb;
    GlobalTensor<float> gc;
    ga.SetGlobalBuffer(a);
    gb.SetGlobalBuffer(b);
    gc.SetGlobalBuffer(c);
    DataCopy(a1, ga, Nd2NzParams{1, n, n, 0, n, n, 1, 0});
    DataCopy(b1, gb, Nd2NzParams{1, n, n, 0, n, n, 1, 0});
    SetFlag<HardEvent::MTE2_MTE1>(0);
    WaitFlag<HardEvent::MTE2_MTE1>(0);
    for (uint16_t row = 0; row < n / 16; row++) {
        LoadDataA(a2[row * 16 * n], a1, LoadData2DParams{row, n / 16, n / 16, 0, 0, false});
        LoadDataB(b2[row * 16 * n], b1, LoadData2DParams{row, n / 16, n / 16, 0, 0, true});
    }
    SetFlag<HardEvent::MTE1_M>(0);
    WaitFlag<HardEvent::MTE1_M>(0);
    Mmad(c1, a2, b2, MmadParams{n, n, n});
    SetFlag<HardEvent::M_FIX>(0);
    WaitFlag<HardEvent::M_FIX>(0);
    Fixpipe(gc, c1, FixpipeParamsV220{n, n, n, n});
}

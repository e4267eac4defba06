// z = x + y in AscendC, or z = x + 2y with -D TWICE, for `vitruvian ascendc`.
//
// With TWICE the second Add reads what the first one writes, and a barrier is missing between them;
// -D BARRIER repairs it. See docs/units/ascendc.md.
#include "kernel_operator.h"
using namespace AscendC;

constexpr int32_t TILE = 256;

class KernelAdd {
public:
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, GM_ADDR z, int32_t n) {
        count = n / GetBlockNum();
        uint64_t first = uint64_t(count) * GetBlockIdx();
        xGm.SetGlobalBuffer((__gm__ half *)x + first, count);
        yGm.SetGlobalBuffer((__gm__ half *)y + first, count);
        zGm.SetGlobalBuffer((__gm__ half *)z + first, count);
        pipe.InitBuffer(inX, 2, TILE * sizeof(half));
        pipe.InitBuffer(inY, 2, TILE * sizeof(half));
        pipe.InitBuffer(outZ, 2, TILE * sizeof(half));
    }

    __aicore__ inline void Process() {
        for (int32_t i = 0; i < count / TILE; i++) {
            CopyIn(i);
            Compute();
            CopyOut(i);
        }
    }

private:
    __aicore__ inline void CopyIn(int32_t i) {
        LocalTensor<half> x = inX.AllocTensor<half>();
        LocalTensor<half> y = inY.AllocTensor<half>();
        DataCopy(x, xGm[i * TILE], TILE);
        DataCopy(y, yGm[i * TILE], TILE);
        inX.EnQue(x);
        inY.EnQue(y);
    }

    __aicore__ inline void Compute() {
        LocalTensor<half> a = inX.DeQue<half>();
        LocalTensor<half> b = inY.DeQue<half>();
        LocalTensor<half> z = outZ.AllocTensor<half>();
        Add(z, a, b, TILE);
#ifdef TWICE
#ifdef BARRIER
        PipeBarrier<PIPE_V>();
#endif
        Add(z, z, b, TILE);
#endif
        outZ.EnQue<half>(z);
        inX.FreeTensor(a);
        inY.FreeTensor(b);
    }

    __aicore__ inline void CopyOut(int32_t i) {
        LocalTensor<half> z = outZ.DeQue<half>();
        DataCopy(zGm[i * TILE], z, TILE);
        outZ.FreeTensor(z);
    }

    TPipe pipe;
    TQue<QuePosition::VECIN, 2> inX, inY;
    TQue<QuePosition::VECOUT, 2> outZ;
    GlobalTensor<half> xGm, yGm, zGm;
    int32_t count = 0;
};

extern "C" __global__ __aicore__ void add_custom(GM_ADDR x, GM_ADDR y, GM_ADDR z, int32_t n) {
    KernelAdd op;
    op.Init(x, y, z, n);
    op.Process();
}

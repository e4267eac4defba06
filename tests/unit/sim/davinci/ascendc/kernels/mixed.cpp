// Cores that wait for each other: by flags between cores, and by polling global memory.
#include "kernel_operator.h"
using namespace AscendC;

// A Cube core counts, its two vector cores double the count, and the Cube core adds the results.
extern "C" __global__ __mix__(1, 2) void flags(__gm__ int32_t *x) {
    int64_t group = get_block_idx();
    __gm__ int32_t *mine = x + group * 16;
#ifdef __DAV_C220_CUBE__
    mine[0] = int32_t(group) + 5;
    CrossCoreSetFlag<2, PIPE_FIX>(3);
    CrossCoreWaitFlag<2>(4);
    mine[3] = mine[1] + mine[2];
#else
    CrossCoreWaitFlag<2>(3);
    mine[1 + GetSubBlockIdx()] = 2 * mine[0];
    CrossCoreSetFlag<2, PIPE_MTE3>(4);
#endif
}

// Every block waits for the next one to its right, which runs later.
extern "C" __global__ __vector__ void polls(volatile __gm__ int32_t *x) {
    int64_t block = GetBlockIdx();
    if (block + 1 < GetBlockNum())
        while (x[8 * (block + 1)] == 0) {}
    x[8 * block] = block + 1 < GetBlockNum() ? x[8 * (block + 1)] + 1 : 1;
}

extern "C" __global__ __vector__ void never(volatile __gm__ int32_t *x) {
    while (x[0] == 0) {}
}

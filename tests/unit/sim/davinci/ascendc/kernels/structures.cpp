// A kernel whose tiling is a structure by value, and one whose tiling is in global memory.
#include "kernel_operator.h"
using namespace AscendC;

struct Tiling {
    uint16_t rows;
    uint32_t columns;
    float scale;
    int64_t shift;
    uint8_t last;
};

extern "C" __global__ __aicore__ void by_value(GM_ADDR x, Tiling tiling, int32_t more) {
    auto *to = reinterpret_cast<__gm__ float *>(x);
    to[0] = tiling.rows;
    to[1] = tiling.columns;
    to[2] = tiling.scale;
    to[3] = tiling.shift;
    to[4] = tiling.last + more;
}

extern "C" __global__ __aicore__ void in_memory(GM_ADDR x, GM_ADDR tiling) {
    auto *to = reinterpret_cast<__gm__ float *>(x);
    auto *from = reinterpret_cast<__gm__ Tiling *>(tiling);
    to[0] = from->rows;
    to[1] = from->columns;
    to[2] = from->scale;
    to[3] = from->shift;
    to[4] = from->last;
}

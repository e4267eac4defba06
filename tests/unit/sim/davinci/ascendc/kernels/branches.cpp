// A barrier that is missing on one side of a branch on data.
#include "kernel_operator.h"
using namespace AscendC;

extern "C" __global__ __vector__ void branches(__gm__ half *x, __gm__ half *y, int32_t n) {
    __ubuf__ half *near = (__ubuf__ half *)0;
    copy_gm_to_ubuf(near, x, 0, 1, 8, 0, 0);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    set_flag(PIPE_MTE2, PIPE_S, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_S, EVENT_ID0);
    set_vector_mask(-1, -1);
    vadd(near + 128, near, near, 1, 1, 1, 1, 8, 8, 8);
    if ((float)near[0] > 3.0f) {  // the first side has no barrier
#ifdef BARRIER
        pipe_barrier(PIPE_V);
#endif
        vadd(near + 256, near + 128, near, 1, 1, 1, 1, 8, 8, 8);
    } else {
        pipe_barrier(PIPE_V);
        vadd(near + 256, near + 128, near + 128, 1, 1, 1, 1, 8, 8, 8);
    }
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    copy_ubuf_to_gm(y, near + 256, 0, 1, 8, 0, 0);
}

// A loop on data, which does not end with other data.
extern "C" __global__ __vector__ void loops(__gm__ half *x) {
    __ubuf__ half *near = (__ubuf__ half *)0;
    copy_gm_to_ubuf(near, x, 0, 1, 1, 0, 0);
    set_flag(PIPE_MTE2, PIPE_S, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_S, EVENT_ID0);
    volatile __ubuf__ half *first = near;
    while ((float)*first != 0.0f) {}
}

// A core writes data and then a word; another core reads the word until it has changed.
#include "kernel_operator.h"
using namespace AscendC;

#ifndef ORDER
#define ORDER x[16] = 7; x[0] = 1;
#endif
#ifndef WAIT
#define WAIT while (x[0] != 1) {}
#endif

extern "C" __global__ __vector__ void scalars(volatile __gm__ int32_t *x) {
    if (GetBlockIdx() == 0) {
        ORDER
    } else {
        WAIT
        x[32] = x[16] + 1;
    }
}

// The word is polled through UB, and the data come from the vector unit.
extern "C" __global__ __vector__ void blocks(__gm__ int32_t *x) {
    __ubuf__ int32_t *near = (__ubuf__ int32_t *)0;
    if (GetBlockIdx() == 0) {
        for (int i = 0; i < 2; i++) {
            set_vector_mask(0, 255);
            vector_dup(near, i ? 1 : 7, 1, 1, 1, 8, 8);
            set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
            wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
            copy_ubuf_to_gm(x + (i ? 0 : 16), near, 0, 1, 1, 0, 0);
            set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
            wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
        }
        return;
    }
    do {
        copy_gm_to_ubuf(near, x, 0, 1, 1, 0, 0);
        set_flag(PIPE_MTE2, PIPE_S, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_S, EVENT_ID0);
    } while (*(volatile __ubuf__ int32_t *)near != 1);
    copy_gm_to_ubuf(near + 8, x + 16, 0, 1, 1, 0, 0);
    set_flag(PIPE_MTE2, PIPE_S, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_S, EVENT_ID0);
    x[32] = near[8] + 1;
}

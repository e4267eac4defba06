// The registers of sums and extremes, and a function of the kernel's own that has the name of an intrinsic.
#include "kernel_operator.h"

static void set_fpc(uint64_t low, uint64_t high) { ::set_fpc(low | high << 8); }

// out = the sums of x by whole repeats and by a counter, and what set_fpc has left.
extern "C" __global__ __vector__ void sums(__gm__ float *x, __gm__ float *out, __gm__ half *y) {
    __ubuf__ float *a = reinterpret_cast<__ubuf__ float *>(0);
    __ubuf__ float *b = reinterpret_cast<__ubuf__ float *>(4096);
    __ubuf__ half *h = reinterpret_cast<__ubuf__ half *>(8192);
    copy_gm_to_ubuf(a, x, 0, 1, 24, 0, 0);
    copy_gm_to_ubuf(h, y, 0, 1, 16, 0, 0);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    set_vector_mask(0, -1ul);
    vcadd(nullptr, a, 3, 1, 1, 8, 1);  // mode 1 writes no memory
    int64_t bits = get_acc_val();
    out[0] = *reinterpret_cast<float *>(&bits);
    set_mask_count();
    set_vector_mask(0, 70);
    vcadd(b + 64, a, 1, 1, 1, 8, 1);
    bits = get_acc_val();
    out[1] = *reinterpret_cast<float *>(&bits);
    set_vector_mask(0, 256);
    vcadd(reinterpret_cast<__ubuf__ half *>(b + 128), h, 1, 1, 1, 8, 1);
    vcadd(b + 192, a, 1, 1, 1, 8, 0);  // the mode 0 leaves the register as it is
    bits = get_acc_val();
    out[2] = static_cast<float>(*reinterpret_cast<half *>(&bits));
    set_vector_mask(0, 150);
    vcmax(b + 256, a, 1, 1, 1, 8, VALUE_INDEX);
    bits = get_max_min_cnt();
    out[4] = *reinterpret_cast<float *>(&bits);
    out[5] = static_cast<float>(bits >> 32);
    vcmin(reinterpret_cast<__ubuf__ half *>(b + 320), h, 1, 1, 1, 8, VALUE_INDEX);
    bits = get_max_min_cnt();
    out[6] = static_cast<float>(*reinterpret_cast<half *>(&bits));
    out[7] = static_cast<float>(bits >> 32);
    set_mask_norm();
    set_fpc(3, 2);
    out[9] = a[0];
    out[3] = static_cast<float>(get_fpc());
}

struct Partly {
    Partly() : set(5) {}
    int32_t set, unset;
};

static void leave_something() { volatile int64_t place[64]; for (auto &each : place) each = -1; }
static int32_t without_a_value() { int32_t value; Partly partly; return value + partly.unset + partly.set; }

// out = quotients and remainders by 0, by each kind of operand, and variables without a value.
extern "C" __global__ __vector__ void zeros(__gm__ int64_t *out, int64_t zero) {
    int64_t one = zero + 1, few[4] = {zero, zero, zero, 9};
    static int64_t many[200];
    int8_t small = static_cast<int8_t>(zero);
    out[0] = 7 / zero;
    out[1] = static_cast<uint32_t>(7) % static_cast<uint32_t>(zero);
    out[2] = -7 / few[one];
    out[3] = one / many[100 + one];
    out[4] = static_cast<int16_t>(one) / small;
    out[5] = 7 / one;
    leave_something();
    out[6] = without_a_value();
}

// Every mode is a mistake that a kernel can make.
#include "kernel_operator.h"
using namespace AscendC;

static int deeper(int n) { return deeper(n + 1) + deeper(n + 2); }

extern "C" __global__ __aicore__ void hostile(__gm__ int32_t *x, int32_t mode) {
    LocalTensor<int32_t> a(TPosition::VECCALC, 0, 64);
    volatile int32_t one = 1;
    switch (mode) {
    case 0: for (;;) one = one + 1;
    case 1: *reinterpret_cast<volatile int32_t *>(0xdead0000ull) = one; break;
    case 2: one = x[16]; break;
    case 3: one = a.GetValue(1 << 17); break;
    case 4: copy_gm_to_ubuf(a.GetPhyAddr(), x + (1 << 20), 0, 1, 1, 0, 0); break;
    case 5: for (;;) pipe_barrier(PIPE_V);
    case 6: vadd(a.GetPhyAddr(), a.GetPhyAddr(), a.GetPhyAddr(), 300, 1, 1, 1, 8, 8, 8); break;
    case 7: one = deeper(one); break;
    case 8: __builtin_trap();
    case 9: hset_flag(a.GetPhyAddr()); break;
    case 10: ASCENDC_ASSERT(one == 2); break;
    case 11: _exit(7); break;
    case 12: ::write(vitruvian::OUT, "\377\377\377\377more", 8); break;
    case 13: ::write(vitruvian::OUT, "\4\0\0\0I\377\377\0", 8); break;
    case 14: one = reinterpret_cast<volatile int32_t *>(~0ull << 16)[0]; break;
    case 15: copy_gm_to_ubuf(x, x, 0, 1, 1, 0, 0); break;
    case 16: vadd(a.GetPhyAddr(), a.GetPhyAddr(), a.GetPhyAddr(), 1, 1, 1, 1, 8, 8); break;
    case 17: ::close(vitruvian::OUT); pipe_barrier(PIPE_V); ::usleep(1); for (;;) ; break;
    case 18: PRINTF("%d items\n", mode); break;
    case 19: a[1 << 20].SetValue(0, 1); break;
    case 20: vadd(a[1 << 15].GetPhyAddr() + (1 << 14), a.GetPhyAddr(), a.GetPhyAddr(), 1, 1, 1, 1, 8, 8, 8); break;
    }
}

// A host program: arrays, a structure by value, two launches, and the result in a file.
#include <cstdio>
#include "acl/acl.h"
#include "kernel_operator.h"
using namespace AscendC;

struct Factors {
    float first;
    int32_t count;
};

template <int more> __global__ __vector__ void scaled(__gm__ float *x, __gm__ float *y, Factors f) {
    LocalTensor<float> a(TPosition::VECCALC, 0, 256);
    GlobalTensor<float> in, out;
    in.SetGlobalBuffer(x + GetBlockIdx() * f.count);
    out.SetGlobalBuffer(y + GetBlockIdx() * f.count);
    DataCopy(a, in, f.count);
    SetFlag<HardEvent::MTE2_V>(0);
    WaitFlag<HardEvent::MTE2_V>(0);
    Muls(a, a, f.first + more, f.count);
#ifndef WITHOUT_FLAG
    SetFlag<HardEvent::V_MTE3>(0);
    WaitFlag<HardEvent::V_MTE3>(0);
#endif
    DataCopy(out, a, f.count);
}

int32_t main(int32_t argc, char *argv[]) {
    constexpr int blocks = 2, count = 64, bytes = blocks * count * sizeof(float);
    aclInit(nullptr);
    float *host = nullptr;
    uint8_t *x = nullptr, *y = nullptr, *z = nullptr;
    aclrtMallocHost((void **)&host, bytes);
    aclrtMalloc((void **)&x, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc((void **)&y, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc((void **)&z, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
    for (int i = 0; i < blocks * count; i++) host[i] = float(i);
    aclrtMemcpy(x, bytes, host, bytes, ACL_MEMCPY_HOST_TO_DEVICE);
    scaled<1><<<blocks, nullptr, nullptr>>>((__gm__ float *)x, (__gm__ float *)y, Factors{2.0f, count});
    aclrtMemcpy(host, bytes, y, bytes, ACL_MEMCPY_DEVICE_TO_HOST);
    scaled<0><<<blocks, nullptr, nullptr>>>((__gm__ float *)y, (__gm__ float *)z,
                                            Factors{host[1], count});
#ifdef CRASH
    x[0] = 1;
#endif
#ifdef OUTSIDE
    aclrtMemcpy(host, 4096, z, 4096, ACL_MEMCPY_DEVICE_TO_HOST);  // outside of z
#endif
#ifdef NOTHING
    _exit(3);
#endif
    aclrtMemcpy(host, bytes, z, bytes, ACL_MEMCPY_DEVICE_TO_HOST);
    if (FILE *file = fopen("output.bin", "wb")) {
        fwrite(host, 1, bytes, file);
        fclose(file);
    }
    return 0;
}

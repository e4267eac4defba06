#include <cstdio>
#include "acl/acl.h"
#include "tiling.h"

void launch_scaled(uint8_t *x, uint8_t *tiling, aclrtStream stream);

int main() {
    PartTiling tiling;
    if (ComputeTiling(ge::Shape({4, 16}), ge::DT_FLOAT, tiling)) return 1;
    float data[64];
    for (int i = 0; i < 64; i++) data[i] = static_cast<float>(i);
    uint8_t saved[sizeof(PartTiling)];
    tiling.SaveToBuffer(saved, sizeof saved);
    void *x, *place;
    aclrtMalloc(&x, sizeof data, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc(&place, sizeof saved, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemcpy(x, sizeof data, data, sizeof data, ACL_MEMCPY_HOST_TO_DEVICE);
    aclrtMemcpy(place, sizeof saved, saved, sizeof saved, ACL_MEMCPY_HOST_TO_DEVICE);
    launch_scaled(static_cast<uint8_t *>(x), static_cast<uint8_t *>(place), nullptr);
    aclrtMemcpy(data, sizeof data, x, sizeof data, ACL_MEMCPY_DEVICE_TO_HOST);
    FILE *file = fopen("output.bin", "wb");
    fwrite(data, 1, sizeof data, file);
    fclose(file);
    return 0;
}

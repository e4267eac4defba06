#include "acl/acl.h"
#include "kernel_operator.h"

struct Part { uint32_t length; float factors[2]; };

__global__ __aicore__ void scaled(GM_ADDR x, GM_ADDR tiling) {
    auto *part = reinterpret_cast<__gm__ Part *>(tiling);
    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::TPosition::VECIN, 1> queue;
    AscendC::GlobalTensor<float> all;
    all.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(x), part->length);
    pipe.InitBuffer(queue, 1, part->length * sizeof(float));
    auto a = queue.AllocTensor<float>();
    AscendC::DataCopy(a, all, part->length);
    queue.EnQue(a);
    a = queue.DeQue<float>();
    AscendC::Muls(a, a, part->factors[0] * part->factors[1], part->length);
    AscendC::SetFlag<AscendC::HardEvent::V_MTE3>(EVENT_ID0);
    AscendC::WaitFlag<AscendC::HardEvent::V_MTE3>(EVENT_ID0);
    AscendC::DataCopy(all, a, part->length);
    queue.FreeTensor(a);
}

void launch_scaled(uint8_t *x, uint8_t *tiling, aclrtStream stream) {
    scaled<<<1, nullptr, stream>>>(x, tiling);
}

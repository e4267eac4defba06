// What a host program asks about the chip: the numbers of cores and the sizes of the buffers.
//
// The class is declared by the user's headers; this file answers from the simulator's chip file.
#pragma once
#include "vitruvian_chip.h"

namespace platform_ascendc {

uint32_t PlatformAscendC::GetCoreNum() const { return VITRUVIAN_CUBE_CORES; }
uint32_t PlatformAscendC::GetCoreNumAic() const { return VITRUVIAN_CUBE_CORES; }
uint32_t PlatformAscendC::GetCoreNumAiv() const { return VITRUVIAN_VECTOR_CORES; }
uint32_t PlatformAscendC::GetCoreNumVector() const { return 0; }
uint32_t PlatformAscendC::CalcTschNumBlocks(uint32_t parts, uint32_t cubes, uint32_t vectors) const {
    if (!cubes || !vectors || cubes > vectors) return parts;
    uint32_t each = vectors / cubes;
    return (parts + each - 1) / each;
}
uint32_t PlatformAscendC::CalcTschBlockDim(uint32_t parts, uint32_t cubes, uint32_t vectors) const {
    return CalcTschNumBlocks(parts, cubes, vectors);
}
uint32_t PlatformAscendC::GetLibApiWorkSpaceSize() const { return 16 << 20; }
uint32_t PlatformAscendC::GetResCubeGroupWorkSpaceSize() const { return 1 << 20; }
uint32_t PlatformAscendC::GetResGroupBarrierWorkSpaceSize() const { return 1 << 20; }
void PlatformAscendC::GetCoreMemSize(const CoreMemType &type, uint64_t &bytes) const {
    switch (type) {
        case CoreMemType::L0_A: bytes = VITRUVIAN_L0A_BYTES; break;
        case CoreMemType::L0_B: bytes = VITRUVIAN_L0B_BYTES; break;
        case CoreMemType::L0_C: bytes = VITRUVIAN_L0C_BYTES; break;
        // The library keeps the last 256 bytes of L1 and UB for messages between cores.
        case CoreMemType::L1: bytes = VITRUVIAN_L1_BYTES - 256; break;
        case CoreMemType::UB: bytes = VITRUVIAN_UB_BYTES - 256 - reservedMemSize_; break;
        case CoreMemType::BT: bytes = VITRUVIAN_BT_BYTES; break;
        case CoreMemType::FB: bytes = VITRUVIAN_FB_BYTES; break;
        case CoreMemType::L2: bytes = VITRUVIAN_L2_BYTES; break;
        default: bytes = 1ull << 36; break;
    }
}
void PlatformAscendC::GetCoreMemBw(const CoreMemType &type, uint64_t &bytes) const {
    bytes = type == CoreMemType::L2 ? 110 : 32;  // bytes in a cycle
}
void PlatformAscendC::ReserveLocalMemory(ReservedSize size) {
    reservedMemSize_ = 8192u << static_cast<int>(size);
}
SocVersion PlatformAscendC::GetSocVersion() const { return SocVersion::VITRUVIAN_CHIP; }
NpuArch PlatformAscendC::GetCurNpuArch() const { return static_cast<NpuArch>(__NPU_ARCH__); }
uint32_t PlatformAscendC::GetVecRegLen() const { return 256; }
fe::PlatFormInfos *PlatformAscendC::GetPlatFormInfo() const { return nullptr; }

PlatformAscendC *PlatformAscendCManager::platformInfo = nullptr;
std::mutex PlatformAscendCManager::platformInitMtx;
PlatformAscendC *PlatformAscendCManager::PlatformAscendCManagerInit(const char *) {
    return platformInfo = new PlatformAscendC(nullptr);
}

}  // namespace platform_ascendc

// Messages of the library's functions of the host; errors (level 3) are shown.
extern "C" {
int32_t CheckLogLevel(int32_t, int32_t level) { return level == 3; }
void DlogRecord(int32_t, int32_t, const char *format, ...) {
    char text[4001];
    __builtin_va_list values;
    __builtin_va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    __builtin_va_end(values);
    vitruvian::print(text);
}
}

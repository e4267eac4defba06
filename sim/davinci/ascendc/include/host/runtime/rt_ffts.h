// The runtime's address of the flags between cores, which the simulated chip does not need.
#pragma once
#include <cstdint>
inline int rtGetC2cCtrlAddr(uint64_t *address, uint32_t *bytes) {
    *address = 0;
    *bytes = 0;
    return 0;
}

// The runtime interface that a host program uses, as requests to the simulator.
//
// The names are those of the public interface; the text is this project's own. Global memory lives
// in the simulator. Functions for contexts, streams and events have nothing to do.
#pragma once
#include "vitruvian_host.h"
#include <cstdint>
#include <cstdlib>
#include <cstring>

using aclError = int;
using aclrtStream = void *;
using aclrtContext = void *;
using aclrtEvent = void *;
using aclrtFuncHandle = void *;
using aclFloat16 = uint16_t;
enum aclrtLastErrLevel { ACL_RT_THREAD_LEVEL, ACL_RT_CONTEXT_LEVEL };
constexpr aclError ACL_SUCCESS = 0, ACL_ERROR_NONE = 0;
enum aclrtMemMallocPolicy {
    ACL_MEM_MALLOC_HUGE_FIRST, ACL_MEM_MALLOC_HUGE_ONLY, ACL_MEM_MALLOC_NORMAL_ONLY
};
enum aclrtMemcpyKind {
    ACL_MEMCPY_HOST_TO_HOST, ACL_MEMCPY_HOST_TO_DEVICE, ACL_MEMCPY_DEVICE_TO_HOST,
    ACL_MEMCPY_DEVICE_TO_DEVICE, ACL_MEMCPY_DEFAULT
};

inline aclError aclrtMalloc(void **place, size_t bytes, aclrtMemMallocPolicy = {}) {
    *place = reinterpret_cast<void *>(vitruvian::allocate(bytes));
    return 0;
}
inline aclError aclrtMallocHost(void **place, size_t bytes) {
    *place = calloc(bytes ? bytes : 1, 1);
    return 0;
}
inline aclError aclrtMemcpy(void *to, size_t, const void *from, size_t bytes, aclrtMemcpyKind = {}) {
    vitruvian::copy(to, from, bytes);
    return 0;
}
inline aclError aclrtMemcpyAsync(void *to, size_t, const void *from, size_t bytes, aclrtMemcpyKind,
                                 aclrtStream) {
    vitruvian::copy(to, from, bytes);
    return 0;
}
inline aclError aclrtMemset(void *to, size_t, int32_t value, size_t bytes) {
    char *filled = static_cast<char *>(malloc(bytes ? bytes : 1));
    memset(filled, value, bytes);
    vitruvian::copy(to, filled, bytes);
    free(filled);
    return 0;
}
inline aclError aclrtFreeHost(void *place) {
    free(place);
    return 0;
}

#define VITRUVIAN_NOTHING(name) template <class... A> inline aclError name(A...) { return 0; }
VITRUVIAN_NOTHING(aclInit)
VITRUVIAN_NOTHING(aclFinalize)
VITRUVIAN_NOTHING(aclrtSetDevice)
VITRUVIAN_NOTHING(aclrtResetDevice)
VITRUVIAN_NOTHING(aclrtResetDeviceForce)
VITRUVIAN_NOTHING(aclrtCreateContext)
VITRUVIAN_NOTHING(aclrtDestroyContext)
VITRUVIAN_NOTHING(aclrtCreateStream)
VITRUVIAN_NOTHING(aclrtDestroyStream)
VITRUVIAN_NOTHING(aclrtDestroyStreamForce)
VITRUVIAN_NOTHING(aclrtSynchronizeStream)
VITRUVIAN_NOTHING(aclrtSynchronizeDevice)
VITRUVIAN_NOTHING(aclrtFree)
VITRUVIAN_NOTHING(aclrtCreateEventExWithFlag)
VITRUVIAN_NOTHING(aclrtDestroyEvent)
VITRUVIAN_NOTHING(aclrtRecordEvent)
VITRUVIAN_NOTHING(aclrtStreamWaitEvent)
VITRUVIAN_NOTHING(aclrtGetLastError)
#undef VITRUVIAN_NOTHING
inline float aclFloat16ToFloat(aclFloat16 code) {
    half value;
    memcpy(&value, &code, sizeof value);
    return static_cast<float>(value);
}
inline aclFloat16 aclFloatToFloat16(float number) {
    half value = static_cast<half>(number);
    aclFloat16 code;
    memcpy(&code, &value, sizeof code);
    return code;
}
inline const char *aclGetRecentErrMsg() { return ""; }

// Copies with bounds; the text is this project's own.
#pragma once
#include <cstring>
using errno_t = int;
constexpr errno_t EOK = 0;
inline errno_t memcpy_s(void *to, size_t room, const void *from, size_t bytes) {
    if (bytes > room) return 34;
    memcpy(to, from, bytes);
    return EOK;
}
inline errno_t memset_s(void *to, size_t room, int value, size_t bytes) {
    if (bytes > room) return 34;
    memset(to, value, bytes);
    return EOK;
}
inline errno_t strcpy_s(char *to, size_t room, const char *from) {
    return memcpy_s(to, room, from, strlen(from) + 1);
}

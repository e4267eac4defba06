// Every deed is one that a kernel must not do; x[n] becomes 1 if it succeeds.
#include "kernel_operator.h"
#include <cstdlib>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

static bool done(int deed) {
    switch (deed) {
    case 0: return open("/etc/passwd", O_RDONLY) >= 0;
    case 1: return open("/proc/self/environ", O_RDONLY) >= 0;
    case 2: return socket(AF_INET, SOCK_STREAM, 0) >= 0;
    case 3: return socket(AF_UNIX, SOCK_STREAM, 0) >= 0;
    case 4: return chmod(VICTIM, 0777) == 0;
    case 5: return open(VICTIM, O_RDWR) >= 0;
    case 6: return open(VICTIM "2", O_RDWR | O_CREAT, 0600) >= 0;
    case 7: return open(VICTIM, O_RDWR | O_TRUNC) >= 0;
    case 8: return fork() >= 0;
    case 9: return system("true") == 0;
    case 10: return execl("/bin/true", "true", nullptr) == 0;
    case 11: return kill(getppid(), 0) == 0;
    case 12: return tgkill(getppid(), getppid(), 0) == 0;
    case 13: return unlink(VICTIM) == 0;
    }
    return false;
}

extern "C" __global__ __aicore__ void deeds(__gm__ int32_t *x, int32_t count, int32_t without) {
    for (int deed = 0; deed < count; deed++) {
        int result = deed != without && done(deed);
        x[deed] = result;
    }
}

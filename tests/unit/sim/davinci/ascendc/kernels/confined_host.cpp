// A host program that tries to leave its folder. Each line that it prints is a deed that worked.
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include "acl/acl.h"
#include "kernel_operator.h"

extern "C" __global__ __aicore__ void nothing(__gm__ int32_t *x) { x[0] = 1; }

static void tell(const char *deed, bool worked) {
    if (worked) printf("%s\n", deed);
}

int main() {
    std::thread([] { tell("thread", true); }).join();
    tell("write", open("own", O_WRONLY | O_CREAT, 0600) >= 0);
    tell("folder", mkdir("inner", 0700) == 0);
    tell("read", open(OUTSIDE "/victim", O_RDONLY) >= 0);
    tell("write outside", open(OUTSIDE "/new", O_WRONLY | O_CREAT, 0600) >= 0);
    tell("change outside", open(OUTSIDE "/victim", O_WRONLY) >= 0);
    tell("delete outside", unlink(OUTSIDE "/victim") == 0);
    tell("run", system("true") == 0);
    tell("network", socket(AF_INET, SOCK_STREAM, 0) >= 0);
    void *x = nullptr;
    aclrtMalloc(&x, 32, ACL_MEM_MALLOC_HUGE_FIRST);
    nothing<<<1, nullptr, nullptr>>>(static_cast<int32_t *>(x));
    int32_t value = 0;
    aclrtMemcpy(&value, 4, x, 4, ACL_MEMCPY_DEVICE_TO_HOST);
    tell("launch", value == 1);
    return 0;
}

// Start a program that may use a few system calls and a few folders only.
//
//     confine [--files] [--read FOLDER]... [--write FOLDER]... [--loader FILE] PROGRAM
//
// The program may read its own file and the system's libraries, read below each --read, and change
// files below each --write; --loader names another loader of programs than the usual one. With --files, it may call what creates, renames and deletes files and
// starts threads and processes. Of Linux' two means, seccomp and Landlock, those are used that the
// system has; exit code 125 says that a call of them failed that should not.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace {

constexpr int FAILED = 125;

// Landlock's numbers, since headers older than Linux 5.13 do not have them.
constexpr long CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446;
constexpr uint64_t EXECUTE = 1 << 0, WRITE_FILE = 1 << 1, READ_FILE = 1 << 2, READ_DIR = 1 << 3;

struct Ruleset { uint64_t files, network, scopes; };
struct __attribute__((packed)) BeneathRule { uint64_t allowed; int32_t folder; };

// Calls that a computation needs: memory, time, signals, and files that are open or can be read.
constexpr unsigned CALLS[] = {
    SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_open, SYS_openat,
    SYS_close, SYS_stat, SYS_fstat, SYS_lstat, SYS_newfstatat, SYS_statx, SYS_lseek, SYS_access,
    SYS_faccessat, SYS_readlink, SYS_readlinkat, SYS_getcwd, SYS_dup, SYS_dup2, SYS_dup3,
    SYS_fcntl, SYS_poll, SYS_select, SYS_pselect6, SYS_mmap, SYS_mprotect, SYS_munmap, SYS_mremap,
    SYS_madvise, SYS_brk, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack,
    SYS_setitimer, SYS_getitimer, SYS_alarm, SYS_nanosleep, SYS_clock_nanosleep,
    SYS_clock_gettime, SYS_clock_getres, SYS_gettimeofday, SYS_time, SYS_times, SYS_getrusage,
    SYS_getpid, SYS_getppid, SYS_gettid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid,
    SYS_tgkill, SYS_futex, SYS_sched_yield, SYS_sched_getaffinity, SYS_set_tid_address,
    SYS_set_robust_list, SYS_arch_prctl, SYS_prlimit64, SYS_getrlimit, SYS_getrandom, SYS_uname,
    SYS_sysinfo, SYS_exit, SYS_exit_group, SYS_restart_syscall,
    334,  // rseq, which headers before Linux 4.18 do not name
    SYS_execve,  // the start of the program itself; Landlock refuses all others
};

// Calls that a host program needs besides: it makes files, threads, and a process for each block.
constexpr unsigned FILE_CALLS[] = {
    SYS_creat, SYS_mkdir, SYS_mkdirat, SYS_rmdir, SYS_unlink, SYS_unlinkat, SYS_rename,
    SYS_renameat, SYS_renameat2, SYS_ftruncate, SYS_truncate, SYS_fsync, SYS_fdatasync,
    SYS_getdents64, SYS_chdir, SYS_umask, SYS_statfs, SYS_fstatfs, SYS_pipe, SYS_pipe2, SYS_clone,
    SYS_fork, SYS_vfork, SYS_wait4, SYS_waitid, SYS_sendfile, SYS_copy_file_range, SYS_fallocate,
    SYS_flock,
};

// Allow one folder, or one file; what is absent needs no rule.
bool allow(int ruleset, const char *path, uint64_t rights, bool is_file = false) {
    int folder = open(path, O_PATH | O_CLOEXEC);
    if (folder < 0) return true;
    BeneathRule rule{is_file ? rights & ~READ_DIR : rights, folder};
    bool done = syscall(ADD_RULE, ruleset, 1, &rule, 0) == 0;
    close(folder);
    return done;
}

bool restrict_files(const char *program, const char *loader,
                    const std::vector<const char *> &readable,
                    const std::vector<const char *> &writable) {
    long version = syscall(CREATE_RULESET, nullptr, 0, 1);
    if (version < 1) return true;  // the system has no Landlock
    // Thirteen rights over files, and later versions' REFER, TRUNCATE and IOCTL_DEV.
    uint64_t all = (1 << 13) - 1;
    if (version >= 2) all |= 1 << 13;
    if (version >= 3) all |= 1 << 14;
    if (version >= 5) all |= 1 << 15;
    Ruleset wanted{all, version >= 4 ? 3ull : 0, version >= 6 ? 3ull : 0};
    size_t bytes = version >= 6 ? sizeof wanted : version >= 4 ? 16 : 8;
    int ruleset = syscall(CREATE_RULESET, &wanted, bytes, 0);
    if (ruleset < 0) return false;
    constexpr uint64_t READ = READ_FILE | READ_DIR;
    bool done = allow(ruleset, program, READ | EXECUTE, true);
    for (auto path : {"/lib", "/lib64", "/usr/lib", "/usr/lib64"})
        done = done && allow(ruleset, path, READ);
    // A program is started by its loader, which is executed too.
    for (auto path : {"/lib64/ld-linux-x86-64.so.2", loader})
        done = done && allow(ruleset, path, READ | EXECUTE, true);
    done = done && allow(ruleset, "/etc/ld.so.cache", READ, true);
    done = done && allow(ruleset, "/dev/null", READ | WRITE_FILE, true);
    for (auto path : readable) done = done && allow(ruleset, path, READ);
    for (auto path : writable) done = done && allow(ruleset, path, all & ~EXECUTE);
    done = done && syscall(RESTRICT_SELF, ruleset, 0) == 0;
    close(ruleset);
    return done;
}

bool restrict_calls(bool files) {
    constexpr uint32_t REFUSED = SECCOMP_RET_ERRNO | 1, ABSENT = SECCOMP_RET_ERRNO | 38;
    std::vector<sock_filter> filter;
    auto load = [&](size_t offset) {
        filter.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)));
    };
    auto unless = [&](uint32_t value, uint32_t verdict) {
        filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0));
        filter.push_back(BPF_STMT(BPF_RET | BPF_K, verdict));
    };
    auto where = [&](uint32_t value, uint32_t verdict) {
        filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
        filter.push_back(BPF_STMT(BPF_RET | BPF_K, verdict));
    };
    // Opening a file must neither make nor empty one.
    auto only_open = [&](uint32_t call, int flags) {
        filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4));
        load(offsetof(seccomp_data, args) + 8 * flags);
        filter.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_CREAT | O_TRUNC, 0, 1));
        filter.push_back(BPF_STMT(BPF_RET | BPF_K, REFUSED));
        filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    };
    load(offsetof(seccomp_data, arch));
    unless(AUDIT_ARCH_X86_64, SECCOMP_RET_KILL);
    load(offsetof(seccomp_data, nr));
    where(435, ABSENT);  // clone3, for which libraries then take clone
    if (!files) {
        only_open(SYS_open, 1);
        only_open(SYS_openat, 2);
    }
    for (auto call : CALLS) where(call, SECCOMP_RET_ALLOW);
    if (files)
        for (auto call : FILE_CALLS) where(call, SECCOMP_RET_ALLOW);
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, REFUSED));
    sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
    // A system without filters of calls refuses both numbers.
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 || prctl(PR_GET_SECCOMP) < 0;
}

}  // namespace

int main(int count, char **words) {
    bool files = false;
    std::vector<const char *> readable, writable;
    const char *loader = "";
    int next = 1;
    for (; next < count - 1; next++) {
        if (!strcmp(words[next], "--files")) files = true;
        else if (!strcmp(words[next], "--read")) readable.push_back(words[++next]);
        else if (!strcmp(words[next], "--write")) writable.push_back(words[++next]);
        else if (!strcmp(words[next], "--loader")) loader = words[++next];
        else break;
    }
    if (next != count - 1) return FAILED;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return FAILED;
    if (!restrict_files(words[next], loader, readable, writable)) return FAILED;
    if (!restrict_calls(files)) return FAILED;
    execve(words[next], words + next, environ);
    return FAILED;
}

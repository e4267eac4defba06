// A host program: its allocations and copies are requests, and its launches run block by block.
#pragma once
#include <sys/prctl.h>

namespace vitruvian {

inline bool on_device(const void *place) {
    uint64_t address = reinterpret_cast<uint64_t>(place);
    return address >= GM_BASE && address < 2 * GM_BASE;
}

__attribute__((noinline)) inline uint64_t allocate(uint64_t bytes) {
    Record record('G');
    record.put(bytes);
    record.send(0, __builtin_frame_address(0));
    flush();
    uint64_t address;
    receive(&address, sizeof address);
    return address;
}

// The largest part of a copy that one record has.
constexpr size_t PART = 1 << 16;

__attribute__((noinline)) inline void copy(void *to, const void *from, size_t bytes) {
    char *target = static_cast<char *>(to);
    const char *source = static_cast<const char *>(from);
    for (size_t at = 0; at < bytes; at += PART) {
        uint32_t count = static_cast<uint32_t>(bytes - at < PART ? bytes - at : PART);
        const char *part = source + at;
        static char local[PART];
        if (on_device(source)) {
            Record record('R');
            record.put(reinterpret_cast<uint64_t>(source) + at);
            record.put(count);
            record.send(0, __builtin_frame_address(0));
            flush();
            receive(local, count);
            part = local;
        }
        if (!on_device(target)) {
            memcpy(target + at, part, count);
            continue;
        }
        Record record('W');
        record.put(reinterpret_cast<uint64_t>(target) + at);
        record.put(count);
        record.send(0, __builtin_frame_address(0));
        flush();
        write_all(reinterpret_cast<const unsigned char *>(part), count);
    }
}

inline void take_place(const uint64_t *start) {
    state.block = start[0];
    state.blocks = start[1];
    state.sub = start[2];
    state.subs = start[3];
    state.gm_bytes = start[4];
    block_idx = get_block_idx();
    block_num = get_block_num();
}

// Open the pipes of a block, which the simulator has made in a folder.
inline void open_pipes(const char *folder) {
    char name[300];
    snprintf(name, sizeof name, "%s/replies", folder);
    int replies = open(name, O_RDONLY);
    snprintf(name, sizeof name, "%s/records", folder);
    int records = open(name, O_WRONLY);
    if (replies < 0 || records < 0) _exit(7);
    dup2(records, OUT);
    dup2(replies, IN);
}

// What comes before every kernel; the end of the program's text defines it.
void before_kernel();

// Run a kernel on the blocks that the simulator names, each in a copy of this process.
template <class F>
__attribute__((noinline)) inline void run_blocks(const char *name, uint64_t blocks, F body) {
#ifdef VITRUVIAN_LIBRARY
    if (!state.workspace) state.workspace = allocate(1 << 22);
#endif
    Record record('K');
    record.put(blocks);
    record.put_bytes(name, strlen(name) < 200 ? strlen(name) : 200);
    record.send(0, __builtin_frame_address(0));
    flush();
    for (;;) {
        uint64_t start[6];  // as of a kernel's start, and 1 if there is a further block
        receive(start, sizeof start);
        if (!start[5]) return;
        char folder[256];
        receive(folder, sizeof folder);
        folder[255] = 0;
        signal(SIGCHLD, SIG_IGN);  // nobody waits for the end of a block
        pid_t child = fork();
        if (child < 0) _exit(6);
        if (child) continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        open_pipes(folder);
        take_place(start);
        reserve_memories();
        before_kernel();
        body();
        Record end('E');
        end.send(0, nullptr);
        flush();
        _exit(0);
    }
}

template <class F> struct Launcher {
    const char *name;
    uint64_t blocks;
    F kernel;
    template <class... A> void operator()(A... arguments) {
        run_blocks(name, blocks, [&] { kernel(arguments...); });
    }
};

template <class F> inline Launcher<F> launch(const char *name, uint64_t blocks, F kernel) {
    return {name, blocks, kernel};
}

template <class R> inline void run_host(R (*program)()) { program(); }
template <class R, class N, class W> inline void run_host(R (*program)(N, W)) {
    static char name[] = "host";
    char *words[] = {name, nullptr};
    program(1, const_cast<W>(words));
}

template <class F> int start_host(F program) {
    move_pipes();
    Record record('H');
    record.put(uint8_t{0});
    record.send(0, nullptr);
    flush();
    uint64_t start[5];
    receive(start, sizeof start);
    catch_faults();
    run_host(program);
    Record end('E');
    end.send(0, nullptr);
    flush();
    _exit(0);
}

}  // namespace vitruvian

// Scalar accesses to the memories of the simulated core.
//
// The kernel's pointers to UB (from 0) and to global memory (from GM_BASE) name addresses that do
// not exist in this process, so that every scalar access faults. The handler asks the simulator
// for the data, moves the base register of the instruction to a copy of the memory, and lets the
// processor run this one instruction (trap flag). Then it moves the register back, and tells the
// simulator what was stored.
#pragma once
#include <csignal>
#include <sys/mman.h>
#include <ucontext.h>

namespace vitruvian {

// One instruction that accesses memory: its bytes, and the number of its base register, or −1.
struct Access {
    unsigned bytes = 0;
    int base = -1;
    bool updates = false;  // it reads the place that it writes
};

// Register numbers of the processor as indices of a context.
constexpr int REGISTERS[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                               REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                               REG_R12, REG_R13, REG_R14, REG_R15};

inline unsigned vector_bytes(unsigned opcode, unsigned prefix, bool wide, unsigned full) {
    switch (opcode) {
    case 0x10: case 0x11: return prefix == 0xF3 ? 4 : prefix == 0xF2 ? 8 : full;
    case 0x12: case 0x13: case 0x16: case 0x17: case 0xD6: return 8;
    case 0x6E: return wide ? 8 : 4;
    case 0x7E: return prefix == 0xF3 || wide ? 8 : 4;
    case 0x28: case 0x29: case 0x6F: case 0x7F: case 0xE7: case 0x2B: return full;
    case 0x2A: return wide ? 8 : 4;
    case 0xC4: return 2;
    case 0x2C: case 0x2D: case 0x2E: case 0x2F: case 0x51: case 0x54: case 0x57:
    case 0x58: case 0x59: case 0x5A: case 0x5C: case 0x5D: case 0x5E: case 0x5F:
        return prefix == 0xF3 ? 4 : prefix == 0xF2 || opcode >= 0x5A ? 8 : 4;
    default: return 0;
    }
}

inline Access decode(const uint8_t *at, bool writes) {
    Access access;
    unsigned prefix = 0, rex = 0, full = 16;
    bool narrow = false;
    bool general = false;  // the other operand is a general register
    for (;; at++) {
        if (*at == 0x66) { narrow = true; if (!prefix) prefix = 0x66; }
        else if (*at == 0xF2 || *at == 0xF3) prefix = *at;
        else break;
    }
    if ((*at & 0xF0) == 0x40) rex = *at++;
    bool wide = rex & 8;
    unsigned whole = wide ? 8 : narrow ? 2 : 4;
    if (*at == 0xC5 || *at == 0xC4) {  // VEX
        bool three = *at++ == 0xC4;
        unsigned first = *at++, last = first;
        if (three) {
            if ((first & 31) != 1) return access;
            rex |= first & 0x20 ? 0 : 1;
            rex |= first & 0x40 ? 0 : 2;
            last = *at++;
            wide = last & 0x80;
        }
        rex |= first & 0x80 ? 0 : 4;
        const unsigned prefixes[4] = {0, 0x66, 0xF3, 0xF2};
        prefix = prefixes[last & 3];
        full = last & 4 ? 32 : 16;
        access.bytes = vector_bytes(*at++, prefix, wide, full);
    } else if (*at == 0x0F) {
        unsigned opcode = *++at;
        at++;
        if (opcode == 0xB6 || opcode == 0xBE) access.bytes = 1;
        else if (opcode == 0xB7 || opcode == 0xBF) access.bytes = 2;
        else if (opcode == 0xAF || (opcode & 0xF0) == 0x40) access.bytes = whole;
        else access.bytes = vector_bytes(opcode, prefix, wide, full);
    } else {
        unsigned opcode = *at++;
        if (opcode == 0xA4 || opcode == 0xA5) {  // movs: between the places of two registers
            access.bytes = opcode & 1 ? whole : 1;
            access.base = REGISTERS[writes ? 7 : 6];
            return access;
        }
        if (opcode == 0xAA || opcode == 0xAB) {
            access.bytes = opcode & 1 ? whole : 1;
            access.base = REGISTERS[7];
            return access;
        }
        bool store = opcode == 0x88 || opcode == 0x89 || opcode == 0xC6 || opcode == 0xC7;
        bool known = store || opcode == 0x8A || opcode == 0x8B || opcode == 0x63 ||
                     (opcode < 0x40 && (opcode & 7) < 4) || opcode == 0x80 || opcode == 0x81 ||
                     opcode == 0x83 || opcode == 0x84 || opcode == 0x85 || opcode == 0x86 ||
                     opcode == 0x87 || opcode == 0xF6 || opcode == 0xF7 || opcode == 0xFE ||
                     opcode == 0xFF || opcode == 0xC0 || opcode == 0xC1 || opcode == 0xD0 ||
                     opcode == 0xD1 || opcode == 0xD2 || opcode == 0xD3;
        if (!known) return access;
        access.bytes = opcode == 0x63 ? 4 : opcode == 0x83 || opcode & 1 ? whole : 1;
        access.updates = writes && !store;
        // The others have an immediate operand or none.
        general = opcode < 0x40 || (opcode >= 0x84 && opcode <= 0x8B);
    }
    unsigned modrm = *at++, field = modrm >> 3 & 7, rm = modrm & 7;
    if (modrm >> 6 == 3) access.bytes = 0;
    unsigned index = 16;
    if (rm == 4) {
        unsigned sib = *at++;
        rm = sib & 7;
        index = (sib >> 3 & 7) | (rex & 2 ? 8 : 0);
        if (index == 4) index = 16;
        if (rm == 5 && modrm >> 6 == 0) return Access{};
    } else if (rm == 5 && modrm >> 6 == 0) return Access{};
    unsigned base = rm | (rex & 1 ? 8 : 0);
    // Neither a moved index nor a moved register that is stored would be right.
    bool stored = writes && general && (field | (rex & 4 ? 8 : 0)) == base;
    if (index == base || stored) return Access{};
    access.base = base == 4 ? -1 : REGISTERS[base];
    return access;
}

// An instruction whose base register was moved; it has up to two places in memory.
struct Moved {
    int base;
    uint64_t shift, low, high, address;
    unsigned bytes;
    bool store;
    uint64_t place;
    void *frame;
};
inline Moved moved[2];
inline unsigned moved_count;

__attribute__((noreturn)) inline void give_up(char kind, uint64_t address, uint64_t place,
                                              void *frame) {
    Record record(kind);
    record.put(address);
    record.send(place, frame);
    flush();
    _exit(0);
}

inline void load(uint64_t address, unsigned bytes, char *target, uint64_t place, void *frame) {
    Record record('L');
    record.put(address);
    record.put(static_cast<uint8_t>(bytes));
    record.send(place, frame);
    flush();
    receive(target, bytes);
}

inline void on_fault(int, siginfo_t *info, void *context) {
    auto *registers = static_cast<ucontext_t *>(context)->uc_mcontext.gregs;
    uint64_t place = static_cast<uint64_t>(registers[REG_RIP]);
    uint64_t address = reinterpret_cast<uint64_t>(info->si_addr);
    void *frame = reinterpret_cast<void *>(registers[REG_RBP]);
    const uint8_t *code = reinterpret_cast<const uint8_t *>(place);
    if (!Record::in_text(place)) {  // in a library: the caller's place is on the stack
        auto *stack = reinterpret_cast<uint64_t *>(registers[REG_RSP]);
        uint64_t caller = 0;
        for (int i = 0; i < 16 && !caller; i++)
            if (Record::in_text(stack[i])) caller = stack[i] - 1;
        place = caller;
    }
    bool near = state.near && address < NEAR_BYTES;
    bool far = address >= GM_BASE && address < GM_BASE + state.gm_bytes;
    bool paged = registers[REG_TRAPNO] == 14;
    if (!paged || !(near || far) || moved_count == 2 || code == nullptr || address == uint64_t(code))
        give_up('F', paged ? address : ~0ull, place, frame);
    bool writes = registers[REG_ERR] & 2;
    Access access = decode(code, writes);
    if (!access.bytes || access.base < 0) give_up('U', address, place, frame);
    char *copy = near ? state.near + address : state.gm + (address - GM_BASE);
    uint64_t shift = reinterpret_cast<uint64_t>(copy) - address;
    if (!writes || access.updates) load(address, access.bytes, copy, place, frame);
    uint64_t low = reinterpret_cast<uint64_t>(near ? state.near : state.gm);
    uint64_t high = low + (near ? NEAR_BYTES : state.gm_bytes);
    moved[moved_count++] = {access.base, shift,  low,   high, address,
                            access.bytes, writes, place, frame};
    registers[access.base] += static_cast<int64_t>(shift);
    registers[REG_EFL] |= 0x100;
}

inline void on_step(int, siginfo_t *, void *context) {
    auto *registers = static_cast<ucontext_t *>(context)->uc_mcontext.gregs;
    registers[REG_EFL] &= ~0x100ll;
    for (unsigned i = 0; i < moved_count; i++) {
        Moved &m = moved[i];
        uint64_t value = static_cast<uint64_t>(registers[m.base]);
        // A load may have replaced the register; then its value is not an address of the copy.
        if (value + 4096 >= m.low && value < m.high + 4096)
            registers[m.base] = static_cast<int64_t>(value - m.shift);
        if (!m.store) continue;
        Record record('S');
        record.put(m.address);
        record.put(static_cast<uint8_t>(m.bytes));
        for (unsigned b = 0; b < m.bytes; b++)
            record.put(*reinterpret_cast<uint8_t *>(m.address + m.shift + b));
        record.send(m.place, m.frame);
    }
    moved_count = 0;
}

inline void on_limit(int, siginfo_t *, void *context) {
    auto *registers = static_cast<ucontext_t *>(context)->uc_mcontext.gregs;
    uint64_t place = static_cast<uint64_t>(registers[REG_RIP]);
    void *frame = reinterpret_cast<void *>(registers[REG_RBP]);
    give_up('X', 0, Record::in_text(place) ? place : 0, frame);
}

// The bytes of a division of integers by a register or a place in memory, or 0.
inline unsigned division_bytes(const uint8_t *at) {
    const uint8_t *first = at;
    while (*at == 0x66) at++;
    if ((*at & 0xF0) == 0x40) at++;
    if (*at != 0xF6 && *at != 0xF7) return 0;
    unsigned modrm = at[1], mode = modrm >> 6, rm = modrm & 7;
    at += 2;
    if (mode == 3) return static_cast<unsigned>(at - first);
    bool wide = mode == 2 || (mode == 0 && rm == 5);
    if (rm == 4) wide |= mode == 0 && (*at++ & 7) == 5;
    return static_cast<unsigned>(at - first) + (wide ? 4 : mode);
}

// Public kernels divide by fields of a tiling that are 0 and do not use the result, so that the
// device goes on. No documentation says what it returns; the user is told.
inline bool divided_by_zero(siginfo_t *info, greg_t *registers, uint64_t place, void *frame) {
    unsigned bytes = division_bytes(reinterpret_cast<const uint8_t *>(registers[REG_RIP]));
    if (info->si_signo != SIGFPE || info->si_code != FPE_INTDIV || !bytes) return false;
    Record record('P');
    const char text[] = "an integer is divided by 0 here; the result is taken as 0\n";
    record.put_bytes(text, sizeof text - 1);
    record.send(place, frame);
    registers[REG_RAX] = registers[REG_RDX] = 0;
    registers[REG_RIP] += bytes;
    return true;
}

inline void on_abort(int, siginfo_t *info, void *context) {
    auto *registers = static_cast<ucontext_t *>(context)->uc_mcontext.gregs;
    void *frame = reinterpret_cast<void *>(registers[REG_RBP]);
    uint64_t place = static_cast<uint64_t>(registers[REG_RIP]);
    if (divided_by_zero(info, registers, place, frame)) return;
    give_up('B', 0, Record::in_text(place) ? place : 0, frame);
}

inline char *reserve(void *at, uint64_t bytes, int protection) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED_NOREPLACE : 0);
    void *place = mmap(at, bytes, protection, flags, -1, 0);
    if (place == MAP_FAILED) _exit(5);
    return static_cast<char *>(place);
}

inline void reserve_memories() {
    uint64_t slack = 1 << 16;
    state.near = reserve(nullptr, NEAR_BYTES + slack, PROT_READ | PROT_WRITE);
    state.gm = reserve(nullptr, state.gm_bytes + slack, PROT_READ | PROT_WRITE);
    reserve(reinterpret_cast<void *>(GM_BASE), state.gm_bytes + slack, PROT_NONE);
}

inline void catch_faults() {
    static char stack[1 << 17];  // an endless recursion leaves no room on the other one
    stack_t other = {};
    other.ss_sp = stack;
    other.ss_size = sizeof stack;
    sigaltstack(&other, nullptr);
    struct Handler { int number; void (*function)(int, siginfo_t *, void *); };
    const Handler handlers[] = {{SIGSEGV, on_fault}, {SIGBUS, on_fault}, {SIGTRAP, on_step},
                                {SIGXCPU, on_limit}, {SIGABRT, on_abort}, {SIGFPE, on_abort},
                                {SIGILL, on_abort}};
    for (const Handler &handler : handlers) {
        struct sigaction action = {};
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        action.sa_sigaction = handler.function;
        sigaction(handler.number, &action, nullptr);
    }
}

}  // namespace vitruvian

// Records of a kernel's work, written to the simulator through a pipe.
//
// A record is its number of bytes (32 bits), a letter for its kind, its fields, and the chain of
// calls that led to it. The simulator believes nothing that is in a record.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <type_traits>
#include <unistd.h>

extern "C" char __executable_start, etext;

namespace vitruvian {

// Pipes to and from the simulator.
constexpr int OUT = 3, IN = 4;

// Global memory begins here; the buffers of a core begin at 0.
constexpr uint64_t GM_BASE = 1ull << 40, NEAR_BYTES = 1ull << 20;

struct State {
    uint64_t block = 0, blocks = 1, sub = 0, subs = 1, gm_bytes = 0, workspace = 0;
    char *gm = nullptr, *near = nullptr;  // where scalar accesses find their data
    uint64_t registers[2] = {};           // CTRL and FPC, which kernels read back
    size_t used = 0;
    unsigned char buffer[1 << 16];
};
inline State state;

inline void write_all(const unsigned char *data, size_t count) {
    while (count) {
        ssize_t done = ::write(OUT, data, count);
        if (done <= 0) _exit(3);
        data += done;
        count -= static_cast<size_t>(done);
    }
}

inline void flush() {
    size_t count = state.used;
    state.used = 0;
    write_all(state.buffer, count);
}

inline void receive(void *target, size_t count) {
    char *data = static_cast<char *>(target);
    while (count) {
        ssize_t done = ::read(IN, data, count);
        if (done <= 0) _exit(3);
        data += done;
        count -= static_cast<size_t>(done);
    }
}

// Move the pipes away from where the program's own prints would go.
inline void move_pipes() {
    dup2(1, OUT);
    dup2(0, IN);
    int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, 0);
    dup2(nothing, 1);
}

class Record {
public:
    explicit Record(char kind) { put(kind); }

    template <class T> void put(T value) {
        if (used_ + sizeof value > sizeof bytes_) _exit(3);
        memcpy(bytes_ + used_, &value, sizeof value);
        used_ += sizeof value;
    }

    void put_bytes(const void *data, size_t count) {
        put(static_cast<uint32_t>(count));
        if (used_ + count > sizeof bytes_) _exit(3);
        memcpy(bytes_ + used_, data, count);
        used_ += count;
    }

    // Append the places of the calls, the innermost first, and send the record.
    void send(uint64_t first, void *frame) {
        uint64_t places[64];
        unsigned depth = 0;
        if (first) places[depth++] = first;
        uint64_t *at = static_cast<uint64_t *>(frame);
        while (at && depth < 64) {
            uint64_t back = at[1];
            if (!in_text(back)) break;
            places[depth++] = back - 1;
            uint64_t *next = reinterpret_cast<uint64_t *>(at[0]);
            if (next <= at || next > at + (1 << 20)) break;
            at = next;
        }
        put(static_cast<uint8_t>(depth));
        for (unsigned i = 0; i < depth; i++) put(places[i]);
        uint32_t size = static_cast<uint32_t>(used_);
        if (state.used + size + 4 > sizeof state.buffer) flush();
        memcpy(state.buffer + state.used, &size, 4);
        memcpy(state.buffer + state.used + 4, bytes_, size);
        state.used += size + 4;
    }

    static bool in_text(uint64_t place) {
        return place > reinterpret_cast<uint64_t>(&__executable_start) &&
               place < reinterpret_cast<uint64_t>(&etext);
    }

private:
    size_t used_ = 0;
    unsigned char bytes_[6000];
};

// Codes of element types; the simulator has the same list.
template <class T> constexpr uint8_t code() {
    using U = std::remove_cv_t<T>;
    if constexpr (std::is_same_v<U, half>) return 9;
    else if constexpr (std::is_same_v<U, bfloat16_t>) return 12;
    else if constexpr (std::is_same_v<U, float>) return 10;
    else if constexpr (std::is_same_v<U, double>) return 11;
    else if constexpr (std::is_same_v<U, bool>) return 2;
    else if constexpr (std::is_integral_v<U>) {
        constexpr int size = sizeof(U) == 1 ? 0 : sizeof(U) == 2 ? 2 : sizeof(U) == 4 ? 4 : 6;
        return static_cast<uint8_t>(1 + size + !std::is_signed_v<U>);
    } else return 0;
}

// A number as C passes it to a function with any arguments.
template <class T> inline auto promoted(T value) {
    if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16_t>)
        return static_cast<double>(static_cast<float>(value));
    else return value;
}

// The number of an enumeration of intrinsics from 1, or 0.
template <class T> struct EnumCode { static constexpr uint8_t value = 0; };

template <class T> inline void put_argument(Record &record, T value) {
    if constexpr (std::is_pointer_v<T>) {
        record.put('p');
        record.put(code<std::remove_pointer_t<T>>());
        record.put(reinterpret_cast<uint64_t>(value));
    } else if constexpr (std::is_null_pointer_v<T>) {
        record.put('p');
        record.put(uint8_t{0});
        record.put(uint64_t{0});
    } else if constexpr (std::is_enum_v<T>) {
        record.put('e');
        record.put(EnumCode<T>::value);
        record.put(static_cast<int64_t>(value));
    } else if constexpr (std::is_integral_v<T>) {
        record.put('i');
        record.put(code<T>());
        record.put(static_cast<int64_t>(value));
    } else if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16_t> ||
                         std::is_floating_point_v<T>) {
        record.put('f');
        record.put(code<T>());
        record.put(static_cast<double>(static_cast<float>(value)));
    } else {
        record.put('?');
        record.put(uint8_t{0});
        record.put(int64_t{0});
    }
}

// An intrinsic of the table. ``words`` arguments of the kernel's own memory follow a pointer.
template <class... A>
__attribute__((noinline)) inline void issue(uint16_t name, A... arguments) {
    Record record('I');
    record.put(name);
    record.put(static_cast<uint8_t>(sizeof...(A)));
    (put_argument(record, arguments), ...);
    record.send(0, __builtin_frame_address(0));
}

// Any argument, where a function that takes numbers is preferred.
struct Any { template <class T> Any(T) {} };

// The words behind a pointer to the kernel's own memory, as an argument.
struct Words { const uint64_t *data; uint8_t count; };
template <> inline void put_argument(Record &record, Words words) {
    record.put('w');
    record.put(words.count);
    for (unsigned i = 0; i < words.count; i++) record.put(words.data[i]);
}

// A name that the simulator does not have; it is a mistake only if the kernel reaches it.
__attribute__((noinline)) inline void missing(const char *name) {
    Record record('M');
    record.put_bytes(name, strlen(name));
    record.send(0, __builtin_frame_address(0));
    flush();
    _exit(0);
}

// A register of the vector unit, which only the simulator knows.
__attribute__((noinline)) inline int64_t query(uint8_t number) {
    Record record('Q');
    record.put(number);
    record.send(0, __builtin_frame_address(0));
    flush();
    int64_t value = 0;
    receive(&value, sizeof value);
    return value;
}

__attribute__((noinline)) inline void print(const char *text) {
    Record record('P');
    size_t count = strlen(text);
    record.put_bytes(text, count < 4000 ? count : 4000);
    record.send(0, __builtin_frame_address(0));
}

__attribute__((noinline)) inline void failed(const char *text) {
    Record record('A');
    record.put_bytes(text, strlen(text) < 500 ? strlen(text) : 500);
    record.send(0, __builtin_frame_address(0));
    flush();
    _exit(0);
}

// Elements that a debugging print shows; ``space`` is G (global memory), U (UB), 1 (L1) or C (L0C).
__attribute__((noinline)) inline void dump(char space, uint8_t type, uint64_t address,
                                           uint32_t number, uint32_t count) {
    Record record('D');
    record.put(space);
    record.put(type);
    record.put(address);
    record.put(number);
    record.put(count);
    record.send(0, __builtin_frame_address(0));
}

}  // namespace vitruvian

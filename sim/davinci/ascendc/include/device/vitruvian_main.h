// The start of a kernel: its parameters are described, and its arguments received.
#pragma once
#include <tuple>

namespace vitruvian {

template <class T> void describe(Record &record) {
    using U = std::decay_t<T>;
    if constexpr (std::is_pointer_v<U>) {
        record.put('p');
        record.put(code<std::remove_pointer_t<U>>());
    } else if constexpr (std::is_enum_v<U>) {
        record.put('i');
        record.put(code<std::underlying_type_t<U>>());
    } else {
        constexpr uint8_t type = code<U>();
        record.put(type == 0 ? 's' : type >= 9 ? 'f' : 'i');
        record.put(type);
    }
    record.put(static_cast<uint32_t>(sizeof(U)));
}

template <class T> T taken() {
    static_assert(std::is_trivially_copyable_v<T>, "a kernel's parameter must be plain data");
    uint32_t count = 0;
    receive(&count, sizeof count);
    if (count != sizeof(T)) _exit(4);
    alignas(T) unsigned char bytes[sizeof(T)];
    receive(bytes, sizeof bytes);
    T value;
    memcpy(static_cast<void *>(&value), bytes, sizeof value);
    return value;
}

template <class... A> int run(void (*kernel)(A...)) {
    move_pipes();
    Record record('H');
    record.put(static_cast<uint8_t>(sizeof...(A)));
    (describe<A>(record), ...);
    record.send(0, nullptr);
    flush();
    uint64_t start[5];
    receive(start, sizeof start);
    state.block = start[0];
    state.blocks = start[1];
    state.sub = start[2];
    state.subs = start[3];
    state.gm_bytes = start[4];
    block_idx = get_block_idx();
    block_num = get_block_num();
    std::tuple<std::decay_t<A>...> arguments{taken<std::decay_t<A>>()...};
    catch_faults();
    reserve_memories();
    std::apply(kernel, arguments);
    Record end('E');
    end.send(0, nullptr);
    flush();
    _exit(0);  // destructors of global objects have nothing to add
}

}  // namespace vitruvian

int main() { return vitruvian::run(&VITRUVIAN_KERNEL); }

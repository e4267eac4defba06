// The few functions of AscendC that kernels of tests and tutorials need, on the intrinsics of CCE C.
//
// The names are those of the public interface of AscendC; the text is this project's own. For
// everything else, give --headers with a clone of the library.
#pragma once
#include <cstdint>
#include <type_traits>

#define GM_ADDR __gm__ uint8_t *
#define KERNEL_TASK_TYPE_DEFAULT(kind)
#define KERNEL_TASK_TYPE(key, kind)
#define PRINTF(...) ::vitruvian::print_text(__VA_ARGS__)
#define ASCENDC_ASSERT(condition, ...) ((condition) ? (void)0 : ::vitruvian::failed(#condition))
#undef assert
#define assert(condition, ...) ((condition) ? (void)0 : ::vitruvian::failed(#condition))

namespace AscendC {

enum class TPosition : uint8_t {
    GM, A1, A2, B1, B2, C1, C2, CO1, CO2, VECIN, VECOUT, VECCALC, LCM = VECCALC, TSCM
};
using QuePosition = TPosition;

enum class HardEvent : uint8_t {
    MTE2_MTE1, MTE1_MTE2, MTE2_V, V_MTE2, MTE2_MTE3, MTE3_MTE2, V_MTE3, MTE3_V, MTE1_M, M_MTE1,
    M_V, V_M, M_FIX, FIX_M, MTE2_S, S_MTE2, V_S, S_V, MTE3_S, S_MTE3, FIX_MTE2, MTE2_FIX, MAX
};

enum class RoundMode { CAST_NONE, CAST_RINT, CAST_FLOOR, CAST_CEIL, CAST_ROUND, CAST_TRUNC, CAST_ODD };

struct Pipes { pipe_t source, target; };
constexpr Pipes pipes_of(HardEvent event) {
    constexpr Pipes pairs[] = {
        {PIPE_MTE2, PIPE_MTE1}, {PIPE_MTE1, PIPE_MTE2}, {PIPE_MTE2, PIPE_V}, {PIPE_V, PIPE_MTE2},
        {PIPE_MTE2, PIPE_MTE3}, {PIPE_MTE3, PIPE_MTE2}, {PIPE_V, PIPE_MTE3}, {PIPE_MTE3, PIPE_V},
        {PIPE_MTE1, PIPE_M},    {PIPE_M, PIPE_MTE1},    {PIPE_M, PIPE_V},    {PIPE_V, PIPE_M},
        {PIPE_M, PIPE_FIX},     {PIPE_FIX, PIPE_M},     {PIPE_MTE2, PIPE_S}, {PIPE_S, PIPE_MTE2},
        {PIPE_V, PIPE_S},       {PIPE_S, PIPE_V},       {PIPE_MTE3, PIPE_S}, {PIPE_S, PIPE_MTE3},
        {PIPE_FIX, PIPE_MTE2},  {PIPE_MTE2, PIPE_FIX}};
    return pairs[static_cast<int>(event)];
}

template <HardEvent event> inline void SetFlag(int32_t id) {
    set_flag(pipes_of(event).source, pipes_of(event).target, static_cast<event_t>(id));
}
template <HardEvent event> inline void WaitFlag(int32_t id) {
    wait_flag(pipes_of(event).source, pipes_of(event).target, static_cast<event_t>(id));
}
template <pipe_t pipe> inline void PipeBarrier() { pipe_barrier(pipe); }

inline int64_t GetBlockIdx() { return get_block_idx() * get_subblockdim() + get_subblockid(); }
inline int64_t GetBlockNum() { return get_block_num(); }
inline int64_t GetSubBlockIdx() { return get_subblockid(); }

template <uint8_t mode, pipe_t pipe> inline void CrossCoreSetFlag(uint16_t id) {
    ffts_cross_core_sync(pipe, uint64_t{1} | mode << 4 | id << 8);
}
template <uint8_t mode = 0, pipe_t pipe = PIPE_S> inline void CrossCoreWaitFlag(uint16_t id) {
    wait_flag_dev(id);
}

// Tensors.

template <class T> class GlobalTensor {
public:
    using PrimType = T;
    void SetGlobalBuffer(__gm__ T *start, uint64_t count = 0) { start_ = start; count_ = count; }
    GlobalTensor operator[](uint64_t offset) const {
        GlobalTensor part = *this;
        part.start_ += offset;
        return part;
    }
    __gm__ T *GetPhyAddr(uint64_t offset = 0) const { return start_ + offset; }
    T GetValue(uint64_t index) const { return start_[index]; }
    void SetValue(uint64_t index, T value) { start_[index] = value; }
    T operator()(uint64_t index) const { return start_[index]; }
    uint64_t GetSize() const { return count_; }

private:
    __gm__ T *start_ = nullptr;
    uint64_t count_ = 0;
};

template <class T> class LocalTensor {
public:
    using PrimType = T;
    LocalTensor() = default;
    LocalTensor(uint32_t address, uint32_t bytes, int buffer = -1)
        : address_(address), bytes_(bytes), buffer_(buffer) {}
    LocalTensor(TPosition, uint32_t address, uint32_t count)
        : address_(address), bytes_(count * sizeof(T)) {}
    LocalTensor operator[](uint32_t offset) const {
        return {address_ + offset * uint32_t(sizeof(T)), bytes_, buffer_};
    }
    T *GetPhyAddr() const { return reinterpret_cast<T *>(uint64_t{address_}); }
    T GetValue(uint32_t index) const { return GetPhyAddr()[index]; }
    void SetValue(uint32_t index, T value) const { GetPhyAddr()[index] = value; }
    T operator()(uint32_t index) const { return GetValue(index); }
    template <class U> LocalTensor<U> ReinterpretCast() const { return {address_, bytes_, buffer_}; }
    uint32_t GetSize() const { return bytes_ / sizeof(T); }
    uint32_t Bytes() const { return bytes_; }
    uint32_t Address() const { return address_; }
    int Buffer() const { return buffer_; }

private:
    uint32_t address_ = 0, bytes_ = 0;
    int buffer_ = -1;
};

// Buffers and queues.

constexpr int space_of(TPosition position) {
    switch (position) {
    case TPosition::A1: case TPosition::B1: case TPosition::TSCM: return 1;
    case TPosition::A2: return 2;
    case TPosition::B2: return 3;
    case TPosition::CO1: return 4;
    case TPosition::C1: return 1;
    case TPosition::C2: return 5;
    default: return 0;
    }
}

// The flag that says that a queue's tensor is full, and the one that says that it is free again.
constexpr HardEvent full_event(TPosition position) {
    switch (position) {
    case TPosition::VECIN: return HardEvent::MTE2_V;
    case TPosition::VECOUT: return HardEvent::V_MTE3;
    case TPosition::A1: case TPosition::B1: case TPosition::C1: return HardEvent::MTE2_MTE1;
    case TPosition::A2: case TPosition::B2: case TPosition::C2: return HardEvent::MTE1_M;
    case TPosition::CO1: return HardEvent::M_FIX;
    default: return HardEvent::MAX;
    }
}
constexpr HardEvent free_event(TPosition position) {
    switch (position) {
    case TPosition::VECIN: return HardEvent::V_MTE2;
    case TPosition::VECOUT: return HardEvent::MTE3_V;
    case TPosition::A1: case TPosition::B1: case TPosition::C1: return HardEvent::MTE1_MTE2;
    case TPosition::A2: case TPosition::B2: case TPosition::C2: return HardEvent::M_MTE1;
    case TPosition::CO1: return HardEvent::FIX_M;
    default: return HardEvent::MAX;
    }
}

struct QueueBuffers {
    struct One { uint32_t address; uint8_t full, free; bool taken, waits; };
    One buffers[8] = {};
    uint32_t count = 0, bytes = 0, next = 0, oldest = 0, queued = 0;
    int order[8] = {};
};

class TPipe {
public:
    TPipe() { current() = this; }
    ~TPipe() { Destroy(); }
    void Destroy() {
        for (unsigned i = 0; i < closing_count_; i++) closing_[i].end(closing_[i].queue);
        if (closing_count_ || used_[0] || used_[1]) pipe_barrier(PIPE_ALL);
        closing_count_ = 0;
    }
    template <class Q> bool InitBuffer(Q &queue, uint8_t count, uint32_t bytes) {
        queue.Init(*this, count, bytes);
        return true;
    }
    template <class B> bool InitBuffer(B &buffer, uint32_t bytes) {
        buffer.Init(*this, bytes);
        return true;
    }
    template <HardEvent event> int32_t FetchEventID() const {
        return free_[static_cast<int>(event)] & 7;
    }
    int32_t FetchEventID(HardEvent event) const { return free_[static_cast<int>(event)] & 7; }
    template <HardEvent event> int32_t AllocEventID() { return take(event); }
    template <HardEvent event> void ReleaseEventID(int32_t) { free_[static_cast<int>(event)]--; }

    uint32_t reserve(TPosition position, uint32_t bytes) {
        uint32_t &used = used_[space_of(position)], start = used;
        used += (bytes + 31) / 32 * 32;
        return start;
    }
    uint8_t take(HardEvent event) { return free_[static_cast<int>(event)]++ & 7; }
    void at_end(void *queue, void (*end)(void *)) {
        if (closing_count_ < 32) closing_[closing_count_++] = {queue, end};
    }
    static TPipe *&current() {
        static TPipe *pipe = nullptr;
        return pipe;
    }

private:
    struct Closing { void *queue; void (*end)(void *); };
    uint32_t used_[6] = {};
    uint8_t free_[32] = {};
    Closing closing_[32];
    unsigned closing_count_ = 0;
};

inline TPipe *GetTPipePtr() { return TPipe::current(); }

template <TPosition position, int32_t depth = 1, auto mask = 0> class TQueBind {
public:
    void Init(TPipe &pipe, uint8_t count, uint32_t bytes) {
        constexpr HardEvent full = full_event(position), free = free_event(position);
        q_.count = count < 8 ? count : 8;
        q_.bytes = (bytes + 31) / 32 * 32;
        for (uint32_t i = 0; i < q_.count; i++) {
            q_.buffers[i].address = pipe.reserve(position, q_.bytes);
            if constexpr (full != HardEvent::MAX) {
                q_.buffers[i].full = pipe.take(full);
                q_.buffers[i].free = pipe.take(free);
            }
        }
        pipe.at_end(this, [](void *queue) { static_cast<TQueBind *>(queue)->Drain(); });
    }
    template <class T> LocalTensor<T> AllocTensor() {
        auto &buffer = q_.buffers[q_.next];
        ASCENDC_ASSERT(q_.count && !buffer.taken && "AllocTensor finds a free tensor");
        buffer.taken = true;
        WaitFree(buffer);
        LocalTensor<T> tensor(buffer.address, q_.bytes, static_cast<int>(q_.next));
        q_.next = (q_.next + 1) % q_.count;
        return tensor;
    }
    template <class T> bool EnQue(const LocalTensor<T> &tensor) {
        int number = tensor.Buffer();
        ASCENDC_ASSERT(number >= 0 && "EnQue takes a tensor of AllocTensor");
        if constexpr (full_event(position) != HardEvent::MAX)
            SetFlag<full_event(position)>(q_.buffers[number].full);
        q_.order[(q_.oldest + q_.queued++) % 8] = number;
        return true;
    }
    template <class T> LocalTensor<T> DeQue() {
        ASCENDC_ASSERT(q_.queued && "DeQue finds a tensor");
        int number = q_.order[q_.oldest];
        q_.oldest = (q_.oldest + 1) % 8;
        q_.queued--;
        if constexpr (full_event(position) != HardEvent::MAX)
            WaitFlag<full_event(position)>(q_.buffers[number].full);
        return {q_.buffers[number].address, q_.bytes, number};
    }
    template <class T> void FreeTensor(const LocalTensor<T> &tensor) {
        ASCENDC_ASSERT(tensor.Buffer() >= 0 && "FreeTensor takes a tensor of AllocTensor");
        auto &buffer = q_.buffers[tensor.Buffer()];
        buffer.taken = false;
        if constexpr (free_event(position) != HardEvent::MAX) {
            SetFlag<free_event(position)>(buffer.free);
            buffer.waits = true;
        }
    }
    void Drain() {
        for (uint32_t i = 0; i < q_.count; i++) WaitFree(q_.buffers[i]);
    }

private:
    static void WaitFree(QueueBuffers::One &buffer) {
        if constexpr (free_event(position) != HardEvent::MAX)
            if (buffer.waits) WaitFlag<free_event(position)>(buffer.free);
        buffer.waits = false;
    }
    QueueBuffers q_;
};
template <TPosition position, int32_t depth = 1, auto mask = 0>
using TQue = TQueBind<position, depth, mask>;

template <TPosition position = TPosition::VECCALC> class TBuf {
public:
    void Init(TPipe &pipe, uint32_t bytes) {
        bytes_ = (bytes + 31) / 32 * 32;
        address_ = pipe.reserve(position, bytes_);
    }
    template <class T> LocalTensor<T> Get() const { return {address_, bytes_}; }
    template <class T> LocalTensor<T> Get(uint32_t count) const {
        return {address_, count * uint32_t(sizeof(T))};
    }

private:
    uint32_t address_ = 0, bytes_ = 0;
};

// Moves.

struct DataCopyParams {
    uint16_t blockCount = 1, blockLen = 0, srcStride = 0, dstStride = 0;
};
struct DataCopyExtParams {
    uint16_t blockCount = 1;
    uint32_t blockLen = 0, srcStride = 0, dstStride = 0, rsv = 0;
};
template <class T> struct DataCopyPadExtParams {
    bool isPad = false;
    uint8_t leftPadding = 0, rightPadding = 0;
    T paddingValue = 0;
};

template <class T>
inline void DataCopy(const LocalTensor<T> &to, const GlobalTensor<T> &from, const DataCopyParams &p) {
    copy_gm_to_ubuf(to.GetPhyAddr(), from.GetPhyAddr(), 0, p.blockCount, p.blockLen, p.srcStride,
                    p.dstStride);
}
template <class T>
inline void DataCopy(const GlobalTensor<T> &to, const LocalTensor<T> &from, const DataCopyParams &p) {
    copy_ubuf_to_gm(to.GetPhyAddr(), from.GetPhyAddr(), 0, p.blockCount, p.blockLen, p.srcStride,
                    p.dstStride);
}
template <class T>
inline void DataCopy(const LocalTensor<T> &to, const LocalTensor<T> &from, const DataCopyParams &p) {
    copy_ubuf_to_ubuf(to.GetPhyAddr(), from.GetPhyAddr(), 0, p.blockCount, p.blockLen, p.srcStride,
                      p.dstStride);
}
template <class To, class From> inline void DataCopy(const To &to, const From &from, uint32_t count) {
    DataCopyParams p;
    p.blockLen = static_cast<uint16_t>(count * sizeof(typename To::PrimType) / 32);
    DataCopy(to, from, p);
}
template <class T>
inline void DataCopyPad(const LocalTensor<T> &to, const GlobalTensor<T> &from,
                        const DataCopyExtParams &p, const DataCopyPadExtParams<T> &pad) {
    auto *target = to.GetPhyAddr();
    auto *source = from.GetPhyAddr();
    int left = pad.isPad ? pad.leftPadding : 0, right = pad.isPad ? pad.rightPadding : 0;
    if constexpr (sizeof(T) == 1)
        copy_gm_to_ubuf_align_b8(target, source, 0, p.blockCount, p.blockLen, left, right,
                                 p.srcStride, p.dstStride);
    else if constexpr (sizeof(T) == 2)
        copy_gm_to_ubuf_align_b16(target, source, 0, p.blockCount, p.blockLen, left, right,
                                  p.srcStride, p.dstStride);
    else
        copy_gm_to_ubuf_align_b32(target, source, 0, p.blockCount, p.blockLen, left, right,
                                  p.srcStride, p.dstStride);
}
template <class T>
inline void DataCopyPad(const GlobalTensor<T> &to, const LocalTensor<T> &from,
                        const DataCopyExtParams &p) {
    auto *target = to.GetPhyAddr();
    auto *source = from.GetPhyAddr();
    if constexpr (sizeof(T) == 1)
        copy_ubuf_to_gm_align_b8(target, source, 0, p.blockCount, p.blockLen, 0, 0, p.srcStride,
                                 p.dstStride);
    else if constexpr (sizeof(T) == 2)
        copy_ubuf_to_gm_align_b16(target, source, 0, p.blockCount, p.blockLen, 0, 0, p.srcStride,
                                  p.dstStride);
    else
        copy_ubuf_to_gm_align_b32(target, source, 0, p.blockCount, p.blockLen, 0, 0, p.srcStride,
                                  p.dstStride);
}

// The vector unit. A count of elements uses the counting mode of the mask.

inline void SetMaskCount() { set_mask_count(); }
inline void SetMaskNorm() { set_mask_norm(); }
struct Counting {
    explicit Counting(uint32_t count) {
        set_mask_count();
        set_vector_mask(uint64_t{0}, uint64_t{count});
    }
    ~Counting() {
        set_mask_norm();
        set_vector_mask(~uint64_t{0}, ~uint64_t{0});
    }
};

struct BinaryRepeatParams {
    uint8_t dstBlkStride = 1, src0BlkStride = 1, src1BlkStride = 1;
    uint8_t dstRepStride = 8, src0RepStride = 8, src1RepStride = 8;
};
struct UnaryRepeatParams {
    uint16_t dstBlkStride = 1, srcBlkStride = 1;
    uint8_t dstRepStride = 8, srcRepStride = 8;
};

inline void set_mask(uint64_t count, bool wide) {
    uint64_t all = ~uint64_t{0};
    uint64_t low = count >= 64 ? all : (uint64_t{1} << count) - 1;
    uint64_t high = count >= 128 ? all : count > 64 ? (uint64_t{1} << (count - 64)) - 1 : 0;
    set_vector_mask(wide ? uint64_t{0} : high, low);
}

#define VITRUVIAN_BINARY(Name, name)                                                              \
    template <class T>                                                                            \
    inline void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src0,                       \
                     const LocalTensor<T> &src1, int32_t count) {                                 \
        Counting counting(count);                                                                 \
        name(dst.GetPhyAddr(), src0.GetPhyAddr(), src1.GetPhyAddr(), 1, 1, 1, 1, 8, 8, 8);        \
    }                                                                                             \
    template <class T>                                                                            \
    inline void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src0,                       \
                     const LocalTensor<T> &src1, uint64_t mask, uint8_t repeat,                   \
                     const BinaryRepeatParams &p) {                                               \
        set_mask(mask, sizeof(T) == 4);                                                           \
        name(dst.GetPhyAddr(), src0.GetPhyAddr(), src1.GetPhyAddr(), repeat, p.dstBlkStride,      \
             p.src0BlkStride, p.src1BlkStride, p.dstRepStride, p.src0RepStride,                   \
             p.src1RepStride);                                                                    \
    }
VITRUVIAN_BINARY(Add, vadd)
VITRUVIAN_BINARY(Sub, vsub)
VITRUVIAN_BINARY(Mul, vmul)
VITRUVIAN_BINARY(Div, vdiv)
VITRUVIAN_BINARY(Max, vmax)
VITRUVIAN_BINARY(Min, vmin)
VITRUVIAN_BINARY(And, vand)
VITRUVIAN_BINARY(Or, vor)
#undef VITRUVIAN_BINARY

#define VITRUVIAN_UNARY(Name, name)                                                               \
    template <class T>                                                                            \
    inline void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, int32_t count) {       \
        Counting counting(count);                                                                 \
        name(dst.GetPhyAddr(), src.GetPhyAddr(), 1, 1, 1, 8, 8);                                  \
    }                                                                                             \
    template <class T>                                                                            \
    inline void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, uint64_t mask,         \
                     uint8_t repeat, const UnaryRepeatParams &p) {                                \
        set_mask(mask, sizeof(T) == 4);                                                           \
        name(dst.GetPhyAddr(), src.GetPhyAddr(), repeat, p.dstBlkStride, p.srcBlkStride,          \
             p.dstRepStride, p.srcRepStride);                                                     \
    }
VITRUVIAN_UNARY(Exp, vexp)
VITRUVIAN_UNARY(Ln, vln)
VITRUVIAN_UNARY(Abs, vabs)
VITRUVIAN_UNARY(Reciprocal, vrec)
VITRUVIAN_UNARY(Sqrt, vsqrt)
VITRUVIAN_UNARY(Rsqrt, vrsqrt)
VITRUVIAN_UNARY(Relu, vrelu)
VITRUVIAN_UNARY(Not, vnot)
#undef VITRUVIAN_UNARY

#define VITRUVIAN_SCALAR(Name, name)                                                              \
    template <class T, class U>                                                                   \
    inline void Name(const LocalTensor<T> &dst, const LocalTensor<T> &src, U scalar,              \
                     int32_t count) {                                                             \
        Counting counting(count);                                                                 \
        name(dst.GetPhyAddr(), src.GetPhyAddr(), static_cast<T>(scalar), 1, 1, 1, 8, 8);          \
    }
VITRUVIAN_SCALAR(Adds, vadds)
VITRUVIAN_SCALAR(Muls, vmuls)
VITRUVIAN_SCALAR(Maxs, vmaxs)
VITRUVIAN_SCALAR(Mins, vmins)
#undef VITRUVIAN_SCALAR

template <class T, class U>
inline void Duplicate(const LocalTensor<T> &dst, U scalar, int32_t count) {
    Counting counting(count);
    vector_dup(dst.GetPhyAddr(), static_cast<T>(scalar), 1, 1, 1, 8, 8);
}

template <class To, class From>
inline void Cast(const LocalTensor<To> &dst, const LocalTensor<From> &src, RoundMode mode,
                 uint32_t count) {
    Counting counting(count);
    To *to = dst.GetPhyAddr();
    From *from = src.GetPhyAddr();
    constexpr uint8_t to_step = sizeof(To) < sizeof(From) ? 4 : 8;
    constexpr uint8_t from_step = sizeof(From) < sizeof(To) ? 4 : 8;
    if constexpr (std::is_same_v<To, float> && std::is_same_v<From, half>)
        vconv_f162f32(to, from, 1, 1, 1, to_step, from_step);
    else if constexpr (std::is_same_v<To, half> && std::is_same_v<From, float>)
        vconv_f322f16(to, from, 1, 1, 1, to_step, from_step);
    else if constexpr (std::is_same_v<To, int32_t> && std::is_same_v<From, float>) {
        if (mode == RoundMode::CAST_TRUNC) vconv_f322s32z(to, from, 1, 1, 1, 8, 8);
        else if (mode == RoundMode::CAST_FLOOR) vconv_f322s32f(to, from, 1, 1, 1, 8, 8);
        else if (mode == RoundMode::CAST_CEIL) vconv_f322s32c(to, from, 1, 1, 1, 8, 8);
        else vconv_f322s32r(to, from, 1, 1, 1, 8, 8);
    } else if constexpr (std::is_same_v<To, float> && std::is_same_v<From, int32_t>)
        vconv_s322f32(to, from, 1, 1, 1, 8, 8);
    else static_assert(sizeof(To) == 0, "Cast has half, float and int32_t here; give --headers");
}

template <class T>
inline void WholeReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src, int32_t mask,
                           int32_t repeat, int32_t dst_step, int32_t src_block, int32_t src_step) {
    set_mask(mask, sizeof(T) == 4);
    vcadd(dst.GetPhyAddr(), src.GetPhyAddr(), repeat, dst_step, src_block, src_step, false);
}

// The Cube.

struct Nd2NzParams {
    uint16_t ndNum = 1, nValue = 0, dValue = 0, srcNdMatrixStride = 0, srcDValue = 0;
    uint16_t dstNzC0Stride = 0, dstNzNStride = 1, dstNzMatrixStride = 0;
};
template <class T>
inline void DataCopy(const LocalTensor<T> &to, const GlobalTensor<T> &from, const Nd2NzParams &p) {
    static_assert(sizeof(T) == 2, "DataCopy from ND to NZ has elements of 16 bits here");
    copy_gm_to_cbuf_multi_nd2nz_b16(to.GetPhyAddr(), from.GetPhyAddr(), 0, p.ndNum, p.nValue,
                                    p.dValue, p.srcNdMatrixStride, p.srcDValue, p.dstNzC0Stride,
                                    p.dstNzNStride, p.dstNzMatrixStride);
}

struct LoadData2DParams {
    uint16_t startIndex = 0;
    uint8_t repeatTimes = 1;
    uint16_t srcStride = 1, dstGap = 0;
    uint8_t sid = 0;
    bool ifTranspose = false;
};
template <class T, class S>
inline void load_fractals(T *to, const S *from, bool right, const LoadData2DParams &p) {
    if (right)
        load_cbuf_to_cb(to, from, p.startIndex, p.repeatTimes, p.srcStride, p.dstGap, p.sid,
                        p.ifTranspose, inc);
    else
        load_cbuf_to_ca(to, from, p.startIndex, p.repeatTimes, p.srcStride, p.dstGap, p.sid,
                        p.ifTranspose, inc);
}
// The two sides of a product have different functions, as the tensors here do not know theirs.
template <class T>
inline void LoadDataA(const LocalTensor<T> &to, const LocalTensor<T> &from,
                      const LoadData2DParams &p) {
    load_fractals(to.GetPhyAddr(), from.GetPhyAddr(), false, p);
}
template <class T>
inline void LoadDataB(const LocalTensor<T> &to, const LocalTensor<T> &from,
                      const LoadData2DParams &p) {
    load_fractals(to.GetPhyAddr(), from.GetPhyAddr(), true, p);
}

struct MmadParams {
    uint16_t m = 0, n = 0, k = 0;
    uint8_t unitFlag = 0;
    bool cmatrixSource = false, cmatrixInitVal = true;
};
template <class C, class A, class B>
inline void Mmad(const LocalTensor<C> &c, const LocalTensor<A> &a, const LocalTensor<B> &b,
                 const MmadParams &p) {
    mad(c.GetPhyAddr(), a.GetPhyAddr(), b.GetPhyAddr(), p.m, p.k, p.n, p.unitFlag, false,
        p.cmatrixSource, p.cmatrixInitVal);
}

// One matrix from fractals to rows, without a change of its type.
struct FixpipeParamsV220 {
    uint16_t nSize = 0, mSize = 0, srcStride = 0;
    uint32_t dstStride = 0;
};
template <class T>
inline void Fixpipe(const GlobalTensor<T> &to, const LocalTensor<T> &from,
                    const FixpipeParamsV220 &p) {
    set_nd_para(uint64_t{1});
    copy_matrix_cc_to_gm(to.GetPhyAddr(), from.GetPhyAddr(), 0, p.nSize, p.mSize, p.dstStride,
                         p.srcStride, 0, NoQuant, 0, false, true);
}

template <class T>
inline void DumpTensor(const LocalTensor<T> &tensor, uint32_t number, uint32_t count) {
    vitruvian::dump('U', vitruvian::code<T>(), tensor.Address(), number, count);
}
template <class T>
inline void DumpTensor(const GlobalTensor<T> &tensor, uint32_t number, uint32_t count) {
    vitruvian::dump('G', vitruvian::code<T>(), reinterpret_cast<uint64_t>(tensor.GetPhyAddr()),
                    number, count);
}

}  // namespace AscendC

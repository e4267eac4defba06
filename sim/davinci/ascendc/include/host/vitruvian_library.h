// What the headers of AscendC expect besides intrinsics, for a clone of the library.
#pragma once
#include "securec.h"
#include <cstdint>

#define __simd_callee__
#define __simd_vf__
#define __simt_callee__
#define __simt_vf__
#define __VEC_SCOPE__
#define __WORKGROUP__
#define __mixed__(...)

enum mem_t { L1, L0A, L0B, L0C, UB };
enum { ASCENDING_ORDER, DESCENDING_ORDER };
struct vector_bool {};
struct vector_align {};
struct vector_address {};
namespace bisheng { namespace cce {
inline void metrics_prof_start() {}
inline void metrics_prof_stop() {}
} }

// The library tells the memories of a dump apart by address spaces, which g++ does not have.
#define IMPL_UTILS_DEBUG_ASC_AICORE_DUMP_IMPL_H
namespace __asc_aicore {
template <class T, class... A> inline void asc_dump_gm(T *place, uint32_t number, uint32_t count, A...) {
    vitruvian::dump('G', vitruvian::code<T>(), reinterpret_cast<uint64_t>(place), number, count);
}
template <class T, class... A> inline void asc_dump_ubuf(T *place, uint32_t number, uint32_t count, A...) {
    vitruvian::dump('U', vitruvian::code<T>(), reinterpret_cast<uint64_t>(place), number, count);
}
template <class T, class... A> inline void asc_dump_l1buf(T *place, uint32_t number, uint32_t count, A...) {
    vitruvian::dump('1', vitruvian::code<T>(), reinterpret_cast<uint64_t>(place), number, count);
}
template <class T, class... A> inline void asc_dump_cbuf(T *place, uint32_t number, uint32_t count, A...) {
    vitruvian::dump('C', vitruvian::code<T>(), reinterpret_cast<uint64_t>(place), number, count);
}
template <class T, class... A> inline void asc_dump(T *place, uint32_t number, uint32_t count, A...) {
    vitruvian::dump(vitruvian::on_device(place) ? 'G' : 'U', vitruvian::code<T>(),
                    reinterpret_cast<uint64_t>(place), number, count);
}
template <class... A> inline void asc_dump_shape_impl(A...) {}
}
using __asc_aicore::asc_dump_gm;
using __asc_aicore::asc_dump_ubuf;
using __asc_aicore::asc_dump_l1buf;
using __asc_aicore::asc_dump_cbuf;

// The cycle counter and the place in the program, which the library's assembly reads by name.
extern "C" {
__attribute__((weak)) long SYS_CNT = 0;  // each file of a program has it
__attribute__((weak)) long vitruvian_place asm("pc") = 0;
}

// The workspace of the library's own messages between cores, which a launch allocates.
inline __gm__ uint8_t *__get_kfc_workspace_addr() {
    return reinterpret_cast<__gm__ uint8_t *>(vitruvian::state.workspace);
}
inline void __set_kfc_workspace_addr(__gm__ uint8_t *) {}

#define IMPL_UTILS_DEBUG_ASC_AICORE_ASSERT_IMPL_H
template <class... A> inline void __assert_fail_msg(const char *assertion, A...) {
    vitruvian::failed(assertion);
}

// Structures of tilings, declared by macros; the text is this project's own.
//
// A structure has the layout that the kernel reads, so that saving it is a copy.
#pragma once
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>
#include "../graph/tensor.h"
#include "../securec.h"

#define BEGIN_TILING_DATA_DEF(name)                                             \
    class name {                                                                \
    public:                                                                     \
        void SaveToBuffer(void *place, size_t bytes) const {                    \
            memcpy(place, static_cast<const void *>(this),                      \
                   bytes < sizeof *this ? bytes : sizeof *this);                \
        }                                                                       \
        size_t GetDataSize() const { return sizeof *this; }
#define TILING_DATA_FIELD_DEF(type, field)                                      \
        type field##_ = {};                                                     \
        void set_##field(type value) { field##_ = value; }                      \
        type get_##field() const { return field##_; }                           \
        static_assert(true, "a semicolon follows")
#define TILING_DATA_FIELD_DEF_ARR(type, count, field)                           \
        type field##_[count] = {};                                              \
        void set_##field(const type *values) { memcpy(field##_, values, sizeof field##_); } \
        type *get_##field() { return field##_; }                                \
        static_assert(true, "a semicolon follows")
#define TILING_DATA_FIELD_DEF_STRUCT(type, field) type field
#define END_TILING_DATA_DEF }
#define REGISTER_TILING_DATA_CLASS(kernel, name)

// Data types of the graph interface, by their public numbers; the text is this project's own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ge {
enum DataType {
    DT_FLOAT = 0, DT_FLOAT16 = 1, DT_INT8 = 2, DT_INT32 = 3, DT_UINT8 = 4, DT_INT16 = 6,
    DT_UINT16 = 7, DT_UINT32 = 8, DT_INT64 = 9, DT_UINT64 = 10, DT_DOUBLE = 11, DT_BOOL = 12,
    DT_UNDEFINED = 28, DT_BF16 = 27, DT_INT4 = 29, DT_UINT1 = 30, DT_INT2 = 31, DT_UINT2 = 32,
    DT_HIFLOAT8 = 34, DT_FLOAT8_E5M2 = 35, DT_FLOAT8_E4M3FN = 36, DT_FLOAT8_E8M0 = 37,
    DT_FLOAT4_E2M1 = 40, DT_FLOAT4_E1M2 = 41
};
enum Format { FORMAT_NCHW = 0, FORMAT_NHWC = 1, FORMAT_ND = 2, FORMAT_FRACTAL_NZ = 29 };
using graphStatus = uint32_t;
constexpr graphStatus GRAPH_SUCCESS = 0, GRAPH_FAILED = 0xFFFFFFFF;

// The bytes of an element; half a byte or a quarter counts as 1000 plus its bits.
inline int GetSizeByDataType(DataType type) {
    switch (type) {
        case DT_FLOAT: case DT_INT32: case DT_UINT32: return 4;
        case DT_FLOAT16: case DT_BF16: case DT_INT16: case DT_UINT16: return 2;
        case DT_INT64: case DT_UINT64: case DT_DOUBLE: return 8;
        case DT_INT4: case DT_FLOAT4_E2M1: case DT_FLOAT4_E1M2: return 1004;
        case DT_INT2: case DT_UINT2: return 1002;
        case DT_UINT1: return 1001;
        case DT_UNDEFINED: return -1;
        default: return 1;
    }
}
}  // namespace ge

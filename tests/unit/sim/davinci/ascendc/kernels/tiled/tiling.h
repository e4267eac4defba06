#pragma once
#include "graph/tensor.h"
#include "register/tilingdata_base.h"

BEGIN_TILING_DATA_DEF(PartTiling)
TILING_DATA_FIELD_DEF(uint32_t, length);
TILING_DATA_FIELD_DEF_ARR(float, 2, factors);
END_TILING_DATA_DEF;

int ComputeTiling(const ge::Shape &shape, ge::DataType type, PartTiling &tiling);

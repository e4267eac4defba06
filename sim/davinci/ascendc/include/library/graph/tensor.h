// Shapes of the graph interface; the text is this project's own.
#pragma once
#include <vector>
#include "types.h"

namespace ge {
class Shape {
public:
    Shape() = default;
    explicit Shape(const std::vector<int64_t> &dims) : dims_(dims) {}
    size_t GetDimNum() const { return dims_.size(); }
    int64_t GetDim(size_t index) const { return index < dims_.size() ? dims_[index] : 0; }
    std::vector<int64_t> GetDims() const { return dims_; }
    int64_t GetShapeSize() const {
        int64_t size = dims_.empty() ? 0 : 1;
        for (int64_t dim : dims_) size *= dim;
        return size;
    }

private:
    std::vector<int64_t> dims_;
};
}  // namespace ge

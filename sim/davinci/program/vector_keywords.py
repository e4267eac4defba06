"""Keywords that many methods of the vector unit take, as types."""

from collections.abc import Mapping
from typing import TypedDict

#: Block stride and repeat stride, by operand.
Strides = Mapping[str, tuple[int, int]]


class LaneKeywords(TypedDict, total=False):
    """Keywords of a lane-wise method; ``Vector.vector`` describes them."""

    repeat: int | None
    mask: int
    strides: Strides | None


class ReductionKeywords(TypedDict, total=False):
    """Keywords of a reduction; ``Vector.vreduce_lanes`` describes them."""

    repeat: int
    mask: int
    dst_repeat_bytes: int | None
    src_block_stride: int
    src_repeat_stride: int | None

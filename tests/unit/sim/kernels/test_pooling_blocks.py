"""Instructions of 128 lanes on rows of pixels with a stride: each pixel once."""

from collections import Counter

import pytest

from vitruvian.sim.kernels.pooling import blocks


@pytest.mark.parametrize(
    ("size", "pitches", "count"),
    [
        ((5, 19), (40, 100), 2 + 1),  # down the rows
        ((2, 19), (40, 100), 2 + 1),  # along the rows, and the rests down them
        ((5, 19), (40, 256), 5 + 5),  # the distance of the rows does not fit
        ((5, 7), (7, 9), 1),
        ((300, 16), (16, 40), 2 * 2),  # more rows than repeats
    ],
)
def test_parts_cover_each_pixel_once(size, pitches, count):
    rows, columns = size
    places = [blocks.BlockRows(pitch, step) for pitch, step in zip(pitches, (1, 2), strict=True)]
    found = list(blocks.parts(rows, columns, *places))
    assert len(found) == count
    for where in places:
        covered = Counter()
        for part in found:
            block, distance = part.stride(where)
            assert max(block, distance) <= 255
            for repeat in range(part.repeat):
                for lane in range(part.lanes.bit_count() // 16):
                    covered[part.first(where) + repeat * distance + lane * block] += 1
        assert covered == Counter(
            r * where.pitch + c * where.step for r in range(rows) for c in range(columns)
        )

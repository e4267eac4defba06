"""Parameters of a core: what is allowed, and that everything that is allowed can be built."""

from dataclasses import replace
from itertools import product

import pytest

from vitruvian.hdl.core import CORES
from vitruvian.hdl.core.config import NO_EXTENSION, CoreConfig
from vitruvian.hdl.core.core import Core
from vitruvian.hdl.cube.config import MatrixUnitConfig
from vitruvian.hdl.vector.config import VectorConfig

#: A vector unit with few parts: these tests are about its width.
_GROUPS = ("add",)


def _config(m, n, k, lanes, l1_blocks, precisions=("fp16",)):
    return replace(
        CORES["plain"],
        tile=MatrixUnitConfig(m=m, n=n, k=k, precisions=precisions),
        vector=VectorConfig(lanes=lanes, groups=_GROUPS),
        extension=NO_EXTENSION,
        l1_blocks=l1_blocks,
        ub_banks=1,
    )


def _allowed(m, n, k, lanes, l1_blocks, precisions=("fp16",)):
    """Return whether lines fit 16 pieces: bytes of a row of operands, and of one of C.

    Beside complex results, which need 16 banks at most, a line of L0C has at most a row of 64
    bytes unless that is a row of a tile.
    """
    fits = 32 * l1_blocks <= 16 * 2 * k and 2 * lanes <= 16 * 4 * n
    wide = "fp32c" in precisions and m <= 8
    return fits and not (wide and 2 * lanes > 64 > 4 * n)


#: Rows, columns and terms of a tile, lanes, blocks of a load, and precisions.
SPACE = list(
    product((2, 4, 8, 16), (2, 4, 8, 16), (1, 2, 4, 8, 16), (16, 32, 64, 128), (1, 2, 4, 8))
)
WIDE = [(*point, ("fp16", "fp32c")) for point in SPACE if point[2] >= 4 and point[4] == 1]


def test_lines_have_at_most_the_bytes_of_16_pieces():
    built = 0
    for point in SPACE + WIDE:
        if _allowed(*point):
            config = _config(*point)
            assert config.lane_blocks == point[3] // 16
            assert config.wide_sums == (len(point) == 6 and point[0] <= 8)
            built += 1
        else:
            with pytest.raises(ValueError, match=r"must (be|take) at most"):
                _config(*point)
    assert len(SPACE) == 1280 and len(WIDE) == 192 and built == 975


def test_the_memories_of_every_allowed_core_exist():
    """A core makes its memories when it is elaborated; they refuse lines that they cannot hold."""
    for point in filter(lambda point: _allowed(*point), SPACE + WIDE):
        m, n, k, lanes, *_ = point
        # Operands depend on a side of the tile, k and the load; sums on both sides and the lanes.
        if not (m == n and lanes == 16) and k != 8:
            continue
        config = _config(*point)
        tile, core = config.tile, Core(config=config)
        pieces = 32 * config.l1_blocks // (2 * tile.k)  # of a line
        for memory, rows in ((core.operands("L0A"), tile.m), (core.operands("L0B"), tile.n)):
            assert memory.banks == max(rows, pieces) <= 16
            assert memory.blocks == config.l1_blocks
        sums = core.sums()
        assert sums.blocks >= config.lane_blocks
        assert sums.tile_pieces == tile.m * (1 + config.wide_sums)
        assert sums.banks == max(sums.tile_pieces, 32 * sums.blocks // (4 * tile.n)) <= 16


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("l1_blocks", 3, "l1_blocks"),
        ("ub_banks", 32, "ub_banks"),
        ("ub", 1000, "ub must be"),
        ("vector", VectorConfig(lanes=8, groups=_GROUPS), "16 to 128 lanes, not 8"),
        ("vector", VectorConfig(lanes=256, groups=_GROUPS), "16 to 128 lanes, not 256"),
    ],
)
def test_other_parameters_are_refused(name, value, message):
    with pytest.raises(ValueError, match=message):
        replace(CORES["plain"], **{name: value})


def test_the_presets_have_the_sizes_of_their_table():
    assert isinstance(CORES["small"], CoreConfig)
    sizes = {
        name: (core.tile.m, core.vector.lanes, core.lane_blocks, 32 * core.l1_blocks)
        for name, core in CORES.items()
    }
    assert sizes == {
        "tiny": (4, 16, 1, 32),
        "micro": (2, 16, 1, 32),
        "plain": (4, 16, 1, 32),
        "mixed": (4, 16, 1, 32),
        "fp8": (2, 16, 1, 32),
        "semiring": (4, 16, 1, 32),
        "small": (8, 64, 4, 64),
        "davinci": (16, 128, 8, 256),
    }

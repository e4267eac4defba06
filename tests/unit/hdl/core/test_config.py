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


def _config(m, n, k, lanes, l1_blocks, ub_banks=1):
    return replace(
        CORES["plain"],
        tile=MatrixUnitConfig(m=m, n=n, k=k, precisions=("fp16",)),
        vector=VectorConfig(lanes=lanes, groups=_GROUPS),
        extension=NO_EXTENSION,
        l1_blocks=l1_blocks,
        ub_banks=ub_banks,
    )


def _allowed(m, n, k, lanes, l1_blocks):
    """Return whether the lines fit the tiles: bytes of a tile of operands, and of one of C."""
    return 32 * l1_blocks <= 2 * k * min(m, n) and 2 * lanes <= 4 * m * n


#: Rows, columns and terms of a tile, lanes, and blocks of a load.
SPACE = list(product((2, 4, 8, 16), (2, 4, 8, 16), (4, 8, 16), (16, 32, 64, 128), (1, 2, 4, 8)))


def test_lines_have_at_most_the_bytes_of_tiles():
    built = 0
    for point in SPACE:
        if _allowed(*point):
            config = _config(*point)
            assert config.lane_blocks == point[3] // 16
            built += 1
        else:
            with pytest.raises(ValueError, match=r"must (have|take) at most the"):
                _config(*point)
    assert len(SPACE) == 768 and built == 284


@pytest.mark.parametrize("point", [p for p in SPACE if _allowed(*p)])
def test_the_memories_of_every_allowed_core_exist(point):
    """A core makes its memories when it is elaborated; they refuse lines that they cannot hold."""
    config = _config(*point)
    core = Core(config=config)
    for memory, rows in (
        (core.operands("L0A"), config.tile.m),
        (core.operands("L0B"), config.tile.n),
    ):
        assert memory.banks == rows and memory.blocks == config.l1_blocks
    sums = core.sums()
    assert sums.banks == config.tile.m
    assert sums.blocks >= config.lane_blocks


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
        "mixed": (2, 16, 1, 32),
        "fp8": (2, 16, 1, 32),
        "semiring": (4, 16, 1, 32),
        "small": (8, 64, 4, 64),
        "davinci": (16, 128, 8, 256),
    }

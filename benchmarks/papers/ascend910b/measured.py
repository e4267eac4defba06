"""Published measurements of a 910B1 and its sisters with 20 or 24 Cube cores.

Sources: pto-isa (hicann), kernels/manual/a2a3/gemm_performance and conv2d_forward; the vendor's
programming guide (hiascend.com, best practices for Matmul: tiling, and template MDL); asc-devkit
(hicann), examples, 04_best_practices, data_copy.
"""

from dataclasses import dataclass

from vitruvian.sim.kernels.gemm import Blocking

#: Size, milliseconds, and busy shares of Cube, MTE1, MTE2 and FIX in per cent.
PRODUCTS = (
    (1536, 0.0388, (54.5, 42.2, 72.2, 7.7)),
    (3072, 0.2067, (79.0, 62.0, 90.9, 5.8)),
    (6144, 1.5060, (86.7, 68.1, 95.2, 3.1)),
    (7680, 3.1680, (80.6, 63.0, 98.4, 2.4)),
)

#: Images, channels, height, width and filters of convolutions with kernels of 3 × 3 and a border of
#: zeros, milliseconds, and shares as above. In the table of pto-isa, the shares of MTE1 and MTE2 of
#: the first row are in the order of the other rows; they look exchanged.
CONVOLUTIONS = (
    ((4, 128, 8, 48, 1536), 0.0322, (52.9, 59.4, 43.9, 5.6)),
    ((4, 256, 12, 64, 3072), 0.1473, (86.1, 57.3, 75.1, 4.0)),
    ((4, 384, 12, 96, 4608), 0.4709, (89.3, 61.6, 78.8, 2.8)),
    ((4, 512, 16, 96, 6144), 1.0979, (90.8, 61.1, 80.4, 2.1)),
    ((4, 640, 15, 128, 7680), 2.1312, (91.3, 62.4, 80.7, 1.7)),
)

#: Name, M × K × N, blocking, microseconds of MTE2 and in all. The guide does not state the grid of
#: cores of the first three, nor the number of slots of L1 without large steps: 4 are assumed.
EXAMPLES = (
    (
        "4096×4096×5120, one block 64×256×64",
        (4096, 4096, 5120),
        Blocking(4, 5, 64, 256, 64, 1, 4, False),
        2452.4,
        2532.5,
    ),
    (
        "4096×4096×5120, one block 128×64×256",
        (4096, 4096, 5120),
        Blocking(4, 5, 128, 64, 256, 1, 4, False),
        808.5,
        835.6,
    ),
    (
        "4096×4096×5120, four blocks 128×64×256",
        (4096, 4096, 5120),
        Blocking(4, 5, 128, 64, 256, 4, 2, False),
        591.1,
        710.5,
    ),
    (
        "128×1024×30720, one block",
        (128, 1024, 30720),
        Blocking(1, 24, 128, 64, 256, 1, 4, False),
        75.6,
        83.7,
    ),
    (
        "128×1024×30720, four blocks",
        (128, 1024, 30720),
        Blocking(1, 24, 128, 64, 256, 4, 2, False),
        46.2,
        53.4,
    ),
)


@dataclass(frozen=True)
class Loads:
    """Loads of a matrix to L1 by all 24 cores, which do not use the data.

    Attributes
    ----------
    rows, columns : int
        Size of a tile in elements of FP16; ``columns`` are adjacent in memory.
    tiles : int
        Number of tiles that a core loads.
    missing : float
        The part of them that is not in the cache.
    sharers : int
        Number of cores that load the same tile at a time.
    """

    rows: int
    columns: int
    tiles: int
    missing: float
    sharers: int = 1


#: 12288² elements once or four times, and 6144 × 512 by every core: microseconds of MTE2, those of
#: the loads with 64 × 1024 of the whole core.
LOADS = (
    ("memory, tiles of 64×64", Loads(64, 64, 1536, 1), 283.5),
    ("memory, tiles of 64×256", Loads(64, 256, 384, 1), 214.5),
    ("memory, tiles of 64×1024, four times", Loads(64, 1024, 384, 1), 872.2),
    ("three of four in the cache, 64×1024", Loads(64, 1024, 384, 0.25), 397.8),
    ("one matrix for all cores, 256×64", Loads(256, 64, 192, 1, 24), 240.2),
)

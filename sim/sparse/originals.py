"""The matrices of Zhang 2024, Table 4.1: their names, sizes and published shares."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Original:
    """A matrix of Table 4.1.

    Attributes
    ----------
    group, name : str
        Its place in the SuiteSparse Matrix Collection. The thesis names the matrices by two
        letters; rows and nonzeros identify them. For bundle_adj the number of entries was not
        confirmed.
    rows, nonzeros : int
        As in the table. A symmetric matrix has the nonzeros of one triangle.
    about : str
        What the matrix describes.
    kind : str
        Kind of its pattern; see ``benchmarks.papers.zhang24.standins``.
    maximum, mean : float
        Published shares of the nonzeros that are on chip: at most and on average.
    """

    group: str
    name: str
    rows: int
    nonzeros: int
    about: str
    kind: str
    maximum: float
    mean: float

    @property
    def place(self) -> str:
        """Group and name."""
        return f"{self.group}/{self.name}"


#: The matrices of Zhang 2024, Table 4.1. The table prints 9.4 % for "ad", whose count is 8.4 %.
ORIGINALS: dict[str, Original] = {
    "ca": Original(
        *("SNAP", "ca-AstroPh", 18_772, 198_110, "collaboration network", "power-law"),
        *(0.499, 0.329),
    ),
    "gy": Original(
        *("Oberwolfach", "gyro_m", 17_361, 178_896, "model reduction", "fem"),
        *(0.048, 0.019),
    ),
    "g2": Original(
        *("AMD", "G2_circuit", 150_102, 438_388, "circuit simulation", "circuit"),
        *(0.035, 0.017),
    ),
    "co": Original(
        *("DIMACS10", "coPapersCiteseer", 434_102, 16_036_720, "citation network", "power-law"),
        0.137,
        0.072,
    ),
    "bu": Original(
        *("Mazaheri", "bundle_adj", 513_351, 10_360_701, "computer vision", "bundle"),
        *(0.90, 0.477),
    ),
    "wi": Original(
        *("Gleich", "wikipedia-20070206", 3_566_907, 45_030_389, "links of pages", "directed"),
        0.387,
        0.232,
    ),
    "ad": Original(
        *("DIMACS10", "adaptive", 6_815_744, 13_624_320, "adaptive mesh", "mesh"),
        *(0.084, 0.051),
    ),
    "ro": Original(
        *("DIMACS10", "road_usa", 23_947_347, 28_854_312, "road network", "road"),
        *(0.019, 0.010),
    ),
    "eu": Original(
        *("DIMACS10", "europe_osm", 50_912_018, 54_054_660, "road network", "road"),
        *(0.043, 0.026),
    ),
}

"""Published figures of the Ascend 310 and 910, computed on chips with other constants.

A figure is an outcome that a paper states. Measured times of single instructions, bandwidths and
the launch, which the chip files hold, are no figures; nor is a time whose kernel is not known.

References
----------
Tang 2024, §2.4.2, §3.5 and §4.4. Zhou et al. 2025, §5 and Table 1. Rohwedder 2021, §5.1.
"""

import tempfile
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np

from benchmarks import knn_tiling, selbknn
from benchmarks.cubefx_figures import MERGED, MERGING, NINE, ONE, STEP
from benchmarks.papers.constants.readings import Values, chip_text, chip_with, write_chip
from benchmarks.papers.tang24 import cubefx_times, two_kernels
from benchmarks.papers.tang24.knn_tiling import TilingProblem, divisors, fit_inverse, search
from benchmarks.papers.tang24.selection_costs import heap_seconds
from benchmarks.papers.tang24.tile_times import SimulatedProfile, tile_seconds
from vitruvian.sim.davinci import Chip, load_chip, simulate
from vitruvian.sim.davinci.chip.file import read_chip
from vitruvian.sim.kernels.cubefx import CubeFx
from vitruvian.sim.kernels.cubefx import build as build_cubefx
from vitruvian.sim.kernels.kselection.shape import GROUP, KnnShape
from vitruvian.sim.kernels.search import TilingSearch, guided
from vitruvian.sim.kernels.selbknn.build import largest_tile
from vitruvian.sim.kernels.selbknn.golden import distances
from vitruvian.sim.papers.rohwedder21 import study as pooling
from vitruvian.sim.papers.zhou25 import CASES
from vitruvian.sim.papers.zhou25.published import PUBLISHED, SPEEDUPS
from vitruvian.sim.papers.zhou25.rooflines import case_rows

#: Readings of the kernels that the papers compare, besides those of the chips.
KERNELS = {
    "C": "CORDIC with a vcmp and two vsel for each 128 inputs and iteration",
    "S": "SelB that does not leave early; a launch for the selection",
    "T": "the search in two kernels, neither of which leaves early",
    "M": "masks of all largest pixels",
}

COUNT = cubefx_times.COUNTS["ascend310"][0]
_NINE = tuple(range(1, 10))


@dataclass(frozen=True)
class Figure:
    """A published figure.

    Attributes
    ----------
    key : str
    paper : {"Tang", "Zhou", "Rohwedder"}
    chip : {"310", "910"}
    published : float
    text : str
        Short description of the figure.
    share : bool
        True for a utilisation or a time ratio of a component, or a share of a time or of the peak.
    """

    key: str
    paper: str
    chip: str
    published: float
    text: str
    share: bool = False


def _figures() -> dict[str, Figure]:
    some: list[Figure] = []

    def add(paper: str, chip: str, rows: Mapping[str, tuple[float, str]], share=False) -> None:
        for key, (value, text) in rows.items():
            some.append(Figure(key, paper, chip, value, text, share))

    add(
        "Tang",
        "310",
        {
            "bitonic": (2.01, "bitonic over SelB, mean over k"),
            "heap": (23.93, "heap over SelB, mean over k"),
            "growth.selb": (1.55, "SelB, k = 32 over 1"),
            "growth.bitonic": (2.13, "bitonic, k = 32 over 1"),
            "growth.heap": (3.45, "heap, k = 32 over 1"),
            "softindex": (1.56, "SelB without indexing, mean over k"),
            "softcmp": (1.04, "SelB without vcmp and vsel, mean"),
            "fullload": (2.08, "selection of a tile, all over no work"),
            "select.none": (151.6, "selection of a tile without work, µs"),
            "select.all": (2.08 * 151.6, "the same with all work, µs"),
            "batch.bitonic": (2.53, "bitonic over SelB, mini-batches"),
            "batch.heap": (31.24, "heap over SelB, mini-batches"),
            "fit": (0.97, "R² of k / t"),
            "pruned.8": (0.7280, "tilings pruned, k = 8"),
            "pruned.16": (0.5523, "tilings pruned, k = 16"),
        },
    )
    names = cubefx_times.PUBLISHED["ascend310"]
    add("Tang", "310", {f"cubefx.{m}": (v, f"Cube-fx over {m}, mean") for m, v in names.items()})
    one, nine = ONE["ascend310"], NINE["ascend310"]
    add("Tang", "310", {f"one.{m}": (v, f"{m} over Cube-fx, 1 function") for m, v in one.items()})
    add(
        "Tang", "310", {f"nine.{m}": (v, f"Cube-fx over {m}, 9 functions") for m, v in nine.items()}
    )
    mean, largest, four = MERGING["ascend310"]
    add(
        "Tang",
        "310",
        {
            "crossover": (cubefx_times.CROSSOVER["ascend310"], "functions until Cube-fx wins"),
            "seventeen": (STEP["ascend310"], "Cube-fx, 17 functions over 16"),
            "merged.mean": (mean, "merged matrices, mean gain"),
            "merged.largest": (largest, "merged matrices, largest gain"),
            "merged.smallest": (1.0, "merged matrices, smallest gain"),
            "merged.four": (four, "merged matrices, gain over t = 4"),
        },
    )
    add(
        "Tang",
        "310",
        {
            "cubefx.vector": (0.5638, "Cube-fx, busy share of the vector unit"),
            "matmul.mean": (0.2364, "matrix products, mean share of the peak"),
            "matmul.largest": (0.3878, "matrix products, largest share"),
        },
        True,
    )
    for name, case in CASES.items():
        chip = case.chip.removeprefix("ascend")
        add("Zhou", chip, {f"{name}.speedup": (SPEEDUPS[name], f"{name}, speedup")})
        for step, stated in PUBLISHED.get(name, {}).items():
            for letter, value in (("U", stated.utilisation), ("R", stated.time_ratio)):
                if value is not None:
                    text = f"{name}, {step}, {letter}"
                    add("Zhou", chip, {f"{name}.{step}.{letter}": (value, text)}, True)
    rows = {f"pool.{n}": (v, f"max pooling, {n}") for n, v in pooling.PUBLISHED.items()}
    add("Rohwedder", "910", rows)
    return {figure.key: figure for figure in some}


#: All figures by key.
FIGURES: Mapping[str, Figure] = _figures()


@dataclass(frozen=True)
class Setting:
    """The constants and kernels under which figures are computed.

    Attributes
    ----------
    readings : frozenset of str
        Keys of ``READINGS`` and of ``KERNELS``.
    changes : mapping of str to Values, optional
        Further constants by the name of a chip.
    """

    readings: frozenset[str]
    changes: Mapping[str, Values] | None = None

    def chip(self, name: str) -> Chip:
        """Return a chip with the constants."""
        return chip_with(name, self.readings, self.changes)


def _searches(setting: Setting) -> dict[str, float]:
    chip, some = setting.chip("ascend310"), knn_tiling.NEIGHBOURS
    if "T" in setting.readings:
        return _two_kernels(chip)
    rows = knn_tiling.single_rows(chip)
    times = {m: np.array([rows[k][m] for k in some]) for m in ("selb", "bitonic", "heap")}
    soft = {
        m: np.array([selbknn.searched_s(m, k, chip=chip) for k in some])
        for m in ("selb", "selb-soft-index", "selb-soft-compare")
    }
    return _ratios(times, soft)


def _two_kernels(chip: Chip) -> dict[str, float]:
    x, y = knn_tiling.points(32, 4096)
    values = distances(x, y)
    times: dict[str, list[float]] = {}
    for k in knn_tiling.NEIGHBOURS:
        shape = KnnShape(32, 4096, knn_tiling.FEATURES, k)
        first = two_kernels.distances_seconds(shape, chip)
        for m in (*two_kernels.STAYING, "bitonic"):
            second = two_kernels.selection_seconds(shape, values, m, chip)
            times.setdefault(m, []).append(first + second)
        heap = float(chip.launch_s) + heap_seconds(values[:GROUP], k, chip)
        times.setdefault("heap", []).append(first + heap)
    arrays = {m: np.array(seconds) for m, seconds in times.items()}
    return _ratios(arrays, arrays)


def _ratios(times: Mapping[str, np.ndarray], soft: Mapping[str, np.ndarray]) -> dict[str, float]:
    found = {m: float((times[m] / times["selb"]).mean()) for m in ("bitonic", "heap")}
    found |= {f"growth.{m}": float(times[m][-1] / times[m][0]) for m in ("selb", "bitonic", "heap")}
    index, compare = (
        soft["selb-soft-index"] / soft["selb"],
        soft["selb-soft-compare"] / soft["selb"],
    )
    return found | {"softindex": float(index.mean()), "softcmp": float(compare.mean())}


def _selection(setting: Setting) -> dict[str, float]:
    chip, stay = setting.chip("ascend310"), "S" in setting.readings
    method = "selb-stay" if stay else "selb"
    none, every = selbknn.updated_s(method, 16, (0, 16), chip)
    extra = 0.0
    if stay:
        # The kernel of the selection has a launch of its own, and loads the distances.
        nbytes = 2 * GROUP * selbknn.TILE
        bus = chip.buses["interconnect"]
        extra = float(chip.launch_s) + nbytes / (float(bus.total(2)) / 2)
    r2 = []
    for m, n, k in knn_tiling.EXAMPLES:
        values = np.random.default_rng(k).normal(size=(m, 10 * n)).astype(np.float16)
        parts = [values[:, at : at + n] for at in range(0, 10 * n, n)]
        r2.append(fit_inverse(tile_seconds(parts, k, chip, method=method)).r2)
    none, every = none + extra, every + extra
    found = {"fullload": every / none, "select.none": 1e6 * none, "select.all": 1e6 * every}
    return found | {"fit": float(np.mean(r2))}


def _pruned(setting: Setting) -> dict[str, float]:
    chip = setting.chip("ascend310")
    method = "selb-stay" if "S" in setting.readings else "selb"
    memory = sum(chip.kind().buffers[name].nbytes for name in ("L1", "UB"))
    found = {}
    for k in (8, 16):
        limit = largest_tile(KnnShape(GROUP, 204800, knn_tiling.FEATURES, k), chip)
        sizes = divisors(1280, 16), divisors(204800, 128)
        some = TilingProblem(1280, 204800, knn_tiling.FEATURES, k, memory, *sizes, limit)
        profile = SimulatedProfile(chip, knn_tiling.FEATURES, k, method)
        found[f"pruned.{k}"] = search(some, profile).pruned_share
    return found


@cache
def _batch_rows(text: str) -> dict[int, dict[str, float]]:
    return knn_tiling.batch_rows(read_chip(text))


def _batches(setting: Setting) -> dict[str, float]:
    rows = _batch_rows(chip_text("ascend310", setting.readings, setting.changes))
    base = "selb-stay" if "S" in setting.readings else "selb"
    return {
        f"batch.{m}": float(np.mean([row[m] / row[base] for row in rows.values()]))
        for m in ("bitonic", "heap")
    }


def _cubefx(setting: Setting) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        chip = str(write_chip(Path(folder), "ascend310", setting.readings, setting.changes))
        seconds = partial(cubefx_times.seconds, chip)
        cordic = "cordic-compare" if "C" in setting.readings else "cordic"
        methods = {m: cordic if m == "cordic" else m for m in cubefx_times.METHODS}
        cube = np.array([seconds("cube", j, COUNT) for j in _NINE])
        found = {}
        for name, method in methods.items():
            ratio = np.array([seconds(method, j, COUNT) for j in _NINE]) / cube
            found[f"cubefx.{name}"] = float(ratio.mean())
            if name in ONE["ascend310"]:
                found |= {f"one.{name}": float(1 / ratio[0]), f"nine.{name}": float(ratio[-1])}
        found["crossover"] = max(cubefx_times.crossover(chip, COUNT), 1)
        found["seventeen"] = seconds("cube", 17, COUNT) / seconds("cube", 16, COUNT)
        best, four = [], []
        for order in cubefx_times.ENHANCED["ascend310"]:
            best.append(cubefx_times.gains(chip, order, MERGED, None, COUNT))
            four.append(cubefx_times.gains(chip, order, MERGED, 4, COUNT))
    gains, fixed = np.concatenate(best), np.concatenate(four)
    found |= {
        "merged.mean": float(gains.mean()),
        "merged.largest": float(gains.max()),
        "merged.smallest": float(gains.min()),
        "merged.four": float((gains / fixed).mean()),
    }
    table = np.ones((16, cubefx_times.ORDER))
    program = build_cubefx(
        COUNT, table, setting.chip("ascend310"), options=CubeFx(merged=1)
    ).program
    report = simulate(program, cube=None, checks=False)
    busy = sum(use.busy for use in report.units() if use.unit.name == "V")
    return found | {"cubefx.vector": busy / report.total_s}


def _products(setting: Setting) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        chip = write_chip(Path(folder), "ascend310", setting.readings, setting.changes)
        peak, shares = float(load_chip(chip).peak_operations()), []
        for width in (128, 256, 512, 1024):
            for ratio in (2, 4, 6):
                problem = TilingSearch(width, width, ratio * width, chip=str(chip))
                best = guided(problem).best[0]
                shares.append(2 * width**3 * ratio / best.seconds / peak)
    return {"matmul.mean": float(np.mean(shares)), "matmul.largest": max(shares)}


def _cases(setting: Setting, chip: str) -> dict[str, float]:
    found = {}
    for name, case in CASES.items():
        if case.chip != chip:
            continue
        rows = case_rows(case, setting.chip(chip))
        times = [row.analysis.counters.total_s for row in rows]
        found[f"{name}.speedup"] = times[0] / times[-1]
        for row in rows:
            key = f"{name}.{row.step.name}"
            found[f"{key}.U"] = row.metric.utilisation
            found[f"{key}.R"] = row.analysis.longest.time_ratio
            found[f"{key}.us"] = row.analysis.counters.total_s * 1e6
    return found


def classes(setting: Setting, names: Collection[str] = tuple(CASES)) -> dict[str, list[str]]:
    """Return the classes of the steps of some case studies, each on its chip."""
    found = {}
    for name in names:
        case = CASES[name]
        rows = case_rows(case, setting.chip(case.chip))
        found[name] = [row.analysis.label for row in rows]
    return found


def _poolings(setting: Setting) -> dict[str, float]:
    ties = "all" if "M" in setting.readings else "first"
    times: dict[tuple[str, str], int] = {}
    for run in pooling.largest(setting.chip("ascend910"), ties):
        times[run.figure, run.method] = run.cycles
    return {
        f"pool.{figure}": times[figure, "direct"] / times[figure, "im2col"]
        for figure in pooling.FIGURES
    }


@dataclass(frozen=True)
class Group:
    """Figures that are computed together.

    Attributes
    ----------
    function : callable
        Returns them for a setting.
    chip : str
        The chip on which they are computed.
    kernels : str
        The readings of kernels that change them.
    """

    function: Callable[[Setting], dict[str, float]]
    chip: str
    kernels: str = ""


#: Parts of the figures by name.
GROUPS: Mapping[str, Group] = {
    "searches": Group(_searches, "ascend310", "T"),
    "selection": Group(_selection, "ascend310", "S"),
    "pruned": Group(_pruned, "ascend310", "S"),
    "cubefx": Group(_cubefx, "ascend310", "C"),
    "products": Group(_products, "ascend310"),
    "cases 310": Group(partial(_cases, chip="ascend310"), "ascend310"),
    "cases 910": Group(partial(_cases, chip="ascend910"), "ascend910"),
    "pooling": Group(_poolings, "ascend910", "M"),
    "batches": Group(_batches, "ascend310", "S"),
}

#: Results by group, text of the chip file and readings of the kernels.
_known: dict[tuple[str, str, str], dict[str, float]] = {}


def compute(setting: Setting, groups: Collection[str]) -> dict[str, float]:
    """Return the figures of some groups by key."""
    found: dict[str, float] = {}
    for name in groups:
        group = GROUPS[name]
        text = chip_text(group.chip, setting.readings, setting.changes)
        key = name, text, "".join(k for k in group.kernels if k in setting.readings)
        if key not in _known:
            _known[key] = group.function(setting)
        found |= _known[key]
    return {key: value for key, value in found.items() if key in FIGURES or key.endswith(".us")}

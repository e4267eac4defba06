"""Times of the search for nearest neighbours beside those that Tang 2024, §3.5, publishes.

python benchmarks/selbknn.py              # the tables of docs/results/selbknn.md, some minutes
python benchmarks/selbknn.py --reach      # 1280 × 204800 × 128 on whole arrays, some minutes
"""

import argparse
import time
from collections.abc import Sequence

import numpy as np

from vitruvian.sim.davinci import Chip, load_chip, simulate
from vitruvian.sim.kernels.kselection.shape import KnnShape
from vitruvian.sim.kernels.selbknn import fast_golden
from vitruvian.sim.kernels.selbknn.build import build
from vitruvian.sim.kernels.selbknn.golden import VARIANTS, distances, in_order
from vitruvian.sim.kernels.selbknn.operands import prepared, random_points

CHIP = load_chip("ascend310")

#: The numbers of neighbours whose results are averaged. The thesis does not list its own.
NEIGHBOURS = (1, 2, 4, 8, 16, 32)

#: Training points of a tile, and features, of Tang 2024, §3.5.
TILE, FEATURES = 4096, 128


def searched_s(
    method: str, k: int, train: int = TILE, queries: int = 32, chip: Chip = CHIP
) -> float:
    """Return the seconds of a search for random directions on both cores."""
    shape = KnnShape(queries, train, FEATURES, k)
    operands = prepared(
        random_points(queries, FEATURES, 1), random_points(train, FEATURES, 2), shape.metric
    )
    program = build(shape, chip, operands, method=method, data=False)
    return simulate(program, cube=None, checks=False).total_s


def selected_s(method: str, k: int, distances: Sequence[np.ndarray], chip: Chip = CHIP) -> float:
    """Return the seconds of a search in tiles of given distances, the same for 32 queries."""
    train = np.zeros((TILE * len(distances), 16), np.float16)
    train[:, 0] = np.concatenate(distances)
    query = np.zeros((32, 16), np.float16)
    query[:, 0] = 1
    shape = KnnShape(32, len(train), 16, k)
    program = build(shape, chip, (query, train), method=method, tile=TILE, data=False)
    return simulate(program, cube=None, checks=False).total_s


def row(name: str, published: float, ours: float) -> None:
    """Print a line of the table."""
    print(f"| {name} | {published:.2f} | {ours:.2f} | {ours / published - 1:+.0%} |", flush=True)


def single() -> None:
    """Print the times of 32 × 4096 × 128, and their rows of §3.5.1."""
    times = {m: np.array([searched_s(m, k) for k in NEIGHBOURS]) for m in VARIANTS}
    for method, seconds in times.items():
        shown = " | ".join(f"{s * 1e6:,.1f}" for s in seconds)
        print(f"| `{method}` | {shown} |", flush=True)
    selb = times["selb"]
    for method in ("selb", "selb-stay"):
        row(f"selbknn.kgrowth, {method}", 1.55, times[method][-1] / times[method][0])
    row("selbknn.softindex", 1.56, (times["selb-soft-index"] / selb).mean())
    row("selbknn.softcmp", 1.04, (times["selb-soft-compare"] / selb).mean())


def updated_s(method: str, k: int, updates: Sequence[int], chip: Chip = CHIP) -> list[float]:
    """Return the seconds of a tile that holds some numbers of the k nearest points."""
    first = 1 + np.arange(TILE).astype(np.float16) / np.float16(TILE)
    alone = selected_s(method, k, [first], chip)
    seconds = []
    for smaller in updates:
        second = np.full(TILE, 4, np.float16)
        second[:smaller] = 0.5
        seconds.append(selected_s(method, k, [first, second], chip) - alone)
    return seconds


def early_exit() -> None:
    """Print the times of a tile from none to all of the workload (§3.5.1, Fig. 3.4)."""
    k = 16
    for method in ("selb", "selb-stay"):
        seconds = updated_s(method, k, (0, 4, 8, 12, 16))
        shown = ", ".join(f"{s * 1e6:.1f}" for s in seconds)
        print(f"{method}: µs of a tile with 0, 4, 8, 12, 16 updates: {shown}")
        row(f"selbknn.fullload, {method}", 2.08, seconds[-1] / seconds[0])


def reach() -> None:
    """Search 1280 × 204800 × 128 on whole arrays, and compare with a partial sort by NumPy."""
    query, train = random_points(1280, FEATURES, 1), random_points(204800, FEATURES, 2)
    operands = prepared(query, train, "cosine-product")
    start = time.perf_counter()
    index, products = in_order(fast_golden.knn(*operands, 16, tile=TILE))
    seconds = time.perf_counter() - start
    # The same FP16 products, in other parts of the matrix.
    wrong = 0
    for at in range(0, 1280, 160):
        values = distances(operands[0][at : at + 160], operands[1])
        part = np.sort(np.partition(values, 16, axis=1)[:, :16], axis=1)
        wrong += int((part != products[at : at + 160]).sum())
        taken = np.take_along_axis(values, index[at : at + 160], axis=1)
        wrong += int((taken != products[at : at + 160]).sum())
    print(
        f"1280 × 204800 × 128, k 16: {seconds:.1f} s; {wrong} of 40,960 numbers differ from "
        "NumPy's partial sort"
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reach", action="store_true", help="Run the large search.")
    if parser.parse_args().reach:
        reach()
        return
    single()
    early_exit()


if __name__ == "__main__":
    main()

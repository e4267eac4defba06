"""Times of the search for nearest neighbours beside those that Tang 2024, §3.5, publishes.

python benchmarks/selbknn.py              # the tables of docs/results/selbknn.md, some minutes
python benchmarks/selbknn.py --reach      # 1280 × 204800 × 128 on whole arrays, some minutes
"""

import argparse
import time
from collections.abc import Sequence

import numpy as np

from vitruvian.sim.davinci import load_chip, simulate
from vitruvian.sim.kernels.kselection.shape import KnnShape
from vitruvian.sim.kernels.selbknn import whole
from vitruvian.sim.kernels.selbknn.build import build
from vitruvian.sim.kernels.selbknn.golden import in_order
from vitruvian.sim.kernels.selbknn.operands import prepared, random_points

CHIP = load_chip("ascend310")

#: The numbers of neighbours whose results are averaged. The thesis does not list its own.
NEIGHBOURS = (1, 2, 4, 8, 16, 32)

#: Training points of a tile, and features, of Tang 2024, §3.5.
TILE, FEATURES = 4096, 128


def searched_s(method: str, k: int, train: int = TILE, queries: int = 32) -> float:
    """Return the seconds of a search for random directions on both cores."""
    shape = KnnShape(queries, train, FEATURES, k)
    operands = prepared(
        random_points(queries, FEATURES, 1), random_points(train, FEATURES, 2), shape.metric
    )
    program = build(shape, CHIP, operands, method=method, data=False)
    return simulate(program, cube=None, checks=False).total_s


def selected_s(method: str, k: int, distances: Sequence[np.ndarray]) -> float:
    """Return the seconds of a search in tiles of given distances, the same for 32 queries."""
    train = np.zeros((TILE * len(distances), 16), np.float16)
    train[:, 0] = np.concatenate(distances)
    query = np.zeros((32, 16), np.float16)
    query[:, 0] = 1
    shape = KnnShape(32, len(train), 16, k)
    program = build(shape, CHIP, (query, train), method=method, tile=TILE, data=False)
    return simulate(program, cube=None, checks=False).total_s


def row(name: str, published: float, ours: float) -> None:
    """Print a line of the table."""
    print(f"| {name} | {published:.2f} | {ours:.2f} | {ours / published - 1:+.0%} |", flush=True)


def single() -> None:
    """Print the times of 32 × 4096 × 128, and the rows of §3.5.1."""
    methods = (
        "selb",
        "selb-soft-index",
        "selb-soft-compare",
        "selb-soft",
        "selb-stay",
        "bitonic",
        "heap",
    )
    times = {m: np.array([searched_s(m, k) for k in NEIGHBOURS]) for m in methods}
    for method, seconds in times.items():
        print(
            f"| `{method}` | " + " | ".join(f"{s * 1e6:,.1f}" for s in seconds) + " |", flush=True
        )
    selb = times["selb"]
    row("selbknn.bitonic", 2.01, (times["bitonic"] / selb).mean())
    row("selbknn.heap", 23.93, (times["heap"] / selb).mean())
    for method, published in (
        ("selb", 1.55),
        ("selb-stay", 1.55),
        ("bitonic", 2.13),
        ("heap", 3.45),
    ):
        row(f"selbknn.kgrowth, {method}", published, times[method][-1] / times[method][0])
    row("selbknn.softindex", 1.56, (times["selb-soft-index"] / selb).mean())
    row("selbknn.softcmp", 1.04, (times["selb-soft-compare"] / selb).mean())


def early_exit() -> None:
    """Print the times of a tile from none to all of the workload (§3.5.1, Fig. 3.4)."""
    k = 16
    first = 1 + np.arange(TILE).astype(np.float16) / np.float16(TILE)
    for method in ("selb", "selb-stay"):
        alone = selected_s(method, k, [first])
        seconds = []
        for smaller in (0, 4, 8, 12, 16):
            second = np.full(TILE, 4, np.float16)
            second[:smaller] = 0.5
            seconds.append(selected_s(method, k, [first, second]) - alone)
        shown = ", ".join(f"{s * 1e6:.1f}" for s in seconds)
        print(f"{method}: µs of a tile with 0, 4, 8, 12, 16 updates: {shown}")
        row(f"selbknn.fullload, {method}", 2.08, seconds[-1] / seconds[0])


def mini_batches() -> None:
    """Print the times of 1280 × 204800 × 128 and the rows of §3.5.2.

    Two groups of queries, one on each core, are searched; the others take the same time. A tile of
    the baselines takes the same time as the tile before, so a part of the training points is
    simulated and the rest follows from the difference of two sizes.
    """
    selb, bitonic, heap = [], [], []
    for k in NEIGHBOURS:
        selb.append(40 * searched_s("selb", k, 204800))
        for times, method, parts in (
            (bitonic, "bitonic", (12288, 24576)),
            (heap, "heap", (4096, 8192)),
        ):
            short, long = (searched_s(method, k, n) for n in parts)
            slope = (long - short) / (parts[1] - parts[0])
            times.append(40 * (long + slope * (204800 - parts[1])))
        print(
            f"k {k}: selb {selb[-1] * 1e3:.1f} ms, bitonic {bitonic[-1] * 1e3:.1f} ms, "
            f"heap {heap[-1] * 1e3:.1f} ms",
            flush=True,
        )
    row("selbknn.minibatch", 2.53, np.mean(np.divide(bitonic, selb)))
    row("selbknn.minibatch, heap", 31.24, np.mean(np.divide(heap, selb)))


def reach() -> None:
    """Search 1280 × 204800 × 128 on whole arrays, and compare with a partial sort by NumPy."""
    query, train = random_points(1280, FEATURES, 1), random_points(204800, FEATURES, 2)
    operands = prepared(query, train, "cosine")
    start = time.perf_counter()
    index, products = in_order(whole.knn(*operands, 16, tile=TILE))
    seconds = time.perf_counter() - start
    # The same FP16 products, in other parts of the matrix.
    from vitruvian.sim.kernels.selbknn.golden import distances

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
    mini_batches()


if __name__ == "__main__":
    main()

"""Use of the Cube on matrix products: beats of the matrix unit against whole cycles of the core.

    python benchmarks/core_matmul.py small
    python benchmarks/core_matmul.py plain --size 128x128x128 --tiling 2,2,2,2

The kernel is the project's ``matmul`` with double buffering, on the buffers of the core. M·K·N
products over those of a tile are the beats that no core of this size can do without.
"""

import argparse
from dataclasses import replace

from vitruvian.sim.davinci import Chip, load_chip
from vitruvian.sim.davinci.machine_code.core import core_product, run_on_core
from vitruvian.sim.davinci.semantics import Functional
from vitruvian.sim.kernels import KERNELS
from vitruvian.sim.rtl.core import core_config, core_names

#: Tiles of M, K and N, and control flows, unless they are given: 64 × 64 × 64 of 256.
_TILING = (4, 4, 4, 2)


def chip_with(core: str) -> Chip:
    """Return the description of a chip whose cores have the buffers of a core in hardware."""
    chip, sizes = load_chip("ascend310"), core_config(core).buffers
    kinds = {}
    for name, kind in chip.kinds.items():
        buffers = {
            key: replace(buffer, nbytes=sizes.get(key, buffer.nbytes))
            for key, buffer in kind.buffers.items()
        }
        kinds[name] = replace(kind, buffers=buffers)
    return replace(chip, kinds=kinds)


def measure(core: str, size: tuple[int, ...], tiling: tuple[int, ...], latency: int) -> None:
    """Print the cycles of a product, its units, and the use of the Cube."""
    program = KERNELS["matmul"].build(size, chip=chip_with(core), cores=1, tiling=tiling).program
    done = run_on_core(program, core, latency=latency)
    functional = Functional(program, core_product(core))
    functional.run()
    wrong = sum(done.differing(dict(functional.tensors())).values())
    tile = core_config(core).tile
    m, k, n = size
    beats = -(-m // tile.m) * -(-k // tile.k) * -(-n // tile.n)
    run = done.run
    print(f"{core}, {m}×{k}×{n}, tiles {tiling}, memory after {latency} cycles")
    print(f"  cycles {run.cycles:,}; beats {beats:,}; use of the Cube {beats / run.cycles:.1%}")
    busy = ", ".join(f"{unit} {count:,}" for unit, count in run.busy.items())
    print(f"  busy: {busy}; of M {beats / run.busy['M']:.1%} are beats")
    print(f"  UB: {run.conflicts:,} cycles with a conflict; {wrong} bytes differ")


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.replace("x", ",").split(","))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("core", choices=core_names(), help="Run on this core.")
    parser.add_argument(
        "--size",
        type=_numbers,
        default=(256, 256, 256),
        metavar="MxKxN",
        help="Multiply matrices of these sizes (default: 256x256x256).",
    )
    parser.add_argument(
        "--tiling",
        type=_numbers,
        default=_TILING,
        metavar="M,K,N,FLOWS",
        help="Cut M, K and N into so many tiles, in so many control flows (default: 4,4,4,2).",
    )
    parser.add_argument(
        "--latency",
        type=int,
        default=1,
        metavar="CYCLES",
        help="Answer reads of global memory after so many cycles (default: 1).",
    )
    options = parser.parse_args()
    measure(options.core, options.size, options.tiling, options.latency)

"""Run random illegal programs on the compiled RTL of a core, and count how they end.

``python benchmarks/core_illegal.py tiny --count 500`` runs 500 programs with one illegal
instruction each, whose fault, unit, operation, word and memory must be right, and 500 with random
wrong bits, which may end in any way but must end. Exit code 1 if one of them does not.
"""

import argparse
import sys
from collections import Counter

from vitruvian.sim.davinci.machine_code.illegal_programs import (
    end_of,
    illegal_program,
    wrong_answers,
)
from vitruvian.sim.rtl.core import core_names


def illegal(core: str, seeds: range) -> int:
    """Run programs with one illegal instruction; return of how many the core says a wrong thing."""
    kinds: Counter[str] = Counter()
    wrong = 0
    for seed in seeds:
        program = illegal_program(seed, core)
        latency, noise = (1 + seed % 40, seed) if seed % 2 else (1, 0)
        kinds[program.kind] += 1
        if texts := list(wrong_answers(program, core, latency=latency, noise=noise)):
            wrong += 1
            print(f"{seed} ({program.kind}): {'; '.join(texts)}")
    counts = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
    print(f"{core}: {len(seeds)} illegal programs ({counts}): {wrong} wrong answers")
    return wrong


def damaged(core: str, seeds: range) -> int:
    """Run programs with wrong bits; return how many of them hang."""
    ends = {seed: end_of(seed, core) for seed in seeds}
    counts = Counter(ends.values())
    hangs = [seed for seed, end in ends.items() if end == "HANG"]
    told = ", ".join(f"{end} {count}" for end, count in sorted(counts.items()))
    print(f"{core}: {len(seeds)} programs with wrong bits ({told}); hangs: {hangs or 'none'}")
    return len(hangs)


def main() -> int:
    """Run what the arguments name."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("core", choices=core_names(), help="Run on this core.")
    parser.add_argument(
        "--count", type=int, default=500, metavar="N", help="Run N of each kind (default: 500)."
    )
    parser.add_argument(
        "--first", type=int, default=0, metavar="SEED", help="Begin at this seed (default: 0)."
    )
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.count)
    return int(bool(illegal(options.core, seeds) + damaged(options.core, seeds)))


if __name__ == "__main__":
    sys.exit(main())

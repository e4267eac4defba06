"""The draw of mutants: at random, and from each file in proportion to its mutants."""

import random
from collections import defaultdict
from collections.abc import Sequence

from .schemata import Mutant

#: Mutants that are drawn from a file even if its share is smaller.
LEAST = 3


def shares(sizes: dict[str, int], count: int) -> dict[str, int]:
    """Return how many of ``count`` mutants are drawn from each file.

    Parameters
    ----------
    sizes : dict of str to int
        Mutants of each file.
    """
    total = sum(sizes.values())
    if count >= total:
        return dict(sizes)
    least = {file: min(LEAST, size) for file, size in sizes.items()}
    if sum(least.values()) > count:
        least = dict.fromkeys(sizes, 0)
    exact = {file: count * size / total for file, size in sizes.items()}
    chosen = {file: max(least[file], int(exact[file])) for file in sizes}
    while sum(chosen.values()) != count:
        # Add where most is missing, or take away where most is too much, but not below the least.
        step = 1 if sum(chosen.values()) < count else -1
        may = [f for f in sizes if least[f] <= chosen[f] + step <= sizes[f]]
        chosen[max(may, key=lambda f: (step * (exact[f] - chosen[f]), f))] += step
    return chosen


def draw(mutants: Sequence[Mutant], count: int, seed: int) -> list[tuple[Mutant, int]]:
    """Return drawn mutants, each with the bit that it inverts if it inverts one."""
    by_file: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        by_file[mutant.site.file].append(mutant)
    generator = random.Random(seed)
    wanted = shares({file: len(own) for file, own in by_file.items()}, count)
    drawn = []
    for file in sorted(by_file):
        for mutant in generator.sample(by_file[file], wanted[file]):
            drawn.append((mutant, generator.randrange(mutant.width)))
    return drawn

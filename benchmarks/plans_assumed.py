"""How often an assumed plan is right: each recorded kernel against the nearest other call.

    python benchmarks/plans_assumed.py [--every 10]

``vitruvian.plans.find(call, assume=True)`` gives a call that was not recorded the slices of the
nearest one that was. Here every call with a recorded kernel is left out in turn, with all calls of
its shape, and its slices are compared with those of the nearest that is left.
"""

import argparse
from collections import Counter

from vitruvian.golden.plans.derived import shapes
from vitruvian.golden.plans.search import nearest, slices_of


def main() -> None:
    """Print the share of right plans by operation and format."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--every", type=int, default=10, help="compare one call in so many")
    every = parser.parse_args().every
    calls: Counter[str] = Counter()
    right: Counter[str] = Counter()
    single: Counter[str] = Counter()
    for call, slices in list(shapes().items())[::every]:
        own = call.m, call.k, call.n
        near = nearest(call, leave=lambda c, own=own: (c.m, c.k, c.n) == own)
        for name in (f"{call.op} {call.a}", "all"):
            calls[name] += 1
            right[name] += slices_of(near) == slices
            single[name] += slices == "1"
    print("calls, of them right, and in one slice:")
    for name, count in calls.items():
        print(f"{name:12} {count:5} {right[name] / count:6.1%} {single[name] / count:6.1%}")


if __name__ == "__main__":
    main()

"""Times of every instruction of a program: the compiled engine and what it says.

`run` gives exactly the times of `sim.davinci.timing.reference.run_reference`, some hundred times as
fast.
"""

from dataclasses import dataclass

import numpy as np

from vitruvian.sim.davinci.timing import engine_compiled
from vitruvian.sim.davinci.timing.compiling import fitting
from vitruvian.sim.davinci.timing.deadlock import Deadlock, explain
from vitruvian.sim.davinci.timing.lowering import Lowered, Stream

__all__ = ["Times", "run"]


@dataclass(frozen=True, eq=False)
class Times:
    """When each instruction was handed out, began and ended, in attoseconds.

    Attributes
    ----------
    start, end, issued : (n,) ndarray of int64
        A unit begins a wait when it comes to it, and ends it when the flag is there. −1 if it
        never did.
    """

    start: np.ndarray
    end: np.ndarray
    issued: np.ndarray

    @property
    def complete(self) -> bool:
        """Whether every instruction has ended."""
        return bool((self.end >= 0).all())

    @property
    def total(self) -> int:
        """When the last instruction ended; 0 of an empty program."""
        return int(self.end.max(initial=0))


def run(
    low: Lowered, streams: list[Stream] | None = None, *, block_bytes: int = 0, check: bool = True
) -> Times:
    """Run a lowered program.

    Parameters
    ----------
    low : Lowered
    streams : list of Stream, optional
        The instructions, for a message about a deadlock.
    block_bytes : int
        0 to share a bus anew whenever a transfer begins or ends; else the grain of its arbitration:
        a transfer's share is found at the beginning of each block and holds until its end.
    check : bool
        Raise if not every instruction ends.

    Raises
    ------
    Deadlock
        If the program stands still; the message has the cycle of waits.
    ValueError
        If the program could take 4.6 s or more (2⁶² attoseconds, half of the range of int64), or
        ``block_bytes`` is not an integer, 0 or more.
    """
    if not isinstance(block_bytes, int) or block_bytes < 0:
        raise ValueError(f"block_bytes must be an integer, 0 or more, not {block_bytes!r}")
    # Everything one after the other. A bus never does less for many than for one, but a share that
    # holds for a block can be the smallest there is.
    crowd = 3 * max(len(low.begin), 1) if block_bytes else 1
    bound = float(low.begin.max(initial=0)) + float(low.dispatch) * len(low)
    bound += low.init.sum(dtype=float) + low.lag.sum(dtype=float)
    bound += crowd * low.data.sum(dtype=float)
    if bound > 2.0**62:
        raise ValueError(f"times must stay below 4.6 s, not reach up to {bound / 1e18:.3g} s")
    start, end, issued = fitting(engine_compiled.run, len(low))(
        low.first,
        low.unit,
        low.kind,
        low.init,
        low.data,
        low.bus,
        low.rate,
        low.need_first,
        low.need,
        low.lag,
        low.begin,
        low.totals,
        low.dispatch,
        block_bytes,
    )
    times = Times(start, end, issued)
    if check and not times.complete:
        raise Deadlock(explain(low, start, end, issued, streams))
    return times

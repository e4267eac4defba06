"""The event engine: the times of every instruction of a program.

``run`` returns exactly the times of ``sim.davinci.timing.reference.run_reference`` and is about a
hundred times as fast.
"""

from dataclasses import dataclass

import numpy as np

from vitruvian.common.compiling import fitting
from vitruvian.sim.davinci.timing import engine_compiled
from vitruvian.sim.davinci.timing.deadlock import Deadlock, explain
from vitruvian.sim.davinci.timing.engine_program import Instructions, state_before
from vitruvian.sim.davinci.timing.lowering import CoreStream, Lowered
from vitruvian.sim.davinci.timing.queues_compiled import gang_lists, queues
from vitruvian.sim.davinci.timing.words import NO_WORDS


@dataclass(frozen=True, eq=False)
class EngineTimes:
    """The times at which each instruction was issued, started and ended, in attoseconds.

    Attributes
    ----------
    start, end, issued : (n,) ndarray of int64
        −1 if the instruction was never started, ended or issued. A wait starts when its unit
        reaches it and ends when the flag is set. At its end an instruction leaves its unit.
    drained : (n,) ndarray of int64
        The time at which the results of each instruction are there, −1 if it never ended.
    finished : int
        The attosecond at which the program is over for the unit that dispatches it.
    """

    start: np.ndarray
    end: np.ndarray
    issued: np.ndarray
    drained: np.ndarray
    finished: int = 0

    @property
    def complete(self) -> bool:
        """True if every instruction has ended."""
        return bool((self.end >= 0).all())

    @property
    def total(self) -> int:
        """The attosecond at which all instructions have ended and drained; 0 if there are none."""
        return max(int(self.drained.max(initial=0)), self.finished)


def run(
    lowered: Lowered,
    streams: list[CoreStream] | None = None,
    *,
    block_bytes: int = 0,
    check: bool = True,
) -> EngineTimes:
    """Run a lowered program.

    Parameters
    ----------
    streams : list of CoreStream, optional
        The instructions, which the message of a ``Deadlock`` quotes.
    block_bytes : int
        The granularity of bus arbitration. If 0, the bus is shared anew whenever a transfer starts
        or ends. Otherwise a transfer is cut into blocks of this size, and the share that it gets
        at the start of a block holds until the end of that block.
    check : bool
        If True, raise ``Deadlock`` unless every instruction ends.

    Returns
    -------
    EngineTimes

    Raises
    ------
    Deadlock
        If the program stands still; the message contains the cycle of waits.
    ValueError
        If the program could take 4.6 s or more (2⁶² attoseconds, half of the range of int64), or
        if ``block_bytes`` is not a non-negative integer.
    """
    if not isinstance(block_bytes, int) or block_bytes < 0:
        raise ValueError(f"block_bytes must be an integer, 0 or more, not {block_bytes!r}")
    # An upper bound on the end, so that sums in int64 cannot overflow: the time that the program
    # takes if nothing overlaps. The total of a bus does not fall with the number of transfers, so
    # sharing costs nothing here; but a share that is fixed for a block may stay at its smallest,
    # which is that of three transfers on every core.
    slowdown = 3 * max(len(lowered.begin), 1) if block_bytes else 1
    bound = float(lowered.begin.max(initial=0)) + float(lowered.dispatch) * len(lowered)
    bound += lowered.init.sum(dtype=float) + lowered.lag.sum(dtype=float)
    bound += slowdown * lowered.data.sum(dtype=float) + lowered.drain.sum(dtype=float)
    bound += float(lowered.handover) * len(lowered.begin)
    if lowered.words is not None:
        bound += lowered.words.longest()
    if bound > 2.0**62:
        raise ValueError(f"times must stay below 4.6 s, not reach up to {bound / 1e18:.3g} s")
    words = lowered.words or NO_WORDS
    # A short program runs as plain Python, because Numba takes longer to load than it saves.
    queue_first, order, wake_first, wake = fitting(queues, len(lowered))(
        lowered.first, lowered.unit, lowered.need_first, lowered.need
    )
    gang_first, gang_cores = fitting(gang_lists, len(lowered))(lowered.gang)
    program = Instructions(
        first=lowered.first,
        unit=lowered.unit,
        kind=lowered.kind,
        init=lowered.init,
        data=lowered.data,
        drain=lowered.drain,
        bus=lowered.bus,
        rate=lowered.rate,
        need_first=lowered.need_first,
        need=lowered.need,
        lag=lowered.lag,
        begin=lowered.begin,
        totals=lowered.totals,
        dispatch=lowered.dispatch,
        gang=lowered.gang,
        places=lowered.places,
        handover=lowered.handover,
        producer=lowered.producer,
        posted=lowered.posted if len(lowered.posted) else np.zeros(len(lowered), np.bool_),
        word_at=words.at,
        word_count=words.count,
        word_cycle=words.cycle,
        turn=words.turn,
        ahead=words.ahead,
        prepare=words.prepare,
        word_base=words.base,
        room=words.room,
        room_lag=words.room_lag,
        arrive=words.arrive,
        demand=lowered.ports,
        queue_first=queue_first,
        order=order,
        wake_first=wake_first,
        wake=wake,
        gang_first=gang_first,
        gang_cores=gang_cores,
        block=block_bytes,
    )
    state = state_before(program)
    fitting(engine_compiled.run, len(lowered))(program, state)
    over = 0
    if lowered.words is not None:
        over = words.over(lowered.first, state.handed, state.spent)
    start, end, issued = state.start, state.end, state.issued
    drained = end + lowered.drain
    np.copyto(drained, -1, where=end < 0)
    times = EngineTimes(start, end, issued, drained, over)
    if check and not times.complete:
        raise Deadlock(explain(lowered, start, end, issued, streams))
    return times

"""What the compiled engine runs, arrays of the instructions of a program, and its state."""

from typing import NamedTuple

import numpy as np


class Instructions(NamedTuple):
    """The fields of ``Lowered``, those of ``queues_compiled``, and the bytes of a block (or 0)."""

    first: np.ndarray
    unit: np.ndarray
    kind: np.ndarray
    init: np.ndarray
    data: np.ndarray
    drain: np.ndarray
    bus: np.ndarray
    rate: np.ndarray
    need_first: np.ndarray
    need: np.ndarray
    lag: np.ndarray
    begin: np.ndarray
    totals: np.ndarray
    dispatch: int
    gang: np.ndarray
    places: int
    handover: int
    producer: np.ndarray
    posted: np.ndarray
    word_at: np.ndarray
    word_count: np.ndarray
    word_cycle: int
    turn: int
    ahead: int
    prepare: np.ndarray
    word_base: np.ndarray
    room: np.ndarray
    room_lag: np.ndarray
    arrive: int
    demand: np.ndarray
    queue_first: np.ndarray
    order: np.ndarray
    wake_first: np.ndarray
    wake: np.ndarray
    gang_first: np.ndarray
    gang_cores: np.ndarray
    block: int


class State(NamedTuple):
    """The state of the engine, and its results. Queue q of core c is number 8 · c + q."""

    # Results: attoseconds, −1 if an instruction was never started, ended or issued
    start: np.ndarray
    end: np.ndarray
    issued: np.ndarray
    #: The time of each core's last word, and of its last ones of blocks of the program.
    handed: np.ndarray
    spent: np.ndarray
    # Queue q has the instructions order[queue_first[q] : queue_first[q + 1]]; order[head[q]] is the
    # first that has not ended, and order[tail[q]] the first that has not been issued.
    head: np.ndarray
    tail: np.ndarray
    #: The time at which the last instruction of a queue ended.
    free: np.ndarray
    #: When all results of its ended instructions are there, if that is after ``free``. Flags and
    #: barriers have no results, so that they leave it as it is.
    queue_drained_at: np.ndarray
    #: With interlocks, the same after each instruction, for those that need its results.
    drained_at: np.ndarray
    #: The next instruction of each program queue.
    following: np.ndarray
    # With queues of words, when each instruction was taken by its unit, the last such time of each
    # queue, and the cores whose program queue waits for room.
    taken: np.ndarray
    last_taken: np.ndarray
    stuck: np.ndarray
    #: True while a barrier of all units of a core waits.
    drains: np.ndarray
    # Transfers: at most one of each queue; ``live`` holds the queues that have one, ascending.
    phase: np.ndarray
    when: np.ndarray  # the arrival at the bus, then the end there
    left: np.ndarray  # remaining time as if alone
    speed: np.ndarray  # share over rate
    since: np.ndarray  # the time for which ``left`` holds
    part: np.ndarray  # remaining time of the block; 0 until it has a share
    live: np.ndarray
    #: The shares of a bus must be computed again.
    dirty: np.ndarray
    # Scratch for the transfers on one bus: their queues, rates, shares, and speeds at ports.
    member: np.ndarray
    limit: np.ndarray
    share: np.ndarray
    pace: np.ndarray
    # The worklist: queues that may be able to continue, each at most once.
    stack: np.ndarray
    inside: np.ndarray
    # Gangs of cores: cores that have begun; cores that have begun and have not ended; the cores of
    # each gang that have not ended, its end if that is known, and gangs whose end is still to come.
    begun: np.ndarray
    present: np.ndarray
    unfinished: np.ndarray
    ended: np.ndarray
    over: np.ndarray


def state_before(program: Instructions) -> State:
    """Return the state before the first event, when no gang has begun."""
    n, cores, queues = len(program.unit), len(program.begin), len(program.queue_first) - 1
    gangs = int(program.gang.max()) + 1 if cores else 0

    def numbers(count: int, value: int = 0, dtype: type = np.int64) -> np.ndarray:
        return np.full(count, value, dtype)

    free = np.repeat(program.begin, queues // max(cores, 1))
    return State(
        start=numbers(n, -1),
        end=numbers(n, -1),
        issued=numbers(n, -1),
        handed=program.begin.copy(),
        spent=np.zeros((cores, max(program.ahead, 1)), np.int64),
        head=program.queue_first[:-1].copy(),
        tail=program.queue_first[:-1].copy(),
        free=free,
        queue_drained_at=free.copy(),
        drained_at=numbers(len(program.producer)),
        following=program.first[:-1].copy(),
        taken=numbers(len(program.prepare), -1),
        last_taken=numbers(queues, -1),
        stuck=numbers(cores, 0, np.bool_),
        drains=numbers(cores, 0, np.bool_),
        phase=numbers(queues, 0, np.int8),
        when=numbers(queues),
        left=numbers(queues, 0, np.float64),
        speed=numbers(queues, 0, np.float64),
        since=numbers(queues),
        part=numbers(queues, 0, np.float64),
        live=numbers(queues),
        dirty=numbers(len(program.totals), 0, np.bool_),
        member=numbers(queues),
        limit=numbers(queues, 0, np.float64),
        share=numbers(queues, 0, np.float64),
        pace=np.zeros((queues, program.demand.shape[1])),
        stack=numbers(queues),
        inside=numbers(queues, 0, np.bool_),
        begun=numbers(cores, 0, np.bool_),
        present=numbers(cores),
        unfinished=np.bincount(program.gang, minlength=gangs).astype(np.int64),
        ended=numbers(gangs),
        over=numbers(gangs),
    )

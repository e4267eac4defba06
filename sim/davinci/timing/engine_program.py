"""What the compiled engine runs: arrays of the instructions of a program."""

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

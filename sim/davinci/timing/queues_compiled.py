"""The instructions of each queue, for the compiled engine.

As in ``engine_compiled``, the loops must not depend on other modules.
"""

import numpy as np

#: Queues of a core, as in ``engine_compiled``.
QUEUES = 8


def queues(first, unit, need_first, need):
    """Return the instructions of each queue, and the queues that wait for each set.

    Returns
    -------
    queue_first, order : (queues + 1,), (n,) ndarray of int64
        Queue q has the instructions order[queue_first[q] : queue_first[q + 1]].
    wake_first, wake : (n + 1,), (…,) ndarray of int64
        The queues wake[wake_first[i] : wake_first[i + 1]] wait for set i.
    """
    n, cores = len(unit), len(first) - 1
    # In plain Python, queue numbers would overflow the unit's eight bits.
    on = unit.astype(np.int64)
    queue_first = np.zeros(cores * QUEUES + 1, np.int64)
    wake_first = np.zeros(n + 1, np.int64)
    for c in range(cores):
        for i in range(first[c], first[c + 1]):
            queue_first[c * QUEUES + on[i] + 1] += 1
            for k in range(need_first[i], need_first[i + 1]):
                if need[k] >= 0:
                    wake_first[need[k] + 1] += 1
    queue_first = np.cumsum(queue_first)
    wake_first = np.cumsum(wake_first)
    order = np.empty(n, np.int64)
    wake = np.empty(wake_first[n], np.int64)
    order_end = queue_first[:-1].copy()
    wake_end = wake_first[:-1].copy()
    for c in range(cores):
        for i in range(first[c], first[c + 1]):
            q = c * QUEUES + on[i]
            order[order_end[q]] = i
            order_end[q] += 1
            for k in range(need_first[i], need_first[i + 1]):
                if need[k] >= 0:
                    wake[wake_end[need[k]]] = q
                    wake_end[need[k]] += 1
    return queue_first, order, wake_first, wake


def gang_lists(gang):
    """Return the cores of all gangs in ascending order, and where those of each gang begin."""
    gangs = gang.max() + 1 if len(gang) else 0
    first = np.zeros(gangs + 1, np.int64)
    for g in gang:
        first[g + 1] += 1
    first = np.cumsum(first)
    at = first[:-1].copy()
    cores = np.empty(len(gang), np.int64)
    for c in range(len(gang)):
        cores[at[gang[c]]] = c
        at[gang[c]] += 1
    return first, cores

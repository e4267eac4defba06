"""The compiled loop of one channel of a DRAM: banks, their timing, and a controller.

The controller reorders: it has a queue of reads, a buffer of writes, and a queue for each bank.
A bank serves the requests of its open row first, up to ``hits`` in a turn (FR-FCFS). Rows and
columns have separate command buses, as HBM has, so that one command of each kind starts in a cycle.
Writes wait until their buffer is full or nothing else is left, and are then drained together.

The structure is that of DRAMsim3 (Li et al. 2020), which ``external_dram`` runs on the same
requests and which is the reference of this model; the code is our own. Numba's cache notices
changes of this file alone, so the loops must not depend on other modules.
"""

from typing import NamedTuple

import numpy as np

#: Kinds of commands. The first four are also the places of the earliest cycles of a bank.
ACTIVATE, PRECHARGE, READ, WRITE, REFRESH = range(5)

#: The columns of a log of commands.
COMMAND_COLUMNS = ("cycle", "kind", "bank", "row")

#: The columns of a replay's result.
RESULTS = ("cycles", "activates", "refreshes", "commands")


class DramChannel(NamedTuple):
    """A channel as integers: places, times in cycles of its clock, and sizes of queues.

    Attributes
    ----------
    groups, group_banks, row_atoms : int
        Bank groups, banks of a group, and bursts that a row has.
    burst : int
        Cycles of the data bus for a burst.
    cl, cwl, rcd_read, rcd_write, rp, ras, rtp, wr : int
        Latencies of reads and writes; activate to read and to write; precharge; activate to
        precharge; read to precharge; end of a write to precharge.
    ccd_s, ccd_l, rrd_s, rrd_l, wtr_s, wtr_l : int
        Column to column, activate to activate, and end of a write to read: in different bank groups
        and in one.
    faw, turn, rfc, refi : int
        Window of four activates; gap of the bus from reads to writes; a refresh of all banks, and
        the time from one to the next (0: no refresh).
    queue, bank_queue, hits : int
        Requests in the queue of reads and in the buffer of writes; in the queue of a bank; uses of
        an open row while another row waits.
    """

    groups: int
    group_banks: int
    row_atoms: int
    burst: int
    cl: int
    cwl: int
    rcd_read: int
    rcd_write: int
    rp: int
    ras: int
    rtp: int
    wr: int
    ccd_s: int
    ccd_l: int
    rrd_s: int
    rrd_l: int
    wtr_s: int
    wtr_l: int
    faw: int
    turn: int
    rfc: int
    refi: int
    queue: int
    bank_queue: int
    hits: int


def replay(atoms, writes, channel, log):
    """Serve requests as fast as the channel accepts them, in their order of arrival.

    Parameters
    ----------
    atoms : (n,) ndarray of int64
        Number of the burst in the channel. From the lowest place on, it has column, bank, bank
        group and row.
    writes : (n,) ndarray of bool
    channel : DramChannel
    log : (m, len(COMMAND_COLUMNS)) ndarray of int64
        Gets the first m commands; a refresh has bank 0.

    Returns
    -------
    (len(RESULTS),) ndarray of int64
        Cycles up to the last data, and counts.
    """
    banks = channel.groups * channel.group_banks
    earliest = np.zeros((banks, 4), np.int64)
    open_row = np.full(banks, -1, np.int64)
    used = np.zeros(banks, np.int64)  # uses of the open row
    rows = np.zeros((banks, channel.bank_queue), np.int64)
    kinds = np.zeros((banks, channel.bank_queue), np.bool_)
    filled = np.zeros(banks, np.int64)
    window = np.full(4, -channel.faw, np.int64)  # the last four activates
    waiting = np.zeros((2, channel.queue), np.int64)  # requests of reads, of writes
    size = np.zeros(2, np.int64)
    counts = np.zeros(len(RESULTS), np.int64)
    bank_of = np.zeros(len(atoms), np.int64)
    row_of = np.zeros(len(atoms), np.int64)
    for i in range(len(atoms)):
        bank_of[i], row_of[i] = _place(channel, atoms[i])
    left, place, draining, due = len(atoms), 0, 0, 0
    clock, turn, end = 0, 0, 0
    free = 0  # the first cycle in which the bus of data can take another burst
    while left > 0:
        if channel.refi > 0 and clock > 0 and clock % channel.refi == 0:
            due += 1
        if due > 0:
            command, bank = _refresh(channel, clock, earliest, open_row, used)
            due -= command == REFRESH
            _record(log, counts, clock, command, bank, open_row)
        else:
            bank, k = -1, -1
            if clock >= free:
                bank, k = _column(clock, turn, earliest, open_row, rows, kinds, filled)
            command, other = _row(
                channel, clock, turn, earliest, open_row, used, rows, filled, window, bank
            )
            _record(log, counts, clock, command, other, open_row)
            if bank >= 0:
                write = kinds[bank, k]
                _start_column(channel, clock, bank, write, earliest)
                _record(log, counts, clock, WRITE if write else READ, bank, open_row)
                used[bank] += 1
                _drop(rows, kinds, filled, bank, k)
                end = clock + channel.burst + (channel.cwl if write else channel.cl)
                free = clock + channel.burst
                left -= 1
                turn = bank
        # One request a cycle goes from a queue to its bank, and one arrives.
        if draining == 0 and size[1] > 0:
            idle = filled.sum() == 0
            over = place == len(atoms) and size[0] == 0
            if size[1] == channel.queue or (size[1] > 8 and idle) or over:
                draining = size[1]
        kind = 1 if draining > 0 else 0
        for i in range(size[kind]):
            request = waiting[kind, i]
            bank = bank_of[request]
            if filled[bank] < channel.bank_queue:
                rows[bank, filled[bank]] = row_of[request]
                kinds[bank, filled[bank]] = kind == 1
                filled[bank] += 1
                for j in range(i, size[kind] - 1):
                    waiting[kind, j] = waiting[kind, j + 1]
                size[kind] -= 1
                draining -= kind
                break
        if place < len(atoms):
            kind = 1 if writes[place] else 0
            if size[kind] < channel.queue:
                waiting[kind, size[kind]] = place
                size[kind] += 1
                place += 1
        clock += 1
    counts[0] = end
    return counts


def _record(log, counts, clock, command, bank, open_row):
    """Count a command, if it is one, and add it to the log, if that has room."""
    if command < 0:
        return
    counts[1] += command == ACTIVATE
    counts[2] += command == REFRESH
    place = counts[3]
    if place < len(log):
        log[place, 0] = clock
        log[place, 1] = command
        log[place, 2] = bank
        log[place, 3] = open_row[bank]
    counts[3] += 1


def _place(channel, atom):
    """Return the bank and the row of a burst."""
    above = atom // channel.row_atoms
    inner = above % channel.group_banks
    above //= channel.group_banks
    return (above % channel.groups) * channel.group_banks + inner, above // channel.groups


def _refresh(channel, clock, earliest, open_row, used):
    """Precharge an open bank, or refresh all banks; return the command, or −1, and the bank."""
    banks, ready = len(open_row), True
    for bank in range(banks):
        if open_row[bank] >= 0:
            ready = False
            if clock >= earliest[bank, PRECHARGE]:
                _precharge(channel, clock, bank, earliest, open_row, used)
                return PRECHARGE, bank
        elif clock < earliest[bank, ACTIVATE]:
            ready = False
    if not ready:
        return -1, -1
    for bank in range(banks):
        _later(earliest, bank, ACTIVATE, clock + channel.rfc)
    return REFRESH, 0


def _column(clock, turn, earliest, open_row, rows, kinds, filled):
    """Return the bank and the place in its queue of the first read or write that can start."""
    bank = turn
    for _ in range(len(open_row)):
        bank = bank + 1 if bank + 1 < len(open_row) else 0
        for k in range(filled[bank]):
            if rows[bank, k] == open_row[bank]:
                if clock >= earliest[bank, WRITE if kinds[bank, k] else READ]:
                    return bank, k
    return -1, -1


def _row(
    channel, clock, turn, earliest, open_row, used, rows, filled, window, busy
):  # fmt: skip
    """Start the first activate or precharge that is possible, but not in the bank ``busy``.

    Return the command, or −1, and the bank.
    """
    bank = turn
    for _ in range(len(open_row)):
        bank = bank + 1 if bank + 1 < len(open_row) else 0
        if filled[bank] == 0 or bank == busy:
            continue
        if open_row[bank] < 0:
            if clock >= earliest[bank, ACTIVATE] and clock >= window[0] + channel.faw:
                _activate(channel, clock, bank, earliest)
                open_row[bank] = rows[bank, 0]
                used[bank] = 0
                window[:3] = window[1:]
                window[3] = clock
                return ACTIVATE, bank
        elif rows[bank, 0] != open_row[bank] and clock >= earliest[bank, PRECHARGE]:
            hit = False
            for k in range(1, filled[bank]):
                hit = hit or rows[bank, k] == open_row[bank]
            if not hit or used[bank] >= channel.hits:
                _precharge(channel, clock, bank, earliest, open_row, used)
                return PRECHARGE, bank
    return -1, -1


def _activate(channel, clock, bank, earliest):
    """Record what an activate delays."""
    for other in range(len(earliest)):
        same = other // channel.group_banks == bank // channel.group_banks
        _later(earliest, other, ACTIVATE, clock + (channel.rrd_l if same else channel.rrd_s))
    _later(earliest, bank, PRECHARGE, clock + channel.ras)
    _later(earliest, bank, READ, clock + channel.rcd_read)
    _later(earliest, bank, WRITE, clock + channel.rcd_write)


def _precharge(channel, clock, bank, earliest, open_row, used):
    """Close a bank."""
    open_row[bank] = -1
    used[bank] = 0
    _later(earliest, bank, ACTIVATE, clock + channel.rp)


def _start_column(channel, clock, bank, kind, earliest):
    """Record what a read or a write (``kind`` True) delays."""
    for other in range(len(earliest)):
        same = other // channel.group_banks == bank // channel.group_banks
        again = clock + max(channel.burst, channel.ccd_l if same else channel.ccd_s)
        if kind:
            data = clock + channel.cwl + channel.burst
            _later(earliest, other, WRITE, again)
            _later(earliest, other, READ, data + (channel.wtr_l if same else channel.wtr_s))
        else:
            _later(earliest, other, READ, again)
            bus = clock + channel.cl + channel.burst - channel.cwl + channel.turn
            _later(earliest, other, WRITE, bus)
    if kind:
        _later(earliest, bank, PRECHARGE, clock + channel.cwl + channel.burst + channel.wr)
    else:
        _later(earliest, bank, PRECHARGE, clock + channel.rtp)


def _later(earliest, bank, command, clock):
    """Delay a command of a bank."""
    if earliest[bank, command] < clock:
        earliest[bank, command] = clock


def _drop(rows, kinds, filled, bank, k):
    """Remove a request from the queue of a bank."""
    for j in range(k, filled[bank] - 1):
        rows[bank, j] = rows[bank, j + 1]
        kinds[bank, j] = kinds[bank, j + 1]
    filled[bank] -= 1

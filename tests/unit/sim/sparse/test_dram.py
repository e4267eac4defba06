"""The memory: every command is legal, known streams take known times, and mutations are noticed.

The checker of commands is written for a whole log at once, from the definitions of the times, and
shares nothing with the model but the numbers.
"""

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from vitruvian.common.compiling import compiled
from vitruvian.sim.sparse import dram_compiled
from vitruvian.sim.sparse.architecture import ArchitectureError, load_architecture
from vitruvian.sim.sparse.dram import DramMemory, load_dram
from vitruvian.sim.sparse.dram_compiled import (
    ACTIVATE,
    COMMAND_COLUMNS,
    PRECHARGE,
    READ,
    REFRESH,
    RESULTS,
    WRITE,
    DramChannel,
)
from vitruvian.sim.sparse.requests import Requests

HBM2 = load_dram("hbm2")
CHANNEL = HBM2.channel
CALM = CHANNEL._replace(refi=0)


def served(atoms, writes=None, channel=CHANNEL, module=dram_compiled):
    """Return the counts by name, and the commands, of some requests."""
    atoms = np.asarray(atoms, np.int64)
    writes = np.zeros(len(atoms), bool) if writes is None else np.asarray(writes, bool)
    log = np.zeros((8 * len(atoms) + 100, len(COMMAND_COLUMNS)), np.int64)
    run = compiled(module.replay) if module is dram_compiled else module.replay
    found = dict(zip(RESULTS, run(atoms, writes, channel, log).tolist(), strict=True))
    return found, log[: found["commands"]]


def place(bank: int, row: int, column: int = 0, channel: DramChannel = CHANNEL) -> int:
    """Return the number of a burst; banks count through the groups' banks first."""
    group, inner = divmod(bank, channel.group_banks)
    return (
        (row * channel.groups + group) * channel.group_banks + inner
    ) * channel.row_atoms + column


def violations(log: np.ndarray, t: DramChannel) -> list[str]:
    """Return the rules of JEDEC's kind that a log of commands breaks."""
    broken: list[str] = []

    def check(name: str, least: int, first: np.ndarray, then: np.ndarray) -> None:
        """Each command of ``then`` is ``least`` behind the last one of ``first`` before it."""
        before = np.searchsorted(first, then, "left") - 1
        some = before >= 0
        if (then[some] - first[before[some]] < least).any():
            broken.append(name)

    cycle, kind, bank = log[:, 0], log[:, 1], log[:, 2]
    group = bank // t.group_banks

    def at(command: int, where: np.ndarray | bool = True) -> np.ndarray:
        return cycle[(kind == command) & where]

    write_end, refresh = t.cwl + t.burst, at(REFRESH)
    for b in range(t.groups * t.group_banks):
        here = bank == b
        act, pre = at(ACTIVATE, here), at(PRECHARGE, here)
        read, write = at(READ, here), at(WRITE, here)
        check("tRC", t.ras + t.rp, act, act)
        check("tRAS", t.ras, act, pre)
        check("tRP", t.rp, pre, act)
        check("tRCD of reads", t.rcd_read, act, read)
        check("tRCD of writes", t.rcd_write, act, write)
        check("tRTP", t.rtp, read, pre)
        check("tWR", write_end + t.wr, write, pre)
        check("tRFC", t.rfc, refresh, act)
        check("tRP before a refresh", t.rp, pre, refresh)
        # A bank is open for its commands, and closed for an activate and a refresh.
        state = 0
        for command in log[here | (kind == REFRESH)][:, 1].tolist():
            if (command in (ACTIVATE, REFRESH)) == state:
                broken.append("state")
            state = state if command in (READ, WRITE) else int(command == ACTIVATE)
    for g in range(t.groups):
        for inside, name, ccd, rrd, wtr in (
            (group == g, "in a group", t.ccd_l, t.rrd_l, t.wtr_l),
            (group != g, "of groups", t.ccd_s, t.rrd_s, t.wtr_s),
        ):
            here = group == g
            for command in (READ, WRITE):
                check(f"tCCD {name}", max(ccd, t.burst), at(command, inside), at(command, here))
            check(f"tRRD {name}", rrd, at(ACTIVATE, inside), at(ACTIVATE, here))
            check(f"tWTR {name}", write_end + wtr, at(WRITE, inside), at(READ, here))
    check("bus to writes", t.cl + t.burst + t.turn - t.cwl, at(READ), at(WRITE))
    act = at(ACTIVATE)
    if (act[4:] - act[:-4] < t.faw).any():
        broken.append("tFAW")
    # A cycle has at most one command on the bus of rows and one on that of columns.
    for commands in ((ACTIVATE, PRECHARGE, REFRESH), (READ, WRITE)):
        if (np.diff(np.sort(cycle[np.isin(kind, commands)])) < 1).any():
            broken.append("bus of commands")
    return broken


def streams(count: int = 600) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return requests of many kinds: streams, random bursts, few banks, reads and writes."""
    rng = np.random.default_rng(7)
    found = []
    for share in (0.0, 0.1, 0.5, 1.0):
        writes = rng.random(count) < share
        few = [place(int(b), int(r)) for b, r in rng.integers(0, [3, 4], (count, 2))]
        near = [
            place(int(b), int(r), int(c)) for b, r, c in rng.integers(0, [16, 3, 32], (count, 3))
        ]
        found += [
            (np.arange(count), writes),
            (rng.integers(0, 1 << 20, count), writes),
            (np.array(few), writes),
            (np.array(near), writes),
        ]
    return found


def test_every_command_is_legal_and_every_request_is_served():
    for channel in (CHANNEL, CALM, CHANNEL._replace(queue=4, bank_queue=1, refi=500)):
        for atoms, writes in streams():
            found, log = served(atoms, writes, channel)
            assert violations(log, channel) == []
            kinds = log[:, 1]
            assert (kinds == READ).sum() == (~writes).sum()
            assert (kinds == WRITE).sum() == writes.sum()
            # Each request is served in its own bank and row.
            columns = log[np.isin(kinds, (READ, WRITE))]
            wanted = sorted((place_of(a), bool(w)) for a, w in zip(atoms, writes, strict=True))
            got = sorted(((b, r), k == WRITE) for _, k, b, r in columns.tolist())
            assert got == wanted
            latency = channel.cwl if columns[-1, 1] == WRITE else channel.cl
            assert found["cycles"] == columns[-1, 0] + latency + channel.burst


def place_of(atom: int) -> tuple[int, int]:
    """Return the bank and the row of a burst, by division."""
    above = int(atom) // CHANNEL.row_atoms
    group_bank, above = above % CHANNEL.group_banks, above // CHANNEL.group_banks
    group, row = above % CHANNEL.groups, above // CHANNEL.groups
    return group * CHANNEL.group_banks + group_bank, row


def test_the_plain_form_is_the_compiled_one():
    for atoms, writes in streams(120):
        log = np.zeros((2000, 4), np.int64)
        plain = dram_compiled.replay(atoms, writes, CHANNEL._replace(refi=300), log)
        found, commands = served(atoms, writes, CHANNEL._replace(refi=300))
        assert plain.tolist() == list(found.values())
        np.testing.assert_array_equal(commands, log[: len(commands)])


def test_reads_of_one_row_follow_each_other_on_the_bus():
    """One request comes in a cycle, and an activate and a read lie before the first data."""
    for count in (1, 2, 30):
        found, _ = served(np.arange(count), channel=CALM)
        start = served([0], channel=CALM)[0]["cycles"]
        assert found["cycles"] == start + (count - 1) * CALM.burst
    # One cycle each for the arrival and for the way to the bank
    assert start == 2 + CALM.rcd_read + CALM.cl + CALM.burst


def test_a_sequential_stream_reaches_the_peak_less_the_refresh():
    count = 50_000
    peak = CHANNEL.burst * count
    calm, _ = served(np.arange(count), channel=CALM)
    # The bus has no gap but at the start: 50,000 bursts open 1,563 rows in its shadow.
    assert peak <= calm["cycles"] <= peak + 2 + CALM.rcd_read + CALM.cl
    assert calm["activates"] == -(-count // CHANNEL.row_atoms)
    found, _ = served(np.arange(count))
    lost = found["cycles"] - calm["cycles"]
    assert found["refreshes"] == found["cycles"] // CHANNEL.refi
    # A refresh takes its time, and the open rows are closed before and opened after it.
    around = CHANNEL.rtp + CHANNEL.rp + CHANNEL.rcd_read + 16
    assert CHANNEL.rfc <= lost / found["refreshes"] <= CHANNEL.rfc + around


def test_rows_of_one_bank_take_a_row_cycle_each():
    count = 300
    rows, _ = served([place(0, row) for row in range(count)], channel=CALM)
    single, _ = served([place(0, 0)], channel=CALM)
    cycle = CALM.ras + CALM.rp
    assert rows["cycles"] == single["cycles"] + (count - 1) * cycle


def test_rows_of_all_banks_take_a_quarter_of_the_window_of_four_each():
    count = 400
    found, _ = served([place(k % 16, k // 16) for k in range(count)], channel=CALM)
    single, _ = served([0], channel=CALM)
    rest = found["cycles"] - single["cycles"]
    assert rest == (count - 1) // 4 * CALM.faw + (count - 1) % 4 * CALM.rrd_s or (
        abs(rest - (count - 1) * CALM.faw / 4) <= CALM.faw
    )


def test_bank_groups_bound_a_group_alone():
    """With a longer gap in a group, one row is slower, and two groups in turn are not."""
    slow = CALM._replace(ccd_l=6, ccd_s=2)
    one, _ = served(np.arange(32), channel=slow)
    start = served([0], channel=slow)[0]["cycles"]
    assert one["cycles"] == start + 31 * 6
    turns = [place(4 * (k % 4), 0, k // 4) for k in range(64)]
    four, _ = served(turns, channel=slow)
    assert four["cycles"] <= start + 63 * 2 + 3 * slow.rrd_s


def test_a_turn_of_the_bus_costs_what_the_times_say():
    """In a row that stays open, nothing but the turn delays the first request behind it."""
    count = 2000
    writes = np.arange(count) // 40 % 2 == 1
    _, log = served(np.arange(count) % 32, writes, CALM)
    columns = log[np.isin(log[:, 1], (READ, WRITE))]
    gaps, kinds = np.diff(columns[:, 0]), columns[:, 1]
    to_writes = gaps[(kinds[:-1] == READ) & (kinds[1:] == WRITE)]
    to_reads = gaps[(kinds[:-1] == WRITE) & (kinds[1:] == READ)]
    assert len(to_writes) > 20 and len(to_reads) > 20
    assert to_writes.min() == CALM.cl + CALM.burst + CALM.turn - CALM.cwl
    assert to_reads.min() == CALM.cwl + CALM.burst + CALM.wtr_l


@pytest.mark.parametrize(
    "name", [n for n in DramChannel._fields if n not in ("groups", "group_banks")]
)
def test_every_number_of_a_channel_matters(name):
    changed = CHANNEL._replace(**{name: getattr(CHANNEL, name) * 4})
    if name == "row_atoms":
        changed = CHANNEL._replace(row_atoms=8)
    if name in ("queue", "bank_queue", "hits"):
        changed = CHANNEL._replace(**{name: 2})
    for atoms, writes in streams():
        if served(atoms, writes)[0] != served(atoms, writes, changed)[0]:
            return
    pytest.fail(f"no stream depends on {name}")


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("_later(earliest, bank, PRECHARGE, clock + channel.ras)", "pass", "tRAS"),
        ("_later(earliest, bank, ACTIVATE, clock + channel.rp)", "pass", "tRP"),
        ("_later(earliest, bank, READ, clock + channel.rcd_read)", "pass", "tRCD of reads"),
        ("_later(earliest, bank, WRITE, clock + channel.rcd_write)", "pass", "tRCD of writes"),
        ("_later(earliest, bank, PRECHARGE, clock + channel.rtp)", "pass", "tRTP"),
        ("channel.cwl + channel.burst + channel.wr)", "channel.cwl + channel.wr)", "tWR"),
        ("clock + channel.rfc)", "clock + 1)", "tRFC"),
        ("channel.ccd_l if same else", "channel.ccd_s if same else", "tCCD in a group"),
        ("channel.rrd_l if same else", "channel.rrd_s if same else", "tRRD in a group"),
        ("channel.wtr_l if same else", "channel.wtr_s if same else", "tWTR in a group"),
        ("else channel.wtr_s))", "else 0))", "tWTR of groups"),
        ("- channel.cwl + channel.turn", "- channel.cwl", "bus to writes"),
        ("clock >= window[0] + channel.faw", "clock >= window[0]", "tFAW"),
        ("if rows[bank, k] == open_row[bank]:", "if open_row[bank] >= 0:", "served"),
        ("filled[bank] -= 1", "filled[bank] -= k == 0", "served"),
    ],
)
def test_a_mutation_is_noticed(old, new, rule):
    source = Path(dram_compiled.__file__).read_text()
    assert source.count(old) == 1, source.count(old)
    mutant = ModuleType("mutant")
    exec(compile(source.replace(old, new), "mutant", "exec"), mutant.__dict__)
    # Gaps between columns that the burst does not hide, so that each rule can be broken.
    channel = CHANNEL._replace(ccd_l=5, refi=400)
    broken: set[str] = set()
    for atoms, writes in streams(100):
        try:
            _, log = served(atoms, writes, channel, mutant)
        except IndexError:
            broken.add("served")
            continue
        broken |= set(violations(log, channel))
        columns = log[np.isin(log[:, 1], (READ, WRITE))]
        if sorted(map(place_of, atoms)) != sorted((b, r) for _, _, b, r in columns.tolist()):
            broken.add("served")
    assert rule in broken


def requests(atoms, writes=None) -> Requests:
    atoms = np.asarray(atoms, np.int64)
    writes = np.zeros(len(atoms), bool) if writes is None else writes
    return Requests(np.zeros(len(atoms), np.int64), atoms, writes, 64 * len(atoms))


def test_a_machine_has_as_many_channels_as_its_bandwidth_needs():
    machine = load_architecture()
    memory = DramMemory.of(HBM2, machine)
    assert (memory.channels, memory.joined) == (16, 1)
    assert memory.channels * HBM2.channel_bytes_per_s == machine.memory_bytes_per_s
    parts = memory.split(requests(np.arange(16 * 32 * 3)))
    for atoms, _ in parts:
        np.testing.assert_array_equal(atoms, np.arange(96))


def test_the_slowdown_of_a_long_stream_is_that_of_the_refresh():
    found = DramMemory(HBM2, 16, 1).replay(requests(np.arange(16 * 32 * 400)))
    share = 1 - CHANNEL.rfc / CHANNEL.refi
    assert 0.98 * share < 1 / found.slowdown <= share
    assert found.moved == found.asked and found.row_hits > 0.96


def test_a_short_stream_has_the_mean_share_of_refreshes():
    """A hundred rows in each channel see a refresh in most repetitions, not in all or none."""
    short = DramMemory(HBM2, 1, 1).replay(requests(np.arange(320)))
    long = DramMemory(HBM2, 1, 1).replay(requests(np.arange(32_000)))
    assert short.slowdown == pytest.approx(float(long.slowdown), rel=0.06)


def test_no_requests_take_no_time():
    found = DramMemory(HBM2, 4, 1).replay(requests([]))
    assert found.seconds == 0 and found.slowdown == 1


def test_mistakes_in_a_file_are_reported(tmp_path):
    text = Path(dram_compiled.__file__).with_name("hbm2.toml").read_text()
    for old, new, message in (
        ("rp = 14\n", "", r"timing\.rp is missing"),
        ("groups = 4\n", "groups = 0\n", r"channel\.groups must be an integer, 1 or more, not 0"),
        ("queue = 32\n", "queue = 32\nspeed = 3\n", r"also for speed"),
        ('name = "hbm2"\n', 'name = "hbm2"\nhue = 1\n', r"hue must be one of the keys"),
    ):
        path = tmp_path / "memory.toml"
        path.write_text(text.replace(old, new, 1))
        with pytest.raises(ArchitectureError, match=message):
            load_dram(path)
    with pytest.raises(ValueError, match="memory must be one of hbm2, not 'ddr4'"):
        load_dram("ddr4")
    with pytest.raises(ArchitectureError, match="memory must be a TOML file"):
        load_dram(tmp_path / "absent.toml")

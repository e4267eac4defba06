"""A run with a timed memory: slower than at the peak rate, and by how much the replays say."""

import dataclasses
import os
import sys
from fractions import Fraction

import numpy as np
import pytest

from tests.support.sparse_problems import PROBLEMS, problem
from vitruvian.common.errors import UserError
from vitruvian.sim.sparse import dram, timing
from vitruvian.sim.sparse.application import simulate_application
from vitruvian.sim.sparse.architecture import load_architecture
from vitruvian.sim.sparse.dram import DramMemory, load_dram
from vitruvian.sim.sparse.engine_compiled import COLUMNS
from vitruvian.sim.sparse.external_dram import configuration

MACHINE = dataclasses.replace(load_architecture(), pes=64, sub_tensor=8, buffer_bytes=1 << 14)
HBM2 = load_dram("hbm2")


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Repeat short traces less often, and run the engine as plain Python."""
    monkeypatch.setattr(timing, "fitting", lambda function, size: function)
    monkeypatch.setattr(dram, "_REPEATS", 20)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_timed_memory_slows_all_machines_and_moves_the_same_bytes(name):
    stated = problem(name, 3)
    count = min(3, stated.iterations)
    plain = simulate_application(stated, MACHINE, iterations=count)
    timed = simulate_application(stated, MACHINE, iterations=count, memory="hbm2")
    assert timed.timing is not None and plain.timing is None
    assert timed.cycles >= plain.cycles
    assert timed.baseline.cycles >= plain.baseline.cycles
    assert timed.single_baseline.cycles >= timed.baseline.cycles
    assert timed.oracle.cycles >= plain.oracle.cycles
    assert timed.baseline.memory_bytes == plain.baseline.memory_bytes
    assert timed.bandwidth_share <= plain.bandwidth_share
    assert timed.moved_share >= 1 and plain.moved_share == 1
    assert (plain.figures()["memory"], timed.figures()["memory"]) == ("none", "hbm2")
    bytes_of = [COLUMNS.index(c) for c in ("csc", "reload", "prefetch", "vectors", "results")]
    for sweep, steps in timed.steps.items():
        replayed = timed.timing.sweeps[sweep]
        # A step cannot be faster than the slowed memory.
        moved = steps[:, bytes_of].sum(axis=1)
        rate = timed.architecture.bytes_per_cycle / replayed.slowdown
        assert (steps[:, 0] >= moved / float(rate) - 1e-6).all()
        if moved.sum():
            assert replayed.slowdown > 1


def test_a_memory_without_waits_costs_the_bursts_alone():
    """With a burst in a cycle and no other times, the time is that of the bursts."""
    none = dict.fromkeys(
        (
            *(
                "rcd_read",
                "rcd_write",
                "rp",
                "ras",
                "rtp",
                "wr",
                "ccd_s",
                "ccd_l",
                "rrd_s",
                "rrd_l",
            ),
            *("wtr_s", "wtr_l", "faw", "turn", "refi", "cl", "cwl"),
        ),
        0,
    )
    free = dataclasses.replace(HBM2.replaced(**none, burst=2), clock_hz=Fraction(10**9))
    machine = dataclasses.replace(MACHINE, memory_bytes_per_s=free.channel_bytes_per_s)
    memory = DramMemory.of(free, machine)
    assert memory.channels == 1
    rng = np.random.default_rng(1)
    atoms = rng.integers(0, 1 << 14, 3000)
    writes = rng.random(3000) < 0.2
    found = memory.replay(dram.Requests(np.zeros(3000, np.int64), atoms, writes, 64 * 3000))
    assert 1 <= found.slowdown < Fraction(102, 100)


def test_compute_hides_a_slow_memory():
    """Cores with a clock of 1 MHz are slower than any memory, which then costs no cycle."""
    stated = problem("pagerank", 3)
    machine = dataclasses.replace(MACHINE, pes=1, clock_hz=Fraction(10**6))
    plain = simulate_application(stated, machine, iterations=2)
    timed = simulate_application(stated, machine, iterations=2, memory="hbm2")
    assert (timed.cycles, timed.baseline.cycles) == (plain.cycles, plain.baseline.cycles)
    assert timed.oracle.cycles == plain.oracle.cycles


#: A program in the place of DRAMsim3: it takes two cycles for a request, as the peak rate does.
STAND_IN = """#!{python}
import json, sys
words = sys.argv
cycles = int(words[words.index("-c") + 1])
period = int(open("channel.ini").read().split("epoch_period = ")[1].split()[0])
kinds = [line.split()[1] for line in open(words[words.index("-t") + 1])]
epochs = []
for begin in range(0, cycles - period, period):
    part = kinds[begin // 2 : (begin + period) // 2]
    reads = part.count("READ")
    writes = len(part) - reads
    epochs.append({{"0": {{"num_reads_done": reads, "num_writes_done": writes,
                   "num_read_cmds": reads, "num_write_cmds": writes, "num_act_cmds": 1}}}})
json.dump(epochs, open("dramsim3epoch.json", "w"))
"""


@pytest.fixture
def stand_in(tmp_path):
    path = tmp_path / "dramsim3main"
    path.write_text(STAND_IN.format(python=sys.executable))
    path.chmod(0o755)
    return str(path)


def test_times_come_from_another_simulator_if_one_is_given(stand_in):
    memory = DramMemory(HBM2, 1, 1, stand_in)
    atoms = np.arange(4000)
    cycles, activates = memory.serve(atoms, atoms % 3 == 0)
    assert cycles == 2 * 4000 + HBM2.channel.cl and activates > 100
    stated = problem("cg", 3)
    report = simulate_application(
        stated, MACHINE, iterations=2, memory="hbm2", dram_simulator=stand_in
    )
    own = simulate_application(stated, MACHINE, iterations=2, memory="hbm2")
    assert report.cycles < own.cycles


def test_a_simulator_that_is_none_is_reported_in_one_line(tmp_path):
    atoms, writes = np.arange(10), np.zeros(10, bool)
    with pytest.raises(UserError, match="must be the file of dramsim3main, not 'absent'"):
        DramMemory(HBM2, 1, 1, "absent").serve(atoms, writes)
    silent = tmp_path / "silent"
    silent.write_text(f"#!{sys.executable}\nraise SystemExit('no such option')\n")
    silent.chmod(0o755)
    with pytest.raises(UserError, match=r"that writes epochs, not '.*silent' \(no such option\)"):
        DramMemory(HBM2, 1, 1, str(silent)).serve(atoms, writes)
    with pytest.raises(UserError, match="a DRAM simulator must come with a memory"):
        simulate_application(problem("cg", 1), MACHINE, iterations=1, dram_simulator="x")


def test_the_configuration_is_that_of_the_source():
    """DRAMsim3's HBM2_8Gb_x128.ini has these lines, beside energies and times that nothing uses."""
    lines = configuration(HBM2.channel, HBM2.atom_bytes, 1000).splitlines()
    for line in (
        *("protocol = HBM", "bankgroups = 4", "banks_per_group = 4", "rows = 32768"),
        *("columns = 64", "device_width = 128", "BL = 4", "tCK = 1", "CL = 14", "CWL = 4"),
        *("tRCDRD = 14", "tRCDWR = 14", "tRP = 14", "tRAS = 34", "tRFC = 260", "tREFI = 3900"),
        *("tRRD_S = 4", "tRRD_L = 6", "tWTR_S = 6", "tWTR_L = 8", "tFAW = 30", "tWR = 16"),
        *("tCCD_S = 1", "tCCD_L = 2", "bus_width = 128", "cmd_queue_size = 8"),
        *("address_mapping = rorabgbachco", "trans_queue_size = 32", "queue_structure = PER_BANK"),
    ):
        assert line in lines


def test_the_model_agrees_with_dramsim3():
    """The environment variable DRAMSIM3 names the program; without it, there is nothing to run."""
    command = os.environ.get("DRAMSIM3")
    if command is None:
        pytest.skip("needs the program that DRAMSIM3 names")
    rng = np.random.default_rng(5)
    for atoms, share in ((np.arange(9000), 0.0), (rng.integers(0, 1 << 20, 3000), 0.1)):
        writes = rng.random(len(atoms)) < share
        ours, _ = DramMemory(HBM2, 1, 1).serve(atoms, writes)
        theirs, _ = DramMemory(HBM2, 1, 1, command).serve(atoms, writes)
        assert ours == pytest.approx(theirs, rel=0.03)

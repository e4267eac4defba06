"""The chip files of the simulator, and a one-line message with a line number for every mistake."""

import os
import re
from decimal import Decimal
from fractions import Fraction
from time import process_time

import pytest

from vitruvian.sim.davinci import load_chip
from vitruvian.sim.davinci.chip.file import CHIPS, ChipError, chip_names, find_chip, read_chip
from vitruvian.sim.davinci.chip.model import ATTO
from vitruvian.sim.davinci.chip.parts import Throughput
from vitruvian.sim.davinci.isa.instruction import Instruction, Kind, Unit, Work
from vitruvian.sim.davinci.isa.operands import View
from vitruvian.sim.kernels import KERNELS, sequences, tiling

SMALL = """name = "toy"
[chip]
clock_mhz = 1000
launch_ns = 100
dispatch_ns = 0
flag_ns = 0
event_registers = 8
source = "made up"
[core.one]
count = 2
units = ["S", "V", "M", "MTE2"]
source = "made up"
[core.one.buffer]
UB = { kib = 4, align = 32, source = "made up" }
[bus.b]
gb_per_s = [2, 3]
source = "made up"
[path."GM->UB"]
unit = "MTE2"
bus = "b"
gb_per_s = 1
init_ns = 5
source = "made up"
[vector]
gb_per_s = 256
init_ns = 10
source = "made up"
[vector.operation]
vexp = { repeats_factor = 4, start_ns = 7, source = "made up" }
"vexp fp32" = { init_ns = 0, source = "made up" }
[cube]
m = 16
n = 16
steps_per_us = 500
init_ns = 3
source = "made up"
[cube.depth]
fp16 = 16
source = "made up"
[scalar]
default_ns = 4
source = "made up"
"""


def ub(dtype="fp16"):
    return View("UB", 0, dtype, (128,), (2,))


@pytest.mark.parametrize("name", ["ascend310", "ascend310p", "ascend910", "ascend910b"])
def test_chips_come_along_and_say_where_their_numbers_are_from(name):
    chip = load_chip(name)
    assert name in chip_names() and chip.name == name
    text = (CHIPS / f"{name}.toml").read_text()
    assert len(chip.sources) >= 30
    for where, source in chip.sources.items():
        known = (
            r"Tang 2024 (§|Table|Fig|Alg)|Rohwedder 2021 (§|Fig)|stub|msKPP|catlass|public"
            r"|Zhou et al. 2025 §|table|manual|att|asc-devkit|assumed: |fitted: |the measured"
        )
        assert re.match(known, source), (where, source)
    assert chip.cube is not None
    for dtype in chip.cube.depths:
        assert chip.peak_operations(dtype) > 0
    assert all(b.nbytes % b.align == 0 for k in chip.kinds.values() for b in k.buffers.values())
    assert text.count("source") >= 20


def test_numbers_of_the_310_are_those_of_tang_2024():
    chip = load_chip("ascend310")
    assert chip.kind().count == 2 and chip.event_registers == 8
    assert chip.launch_s == Fraction(2050, 10**9)
    assert chip.route("L1", "L0A").rate.bytes_per_s == Fraction("347.99") * 10**9
    assert chip.route("L1", "L0B").rate.bytes_per_s == Fraction("174.37") * 10**9
    assert chip.vector_bytes_per_s() == Fraction("174.06") * 10**9
    assert {r.init_s for r in chip.routes.values()} == {Fraction(40, 10**9)}
    assert chip.buses["interconnect"].total(4) == chip.buses["interconnect"].total(9) == 42 * 10**9
    assert chip.cube is not None
    gflops = 7936 / chip.cube.step_s / 10**9
    assert abs(gflops - Fraction("5390.32")) < Fraction(1, 10), "steps_per_us has five digits"
    on_bus = {name for name, route in chip.routes.items() if route.bus}
    assert on_bus == {n for n in chip.routes if "GM" in n}, "only the interconnect is shared"


def test_the_910b_has_no_way_from_cube_to_vector_but_memory():
    chip = load_chip("ascend910b")
    with pytest.raises(ValueError, match=r"path must be one of .*, not 'L0C->UB'"):
        chip.route("L0C", "UB")
    assert chip.route("L0C", "GM").unit == Unit.FIX and chip.cross_s
    assert chip.kind("vector").count == 2 * chip.kind("cube").count
    assert chip.route("GM", "L1", "nd2nz") is not chip.route("GM", "L1")
    with pytest.raises(ValueError, match="kind of core must be one of cube, vector, not 'aicore'"):
        chip.kind("aicore")


def test_periods():
    chip = read_chip(SMALL)
    move = Instruction(Unit.MTE2, "copy", path="GM->UB", work=Work(nbytes=3000))
    timing = chip.timing(move)
    assert (timing.init, timing.data) == (5 * 10**9, 3000 * 10**9) and timing.bus == "b"
    assert timing.rate == 10**9 and timing.period == 3005 * 10**9
    relu = Instruction(Unit.V, "vrelu", operands={"src": ub()}, work=Work(repeats=3))
    assert chip.timing(relu).period == (10 + 3) * 10**9
    for repeats, dtype, want in ((1, "fp16", 17), (3, "fp16", 22), (3, "fp32", 3)):
        exp = Instruction(Unit.V, "vexp", operands={"src": ub(dtype)}, work=Work(repeats=repeats))
        assert chip.timing(exp).period == want * 10**9, (repeats, dtype)
    assert chip.cube is not None
    mmad = Instruction(Unit.M, "mmad", work=Work(repeats=chip.cube.steps(17, 16, 33, "fp16")))
    assert chip.timing(mmad).period == (3 + 2 * 6) * 10**9
    assert chip.timing(Instruction(Unit.S, "scalar")).period == 4 * 10**9
    nops = Instruction(Unit.S, "scalar", fields={"cycles": 7})
    assert chip.timing(nops).period == 7 * 10**9
    assert chip.timing(Instruction(Unit.V, "set_flag", Kind.SET)).period == 0
    with pytest.raises(ValueError, match="mmad dtype must be one of fp16, not 'fp32'"):
        chip.cube.steps(1, 1, 1, "fp32")
    with pytest.raises(ValueError, match="cross_set must be on a chip with cross-core flags"):
        chip.timing(Instruction(Unit.S, "cross_set", Kind.SET))


def test_a_path_is_not_faster_than_its_bus():
    chip = read_chip(SMALL.replace('bus = "b"\ngb_per_s = 1', 'bus = "b"\ngb_per_s = 8'))
    move = Instruction(Unit.MTE2, "copy", path="GM->UB", work=Work(nbytes=3000))
    assert chip.timing(move).data == 1500 * 10**9


def test_measured_throughput_is_linear_in_time():
    points = ((1024, Fraction(100)), (2048, Fraction(120)), (4096, Fraction(200)))
    rate = Throughput(Fraction(4096, 100), points)
    times = [rate.seconds(n) for n in (0, 1, 1024, 1536, 2048, 3072, 4096, 8192)]
    assert times == [0, 100, 100, 110, 120, 160, 200, 300]


MISTAKES = [
    ("clock_mhz = 1000\n", "", 2, r"chip.clock_mhz is missing; it must be more than 0|a number"),
    ("clock_mhz = 1000", "clock_mhz = -1", 3, "chip.clock_mhz must be more than 0, not -1"),
    ("clock_mhz = 1000", "clock_mhz = nan", 3, "chip.clock_mhz must be a number, more than 0"),
    ("clock_mhz = 1000", 'clock_mhz = "1"', 3, "chip.clock_mhz must be a number"),
    ("clock_mhz = 1000", "clock_mhz = true", 3, "chip.clock_mhz must be a number"),
    ("launch_ns = 100", "launch_ns = -2.5", 4, "chip.launch_ns must be 0 or more, not -2.5"),
    ("event_registers = 8", "event_registers = 0", 7, "an integer, 1 or more, not 0"),
    (
        "flag_ns = 0",
        "flag_ns = 0\nflags = 1",
        7,
        "chip.flags must be one of the keys block_ns, clock_mhz",
    ),
    ('8\nsource = "made up"', "8", 2, "chip.source is missing; it must be where the numbers"),
    ("count = 2", "count = 2.5", 10, "core.one.count must be an integer, 1 or more, not 2.5"),
    (
        '"M", "MTE2"]',
        '"X"]',
        11,
        r"units must be a list of S, V, .*, not \['S', 'V', 'X'\]",
    ),
    ('["S", "V", "M", "MTE2"]', '["V", "M", "MTE2"]', 11, "must be a list that has S"),
    ("align = 32", "align = 33", 14, "core.one.buffer.UB.align must be a divisor of 4096 bytes"),
    ("kib = 4", "kb = 4", 14, "core.one.buffer.UB.bytes is missing"),
    ("UB = {", "GM = {", 14, "GM must not be a buffer of a core"),
    ("[2, 3]", "[3, 2]", 16, "bus.b.gb_per_s must be a list that does not fall"),
    ("[2, 3]", "[]", 16, "bus.b.gb_per_s must be a list of numbers more than 0"),
    ("GM->UB", "GM->L1", 18, r"path must be 'A->B' .* with A and B of GM, UB, not 'GM->L1'"),
    ("GM->UB", "GM to UB", 18, "path must be 'A->B'"),
    ("GM->UB", "GM->UB jump", 18, "operation of path 'GM->UB jump' must be in the vocabulary"),
    ('unit = "MTE2"', 'unit = "MTE3"', 19, r"unit must be a unit of a core .*both ends of GM->UB"),
    ('bus = "b"', 'bus = "c"', 20, "path.GM->UB.bus must be one of b, not 'c'"),
    ("gb_per_s = 1\n", "kib = [1, 1]\ngib_per_s = [1, 1]\n", 21, "kib must be a list .*, rising"),
    ("gb_per_s = 1\n", "kib = [1, 2]\ngib_per_s = [1]\n", 22, "gib_per_s must be a list of 2 num"),
    ("gb_per_s = 1\n", "kib = [1, 2]\ngib_per_s = [1, 9]\n", 22, "time does not fall at 2 KiB"),
    ("gb_per_s = 1\n", "", 18, "path.GM->UB.gb_per_s is missing"),
    ("vexp =", "vfoo =", 29, "vector.operation must be a vector operation, and .*, not 'vfoo'"),
    ("fp16 = 16", "half = 16", 38, "cube.depth must be of dtypes, not 'half'"),
    (
        "[scalar]",
        "[scaler]",
        40,
        r"scalar is missing \(scaler is not a key known here\); it must be",
    ),
    (
        "flag_ns = 0\n",
        "flags_ns = 0\n",
        6,
        r"flag_ns is missing \(chip.flags_ns is not a key known",
    ),
    ("launch_ns = 100\n", "", 2, "chip.launch_ns is missing; it must be a number, 0 or more"),
    (
        "start_ns = 7",
        "start_n = 7",
        29,
        "start_n must be one of the keys .*; the nearest is start_ns",
    ),
    (
        'bus = "b"',
        'bsu = "b"',
        20,
        "path.GM->UB.bsu must be one of the keys .*; the nearest is bus",
    ),
    ("[chip]", "[cros]\n[chip]", 2, "cros must be one of the tables .*; the nearest is cross"),
    ("[chip]", "[chip", 2, "chip must be a TOML file"),
    ("[chip]", "[extra]\n[chip]", 2, "extra must be one of the tables name, "),
    ('name = "toy"\n', "name = 3\n", 1, "name must be a text, not 3"),
]


@pytest.mark.parametrize(("old", "new", "line", "message"), MISTAKES)
def test_a_mistake_is_one_line_with_its_number(old, new, line, message):
    assert SMALL.count(old) >= 1
    with pytest.raises(ChipError) as error:
        read_chip(SMALL.replace(old, new, 1), "toy.toml")
    text = str(error.value)
    assert "\n" not in text and text.startswith(f"toy.toml:{line}: "), text
    assert re.search(message, text), text


@pytest.mark.parametrize("name", chip_names())
def test_every_number_that_is_missing_or_negative_is_found(name):
    """Removing or negating any line with a number makes the file invalid."""
    lines = (CHIPS / f"{name}.toml").read_text().splitlines()
    optional = re.compile(
        r"start_ns|latency_cycles|drain_ns|issue_ns|latency_ns|bursts|block_ns|per_group|fp16|bf16|fp32|u?int8|int4x2"
        r"|branch|set_mask|set_control"
    )
    count = 0
    for i, line in enumerate(lines):
        match = re.match(r"(\w+) = (\d[\d.]*)$", line)
        if not match:
            continue
        count += 1
        negative = [*lines[:i], f"{match[1]} = -1", *lines[i + 1 :]]
        with pytest.raises(ChipError, match=f"^x:{i + 1}: .*{match[1]} must be"):
            read_chip("\n".join(negative), "x")
        if not optional.match(match[1]):
            with pytest.raises(ChipError, match=r"^x:\d+: .*(is missing|must be)"):
                read_chip("\n".join([*lines[:i], *lines[i + 1 :]]), "x")
    assert count >= 15


def test_an_unknown_chip():
    with pytest.raises(ValueError, match=r"chip must be one of ascend310, .* file, not 'x'"):
        load_chip("x")


def test_your_own_chip(tmp_path):
    file = tmp_path / "toy.toml"
    file.write_text(SMALL)
    assert load_chip(file).clock_hz == 10**9 and load_chip(str(file)).name == "toy"
    assert round(Fraction(Decimal("1.5")) * ATTO) == 15 * 10**17


ABSURD = [
    (
        "clock_mhz = 1000",
        "clock_mhz = 1e999999999",
        3,
        "chip.clock_mhz must be 0.000001 … 1,000,000",
    ),
    ("clock_mhz = 1000", "clock_mhz = 1e-999999999", 3, "chip.clock_mhz must be 0.000001 … 1,000"),
    (
        "clock_mhz = 1000",
        f"clock_mhz = 1e{'9' * 30}",
        3,
        "chip.clock_mhz must be a number, more th",
    ),
    ("clock_mhz = 1000", f"clock_mhz = {'9' * 4000}", 3, "000 with .*, not an integer of 13288 bi"),
    ("clock_mhz = 1000", f"clock_mhz = {'9' * 9000}", 3, "a TOML file with numbers 0.000001 … 1,"),
    ("clock_mhz = 1000", f"clock_mhz = 1.{'1' * 99999}", 3, "chip.clock_mhz must be .* 30 digits"),
    ("clock_mhz = 1000", "clock_mhz = inf", 3, "chip.clock_mhz must be a number, more than 0"),
    ("launch_ns = 100", "launch_ns = 1e10", 4, "launch_ns must be .* 30 digits, or 0, not 1E\\+10"),
    (
        "count = 2",
        "count = 1000000000",
        10,
        "core.one.count must be an integer, 1 … 1024, not 1000",
    ),
    ("event_registers = 8", "event_registers = 4000000", 7, "must be an integer, 1 … 1024, not 4"),
    (
        "kib = 4",
        "kib = 4_000_000_000",
        14,
        "UB.kib must be an integer, 1 … 1048576, not 4000000000",
    ),
    ("m = 16", "m = 1_000_000", 32, "cube.m must be an integer, 1 … 1024, not 1000000"),
    ("[2, 3]", "[2, nan]", 16, "bus.b.gb_per_s must be a list of numbers more than 0"),
    (
        "[2, 3]",
        "[2, 1e99999999]",
        16,
        "gb_per_s must be a list of at most 1024 numbers, each 0.000",
    ),
    ("[2, 3]", f"[{'1,' * 9999}]", 16, "gb_per_s must be a list of at most 1024 numbers, each 0.0"),
    (
        "count = 2",
        f"count = {'[' * 20000}",
        1,
        "a TOML file of tables and lists that nest less deep",
    ),
    ("[chip]", f"{'a.' * 30000}a = 1\n[chip]", 2, "a line of a chip must have at most 1000 dots"),
    ("[chip]", f"{'a.' * 900}a = 1\n[chip]", 1, "a must be one of the tables name, "),
]


@pytest.mark.parametrize(("old", "new", "line", "message"), ABSURD)
def test_an_absurd_number_or_nesting_is_refused_at_once(old, new, line, message):
    before = process_time()
    test_a_mistake_is_one_line_with_its_number(old, new, line, message)
    assert process_time() - before < 2


def test_a_chip_file_must_be_text_of_a_sensible_size(tmp_path):
    file = tmp_path / "toy.toml"
    file.write_bytes(SMALL.encode() + b"\n# \xff")
    lines = SMALL.count("\n") + 2
    with pytest.raises(ChipError, match=rf"toy.toml:{lines}: chip must be a TOML file in UTF-8$"):
        load_chip(file)
    file.write_bytes(b"#" * (1 << 20))
    with pytest.raises(ChipError, match=r"toy.toml: chip must be a file of at most 131,072 bytes"):
        load_chip(file)
    file.write_bytes(b"\xef\xbb\xbf" + SMALL.encode())
    assert load_chip(file).name == "toy", "a byte order mark is no mistake"
    file.write_bytes(b"")
    with pytest.raises(ChipError, match=r"toy.toml:1: name is missing; it must be a text$"):
        load_chip(file)


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_a_chip_that_is_no_file_is_refused(make, tmp_path):
    make(tmp_path / "odd.toml")
    with pytest.raises(ValueError, match=r"chip must be one of .* or a TOML file, not "):
        load_chip(tmp_path / "odd.toml")


def test_an_instruction_of_a_slow_chip_stays_within_simulated_time():
    chip = read_chip(SMALL.replace('bus = "b"\ngb_per_s = 1', "gb_per_s = 0.000001"))
    move = Instruction(Unit.MTE2, "copy", path="GM->UB", work=Work(nbytes=1 << 20))
    with pytest.raises(
        ValueError, match=r"time of an instruction must stay below 4.6 s, not 1.05e"
    ):
        chip.timing(move)


def test_a_chip_without_fp16_has_no_peak_of_it():
    assert read_chip(SMALL.replace("fp16 = 16", "int8 = 16")).peak_operations("fp16") == 0


@pytest.mark.parametrize("kernel", ["matmul", "mte1A", "cce-cube"])
def test_a_chip_that_lacks_a_memory_is_refused(kernel):
    text = (CHIPS / "ascend310.toml").read_text().replace("L0A", "LX")
    with pytest.raises(
        ValueError, match=r"cores with all units|with a Cube|must be one of .*, not .*L0A'"
    ):
        KERNELS[kernel].build(chip=read_chip(text))


def test_a_chip_with_few_event_registers_is_tuned():
    text = (CHIPS / "ascend310.toml").read_text()
    chip = read_chip(text.replace("event_registers = 8", "event_registers = 2"))
    plan = tiling.plan(chip, (4, 4, 4), tiling.Tiling(2, 2, 2, 2), 1)
    assert len(sequences.lower_matmul(chip, plan)) > 0


def test_a_latency_is_paid_once_by_paths_and_vector_operations():
    """A constant throughput does not contain it; cycles and nanoseconds mean the same."""
    text = find_chip("ascend910").read_text(encoding="utf-8")
    chip = read_chip(text)
    route, plain = (chip.route("L1", "L0A", op) for op in ("im2col", "copy"))
    lane = chip.vector["col2im"]
    assert route.latency_s == 5 / chip.clock_hz and lane.latency_s == 7 / chip.clock_hz
    assert plain.latency_s == 0 and route.init_s == plain.init_s
    for nbytes in (512, 5120):
        init, data, drain = route.seconds(nbytes)
        assert (init, drain) == (route.init_s, 0)
        assert data == route.latency_s + nbytes / route.rate.bytes_per_s
    assert route.seconds(0) == (route.init_s, 0, 0)
    assert lane.seconds(3) == lane.init_s + lane.latency_s + 3 * lane.repeat_s
    assert text.count("latency_cycles = 5\n") == 3
    ns = float(5 / chip.clock_hz * 10**9)
    same = read_chip(
        text.replace("latency_cycles", "latency_ns").replace("_ns = 5\n", f"_ns = {ns}\n")
    )
    assert float(same.route("L1", "L0A", "im2col").latency_s) == pytest.approx(ns / 1e9)
    with pytest.raises(ChipError, match="latency_ns must be left out beside latency_cycles"):
        read_chip(text.replace("latency_cycles = 5\n", "latency_cycles = 5\nlatency_ns = 5\n", 1))


def test_an_empty_transfer_with_bursts_takes_no_time_on_the_bus():
    route = load_chip("ascend910b").route("GM", "L1", "nd2nz")
    assert route.bursts and route.seconds(0, 3) == (route.init_s, 0, 0)

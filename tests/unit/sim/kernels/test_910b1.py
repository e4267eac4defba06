"""The chip file of the 910B against the measurements of instructions from which it was made.

The measurements (tables of msKPP for one core) are read from ``../shared/data/ascend910b1``; the
project contains only the numbers in ``sim/chips/ascend910b.toml``.
"""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

from vitruvian.sim.davinci import OPERATIONS, Instruction, Unit, View, Work, load_chip

DATA = Path(__file__).parents[5] / "shared" / "data" / "ascend910b1"
CHIP = load_chip("ascend910b")

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="measurements are not here")

#: Tables in which some rows are a hundred times their neighbours.
DISTURBED = ("VMULS_FP16_FP16_FP16", "VMULS_FP32_FP32_FP32", "VMUL_INT16_INT16_INT16")

#: Operations and dtypes that the simulator does not have.
UNKNOWN = r"CONVDEQ|RELUCONV|VMULCONV|VCONVVDEQ|VCOPY|VGATHERB|VREDUCE_|INT4"

#: The simulator's names for operations of the tables.
ALIAS = {"vectordup": "vdup", "vreducev2": "vreduce"}


def tables(kind):
    """Yield (name, rows) for all tables of a kind."""
    for path in sorted(DATA.glob(f"g_{kind}TypeMap__*.csv")):
        name = re.sub(r"(_1_core)?_910b1$", "", path.stem.split("__")[1])
        with path.open() as file:
            rows = [
                list(map(float, row)) for row in csv.reader(file) if row and row[0][0].isdigit()
            ]
        yield name, np.array(rows)


def cycles(op, source, target, repeats, chip=CHIP):
    """Return the cycles of a vector instruction at the chip's clock."""
    operands = {
        name: View("UB", 0, t, (1,), (1,)) for name, t in (("src", source), ("dst", target))
    }
    instr = Instruction(Unit.V, op, operands=operands, work=Work(repeats=repeats))
    return chip.timing(instr).period / 1e18 * float(chip.clock_hz)


def misses(chip):
    """Return the vector tables, and their entries that differ by over 1.1 cycles and 3 per cent."""
    seen, wrong = [], []
    for name, rows in tables("vec"):
        if re.search(UNKNOWN, name) or name in DISTURBED:
            continue
        op, source, *_, target = name.lower().split("_")
        op = ALIAS.get(op, op)
        assert op in OPERATIONS, name
        repeats, measured = rows[:, 3].astype(int), rows[:, 4]
        kept = measured > 0
        if op.startswith("vcmpv"):
            kept &= repeats % 4 == 0  # whole blocks of bits; the others take five cycles more
        ours = np.array([cycles(op, source, target, r, chip) for r in repeats[kept].tolist()])
        # For unknown reasons a single repeat takes 4.03 cycles for some dtypes, 3.03 for others.
        far = np.abs(ours - measured[kept]) > np.maximum(1.1, 0.03 * measured[kept])
        seen.append(name)
        wrong += [(name, int(r)) for r in repeats[kept][far]]
    return seen, wrong


def test_vector_instructions():
    seen, wrong = misses(CHIP)
    assert len(seen) > 120 and not wrong


def test_a_wrong_number_is_noticed(tmp_path):
    from vitruvian.sim.davinci.chip.file import find_chip

    text = find_chip("ascend910b").read_text(encoding="utf-8")
    line = '"vexp fp32" = { repeats_factor = 2,'
    assert line in text
    file = tmp_path / "other.toml"
    file.write_text(text.replace(line, line.replace("2,", "2.2,")), encoding="utf-8")
    assert {name for name, _ in misses(load_chip(str(file)))[1]} == {"VEXP_FP32_FP32"}


def test_moves():
    seen = 0
    for kind, grain in (("mov", 1024), ("movRepeat", 512)):
        for name, rows in tables(kind):
            source, target = name.removesuffix("_TRANS").split("_TO_")
            sizes = (rows[:, 0] * grain).astype(int)
            if name == "GM_TO_L1_TRANS":
                rows, sizes = rows[sizes % 32768 == 0], sizes[sizes % 32768 == 0]  # see the file
            rate = CHIP.route(source, target, "nd2nz" if "L1_TRANS" in name else "copy").rate
            ours = np.array([float(rate.seconds(n)) for n in sizes.tolist()])
            off = np.abs(ours * rows[:, 1] * 2**30 / sizes - 1)
            # Neighbouring sizes differ by up to a tenth in the data, and the file holds only some.
            assert np.median(off) < 0.04 and np.quantile(off, 0.9) < 0.13, name
            seen += 1
    assert seen == 15


def test_matrix_instructions():
    """The measurements fit one step per cycle at 2 GHz; the file uses those cycles at its clock.

    Its start of 4.9 cycles is that of two steps; products of four and more start a cycle earlier.
    """
    ((_, rows),) = tables("mmad")
    cube = CHIP.cube
    assert cube is not None and len(rows) == 64
    for _, m, k, n, giga, multiplications in rows.tolist():
        steps = cube.steps(int(m), int(k), int(n), "fp16")
        seconds = float(cube.init_s + cube.start_s + steps * cube.step_s)
        assert abs(seconds * float(CHIP.clock_hz) - multiplications / giga * 2) < 1.5, (m, k, n)

"""The AXI4 master of a core, and a core between AXI ports, with the memory of cocotbext-axi."""

from pathlib import Path

import numpy as np
import pytest

import vitruvian.hdl.core.axi_master
from vitruvian.hdl.core.registers import CoreRegisters
from vitruvian.sim.bench.core import bench_axi_master, bench_core_axi
from vitruvian.sim.bench.runner import run_bench
from vitruvian.sim.davinci.chip.file import load_chip
from vitruvian.sim.davinci.isa.instruction import Unit
from vitruvian.sim.davinci.machine_code.chip import core_chip
from vitruvian.sim.davinci.machine_code.core import assemble, core_product
from vitruvian.sim.davinci.machine_code.encode import Texts
from vitruvian.sim.davinci.program.program import Program
from vitruvian.sim.davinci.semantics import Functional
from vitruvian.sim.rtl.emit import to_verilog

pytest.importorskip("cocotbext.axi", reason="needs cocotbext-axi, a package of the extra test")


def run(bench, **given):
    design = to_verilog(bench.unit_of(given))
    return run_bench(design, bench.__name__, parameters=given)


@pytest.mark.parametrize(
    ("width", "burst_blocks", "starts"),
    [
        (64, 8, 10),
        *(
            pytest.param(width, most, 128, marks=pytest.mark.long)
            for width in (64, 128, 256)
            for most in (1, 2, 16)
        ),
        *(pytest.param(width, 8, 128, marks=pytest.mark.long) for width in (64, 128, 256)),
    ],
)
def test_the_master(width, burst_blocks, starts):
    given = {"width": width, "burst_blocks": burst_blocks, "count": 10, "starts": starts}
    result = run(bench_axi_master, **given)
    assert result.passed and result.tests == 8, result.failures


def program_of(config, seed):
    """Return the words of a program that uses every unit, and memory before and after it."""
    random = np.random.default_rng(seed)
    chip = core_chip(config) if config.fix else load_chip("ascend310")
    program = Program(chip, "every unit")
    core = program.core()
    x, y = (
        program.tensor(name, (256,), "fp16", random.normal(size=256).astype(np.float16))
        for name in "xy"
    )
    sums = program.tensor("sums", (256,), "fp16")
    product = program.tensor("product", (256,), "fp32")
    flag = program.tensor("flag", (8,), "int32")
    u, v, w = (core.view("UB", 512 * n, (256,), "fp16") for n in range(3))
    core.copy(u, x)
    core.copy(v, y)
    core.set_flag(Unit.MTE2, Unit.V, 0)
    a = core.view("L1", 0, (256,), "fp16")
    core.copy(a, x)
    core.set_flag(Unit.MTE2, Unit.MTE1, 1)
    core.wait_flag(Unit.MTE2, Unit.V, 0)
    core.vector("vadd", {"dst": w, "src0": u, "src1": v}, repeat=2)
    core.set_flag(Unit.V, Unit.MTE3, 2)
    core.wait_flag(Unit.MTE2, Unit.MTE1, 1)
    for name in ("L0A", "L0B"):
        core.load(core.view(name, 0, (256,), "fp16"), a, repeat=1)
    core.set_flag(Unit.MTE1, Unit.M, 3)
    core.wait_flag(Unit.MTE1, Unit.M, 3)
    c = core.view("L0C", 0, (256,), "fp32")
    left, right = (core.view(name, 0, (1,), "fp16") for name in ("L0A", "L0B"))
    core.mmad(c, left, right, m=16, k=16, n=16, init="zero")
    core.set_flag(Unit.M, Unit.V, 4)
    core.wait_flag(Unit.M, Unit.V, 4)
    out = core.view("UB", 2048, (256,), "fp32")
    core.matrix_out(out, c, m=16, n=16)
    core.set_flag(Unit.V, Unit.MTE3, 5)
    core.wait_flag(Unit.V, Unit.MTE3, 2)
    core.copy(sums, w)
    core.wait_flag(Unit.V, Unit.MTE3, 5)
    core.copy(product, out)
    if config.fix:
        core.set_flag(Unit.M, Unit.FIX, 6)
        core.wait_flag(Unit.M, Unit.FIX, 6)
        core.matrix_out(program.tensor("fixed", (256,), "fp32"), c, m=16, n=16)
    core.pipe_barrier()
    core.scalar_store(flag[0:1], 7)
    functional = Functional(program, core_product(config))
    before = functional.gm.copy()
    functional.run()
    return assemble(core.instructions, config, Texts()), before, functional.gm


def run_core(core, width, count):
    given = {"core": core, "width": width, "count": count}
    words, before, after = program_of(bench_core_axi.unit_of(given).config, 1)
    memory = {"before": before.tobytes().hex(), "after": after.tobytes().hex()}
    return run(bench_core_axi, **given, words=[int(word) for word in words], **memory)


@pytest.mark.parametrize(
    ("core", "width"),
    [
        pytest.param("least", 64, marks=pytest.mark.long),
        pytest.param("least", 256, marks=pytest.mark.long),
        pytest.param("fix", 128, marks=pytest.mark.long),
        pytest.param("tiny", 64, marks=pytest.mark.long),
    ],
)
def test_a_core(core, width):
    result = run_core(core, width, 5)
    assert result.passed and result.tests == 8, result.failures


@pytest.mark.long
def test_a_reset_that_does_not_wait_for_the_bus_fails(monkeypatch):
    elaborate = CoreRegisters.elaborate

    def hasty(self, platform):
        m = elaborate(self, platform)
        m.d.comb += self.clear.eq(self.hold)  # the last assignment counts
        return m

    monkeypatch.setattr(CoreRegisters, "elaborate", hasty)
    result = run_core("least", 64, 5)
    assert set(result.failures) >= {"resets_in_the_middle"}, result.failures


def changed(monkeypatch, old, new):
    """Replace a text of the master's module, which must occur once."""
    module = vitruvian.hdl.core.axi_master
    source = Path(module.__file__).read_text()
    assert source.count(old) == 1, old
    names = {"__name__": module.__name__, "__package__": module.__package__}
    exec(compile(source.replace(old, new), module.__file__, "exec"), names)
    monkeypatch.setattr(bench_axi_master, "AxiMaster", names["AxiMaster"])


@pytest.mark.parametrize(
    ("old", "new", "failing"),
    [
        ("& (following[:_PAGE_BITS] != 0)", "", "every_place_in_a_page"),
        pytest.param(
            "free.eq(~full | channel.ready)",
            "free.eq(1)",
            "random_runs/rate=0.5/latency=0",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "chosen = collector.offers & (~others | (turn == n))",
            "chosen = collector.offers & (~others | (n == 0))",
            "program_and_data_take_turns",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "failed.eq(~last & (failed | bad))",
            "failed.eq(0)",
            "errors_come_with_their_blocks",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "request.eq(port.request & ~self.hold)\n            c =",
            "request.eq(port.request)\n            c =",
            "hold_ends_in_order",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "(bursts != 0) | (c.open & (c.source == n))",
            "(bursts != 0)",
            "random_runs/rate=0.0/latency=0",
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_mutant_of_the_master_fails(monkeypatch, old, new, failing):
    changed(monkeypatch, old, new)
    given = {"width": 64, "burst_blocks": 8, "count": 10, "starts": 10}
    result = run(bench_axi_master, **given)
    assert failing in result.failures, result.failures.keys()

"""The event engine predicts the cycles of the compiled core, from parameters alone."""

from dataclasses import replace

import numpy as np
import pytest

from vitruvian.cli import main
from vitruvian.golden.scu import Patches
from vitruvian.sim.davinci import Deadlock, Program, Unit, load_chip, simulate
from vitruvian.sim.davinci.machine_code import core as on_core
from vitruvian.sim.davinci.machine_code.chip import core_chip, core_chip_text
from vitruvian.sim.davinci.machine_code.core import core_product, predicted_cycles, run_on_core
from vitruvian.sim.davinci.machine_code.random_programs import RandomProgram
from vitruvian.sim.davinci.machine_code.verify import compare_program
from vitruvian.sim.davinci.timing.engine import run
from vitruvian.sim.davinci.timing.lowering import lower
from vitruvian.sim.davinci.timing.reference import as_arrays, run_reference
from vitruvian.sim.kernels import KERNELS

CHIP = load_chip("ascend310")
CORES = ("tiny", "plain")


def error(program, core, latency=1):
    """Return prediction over measurement, minus 1, with a memory of some cycles."""
    cycles = run_on_core(program, core, latency=latency).run.cycles
    return predicted_cycles(program, core, latency=latency) / cycles - 1


def kernel(name, size=None):
    return KERNELS[name].build(size, chip=CHIP, cores=1).program


class Maker:
    """A program of one core, with short names for what it appends."""

    def __init__(self):
        self.program = Program(CHIP)
        self.core = self.program.core()
        self.memory = self.program.tensor("x", (1 << 15,), "uint8", np.zeros(1 << 15, np.uint8))

    def view(self, buffer, byte, dtype="fp16", count=1):
        return self.core.view(buffer, byte, (count,), dtype)

    def copy(self, target, byte, count, at=0):
        self.core.copy(self.view(target, byte, "uint8", count), self.memory[at : at + count])

    def lanes(self, op, sources, repeat, **fields):
        names = ["src0", "src1"] if sources == 2 else ["src"] * sources
        views = {name: self.view("UB", 8192 * (i + 1)) for i, name in enumerate(names)}
        views = {"dst": self.view("UB", 0), **views}
        self.core.vector(op, views, repeat=repeat, strides={}, **fields)

    def product(self, m, k, n, init):
        a, b, c = self.view("L0A", 0), self.view("L0B", 0), self.view("L0C", 0, "fp32")
        self.core.mmad(c, a, b, m=m, k=k, n=n, init=init)


def _moves(make):
    make.copy("UB", 0, 3200)
    make.core.pipe_barrier()
    make.copy("UB", 4, 3200)  # every block in two pieces
    make.core.pipe_barrier()
    make.copy("L1", 7, 100, at=3)
    make.core.copy(make.memory[:640], make.view("UB", 32, "uint8", 640))
    make.core.fill(make.view("UB", 4096, count=640), 1.0)


def _fractals(make):
    x = make.program.tensor("y", (400,), "fp16", np.zeros(400, np.float16))
    make.core.nd2nz(make.view("L1", 0), x, rows=9, columns=40, src_row_stride=82)
    make.core.pipe_barrier()
    make.core.load(make.view("L0A", 0), make.view("L1", 0), repeat=3)
    make.core.load(make.view("L0B", 0), make.view("L1", 0), repeat=2, transpose=True)


def _images(make):
    patches = Patches(height=8, width=8, kernel=(3, 3), stride=(1, 1), pad=(1, 1, 1, 1))
    make.core.im2col(make.view("L0A", 0), make.view("L1", 0), patches, repeat=4)
    make.core.pipe_barrier()
    target, source = make.view("UB", 0), make.view("UB", 16384)
    make.core.col2im(target, source, patches, repeat=3, kernel_position=(0, 1))


def _vectors(make):
    for op, sources, fields in (
        ("vadd", 2, {}),
        ("vadds", 1, {"scalar": 1.0}),
        ("vrelu", 1, {"mask": 1}),
        ("vdup", 0, {"scalar": 2.0}),
    ):
        for repeat in (1, 5):
            make.lanes(op, sources, repeat, **fields)
            make.core.pipe_barrier(Unit.V)


def _products(make):
    for sizes in ((16, 16, 16), (4, 64, 4), (12, 40, 20), (64, 64, 32)):
        for init in ("zero", "accumulate"):
            make.product(*sizes, init)


def _synchronised(make):
    for number in range(12):
        make.copy("UB", 32 * number, 64)
        make.core.set_flag(Unit.MTE2, Unit.V, number % 8)
        make.core.wait_flag(Unit.MTE2, Unit.V, number % 8)
        make.lanes("vadd", 2, 1)
        make.core.set_flag(Unit.V, Unit.S, 0)
        make.core.wait_flag(Unit.V, Unit.S, 0)
        make.core.scalar()


def _extension(make):
    for op, sources, fields in (
        ("vmla", 2, {}),
        ("vaxpy", 1, {"scalar": 2.0}),
        ("vdiv", 2, {}),
        ("vrsqrt", 1, {}),
    ):
        for repeat in (1, 3):
            make.lanes(op, sources, repeat, **fields)
    for word in ("int16", "int32"):
        views = {"dst": make.view("UB", 0, word), "src": make.view("UB", 8192, word)}
        make.core.vector("vshr", views, repeat=2, strides={}, amount=3)
    for op, sources, fields in (
        ("vaddrelu", 2, {}),
        ("vlrelu", 1, {"scalar": 2.0}),
        ("vabs", 1, {}),
    ):
        for repeat in (1, 3):
            make.lanes(op, sources, repeat, **fields)
            make.core.pipe_barrier(Unit.V)
    for kind in ("int8", "uint8"):
        views = {"dst": make.view("UB", 0), "src": make.view("UB", 8192, kind)}
        make.core.vector("vconv", views, repeat=2, strides={})
        make.core.pipe_barrier(Unit.V)
    make.core.vtranspose(make.view("UB", 0), make.view("UB", 8192))


def fixed(m, n, dtype, layout, relu=False, buffer="GM"):
    """Return a program that moves results of L0C to a tensor, or to L1 and from there to one."""
    program = Program(core_chip("plain"))
    core, rng = program.core(), np.random.default_rng(m)
    x = program.tensor("x", (4096,), "fp16", rng.standard_normal(4096).astype(np.float16))
    size = 4 if dtype == "fp32" else 2
    y = program.tensor("y", (8192,), dtype, np.full(8192, -7, f"f{size}"))
    core.copy(core.view("L1", 0, (4096,), "fp16"), x)
    core.pipe_barrier()
    for name, at in (("L0A", 0), ("L0B", 2048)):
        source = core.view("L1", at, (1,), "fp16")
        core.load(core.view(name, 0, (1,), "fp16"), source, repeat=4)
    core.pipe_barrier()
    a, b = (core.view(name, 0, (1,), "fp16") for name in ("L0A", "L0B"))
    sums = core.view("L0C", 0, (1,), "fp32")
    core.mmad(sums, a, b, m=32, k=32, n=32, init="zero")
    core.pipe_barrier()
    target = y if buffer == "GM" else core.view("L1", 8192, (4096,), dtype)
    stride = m * 16 * size if layout == "nz" else 64 * size
    core.matrix_out(
        *(target, sums), m=m, n=n, src_stride=2048, dst_stride=stride, relu=relu, layout=layout
    )
    core.pipe_barrier()
    if buffer == "L1":
        core.copy(core.view("UB", 0, (m * n,), dtype), target[: m * n])
        core.pipe_barrier()
        core.copy(y[: m * n], core.view("UB", 0, (m * n,), dtype))
    return program


@pytest.mark.parametrize(
    "arguments",
    [
        (32, 32, "fp32", "nd"),
        (32, 32, "fp16", "nd", True),
        (17, 20, "fp32", "nd", True),
        (5, 27, "fp16", "nd"),
        (32, 32, "fp16", "nz"),
        (7, 17, "fp32", "nz"),
        (16, 32, "fp16", "nz", True, "L1"),
    ],
)
def test_the_unit_fix_is_right_and_predicted(arguments):
    program = fixed(*arguments)
    assert not compare_program(program, "plain").mismatches
    assert error(program, "plain") == 0


PARTS = {
    each.__name__.strip("_"): each
    for each in (_moves, _fractals, _images, _vectors, _products, _synchronised)
}


def test_the_extension_is_predicted_to_the_cycle():
    make = Maker()
    _extension(make)
    assert error(make.program, "plain") == 0


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("part", PARTS)
def test_a_unit_alone_is_predicted_to_the_cycle(core, part):
    make = Maker()
    PARTS[part](make)
    assert error(make.program, core) == 0


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("matmul", (32, 48, 32)),
        ("maxpool-im2col", None),
        ("maxpool-strided", None),
        ("maxpool-backward-im2col", None),
        ("reluKer", None),
        ("cast-fp32-fp16", None),
        ("kselect-heap", None),
        ("series-estrin", None),
        ("cce-scale-add", None),
        ("mte2+3Con", None),
    ],
)
def test_a_kernel_is_predicted_within_one_per_cent(core, name, size):
    """The goals are 1 % if one unit bounds a kernel, and 3 % with contention."""
    assert abs(error(kernel(name, size), core)) <= 0.01


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("latency", [1, 20, 100])
def test_random_programs_are_predicted_within_one_per_cent(core, latency):
    """No formula was made with these programs."""
    programs = [RandomProgram(seed, core).program for seed in range(5000, 5004)]
    assert max(abs(error(program, core, latency)) for program in programs) <= 0.01


@pytest.mark.parametrize("name", ["matmul", "kselect-heap", "cce-scale-add", "maxpool-im2col"])
@pytest.mark.parametrize("latency", [7, 60])
def test_the_fetch_and_the_loads_are_predicted_with_a_slow_memory(name, latency):
    size = (32, 48, 32) if name == "matmul" else None
    assert abs(error(kernel(name, size), "tiny", latency)) <= 0.01


@pytest.mark.long
def test_a_wide_core_is_right_and_predicted():
    """The model of ``small`` takes minutes to build. Units meet at banks as often as on average."""
    for part in (*PARTS.values(), _extension):
        make = Maker()
        part(make)
        assert error(make.program, "small") == 0, part.__name__
    for seed in range(5000, 5010):
        program = RandomProgram(seed, "small").program
        assert not compare_program(program, "small").mismatches
        assert abs(error(program, "small")) <= 0.03
    for name in ("maxpool-im2col", "avgpool-direct", "softmax", "cube"):
        program = KERNELS[name].build(chip=core_chip("small"), cores=1).program
        assert abs(error(program, "small")) <= 0.03, name


@pytest.mark.parametrize("key", ["stages", "queue_words", "ahead"])
def test_a_wrong_parameter_is_noticed(key, monkeypatch):
    """A rank more, a shorter queue, or fewer blocks ahead change a prediction."""
    make = Maker()
    _moves(make) if key == "ahead" else _vectors(make)
    make.copy("UB", 0, 1 << 14)
    right = predicted_cycles(make.program, "tiny")
    chip = core_chip("tiny")
    assert chip.hardware is not None
    wrong = {"stages": 5, "queue_words": 8, "ahead": 2}[key]
    hardware = replace(chip.hardware, **{key: wrong})
    monkeypatch.setattr(
        on_core, "core_chip", lambda *a, **k: replace(chip, hardware=hardware, _known={})
    )
    assert predicted_cycles(make.program, "tiny") != right


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize(("latency", "block_bytes"), [(1, 0), (1, 256), (50, 0)])
def test_both_engines_agree_about_words_and_ports(core, latency, block_bytes):
    programs = [RandomProgram(seed, core).program for seed in range(4)]
    programs += [kernel(name) for name in ("reluKer", "maxpool-im2col", "cce-scale-add")]
    for program in programs:
        lowered, _ = lower(program, core_chip(core, memory_latency=latency))
        times = run(lowered, block_bytes=block_bytes)
        found = as_arrays(run_reference(lowered, block_bytes=block_bytes))
        for mine, other in zip((times.start, times.end, times.issued), found, strict=True):
            np.testing.assert_array_equal(mine, other)


def test_an_accepted_program_can_deadlock_with_finite_queues():
    """V waits for a flag that stands behind more words than its queue holds."""
    make = Maker()
    make.core.wait_flag(Unit.MTE2, Unit.V, 0)
    for _ in range(20):
        make.lanes("vadd", 2, 1)
    make.copy("UB", 0, 64)
    make.core.set_flag(Unit.MTE2, Unit.V, 0)
    report = simulate(make.program)
    assert not [f for f in report.findings if f.check == "deadlock"]
    text = r"wait_flag\(MTE2, V, 0\) at .* on V, which waits for vadd.*S, as the queue of V is full"
    with pytest.raises(Deadlock, match=text):
        predicted_cycles(make.program, "tiny")


def test_the_chip_file_is_a_chip(tmp_path, capsys):
    path = tmp_path / "tiny.toml"
    assert main(["core", "describe", "tiny", "--out", str(path)]) == 0
    chip = load_chip(path)
    assert chip.hardware == core_chip("tiny").hardware and chip.name == "tiny"
    program = kernel("maxpool-im2col")
    assert simulate(program, chip).times.total == simulate(program, core_chip("tiny")).times.total
    assert (
        main(["kernel", "matmul", "--size", "32x32x32", "--chip", str(path), "--cores", "1"]) == 0
    )
    assert "0 differ" in capsys.readouterr().out
    with pytest.raises(ValueError, match="memory_latency"):
        core_chip_text("tiny", memory_latency=0)


def test_simulate_runs_the_core():
    program = kernel("matmul", (32, 48, 32))
    report = simulate(program, core="tiny")
    wanted = simulate(program, cube=core_product("tiny"))
    for name, array in wanted.outputs.items():
        np.testing.assert_array_equal(report.outputs[name], array)
    assert report.core is not None and report.core.busy["M"] > 0
    assert report.core.cycles == round(report.total_s * float(report.chip.clock_hz))
    with pytest.raises(ValueError, match="core must come without chip"):
        simulate(program, "ascend310", core="tiny")

"""``sim.davinci.simulate``: times, checks and data in one call."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vitruvian.sim.davinci import Deadlock, Program, Unit, load_chip, simulate
from vitruvian.sim.davinci.semantics import Functional

ROOT = Path(__file__).parents[4]
CHIP = load_chip("ascend310")
S, V, M, MTE1, MTE2, MTE3 = list(Unit)[:6]


def matmul(cores: int = 1, *, flags: bool = True, data: bool = True) -> tuple[Program, np.ndarray]:
    """Return y = relu(a·b) for 64×32 by 32×48 with the rows divided among cores, and the result."""
    rng = np.random.default_rng(7)
    a = rng.integers(-4, 5, (64, 32)).astype(np.float16)
    b = rng.integers(-4, 5, (32, 48)).astype(np.float16)
    program = Program(CHIP, "matmul")
    x = program.tensor("a", a.shape, "fp16", a if data else None)
    w = program.tensor("b", b.shape, "fp16", b if data else None)
    y = program.tensor("y", (cores, 3, 64 // cores, 16), "fp16")
    rows = 64 // cores
    for c in range(cores):
        core = program.core(c)

        def sync(source: Unit, target: Unit, core=core) -> None:
            if flags:
                core.set_flag(source, target, 0)
                core.wait_flag(source, target, 0)

        la, lb = core.allocate("L1", (rows * 32,), "fp16"), core.allocate("L1", (48 * 32,), "fp16")
        za, zb = (
            core.allocate("L0A", (rows * 32,), "fp16"),
            core.allocate("L0B", (48 * 32,), "fp16"),
        )
        out, u = (
            core.allocate("L0C", (rows * 48,), "fp32"),
            core.allocate("UB", (rows * 48,), "fp16"),
        )
        core.nd2nz(la, x[c * rows : (c + 1) * rows])
        core.nd2nz(lb, w)
        sync(MTE2, MTE1)
        blocks = rows // 16
        for r in range(blocks):  # columns of fractals to rows of fractals
            core.load(za[r * 512 :], la[r * 256 :], repeat=2, src_stride=blocks * 512)
        for r in range(2):
            core.load(zb[r * 768 :], lb[r * 256 :], repeat=3, src_stride=1024, transpose=True)
        sync(MTE1, M)
        core.mmad(out, za, zb, m=rows, k=32, n=48, init="zero")
        sync(M, V)
        core.matrix_out(u, out, m=rows, n=48)
        core.pipe_barrier(V)
        core.vrelu(u, u)
        sync(V, MTE3)
        core.copy(y[c], u.reshape(3, rows, 16))
    expected = np.maximum(a.astype(float) @ b.astype(float), 0).astype(np.float16)
    return program, expected


def unpacked(y: np.ndarray) -> np.ndarray:
    return y.transpose(0, 2, 1, 3).reshape(64, 48)


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("cube", ["golden", "fast"])
def test_data_and_times(cores, cube):
    program, expected = matmul(cores)
    report = simulate(program, cube=cube)
    assert not report.findings
    assert np.array_equal(unpacked(report.outputs["y"]), expected)
    assert report.total_s > float(CHIP.launch_s)
    assert report.path_bytes()["GM->L1"] == 2 * 32 * (64 + 48 * cores)
    assert report.operations()["M", "fp16"] == 2 * 64 * 32 * 48


def test_missing_flags_are_found_and_matter():
    program, expected = matmul(flags=False)
    report = simulate(program)
    races = [f for f in report.findings if f.check == "race"]
    assert len(races) >= 4
    assert not np.array_equal(unpacked(report.outputs["y"]), expected), "in the order of time"
    assert not simulate(program, checks=False).findings


def test_times_alone():
    program, _ = matmul(data=False)
    assert simulate(program).outputs == {}
    other, _ = matmul()
    report = simulate(other, cube=None)
    assert report.outputs == {} and report.total_ps == simulate(program).total_ps


def test_another_chip():
    program, _ = matmul(2)
    slow, fast = simulate(program, cube=None), simulate(program, "ascend910", cube=None)
    assert fast.chip.name == "ascend910" and fast.total_s < slow.total_s
    with pytest.raises(ValueError, match="kind of core must be one of cube, vector"):
        simulate(program, "ascend910b")


def test_a_product_may_say_how_long_it_takes():
    class Slow:
        def __call__(self, a, b, c, *dtypes):
            return c

        def period_s(self, instruction, chip):
            assert instruction.op == "mmad" and chip is CHIP
            return 1e-3

    program, _ = matmul()
    report = simulate(program, cube=Slow())
    assert 1e-3 < report.total_s < 1.1e-3


def test_offsets_and_blocks():
    program, _ = matmul(2, data=False)
    base = simulate(program).total_s
    late = simulate(program, offsets_s={("aicore", 1): 1e-6}).total_s
    assert base < late <= base + 1e-6
    assert simulate(program, block_bytes=256).total_s != base


def test_out_of_bounds_is_reported_and_not_computed():
    program, _ = matmul()
    core = program.core()
    core.copy(
        program.tensors["y"].reshape(3 * 64 * 16)[-16:], core.view("UB", 262128, (16,), "fp16")
    )
    report = simulate(program)
    assert "bounds" in {f.check for f in report.findings}
    assert report.outputs == {}


def test_a_deadlock_is_an_error():
    program = Program(CHIP)
    program.core().wait_flag(V, MTE3, 0)
    with pytest.raises(Deadlock, match="never comes"):
        simulate(program)


def test_the_examples_of_the_documentation(root, capsys):
    text = (root / "docs" / "units" / "davinci.md").read_text()
    code, rounds = re.findall(r"```python\n(.*?)```", text, re.S)
    names: dict = {}
    exec(compile(code, "davinci.md", "exec"), names)
    assert capsys.readouterr().out.startswith("relu on ascend310: ")
    assert not names["report"].findings
    assert (names["report"].outputs["y"] == 1).all()
    exec(compile(rounds, "davinci.md", "exec"), {})
    (shown,) = re.findall('"… (.*)"', rounds)
    assert shown in capsys.readouterr().out


def test_the_first_run_says_that_it_compiles(tmp_path):
    """A message appears once for each function, not for its callees, nor if the cache has it."""
    (tmp_path / "loops.py").write_text(
        "from vitruvian.common.compiling import tell_compiling\n"
        "tell_compiling(lambda name: print('compiling', name))\n"
        "import sys\n"
        "assert 'numba' not in sys.modules\n"
        "import numba\n"
        "@numba.njit(cache=True)\n"
        "def inner(x):\n"
        "    return x + 1\n"
        "@numba.njit(cache=True)\n"
        "def outer(x):\n"
        "    return inner(x) * 2\n"
        "print(outer(3))\n"
    )
    variables = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
    arguments = {"env": variables, "capture_output": True, "text": True, "check": True}
    runs = [subprocess.run([sys.executable, tmp_path / "loops.py"], **arguments) for _ in range(2)]
    assert [run.stdout for run in runs] == ["compiling outer\n8\n", "8\n"]


def test_a_terminal_is_told_that_numba_compiles(tmp_path):
    """Without a terminal there is no line, and a command's own line replaces it."""
    (tmp_path / "loops.py").write_text(
        "import sys\n"
        "from vitruvian.sim.davinci import Program, load_chip, simulate\n"
        "from vitruvian.common import compiling\n"
        "simulate(Program(load_chip('ascend310')))\n"
        "assert 'numba' not in sys.modules\n"
        "def one(x):\n"
        "    return x + 1\n"
        "def two(x):\n"
        "    return x + 2\n"
        "def three(x):\n"
        "    return x + 3\n"
        "compiling.compiled(one)(3)\n"
        "sys.stderr.isatty = lambda: True\n"
        "compiling.compiled(two)(3)\n"
        "compiling.tell_compiling(lambda name: print('compiling', name, file=sys.stderr))\n"
        "print(compiling.compiled(three)(3))\n"
    )
    variables = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(tmp_path / "loops.py")]
    run = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    assert run.stdout == "6\n"
    assert run.stderr == "compiling the simulator (once): two\ncompiling three\n"


def added(*, barrier: bool) -> tuple[Program, Functional]:
    """Return a program that adds twice, and the data after it."""
    program = Program(load_chip("ascend910b"))
    core = program.core(0, "vector")
    x = program.tensor("x", (128,), "fp16", np.ones(128, np.float16))
    y = program.tensor("y", (128,), "fp16")
    ub = core.allocate("UB", (128,), "fp16")
    core.copy(ub, x)
    core.set_flag(Unit.MTE2, Unit.V, 0)
    core.wait_flag(Unit.MTE2, Unit.V, 0)
    core.vadd(ub, ub, ub)
    if barrier:
        core.pipe_barrier(Unit.V)
    core.vadd(ub, ub, ub)
    core.set_flag(Unit.V, Unit.MTE3, 0)
    core.wait_flag(Unit.V, Unit.MTE3, 0)
    core.copy(y, ub)
    done = Functional(program, "golden")
    for instr in core.instructions:
        done.execute(core, instr)
    return program, done


def test_data_that_no_order_changes_are_not_computed_again():
    """Marked data show whether those of the recording are taken."""
    cases: list[tuple[bool, dict[str, Any], bool]] = [
        (True, {}, True),
        (False, {}, False),  # a finding
        (True, {"checks": False}, False),
        (True, {"cube": "fast"}, False),
    ]
    for barrier, options, taken in cases:
        program, done = added(barrier=barrier)
        assert (done.read("y") == 4).all()
        done.gm[-256:] = 0
        report = simulate(program, computed=done, **options)
        assert (report.outputs["y"] == 0).all() == taken, (barrier, options)
        assert bool(report.findings) == (not barrier)

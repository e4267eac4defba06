"""Broken kernels: each check reports its mistake at the right line, and accepts the repair."""

import re

import numpy as np
import pytest

from vitruvian.common import compiling
from vitruvian.sim.davinci import Program, Unit, load_chip
from vitruvian.sim.davinci.checks.check import CHECKS, check
from vitruvian.sim.davinci.timing import engine
from vitruvian.sim.davinci.timing.deadlock import Deadlock
from vitruvian.sim.davinci.timing.lowering import lower

CHIP, CHIP_B = load_chip("ascend310"), load_chip("ascend910b")
S, V, M, MTE1, MTE2, MTE3 = list(Unit)[:6]
FIX = Unit.FIX


@pytest.fixture(scope="module", autouse=True, params=["compiled", "plain"])
def form(request):
    """Small programs are checked by the same loops as plain Python; test both."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiling, "SMALL", 0 if request.param == "compiled" else 10**9)
        yield


class Kernel:
    """A core with tensors and short method names, to write kernels that lack something."""

    def __init__(self, chip=CHIP, kind=None):
        self.program = Program(chip)
        self.core = self.program.core(0, kind)
        self.x = self.program.tensor("x", (4, 1024), "fp16", np.zeros((4, 1024), np.float16))
        self.y = self.program.tensor("y", (4, 1024), "fp16")

    def ub(self, n=1024, dtype="fp16"):
        return self.core.allocate("UB", (n,), dtype)

    def sync(self, source, target, register=0):
        self.core.set_flag(source, target, register)
        self.core.wait_flag(source, target, register)


def relu(*, load=True, first=True, second=True, offset=0, length=1024, repeat=8, last=1024):
    k = Kernel()
    u = k.ub()
    if load:
        k.core.copy(u[:length], k.x[0, :length])
    if first:
        k.sync(MTE2, V)
    v = k.core.view("UB", u.offset + offset, (1024,), "fp16", "u")
    k.core.vrelu(v, v, repeat=repeat)
    if second:
        k.sync(V, MTE3)
    k.core.copy(k.y[3, :last], u[:last])
    return k.program


def double_buffer(*, back=True, register=1, buffers=2, epilogue=True):
    """Move four tiles through two buffers; ``back`` adds the flags that mark a buffer as free."""
    k = Kernel()
    u = [k.ub() for _ in range(buffers)]
    for t in range(2 if back else 0):
        k.core.set_flag(MTE3, MTE2, t * register)
    for t in range(4):
        b, e = t % 2 % buffers, t % 2 * register
        if back:
            k.core.wait_flag(MTE3, MTE2, e)
        k.core.copy(u[b], k.x[t])
        k.core.set_flag(MTE2, MTE3, e)
        k.core.wait_flag(MTE2, MTE3, e)
        k.core.copy(k.y[t], u[b])
        if back:
            k.core.set_flag(MTE3, MTE2, e)
    for t in range(2 if back and epilogue else 0):
        k.core.wait_flag(MTE3, MTE2, t * register)
    return k.program


def matmul(*, init="zero", flags=(0, 1, 2), m=64, fill=True):
    k = Kernel()
    c = k.core
    l1 = c.allocate("L1", (64, 64), "fp16")
    a, b = c.allocate("L0A", (4096,), "fp16"), c.allocate("L0B", (4096,), "fp16")
    out, u = c.allocate("L0C", (64, 64), "fp32"), c.allocate("UB", (64, 64), "fp16")
    x = k.x.reshape(64, 64)
    c.nd2nz(l1, x)
    if 0 in flags:
        k.sync(MTE2, MTE1)
    if fill:
        c.load(a, l1)
    c.load(b, l1, transpose=True)
    if 1 in flags:
        k.sync(MTE1, M)
    c.mmad(out, a, b, m=m, k=64, n=64, init=init)
    if 2 in flags:
        k.sync(M, V)
    c.matrix_out(u, out, m=64, n=64)
    k.sync(V, MTE3)
    c.copy(k.y, u.reshape(4, 1024))
    return k.program


def scalar(*, flag=True, back=True):
    """Read a scalar that MTE2 has loaded, and store one that MTE3 reads."""
    k = Kernel()
    u = k.ub()
    k.core.copy(u, k.x[0])
    if flag:
        k.sync(MTE2, S)
    k.core.scalar_load(u[5:6])
    k.core.scalar_store(u[0:1], 1)
    k.core.copy(k.y[0], u)
    if back:
        k.sync(MTE3, S)
    k.core.scalar_store(u[1:2], 1)
    return k.program


def barrier(*, there=True):
    k = Kernel()
    u = k.ub()
    k.core.copy(u, k.x[0])
    if there:
        k.core.pipe_barrier()
    k.core.vrelu(u, u)
    return k.program


def two_cores(*, row=1):
    program = Program(CHIP)
    y = program.tensor("y", (2, 512), "fp16")
    for c in range(2):
        core = program.core(c)
        u = core.allocate("UB", (512,), "fp16")
        core.vdup(u, 0.0)
        core.set_flag(V, MTE3, 0)
        core.wait_flag(V, MTE3, 0)
        core.copy(y[c * row], u)
    return program


def exchange(*, flag=True, back=True):
    """Send data from a Cube core to a vector core twice through the same global memory."""
    program = Program(CHIP_B)
    cube, vector = program.core(0, "cube"), program.core(0, "vector")
    w = program.tensor("w", (16, 16), "fp32")
    a, b = cube.allocate("L0A", (256,), "fp16"), cube.allocate("L0B", (256,), "fp16")
    c, u = cube.allocate("L0C", (16, 16), "fp32"), vector.allocate("UB", (16, 16), "fp32")
    cube.fill(a, 1)
    cube.fill(b, 1)
    cube.set_flag(MTE1, M, 0)
    cube.wait_flag(MTE1, M, 0)
    cube.mmad(c, a, b, m=16, k=16, n=16, init="zero")
    cube.set_flag(M, FIX, 0)
    cube.wait_flag(M, FIX, 0)
    for turn in range(2):
        cube.matrix_out(w, c, m=16, n=16, layout="nd")
        cube.cross_set(FIX, 1)
        if flag:
            vector.cross_wait(MTE2, 1)
        vector.copy(u, w)
        vector.cross_set(MTE2, 2)
        if back or turn:
            cube.cross_wait(FIX, 2)
    if not flag:
        vector.cross_wait(MTE2, 1)
        vector.cross_wait(MTE2, 1)
    if not back:
        cube.cross_wait(FIX, 2)
    return program


#: (check, pattern of its message, kernel, arguments that break it); without them it is correct.
CORPUS = [
    (
        "race",
        r"copy.* on MTE2 writes and vrelu.* on V reads UB\[0:2048\]; .*\(MTE2, V\)",
        relu,
        {"first": False},
    ),
    (
        "race",
        r"vrelu.* on V writes and copy.* on MTE3 reads UB\[0:2048\]; .*\(V, MTE3\)",
        relu,
        {"second": False},
    ),
    (
        "uninitialised",
        r"vrelu.* reads UB\[0:2048\], which nothing has written",
        relu,
        {"load": False},
    ),
    ("uninitialised", r"vrelu.* reads UB\[1024:2048\]", relu, {"length": 512}),
    (
        "alignment",
        r"has dst at byte 16 of UB, which must be a multiple of 32",
        relu,
        {"offset": 16, "repeat": 7},
    ),
    (
        "bounds",
        r"reads UB\[260096:264192\], which must be within the 262144 bytes of UB",
        relu,
        {"offset": 260096, "repeat": 16},
    ),
    (
        "race",
        r"copy.* on MTE3 reads and copy.* on MTE2 writes UB\[0:2048\]",
        double_buffer,
        {"buffers": 1},
    ),
    (
        "race",
        r"on MTE3 reads and copy.* on MTE2 writes UB\[0:2048\]; .*\(MTE3, MTE2\)",
        double_buffer,
        {"back": False},
    ),
    (
        "flag",
        r"set_flag\(MTE2, MTE3, 1\).* can be set again before wait_flag\(MTE2, MTE3, 1\)",
        double_buffer,
        {"back": False},
    ),
    (
        "flag",
        r"set_flag\(MTE3, MTE2, 0\).* can be set again before",
        double_buffer,
        {"register": 0},
    ),
    (
        "race",
        r"nd2nz.* on MTE2 writes and load.* on MTE1 reads L1\[0:8192\]",
        matmul,
        {"flags": (1, 2)},
    ),
    (
        "race",
        r"load.* on MTE1 writes and mmad.* on M reads L0A\[0:8192\]",
        matmul,
        {"flags": (0, 2)},
    ),
    ("race", r"mmad.* on M writes and matrix_out.* on V reads L0C", matmul, {"flags": (0, 1)}),
    ("uninitialised", r"mmad.* reads L0C\[0:16384\]", matmul, {"init": "accumulate"}),
    ("uninitialised", r"matrix_out.* reads L0C\[12288:16384\]", matmul, {"m": 48}),
    ("uninitialised", r"mmad.* reads L0A\[0:8192\]", matmul, {"fill": False}),
    (
        "bounds",
        r"mmad.* writes L0C\[0:524288\], which must be within the 262144 bytes",
        matmul,
        {"m": 2048},
    ),
    (
        "race",
        r"copy.* on MTE2 writes and scalar_load.* on S reads UB\[10:12\]",
        scalar,
        {"flag": False},
    ),
    (
        "race",
        r"copy.* on MTE3 reads and scalar_store.* on S writes UB\[2:4\]",
        scalar,
        {"back": False},
    ),
    ("race", r"copy.* on MTE2 writes and vrelu.* on V reads UB", barrier, {"there": False}),
    (
        "race",
        r"of aicore 0 writes and copy.* of aicore 1 writes GM\[0:1024\]; nothing orders",
        two_cores,
        {"row": 0},
    ),
    (
        "race",
        r"matrix_out.* of cube 0 writes and copy.* of vector 0 reads GM",
        exchange,
        {"flag": False},
    ),
    (
        "race",
        r"matrix_out.* of cube 0 writes and copy.* of vector 0 reads GM",
        exchange,
        {"back": False},
    ),
]


@pytest.mark.parametrize(("name", "message", "build", "arguments"), CORPUS)
def test_a_broken_kernel_is_caught_and_its_twin_passes(name, message, build, arguments):
    assert name in CHECKS
    findings = [f for f in check(build(**arguments)) if f.check == name]
    assert findings and any(re.search(message, f.message) for f in findings), [
        str(f) for f in findings
    ]
    for finding in findings:
        assert finding.message.startswith(f"{name}: ") and "\n" not in finding.message
        assert f"{__file__}:" in finding.message
    assert not check(build()), [str(f) for f in check(build())]


def test_a_deadlock_is_a_finding():
    k = Kernel()
    k.core.wait_flag(V, MTE2, 3)
    k.core.copy(k.ub(), k.x[0])
    k.sync(MTE2, V)
    k.core.set_flag(V, MTE2, 3)
    (finding,) = check(k.program)
    assert finding.check == "deadlock"
    assert re.search(
        r"wait_flag\(V, MTE2, 3\) .*wait_flag\(MTE2, V, 0\) .*the first$", str(finding)
    )
    with pytest.raises(Deadlock):
        engine.run(*lower(k.program))


def test_an_unmatched_wait_is_a_finding():
    k = Kernel()
    k.core.wait_flag(V, MTE2, 3)
    assert "never comes" in str(check(k.program)[0])


def ragged(*, lanes=100, rows=17, last=100):
    """Compute on a row of 100 elements and 17 rows of a product, in larger undefined buffers."""
    k = Kernel()
    c = k.core
    u = c.allocate("UB", (128,), "fp16")
    c.copy(u[:112], k.x[0, :112])
    k.sync(MTE2, V)
    c.vrelu(u, u)  # 128 lanes, 112 of them loaded
    k.sync(V, MTE3)
    c.copy(k.y[0, :lanes], u[:lanes])
    l1 = c.allocate("L1", (2, 16, 16), "fp16")
    a, b = c.allocate("L0A", (512,), "fp16"), c.allocate("L0B", (256,), "fp16")
    out, v = c.allocate("L0C", (512,), "fp32"), c.allocate("UB", (512,), "fp16")
    c.nd2nz(l1, k.x.reshape(256, 16)[:17])  # 15 rows of the second fractal stay undefined
    k.sync(MTE2, MTE1)
    c.load(a, l1)
    c.load(b, l1)
    k.sync(MTE1, M)
    c.mmad(out, a, b, m=17, k=16, n=16, init="zero")
    k.sync(M, V)
    c.matrix_out(v, out, m=17, n=16)
    k.sync(V, MTE3, 1)
    c.copy(k.y.reshape(256, 16)[10 : 10 + rows], v.reshape(32, 16)[:rows])
    return k.program


def straight(turns: int, *, busy: bool = True) -> Program:
    """Store each result as soon as it is computed, from its own buffer, with one flag for all."""
    k = Kernel()
    for t in range(turns):
        u = k.ub(256)
        k.core.vdup(u, 0.0)
        k.sync(V, MTE3)
        if busy:
            k.core.copy(k.y[t, :256], u)
    return k.program


def test_a_wait_with_nothing_before_it_is_not_late():
    """MTE3 is idle, so the first wait ends before the second set; the third may be too early."""
    assert not check(straight(2)) and not check(straight(4, busy=False))
    (finding,) = check(straight(3))
    assert finding.check == "flag" and finding.instructions == (5, 9)


def test_what_is_not_defined_may_be_computed_but_not_shown():
    assert not check(ragged())
    findings = check(ragged(lanes=128))
    assert any(
        re.search(r"vrelu.* reads UB\[224:256\].* it comes out at", str(f)) for f in findings
    )
    assert any("copy" in str(f) for f in check(ragged(rows=18)))
    for arguments in ({"lanes": 113}, {"rows": 18}, {"rows": 32}):
        assert {f.check for f in check(ragged(**arguments))} == {"uninitialised"}, arguments


def test_what_cannot_be_carried_out_is_said_as_it_is():
    """If the data cannot be computed, every partly undefined read is a finding."""
    program = ragged()
    core = program.core()
    u = core.allocate("UB", (128,), "fp16")
    core.vdup(u, 0.0)
    core.pipe_barrier(V)
    core.vector_views("vmrgsort", {"dst": u, "src": u})
    findings = check(program)
    assert findings and {f.check for f in findings} == {"uninitialised"}


def test_what_happens_again_is_said_once():
    k = Kernel()
    u = k.ub()
    for _ in range(50):
        k.core.copy(u, k.x[0])
        k.core.vrelu(u, u)
    races = [f for f in check(k.program) if f.check == "race"]
    assert 1 <= len(races) <= 4, "write–read and read–write, in both directions"


def test_data_decide_whether_a_tensor_is_initialised():
    k = Kernel()
    u = k.ub()
    k.core.copy(u, k.y[0])
    (finding,) = check(k.program)
    assert re.search(r"copy.* reads GM\[8192:10240\], which nothing has written", str(finding))
    k.program.data.clear()
    assert not check(k.program), "without any data all of global memory counts as initialised"


def test_a_tensor_ends_where_the_next_begins():
    k = Kernel()
    u = k.ub()
    k.core.copy(u, k.x[3, 512:], bursts=1, burst_bytes=2048)
    (finding, *_) = check(k.program)
    assert finding.check == "bounds" and "tensor x, GM[0:8192]" in str(finding)


def test_an_empty_program_has_no_findings():
    assert check(Program(CHIP)) == []


def test_many_cores():
    """32 cores write their own rows, then pairs of cores write the same rows."""
    for rows, expected in ((32, 0), (16, 1)):
        program = Program(load_chip("ascend910"))
        y = program.tensor("y", (32, 64), "fp16")
        for c in range(32):
            core = program.core(c)
            u = core.allocate("UB", (64,), "fp16")
            core.vdup(u, 0.0)
            core.pipe_barrier()
            core.copy(y[c % rows], u)
        assert [f.check for f in check(program)] == ["race"] * expected

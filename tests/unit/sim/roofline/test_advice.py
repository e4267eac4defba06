"""What a kernel can leave out, what each component gains, and the gains measured again."""

import json
from pathlib import Path

import pytest

from vitruvian.cli import main
from vitruvian.sim.davinci import Program, Unit, load_chip, simulate
from vitruvian.sim.davinci.cce import build, read
from vitruvian.sim.kernels import KERNELS
from vitruvian.sim.roofline import advice as module
from vitruvian.sim.roofline.advice import advise

CHIP = load_chip("ascend910")  # its vector unit does not wait for its own results


def chain(*, twice: bool = False, extra: bool = False, early: bool = False) -> Program:
    """Return a load and two vector instructions, with the synchronisation they need, and more."""
    program = Program(CHIP, "chain")
    x = program.tensor("x", 4096, "fp16")
    core = program.core()
    a = core.allocate("UB", (4096,), "fp16", "a")
    b = core.allocate("UB", (4096,), "fp16", "b")
    core.copy(a, x)
    core.set_flag(Unit.MTE2, Unit.V, 0)
    core.wait_flag(Unit.MTE2, Unit.V, 0)
    core.vrelu(b, a)
    core.pipe_barrier(Unit.V)
    if twice:
        core.pipe_barrier(Unit.V)
    core.vrelu(b, b)
    if extra:
        core.pipe_barrier()
        core.copy(a, x) if early else core.vrelu(a, a)
    return program


def advice_of(program: Program, strict: bool = True) -> module.Advice:
    return advise(program, simulate(program, cube=None, strict=strict), strict=strict)


def test_synchronisation_that_is_needed_is_not_named():
    found = advice_of(chain())
    assert found.tried == 2 and not found.unneeded and found.together is None
    assert "every one of them is needed" in found.text()


def test_one_of_two_barriers_can_go_and_not_both():
    found = advice_of(chain(twice=True))
    assert found.tried == 3 and len(found.unneeded) == 2
    assert found.together is not None and found.together.count == 1
    assert all("pipe_barrier(V)" in change.what for change in found.unneeded)


def test_a_barrier_of_all_queues_that_costs_time_is_named_with_its_gain():
    """It makes a load wait that nothing depends on; without it the program is so much faster."""
    program = chain(extra=True)
    before = _time(program)
    found = advice_of(program)
    (change,) = found.unneeded
    assert "pipe_barrier(all)" in change.what and change.count == 1
    changed = _without(program, change.lines)
    assert not simulate(changed, cube=None, strict=True).findings
    assert change.gain == pytest.approx(1 - _time(changed) / before, abs=1e-12)
    assert change.gain > 0.05


def _time(program: Program) -> int:
    """Return the time from the end of the launch, in attoseconds."""
    report = simulate(program, cube=None, strict=True)
    return report.times.total - int(report.lowered.begin.min())


def _without(program: Program, lines: tuple[str, ...]) -> Program:
    for core in program:
        core.instructions = [i for i in core.instructions if str(i.position) not in lines]
    return program


def test_without_strict_checks_an_interlock_is_enough():
    chip = load_chip("ascend310")
    made = KERNELS["maxpool-im2col"].build(chip=chip, data=False)
    report = simulate(made.program, cube=None)
    assert not advise(made.program, report).unneeded
    gains = [change.gain for change in advise(made.program, report).components]
    assert gains == sorted(gains, reverse=True) and gains[0] > 0.1


def test_flags_go_in_pairs_and_a_wrong_one_would_be_noticed(monkeypatch):
    """Without the check, everything could go: the needed flag and barrier as well."""
    monkeypatch.setattr(module, "check_lowered", lambda *a, **k: [])
    found = advice_of(chain())
    assert len(found.unneeded) == 2
    pair = next(change for change in found.unneeded if "flag" in change.what)
    assert pair.count == 2 and len(pair.lines) == 2
    assert "set_flag(MTE2 to V) and wait_flag(MTE2 to V)" in pair.what


def test_groups_beyond_the_limit_are_counted(monkeypatch):
    monkeypatch.setattr(module, "MOST", 1)
    found = advice_of(chain(twice=True))
    assert (found.tried, found.left) == (1, 2) and "(2 more not tried)" in found.text()


ARGUMENTS = ["x=normal:1024", "y=zeros:1024", "rows=8", "n=128"]


def test_the_command_advises_on_a_kernel_in_cce_c(root: Path, capsys):
    kernel = root / "sim" / "kernels" / "text" / "softmax.cce"
    line = ["cce", str(kernel), "--chip", "ascend910", "--blocks", "2", "--advise", "--json", "-"]
    assert main([*line, *(word for arg in ARGUMENTS for word in ("--arg", arg))]) == 0
    captured = capsys.readouterr()
    advice = json.loads(captured.out)["advice"]
    lines = {line for change in advice["changes"] for line in change["lines"]}
    assert lines == {"softmax.cce:6", "softmax.cce:19"}
    assert "pipe_barrier(V) at softmax.cce:19 (8 instructions): not needed" in captured.err
    # Measured again: the source without its line 19 has no finding, and another one would.
    for number, findings in ((19, False), (25, True)):
        text = kernel.read_text().splitlines()
        assert text[number - 1].strip() == "pipe_barrier(PIPE_V);"
        text[number - 1] = ""
        changed = read("\n".join(text), "softmax.cce")
        program, _ = build(changed, load_chip("ascend910"), _values(), blocks=2)
        assert bool(simulate(program, strict=True).findings) == findings


def _values() -> dict[str, object]:
    import numpy as np

    x = np.random.default_rng(0).standard_normal(1024).astype(np.float16)
    return {"x": x, "y": np.zeros_like(x), "rows": 8, "n": 128}


def test_advice_needs_the_checks(capsys):
    assert main(["kernel", "matmul", "--advise", "--no-checks"]) == 2
    assert capsys.readouterr().err == "error: --advise must come without --no-checks\n"

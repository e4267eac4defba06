"""Programs on the compiled core: equal bytes, refusals, faults, and a comparison that notices."""

import numpy as np
import pytest

from vitruvian.cli import main
from vitruvian.sim.davinci import Program, Unit, load_chip
from vitruvian.sim.davinci.machine_code import verify
from vitruvian.sim.davinci.machine_code.chip import core_chip
from vitruvian.sim.davinci.machine_code.core import assemble, core_product, run_on_core
from vitruvian.sim.davinci.machine_code.encode import EncodingError, Texts
from vitruvian.sim.kernels import KERNELS
from vitruvian.sim.rtl.core import CoreFault, core_config, run_words

CHIP = load_chip("ascend310")


def _kernel(name, size=None):
    return KERNELS[name].build(size, chip=CHIP, cores=1).program


@pytest.mark.parametrize(
    ("core", "name", "size"),
    [
        ("tiny", "matmul", (32, 48, 32)),
        ("tiny", "cce-cube", (32, 32, 32)),
        ("tiny", "cce-scale-add", None),
        ("tiny", "maxpool-im2col", None),
        ("tiny", "maxpool-backward-im2col", None),
        ("tiny", "maxpool-argmax-xy", None),
        ("tiny", "cast-fp32-fp16", None),
        ("tiny", "cast-fp16-int32", None),
        ("tiny", "kselect-heap", None),
        ("tiny", "series-estrin", None),
        ("plain", "cubeKer", None),
        ("plain", "maxpool-expansion", None),
        ("plain", "cce-softmax", None),
        ("plain", "softmax", None),
        ("plain", "avgpool-im2col", None),
        ("plain", "depthwise", None),
        ("plain", "kselect-bitonic", None),
        ("plain", "series-cordic", None),
        ("plain", "vnot", None),
        ("plain", "cc2ub+cast", None),
        ("plain", "conv2d", (1, 32, 14, 32, 3, 1)),
    ],
)
def test_a_kernel_has_the_bytes_of_the_simulator(core, name, size):
    result = verify.compare_program(_kernel(name, size), core)
    assert result.vectors > 100 and not result.mismatches, result.examples


def test_a_kernel_of_the_910b_runs_with_a_unit_fix():
    program = KERNELS["gemm"].build((128, 64, 256), chip=core_chip("plain"), cores=1).program
    result = verify.compare_program(program, "plain")
    assert result.vectors > 100_000 and not result.mismatches, result.examples


@pytest.mark.parametrize("core", verify.CORES)
def test_random_programs_have_the_bytes_of_the_simulator(core):
    rows = {check.configuration: check for check in verify.checks()}
    result = rows[f"{core}, random programs"].run(0, 3)
    assert result.vectors > 100_000 and not result.mismatches, result.examples


@pytest.mark.parametrize("core", verify.CORES)
def test_overlapping_programs_have_the_bytes_of_the_simulator(core):
    rows = {check.configuration: check for check in verify.checks()}
    result = rows[f"{core}, random programs of overlapping units"].run(0, 3)
    assert result.vectors > 500_000 and not result.mismatches, result.examples


def test_a_wrong_byte_is_noticed(monkeypatch):
    """The comparison sees a core that computes with another accumulation."""
    monkeypatch.setattr(verify, "core_product", lambda config: verify_product)
    result = verify.compare_program(_kernel("matmul", (16, 16, 16)), "tiny")
    assert result.mismatches


def verify_product(a, b, c, *dtypes):
    """Return a product whose first element is one unit in the last place too large."""
    d = core_product("tiny")(a, b, c, *dtypes)
    d[0, 0] += 1 << 20
    return d


def test_a_flag_that_is_set_twice_stops_the_core():
    program = Program(CHIP)
    core = program.core()
    for _ in range(2):
        core.set_flag(Unit.V, Unit.MTE3, 0)
    with pytest.raises(CoreFault, match="a flag was set that was set already"):
        run_on_core(program, "tiny")


def test_a_scalar_load_of_another_element_stops_the_core():
    program = Program(CHIP)
    x = program.tensor("x", (4,), "fp16", np.arange(4, dtype=np.float16))
    core = program.core()
    core.scalar_load(x[2:3], expected=2.0)
    assert run_on_core(program, "tiny").run.cycles
    core.scalar_load(x[2:3], expected=3.0)
    with pytest.raises(CoreFault, match="another element than the program expects"):
        run_on_core(program, "tiny")


def test_a_word_for_another_unit_stops_the_core():
    words = [0x0B | 6 << 8 | 4 << 11, 0, 0, 0, 0]  # a copy of unit FIX
    with pytest.raises(CoreFault, match="for a unit that it lacks"):
        run_words("tiny", np.zeros(32, np.uint8), words)


def _refused(message, build, core="tiny"):
    program = Program(CHIP)
    only = program.core()
    build(only)
    with pytest.raises(EncodingError, match=message):
        assemble(only.instructions, core_config(core), Texts())


def test_what_a_core_lacks_is_refused():
    def view(core, buffer, byte, dtype="fp16"):
        return core.view(buffer, byte, (128,), dtype)

    def lanes(op, dtype="fp16", byte=0):
        return lambda core: getattr(core, op)(*[view(core, "UB", byte, dtype)] * 3)

    _refused(r"test_on_core.py:\d+: vdiv needs the group divide", lanes("vdiv"))
    _refused("vadd needs the group integer", lanes("vadd", "int16"))
    _refused("vmla needs the group fused", lanes("vmla"))
    _refused("vdiv must be of one of fp16, fp32, not int16", lanes("vdiv", "int16"), "plain")
    _refused("vmul must be of one of fp16, fp32, not int16", lanes("vmul", "int16"), "plain")
    _refused("vmla must have operands at multiples of 32", lanes("vmla", byte=2), "plain")
    _refused("vand needs the group logic", lanes("vand", "fp16"))
    _refused("vadd must have operands at multiples of 32 bytes", lanes("vadd", byte=2))
    _refused("must stay within the 65536 bytes of UB of this core", lanes("vadd", byte=65504))
    _refused(
        "mmad must not start from a bias",
        lambda core: core.mmad(
            view(core, "L0C", 0, "fp32"),
            view(core, "L0A", 0),
            view(core, "L0B", 0),
            m=16,
            k=16,
            n=16,
            init="bias",
            bias=view(core, "L1", 0, "fp32"),
        ),
    )
    _refused(
        "matrix_out must have relu with results in fp16, not fp32",
        lambda core: core.matrix_out(
            view(core, "UB", 0, "fp32"), view(core, "L0C", 0, "fp32"), m=16, n=16, relu=True
        ),
    )


def test_the_commands_print_the_cycles(capsys, root, monkeypatch):
    monkeypatch.chdir(root)
    assert main(["kernel", "maxpool-im2col", "--cores", "1", "--core", "tiny"]) == 0
    assert "bytes compared with the simulator: 0 differ" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        main(["kernel", "vadd", "--cores", "1", "--core", "tin"])
    told = capsys.readouterr().err
    assert (
        "--core: must be one of tiny, micro, plain, mixed, fp8, semiring, small, davinci, not 'tin'"
        in told
    )
    assert main(["kernel", "matmul", "--core", "tiny", "--cube", "rtl"]) == 2
    assert "--core must come without --cube" in capsys.readouterr().err

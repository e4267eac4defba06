"""Programs that the RISC-V passes word by word, on golden's hart."""

from dataclasses import replace

import numpy as np
import pytest

from vitruvian.cli import main
from vitruvian.common.errors import UserError
from vitruvian.golden.core.encoding import ENCODINGS, UNITS
from vitruvian.sim.davinci.cce.intrinsics.table import intrinsic_table
from vitruvian.sim.davinci.machine_code.core import assemble, core_product
from vitruvian.sim.davinci.machine_code.encode import Texts
from vitruvian.sim.davinci.machine_code.random_programs import RandomProgram
from vitruvian.sim.davinci.riscv import compiler, verify
from vitruvian.sim.davinci.riscv.header import function_of, header
from vitruvian.sim.davinci.riscv.run import run_model
from vitruvian.sim.davinci.riscv.unrolled import image_of_words
from vitruvian.sim.davinci.semantics import Functional
from vitruvian.sim.rtl.core import CoreFault, core_config, run_words


@pytest.mark.parametrize("seed", range(6))
def test_the_words_and_the_bytes_are_those_of_the_program(seed):
    program = RandomProgram(seed, "micro").program
    words = assemble(next(iter(program)).instructions, core_config("micro"), Texts())
    functional = Functional(program, core_product("micro"))
    model = run_model(program, image_of_words(words), functional, 1 << 16)
    assert model.words == words
    reference = Functional(program, core_product("micro"))
    reference.run()
    for name, array in reference.tensors().items():
        assert functional.read(name).tobytes() == array.tobytes()


def test_the_row_of_make_sim_compares():
    (row,) = verify.checks()
    result = row.run(0, 5)
    assert result.vectors > 100_000 and not result.mismatches, result.examples


def test_an_unknown_instruction_stops_the_core():
    image = image_of_words([0]).copy()
    image.view(np.uint32)[0] = 0
    config = replace(core_config("micro"), scalar="riscv")
    with pytest.raises(CoreFault, match="S found an unknown instruction or an address"):
        run_words(config, np.zeros(32, np.uint8), image.view(np.uint64))


def test_a_scalar_load_is_refused():
    encoding = ENCODINGS["scalar_load"]
    words = [*encoding.pack({"unit": UNITS.index("S")}), 0]
    with pytest.raises(ValueError, match="word 0 must be no scalar_load"):
        image_of_words(words)


def test_every_operation_of_a_core_has_an_intrinsic():
    """All operations that a core in hardware can do, but those that no intrinsic stands for."""
    written = {
        name
        for name, signatures in intrinsic_table().items()
        if any(function_of(signature) for signature in signatures)
    }
    assert {"vadd", "vconv_f162f32", "vcmpvs_lt", "vcgmax", "vector_dup", "mad"} <= written
    assert {"img2col_cbuf_to_ca", "col2img", "load_cbuf_to_cb_transpose"} <= written
    assert len(written) > 150


def test_only_what_a_kernel_names_is_defined():
    text = header(["vadd", "dcci"])
    assert " vadd(" in text and " vsub(" not in text and "dcci(A...)" in text
    assert "counting = true" not in text and "counting = true" in header(["set_mask_count"])


def test_an_image_without_its_compiler_is_refused(monkeypatch, root, capsys):
    monkeypatch.setattr(compiler.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match="needs the package ziglang; install it with pip"):
        compiler.program()
    kernel = str(root / "sim/kernels/text/scale_add.cce")
    assert main(["cce", kernel, "--core", "tiny", "--feed", "riscv"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["cce", kernel, "--feed", "riscv"]) == 2
    assert "must come with --core" in capsys.readouterr().err


def test_arguments_are_in_the_head():
    image = compiler.with_arguments(np.zeros(320, np.uint8), [b"\x01\x02"], block=3, blocks=4)
    assert image[8:16].view(np.uint32).tolist() == [3, 4]
    assert image[32:40].tolist() == [1, 2, 0, 0, 0, 0, 0, 0]
    with pytest.raises(UserError, match="at most 32 parameters"):
        compiler.with_arguments(image, [b""] * 33)

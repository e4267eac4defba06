"""Host programs of several files: plain C++ for tilings, and kernels apart from main."""

import platform
import shutil
from pathlib import Path

import numpy as np
import pytest

from vitruvian.common.errors import UserError
from vitruvian.sim.davinci import load_chip, simulate
from vitruvian.sim.davinci.ascendc import build, compile_kernel
from vitruvian.sim.davinci.ascendc.compile import kinds_of_file
from vitruvian.sim.davinci.ascendc.host import run_host
from vitruvian.sim.davinci.ascendc.kernels import calls_other_cores
from vitruvian.sim.davinci.ascendc.sources import chip_header, host_sources

TILED = Path(__file__).parent / "kernels" / "tiled"
CHIP = load_chip("ascend910b")

needs_compiler = pytest.mark.skipif(
    shutil.which("g++") is None or platform.machine() != "x86_64",
    reason="AscendC is compiled by g++ on x86-64",
)


def run(folder, first, *others):
    """Run a program of several files, and return its result."""
    compiled = compile_kernel(str(first), CHIP, host=True, sources=[str(other) for other in others])

    def finish(program, functional):
        report = simulate(program)
        assert not report.findings
        return report.outputs

    assert run_host({compiled.kind: compiled}, CHIP, finish, folder=str(folder)) == 1
    return np.fromfile(folder / "output.bin", np.float32)


@needs_compiler
@pytest.mark.parametrize("first", ["kernel.cpp", "main.cpp"])
def test_a_program_of_several_files(tmp_path, first):
    """Files are linked where something needs them; any of them may have main."""
    expected = 12 * np.arange(64, dtype=np.float32)
    assert np.array_equal(run(tmp_path, TILED / first, TILED), expected)


@needs_compiler
def test_a_kernel_of_several_files():
    """Further files of a kernel are device code, and have its words and attributes."""
    parts = TILED.parent / "parts"
    compiled = compile_kernel(str(parts / "kernel.cpp"), CHIP, sources=[str(parts)])
    x = np.array([1.5, 0.1, 0, 0, 3, 2], np.float32)
    _, functional = build({compiled.kind: compiled}, CHIP, {"x": x})
    lowest = np.uint32(0xFF7F0000).view(np.float32)
    expected = [3, 2 * np.float16(0.1), lowest, 81, 2.5 + 2.5, 8]
    assert np.array_equal(functional.read("x"), np.array(expected, np.float32))
    with pytest.raises(
        UserError, match=r"float twice<float>\(float\) is declared, but not defined"
    ):
        compile_kernel(str(parts / "kernel.cpp"), CHIP)


def test_products_for_vector_cores_have_a_server():
    """Sources whose vector cores send messages begin with a call that clears their place."""
    text = "void k() { REGIST_MATMUL_OBJ(&pipe, place, product); }"
    assert calls_other_cores(text) and not calls_other_cores(f"// {text}")
    assert not calls_other_cores(f"#define ASCENDC_CUBE_ONLY\n{text}")


@needs_compiler
def test_what_is_printed_behind_the_last_launch(tmp_path):
    """The host's own comparison is told, too."""
    main = (TILED / "main.cpp").read_text()
    source = tmp_path / "main.cpp"
    source.write_text(main.replace("return 0;\n}", 'printf("%g", data[1]);\n    return 0;\n}'))
    names = [str(TILED / name) for name in ("kernel.cpp", "tiling.cpp")]
    compiled = compile_kernel(str(source), CHIP, host=True, sources=names, include_path=[TILED])
    told: list[str] = []
    kernels = {compiled.kind: compiled}
    run_host(kernels, CHIP, lambda _, f: f.tensors(), folder=str(tmp_path), tell=told.append)
    assert told == ["12"]


@needs_compiler
def test_changed_headers_are_seen(tmp_path):
    """An object is compiled again when a header beside it has changed."""
    for file in TILED.iterdir():
        shutil.copy(file, tmp_path)
    names = [tmp_path / name for name in ("main.cpp", "kernel.cpp", "tiling.cpp")]
    assert run(tmp_path, *names)[1] == 12
    source = tmp_path / "tiling.cpp"
    source.write_text(source.read_text().replace("{3,", "{FACTOR,"))
    header = tmp_path / "tiling.h"
    for factor in (5, 7):
        header.write_text((TILED / "tiling.h").read_text() + f"\n#define FACTOR {factor}\n")
        assert run(tmp_path, *names)[1] == 4 * factor


@needs_compiler
def test_a_mistake_names_the_file(tmp_path):
    """The message has the file and the line of a further source."""
    (tmp_path / "wrong.cpp").write_text("int one() {\n    return nothing;\n}\n")
    with pytest.raises(UserError, match=r"wrong.cpp:2: 'nothing' was not declared"):
        compile_kernel(
            str(TILED / "main.cpp"), CHIP, host=True, sources=[str(tmp_path / "wrong.cpp")]
        )


def test_a_folder_without_sources(tmp_path):
    """A folder must have C++ files."""
    with pytest.raises(UserError, match="--sources must be a file or a folder with C"):
        host_sources([str(tmp_path)])
    with pytest.raises(UserError, match=r"absent\.cpp: No such file"):
        host_sources([str(tmp_path / "absent.cpp")])


def test_numbers_of_the_chip():
    """The host's questions are answered from the chip file."""
    text = chip_header(CHIP)
    assert "VITRUVIAN_CUBE_CORES 24\n" in text and "VITRUVIAN_VECTOR_CORES 48\n" in text
    assert f"VITRUVIAN_UB_BYTES {192 << 10}\n" in text and "CHIP ASCEND910B\n" in text


@needs_compiler
def test_kinds_of_cores_follow_the_conditions(tmp_path):
    """A sample chooses by a macro whether its products are of Cube cores alone."""
    source = tmp_path / "k.asc"
    source.write_text(
        "#if SCENARIO == 2\n#define ASCENDC_CUBE_ONLY\n#endif\nREGIST_MATMUL_OBJ(&pipe, w, m);\n"
    )
    kinds = [kinds_of_file(str(source), CHIP, {"SCENARIO": n}) for n in "12"]
    assert kinds == ["all", "cube"]
    # A condition that needs an included file may be an error: then all lines count.
    source.write_text(f"#ifndef OF_A_HEADER\n#error no\n#endif\n{source.read_text()}")
    assert kinds_of_file(str(source), CHIP, {"SCENARIO": "1"}) == "cube"

"""The steps of CONTRIBUTING.md work: three of them are carried out in a copy of the repository."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repo.rules import OURS


@pytest.fixture(scope="module")
def copy(root, tmp_path_factory) -> Path:
    """Return a copy of the packages, which the steps change."""
    folder = tmp_path_factory.mktemp("copy")
    ignored = shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc")
    for name in (*OURS, "vitruvian"):
        shutil.copytree(root / name, folder / name, symlinks=True, ignore=ignored)
    return folder


@pytest.fixture(scope="module")
def steps(root) -> dict[str, str]:
    """Return the named blocks of CONTRIBUTING.md."""
    text = (root / "CONTRIBUTING.md").read_text()
    return dict(re.findall(r"^```text (\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


def insert(path: Path, behind: str, text: str) -> None:
    """Write a text behind the only place of another one."""
    source = path.read_text()
    assert source.count(behind) == 1, behind
    path.write_text(source.replace(behind, behind + text))


def run(folder: Path, *words: str) -> str:
    """Run Python in the copy, without compiled loops, and return what it prints."""
    settings = {"PYTHONPATH": str(folder), "NUMBA_DISABLE_JIT": "1", "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=os.environ | settings,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_format_takes_one_line(copy, steps):
    path = copy / "golden" / "fp" / "formats.py"
    insert(path, "\nFORMATS = {\n    f.name: f\n    for f in (\n", steps["format"])
    program = """if True:
        from vitruvian import PRESETS, formats, fused_dot
        from vitruvian.golden.fp.reference import fused_dot_reference
        from vitruvian.hdl.elaborate import only_described
        from vitruvian.hdl.fp.dot import DotProduct
        spec = PRESETS["ieee"].spec("fp8e3m4", k=4)
        a, b = [0x12, 0x34, 0x91, 0x08], [0x23, 0x45, 0x16, 0x77]
        assert int(fused_dot(a, b, 0, spec)) == fused_dot_reference(a, b, 0, spec)
        assert "a" in DotProduct(spec=spec).signature.members
        print(formats.decode([0x30], "fp8e3m4").tolist())
        """
    assert run(copy, "-c", program) == "[1.0]\n"


def test_a_machine_takes_one_file(root, copy):
    readme = (root / "golden/machines/makers/README.md").read_text()
    (example,) = re.findall(r"```toml\n(.*?)```", readme, re.DOTALL)
    (copy / "golden" / "machines" / "makers" / "zoo.toml").write_text(example)
    assert "fp16" in run(copy, "-m", "vitruvian", "machines", "zebra")


def test_a_vector_instruction_takes_two_places_and_a_command(copy, steps):
    functions = copy / "golden" / "vector" / "functions.py"
    insert(functions, "    return _rounded(a, np.exp, Decimal.exp)\n", "\n\n" + steps["arithmetic"])
    face = copy / "golden" / "vector" / "__init__.py"
    face.write_text(face.read_text() + "from vitruvian.golden.vector.functions import sigmoid\n")
    table = copy / "sim" / "davinci" / "isa" / "vector.py"
    insert(
        table,
        "def _of_one_operand() -> tuple[VectorOp, ...]:\n    return (\n",
        steps["instruction"],
    )
    run(copy, "-m", "vitruvian.sim.davinci.program.generate")
    program = """if True:
        import numpy as np
        from vitruvian.sim.davinci import Program, load_chip, simulate
        program = Program(load_chip("ascend910"), "sigmoid")
        x = program.tensor("x", (128,), "fp16", np.zeros(128, np.float16))
        y = program.tensor("y", (128,), "fp16")
        core = program.core()
        u = core.allocate("UB", (128,), "fp16")
        core.copy(u, x)
        core.pipe_barrier()
        core.vsigmoid(u, u)
        core.pipe_barrier()
        core.copy(y, u)
        print(float(simulate(program).outputs["y"][0]))
        """
    assert run(copy, "-c", program) == "0.5\n"

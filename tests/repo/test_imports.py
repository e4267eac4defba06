"""The modules keep the import rules, and the check notices every kind of violation."""

import subprocess
import sys

import pytest

from tests.repo.rules import OURS, imports, modules, violations


def test_every_module_keeps_the_rules(root):
    broken, count = [], 0
    for module, path in modules(root).items():
        count += 1
        broken += violations(path.read_text(), module, package=path.name == "__init__.py")
    assert count > 20
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("vitruvian.golden.fp.dot", "import vitruvian.hdl"),
        ("vitruvian.golden.fp.dot", "from vitruvian.hdl.fp import dot"),
        ("vitruvian.golden.fp.dot", "from ... import hdl"),
        ("vitruvian.golden.fp.dot", "from ...sim import rtl"),
        ("vitruvian.golden.fp.dot", "import amaranth.lib.data as d"),
        ("vitruvian.golden.fp.dot", "def f():\n    import vitruvian.flows.asic.synth"),
        ("vitruvian.hdl.fp.dot", "from vitruvian.golden.fp import fused_dot"),
        ("vitruvian.hdl.fp.dot", "from vitruvian.golden.fp.dot import fused_dot"),
        ("vitruvian.hdl.fp.dot", "import vitruvian.golden"),
        ("vitruvian.hdl.fp.dot", "from vitruvian.golden import fp"),
        (
            "vitruvian.hdl.fp.dot",
            "import importlib\nimportlib.import_module('vitruvian.golden.fp.dot')",
        ),
        (
            "vitruvian.hdl.fp.dot",
            "from importlib import import_module\nimport_module('vitruvian.sim.rtl')",
        ),
        ("vitruvian.hdl.fp.dot", "__import__('vitruvian.flows')"),
        ("vitruvian.sim.rtl.build", "from vitruvian.flows import synth"),
        ("vitruvian.sim.davinci.timing.engine", "from amaranth.hdl import Signal"),
        ("vitruvian.sim.studies.matmul", "from vitruvian.hdl.cube import CONFIGS"),
        ("vitruvian.sim.chips", "if True:\n    from vitruvian.sim.bench import stream"),
        ("vitruvian.flows.area", "import vitruvian.sim.rtl"),
        ("vitruvian.flows.area", "from vitruvian.sim.bench.vectors import golden_vectors"),
        ("vitruvian.flows.verilog.bundle", "from vitruvian.sim.bench.fp.batch import run_dot"),
        ("vitruvian.sim.rtl.build", "from tests import toys"),
        ("vitruvian.sim.kernels.matmul", "from benchmarks.papers.tang24 import closed_form"),
        ("vitruvian.sim.networks.run", "from vitruvian.sim.papers.rohwedder21 import study"),
        ("vitruvian.sim.rtl.build", "from golden import fp"),
        ("vitruvian.sim.rtl.build", "from vitruvian.cli import write_json"),
        ("vitruvian.golden.fp.dot", "from vitruvian.common.cache import digest"),
        ("vitruvian.common.files", "from vitruvian.sim import rtl"),
        ("vitruvian.commands.verify", "import sim.rtl"),
    ],
)
def test_a_breach_is_noticed(module, source):
    assert len(violations(source, module)) == 1, list(imports(source, module))


@pytest.mark.parametrize(
    ("module", "source"),
    [
        (
            "vitruvian.golden.fp.dot",
            "import numpy as np\nfrom .formats import FORMATS\nfrom .. import fp",
        ),
        (
            "vitruvian.hdl.fp.dot",
            "from vitruvian.golden.fp.spec import DotSpec\nimport vitruvian.golden.fp.formats",
        ),
        ("vitruvian.hdl.fp.dot", "from amaranth.hdl import Module\nfrom .align import shift_right"),
        (
            "vitruvian.sim.bench.fp.bench_dot",
            "import vitruvian.golden.fp\nfrom vitruvian.hdl.fp.dot import DotProduct",
        ),
        (
            "vitruvian.sim.davinci.timing.engine",
            "from vitruvian.sim import rtl\nfrom vitruvian.golden import cube",
        ),
        (
            "vitruvian.flows.area",
            "from vitruvian.hdl.cube import CONFIGS\nimport vitruvian.golden.fp.spec",
        ),
        (
            "vitruvian.flows.verilog.bundle",
            "from vitruvian.sim.bench.vectors import golden_vectors",
        ),
        ("vitruvian.golden.fp.dot", "from vitruvian.common.validate import one_of"),
        ("vitruvian.flows.area", "from vitruvian.common.cache import digest"),
        ("vitruvian.commands.verify", "from vitruvian.sim import rtl"),
        ("vitruvian.sim.papers.zhou25.case", "from vitruvian.sim.papers.zhou25 import published"),
        ("vitruvian.wings.ascend.roofline", "from vitruvian.sim.papers.zhou25 import CASES"),
        ("vitruvian.flows.area", "from .synth import x\nimport vitruvian.flows.asic.cells"),
    ],
)
def test_what_is_allowed_passes(module, source):
    assert not violations(source, module)


def test_relative_imports_of_a_package_itself():
    assert list(imports("from .dot import x", "vitruvian.hdl.fp", package=True)) == [
        (1, "vitruvian.hdl.fp.dot.x")
    ]
    assert list(imports("from .dot import x", "vitruvian.hdl.fp.add")) == [
        (1, "vitruvian.hdl.fp.dot.x")
    ]


def test_compiled_models_load_without_amaranth(root):
    code = "import sys, vitruvian.sim.rtl; sys.exit('amaranth' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)


@pytest.mark.parametrize("package", OURS)
def test_a_bare_name_is_refused_in_one_line(root, package):
    code = f"import {package}"
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == f"ImportError: import vitruvian.{package}, not {package}"


def test_the_import_root_takes_no_other_name_and_imports_nothing_early(root):
    code = "import sys, vitruvian; names = {'golden', 'hdl', 'sim', 'flows', 'numpy'}; "
    code += "sys.exit(bool(names & set(sys.modules)))"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)


def test_every_name_of_the_face_is_there():
    import vitruvian

    assert set(vitruvian.__all__) <= set(dir(vitruvian))
    for name in vitruvian.__all__:
        assert getattr(vitruvian, name) is not None
    with pytest.raises(AttributeError, match="module 'vitruvian' has no attribute 'gem'"):
        vitruvian.gem  # noqa: B018  # pyright: ignore

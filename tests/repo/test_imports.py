"""The import rules hold, and the check that says so notices every kind of breach."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.repo.rules import OURS, imports, violations


def modules(root: Path):
    for package in OURS:
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            is_package = parts[-1] == "__init__"
            yield path, ".".join(parts[:-1] if is_package else parts), is_package


def test_every_module_keeps_the_rules(root):
    found, count = [], 0
    for path, module, is_package in modules(root):
        count += 1
        found += violations(path.read_text(), module, package=is_package)
    assert count > 20
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("golden.fp.dot", "import hdl"),
        ("golden.fp.dot", "from hdl.fp import dot"),
        ("golden.fp.dot", "from ... import hdl"),
        ("golden.fp.dot", "from ...sim import rtl"),
        ("golden.fp.dot", "import amaranth.lib.data as d"),
        ("golden.fp.dot", "def f():\n    import flows.synth"),
        ("hdl.fp.dot", "from golden.fp import fused_dot"),
        ("hdl.fp.dot", "from golden.fp.dot import fused_dot"),
        ("hdl.fp.dot", "import golden"),
        ("hdl.fp.dot", "from golden import fp"),
        ("hdl.fp.dot", "import importlib\nimportlib.import_module('golden.fp.dot')"),
        ("hdl.fp.dot", "from importlib import import_module\nimport_module('sim.rtl')"),
        ("hdl.fp.dot", "__import__('flows')"),
        ("sim.rtl.build", "from flows import synth"),
        ("sim.davinci.engine", "from amaranth.hdl import Signal"),
        ("sim.kernels.matmul", "from hdl.cube import CONFIGS"),
        ("sim.roofline", "if True:\n    from sim.bench import stream"),
        ("flows.area", "import sim.rtl"),
        ("sim.rtl.build", "from tests import toys"),
    ],
)
def test_a_breach_is_noticed(module, source):
    assert len(violations(source, module)) == 1, list(imports(source, module))


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("golden.fp.dot", "import numpy as np\nfrom .formats import FORMATS\nfrom .. import fp"),
        ("hdl.fp.dot", "from golden.fp.spec import DotSpec\nfrom golden.fp.formats import FORMATS"),
        ("hdl.fp.dot", "from amaranth.hdl import Module\nfrom .align import shift_right"),
        ("sim.bench.fp.bench_dot", "import golden.fp\nfrom hdl.fp.dot import DotProduct"),
        ("sim.davinci.engine", "from sim import rtl\nfrom golden import cube"),
        ("flows.area", "from hdl.cube import CONFIGS\nimport golden.fp.spec"),
        ("flows.area", "from .synth import x\nimport flows.cells"),
    ],
)
def test_what_is_allowed_passes(module, source):
    assert not violations(source, module)


def test_relative_imports_of_a_package_itself():
    assert list(imports("from .dot import x", "hdl.fp", package=True)) == [(1, "hdl.fp.dot.x")]
    assert list(imports("from .dot import x", "hdl.fp.add")) == [(1, "hdl.fp.dot.x")]


def test_compiled_models_load_without_amaranth(root):
    code = "import sys, sim.rtl; sys.exit('amaranth' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)

"""A file of a maker is enough: its rules reach golden, the fast product and the RTL."""

import re
import shutil

import numpy as np
import pytest

from vitruvian.golden.fp import to_float
from vitruvian.golden.fp.reference import fused_dot_reference
from vitruvian.golden.machines import find, multiply, run, table
from vitruvian.golden.sums.products import text
from vitruvian.hdl.catalogue import UNITS
from vitruvian.hdl.fp.dot import DotProduct
from vitruvian.hdl.machines import realise
from vitruvian.sim.bench.fp.stimuli import dot_vectors
from vitruvian.sim.machines.rtl import run_rtl

STEM = "zebra_mma_fp16_fp32"


@pytest.fixture
def zebra(root, tmp_path, monkeypatch):
    """Yield the row of the README's machine, which is added to the table during a test."""
    caches = [table.machines, table.missing, table._named_files, table._ruleless]
    shutil.copytree(table.FOLDER, tmp_path / "makers")
    readme = (root / "golden/machines/makers/README.md").read_text()
    (example,) = re.findall(r"```toml\n(.*?)```", readme, re.DOTALL)
    (tmp_path / "makers" / "zoo.toml").write_text(example)
    monkeypatch.setattr(table, "FOLDER", tmp_path / "makers")
    for cache in caches:
        cache.cache_clear()
    yield find("horse-mma-fp16-fp32")
    monkeypatch.undo()
    for cache in caches:
        cache.cache_clear()


def test_a_file_alone_adds_a_machine(zebra):
    assert (zebra.stem, zebra.maker, zebra.rule.k) == (STEM, "Zoo", 4)
    a, b, c = dot_vectors(zebra.rule, 2000, seed=1)
    golden = run(STEM, a, b, c)
    rows = range(0, len(a), 7)
    expected = [
        fused_dot_reference(a[i].tolist(), b[i].tolist(), int(c[i]), zebra.rule) for i in rows
    ]
    np.testing.assert_array_equal(golden[rows], expected)
    # the rule is another one than that of the machine which is nearest to it
    assert (golden != run("v100_mma_fp16_fp32", a, b, c)).any()

    assert UNITS["dot"].options["rule"].read(STEM) == STEM
    unit = realise(zebra.rule)
    assert unit.component is DotProduct
    np.testing.assert_array_equal(run_rtl(unit, a, b, c), golden)


def test_a_file_alone_adds_a_fast_product(zebra):
    assert text(zebra.rule) is not None
    rng = np.random.default_rng(2)
    x = rng.standard_normal((24, 16)).astype(np.float16)
    y = rng.standard_normal((16, 40)).astype(np.float16)
    a, b = x.view(np.uint16)[:, None, :], y.T.view(np.uint16)[None, :, :]
    expected = run(STEM, a, b, np.zeros((24, 40), np.uint32))
    got = multiply(x, y, machine=STEM)
    np.testing.assert_array_equal(got, to_float(expected, "fp32"))

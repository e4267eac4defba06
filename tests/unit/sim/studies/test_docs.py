"""The figures of docs/units/studies.md are those that the kernels compute."""

import re
from pathlib import Path

import pytest

from vitruvian.sim.studies import KERNELS, METHODS, StudyRow

DOCUMENT = Path("docs") / "units" / "studies.md"
SHOWN = ("sgemm", "cgemm", "conv", "cconv", "fft", "knn", "mrf", "mrf-match")


def cells(root: Path) -> dict[str, list[float]]:
    """Return the numbers in the rows of the table, by kernel."""
    match = re.search(r"<!-- figures -->(.*)<!-- /figures -->", (root / DOCUMENT).read_text(), re.S)
    assert match
    lines = [line.strip("|").split("|") for line in match[1].strip().splitlines()[2:]]
    return {name.strip(" `"): [float(cell) for cell in more] for name, *more in lines}


def test_every_kernel_with_several_methods_is_shown(root):
    assert tuple(cells(root)) == SHOWN


@pytest.mark.parametrize("name", SHOWN)
def test_the_figures(root, name):
    """Errors agree to a tenth, because another machine adds norms in another order."""
    native = "FP32C" if "FP32C" in KERNELS[name].supported else "FP32"
    methods = ("FP16 scaled", "TF32", "3xTF32", native)
    rows: dict[str, StudyRow] = {row.method: row for row in KERNELS[name](methods=methods).rows}
    *errors, more, longer, tf32_more, tf32_longer = cells(root)[name]
    assert errors == pytest.approx([rows[method].mean_error for method in methods], rel=0.1)
    base, emulated, tf32 = (rows[method].cost for method in (native, "3xTF32", "TF32"))
    assert base and emulated and tf32
    assert emulated.instructions == more * base.instructions
    assert emulated.model_cycles == longer * base.model_cycles
    assert tf32.instructions == tf32_more * base.instructions
    assert tf32.model_cycles == tf32_longer * base.model_cycles


@pytest.mark.parametrize(
    ("kernel", "extra", "sentence"),
    [
        ("knn", "wrong %", "If only x·y is computed in FP16, {} % of the neighbours are wrong"),
        ("knn", "small %", "and {} % when the data are 2^-24 times as large"),
        ("knn", "rounded %", "if the norms are those of the rounded data too, {} % are wrong"),
        ("kmeans", "other %", "`kmeans` in FP16 puts {} % of the records"),
    ],
)
def test_the_figures_in_sentences(root, kernel, extra, sentence):
    text = " ".join((root / DOCUMENT).read_text().split())
    before, after = map(re.escape, sentence.split("{}"))
    match = re.search(rf"{before}([\d.]+){after}", text)
    assert match, sentence
    (row,) = (row for row in KERNELS[kernel](methods=("FP16",)).rows if row.method == "FP16")
    assert float(match[1]) == pytest.approx(row.extras[extra], abs=0.3)


def test_the_page_names_every_method_and_kernel(root):
    text = (root / DOCUMENT).read_text()
    assert not [name for name in (*METHODS, *KERNELS) if f"`{name}`" not in text]

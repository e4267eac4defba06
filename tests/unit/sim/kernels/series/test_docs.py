"""The statements of docs/units/series.md and docs/results/series_precision.md."""

import re

from vitruvian.flows.pages import site
from vitruvian.sim.kernels import KERNELS
from vitruvian.sim.kernels.series.build import METHODS, evaluators
from vitruvian.sim.kernels.series.functions import FUNCTIONS


def test_the_example_runs(root):
    text = (root / "docs" / "units" / "series.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.S)
    names: dict = {}
    exec(code, names)
    assert (names["elements"], names["differ"]) == (15000, 0)
    named = re.findall(r"vitruvian (?:kernel|taylor) (\S+)", text)
    assert len(named) == 2 and set(named) <= set(KERNELS)


def test_the_formulas_of_the_page_are_the_counts():
    """The page's formulas, written again; the kernels' own counts are asserted elsewhere."""
    for k in range(2, 40):
        log = (k - 1).bit_length()
        formulas = {
            "naive": (3 * k - 4, 2 * k - 2),
            "horner": (2 * k - 2, k),
            "estrin": (
                2 * (k // 2) + k % 2 + log - 1 + 2 * (-(-k // 2) - 1),
                2 * (k // 2) + k % 2 + log - 1 + -(-k // 2) - 1,
            ),
        }
        for method, both in formulas.items():
            for fused, formula in enumerate(both):
                (one,) = evaluators(method, [FUNCTIONS["exp"]], k, fused=bool(fused))
                assert one.instructions == formula, (method, k)
    constants = {"sin": 5, "cos": 6, "tan": 5, "tanh": 15, "sigmoid": 18}
    for n in range(2, 13):
        for name, more in constants.items():
            (one,) = evaluators("cordic", [FUNCTIONS[name]], 1, iterations=n)
            assert one.instructions == 6 * n + more


def test_the_table_has_every_method(root):
    text = (root / "docs" / "units" / "series.md").read_text(encoding="utf-8").lower()
    assert all(f"| {method}" in text for method in METHODS)


def test_the_precision_page_has_the_published_numbers(root):
    from benchmarks.papers.tang24.series_precision import INPUTS, PUBLISHED

    text = site.text_of(root / "docs" / "results" / "series_precision.md")
    cells = 0
    for order, part in zip((8, 16), re.split(r"## Order \d+", text)[1:], strict=True):
        for method, column in (("cube", 3), ("horner", 4)):
            for name, values in PUBLISHED[method, order].items():
                for x, value in zip(INPUTS, values, strict=True):
                    (row,) = re.findall(
                        rf"^\| {name} \| {x} \|.*$", part.split("## Where")[0], re.M
                    )
                    shown = re.search(r"\((.*)\)", row.split("|")[column + 1])
                    assert shown and float(shown[1]) == value
                    cells += 1
    assert cells == 72

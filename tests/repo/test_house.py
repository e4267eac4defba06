"""The counts of ``benchmarks/house.py``; no import of a package leads upwards."""

import json

import pytest

from benchmarks import house
from vitruvian.flows.pages import house as picture


def test_no_package_imports_upwards(root):
    floors, arrows, upward = house.packages(root)
    assert not upward and len(arrows) > 400 and len(floors) > 80
    assert all(floors[first] > floors[other] for first, other in arrows)


@pytest.mark.parametrize(
    ("package", "place"),
    [("vitruvian/common", 0), ("golden/fp", 1), ("flows", 4), ("vitruvian/commands", 5)],
)
def test_a_package_has_a_layer(package, place):
    assert house.layer(package) == place


def test_an_import_upwards_and_a_circle_are_found(tmp_path):
    texts = {
        "golden/fp/a.py": "import vitruvian.sim.b",
        "sim/b.py": "import vitruvian.golden.cube.c",
        "sim/rtl/d.py": "import vitruvian.sim.host.e",
        "sim/host/e.py": "def f():\n    import vitruvian.sim.rtl.d",
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for folder in ("golden", "golden/fp", "golden/cube", "sim", "sim/rtl", "sim/host"):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "__init__.py").write_text('"""A package."""')
    floors, _, upward = house.packages(tmp_path)
    circle = {("sim/rtl", "sim/host"), ("sim/host", "sim/rtl")}
    assert upward == {("golden/fp", "sim"), *circle}
    assert floors["sim"] == 1 and floors["golden/fp"] == 0
    document = json.loads(house.drawing(tmp_path, "A & B"))
    svg = picture.draw(document)
    assert "A &amp; B" in svg and "in a circle: 3" in svg and svg.count("<rect") == 1 + 5 + 6


def test_comments_and_lines_of_code_are_counted():
    text = '"""One.\n\nTwo.\n"""\n\n# a comment\nx = 1  # another\ny = "#"  # noqa: E501\n\n'
    text += 'def f():\n    """Three."""\n    return """\n    # no comment\n    """\n'
    assert house.comments_and_code(text) == (2, 6)


def test_functions_with_examples_are_counted():
    text = 'def f():\n    """Return.\n\n    >>> f()\n    """\n\ndef g(): ...\n\ndef _h(): ...\n'
    assert house.public_functions({"a.py": text}) == (2, 1)


def test_components_are_sets_of_names_that_reach_each_other():
    pairs = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("e", "f"), ("f", "e")]
    assert sorted(map(sorted, house.components(pairs))) == [["a", "b", "c"], ["e", "f"]]

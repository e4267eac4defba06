"""The letters of the pictures can be read where the site shows them."""

import re

import pytest

from vitruvian.flows.pages import site

#: Width in CSS pixels of the site's column in a window of 1300 pixels, and the smallest letters.
COLUMN, LEAST = 760, 9.0

#: Size of the glyphs of matplotlib's letters as paths: their outlines are for 100 units.
_GLYPHS = re.compile(r"scale\(([\d.]+) -\1\)")
_SIZES = re.compile(r'font-size="([\d.]+)|font(?:-size)?: ?(?:\w+ )*([\d.]+)px')


def letters(svg: str) -> list[float]:
    """Return the sizes of all letters of a picture in the column, in CSS pixels."""
    (head,) = re.findall(r"<svg[^>]*>", svg)
    (width,) = re.findall(r'viewBox="\S+ \S+ ([\d.]+) ', head)
    natural = re.findall(r' width="([\d.]+)(pt|)"', head)
    shown = float(natural[0][0]) * (4 / 3 if natural[0][1] else 1) if natural else COLUMN
    scale = min(shown, COLUMN) / float(width)
    sizes = [100 * float(size) for size in _GLYPHS.findall(svg)]
    words = re.sub(r"<tspan.*?</tspan>", "", svg)  # exponents, which are smaller than letters
    sizes += [float(a or b) for a, b in _SIZES.findall(words)]
    return [size * scale for size in sizes]


#: The picture of the README, which is in Git. ``vitruvian docs`` draws it.
KEPT = {"overview.svg"}


@pytest.fixture(scope="module")
def drawn(root) -> dict[str, str]:
    """Return the SVG text of every picture of the site, by its path in docs."""
    folder = root / "docs"
    paths = sorted([*folder.rglob("*.svg"), *site.pictures(folder)])
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        if path.exists()
        else site.picture(path)
        for path in paths
    }


def test_git_has_one_picture(root):
    """The site draws the others from data and tables, when it is built."""
    folder = root / "docs"
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*.svg")} == KEPT


def test_every_chart_is_shown(root, drawn):
    folder = root / "docs"
    charts = {path.relative_to(folder).with_suffix(".svg") for path in folder.rglob("*.json")}
    assert {path.as_posix() for path in charts} <= drawn.keys() - KEPT


def test_letters_are_text(drawn):
    """So a reader can search for them and copy them."""
    assert not [name for name, svg in drawn.items() if _GLYPHS.search(svg)]
    assert all("<text" in svg for svg in drawn.values())


def test_the_letters_of_every_picture_are_large_enough(drawn):
    sizes = {name: letters(svg) for name, svg in drawn.items()}
    assert len(sizes) > 30 and all(sizes.values()), "every picture has letters"
    small = {name: f"{min(found):.1f}" for name, found in sizes.items() if min(found) < LEAST}
    assert not small


@pytest.mark.parametrize(
    ("svg", "size"),
    [
        ('<svg viewBox="0 0 640 9" width="640" font-size="13">', 13),
        ('<svg viewBox="0 0 1520 9" font-size="12">', 6),
        ('<svg width="1140pt" viewBox="0 0 1140 9"><text style="font: 7px x">', 7 * 2 / 3),
        (
            '<svg viewBox="0 0 640 9" font-size="12">10<tspan style="font-size: 7px">3</tspan>',
            14.25,
        ),
        ('<svg width="540pt" viewBox="0 0 540 9"><g transform="scale(0.09 -0.09)">', 12),
    ],
)
def test_sizes_are_those_in_the_column(svg, size):
    assert letters(svg) == [pytest.approx(size)]

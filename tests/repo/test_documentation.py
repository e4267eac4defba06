"""The pages of the documentation: one template for units, short records, few words."""

import re

import pytest

#: Pages of hardware units, and the headings that each of them has, in this order.
UNITS = (
    "bus",
    "core",
    "cube",
    "fp",
    "m3xu",
    "scu",
    "serial",
    "simd2/unit",
    "sparse_cores",
    "vector",
)
HEADINGS = ["Theory of operation", "Ports", "Timing", "Programmer's view", "Verification", "Cost"]

#: Pages of models, simulators and kernels, which have the parts that exist, in this order.
MODELS = (
    *("ascendc", "cce", "convolution", "cubefx", "davinci", "davinci_kernels", "formats"),
    *(
        "kselection",
        "machines",
        "plans",
        "pooling",
        "probe",
        "roofline",
        "selbknn",
        "series",
        "sparse_algebra",
    ),
    *("silicon", "simd2", "simd2/contract", "simd2/cycles", "simd2/graph", "simd2/machine"),
    *("sparse_machine", "studies"),
)
PARTS = ["What it computes", "Programmer's view", "Timing", "Verification", "Results"]

#: Lines of a decision record, and words of all pages together (as ``wc -w`` counts them). The
#: words are those that were reached; a page that is longer needs another one that is shorter.
MOST_LINES, MOST_WORDS = 60, 100_000


def headings(text: str) -> list[str]:
    """Return the headings of the second level, without those in blocks of code."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"^## (.+)$", text, re.MULTILINE)


@pytest.mark.parametrize("name", UNITS)
def test_the_page_of_a_unit_follows_the_template(root, name):
    assert headings((root / "docs" / "units" / f"{name}.md").read_text()) == HEADINGS


@pytest.mark.parametrize("name", MODELS)
def test_the_page_of_a_model_has_its_parts_in_order(root, name):
    found = headings((root / "docs" / "units" / f"{name}.md").read_text())
    assert found[0] == PARTS[0] and found == [part for part in PARTS if part in found]


def test_a_heading_in_a_block_is_none():
    assert headings("## A\n```\n## B\n```\n### C\n## D\n") == ["A", "D"]


def test_every_page_calls_its_verification_the_same(root):
    for page in (root / "docs").rglob("*.md"):
        assert not re.search(r"^#+ How it is (verified|tested)$", page.read_text(), re.MULTILINE), (
            page
        )


def test_decision_records_are_short(root):
    records = sorted((root / "docs" / "decisions").glob("*.md"))
    lengths = {path.name: len(path.read_text().splitlines()) for path in records}
    assert len(records) >= 28
    assert not {name: length for name, length in lengths.items() if length > MOST_LINES}


def test_the_pages_have_few_words(root):
    words = sum(len(page.read_text().split()) for page in (root / "docs").rglob("*.md"))
    assert 50_000 < words <= MOST_WORDS

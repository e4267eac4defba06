"""The results of the README and the measured facts of the first page are those of their pages.

Each cell with figures is written again from the tables and sentences of its page and compared as a
whole, so a figure that no page supports is noticed as well as a page that has changed.
"""

import re
import shutil
from pathlib import Path

import pytest

from vitruvian.flows.pages import site

#: Words with digits that are names of formats, machines and parts, and no figures.
NAMES = r"FP16|FP32|FP8|MXFP8|NVFP4|V100|A100|910B1|LUT4|ECP5|45 nm|16-bit|24-bit|K = 8|0026"


def first_page_facts(folder: Path) -> dict[str, tuple[str, str]]:
    """Return the measured facts of the first page: question -> the two other cells."""
    text = (folder / "docs" / "index.md").read_text()
    section = text.partition("## Measured facts\n")[2].partition("\n\n")[0]
    rows = [cells(line) for line in section.splitlines() if line.startswith("|")][2:]
    assert all(len(row) == 3 for row in rows)
    return {question: (ours, other) for question, ours, other in rows}


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def page_rows(folder: Path, page: str, *first: str) -> list[list[str]]:
    """Return the rows of tables on a page whose first cells are ``first``."""
    lines = site.text_of(folder / "docs" / page).splitlines()
    rows = [cells(line) for line in lines if line.startswith("|")]
    found = [row for row in rows if row[: len(first)] == list(first)]
    assert found, f"{page} must have a row that starts with {first}"
    return found


def page_match(folder: Path, page: str, pattern: str) -> tuple[str, ...]:
    """Return the groups of the only match of a pattern on a page; line breaks are spaces."""
    (found,) = re.findall(pattern, " ".join(site.text_of(folder / "docs" / page).split()))
    return found if isinstance(found, tuple) else (found,)


def percent(ratio: str) -> str:
    return f"{100 * (float(ratio) - 1):.0f}"


def page_facts(folder: Path) -> list[tuple[str, str]]:
    """Return the two cells of each fact, written from the pages alone."""
    return [
        _area(folder),
        _silicon(folder),
        _m3xu(folder),
        _gemm(folder),
        _speed(folder),
        _scales(folder),
        _fpga(folder),
    ]


def _area(folder: Path) -> tuple[str, str]:
    page = "results/area.md"
    (row,) = page_rows(folder, page, "`a100`", "8", "3")
    (gemmini,) = page_match(folder, page, r"must be generated, has (\d+) µm²")
    units = [
        row for many in (4, 8) for row in page_rows(folder, page, f"Vortex TFR, {many} products")
    ]
    areas, times = (
        [[float(row[place + 2 * tight]) for row in units for tight in (0, 1)] for place in places]
        for places in ((3, 7), (4, 8))
    )
    usual, full = (
        f"{min(area):.0f} to {max(area):.0f} µm² at {min(time):.1f} to {max(time):.1f} ns"
        for area, time in zip(areas, times, strict=True)
    )
    cvfpu = min(round(float(row[3])) for row in page_rows(folder, page, "cvfpu FMA"))
    (adders,) = [
        row
        for row in page_rows(folder, page, "`a100`, K = 8, three ranks")
        if row[5] != "–"  # at the time of the goal
    ]
    small, short = re.fullmatch(r"(\d+) at ([\d.]+)", adders[5]).groups()  # pyright: ignore
    return (
        f"{row[5]} µm² at a cycle time of {float(row[6]):.1f} ns, {small} at {float(short):.1f} "
        "with `--adders` ([area](results/area.md))",
        f"the same flow gives {usual} for Vortex's tensor unit, {full} with `--adders`; "
        f"{gemmini} µm² for Gemmini, {cvfpu} µm² and more for cvfpu",
    )


def _silicon(folder: Path) -> tuple[str, str]:
    ((_, evidence, _),) = page_rows(folder, "units/fp.md", "`a100`, `v100`")
    assert evidence == "outputs measured on real GPUs, golden and RTL"
    (work,) = page_rows(folder, "references.md", "Khattak & Mikaitis")
    assert "Accurate Models of NVIDIA Tensor Cores" in work[1] and "measured outputs" in work[2]
    return (
        "model and hardware equal the outputs that were measured on a V100 and an A100 bit for "
        "bit, and published models of the others ([fp](units/fp.md))",
        "Khattak & Mikaitis publish the measured outputs and models in software "
        "([references](references.md))",
    )


def _m3xu(folder: Path) -> tuple[str, str]:
    page = "results/m3xu.md"
    (added,) = page_rows(folder, page, "FP32 over the 16-bit unit")
    naive, half = (page_rows(folder, page, f"`{n}`")[0] for n in ("naive-fp32", "naive-fp32-half"))
    assert "24-bit multipliers, at the baseline's rate" in naive[1] and "half the rate" in half[1]
    (fp32,) = page_rows(folder, "results/speed.md", "`fp32`")
    (fp16,) = page_rows(folder, "results/speed.md", "`fp16`")
    assert round(float(fp16[4]) / float(fp32[4])) == 4
    return (
        f"{percent(added[2])} % of area, at a quarter of the rate ([m3xu](results/m3xu.md))",
        f"a separate FP32 unit costs {percent(naive[3])} % at full rate, {percent(half[3])} % at "
        "half rate, measured in the same flow",
    )


def _gemm(folder: Path) -> tuple[str, str]:
    page = "results/gemm910b1.md"
    sizes = ("1536", "3072", "6144", "7680")
    rows = [page_rows(folder, page, size)[0] for size in sizes]
    errors, left_out = ([row[at].removesuffix(" %") for row in rows] for at in (5, 6))
    (count,) = page_match(folder, page, r"(\w+) numbers are fitted to the rows")
    return (
        f"the errors of four matrix products are {', '.join(errors[:3])} and {errors[3]} %; "
        f"{count.lower()} numbers of the model are fitted to these products, and a product that is "
        f"left out of the fit has {', '.join(left_out[:3])} or {left_out[3]} % "
        "([gemm](results/gemm910b1.md))",
        "SCALE-Sim counts cycles of systolic arrays and computes no data",
    )


def _speed(folder: Path) -> tuple[str, str]:
    text = site.text_of(folder / "docs" / "results" / "speed.md")
    table = text.partition("| unit | build s |")[2].partition("\n\n")[0]
    rows = [cells(line) for line in table.splitlines() if "K = 8," in line]
    rtl, golden = ([float(row[column]) for row in rows] for column in (2, 4))
    return (
        f"{min(rtl):.1f} to {max(rtl):.1f} million K = 8 dot products a second on one core "
        "([speed](results/speed.md))",
        f"the models in NumPy: {min(golden):.1f} to {max(golden):.1f} million",
    )


def _scales(folder: Path) -> tuple[str, str]:
    page = "decisions/0026-block-scales-in-hardware.md"
    (mx,) = page_rows(folder, page, "MXFP8 E4M3 (`mxf8f6f4`)")
    (nv,) = page_rows(folder, page, "NVFP4 (`nvf4_ue4m3`)")
    goals = [re.findall(r"≤ ([\d.]+), met", row[5])[0] for row in (mx, nv)]
    return (
        f"an MXFP8 dot product takes {100 * (float(mx[4]) - 1):.1f} % more area than an FP8 one; "
        f"an NVFP4 product {100 * float(nv[4]):.0f} % of an FP8 product "
        f"([decision 0026]({page}))",
        f"the goals were at most {percent(goals[0])} % and {100 * float(goals[1]):.0f} %",
    )


def _fpga(folder: Path) -> tuple[str, str]:
    lines = site.text_of(folder / "docs" / "results" / "fpga.md").splitlines()
    start = next(i for i, x in enumerate(lines) if x.startswith("| dot `a100` fp16 K = 4, 3 "))
    rows = [cells(line) for line in lines[start : start + 3]]
    booth, dsp = (next(r for r in rows if r[1] == f"`{name}`") for name in ("booth", "dsp"))
    return (
        f"four FP16 products in {dsp[2]} LUT4 and {dsp[5]} DSP blocks of an ECP5 "
        "([fpga](results/fpga.md))",
        f"{booth[2]} LUT4 without DSP blocks",
    )


def test_the_facts_of_the_first_page_are_those_of_the_pages(root):
    facts = first_page_facts(root)
    assert list(facts.values()) == page_facts(root)


def test_every_cell_has_a_text_and_every_figure_a_page(root):
    for question, (ours, other) in first_page_facts(root).items():
        assert ours and other, f"{question} must have an answer and a comparison"
        (link,) = re.findall(r"\]\(([^)]*)\)\)", ours)
        assert (root / "docs" / link).is_file()


def results(folder: Path) -> list[str]:
    """Return the three results that the README must have, written from the pages alone."""
    area, silicon, _, gemm, *_ = page_facts(folder)
    now = re.sub(r"; two.*", "", gemm[0]).removeprefix("the errors of four matrix products are ")
    return [
        re.sub(r" \(\[.*", "", area[0]),
        re.sub(r",? and published.*", "", silicon[0]),
        now,
    ]


def missing(folder: Path) -> list[str]:
    """Return the results that the README does not have word for word."""
    readme = (folder / "README.md").read_text()
    return [result for result in results(folder) if result not in readme]


def test_the_results_of_the_readme_are_those_of_the_pages(copies):
    assert not missing(copies)
    assert all(re.search(r"\d", result) for result in results(copies))
    readme = copies / "README.md"
    text = readme.read_text()
    errors = results(copies)[2]
    wrong = errors.replace(" and ", "1 and ")
    for old, new in (("1485 µm²", "1475 µm²"), ("a V100 and", "a V200 and"), (errors, wrong)):
        assert text.count(old) == 1
        readme.write_text(text.replace(old, new))
        assert len(missing(copies)) == 1


def test_the_readme_is_short_and_its_links_lead_somewhere(root):
    text = (root / "README.md").read_text()
    assert len(text.split()) < 800 and "](docs/overview.svg)" in text
    for link in re.findall(r"\]\(([^)#]+)", text):
        assert (root / link).exists(), link
    for name in ("MMA-Sim", "FPnew", "Gemmini", "Vortex", "NVDLA", "SCALE-Sim", "GraphBLAS"):
        assert name in text and f"| {name}" in (root / "docs" / "comparison.md").read_text()


@pytest.fixture
def copies(root, tmp_path):
    """Copies of the README and of the pages, for mutations."""
    shutil.copy(root / "README.md", tmp_path)
    shutil.copytree(root / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("*.svg"))
    return tmp_path


def test_a_changed_figure_of_the_first_page_is_noticed(copies):
    """Each figure of the table is changed in turn: its last digit."""
    readme = copies / "docs" / "index.md"
    text = readme.read_text()
    start = text.index("## Measured facts\n")
    start = text.index("|---|---|---|", start) + len("|---|---|---|")
    stop = text.index("\n\n", start)
    names = [match.span() for match in re.finditer(NAMES + r"|\]\([^)]*\)", text)]
    expected, changed = page_facts(copies), 0
    for match in re.finditer(r"\d+(?:\.\d+)?", text):
        first, last = match.span()
        if not start <= first < stop or any(a <= first < b for a, b in names):
            continue
        other = str((int(text[last - 1]) + 1) % 10)
        readme.write_text(text[: last - 1] + other + text[last:])
        assert list(first_page_facts(copies).values()) != expected, text[first - 20 : last + 20]
        changed += 1
    assert changed > 20


@pytest.mark.parametrize(
    ("page", "old", "new"),
    [
        ("results/data/area_area_delay_dot.csv", "1485,1.69", "1485,1.89"),
        ("results/area.md", "has 3739 µm²", "has 3793 µm²"),
        ("results/data/m3xu_m_xu_against.csv", ",2.159", ",2.259"),
        ("results/data/gemm910b1_four_matrix_products.csv", "−4.5 %", "−5.5 %"),
        ("results/gemm910b1.md", "Two numbers are fitted", "Four numbers are fitted"),
        ("results/data/speed_compiled_rtl_golden.csv", ",2.16,", ",1.16,"),
        ("decisions/0026-block-scales-in-hardware.md", "| 0.366 |", "| 0.466 |"),
        ("results/data/fpga_cells.csv", "`dsp`,1115,", "`dsp`,1151,"),
    ],
)
def test_a_changed_page_is_noticed(copies, page, old, new):
    path = copies / "docs" / page
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    assert list(first_page_facts(copies).values()) != page_facts(copies)


def test_the_readme_says_what_is_missing(root):
    text = (root / "README.md").read_text()
    lacks = re.findall(r"^What it lacks: .*$", text, re.MULTILINE)[0]
    assert "a bitstream of any core but the two smallest" in lacks
    core = site.text_of(root / "docs" / "results" / "core.md")
    assert "`tiny` and `micro` have bitstreams" in core
    fpga = site.text_of(root / "docs" / "results" / "fpga.md")
    assert "No bitstream of this page has run on a board." in fpga
    assert "No board has run one of its bitstreams" in lacks

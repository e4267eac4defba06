"""The generated pages are complete, and change with a docstring."""

import re

import pytest
from mkdocs.config import load_config
from mkdocs.structure.files import Files

from vitruvian.sim.davinci import Program, ProgramError, load_chip, reference
from vitruvian.sim.davinci.isa.vector import REDUCE, VECTOR_OPS
from vitruvian.sim.davinci.program.program import Core
from vitruvian.sim.davinci.program.reference import GROUPS, builder_page, public_methods
from vitruvian.sim.davinci.program.vector_keywords import ReductionKeywords
from vitruvian.sim.davinci.report.counters import TABLES

PAGE = builder_page()
ENTRIES = {
    entry.split("\n", 1)[0]: entry.split("\n## ")[0] for entry in re.split(r"(?m)^### ", PAGE)[1:]
}
REDUCTION_KEYWORDS = set(ReductionKeywords.__annotations__)


def test_the_site_has_the_pages(tmp_path):
    config = load_config(config_file_path=None, site_name="x", docs_dir=str(tmp_path))
    config.plugins._current_plugin = "reference"
    files = reference.on_files(Files([]), config)
    assert [file.src_uri for file in files] == ["api/builder.md", "api/counters.md"]
    texts = [file.content_string for file in files]
    assert texts == [PAGE, reference.counters_page()]


def test_every_public_method_is_in_one_group():
    named = [(name, cls) for _, cls, names in GROUPS for name in names]
    assert len(named) == len(dict(named)) and dict(named) == public_methods()
    assert list(ENTRIES) == [name for name, _ in named] and len(ENTRIES) > 75
    assert not hasattr(Core, "no_such_method")


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_has_a_signature_a_contract_and_all_parameters(name):
    entry = ENTRIES[name]
    code = re.search(r"```text\n(.*?)\n```\n\n(\S.*?\.)\n", entry, re.DOTALL)
    assert code is not None and code[1].startswith(f"{name}("), entry
    words = re.findall(r"(?<![\[.])\b(\w+): ", code[1])
    rows = re.findall(r"(?m)^\| (.*) \| (.*) \| (.*) \|$", entry)
    described = {w.strip("`*") for row in rows for w in row[0].split(", ")}
    # Keywords that many methods share are described once.
    op = VECTOR_OPS.get(name)
    elsewhere: set[str] = set()
    if op is not None and (op.form.lanewise or op.form is REDUCE):
        elsewhere = {"repeat", "mask", "strides"} if op.form.lanewise else REDUCTION_KEYWORDS
        assert op.form.lanewise or "those of `vreduce_lanes`." in entry
    assert set(words) - described <= elsewhere, set(words) - described
    assert all(meaning for _, _, meaning in rows), rows
    assert "  " not in code[2]


def test_parameters_of_a_move_are_as_in_the_source():
    entry = ENTRIES["vbrcb"]
    assert "    dst_repeat_stride: int = 8,\n) -> Instruction" in entry
    assert "| `dst_block_stride`, `dst_repeat_stride` | int | Blocks of 32 bytes from " in entry
    assert "\n`ProgramError`: If the core has no vector unit, or " in entry
    assert "Elements: fp16, fp32, int32, int16." in ENTRIES["vadds"]
    assert "strides: Strides | None = None" in ENTRIES["vadds"]
    assert "| `rounding` | str | none, rint, " in ENTRIES["vconv"]


def test_the_page_of_counters_has_every_column():
    page = reference.counters_page()
    for file, columns in TABLES.items():
        part = page.split(f"## {file}\n")[1].split("\n## ")[0]
        assert [re.escape(c) for c in columns] == [
            re.escape(c) for c in re.findall(r"(?m)^\| `(.*?)` \| ", part)
        ]


def test_a_changed_docstring_changes_the_page(monkeypatch):
    doc = (Core.vbrcb.__doc__ or "").replace("Fill a block", "Fill two blocks")
    monkeypatch.setattr(Core.vbrcb, "__doc__", doc)
    assert "Fill two blocks" in builder_page() and "Fill two blocks" not in PAGE


def test_documented_errors_are_raised():
    core = Program(load_chip("ascend910")).core()
    u = core.allocate("UB", (256,), "fp16")
    for call, message in (
        (lambda: core.vcadd(u, u, repeat=0), "repeat of vcadd must be 1 … 255, not 0"),
        (lambda: core.vcmax(u, u, order="both"), "in an order of value_index, "),
        (lambda: core.vreduce_lanes("vadd", u, u), "reduction must be one of vcadd, "),
        (lambda: core.vcgmax(u, u, mask=1 << 128), "mask of vcgmax must have 128 bits, not 0x1"),
        (lambda: core.vgather(u, u, u, base=0, repeat=256), "repeat of vgather must be 1 … 255"),
        (lambda: core.vbitsort(u, u, u, repeat=0), "repeat of vbitsort must be 1 … 255, not 0"),
        (lambda: core.vnchwconv([u] * 16, [u] * 16, repeat=0), "repeat of vnchwconv must be"),
    ):
        with pytest.raises(ProgramError, match=re.escape(message)):
            call()

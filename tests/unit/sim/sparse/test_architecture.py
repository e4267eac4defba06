"""The architecture file: the published machine, and one line for each mistake."""

import dataclasses
from fractions import Fraction

import pytest

from vitruvian.sim.sparse.architecture import (
    DEFAULT,
    ArchitectureError,
    load_architecture,
    read_architecture,
)

TEXT = DEFAULT.read_text()


def test_the_default_is_the_published_machine():
    machine = load_architecture()
    assert machine.pes == 1024
    assert machine.buffer_bytes == 64 << 20
    assert machine.memory_bytes_per_s == 512 * 10**9
    assert machine.bytes_per_cycle == 512
    # Zhang 2024 §4.6.3: matrices as large as 1.3 GB, the largest having 54,054,660 nonzeros.
    stored = 2 * 54_054_660 * (machine.value_bytes + machine.coordinate_bytes)
    assert round(stored / 1e9, 1) == 1.3
    assert machine.sources["core.pes"].startswith("Zhang 2024")
    assert machine.repack_share == Fraction(1, 16)


def test_kib_is_another_unit_of_the_buffer():
    text = TEXT.replace("mib = 64", "kib = 3").replace("{ mib =", "{ kib =")
    assert read_architecture(text).buffer_bytes == 3072


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("pes = 1024", "pes = 0", "core.pes must be an integer, 1 or more, not 0"),
        ("pes = 1024", "pes = 1e3", "core.pes must be an integer, 1 or more, not 1E+3"),
        ("gb_per_s = 512", "gb_per_s = 0", "memory.gb_per_s must be more than 0, not 0"),
        ("gb_per_s = 512", "gb_per_s = 512.0000001", "memory.gb_per_s must be such that"),
        ("repack_share = 0.0625", "repack_share = 2", "buffer.repack_share must be a number from"),
        ("value_bytes = 8", "valu_bytes = 8", "format.value_bytes is missing"),
        ("[energy]", "[energie]", "energy is missing"),
        ('name = "sida"', "name = 3", "name must be a text, not 3"),
        ("mib = 64", "mib = 64\nextra = 1", "source must be a text for each number, also for ext"),
        ("gb_per_s = 512", "gb_per_s = ", "architecture must be a TOML file"),
    ],
)
def test_a_mistake_is_one_line_with_file_and_line(old, new, message):
    assert TEXT.count(old) == 1
    text = TEXT.replace(old, new)
    with pytest.raises(ArchitectureError, match=r"^m\.toml:\d+: [^\n]+$") as caught:
        read_architecture(text, "m.toml")
    assert message in str(caught.value)


def test_a_number_without_a_source_is_refused():
    text = TEXT.replace('source = "Zhang 2024 §4.5.1"\n', "")
    with pytest.raises(ArchitectureError, match=r"memory\.source is missing"):
        read_architecture(text)


def test_a_table_too_many_is_named():
    with pytest.raises(ArchitectureError, match=r"bufer must be one of the tables.*nearest is buf"):
        read_architecture(TEXT + "\n[bufer]\n")


def test_files_that_are_not_readable(tmp_path):
    with pytest.raises(ArchitectureError, match="architecture must be a TOML file, not"):
        load_architecture(tmp_path / "absent.toml")
    bad = tmp_path / "bad.toml"
    bad.write_bytes(b'name = "sida"\n\xff')
    with pytest.raises(ArchitectureError, match=r"bad\.toml:2: .*UTF-8"):
        load_architecture(bad)
    bad.write_bytes(b"#" * 70000)
    with pytest.raises(ArchitectureError, match="at most 65,536 bytes"):
        load_architecture(bad)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("pes", 0, "pes must be at least 1, not 0"),
        ("sub_tensor", 0, "sub_tensor must be at least 1, not 0"),
        ("buffer_bytes", -1, "buffer_bytes must be at least 1, not -1"),
        ("clock_hz", Fraction(0), "clock_hz must be more than 0, not 0"),
        ("memory_bytes_per_s", Fraction(-1), "memory_bytes_per_s must be more than 0, not -1"),
    ],
)
def test_a_changed_machine_is_checked_too(name, value, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(load_architecture(), **{name: value})


def test_the_energies_are_of_one_process():
    """Regression: the buffer had the energy of 45 nm, the memory that of a later process."""
    sources = load_architecture().sources
    energies = [text for name, text in sources.items() if name.startswith("energy.")]
    assert len(energies) == 3
    assert {text.split(", 7 nm")[0] for text in energies} == {"Jouppi et al. 2021, table 2"}

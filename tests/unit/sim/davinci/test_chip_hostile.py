"""Hostile values of the newer keys of chip files: one line with the file and the line."""

import pytest

from tests.system.fuzz_inputs import chip_files
from vitruvian.sim.davinci.chip.file import ChipError, read_chip

#: A queue that is listed twice is the same as once.
ALLOWED = "interlocks_3.toml"


@pytest.mark.parametrize("name", sorted(set(chip_files()) - {ALLOWED}))
def test_a_hostile_value_gets_one_line(name):
    text = chip_files()[name]
    key = name.rpartition("_")[0]
    line = next(n for n, x in enumerate(text.splitlines(), 1) if x.startswith(f"{key} = "))
    with pytest.raises(ChipError) as raised:
        read_chip(text, name)
    message = str(raised.value)
    assert message.startswith(f"{name}:{line}: ") and "\n" not in message
    assert f"{key} must be" in message or "must be a TOML file" in message


def test_a_queue_may_be_listed_twice():
    kind = read_chip(chip_files()[ALLOWED]).kind()
    assert [unit.name for unit in kind.interlocks] == ["V"]

"""The form of the makers' files: each mistake is refused with its place, and each row is tested."""

import tomllib
from collections import defaultdict

import pytest

from vitruvian.common.errors import UserError
from vitruvian.golden.fp import DotSpec
from vitruvian.golden.machines import table
from vitruvian.golden.machines.table import machines, read_rows
from vitruvian.sim.machines.samples import samples

FILE = """
maker = "Zoo"

[machines]
zebra = "Zebra"

[aliases]
horse = "zebra"

[rules.short]
window = 20
truncate = "magnitude"
fp32 = { rounding = "RZ" }

[rules.fma]
kind = "fma"

[[row]]
machines = ["zebra"]
instruction = "mma"
formats = ["fp16"]
outputs = ["fp32"]
k = 4
rule = "short"
evidence = "S; measured in a zoo"

[[missing]]
machine = "zebra"
instruction = "dot"
formats = "all"
output = "fp32"
reason = "nothing is public"
"""

MISTAKES = [
    ('maker = "Zoo"', "maker = 3", r"zoo: maker must be a string, not 3"),
    ('maker = "Zoo"', "", r"zoo: maker must be there"),
    ("[aliases]", "[aliasses]", r"zoo: each key must be one of .* did you mean aliases\?"),
    ('horse = "zebra"', 'horse = "zebr"', r"zoo: horse of aliases must be one of zebra, not"),
    ("window = 20", "windw = 20", r"zoo, rule short: each parameter .* did you mean window\?"),
    ("window = 20", 'window = "20"', r"zoo, row 1: window must be an int, not '20'"),
    ("window = 20", "accumulators = 2", r"zoo, rule short: each parameter must be one of .*"),
    ('{ rounding = "RZ" }', '{ round = "RZ" }', r"each parameter of fp32 must be .*rounding\?"),
    ('{ rounding = "RZ" }', '{ rounding = "RX" }', r"zoo, row 1: rounding must be one of"),
    ('kind = "fma"', 'kind = "fmas"', r"zoo, rule fma: kind must be one of .* did you mean fma\?"),
    ('["zebra"]', '["zebu"]', r"zoo, row 1: each of machines must be one of zebra, not 'zebu'"),
    ('["zebra"]', "[]", r"zoo, row 1: machines must have at least one entry"),
    ('["zebra"]', '"zebra"', r"zoo, row 1: machines must be an array, not 'zebra'"),
    ('["fp16"]', '["fp61"]', r"zoo, row 1: each format must be one of .* did you mean fp64\?"),
    ('["fp16"]', '["fp16"]\npairs = ["fp16"]', r"must have formats or pairs, and not both"),
    ('["fp32"]', '["fp23"]', r"zoo, row 1: each of outputs must be .* did you mean fp32\?"),
    ("k = 4", "kay = 4", r"zoo, row 1: each key must be one of .*, not 'kay'"),
    ("k = 4", "k = 4.0", r"zoo, row 1: k must be an int, not 4.0"),
    ("k = 4", "k = true", r"zoo, row 1: k must be an int, not True"),
    ("k = 4", 'k = 4\nstem = "all"', r"zoo, row 1: stem must be one of instruction, output"),
    ("k = 4", "k = 4\nwith = { windw = 3 }", r"zoo, row 1, with: each parameter .* mean window\?"),
    ('rule = "short"', 'rule = "shrot"', r"zoo, row 1: rule must be .* did you mean short\?"),
    ('"S; measured in a zoo"', '"Zebra"', r"row 1: evidence must begin with one of S, V, P, D"),
    ('"S; measured in a zoo"', '""', r"row 1: evidence must begin with one of S, V, P, D, T"),
    ("reason =", "raison =", r"zoo, missing 1: each key must be one of .* mean reason\?"),
    ('machine = "zebra"', 'machine = "zebu"', r"zoo, missing 1: machine must be one of zebra"),
]


def test_a_file_without_mistakes_is_read():
    (row,) = read_rows(tomllib.loads(FILE), "zoo")
    assert isinstance(row.rule, DotSpec)
    assert (row.stem, row.rule.k, row.rule.sum.window) == ("zebra_mma_fp16_fp32", 4, 20)


@pytest.mark.parametrize(("old", "new", "message"), MISTAKES)
def test_a_mistake_is_refused_with_its_place(old, new, message):
    assert FILE.count(old) == 1
    with pytest.raises(UserError, match=message) as error:
        list(read_rows(tomllib.loads(FILE.replace(old, new)), "zoo"))
    assert "\n" not in str(error.value)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Yield an empty folder of makers' files; the table is read anew before and after."""
    caches = [table.machines, table.missing, table._named_files]
    monkeypatch.setattr(table, "FOLDER", tmp_path)
    for cache in caches:
        cache.cache_clear()
    yield tmp_path
    monkeypatch.undo()
    for cache in caches:
        cache.cache_clear()


def test_two_rows_with_the_same_stem_are_refused(folder):
    row = FILE.partition("[[row]]")[2].partition("[[missing]]")[0]
    (folder / "a.toml").write_text(FILE)
    (folder / "b.toml").write_text(FILE.replace("[[missing]]", f"[[row]]{row}\n[[missing]]"))
    message = r"b.toml, row 1: the stem must be of one row, but zebra_\w+ is also of a.toml, row 1"
    with pytest.raises(UserError, match=message):
        machines()
    (folder / "a.toml").unlink()
    table._named_files.cache_clear()
    with pytest.raises(UserError, match=r"b.toml, row 2: .* is also of b.toml, row 1"):
        machines()


def test_a_file_that_is_not_toml_is_named(folder):
    (folder / "a.toml").write_text("maker = ")
    with pytest.raises(UserError, match=r"a.toml must be a TOML file"):
        machines()


def test_every_row_has_a_set_of_results_or_says_why_not():
    """A set of another row with the same parameters counts, as a rule has no other ones."""
    tested = {machines()[stem].rule for stem in samples()}
    without = {row.stem for row in machines().values() if row.rule not in tested}
    entries = defaultdict(set)
    for row in machines().values():
        entries[row.rule_name, row.evidence, row.no_set].add(row.stem)
    silent = [stem for stem in without if not machines()[stem].no_set]
    assert not silent, "give these rows a set, or their entries no_set with the reason"
    stale = [names for (_, _, why), names in entries.items() if why and not names & without]
    assert not stale, "these rows have sets: remove no_set"
    assert len(machines()) - len(without) >= 215

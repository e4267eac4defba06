"""The mutation sampler, and the trial that distinguishes killed from surviving mutants."""

import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.mutants.__main__ import equivalent, every_mutant, sample
from tests.mutants.nearest import ranked
from tests.mutants.operators import mutants
from tests.mutants.trial import Copy

SOURCE = b'''"""A module."""

LIMIT = 8


def cut(x: int, low: int = 1) -> int:
    """Cut x."""
    if x < low and not x == 3:
        raise ValueError(f"{x + 1} is too low")
    check(x)
    total = 0
    for i in range(x):
        total += i << 2
    return -total
'''

CHANGES = [
    "8 → 9",
    "1 → 2",
    "< → <=",
    "and → or",
    "not → ",
    "== → !=",
    "3 → 4",
    'raise ValueError(f"{x + 1} is too low") → pass',
    "check(x) → pass",
    "0 → 1",
    "+= → -=",
    "<< → >>",
    "2 → 3",
    "- → ",
]


def test_every_kind_of_change_is_found_and_compiles():
    copies = mutants("cut.py", SOURCE)
    assert sorted(m.change for m in copies) == sorted(CHANGES)
    texts = {m.apply(SOURCE) for m in copies}
    assert len(texts) == len(copies) and SOURCE not in texts
    assert all(m.compiles(SOURCE) for m in copies)
    (small,) = [m for m in copies if m.change == "< → <="]
    assert b"if x <= low and" in small.apply(SOURCE) and small.line == 8


def test_the_same_seed_draws_the_same_mutants(root):
    population = [m for m in every_mutant(root) if m.path.startswith("golden/fp")]
    first, second = sample(population, 9, 4, root), sample(population, 9, 4, root)
    assert first == second and len(set(first)) == 9
    assert sample(population, 9, 5, root) != first


@pytest.mark.parametrize(
    ("path", "test"),
    [
        ("golden/vector/conversions.py", "tests/unit/golden/test_vector.py"),
        ("sim/davinci/timing/engine_compiled.py", "tests/unit/sim/davinci/test_engine.py"),
        ("vitruvian/commands/graph.py", "tests/system/test_graph_cli.py"),
        ("flows/units.py", "tests/system/test_flows_cli.py"),
    ],
)
def test_the_nearest_test_files_come_first(root, path, test):
    assert test in ranked(root, path)[:4]


def test_an_equivalent_mutant_is_known_by_its_line(root):
    mutant = next(m for m in every_mutant(root) if m.path == "golden/fp/round.py")
    line = (root / mutant.path).read_text().splitlines()[mutant.line - 1].strip()
    entry = {"file": mutant.path, "line": line, "change": mutant.change, "reason": "r"}
    assert equivalent(mutant, [entry], root) == "r"
    assert equivalent(mutant, [entry | {"line": "x"}], root) is None


def test_every_equivalent_mutant_names_a_line_that_exists(root):
    text = (root / "tests" / "mutants" / "equivalent.toml").read_text()
    for entry in tomllib.loads(text)["mutant"]:
        lines = (root / entry["file"]).read_text().splitlines()
        assert entry["line"] in [line.strip() for line in lines], entry


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a repository with one function, whose test only uses small numbers."""
    files = {
        "golden/__init__.py": "",
        "vitruvian/__init__.py": "",
        "golden/sign.py": "def sign(x):\n    if x > 100:\n        return 2\n    return x < 0\n",
        "tests/unit/test_sign.py": "from vitruvian.golden.sign import sign\n\n\n"
        "def test_sign():\n    assert sign(-1) and not sign(0)\n",
    }
    for name, text in files.items():
        target = tmp_path / "project" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    folder = tmp_path / "project"
    (folder / "vitruvian" / "golden").symlink_to("../golden")
    plugin = Path(__file__).parents[1] / "mutants" / "limit.py"
    (folder / "tests" / "mutants").mkdir()
    (folder / "tests" / "mutants" / "limit.py").write_bytes(plugin.read_bytes())
    (folder / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\nmarkers = ["slow: slow"]\npythonpath = ["."]\n'
        'addopts = ["--import-mode=importlib"]\n'
    )
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


def test_a_trial_tells_killed_from_survived_and_restores_the_file(project, tmp_path):
    copy = Copy(project, tmp_path / "copy")
    source = (project / "golden/sign.py").read_bytes()
    every = {m.change: m for m in mutants("golden/sign.py", source)}
    killed = copy.try_out(every["< → <="], budget=60, limit=30)
    assert (killed.state, killed.by) == ("killed", "tests/unit/test_sign.py::test_sign")
    survived = copy.try_out(every["2 → 3"], budget=60, limit=30)
    assert survived.state == "survived" and survived.seconds > 0
    assert (copy.tree / "golden/sign.py").read_bytes() == source
    assert (project / "golden/sign.py").read_bytes() == source

"""Distributions: a checkout, an sdist and a zip archive install the same files."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

PARTS = ("golden", "hdl", "sim", "flows")

BUILD = """
import sys
from hatchling.builders.{kind} import {builder}
print(*{builder}(sys.argv[1]).build(directory=sys.argv[2], versions=["standard"]))
"""

USE = """
import sys
sys.path.insert(0, sys.argv[1])
import vitruvian, vitruvian.flows, vitruvian.golden.fp, vitruvian.hdl.fp.dot, vitruvian.sim.davinci
from vitruvian.sim.davinci.chip.file import chip_names
modules = [vitruvian, vitruvian.flows, vitruvian.golden, vitruvian.hdl, vitruvian.sim]
assert all(module.__file__.startswith(sys.argv[1]) for module in modules), modules
assert {'golden', 'hdl', 'sim', 'flows'}.isdisjoint(sys.modules)
assert 'ascend310' in chip_names()
print(vitruvian.dot_spec(input='fp16', output='fp32', k=4, window=24).k)
"""


def build(kind: str, source: Path, folder: Path) -> Path:
    code = BUILD.format(kind=kind, builder=f"{kind.title()}Builder")
    command = [sys.executable, "-c", code, str(source), str(folder)]
    return Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())


def use(folder: Path, elsewhere: Path) -> None:
    """Import the packages from ``folder`` in a process that starts ``elsewhere``."""
    command = [sys.executable, "-c", USE, str(folder)]
    done = subprocess.run(command, cwd=elsewhere, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "4\n", done.stderr


@pytest.fixture(scope="module")
def sdist(root, tmp_path_factory) -> Path:
    """Return the folder of the unpacked sdist."""
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(build("sdist", root, folder)) as file:
        assert not any(member.issym() for member in file)
        file.extractall(folder, filter="data")
    (unpacked,) = [path for path in folder.iterdir() if path.is_dir()]
    return unpacked


def test_the_packages_are_links_in_the_checkout(root):
    for part in PARTS:
        link = root / "vitruvian" / part
        assert link.is_symlink() and link.resolve() == (root / part).resolve()


def test_a_wheel_takes_one_name_and_is_the_same_from_checkout_and_sdist(root, sdist, tmp_path):
    names = []
    for number, source in enumerate((root, sdist)):
        wheel = build("wheel", source, tmp_path / str(number))
        with zipfile.ZipFile(wheel) as file:
            names.append(sorted(file.namelist()))
            file.extractall(tmp_path / f"installed{number}")
    assert names[0] == names[1]
    tops = {name.split("/")[0] for name in names[0]}
    assert (
        len(tops) == 2 and "vitruvian" in tops and any(top.endswith(".dist-info") for top in tops)
    )
    modules = {f"vitruvian/{p.relative_to(root)}" for part in PARTS for p in sources(root, part)}
    assert modules <= set(names[0]) and "vitruvian/py.typed" in names[0]
    use(tmp_path / "installed0", tmp_path)


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_the_same_files_make_the_same_bytes(sdist, tmp_path, monkeypatch, kind):
    """Neither the folder, the times of the files nor the time zone matters."""
    made = []
    for number, zone in enumerate(("UTC", "Asia/Tokyo")):
        monkeypatch.setenv("TZ", zone)
        source = tmp_path / f"{number}" / "source"
        shutil.copytree(sdist, source)
        for path in source.rglob("*"):
            when = 10**9 + number * 10**6
            os.utime(path, (when, when))
        made.append(build(kind, source, tmp_path / f"{number}" / "out").read_bytes())
    assert made[0] == made[1]


def sources(root: Path, part: str) -> list[Path]:
    return [path for path in (root / part).rglob("*.py") if "__pycache__" not in path.parts]


def test_an_unpacked_sdist_works_where_it_lies(sdist, tmp_path):
    assert not any((sdist / "vitruvian" / part).exists() for part in PARTS)
    use(sdist, tmp_path)


def test_a_checkout_whose_links_became_text_files_works(sdist, tmp_path):
    """Some programs for zip archives unpack a link as a text file that contains its target."""
    for part in PARTS:
        (sdist / "vitruvian" / part).write_text(f"../{part}")
    use(sdist, tmp_path)
    for part in PARTS:
        (sdist / "vitruvian" / part).unlink()

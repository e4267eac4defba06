"""Settings for the whole suite: one Yosys, repeatable random examples, nothing outside build/."""

import gc
import os
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.configuration import set_hypothesis_home_dir

ROOT = Path(__file__).parent.parent

os.environ.setdefault("AMARANTH_USE_YOSYS", "builtin")
os.environ.setdefault("VITRUVIAN_CACHE", str(ROOT / "build" / "cache"))
# Processes of pytest-xdist have the width of pytest's terminal here, which tables would follow.
os.environ.pop("COLUMNS", None)
set_hypothesis_home_dir(ROOT / "build" / "hypothesis")
settings.register_profile("repeatable", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("repeatable")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also run the tests that are marked long")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the long tests unless the caller asks for them.

    The tests that take longest come first, so that no process waits for them at the end.
    """
    items.sort(key=lambda item: item.path.name != "test_compiled_loops.py")
    if config.getoption("--long"):
        return
    long = [item for item in items if item.get_closest_marker("long")]
    items[:] = [item for item in items if not item.get_closest_marker("long")]
    config.hook.pytest_deselected(items=long)


def pytest_collection_finish() -> None:
    """Let the collector of cycles skip the modules and the tests, and run less often.

    By default it visits all of them again whenever a unit is elaborated or a program is built,
    which takes a fifth of the time of such tests.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 10)


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's folder."""
    return ROOT


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, empty."""
    monkeypatch.setenv("VITRUVIAN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="session")
def silicon() -> Path:
    """Folder of the outputs measured on real GPUs; they are not part of the repository."""
    folder = ROOT.parent / "shared" / "data" / "silicon"
    if not any(folder.glob("*.npz")):
        pytest.skip("needs the measured outputs in ../shared/data/silicon")
    return folder

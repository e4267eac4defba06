"""The store of compiled models: its owner, and the folders of killed builders."""

import errno
import fcntl
import os
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from vitruvian.common import cache
from vitruvian.common.errors import WorkError
from vitruvian.sim.rtl import elaboration_cache as alias


def entry(folder: Path) -> Path:
    def build(into: Path) -> dict:
        (into / "model").write_text("x")
        return {}

    return cache.entry("kind", "key", build)[0]


def test_a_cache_that_every_user_can_write_to_is_refused(own_cache):
    own_cache.mkdir()
    own_cache.chmod(0o777)
    with pytest.raises(cache.CacheError, match=r"VITRUVIAN_CACHE must be .* every user can write"):
        entry(own_cache)
    own_cache.chmod(0o755)
    assert (entry(own_cache) / "model").exists()


@pytest.mark.parametrize("owned", [".", "build", "build/cache"])
def test_a_cache_in_a_folder_of_another_user_is_refused(monkeypatch, tmp_path, owned):
    """Libraries of the cache are loaded into the process, so no other user may provide them."""
    monkeypatch.delenv("VITRUVIAN_CACHE")
    monkeypatch.chdir(tmp_path)
    assert entry(tmp_path) == tmp_path / "build" / "cache" / "kind" / "key"
    foreign = (tmp_path / owned).resolve()
    stat = Path.stat

    def owner(path, **options):
        facts = stat(path, **options)
        if path == foreign:
            facts = os.stat_result((*facts[:4], os.geteuid() + 1, *facts[5:10]))
        return facts

    monkeypatch.setattr(Path, "stat", owner)
    with pytest.raises(cache.CacheError, match="another user owns") as refused:
        entry(tmp_path)
    assert "VITRUVIAN_CACHE" in str(refused.value) and str(foreign) in str(refused.value)
    # An own folder in VITRUVIAN_CACHE helps.
    monkeypatch.setenv("VITRUVIAN_CACHE", str(tmp_path / "own"))
    assert entry(tmp_path).is_dir()


def test_a_umask_of_zero_makes_no_cache_that_every_user_can_write_to(own_cache):
    mask = os.umask(0)
    try:
        entry(own_cache)
    finally:
        os.umask(mask)
    assert not own_cache.stat().st_mode & 0o002


def test_sweep_deletes_abandoned_folders_and_keeps_those_in_use(own_cache):
    cache.check_cache()
    for key in ("dead", "alive"):
        (own_cache / "kind" / f"{key}.partial").mkdir(parents=True)
    (own_cache / "locks").mkdir()
    with open(own_cache / "locks" / "kind-alive", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        cache.sweep()
        assert [path.name for path in (own_cache / "kind").iterdir()] == ["alive.partial"]
    cache.sweep()
    assert not list((own_cache / "kind").iterdir())


@pytest.fixture
def read_only(own_cache, monkeypatch):
    """Let the file system of the store be read-only; a user such as root ignores permissions."""
    entry(own_cache)

    def refuse(name):
        real = getattr(Path, name)

        def method(path, *arguments, **options):
            if path.is_relative_to(own_cache):
                raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
            return real(path, *arguments, **options)

        monkeypatch.setattr(Path, name, method)

    for name in ("touch", "mkdir", "write_text", "write_bytes"):
        refuse(name)
    make = tempfile.mkstemp

    def mkstemp(**options):
        if Path(options["dir"]).is_relative_to(own_cache):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return make(**options)

    monkeypatch.setattr(tempfile, "mkstemp", mkstemp)
    return own_cache


def test_a_warm_read_only_cache_is_used(read_only):
    assert cache.check_cache(write=False) == read_only
    assert (entry(read_only) / "model").read_text() == "x"
    store = cache.ResultCache(kind="results")
    store.put("ab", [1])  # the producer keeps its result, so that this is no error
    assert store.get("ab") is None
    assert alias.remembered("unit", lambda: "k" * 32) == "k" * 32


def test_two_that_need_the_same_key_compute_it_once(own_cache):
    both, calls = threading.Barrier(2), []

    def find():
        calls.append(1)
        time.sleep(0.2)
        return "k" * 32

    def ask(_):
        both.wait(timeout=30)
        return alias.remembered("unit", find)

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(ask, range(2))) == ["k" * 32] * 2
    assert calls == [1]


def test_a_missing_entry_of_a_read_only_cache_is_one_line(read_only):
    with pytest.raises(cache.CacheError) as refused:
        cache.entry("kind", "other", lambda folder: {})
    assert str(refused.value) == (
        f"VITRUVIAN_CACHE must be a folder in which files can be created, not '{read_only}' "
        "(Read-only file system)"
    )


def _no_space(folder):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _no_space_of_a_tool(folder):
    raise WorkError("g++ failed: fatal error: error writing to model.o: No space left on device")


def _quota(folder):
    raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))


@pytest.mark.parametrize("build", [_no_space, _no_space_of_a_tool, _quota])
def test_a_full_cache_is_one_line_that_says_how_to_move_it(build, own_cache):
    with pytest.raises(cache.CacheError) as refused:
        cache.entry("kind", "key", build)
    assert str(refused.value) == (
        f"VITRUVIAN_CACHE must be a folder with free space, not '{own_cache}', whose disk is full; "
        "free space there, or set VITRUVIAN_CACHE to a folder on another disk"
    )
    assert not list((own_cache / "kind").iterdir())


def test_other_errors_of_a_builder_stay(own_cache):
    def build(folder):
        raise WorkError("g++ failed")

    with pytest.raises(WorkError, match=r"^g\+\+ failed$"):
        cache.entry("kind", "key", build)

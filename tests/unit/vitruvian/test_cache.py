"""The store of compiled models: its owner, and the folders of killed builders."""

import fcntl
import os
from pathlib import Path

import pytest

from vitruvian import cache


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

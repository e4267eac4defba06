"""Files: inputs are bounded; outputs are complete or absent; links and devices are kept."""

import errno
import io
import os
import subprocess
import sys

import pytest

from vitruvian.errors import UserError
from vitruvian.files import differing, read_whole, write_all, write_whole


def test_a_symbolic_link_stays_and_its_file_is_written(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("before")
    link.symlink_to(target)
    write_whole(link, "after")
    assert link.is_symlink() and target.read_text() == "after"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "target"]


def test_standard_output_is_not_replaced_by_a_file(root, tmp_path):
    before = os.lstat("/dev/stdout")
    code = "from pathlib import Path; from vitruvian.files import write_whole\n"
    code += "write_whole(Path('/dev/stdout'), 'whole')"
    with open(tmp_path / "out", "wb") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True, cwd=root)
    assert (tmp_path / "out").read_text() == "whole"
    after = os.lstat("/dev/stdout")
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)


def test_a_file_of_the_largest_size_is_read_and_a_larger_one_is_not(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(bytes(1024))
    assert read_whole(path, 1024) == bytes(1024)
    path.write_bytes(bytes(1025))
    with pytest.raises(UserError, match=r"data must have at most 1 KiB$"):
        read_whole(path, 1024)


def test_what_is_no_regular_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/zero", tmp_path / "pipe"):
        with pytest.raises(UserError, match="must be a regular file, not a device or pipe"):
            read_whole(path)
    with pytest.raises(UserError, match="Is a directory"):
        read_whole(tmp_path)


def test_a_missing_file_has_its_name_and_the_reason(tmp_path):
    with pytest.raises(UserError, match=r"^no.bin: No such file or directory$"):
        read_whole("no.bin")
    with pytest.raises(UserError, match="embedded null byte"):
        read_whole("a\0b")


def test_files_with_another_content_are_found(tmp_path):
    names = [tmp_path / name for name in ("same", "other", "longer", "absent", "folder")]
    texts = dict.fromkeys(names, "text")
    for name, content in zip(names, ("text", "tixt", "text\n"), strict=False):
        name.write_text(content)
    names[4].mkdir()
    assert [path.name for path in differing(texts)] == ["other", "longer", "folder"]


class Full(io.BufferedWriter):
    """A file on a disk that has room for few bytes."""

    room = 0

    def write(self, data):
        Full.room -= len(data)
        if Full.room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(data)


@pytest.fixture
def full(monkeypatch):
    """Let the disk have room for 100 bytes in all."""
    monkeypatch.setattr(Full, "room", 100)
    monkeypatch.setattr(os, "fdopen", lambda handle, mode: Full(io.FileIO(handle, mode)))


def test_a_full_disk_leaves_no_file_and_no_folder(tmp_path, full):
    old = tmp_path / "old"
    old.write_text("before")
    texts = {old: b"1234", tmp_path / "a" / "b" / "x": bytes(60), tmp_path / "a" / "y": bytes(60)}
    with pytest.raises(OSError, match="No space left on device") as refused:
        write_all(texts)
    assert refused.value.filename == str(tmp_path / "a" / "y")
    assert list(tmp_path.iterdir()) == [old] and old.read_text() == "before"


def test_existing_folders_stay_after_a_failure(tmp_path, full):
    (tmp_path / "a").mkdir()
    with pytest.raises(OSError, match="No space"):
        write_whole(tmp_path / "a" / "b" / "x", bytes(101))
    assert [path.name for path in tmp_path.rglob("*")] == ["a"]

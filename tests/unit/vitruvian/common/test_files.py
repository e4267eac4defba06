"""Files: inputs are bounded; outputs are complete or absent; links and devices are kept."""

import bz2
import errno
import gzip
import io
import os
import socket
import subprocess
import sys
import threading
import zipfile

import numpy as np
import pytest

from vitruvian.common.errors import UserError
from vitruvian.common.files import (
    differing,
    read_bounded,
    read_whole,
    write_all,
    write_whole,
)
from vitruvian.common.npz import read_all_arrays


def test_a_symbolic_link_stays_and_its_file_is_written(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("before")
    link.symlink_to(target)
    write_whole(link, "after")
    assert link.is_symlink() and target.read_text() == "after"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "target"]


def test_standard_output_is_not_replaced_by_a_file(root, tmp_path):
    before = os.lstat("/dev/stdout")
    code = "from pathlib import Path; from vitruvian.common.files import write_whole\n"
    code += "write_whole(Path('/dev/stdout'), 'whole')"
    with open(tmp_path / "out", "wb") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True, cwd=root)
    assert (tmp_path / "out").read_text() == "whole"
    after = os.lstat("/dev/stdout")
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
def test_a_file_of_the_bound_is_read_and_a_larger_one_is_refused(tmp_path, pack):
    path = tmp_path / "file"
    content = os.urandom(5000)
    path.write_bytes(pack(content))
    bounds = {"limit": 6000, "unpack": True}
    assert read_bounded(path, unpacked_limit=5000, **bounds) == content
    if pack is bytes:
        with pytest.raises(UserError, match="graph must have at most 4,999 bytes, not 5,000 bytes"):
            read_bounded(path, thing="graph", limit=4999)
    else:
        with pytest.raises(UserError, match="must unpack to at most 4,999 bytes; unpack a larger"):
            read_bounded(path, unpacked_limit=4999, **bounds)
        assert read_bounded(path) == pack(content)  # packed content is unpacked on demand only


def test_what_has_no_end_is_refused(tmp_path):
    for path, kind in (("/dev/zero", "a device"), (tmp_path, "a folder")):
        with pytest.raises(UserError, match=f"input must be a file, not {kind}"):
            read_bounded(path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        with pytest.raises(UserError, match="not a socket"):
            read_bounded(tmp_path / "s")


def test_a_pipe_is_read_up_to_the_bound(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for size in (1000, 1001):
        writer = threading.Thread(target=lambda n=size: pipe.write_bytes(bytes(n)))
        writer.start()
        if size == 1000:
            assert read_bounded(pipe, unpacked_limit=1000) == bytes(1000)
        else:
            with pytest.raises(UserError, match="must have at most 1,000 bytes"):
                read_bounded(pipe, unpacked_limit=1000)
        writer.join()


def test_damaged_packed_files_are_refused(tmp_path):
    path = tmp_path / "file"
    for pack in (gzip.compress, bz2.compress):
        path.write_bytes(pack(os.urandom(1000))[:500])
        with pytest.raises(UserError, match=r"must be packed without damage: .*end-of-stream"):
            read_bounded(path, unpack=True)


def test_arrays_are_read_and_bombs_are_refused(tmp_path):
    path = tmp_path / "x.npz"
    np.savez_compressed(path, a=np.arange(3), b=np.zeros(10**6, np.uint8))
    arrays = read_all_arrays(path)
    assert arrays["a"].tolist() == [0, 1, 2] and sorted(arrays) == ["a", "b"]
    assert path.stat().st_size < 10_000
    with pytest.raises(UserError, match="set must unpack to at most 100,000 bytes, not"):
        read_all_arrays(path, thing="set", limit=100_000)
    np.savez(tmp_path / "z.npz", a=np.arange(6, dtype=">i4").reshape(2, 3).T, b=np.array(2.5))
    arrays = read_all_arrays(tmp_path / "z.npz")
    assert arrays["a"].tolist() == [[0, 3], [1, 4], [2, 5]] and arrays["b"] == 2.5
    np.savez(tmp_path / "o.npz", o=np.array([{}], object))
    with pytest.raises(UserError, match=r"must be a NumPy file of numbers: .*objects"):
        read_all_arrays(tmp_path / "o.npz")
    np.save(tmp_path / "y.npy", np.arange(4))
    assert read_all_arrays(tmp_path / "y.npy")[""].tolist() == [0, 1, 2, 3]


def test_an_archive_that_lies_about_its_size_is_read_no_further(tmp_path):
    """The size that is stated for a member bounds what is read, whatever it unpacks to."""
    packed, array = io.BytesIO(), io.BytesIO()
    np.save(array, np.zeros(10**6, np.uint8))
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", array.getvalue())
    stated = len(array.getvalue()).to_bytes(4, "little")
    content = packed.getvalue()
    assert content.count(stated) == 2
    path = tmp_path / "x.npz"
    path.write_bytes(content.replace(stated, (200).to_bytes(4, "little")))
    with pytest.raises(UserError, match="must be a NumPy file of numbers"):
        read_all_arrays(path, limit=100_000)


@pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04 no archive", b"\x93NUMPY\x01\x00"])
def test_what_is_no_file_of_arrays_is_refused_in_a_line(tmp_path, content):
    path = tmp_path / "x.npz"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"must be a NumPy file of numbers: .") as caught:
        read_all_arrays(path)
    assert "\n" not in str(caught.value)
    pickled = io.BytesIO()
    np.save(pickled, np.array([{}], object), allow_pickle=True)
    path.write_bytes(pickled.getvalue())
    with pytest.raises(UserError, match="must be a NumPy file of numbers"):
        read_all_arrays(path)


def test_a_file_of_the_largest_size_is_read_and_a_larger_one_is_not(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(bytes(1024))
    assert read_whole(path, 1024) == bytes(1024)
    path.write_bytes(bytes(1025))
    with pytest.raises(UserError, match=r"data must have at most 1,024 bytes, not 1,025 bytes$"):
        read_whole(path, 1024)


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

"""The free memory is the smaller of two limits."""

from vitruvian.common import memory as module


def test_free_memory_is_read(monkeypatch):
    """The smaller of the two limits counts, if the system and the container state them."""
    files = {}

    def read(path):
        if str(path) not in files:
            raise OSError
        return files[str(path)]

    monkeypatch.setattr(module.Path, "read_text", read)
    assert module.free_bytes() is None
    files["/proc/meminfo"] = "MemTotal:  99 kB\nMemAvailable:   2048 kB\n"
    files["/sys/fs/cgroup/memory.max"] = "max\n"
    assert module.free_bytes() == 2 << 20
    files["/sys/fs/cgroup/memory.max"] = "1048576\n"
    assert module.free_bytes() == 1 << 20

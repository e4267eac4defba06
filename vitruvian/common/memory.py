"""The free memory of the machine, for checks before large arrays are allocated."""

from pathlib import Path


def free_bytes() -> int | None:
    """Return the free memory in bytes: the smaller of the system's and the container's limit.

    Returns
    -------
    int or None
        None if neither can be read; both are files of Linux.
    """
    limits: list[int] = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            name, value = line.split(":")
            if name == "MemAvailable":
                limits.append(int(value.split()[0]) * 1024)
    except (OSError, ValueError):
        pass
    try:
        limits.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    except (OSError, ValueError):
        pass  # not in a container, or in one without a limit, where the file contains "max"
    return min(limits, default=None)

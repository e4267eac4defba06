"""A pytest plugin for the sampler: the test that runs is written down as it begins."""

import os
from pathlib import Path

__all__ = ["pytest_runtest_logstart"]


def pytest_runtest_logstart(nodeid: str, location: tuple[str, int | None, str]) -> None:
    """Write the test's name where the sampler looks for it."""
    target = os.environ.get("VITRUVIAN_MUTANT_TEST")
    if target:
        Path(target).write_text(nodeid)

"""Trial of a mutant: in a copy of the tree, the nearest tests run until one of them fails."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.nearest import ranked
from tests.mutants.operators import Mutant

_NEAR = 4  # number of test files in the first round
_GROUP = 6  # number of test files in every later round
_STILL = 3  # a test may take this many times its limit by the clock


@dataclass(frozen=True)
class Verdict:
    """The outcome of the trial of a mutant.

    Parameters
    ----------
    state : str
        "killed", "survived" or "undecided" (no test noticed it before the budget was spent).
    by : str
        The test that noticed it, or what happened instead.
    seconds : float
        CPU time of the tests.
    """

    state: str
    by: str
    seconds: float


class Copy:
    """A copy of the tracked files, in which one mutant at a time is applied.

    Parameters
    ----------
    root : Path
        The repository.
    folder : Path
        Folder of the copy, which is replaced if it exists.
    """

    def __init__(self, root: Path, folder: Path):
        self.root, self.folder = root, folder
        self.tree = folder / "tree"
        shutil.rmtree(folder, ignore_errors=True)
        names = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        for name in names:
            source, target = root / name, self.tree / name
            if source.is_file() or source.is_symlink():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target, follow_symlinks=False)
        shared = root.parent / "shared"
        if shared.is_dir():
            (folder / "shared").symlink_to(shared)
        self._count = 0
        self.spent = 0.0

    def try_out(self, mutant: Mutant, *, budget: float, limit: float) -> Verdict:
        """Apply a mutant, run its nearest tests, and restore the file.

        Parameters
        ----------
        budget : float
            Seconds of CPU time that all tests of the mutant may take.
        limit : float
            Seconds of CPU time that a test may take. A test that takes longer, or three times as
            long by the clock, counts as one that never ends and so has noticed the mutant.
        """
        path = self.tree / mutant.path
        source, before = path.read_bytes(), path.stat()
        self._count += 1
        path.write_bytes(mutant.apply(source))
        # Python and Numba recognise a changed file by its time and size, so that two mutants of
        # equal size must have different times.
        moment = before.st_mtime + 10 * self._count
        os.utime(path, (moment, moment))
        try:
            return self._run(mutant, source, budget, limit)
        finally:
            path.write_bytes(source)
            os.utime(path, (before.st_mtime, before.st_mtime))

    def _run(self, mutant: Mutant, source: bytes, budget: float, limit: float) -> Verdict:
        files = ranked(self.root, mutant.path)
        near, far = files[:_NEAR], files[_NEAR:]
        rounds = [(near, "not slow")]
        rounds += [(far[i : i + _GROUP], "not slow") for i in range(0, len(far), _GROUP)]
        rounds.insert(3, (near, "slow"))
        rounds.append((far, "slow"))
        self.spent = 0.0
        with tempfile.TemporaryDirectory(dir=self.folder) as own:
            settings = self._settings(mutant, source, Path(own))
            for chosen, marks in rounds:
                if not chosen:
                    continue
                left = budget - self.spent
                if left <= 0:
                    return Verdict("undecided", "budget spent", self.spent)
                arguments = [*chosen, "-m", marks]
                code, test = self.pytest(arguments, settings, left, limit)
                if code == "over":
                    return Verdict("undecided", f"budget spent in {test}", self.spent)
                if code == "endless":
                    return Verdict("killed", f"{test} (no end)", self.spent)
                if code not in ("0", "5"):
                    return Verdict("killed", test or f"pytest ended with {code}", self.spent)
        return Verdict("survived", f"{len(files)} test files", self.spent)

    def _settings(self, mutant: Mutant, source: bytes, own: Path) -> dict[str, str]:
        """Return an environment in which no cache hides the mutant.

        A compiled loop that Numba has cached holds the functions and constants of other modules as
        they were; a cached synthesis holds what the flow made of it.
        """
        line = source.splitlines()[mutant.line - 1]
        frozen = b"njit" in source or not line[:1].isspace()
        settings = {
            "NUMBA_CACHE_DIR": str(own if frozen else self.folder / "numba"),
            "PYTHONPATH": str(self.tree),
            "VITRUVIAN_MUTANT_TEST": str(own / "test"),
        }
        if mutant.path.startswith(("flows", "sim/rtl")):
            settings["VITRUVIAN_CACHE"] = str(own / "cache")
        return settings

    def pytest(
        self, arguments: list[str], settings: dict[str, str], budget: float, limit: float
    ) -> tuple[str, str]:
        """Run tests in the copy; return exit code, "over" or "endless", and the last test."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        command += ["-p", "tests.mutants.limit", *arguments]
        told = Path(settings["VITRUVIAN_MUTANT_TEST"])
        told.unlink(missing_ok=True)
        process = subprocess.Popen(
            command,
            cwd=self.tree,
            env=os.environ | settings,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        test, since, now = "", 0.0, 0.0
        moved = time.monotonic()
        try:
            while process.poll() is None:
                time.sleep(0.2)
                now = _cpu_seconds(process.pid)
                name = told.read_text() if told.exists() else ""
                if name != test:
                    test, since, moved = name, now, time.monotonic()
                if now - since > limit or time.monotonic() - moved > _STILL * limit:
                    return "endless", test or "collection"
                if now > budget:
                    return "over", test or "collection"
        finally:
            self.spent += now
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        name = told.read_text() if told.exists() else ""
        return str(process.returncode), name


def _cpu_seconds(group: int) -> float:
    """Return the CPU time that the processes of a group have used, including ended children."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group:
            ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")

"""No compiled loop of golden and sim reads or writes outside its arrays.

Numba does not check indices by default. Every loop runs here with NUMBA_BOUNDSCHECK=1 in its own
process and with an empty cache, so that no code compiled without the checks is used. Optimisation
is off, which leaves the checks unchanged and takes a fraction of the compile time.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.compiled_loops import KERNEL_ROWS, covering_rows, places
from vitruvian.golden.machines.table import find

#: The cases of generated kernels, which take most of the time. The first has kernels with every
#: array and every index, each in its loop, that the kernels of the second have.
KERNELS, OTHERS = "products_of_machines", "products_of_other_machines"


def run(root: Path, cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the loops with index checks."""
    settings = {
        "NUMBA_BOUNDSCHECK": "1",
        "NUMBA_CACHE_DIR": str(cache),
        "NUMBA_OPT": "0",
        "NUMBA_LLVM_REFPRUNE_PASS": "0",
    }
    return subprocess.run(
        [sys.executable, "-m", "tests.support.compiled_loops", *arguments],
        cwd=root,
        env=os.environ | settings,
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
def test_every_compiled_loop_stays_within_its_arrays(root, tmp_path):
    """Kernels are generated, so they are not among the loops; another process runs them."""
    done = run(root, tmp_path, "--without", KERNELS, OTHERS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.splitlines()[-1].removesuffix(" loops")) >= 20, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("case", [KERNELS, pytest.param(OTHERS, marks=pytest.mark.long)])
def test_every_generated_kernel_stays_within_its_arrays(root, tmp_path, case):
    done = run(root, tmp_path, "--only", case)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"{case}: "), done.stdout


def test_the_covering_kernels_have_every_place_of_all():
    by_row = {stem: places(find(stem).rule) for stem in KERNEL_ROWS}
    covered = set().union(*(by_row[stem] for stem in covering_rows()))
    assert covered == set().union(*by_row.values()) and len(covered) > 400
    assert set(covering_rows()) < set(KERNEL_ROWS)


@pytest.mark.long
def test_a_write_outside_a_buffer_is_noticed(root, tmp_path):
    source = (root / "golden" / "fp" / "dot_compiled.py").read_text()
    mutated = source.replace("np.zeros(limbs.max(), np.int64)", "np.zeros(limbs.min(), np.int64)")
    assert mutated != source
    (tmp_path / "mutated.py").write_text(mutated)
    done = run(root, tmp_path, "--sums", str(tmp_path / "mutated.py"), "--only", "dot_sums")
    assert done.returncode != 0 and "IndexError" in done.stderr, done.stdout + done.stderr

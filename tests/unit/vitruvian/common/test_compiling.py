"""A compiled loop survives the renaming of a class among its arguments."""

import os
import subprocess
import sys

import pytest

_MODULE = """
from typing import NamedTuple
from vitruvian.common.compiling import compiled

class NAME(NamedTuple):
    x: int

def twice(pair):
    return 2 * pair.x

if __name__ == "__main__":
    import loops
    print(compiled(loops.twice)(loops.NAME(21)))
"""


@pytest.mark.parametrize("name", ["Before", "After"])
def test_an_index_of_an_older_version_is_compiled_anew(root, tmp_path, name):
    path = tmp_path / "loops.py"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(root), str(tmp_path)))}
    environment |= {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    for class_name in ("Before", name):
        path.write_text(_MODULE.replace("NAME", class_name))
        command = [sys.executable, "-B", str(path)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert done.stdout == "42\n"
    assert list((tmp_path / "cache").rglob("*.nbi"))

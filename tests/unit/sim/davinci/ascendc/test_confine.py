"""What a kernel and a host program may not do: files, programs, processes and the network."""

import ctypes
import platform
import shutil
from pathlib import Path

import numpy as np
import pytest

from vitruvian.sim.davinci import load_chip
from vitruvian.sim.davinci.ascendc import build, compile_kernel, process
from vitruvian.sim.davinci.ascendc.host import run_host

KERNELS = Path(__file__).parent / "kernels"
CHIP = load_chip("ascend910b")
DEEDS = 14

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None or platform.machine() != "x86_64",
    reason="AscendC is compiled by g++ on x86-64",
)


def deeds(victim, without=-1):
    """Return, for each deed of confined.cpp but one, 1 if it succeeded and 0 if not."""
    compiled = compile_kernel(
        str(KERNELS / "confined.cpp"), CHIP, defines={"VICTIM": f'"{victim}"'}
    )
    arguments = {"x": np.full(DEEDS, -1, np.int32), "count": DEEDS, "without": without}
    return build({compiled.kind: compiled}, CHIP, arguments)[1].read("x").tolist()


def has_landlock():
    """Return whether the system knows Landlock, whose version this call of Linux returns."""
    return ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1) >= 1


def test_a_kernel_is_confined(tmp_path):
    """No deed succeeds; without Landlock, files that exist can be opened, but not changed."""
    victim = tmp_path / "victim"
    victim.write_text("kept")
    victim.chmod(0o600)
    found = deeds(victim)
    only_landlock = {0, 1, 5, 9, 10, 12}
    for deed in range(DEEDS):
        assert found[deed] == 0 or (deed in only_landlock and not has_landlock()), deed
    assert victim.read_text() == "kept" and not victim.stat().st_mode & 0o077


def test_the_deeds_are_possible_otherwise(tmp_path, monkeypatch):
    """Without the confinement, the same kernel does what it tries."""
    monkeypatch.setattr(process, "confined", lambda program, folders: [str(program)])
    victim = tmp_path / "victim"
    victim.write_text("kept")
    found = deeds(victim, without=10)  # which would end the kernel
    possible = {0, 1, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13}
    assert {deed for deed, result in enumerate(found) if result == 1} >= possible
    assert not victim.exists()


@pytest.mark.parametrize("confine", [True, False])
def test_a_host_program_stays_in_its_folder(tmp_path, monkeypatch, confine):
    """It may read, and make files, folders and threads in its own folder; no more."""
    if not confine:
        monkeypatch.setattr(process, "confined", lambda program, folders: [str(program)])
    elif not has_landlock():
        pytest.skip("the system has no Landlock")
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    outside.mkdir()
    folder.mkdir()
    (outside / "victim").write_text("kept")
    compiled = compile_kernel(
        str(KERNELS / "confined_host.cpp"), CHIP, host=True, defines={"OUTSIDE": f'"{outside}"'}
    )
    said = []

    def finish(program, functional):
        said.extend(text for _, text in program.prints)
        return {"gm0": functional.read("gm0")}

    run_host({compiled.kind: compiled}, CHIP, finish, folder=str(folder), tell=said.append)
    allowed = ["thread", "write", "folder", "read", "launch"]
    more = ["write outside", "change outside", "delete outside", "run"]
    deeds = "".join(said).split("\n")[:-1]
    assert [deed for deed in deeds if deed != "network"] == (
        allowed if confine else [*allowed[:4], *more, "launch"]
    )
    assert "network" not in deeds or not confine
    assert sorted(path.name for path in folder.iterdir()) == ["inner", "own"]

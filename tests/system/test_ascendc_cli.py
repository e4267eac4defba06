"""vitruvian ascendc: permission, findings by line, repairs, and results compared."""

import json
import platform
import shutil

import numpy as np
import pytest

from vitruvian.cli import main

ARGUMENTS = [
    w for n in "xyz" for w in ("--arg", f"{n}={'zeros' if n == 'z' else 'normal'}:fp16:1024")
]
ARGUMENTS += ["--arg", "n=1024"]

#: The calls of the kernel through which its additions are reached.
CALLS = ("            Compute();", "    op.Process();")

needs_compiler = pytest.mark.skipif(
    shutil.which("g++") is None or platform.machine() != "x86_64",
    reason="AscendC is compiled by g++ on x86-64",
)


def test_native_code_needs_permission(capsys, monkeypatch, root):
    """Nothing is compiled before the user has allowed it."""
    monkeypatch.delenv("VITRUVIAN_RUN_NATIVE", raising=False)
    assert main(["ascendc", str(root / "examples" / "ascendc_add.cpp"), *ARGUMENTS]) == 2
    assert "--run-native must be given, because" in capsys.readouterr().err


@needs_compiler
def test_a_missing_barrier_is_found_and_repaired(capsys, monkeypatch, tmp_path, root):
    """The finding names both lines; the compiler's barrier and the user's own repair it."""
    x, y = (np.arange(1024, dtype=np.float16) for _ in range(2))
    for name, array in (("x", x), ("y", y), ("z", x + y + y)):
        np.save(tmp_path / f"{name}.npy", array)
    given = [w for n in "xy" for w in ("--arg", f"{n}={tmp_path}/{n}.npy")]
    given += ["--arg", "z=zeros:fp16:1024", "--arg", "n=1024", "--expect", f"z={tmp_path}/z.npy"]
    monkeypatch.setenv("VITRUVIAN_RUN_NATIVE", "1")
    file = root / "examples" / "ascendc_add.cpp"
    bad = ["ascendc", str(file), *given, "-D", "TWICE"]
    lines = file.read_text().splitlines()
    first = next(i for i, line in enumerate(lines, 1) if "Add(z, a, b" in line)
    second = next(i for i, line in enumerate(lines, 1) if "Add(z, z, b" in line)
    assert main(bad) == 1
    out = capsys.readouterr().out
    assert "hazard: vadd" in out and "pipe_barrier(V) between them is missing" in out
    assert f"ascendc_add.cpp:{first} on V" in out and f"ascendc_add.cpp:{second} on V" in out
    assert "z: all 1,024 elements equal" in out
    calls = [next(i for i, line in enumerate(lines, 1) if call in line) for call in CALLS]
    chain = f"called by KernelAdd::Process at {file}:{calls[0]}, called by add_custom at "
    assert f"{file}:{first} in KernelAdd::Compute, {chain}{file}:{calls[1]}" in out
    assert f"{file}:{second} in KernelAdd::Compute, {chain}" in out
    assert main([*bad, "--auto-sync"]) == 0
    assert main([*bad, "-D", "BARRIER"]) == 0


@needs_compiler
def test_a_host_program_has_a_report_for_each_launch(capsys, monkeypatch, tmp_path, root):
    """The program's files are those of the current folder."""
    file = root / "tests" / "unit" / "sim" / "davinci" / "ascendc" / "kernels" / "host.cpp"
    monkeypatch.chdir(tmp_path)
    assert main(["ascendc", str(file), "--host", "--run-native", "--json", "r.json"]) == 0
    assert capsys.readouterr().out.count("scaled on ascend910b") == 2
    found = json.loads((tmp_path / "r.json").read_text())["launches"]
    assert [each["findings"] for each in found] == [[], []]
    assert (tmp_path / "output.bin").stat().st_size == 512
    (tmp_path / "k.cpp").write_text("__global__ void k() {}\nint main() {}\n")
    assert main(["ascendc", "k.cpp", "--host", "--run-native"]) == 2
    assert "k.cpp: its main must launch a kernel" in capsys.readouterr().err


_HOST = """#include "acl/acl.h"
#include "SOURCE"
int main() {
    uint8_t *x, *y;
    half data[128] = {half(1)};
    aclrtMalloc((void **)&x, 256, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMalloc((void **)&y, 256, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemcpy(x, 256, data, 256, ACL_MEMCPY_HOST_TO_DEVICE);
    branches<<<1, nullptr, nullptr>>>((__gm__ half *)x, (__gm__ half *)y, 0);
}
"""


@needs_compiler
@pytest.mark.parametrize("host", [False, True])
def test_the_other_side_of_a_branch(capsys, monkeypatch, tmp_path, root, host):
    """A barrier that is missing on one side is found, although the data take the other."""
    file = root / "tests" / "unit" / "sim" / "davinci" / "ascendc" / "kernels" / "branches.cpp"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "host.cpp").write_text(_HOST.replace("SOURCE", str(file)))
    arguments = ["--arg", "x=zeros:fp16:128", "--arg", "y=zeros:fp16:128", "--arg", "n=0"]
    words = ["host.cpp", "--host"] if host else [str(file), "--kernel", "branches", *arguments]
    words = ["ascendc", *words, "--run-native"]
    assert main(words) == 0
    assert main([*words, "--branches", "6"]) == 1
    done = capsys.readouterr()
    assert "hazard: when the read at" in done.out and "branches.cpp:14 returns 0x" in done.out
    assert " other runs made" in done.err
    assert main([*words, "--branches", "6", "-D", "BARRIER"]) == 0

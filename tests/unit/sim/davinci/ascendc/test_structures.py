"""Structures of a kernel: by value, and in global memory."""

import platform
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest

from vitruvian.common.errors import UserError
from vitruvian.sim.davinci import load_chip
from vitruvian.sim.davinci.ascendc import build, compile_kernel
from vitruvian.wings.ascend.cce import kernel_arguments
from vitruvian.wings.ascend.cce_arrays import structure_argument

FILE = Path(__file__).parent / "kernels" / "structures.cpp"
CHIP = load_chip("ascend910b")
GIVEN = "struct:HIfqB:300,0x20,0.5,-7,9"

needs_compiler = pytest.mark.skipif(
    shutil.which("g++") is None or platform.machine() != "x86_64",
    reason="AscendC is compiled by g++ on x86-64",
)


def run(kernel, texts):
    compiled = compile_kernel(str(FILE), CHIP, kernel=kernel)
    arguments = kernel_arguments(compiled.parameters, ["x=zeros:fp32:8", *texts], structures=True)
    return build({compiled.kind: compiled}, CHIP, arguments)[1].read("x")[:5].tolist()


@needs_compiler
def test_a_structure_by_value(tmp_path):
    """Members have the compiler's places; a file has the same bytes."""
    assert run("by_value", [f"tiling={GIVEN}", "more=1"]) == [300, 32, 0.5, -7, 10]
    content = struct.pack("HIfqB7x", 3, 4, 0.25, 5, 6)
    np.save(tmp_path / "t.npy", np.frombuffer(content, np.uint8))
    assert run("by_value", [f"tiling={tmp_path}/t.npy", "more=0"]) == [3, 4, 0.25, 5, 6]


@needs_compiler
def test_a_structure_in_global_memory():
    """A pointer takes the same text."""
    assert run("in_memory", [f"tiling={GIVEN}"]) == [300, 32, 0.5, -7, 9]


@needs_compiler
@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["tiling=5", "more=0"], r"--arg tiling must be a structure of 32 bytes, .* not 5"),
        (["tiling=struct:HIf:1,2,3", "more=0"], r"--arg tiling must have 32 bytes, not 12"),
        (["tiling=struct:5q:1,2,3,4,5", "more=0"], r"--arg tiling must have 32 bytes, not 40"),
        ([f"tiling={GIVEN}", "more=struct:i:1"], r"--arg more must be a number, not a structure"),
    ],
)  # fmt: skip
def test_a_structure_that_does_not_fit(texts, message):
    """The kernel's own size decides."""
    with pytest.raises(UserError, match=message):
        run("by_value", texts)


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("struct:B:255", b"\xff"),
        ("struct:2Bx2b:1,2,-1,-2", b"\1\2\0\xff\xfe"),
        ("struct:BI:1,2", struct.pack("BI", 1, 2)),
        ("struct:e:0.5", struct.pack("e", 0.5)),
    ],
)
def test_members(text, content):
    """The letters are those of Python's module struct."""
    assert structure_argument("t", text) == content


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("struct", "must be a structure: a file"),
        ("struct:", "must be a structure: a file"),
        ("struct:Z:1", "must be a structure: a file"),
        ("struct:<I:1", "must be a structure: a file"),
        ("struct:2I:1", "must have 2 values, not 1"),
        ("struct:I:1,", "must have 1 values, not 2"),
        ("struct:B:256", "must have numbers that fit 'B', not '256'"),
        ("struct:B:0.5", "must have numbers that fit 'B', not '0.5'"),
        ("struct:e:1e9", "must have numbers that fit 'e', not '1e9'"),
        ("struct:f:x", "must have numbers that fit 'f', not 'x'"),
        ("missing.npy", r"must be a file .npy, not 'missing.npy'"),
    ],
)
def test_members_that_do_not_fit(text, message):
    """A mistake is one line."""
    with pytest.raises(UserError, match=message) as caught:
        structure_argument("t", text)
    assert "\n" not in str(caught.value)

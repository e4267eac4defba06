"""Every line that orders two units is needed: without it, there is a finding or a deadlock."""

import platform
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from vitruvian.sim.davinci import Deadlock, load_chip, simulate
from vitruvian.sim.davinci.ascendc import build, compile_kernel

KERNEL = """
#include "kernel_operator.h"
using namespace AscendC;
__global__ __aicore__ void k(__gm__ float *x, __gm__ float *y) {
    LocalTensor<float> a(TPosition::VECCALC, 0, 64), b(TPosition::VECCALC, 256, 64);
    GlobalTensor<float> in, out;
    in.SetGlobalBuffer(x);
    out.SetGlobalBuffer(y);
    for (int i = 0; i < 2; i++) {
        if (i) WaitFlag<HardEvent::MTE3_MTE2>(0);
        DataCopy(a, in[64 * i], 64);
        SetFlag<HardEvent::MTE2_V>(1);
        WaitFlag<HardEvent::MTE2_V>(1);
        Muls(b, a, 3.0f, 64);
        PipeBarrier<PIPE_V>();
        Adds(b, b, 1.0f, 64);
        SetFlag<HardEvent::V_MTE3>(0);
        WaitFlag<HardEvent::V_MTE3>(0);
        DataCopy(out[64 * i], b, 64);
        if (!i) SetFlag<HardEvent::MTE3_MTE2>(0);
    }
}
"""

CHIP = load_chip("ascend910b")
FLAGS = re.compile(r"^.*(?:SetFlag|WaitFlag|PipeBarrier)<.*\n", re.M)

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None or platform.machine() != "x86_64",
    reason="AscendC is compiled by g++ on x86-64",
)


def found(folder: Path, text: str) -> list[str]:
    """Return the findings of a kernel; a deadlock is one."""
    (folder / "k.cpp").write_text(text)
    compiled = compile_kernel(str(folder / "k.cpp"), CHIP)
    arguments = {"x": np.arange(128, dtype=np.float32), "y": np.zeros(128, np.float32)}
    program, _ = build({compiled.kind: compiled}, CHIP, arguments)
    try:
        return [finding.check for finding in simulate(program).findings]
    except Deadlock:
        return ["deadlock"]


def test_each_deleted_line_is_found(tmp_path):
    """The kernel has no finding, and one if any of its flags or barriers is missing."""
    assert found(tmp_path, KERNEL) == []
    lines = list(FLAGS.finditer(KERNEL))
    assert len(lines) == 7
    missed = [
        line[0].strip()
        for line in lines
        if not found(tmp_path, KERNEL[: line.start()] + KERNEL[line.end() :])
    ]
    assert missed == []

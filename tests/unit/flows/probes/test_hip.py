"""The program for AMD's GPUs: which instructions it has for which device."""

import re
import shutil
import subprocess

import pytest

from vitruvian.flows.probes.hip import INSTRUCTIONS, program

_ALL = {"f32_16x16x16f16", "f32_16x16x4f32"}
_FP8 = {f"f32_16x16x32_{a}_{b}" for a in ("fp8", "bf8") for b in ("fp8", "bf8")}
_CDNA2 = {"f32_16x16x16bf16_1k", "f64_16x16x4f64"}
#: Instructions of each device, as LLVM's back end for it selects them.
DEVICES = {
    "gfx906": set(),
    "gfx908": _ALL | {"f32_16x16x8bf16"},
    "gfx90a": _ALL | {"f32_16x16x8bf16"} | _CDNA2,
    "gfx942": _ALL | _CDNA2 | _FP8 | {"f32_16x16x8_xf32"},
    "gfx950": _ALL | _CDNA2 | _FP8 | {"f32_16x16x32_f16", "f32_16x16x32_bf16"},
    "gfx1151": {"f32_16x16x16_f16_w32", "f32_16x16x16_bf16_w32"},
    "gfx1250": {"f32_16x16x32_f16", "f32_16x16x32_bf16"},
    "gfx1201": {"f32_16x16x16_f16_w32_gfx12", "f32_16x16x16_bf16_w32_gfx12"},
}


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not there")
@pytest.mark.parametrize("device", DEVICES)
def test_a_device_has_kernels_for_its_instructions(device, tmp_path):
    source = program(list(INSTRUCTIONS))["probe.hip"]
    (tmp_path / "probe.cpp").write_text(re.sub(r"#include .*", "", source))
    done = subprocess.run(
        ["g++", "-E", "-P", f"-D__{device}__", "probe.cpp"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    found = re.findall(r"__builtin_amdgcn_(?:mfma|wmma)_(\w+)\(", done.stdout)
    assert set(found) == DEVICES[device] and len(found) == len(set(found))
    assert {each.text for each in INSTRUCTIONS} == set().union(*DEVICES.values())

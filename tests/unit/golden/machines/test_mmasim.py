"""Products by the rules of machines against MMA-Sim, another implementation, where it is installed.

MMA-Sim (package mmasim, with PyTorch) simulates ten GPUs. It is not required; the measured and
executed sets, which are, hold the same rules.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

import numpy as np
import pytest

from tests.support.machine_operands import operands
from vitruvian import machines
from vitruvian.golden.sums.products import compute

#: Row of the table -> class of MMA-Sim, architecture, instruction.
CASES = {
    "v100_mma_fp16_fp32": ("MMA", "Volta", "m8n8k4.f32.f16.f16.f32"),
    "a100_mma_bf16_fp32": ("MMA", "Ampere", "m16n8k16.f32.bf16.bf16.f32"),
    "ada_mma_e4m3_fp32": ("MMA", "Ada Lovelace", "m16n8k32.f32.e4m3.e4m3.f32"),
    "h100_mma_fp16_fp16": ("MMA", "Hopper", "m16n8k16.f16.f16.f16.f16"),
    "h100_wgmma_e4m3xe5m2_fp32": ("WGMMA", "Hopper", "m64n8k32.f32.e4m3.e5m2"),
    "b200_tcgen05_e5m2_fp32": (
        *("TCGen05MMA", "Blackwell"),
        "m64n8k32.kind::f8f6f4.f32.e5m2.e5m2",
    ),
    "b200_mxf8f6f4_e4m3_fp32": (
        *("TCGen05MMABlockScale", "Blackwell"),
        "m128n8k32.kind::mxf8f6f4.block32.f32.e4m3.e4m3.ue8m0",
    ),
    "b200_nvf4_ue4m3_fp32": (
        *("TCGen05MMABlockScale", "Blackwell"),
        "m128n8k64.kind::mxf4nvf4.block16.f32.e2m1.e2m1.ue4m3",
    ),
    "cdna1_mfma_fp16_fp32": ("MFMA", "CDNA1", "f32_16x16x16f16"),
    "cdna2_mfma_bf161k_fp32": ("MFMA", "CDNA2", "f32_16x16x16bf16_1k"),
    "cdna3_mfma_fp32_fp32": ("MFMA", "CDNA3", "f32_16x16x4_f32"),
    "cdna3_mfma_fp16_fp32": ("MFMA", "CDNA3", "f32_16x16x16_f16"),
    "cdna3_mfma_bf16_fp32": ("MFMA", "CDNA3", "f32_16x16x16_bf16"),
    "cdna3_mfma_fp8xbf8_fp32": ("MFMA", "CDNA3", "f32_16x16x32_fp8_bf8"),
}


@pytest.fixture(scope="module")
def classes():
    """Return the classes of MMA-Sim by name; skip the tests if it is not there."""
    pytest.importorskip("torch", reason="MMA-Sim needs PyTorch")
    pytest.importorskip("mmasim", reason="MMA-Sim (package mmasim) is not installed")
    try:
        from mmasim import amd, nv_ptx  # compiles a file of its own
    except (ImportError, RuntimeError, OSError) as error:
        pytest.skip(f"MMA-Sim does not load: {str(error).splitlines()[0]}")
    return {name: getattr(home, name) for home in (amd, nv_ptx) for name in home.__all__}


def simulated(operation, x, rule):
    """Return the codes that MMA-Sim computes."""
    import torch

    def tensor(codes, dtype, element=None):
        signed = np.ascontiguousarray(codes).view(f"i{codes.itemsize}")
        bits = torch.from_numpy(signed.view(np.uint8) if codes.itemsize == 1 else signed)
        return bits if element == "fp4e2m1" else bits.view(dtype)

    a, b = x.a, np.ascontiguousarray(x.b.T)
    if rule.input.name == "fp4e2m1":  # two values in a byte, the first in the high bits
        a, b = (v[:, ::2] << 4 | v[:, 1::2] & 15 for v in (a, b))
    arguments = [
        tensor(a, operation.a_type, rule.input.name),
        tensor(b, operation.b_type, rule.input_b.name).T,
        tensor(x.c, operation.c_type),
    ]
    if x.scale_a is not None:
        arguments += [tensor(s, operation.s_type) for s in (x.scale_a, x.scale_b)]
    result = operation(*arguments).contiguous()
    whole = {2: torch.int16, 4: torch.int32, 8: torch.int64}[result.dtype.itemsize]
    return result.view(whole).numpy().view(x.c.dtype), result.isnan().numpy()


@pytest.mark.parametrize("stem", CASES)
def test_every_result_is_that_of_mma_sim(classes, stem):
    name, architecture, instruction = CASES[stem]
    operation = classes[name](architecture, instruction)
    rule = machines.find(stem).rule
    for seed, kind in enumerate(("bits", "normal", "tiny", "subnormal")):
        steps = 1 if getattr(rule, "scales", None) else 2  # with scales, MMA-Sim has no chains
        x = operands(np.random.default_rng(40 + seed), rule, kind, 24, 40, steps)
        got = compute(x, rule)
        expected, nan = simulated(operation, x, rule)
        mask = rule.output.exponent_mask | rule.output.fraction_mask
        is_nan = (got & mask) > rule.output.exponent_mask
        np.testing.assert_array_equal(is_nan, nan, err_msg=f"{stem}, {kind}")
        np.testing.assert_array_equal(got[~nan], expected[~nan], err_msg=f"{stem}, {kind}")

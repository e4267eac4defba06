"""The named configurations of the matrix unit."""

from vitruvian.golden.simd2.op import Op

from .blocks import BlockUnitConfig
from .choices import INT8, WIDE
from .config import MatrixUnitConfig
from .mixed import MixedUnitConfig
from .tile import TileConfig

_TINY = ("fp16", "bf16", "tf32", "fp8e4m3", "fp8e5m2", INT8)

#: The named configurations.
CONFIGS: dict[str, MatrixUnitConfig] = {
    "tiny": MatrixUnitConfig(m=2, n=2, k=2, precisions=_TINY, pipeline=1),
    "cube_4x4x4": MatrixUnitConfig(m=4, n=4, k=4, precisions=("fp16", INT8)),
    "tensorcore_a100": MatrixUnitConfig(
        m=8, n=4, k=8, precisions=("fp16", "bf16", "tf32", INT8), preset="a100"
    ),
    "cube_davinci": MatrixUnitConfig(m=16, n=16, k=16, precisions=("fp16", INT8)),
    "m3xu": MatrixUnitConfig(
        m=8, n=4, k=8, precisions=("fp16", "bf16", "tf32", "fp32", "fp32c"), assignment="edge"
    ),
    "m3xu_pipelined": MatrixUnitConfig(
        m=8, n=4, k=8, precisions=("fp16", "bf16", "tf32", "fp32", "fp32c"), assignment="pipelined"
    ),
    "simd2_4x4": MatrixUnitConfig(
        m=4, n=4, k=4, precisions=("fp16",), operations=tuple(op.mnemonic for op in Op)
    ),
    "m3xu_fp64": MatrixUnitConfig(
        m=4,
        n=4,
        k=8,
        precisions=("fp16", "bf16", "tf32", INT8, *WIDE),
        multiplier_bits=14,
    ),
    # For an ECP5 with 84 000 look-up tables and 156 DSP blocks (decision 0021).
    "int8_8x8_dsp": MatrixUnitConfig(
        m=8,
        n=8,
        k=1,
        precisions=(INT8,),
        pipeline=4,
        multiplier="dsp",
        slot_memory=True,
        buffered=True,
    ),
    "fp16_4x4x4_a100_dsp": MatrixUnitConfig(
        m=4,
        n=4,
        k=4,
        precisions=("fp16",),
        preset="a100",
        pipeline=11,
        multiplier="dsp",
        slot_memory=True,
        buffered=True,
    ),
    "fp16_4x4x4_dsp": MatrixUnitConfig(
        m=4,
        n=4,
        k=4,
        precisions=("fp16",),
        pipeline=11,
        multiplier="dsp",
        slot_memory=True,
        buffered=True,
    ),
}

#: The configurations with the rules of Blackwell's ``tcgen05`` instructions, without and with block
#: scales. K is the instruction's: 32, and 64 for the rules of groups. Each beat of ``tcgen05_tile``
#: names a format for A and one for B.
BLACKWELL: dict[str, TileConfig] = {
    "tcgen05_tile": MixedUnitConfig(
        m=8,
        n=4,
        k=16,
        precisions=("fp8e4m3", "fp8e5m2", "fp6e2m3", "fp6e3m2", "fp4e2m1"),
        preset="b200",
    ),
    "mxfp8_8x4": BlockUnitConfig(m=8, n=4, k=16, precisions=("fp8e4m3",), rule="mxf8f6f4"),
    "mxfp4_8x4": BlockUnitConfig(m=8, n=4, k=16, precisions=("fp4e2m1",), rule="mxf4"),
    "nvfp4_8x4": BlockUnitConfig(m=8, n=4, k=16, precisions=("fp4e2m1",), rule="nvf4_ue4m3"),
}

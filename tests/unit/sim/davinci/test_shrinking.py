"""Results in place of larger sources, and products by 0 in place of undefined data."""

import pytest

from vitruvian.sim.davinci import Program, load_chip
from vitruvian.sim.davinci.checks.check import check
from vitruvian.sim.davinci.checks.overlap import overlapping

CHIP = load_chip("ascend910b")


@pytest.mark.parametrize(
    ("offset", "step", "repeat", "wrong"),
    [
        (0, 32, 4, False),
        (0, 512, 4, True),  # results overtake the source
        (0, 512, 1, False),
        (32, 32, 4, True),  # the first result lies in the first repeat's second block
        (4096, 32, 4, False),
    ],
)
def test_sums_of_blocks_in_place(offset, step, repeat, wrong):
    core = Program(CHIP).core(0, "vector")
    memory = core.allocate("UB", (4096,), "fp32")
    views = memory[offset // 4 : offset // 4 + 64], memory[:512]
    instr = core.vreduce_lanes("vcgadd", *views, repeat=repeat, dst_repeat_bytes=step)
    assert bool(overlapping(instr)) == wrong


@pytest.mark.parametrize(("offset", "wrong"), [(0, False), (2, True)])
def test_bits_of_a_comparison_in_place(offset, wrong):
    core = Program(CHIP).core(0, "vector")
    memory = core.allocate("UB", (4096,), "fp16")
    bits = memory[offset * 16 : offset * 16 + 16].astype("uint8")
    (instr,) = core.vcmpvs(bits, memory[:512], 0.0, "eq", repeat=4)
    assert bool(overlapping(instr)) == wrong


@pytest.mark.parametrize(
    ("dtype", "scalar", "found"), [("int16", 0, 0), ("int16", 1, 1), ("fp16", 0.0, 1)]
)
def test_a_product_of_integers_by_zero_clears(dtype, scalar, found):
    """It does not depend on what it reads, which NaN and infinity would make a NaN of."""
    program = Program(CHIP)
    core = program.core(0, "vector")
    memory = core.allocate("UB", (128,), dtype)
    core.vector("vmuls", {"dst": memory, "src": memory}, scalar=scalar)
    assert [f.check for f in check(program)] == ["uninitialised"] * found


@pytest.mark.parametrize(
    ("dtypes", "place", "step", "wrong"),
    [
        (("fp16", "fp32"), 0, 4, False),  # halves at the start of what they are made of
        (("fp16", "fp32"), 0, 9, True),  # the second result lies behind where its source begins
        (("fp16", "fp32"), 32, 4, True),
        (("fp32", "fp16"), 0, 8, True),  # twice as long: over the next source
        (("int32", "fp32"), 0, 8, False),  # as long
    ],
)
def test_a_conversion_to_a_shorter_type_in_place(dtypes, place, step, wrong):
    core = Program(CHIP).core(0, "vector")
    views = [core.view("UB", at, (1,), d) for at, d in zip((place, 0), dtypes, strict=True)]
    strides = {"dst_block_stride": 1, "dst_repeat_stride": step, "src_block_stride": 1}
    strides["src_repeat_stride"] = 8 if dtypes[1] == "fp32" else 4
    rounding = "rint" if dtypes[0] == "int32" else "none"
    operands = {"dst": views[0], "src": views[1]}
    (instr,) = core.vector("vconv", operands, repeat=4, rounding=rounding, **strides)
    assert bool(overlapping(instr)) == wrong

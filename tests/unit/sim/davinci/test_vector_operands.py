"""vbrcb, and scalar operands of the vector unit's builder methods."""

import numpy as np
import pytest

from tests.unit.sim.davinci.test_vector import machine, view
from vitruvian.sim.davinci import Program, ProgramError, load_chip
from vitruvian.sim.davinci.isa.vector import VECTOR_OPS


@pytest.fixture
def core():
    return Program(load_chip("ascend310")).core()


WIDTHS = [("fp16", 16), ("bf16", 16), ("fp32", 32), ("int32", 32)]


@pytest.mark.parametrize(("dtype", "bits"), WIDTHS)
def test_blocks_are_filled_with_elements(core, dtype, bits):
    """Every stride is respected, and a destination over the source gets the old elements."""
    functional, buffer = machine(core, 3)
    before, per = buffer.copy(), 256 // bits
    source = before[512 : 512 + 24 * bits // 8].view(f"u{bits // 8}")
    options = {"repeat": 3, "dst_block_stride": 2, "dst_repeat_stride": 20}
    functional.execute(core, core.vbrcb(view(512, dtype), view(512, dtype), **options))
    written = np.zeros(len(buffer), bool)
    for i in range(24):
        at = 512 + 32 * (20 * (i // 8) + 2 * (i % 8))
        block = buffer[at : at + 32].view(f"u{bits // 8}")
        assert (block == source[i]).all() and len(block) == per
        written[at : at + 32] = True
    assert (buffer[~written] == before[~written]).all()


def test_mistakes_of_a_broadcast(core):
    message = r"elements of vbrcb must have 2 or 4 bytes, not 1 \(int8\)"
    with pytest.raises(ProgramError, match=message):
        core.vbrcb(view(0, "int8"), view(512, "int8"))
    for repeat in (0, 256):
        with pytest.raises(ProgramError, match=f"repeat of vbrcb must be 1 … 255, not {repeat}"):
            core.vbrcb(view(0, "fp16"), view(512, "fp16"), repeat=repeat)


SCALAR_OPS = [op for op in VECTOR_OPS.values() if op.has_scalar and op.form.lanewise]


@pytest.mark.parametrize("op", SCALAR_OPS, ids=lambda op: op.name)
def test_a_scalar_must_be_a_number_that_the_dtype_has(core, op):
    assert len(SCALAR_OPS) >= 7
    method = getattr(core, op.name)

    def call(dtype, scalar):
        return method(*[view(512 * i, dtype) for i in range(len(op.operands))], scalar, repeat=1)

    for scalar in (2, 2.5, 1e9, float("nan"), np.float16(1), np.int64(3)):
        assert call("fp16", scalar)
    for scalar in (-32768, 32767, 3.0, np.int16(-1)):
        assert call("int16", scalar)
    for scalar in ("1", None, np.zeros(1), [1]):
        with pytest.raises(ProgramError, match=rf"scalar of {op.name} must be a number, not "):
            call("fp16", scalar)
    for scalar in (32768, -32769, 2.5, float("nan"), float("inf")):
        with pytest.raises(ProgramError, match="must be an integer from -32768 to 32767 for int16"):
            call("int16", scalar)


def test_a_scalar_in_the_place_of_a_view_gets_a_hint(core):
    u = view(0, "fp16")
    message = r"src1 of vadd must be a View \(vadds takes a scalar\), not 2.0"
    with pytest.raises(ProgramError, match=message):
        core.vadd(u, u, 2.0)
    with pytest.raises(ProgramError, match=r"src1 of vdiv must be a View, not 2"):
        core.vdiv(u, u, 2)

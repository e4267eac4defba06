"""What the assembler refuses because of the buffer, the unit or the place of an operand."""

import pytest

from vitruvian.golden.core.encoding import BUFFERS, DTYPES, ENCODINGS, UNITS
from vitruvian.hdl.core.config import CORES
from vitruvian.hdl.core.support import refusal

#: Operation, unit, and the buffers in which each operand may be.
ALLOWED = (
    ("copy", "MTE2", {"dst": {"L1", "L0A", "L0B", "UB"}, "src": {"GM"}}),
    ("copy", "MTE3", {"dst": {"GM", "L1"}, "src": {"UB"}}),
    ("load", "MTE1", {"dst": {"L0A", "L0B", "UB"}, "src": {"L1"}}),
    ("im2col", "MTE1", {"dst": {"L0A", "L0B", "UB"}, "src": {"L1"}}),
    ("col2im", "V", {"dst": {"UB"}, "src": {"UB"}}),
    ("mmad", "M", {"c": {"L0C"}, "a": {"L0A"}, "b": {"L0B"}}),
    ("matrix_out", "V", {"dst": {"UB"}, "src": {"L0C"}}),
    ("scalar_load", "S", {"src": {"UB", "GM"}}),
    ("scalar_store", "S", {"dst": {"UB", "GM"}}),
)


def reason(op, unit, **changes):
    encoding = ENCODINGS[op]
    values = dict.fromkeys(encoding.places, 0)
    for name, allowed in next(row[2] for row in ALLOWED if row[:2] == (op, unit)).items():
        values[f"{name}.buffer"] = BUFFERS.index(min(allowed))
    for name in ("c", "src"):
        if op in ("mmad", "matrix_out") and f"{name}.dtype" in values:
            values[f"{name}.dtype"] = DTYPES.index("fp32")
    return refusal(CORES["tiny"], encoding, unit, values | changes)


@pytest.mark.parametrize(("op", "unit", "operands"), ALLOWED)
def test_every_buffer_of_every_operand(op, unit, operands):
    assert reason(op, unit) is None
    for name, allowed in operands.items():
        for code, buffer in enumerate(BUFFERS):
            refused = reason(op, unit, **{f"{name}.buffer": code})
            assert (refused is None) == (buffer in allowed), (name, buffer, refused)


@pytest.mark.parametrize("unit", UNITS[1:6])
def test_scalar_instructions_are_for_s(unit):
    encoding = ENCODINGS["set_mask"]
    values = dict.fromkeys(encoding.places, 0)
    assert refusal(CORES["tiny"], encoding, "S", values) is None
    assert refusal(CORES["tiny"], encoding, unit, values) == f"must be for unit S, not {unit}"


@pytest.mark.parametrize(("dtype", "size"), [("int8", 1), ("fp16", 2), ("fp32", 4), ("int64", 8)])
def test_the_place_of_a_scalar(dtype, size):
    for place in range(32):
        changes = {"src": place, "src.dtype": DTYPES.index(dtype)}
        assert (reason("scalar_load", "S", **changes) is None) == (place % size == 0)

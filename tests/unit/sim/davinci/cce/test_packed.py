"""Words that hold several arguments: where each field lies."""

import pytest

from vitruvian.sim.davinci.cce.intrinsics import packed_args as packed
from vitruvian.sim.davinci.isa.vector import VECTOR_OPS

LAYOUTS = {
    name: value
    for name, value in vars(packed).items()
    if name.startswith("_") and isinstance(value, tuple)
} | {op.name: op.form.packed for op in VECTOR_OPS.values() if op.form.packed}


@pytest.mark.parametrize("name", LAYOUTS)
def test_fields_of_a_word_do_not_meet(name):
    """Each is read alone, whatever the others are."""
    fields = LAYOUTS[name]
    for field, first, bits in fields:
        place = ((1 << bits) - 1) << first
        alone: dict = {"word": place}
        packed._take_apart(alone, "word", fields)
        assert alone == {f: (1 << b) - 1 if f == field else 0 for f, _, b in fields}
        others: dict = {"word": ~place & (1 << 64) - 1}
        packed._take_apart(others, "word", fields)
        assert others == {f: 0 if f == field else (1 << b) - 1 for f, _, b in fields}
        assert first + bits <= 64


def test_layouts_are_found():
    assert {"vabs", "vadd", "vnchwconv", "_BURSTS", "_PRODUCT", "_FIXPIPE"} <= LAYOUTS.keys()

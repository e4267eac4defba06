"""The table of encodings: the vocabulary's names, and places that neither overlap nor vary."""

import pytest

from vitruvian.golden.core import ENCODINGS
from vitruvian.golden.core.encoding import (
    MOST_WORDS,
    WORD_BITS,
    Encoding,
    Member,
)
from vitruvian.sim.davinci import OPERATIONS, Program, load_chip
from vitruvian.sim.davinci.isa.vector import VECTOR_OPS
from vitruvian.sim.davinci.machine_code.encode import SIMULATED, EncodingError, Texts, encode

#: Fields of the vocabulary that stand in words of their own, or as several numbers.
_ELSEWHERE = {"mask", "lists", "patches", "position", "kernel_position"}
_GEOMETRY = {
    *("height", "width", "kernel_rows", "kernel_columns", "stride_rows", "stride_columns"),
    *("top", "bottom", "left", "right", "dilation_rows", "dilation_columns"),
    *("row", "column", "kernel_row", "kernel_column"),
}


def test_the_table_has_the_names_of_the_vocabulary():
    assert set(ENCODINGS) == set(OPERATIONS)
    for op, encoding in ENCODINGS.items():
        operation = OPERATIONS[op]
        operands = {name.strip("[]") for name in operation.operands}
        fields = {name.strip("[]") for name in operation.fields}
        views = {"dst", "src"} if encoding.tail == "views" else set()
        run = {"run"} if encoding.tail == "levels" else set()
        assert set(encoding.operands) == operands, op
        members = {m.name for m in encoding.members if m.name in encoding.places}
        geometry = _GEOMETRY if "patches" in fields else set()
        placed = fields - {*_ELSEWHERE, *views, *SIMULATED.get(op, ())}
        assert members == placed | geometry | run, op
        assert encoding.absent == {n.strip("[]") for n in operation.operands if n[0] == "["}, op
        assert (encoding.tail == "mask") == ("mask" in fields), op
        # The unit of cross_set is that of the instruction.
        optional = {m.name for m in encoding.members if m.optional}
        assert optional <= {n.strip("[]") for n in operation.fields}, op
    optional = {n for op in SIMULATED for n in OPERATIONS[op].fields if n[0] == "["}
    assert {f"[{name}]" for names in SIMULATED.values() for name in names} <= optional


def test_a_field_of_the_simulator_alone_has_no_encoding():
    program = Program(load_chip("ascend910b"))
    core = program.core(0, "cube")
    a, b = (core.allocate(name, (1, 16, 16), "fp16") for name in ("L0A", "L0B"))
    c = core.allocate("L0C", (1, 1, 16, 16), "fp32")
    core.mmad(c, a, b, m=1, k=16, n=16, init="zero")
    core.mmad(c, a, b, m=1, k=16, n=16, init="zero", a_layout="vector")
    plain, vector = core.instructions
    assert encode(plain, Texts())
    with pytest.raises(EncodingError, match=r"mmad must be one that a core .* a_layout"):
        encode(vector, Texts())


def test_opcodes_are_the_positions_from_one():
    assert [e.code for e in ENCODINGS.values()] == list(range(1, len(ENCODINGS) + 1))


@pytest.mark.parametrize("op", ENCODINGS)
def test_places_do_not_overlap_or_cross_a_word(op):
    taken: set[tuple[int, int]] = set()
    for place in ENCODINGS[op].places.values():
        assert 0 <= place.low and place.low + place.bits <= WORD_BITS
        bits = {(place.word, place.low + b) for b in range(place.bits)}
        assert not bits & taken
        taken |= bits


def test_lanewise_instructions_have_equal_places():
    model = ENCODINGS["vadd"].places
    names = {"src": "src0", "scalar": "src1", "scale": "src1"}
    for op in VECTOR_OPS.values():
        encoding = ENCODINGS[op.name]
        if encoding.tail != "mask" or op.name == "vgather":
            continue
        for name, place in encoding.places.items():
            first, dot, part = name.partition(".")
            same = names.get(first, first) + dot + part
            for old, new in names.items():
                if name.startswith(f"{old}_"):
                    same = new + name[len(old) :]
            if same in model:
                assert place == model[same], (op.name, name)


def test_parts_come_back_and_what_does_not_fit_is_refused():
    encoding = ENCODINGS["copy"]
    values = dict.fromkeys(encoding.places, 0) | {"dst": 64, "src_stride": -32, "bursts": 7}
    del values["opcode"], values["length"]
    words = encoding.pack(values)
    back, tail = encoding.unpack(words)
    assert (back["dst"], back["bursts"], tail) == (64, 7, ())
    assert back["src_stride"] == (1 << 32) - 32
    assert back["length"] == len(words) == encoding.words
    with pytest.raises(ValueError, match="bursts of copy must fit 32 bits"):
        encoding.pack({"bursts": 1 << 32})
    with pytest.raises(ValueError, match=f"at most {MOST_WORDS} words"):
        encoding.pack({}, (0,) * MOST_WORDS)


def test_a_member_says_what_it_holds():
    assert Member(name="x", bits=8, signed=True).span == (-128, 127)
    assert Member(name="x", bits=2, names=("a", "b", "c")).span == (0, 2)
    lone = Encoding(op="x", code=1, slots=(), absent=frozenset(), members=())
    assert lone.words == 1

"""`sim.davinci.Program`: what the builder's methods record, and what they refuse."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitruvian.golden.scu import Patches
from vitruvian.sim.davinci import (
    OPERATIONS,
    Instruction,
    Kind,
    Position,
    Program,
    ProgramError,
    Span,
    Unit,
    View,
    load_chip,
)
from vitruvian.sim.davinci.isa.lanes import ALL, lane_spans
from vitruvian.sim.davinci.isa.vector import REDUCE, VECTOR_OPS

CHIP = load_chip("ascend310")
CHIP_B = load_chip("ascend910b")
PATCHES = Patches(height=4, width=4, kernel=(2, 2), pad=(0, 1, 0, 1))


@pytest.fixture
def core():
    return Program(CHIP).core()


def bytes_of(spans) -> set[int]:
    return {b for span in spans for lo, hi in span.intervals().tolist() for b in range(lo, hi)}


@given(
    st.sampled_from(["int8", "fp16", "fp32"]),
    st.sampled_from([32, 64, 128]),
    st.integers(0, 2**128 - 1) | st.integers(0, 128).map(lambda n: (1 << n) - 1),
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(0, 20),
)
def test_lanes_touch_what_the_definition_says(dtype, lanes, mask, repeat, block, step):
    view = View("UB", 64, dtype, (1,), (1,))
    width, mask = view.itemsize, mask & (1 << lanes) - 1
    want = set()
    for r in range(repeat):
        for lane in range(lanes):
            if mask >> lane & 1:
                number, within = divmod(lane * width, 32)
                start = 64 + 32 * (r * step + number * block) + within
                want |= set(range(start, start + width))
    assert bytes_of(lane_spans(view, lanes, mask, repeat, block, step)) == want


def every_operation(core_310, core_b, core_v):
    """One of each builder method."""
    x = core_310.program.tensor("x", (64, 64), "fp16")
    l1 = core_310.allocate("L1", (64, 64), "fp16")
    a, b = (core_310.allocate(f"L0{n}", (64 * 64,), "fp16") for n in "AB")
    c = core_310.allocate("L0C", (64 * 64,), "fp32")
    u, v = (core_310.allocate("UB", (256,), "fp16") for _ in range(2))
    w = core_310.allocate("UB", (256,), "fp32")
    core_310.copy(l1, x)
    core_310.nd2nz(l1, x)
    core_310.load(a, l1)
    core_310.load(b, l1, transpose=True)
    core_310.im2col(a, l1, PATCHES, repeat=3)
    core_310.fill(a, 0)
    core_310.mmad(c, a, b, m=64, k=64, n=64, init="zero")
    core_310.matrix_out(w, c, m=16, n=16)
    values = {"scalar": 2.0, "amount": 3, "round": True, "rounding": "none", "scale": 0.5}
    for op in VECTOR_OPS.values():
        if op.form.lanewise:
            dst = w if op.name == "vconv" else u
            views = (dst, *(u, v)[: len(op.operands) - 1])
            getattr(core_310, op.name)(*views, **{f.name: values[f.name] for f in op.fields})
        elif op.form is REDUCE:
            getattr(core_310, op.name)(w, u, repeat=2)
    core_310.vcmp(u, v, "lt")
    core_310.vcmpv(w, u, v, "lt", repeat=2)
    core_310.vsel(u, u, v, bits=w, repeat=2)
    core_310.vsel(u, u, v)
    core_310.vcmpvs(w, u, 2.0, "lt", repeat=2)
    core_310.vtranspose(u, v)
    core_310.v4dtrans(u, v, pixels=16, channels=16)
    core_310.vnchwconv([u] * 16, [v] * 16)
    core_310.vbrcb(u, v, repeat=2, dst_repeat_stride=8)
    core_310.vgather(u, v, w.astype("uint32"), base=0)
    core_310.vreduce(u, v, mode=1, count=128)
    core_310.vreduce(u, v, w, mode=0, count=128, results=3)
    core_310.vbitsort(w, u, w, repeat=2)
    core_310.vmrgsort(w, u, lists=[(0, 8), (64, 8)])
    core_310.col2im(u, v, PATCHES)
    core_310.scalar(3)
    core_310.scalar_load(u)
    core_310.scalar_load(u, expected=0.0)
    core_310.scalar_store(u, 1)
    core_310.set_mask(1)
    core_310.set_control("fmatrix", 0)
    core_310.set_flag(Unit.V, Unit.M, 0)
    core_310.wait_flag(Unit.V, Unit.M, 0)
    core_310.pipe_barrier(Unit.V)
    core_310.pipe_barrier()
    core_b.matrix_out(x, core_b.allocate("L0C", (64 * 64,), "fp32"), m=64, n=64, layout="nd")
    core_b.cross_set(Unit.FIX, 3)
    core_v.cross_wait(Unit.MTE2, 3)
    return [*core_310.instructions, *core_b.instructions, *core_v.instructions]


def test_records_are_as_the_vocabulary_says(core):
    other = Program(CHIP_B)
    instructions = every_operation(core, other.core(0, "cube"), other.core(1, "vector"))
    assert {i.op for i in instructions} == set(OPERATIONS)
    for instr in instructions:
        operation = OPERATIONS[instr.op]
        for names, actual in (
            (operation.operands, instr.operands),
            (operation.fields, instr.fields),
        ):
            needed = {n for n in names if n[0] != "["}
            assert needed <= set(actual) <= {n.strip("[]") for n in names}, (instr.op, actual)
        assert instr.position.file == __file__, instr
        if instr.unit in (Unit.V, Unit.M) and instr.kind == Kind.NORMAL and not instr.path:
            assert (instr.work.repeats and instr.reads) or instr.op == "vdup", instr
        if instr.path:
            assert instr.work.nbytes and instr.writes
        core.chip.timing(instr) if instr in core.instructions else CHIP_B.timing(instr)


def test_copies(core):
    x = core.program.tensor("x", (8, 64), "fp16")
    u = core.allocate("UB", (8, 16), "fp16")
    instr = core.copy(u, x[:, 16:32])
    assert instr.fields == {"bursts": 8, "burst_bytes": 32, "dst_stride": 32, "src_stride": 128}
    assert (instr.unit, instr.path, instr.work.nbytes) == (Unit.MTE2, "GM->UB", 256)
    assert bytes_of(instr.reads) == bytes_of([x[:, 16:32].span])
    assert bytes_of(instr.writes) == set(range(256))
    instr = core.copy(x[2:4], u.reshape(2, 64))
    assert (instr.unit, instr.fields["bursts"], instr.fields["burst_bytes"]) == (Unit.MTE3, 1, 256)
    instr = core.copy(x[:, :16], u)
    assert instr.fields == {"bursts": 8, "burst_bytes": 32, "dst_stride": 128, "src_stride": 32}
    with pytest.raises(ProgramError, match="src of copy must have as many elements"):
        core.copy(u, x)
    with pytest.raises(ProgramError, match="one gap on each side"):
        core.copy(core.allocate("UB", (2, 2, 2), "fp16"), x.reshape(2, 4, 64)[:, :2, :2])
    with pytest.raises(ProgramError, match=r"path must be one of .*, not 'GM->L0C'"):
        core.copy(core.allocate("L0C", (8, 64), "fp16"), x)
    with pytest.raises(ProgramError, match="bursts of copy must be 1 or more"):
        core.copy(u, x, bursts=0, burst_bytes=32)


def test_elements_become_as_many_instructions_as_they_need(core):
    u = core.allocate("UB", (255 * 128 + 128 + 5,), "fp16")
    instructions = core.vrelu(u, u)
    assert [i.fields["repeat"] for i in instructions] == [255, 1, 1]
    assert [i.fields["mask"] for i in instructions] == [(1 << 128) - 1] * 2 + [31]
    assert sum(i.work.operations for i in instructions) == u.size
    assert bytes_of(s for i in instructions for s in i.writes) == bytes_of([u.span])
    w = core.view("UB", 0, (100,), "fp32")
    instructions = core.vconv(w, core.view("UB", 4096, (100,), "fp16"))
    assert [i.fields["repeat"] for i in instructions] == [1, 1], "64 lanes of fp32, then 36"
    assert (
        instructions[0].fields["src_repeat_stride"] == 4
        and instructions[0].fields["dst_repeat_stride"] == 8
    )


def test_matrix_products(core):
    a, b = core.view("L0A", 0, (1,), "fp16"), core.view("L0B", 512, (1,), "fp16")
    c = core.view("L0C", 0, (1,), "fp32")
    instr = core.mmad(c, a, b, m=17, k=33, n=16, init="zero")
    assert instr.reads == (Span("L0A", 0, 6 * 512), Span("L0B", 512, 3 * 512))
    assert instr.writes == (Span("L0C", 0, 2 * 1024),)
    assert instr.work.repeats == 6 and instr.work.operations == 2 * 17 * 33 * 16
    more = core.mmad(c, a, b, m=17, k=33, n=16)
    assert more.reads == (*instr.reads, *instr.writes), "an accumulator is read"
    small = core.view("L0A", 0, (1,), "int8")
    assert core.mmad(c, small, small, m=16, k=64, n=16).work.repeats == 2


def test_a_mistake_is_refused_at_its_line(core):
    u = core.allocate("UB", (128,), "fp16")
    mistakes = [
        (lambda: core.set_flag(Unit.MTE2, Unit.V, 8), "register of set_flag must be 0 … 7, not 8"),
        (lambda: core.wait_flag(Unit.V, Unit.V, 0), "units of wait_flag must be two, not V twice"),
        (lambda: core.set_flag(Unit.FIX, Unit.V, 0), "unit of set_flag must be one of S, V, M"),
        (lambda: core.set_flag(Unit.M, Unit.V, 0.5), "register of set_flag must be an integer"),
        (lambda: core.pipe_barrier(Unit.FIX), "unit of pipe_barrier must be one of S, V"),
        (lambda: core.cross_set(Unit.V, 0), "cross_set must be on a chip with cross-core flags"),
        (lambda: core.scalar("add"), "cycles must be an integer, 0 or more, not 'add'"),
        (lambda: core.vadd(u, u, u, repeat=256), "repeat of vadd must be 1 … 255, not 256"),
        (lambda: core.vadd(u, u, u, repeat=0), "repeat of vadd must be 1 … 255, not 0"),
        (lambda: core.vadd(u, u, u, repeat=1, mask=1 << 128), "mask of vadd must have 128 bits"),
        (lambda: core.vadd(u, u, u[:64]), "operands of vadd must be contiguous and of one size"),
        (lambda: core.vadd(u, u, u, mask=1), "vadd must have a repeat if it has a mask"),
        (lambda: core.load(u, u, repeat=0), "repeat of load must be 1 or more, not 0"),
        (lambda: core.mmad(u, u, u, m=0, k=1, n=1), "m, k, n of mmad must be 1 or more"),
        (lambda: core.mmad(u, u, u, m=1, k=1, n=1, init="no"), "init of mmad must be zero, accum"),
        (lambda: core.allocate("FB", 8, "fp16"), "buffer must be one of L1, L0A"),
        (lambda: core.allocate("UB", 1 << 20, "fp16", "big"), "big of 2097152 bytes must fit the"),
        (lambda: core.allocate("UB", 1, "half"), "dtype must be one of fp16"),
        (lambda: core.nd2nz(u, u), "src of nd2nz must be a matrix with dense rows"),
        (lambda: core.matrix_out(u, u, m=1, n=1, layout="zn"), "layout of matrix_out must be nz"),
    ]
    for make, message in mistakes:
        with pytest.raises(ProgramError) as error:
            make()
        assert message in str(error.value), error.value
        line = make.__code__.co_firstlineno
        assert str(error.value).startswith(f"{__file__}:{line}: ")
    assert not core.instructions, "what is refused is not appended"
    core.position = Position("k.cce", 12)
    with pytest.raises(ProgramError, match=r"^k.cce:12: "):
        core.set_flag(Unit.MTE2, Unit.V, 8)
    core.pipe_barrier()
    assert core.instructions[0].position == Position("k.cce", 12)


def test_cores_have_the_units_of_their_kind():
    program = Program(CHIP_B)
    cube, vector = program.core(0, "cube"), program.core(3, "vector")
    u = vector.allocate("UB", (64,), "fp32")
    with pytest.raises(ProgramError, match="vadd must be on a core with a vector unit, not on cu"):
        cube.vadd(u, u, u)
    with pytest.raises(ProgramError, match="mmad must be on a core with a Cube, not on vector 3"):
        vector.mmad(u, u, u, m=1, k=1, n=1)
    with pytest.raises(ValueError, match="index of a core must be 0 … 47, not 48"):
        program.core(48, "vector")
    assert [str(c) for c in program] == ["cube 0", "vector 3"]
    assert program.core(0, "cube") is cube


def test_tensors():
    program = Program(CHIP)
    data = np.arange(6, dtype=np.float16).reshape(2, 3)
    x, y = program.tensor("x", (2, 3), "fp16", data), program.tensor("y", 4, "int8")
    assert (x.offset, y.offset, program.gm_bytes) == (0, 512, 516)
    assert (program.data["x"] == data).all() and "y" not in program.data
    with pytest.raises(ValueError, match="name of a tensor must be new, not 'x'"):
        program.tensor("x", 1, "fp16")
    with pytest.raises(ValueError, match="data of z must be 2×3 of int8, not 2×3 of float16"):
        program.tensor("z", (2, 3), "int8", data)
    with pytest.raises(TypeError, match="chip must be a Chip"):
        Program("ascend310")  # type: ignore[arg-type]


def test_allocation_is_aligned_and_can_start_over(core):
    view = core.allocate("L0A", (3,), "fp16")
    two = core.allocate("L0A", (3,), "fp16")
    assert (view.offset, two.offset) == (0, 512)
    core.release()
    assert core.allocate("L0A", (3,), "fp16").offset == 0


def test_masks_of_all_lanes_are_the_same():
    view = View("UB", 0, "fp16", (1,), (2,))
    assert lane_spans(view, 128, ALL, 4, 1, 8) == (Span("UB", 0, 1024),)
    assert lane_spans(view, 128, (1 << 128) - 1, 4, 1, 8) == (Span("UB", 0, 1024),)
    assert isinstance(Instruction(Unit.S, "scalar").fields, dict)

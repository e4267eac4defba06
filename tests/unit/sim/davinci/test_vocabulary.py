"""`OPERATIONS` says what every instruction carries, whoever made it: the builder or CCE C."""

import numpy as np
import pytest

from tests.unit.sim.davinci.test_program import CHIP, CHIP_B, every_operation
from vitruvian.sim.davinci import OPERATIONS, Instruction, Program, ProgramError, Unit
from vitruvian.sim.davinci.cce import build, read
from vitruvian.sim.davinci.isa.vector import VECTOR_OPS
from vitruvian.sim.davinci.machine_code.chip import core_chip
from vitruvian.sim.davinci.program import generate
from vitruvian.sim.davinci.program.program import Core
from vitruvian.sim.davinci.semantics.vectors import VECTORS

HEAD = """
#define UB(T, a) ((__ubuf__ T *)get_imm(a))
"""

VECTOR = """
    set_vector_mask(-1, -1);
    copy_gm_to_ubuf_align_b32(UB(float, 0), out, 0, 1, 16, 2, 2, 0, 0);
    vector_dup(UB(half, 0), (half)0, 64, 1, 1, 8, 8);
    vmadd(UB(half, 0), UB(half, 0), UB(half, 0), 1, 1, 1, 1, 8, 8, 8);
    vmaddrelu(UB(half, 0), UB(half, 0), UB(half, 0), 1, 1, 1, 1, 8, 8, 8);
    vcadd(UB(half, 0), UB(half, 0), 1, 1, 1, 8, 1);
    vaddrelu(UB(half, 0), UB(half, 0), UB(half, 0), 1, 1, 1, 1, 8, 8, 8);
    vsubrelu(UB(half, 0), UB(half, 0), UB(half, 0), 1, 1, 1, 1, 8, 8, 8);
    vlrelu(UB(half, 0), UB(half, 0), (half)0.5, 1, 1, 1, 8, 8);
    vcopy(UB(half, 0), UB(half, 0), 1, 1, 1, 8, 8);
    vshl(UB(int32_t, 0), UB(int32_t, 0), 1, 1, 1, 1, 8, 8);
    vshr(UB(int32_t, 0), UB(int32_t, 0), 1, 1, 1, 1, 8, 8, true);
    vconv_deq(UB(half, 0), UB(int32_t, 0), 1, 1, 1, 4, 8);
    vcmpv_lt(UB(uint8_t, 8192), UB(half, 0), UB(half, 0), 1, 1, 1, 1, 8, 8, 8);
    vcmpvs_gt(UB(uint8_t, 8192), UB(half, 0), (half)0.5, 1, 1, 1, 8, 8);
    set_cmpmask(UB(uint8_t, 8192));
    vsel(UB(half, 0), UB(half, 0), UB(half, 0), 1, 1, 1, 1, 8, 8, 8);
    vbrcb(UB(half, 8192), UB(half, 0), 1, 8, 2);
    vgather(UB(uint16_t, 8192), UB(uint32_t, 0), (uint64_t)UB(uint16_t, 4096), 8, 1);
    vreducev2(UB(uint32_t, 8192), UB(uint32_t, 0), UB(uint32_t, 4096), 1, 1, 1, 8, 1);
    vreducev2(UB(uint32_t, 8192), UB(uint32_t, 0), UB(uint32_t, 4096), 1, 1, 0, 8, 1);
    vbitsort(UB(half, 8192), UB(half, 0), UB(uint32_t, 4096), 1);
    __ubuf__ float *lists[4] = {UB(float, 0), UB(float, 64), UB(float, 128), UB(float, 192)};
    uint64_t lengths = 8 | 8 << 16 | 8ull << 32 | 8ull << 48;
    vmrgsort4(UB(float, 8192), lists, lengths, 1 | 15 << 8);
    vmrgsort4(UB(float, 8192), lists, lengths, 1 | 31 << 8);
    vcadd(UB(float, 0), UB(float, 0), 2, 1, 1, 8, 1);
    uint64_t places[8] = {0, 32, 64, 96, 128, 160, 192, 224};
    set_va_reg_sb(VA0, places); set_va_reg_sb(VA1, places);
    scatter_vnchwconv_b16(VA0, VA0, 1, 0, 0);
    v4dtrans(UB(uint16_t, 8192), UB(uint16_t, 0), 16, 8, 0);
    set_atomic_add(); set_atomic_f32();
    copy_ubuf_to_gm(out, UB(float, 0), 0, 1, 8, 0, 0);
"""

CUBE = """
    auto l1 = (__cbuf__ float *)get_imm(0);
    auto l0c = (__cc__ float *)get_imm(0);
    auto l0b = (__cb__ float *)get_imm(0);
    copy_gm_to_cbuf(l1, out, 0, 1, 64, 0, 0, PAD_NONE);
    load_cbuf_to_cb_transpose(l0b, l1, 0, 1, 1, 0, inc, 0);
    mad(l0c, (__ca__ float *)get_imm(0), l0b, 16, 16, 16, 0, 0, 0, 1);
    set_nd_para(1);
    set_quant_pre((uint64_t)1);
    copy_matrix_cc_to_gm((__gm__ int8_t *)out, l0c, 0, 16, 16, 16, 16, 0, REQ8, 0, 0, 1);
    set_atomic_f32(); set_atomic_add();
    copy_matrix_cc_to_gm(out, l0c, 0, 16, 16, 16, 16, 0, NoQuant, 0, 0, 1);
    mad(l0c, (__ca__ float *)get_imm(0), l0b, 1, 16, 16, 0, 0, 0, 1);
    set_fmatrix(0x10020);
    img2colv2_cbuf_to_cb(l0b, l1, 16, 32, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 16);
    load_cbuf_to_cb_sp((__cb__ int8_t *)get_imm(0), (__cbuf__ int8_t *)get_imm(0), 0, 1);
    mad_sp((__cc__ int32_t *)get_imm(0), (__ca__ int8_t *)get_imm(0), (__cb__ int8_t *)get_imm(0),
           16, 64, 16, 0, 0, 1);
"""


def from_cce(body: str, chip, kind: str | None) -> list[Instruction]:
    text = f"{HEAD}__global__ __aicore__ void k(__gm__ float *out) {{{body}}}"
    program, _ = build(read(text, "k.cce"), chip, {"out": np.zeros(4096, "f4")}, kind=kind)
    return [instr for core in program for instr in core.instructions]


@pytest.fixture(scope="module")
def instructions() -> list[Instruction]:
    other = Program(CHIP_B)
    core = Program(CHIP).core()
    builder = every_operation(core, other.core(0, "cube"), other.core(1, "vector"))
    cube = Program(CHIP_B).core(0, "cube")
    a, b, c = (
        cube.allocate(f"L0{n}", (256,), t) for n, t in (("A", "fp16"), ("B", "fp16"), ("C", "fp32"))
    )
    bias, scale = cube.allocate("BT", (16,), "fp32"), cube.allocate("FB", (16,), "uint64")
    cube.mmad(c, a, b, m=16, k=16, n=16, init="bias", bias=bias, a_transposed=True)
    x = cube.program.tensor("x", (16, 16), "fp16")
    cube.matrix_out(x, c, m=16, n=16, layout="nd", quant="vector", scale=scale)
    builder += cube.instructions
    # No chip of Ascend has operations of SIMD².
    open_core = Program(core_chip("semiring")).core()
    kinds = {"L0C": "fp32", "L0A": "fp16", "L0B": "fp16"}
    views = (open_core.view(buffer, 0, (1,), dtype) for buffer, dtype in kinds.items())
    open_core.mmad(*views, m=16, k=16, n=16, init="zero", operation="minplus")
    builder += open_core.instructions
    return [*builder, *from_cce(VECTOR, CHIP_B, "vector"), *from_cce(CUBE, CHIP_B, "cube")]


def test_operations_have_the_operands_and_fields_of_every_instruction(instructions):
    for instr in instructions:
        operation = OPERATIONS[instr.op]
        for names, actual in (
            (operation.operands, instr.operands),
            (operation.fields, instr.fields),
        ):
            needed = {n for n in names if n[0] != "["}
            allowed = {n.strip("[]") for n in names}
            assert needed <= set(actual) <= allowed, (instr.op, sorted(actual), names)


def test_operations_name_nothing_that_no_instruction_carries(instructions):
    carried = {
        (instr.op, name) for instr in instructions for name in (*instr.operands, *instr.fields)
    }
    named = {
        (op, name.strip("[]")) for op, o in OPERATIONS.items() for name in (*o.operands, *o.fields)
    }
    assert {instr.op for instr in instructions} == set(OPERATIONS)
    assert sorted(named - carried) == []


def test_a_core_has_a_method_for_every_operation():
    assert [op for op in OPERATIONS if not callable(getattr(Core, op, None))] == []


def test_instructions_with_unknown_names_are_refused():
    core = Program(CHIP).core()
    u = core.allocate("UB", (128,), "fp16")
    with pytest.raises(ProgramError, match="op must be a key of OPERATIONS, not 'vfoo'"):
        core.add(Unit.V, "vfoo")
    with pytest.raises(ProgramError, match=r"fields of vabs must be among .*, not colour, size"):
        core.vector("vabs", {"dst": u, "src": u}, size=1, colour=2)
    with pytest.raises(ProgramError, match="operands of vabs must be among dst, src, not src1"):
        core.vector("vabs", {"dst": u, "src1": u})
    with pytest.raises(ProgramError, match="fields of scalar_load must be among expected, not x"):
        core.add(Unit.S, "scalar_load", fields={"x": 1})
    assert not core.instructions


def test_the_generated_methods_are_those_of_the_table():
    fresh = generate.TARGET.read_text() == generate.text()
    assert fresh, "run `python -m vitruvian.sim.davinci.program.generate`"


def test_every_vector_instruction_is_computed_by_its_function_or_its_kernel():
    for op in VECTOR_OPS.values():
        assert (op.compute is None) == bool(op.kernel), op.name
        assert op.compute is None or op.form.lanewise, op.name
    assert set(VECTORS) == set(VECTOR_OPS)

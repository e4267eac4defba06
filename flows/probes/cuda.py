"""The program for NVIDIA's GPUs: CUDA C++ with inline PTX."""

from itertools import product

from vitruvian.flows.probes import tcgen05
from vitruvian.flows.probes.common import COMMON, MAIN
from vitruvian.flows.probes.cuda_device import DEVICE, HOST
from vitruvian.flows.probes.instruction import ProbedInstruction
from vitruvian.flows.probes.ptx import FP8, SMALL, format_bits, instruction


def _dense() -> list[ProbedInstruction]:
    found: list[ProbedInstruction] = []
    for out in ("f32", "f16"):
        types = f"{out}.f16.f16.{out}"
        text = f"mma.sync.aligned.m8n8k4.row.col.{types}"
        # The device is the compute capability from which an instruction exists: 7.0 for Volta, 7.5
        # for Turing, 8.0 for Ampere.
        found.append(instruction("volta", "m8n8k4", "f16", "f16", out, 70, text))
        for shape, device in (("m16n8k8", 75), ("m16n8k16", 80)):
            text = f"mma.sync.aligned.{shape}.row.col.{types}"
            found.append(instruction("mma", shape, "f16", "f16", out, device, text))
    for a, shapes in (("bf16", ("m16n8k8", "m16n8k16")), ("tf32", ("m16n8k4", "m16n8k8"))):
        for shape in shapes:
            text = f"mma.sync.aligned.{shape}.row.col.f32.{a}.{a}.f32"
            found.append(instruction("mma", shape, a, a, "f32", 80, text))
    for a, b in product(FP8, FP8):
        for out, shape in product(("f32", "f16"), ("m16n8k16", "m16n8k32")):
            text = f"mma.sync.aligned.{shape}.row.col.{out}.{a}.{b}.{out}"
            # FP8 came with Ada (8.9); Hopper's mma.sync has it too.
            found.append(instruction("mma", shape, a, b, out, 89, text))
    for a, b in product(("s8", "u8"), ("s8", "u8")):
        for shape in ("m16n8k16", "m16n8k32"):
            text = f"mma.sync.aligned.{shape}.row.col.s32.{a}.{b}.s32"
            found.append(instruction("mma", shape, a, b, "s32", 80, text))
            text = f"mma.sync.aligned.{shape}.row.col.satfinite.s32.{a}.{b}.s32"
            found.append(instruction("mma_satfinite", shape, a, b, "s32", 80, text))
    for shape, device in (("m8n8k4", 80), *((f"m16n8k{k}", 90) for k in (4, 8, 16))):
        text = f"mma.sync.aligned.{shape}.row.col.f64.f64.f64.f64"
        found.append(instruction("fp64", shape, "f64", "f64", "f64", device, text))
    return found


def _sparse() -> list[ProbedInstruction]:
    found: list[ProbedInstruction] = []
    rows = [
        *(("f16", "f16", out, shape, 80) for out in ("f32", "f16") for shape in ("16", "32")),
        *(("bf16", "bf16", "f32", shape, 80) for shape in ("16", "32")),
        *(("tf32", "tf32", "f32", shape, 80) for shape in ("8", "16")),
        *((a, b, "f32", "64", 89) for a in FP8 for b in FP8),
        *((a, b, "f16", "64", 120) for a in FP8 for b in FP8),  # not on sm_89 and sm_90
        *((a, b, "s32", k, 80) for a in ("s8", "u8") for b in ("s8", "u8") for k in ("32", "64")),
    ]
    # PTX advises ordered metadata, as the form without them is slow on some GPUs.
    forms = (("sp", "mma.sp::ordered_metadata"), ("sp_unordered", "mma.sp"))
    for (kind, name), (a, b, out, k, device) in product(forms, rows):
        text = f"{name}.sync.aligned.m16n8k{k}.row.col.{out}.{a}.{b}.{out}"
        found.append(instruction(kind, f"m16n8k{k}", a, b, out, device, text))
        if out == "s32":
            text = f"{name}.sync.aligned.m16n8k{k}.row.col.satfinite.{out}.{a}.{b}.{out}"
            found.append(instruction(f"{kind}_satfinite", f"m16n8k{k}", a, b, out, device, text))
    return found


def _wgmma() -> list[ProbedInstruction]:
    found: list[ProbedInstruction] = []
    rows = [
        *(("f16", "f16", out, "16") for out in ("f32", "f16")),
        ("bf16", "bf16", "f32", "16"),
        ("tf32", "tf32", "f32", "8"),
        *((a, b, out, "32") for a in FP8 for b in FP8 for out in ("f32", "f16")),
        *((a, b, "s32", "32") for a in ("s8", "u8") for b in ("s8", "u8")),
    ]
    for a, b, out, k in rows:
        for kind, part, terms in (("wgmma", "", int(k)), ("wgmma_sp", ".sp", 2 * int(k))):
            shape = f"m64n8k{terms}"  # the smallest N is 8, the rows of one core matrix of B
            head = f"wgmma.mma_async{part}.sync.aligned.{shape}"
            text = f"{head}.{out}.{a}.{b}"
            found.append(instruction(kind, shape, a, b, out, 90, text))
            if out == "s32":
                text = f"{head}.{out}.{a}.{b}.satfinite"
                found.append(instruction(f"{kind}_satfinite", shape, a, b, out, 90, text))
    return found


def _blackwell() -> list[ProbedInstruction]:
    found: list[ProbedInstruction] = []
    for a, b in product(SMALL, SMALL):
        # Formats of 6 and 4 bits take a byte each here.
        head = "mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col"
        for out in ("f32", "f16"):
            text = f"{head}.{out}.{a}.{b}.{out}"
            found.append(instruction("f8f6f4", "m16n8k32", a, b, out, 120, text))
        text = (
            "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X."
            f"f32.{a}.{b}.f32.ue8m0"
        )
        found.append(
            instruction("mxf8f6f4", "m16n8k32", a, b, "f32", 120, text, scale="ue8m0", block=32)
        )
    for kind, vector, scale, block in (
        ("mxf4", "2X", "ue8m0", 32),
        ("mxf4nvf4", "4X", "ue8m0", 16),
        ("mxf4nvf4", "4X", "ue4m3", 16),
    ):
        text = (
            f"mma.sync.aligned.m16n8k64.row.col.kind::{kind}.block_scale.scale_vec::{vector}."
            f"f32.e2m1.e2m1.f32.{scale}"
        )
        found.append(
            instruction(
                kind, "m16n8k64", "e2m1", "e2m1", "f32", 120, text, scale=scale, block=block
            )
        )
    return found


INSTRUCTIONS = (*_dense(), *_sparse(), *_wgmma(), *_blackwell(), *tcgen05.INSTRUCTIONS)


def program(instructions: list[ProbedInstruction]) -> dict[str, str]:
    """Return the source and the Makefile for these instructions."""
    kernels = [_kernel(each) for each in instructions]
    table = "".join(f'  {{"{each.name}", {each.device}, {each.name}}},\n' for each in instructions)
    source = (
        COMMON
        + DEVICE
        + tcgen05.DEVICE
        + "\n"
        + "\n".join(kernels)
        + "\nstatic const Entry entries[] = {\n"
        + table
        + "};\n"
        + HOST
        + "\n"
        + MAIN
    )
    # A program with all kernels is built for one architecture; each kernel is empty where its guard
    # is false.
    least = max(each.device for each in instructions)
    arch = {70: "sm_70", 75: "sm_75", 80: "sm_80", 89: "sm_89", 90: "sm_90a", 100: "sm_100a"}
    arch[120] = "sm_120a"
    makefile = (
        f"# All of these instructions need {arch[least]}; a device runs those that it has.\n"
        "ARCH ?= native\n\n"
        "outputs.bin: probe inputs.bin\n\t./probe inputs.bin outputs.bin\n\n"
        "probe: probe.cu\n\tnvcc -O1 -std=c++17 -arch=$(ARCH) -o probe probe.cu\n"
    )
    return {"probe.cu": source, "Makefile": makefile}


def registers(each: ProbedInstruction) -> tuple[int, int, int]:
    """Return the registers of A, B and C that a thread holds, of 32 bits, or of 64 for fp64."""
    if each.kind == "fp64":
        return (1, 1, 2) if each.text.count("m8n8k4") else (each.terms // 2, each.terms // 4, 4)
    # A register has 32 bits, hence two results of FP16.
    wide = 32 if each.output != "fp16" else 16
    if each.kind == "volta":
        return 2, 2, wide // 4
    bits = _bits(each)
    # Of a sparse A only half of the values are stored.
    terms = each.terms // 2 if each.sparse else each.terms
    # 32 threads share 16 × K values of A and K × 8 of B: bits · 16 · K / (32 · 32) registers, and
    # half of that.
    b = each.terms * bits // 128
    return terms * bits // 64, (0 if _is_wgmma(each) else b), wide // 8


def _is_wgmma(each: ProbedInstruction) -> bool:
    """Return True if four warps run the instruction, with B in shared memory."""
    return each.kind.startswith("wgmma")


def _bits(each: ProbedInstruction) -> int:
    """Return the bits that an operand's element takes in a register."""
    if each.kind in ("mxf4", "mxf4nvf4"):
        return 4
    return format_bits(each.input)


def _kernel(each: ProbedInstruction) -> str:
    """Return the kernel of an instruction: load fragments, run the instruction, store."""
    if each.kind.startswith("tcgen05"):
        return tcgen05.kernel(each)
    a, b, c = registers(each)
    bits = _bits(each)
    letter = "d" if each.kind == "fp64" else "f" if each.output == "fp32" else "r"
    # Operand numbers of the assembly: D, then A, B and the rest. C is D's first value.
    names = [f"%{i}" for i in range(c + a + b)]
    d_text = ", ".join(names[:c])
    a_text, b_text = ", ".join(names[c : c + a]), ", ".join(names[c + a :])
    ins = [f'"{"d" if letter == "d" else "r"}"(A[{i}])' for i in range(a)]
    ins += [f'"{"d" if letter == "d" else "r"}"(B[{i}])' for i in range(b)]
    next_name = c + a + b
    tail = ""
    if each.sparse:
        # The metadata and the sparsity selector; all threads of a group hold the same metadata.
        tail = f", %{next_name}, 0x0"
        ins.append('"r"(meta)')
    if each.scale is not None:
        zero = "{0, 0}"
        tail = f", {{%{next_name}}}, {zero}, {{%{next_name + 1}}}, {zero}"
        ins += ['"r"(scale_a)', '"r"(scale_b)']
    outs = ", ".join(f'"+{letter}"(D[{i}])' for i in range(c))
    if _is_wgmma(each):
        # Only 16-bit operands may be transposed in shared memory.
        transposed = ", 0" if each.input in ("fp16", "bf16") else ""
        imm = "" if each.output == "int32" else f", 1, 1{transposed}"
        # The descriptor follows the metadata's number, and stands before them in the text.
        meta = f"%{next_name}, 0, " if each.sparse else ""
        name = f"%{next_name + each.sparse}"
        asm = f"{each.text} {{{d_text}}}, {{{a_text}}}, {name}, {meta}1{imm};"
        ins.append('"l"(descriptor)')
        before = f"  LOAD_WGMMA_B({each.terms * bits // 8});\n"
        around = ("  WGMMA_BEGIN();\n", "  WGMMA_END();\n")
    else:
        asm = f"{each.text} {{{d_text}}}, {{{a_text}}}, {{{b_text}}}, {{{d_text}}}{tail};"
        before, around = "", ("", "")
    code = {"fp32": "float", "fp16": "uint32_t", "int32": "uint32_t", "fp64": "double"}
    operand = "double" if each.kind == "fp64" else "uint32_t"
    loads = {
        "volta": "load_volta(x, A, B, D);",
        "fp64": f"load_fp64<{a}, {b}, {c}>(x, A, B, D);",
        "wgmma": f"load_a<{bits}, {each.terms}>(x, A); load_c<{c}>(x, D);",
        "wgmma_sp": f"meta = load_sparse<{bits}, {each.terms}>(x, A); load_c<{c}>(x, D);",
        "sp": f"meta = load_sparse<{bits}, {each.terms}>(x, A); "
        f"load_b<{bits}, {each.terms}>(x, B); load_c<{c}>(x, D);",
    }
    loads["sp_unordered"] = loads["sp"]
    load = loads.get(
        each.kind.removesuffix("_satfinite"),
        f"load_a<{bits}, {each.terms}, {_shift(each.input, bits)}>(x, A); "
        f"load_b<{bits}, {each.terms}, {_shift(each.input_b, bits)}>(x, B); load_c<{c}>(x, D);",
    )
    store = {"volta": f"store_volta<{c}>(x, D);", "fp64": f"store_fp64<{c}>(x, D);"}
    extra = "  uint32_t meta = 0;\n" if each.sparse else ""
    if each.scale is not None:
        extra += (
            f"  uint32_t scale_a = load_scale<{each.terms // (each.block or 1)}>(x, x.scale_a);\n"
        )
        extra += (
            f"  uint32_t scale_b = load_scale<{each.terms // (each.block or 1)}>(x, x.scale_b);\n"
        )
    guard = {90: "HAS_SM90A", 120: "HAS_SM120A"}.get(
        each.device, f"__CUDA_ARCH__ >= {each.device}0"
    )
    return f"""\
__global__ void {each.name}(Case x, int *ran) {{
#if {guard}
  {operand} A[{a}];
{f"  {operand} B[{b}];" if b else ""}
  {code[each.output]} D[{c}];
{extra}{before}  {load}
{around[0]}  asm volatile("{asm}"
               : {outs}
               : {", ".join(ins)});
{around[1]}  {store.get(each.kind, f"store_c<{c}>(x, D);")}
  *ran = 1;
#endif
}}
"""


def _shift(name: str, bits: int) -> int:
    """Return how far a code is shifted in its byte: FP4 lies in bits 5 to 2 of a byte."""
    return 2 if name == "fp4e2m1" and bits == 8 else 0

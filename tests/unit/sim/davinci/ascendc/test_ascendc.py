"""AscendC, compiled: scalar accesses, eager execution, findings by line, and hostile kernels."""

import platform
import shutil
from pathlib import Path

import numpy as np
import pytest

from vitruvian.common.errors import UserError
from vitruvian.sim.davinci import load_chip, simulate
from vitruvian.sim.davinci.ascendc import build, compile_kernel
from vitruvian.sim.davinci.cce import CceError
from vitruvian.sim.davinci.checks.autosync import insert_scalar_flags

KERNELS = Path(__file__).parent / "kernels"
CHIP = load_chip("ascend910b")

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None or platform.machine() != "x86_64",
    reason="AscendC is compiled by g++ on x86-64",
)


def run(source, arguments, *, kernel=None, blocks=1, defines=None, **limits):
    compiled = compile_kernel(str(KERNELS / source), CHIP, kernel=kernel, defines=defines)
    return build({compiled.kind: compiled}, CHIP, arguments, blocks=blocks, **limits)


def line_of(source, text):
    lines = (KERNELS / source).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_scalar_accesses_of_every_type():
    """Loads, stores and updates in place see and change UB and global memory."""
    dtypes = (np.int8, np.uint16, np.int32, np.uint64, np.float16, np.float32)
    arrays = {n: np.array([7, 0, 5, 1, 0], d) for n, d in zip("bswlhf", dtypes, strict=True)}
    program, functional = run("scalars.cpp", arrays, kernel="sizes")
    for name in arrays:
        assert functional.read(name).tolist() == [7, 14, 19, 2, 42]
    ops = [i.op for core in program for i in core.instructions]
    # Each of the six kernels loads 8 times and stores 6 times.
    assert (ops.count("scalar_load"), ops.count("scalar_store")) == (48, 36)
    assert {i.position.line for core in program for i in core.instructions} <= set(range(12, 24))


def test_instructions_that_update_their_place():
    """The data are loaded before they are changed, and both sides of a copy are moved."""
    x, y = np.array([1, 10], np.int32), np.array([5, 6, 0, 0], np.uint64)
    program, functional = run("scalars.cpp", {"x": x, "y": y}, kernel="updates")
    assert functional.read("x").tolist() == [1, 13]
    assert functional.read("y").tolist() == [5, 2**64 - 7, 5, 2**64 - 7]
    ops = [i.op for core in program for i in core.instructions]
    assert (ops.count("scalar_load"), ops.count("scalar_store")) == (4, 4)


@pytest.mark.parametrize("flag", [True, False])
def test_a_loop_on_data(flag):
    """The kernel sees what the vector unit wrote; without the flag, a race is found at the line."""
    x = np.linspace(1, -1, 128).astype(np.float16)
    words = np.zeros(48, np.uint8)
    words[0], words[8], words[16 + 19] = 3, 5, 9
    words[36:40].view(np.float32)[0] = 0.5
    arguments = {"x": x, "out": np.zeros(1, np.float32), "words": words}
    program, functional = run(
        "scalars.cpp", arguments, kernel="loop", defines={} if flag else {"WITHOUT_FLAG": "1"}
    )
    doubled = (x + x).astype(np.float32)
    expected = np.float32(doubled[doubled > 0].sum() * 0.5 + 3 * 1000 + 9 + 5)
    assert functional.read("out")[0] == expected
    assert [text for _, text in program.prints] == [
        "rows 3, scale 0.5, half 2\n",
        "DumpTensor: desc=5, position=UB\n[2.000000, 1.968750, 1.936523, 1.905273]\n",
    ]
    found = simulate(program).findings
    line = line_of("scalars.cpp", "sum +=")
    assert (not found) == flag
    assert flag or any(f.check == "race" and f"scalars.cpp:{line} on S" in f.message for f in found)


def test_template_arguments_and_blocks():
    """A kernel's template arguments are a part of its name."""
    _, functional = run(
        "scalars.cpp", {"x": np.zeros(4, np.float32)}, kernel="filled<float, 4>", blocks=3
    )
    assert functional.read("x").tolist() == [20, 21, 22, 23]
    with pytest.raises(UserError, match=r"--kernel must have template arguments, as in filled<h"):
        compile_kernel(str(KERNELS / "scalars.cpp"), CHIP, kernel="filled")


#: Modes of hostile.cpp, and what the error says.
MISTAKES = {
    0: "must end within 1 s of CPU time; it is here",
    1: "segmentation fault: the address 0xdead0000 is in no memory",
    2: "segmentation fault: the address 0x10000000040 is in no memory",
    3: "a scalar access of 4 bytes reaches outside UB: 0x80000",
    4: "copy_gm_to_ubuf: src must point into an array of the kernel, not to 0x10000400000",
    5: "the kernel must end within 300 intrinsics and scalar accesses",
    6: "vadd: repeat must be 0 to 255, not 300",
    7: "segmentation fault",
    8: "the kernel aborts here",
    9: "hset_flag: the simulator does not have this intrinsic",
    10: "the assertion one == 2 failed",
    11: "the kernel broke off after this line: it ended with exit code 7",
    12: "damaged its records: a record must have at most 6000 bytes, not 4294967295",
    13: "damaged its records: a record names no intrinsic",
    14: "segmentation fault: the address is in no memory",
    15: "copy_gm_to_ubuf: dst must be a pointer to UB, not a GM int32_t*",
    16: "vadd must have 4, 10, 11 or 12 arguments, not 9",
    17: "the kernel broke off after this line",
    19: "segmentation fault: the address 0x400000 is in no memory",
}


@pytest.mark.parametrize("mode", MISTAKES)
def test_a_mistake_is_one_line(mode):
    """A kernel that loops, crashes or writes false records ends with a line that says where."""
    arguments = {"x": np.zeros(16, np.int32), "mode": mode}
    with pytest.raises(CceError) as caught:
        run("hostile.cpp", arguments, limit=300, seconds=1)
    assert MISTAKES[mode] in str(caught.value)
    assert "\n" not in str(caught.value)
    if mode not in (7, 11, 12, 13, 17):
        assert caught.value.position.line == line_of("hostile.cpp", f"case {mode}:")


def test_an_operand_outside_of_its_buffer():
    """An instruction beyond the end of UB is refused with its line."""
    with pytest.raises(ValueError, match=rf"hostile.cpp:{line_of('hostile.cpp', 'case 20:')}.*UB"):
        run("hostile.cpp", {"x": np.zeros(16, np.int32), "mode": 20})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("void k() {}", "must have a __global__ function"),
        ("__global__ void k() { x = 1; }", r"k.cpp:1: 'x' was not declared"),
        ('#include "no.h"\n__global__ void k() {}', "k.cpp:1: no.h is not in this project's"),
        (
            "__global__ void k() {}\n__simd_vf__ void f();",
            "k.cpp:2: __simd_vf__ is of the Ascend 9",
        ),
        ("__global__ void a() {}\n__global__ void b() {}", "--kernel must name one of a, b"),
        ("#error no\n__global__ void k() {}", "k.cpp:1: #error no"),
    ],
)
def test_a_source_that_cannot_be_compiled(tmp_path, text, message):
    """g++ writes pages; the user sees the first error."""
    (tmp_path / "k.cpp").write_text(text)
    with pytest.raises(UserError, match=message) as caught:
        compile_kernel(str(tmp_path / "k.cpp"), CHIP)
    assert "\n" not in str(caught.value)


def test_a_folder_without_headers(tmp_path):
    """The line says what the folder must have."""
    with pytest.raises(UserError, match=r"--headers must be a folder with AscendC's kernel_oper"):
        compile_kernel(str(KERNELS / "scalars.cpp"), CHIP, kernel="loop", headers=str(tmp_path))


def test_other_chips_are_refused():
    """The macros of the device's compiler are known for two chips."""
    with pytest.raises(UserError, match="--chip must be one of ascend910b, ascend910 for AscendC"):
        compile_kernel(str(KERNELS / "scalars.cpp"), load_chip("ascend310"), kernel="loop")


def test_cores_that_wait_for_flags_of_others():
    """Each kind of core is compiled for itself, and sees what the other wrote before its flag."""
    source = str(KERNELS / "mixed.cpp")
    kernels = {k: compile_kernel(source, CHIP, kernel="flags", kind=k) for k in CHIP.kinds}
    program, functional = build(kernels, CHIP, {"x": np.zeros(32, np.int32)}, blocks=2)
    expected = [[5, 10, 10, 20], [6, 12, 12, 24]]
    assert functional.read("x").reshape(2, 16)[:, :4].tolist() == expected
    report = simulate(program)
    assert report.outputs["x"].reshape(2, 16)[:, :4].tolist() == expected and not report.findings


def test_cores_that_poll_memory():
    """A core that polls gives way to the core that it waits for; alone it ends at the limit."""
    x = np.zeros(32, np.int32)
    _, functional = run("mixed.cpp", {"x": x}, kernel="polls", blocks=4, limit=2000)
    assert functional.read("x")[::8].tolist() == [4, 3, 2, 1]
    with pytest.raises(CceError, match="must end within 2000 intrinsics"):
        run("mixed.cpp", {"x": x}, kernel="never", blocks=2, limit=2000)


@pytest.mark.parametrize("counting", [0, 40, 100])
def test_vcopy_moves_elements_of_32_bits(counting):
    """Counting, the mask counts the elements of each repeat, which may be more than 256 bytes."""
    x = np.arange(1, 129, dtype=np.int32)
    arguments = {"x": x, "y": np.zeros(128, np.int32), "counting": counting}
    _, functional = run("scalars.cpp", arguments, kernel="copies")
    kept = np.arange(128) < 100 if counting == 100 else np.arange(128) % 64 < 40
    assert np.array_equal(functional.read("y"), np.where(kept, x, -1))


def test_the_compiler_orders_scalar_accesses():
    """The flags that the device's compiler inserts remove the race, and no other finding."""
    words = np.zeros(48, np.uint8)
    arguments = {"x": np.ones(128, np.float16), "out": np.zeros(1, np.float32), "words": words}
    program, _ = run("scalars.cpp", arguments, kernel="loop", defines={"WITHOUT_FLAG": "1"})
    assert insert_scalar_flags(program) > 0
    assert not simulate(program).findings
    bare, _ = run("scalars.cpp", arguments, kernel="loop", defines={"WITHOUT_COPY_FLAG": "1"})
    insert_scalar_flags(bare)
    races = [f.message for f in simulate(bare).findings if f.check == "race"]
    assert races and all("vadd" in message and "scalar_load" not in message for message in races)


def test_the_vector_functions_of_the_own_header():
    """Moves with lengths in bytes, casts, scalars, masks and a reduction; no finding."""
    x = np.linspace(-5, 5, 100).astype(np.float16)
    arguments = {"x": x, "y": np.zeros(100, np.int32), "sum": np.zeros(1, np.float32)}
    program, functional = run("library.cpp", arguments, kernel="vectors")
    values = np.clip(2 * (np.abs(x.astype(np.float32)) + 1), 3, 7)
    assert np.array_equal(functional.read("y"), values.astype(np.int32))
    assert functional.read("sum")[0] == pytest.approx(values[:64].sum(), rel=1e-6)
    assert not simulate(program).findings


def test_the_cube_functions_of_the_own_header():
    """A product through L1, L0 and the fixpipe is exact for small integers; no finding."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 8, 1024).astype(np.float16) for _ in range(2))
    arguments = {"a": a, "b": b, "c": np.zeros(1024, np.float32)}
    program, functional = run("library.cpp", arguments, kernel="product")
    product = a.reshape(32, 32).astype(np.float32) @ b.reshape(32, 32).astype(np.float32)
    assert np.array_equal(functional.read("c").reshape(32, 32), product)
    assert not simulate(program).findings


def test_registers_of_sums_and_extremes():
    """The sums of repeats, each a tree, are added in turn; mode 0 leaves the register as it is."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=192).astype(np.float32)
    y = rng.normal(size=256).astype(np.float16)
    arguments = {"x": x, "y": y, "out": np.zeros(10, np.float32)}
    _, functional = run("registers.cpp", arguments, kernel="sums")

    def tree(values):
        while len(values) > 1:
            values = values[::2] + values[1::2]
        return values[0]

    first, second, third = (tree(x[i : i + 64]) for i in (0, 64, 128))
    rest = np.zeros(64, np.float32)
    rest[:6] = x[64:70]
    halves = tree(y[:128]) + tree(y[128:])
    expected = [(first + second) + third, first + tree(rest), halves, 0x203]
    expected += [x[:150].max(), x[:150].argmax(), y[:150].min(), y[:150].argmin(), 0, x[0]]
    assert functional.read("out").tolist() == [float(value) for value in expected]


def test_divisions_by_zero_and_variables_without_a_value():
    """Both are 0 in every run, and a division by 0 is told at its line."""
    arguments = {"out": np.full(7, -1), "zero": 0}
    program, functional = run("registers.cpp", arguments, kernel="zeros")
    assert functional.read("out").tolist() == [0, 0, 0, 0, 0, 7, 5]
    assert len(program.prints) == 5
    assert all("an integer is divided by 0 here" in text for _, text in program.prints)
    arguments["zero"] = 1
    program, functional = run("registers.cpp", arguments, kernel="zeros")
    assert functional.read("out").tolist()[:3] == [7, 0, -7] and len(program.prints) == 1


def test_a_register_with_too_many_arguments(tmp_path):
    """A call that no function of the kernel takes is told at its line."""
    source = tmp_path / "k.cpp"
    source.write_text("__global__ __cube__ void k() {\n    set_fpc(1, 2);\n}\n")
    compiled = compile_kernel(str(source), CHIP)
    with pytest.raises(CceError, match=r"k.cpp:2:1: set_fpc with more than one argument"):
        build({compiled.kind: compiled}, CHIP, {})

"""The text that a kernel's printf prints, with the arguments formatted as in C."""

import shutil
import subprocess

import numpy as np
import pytest

from tests.support.cce_sinks import body, run
from vitruvian.sim.davinci import load_chip
from vitruvian.sim.davinci.cce import CceError, build, read

#: The format and the arguments of each print; every argument is valid C++.
PRINTS = {
    "integers": (
        '"%d %i %5d|%-5d|%05d|%+d|% d"',
        "-3, 7, 42, 42, 42, 42, 42",
    ),
    "unsigned and hexadecimal": (
        '"%u %x %X %#x %o %08x %lx %llu"',
        "4000000000u, 255, 255, 255, 8, -1, (unsigned long)-1, (unsigned long long)-1",
    ),
    "of another sign": ('"%d %u"', "4294967295u, -1"),
    "wide integers": ('"%ld %lld %zu"', "-5000000000l, 5000000000ll, sizeof(int)"),
    "small types": ('"%d %d %hhd"', "(int8_t)-3, (uint8_t)200, (int8_t)-3"),
    "floating point": (
        '"%f %.2f %8.3f|%-8.1f|%e %G %.0f"',
        "1.5, 2.345f, 1.5, 1.5, 1e10, 1e-9, 2.5",
    ),
    "special values": ('"%f %F %e"', "1.0 / zero, -1.0 / zero, 1.0 / zero"),
    "characters": ('"%c%c %s %.2s %6s|"', '\'a\', 66, "word", "word", "word"'),
    "stars": ('"%*d %-*d| %.*f"', "5, 42, 5, 42, 1, 1.25"),
    "escapes": ('"tab\\t%% \\x41\\102 \\"%d\\" \\\\" " joined"', "1"),
    "no argument": ('"hello"', ""),
    "expressions": ('"%d %d %d"', "i++, i * 2 + 1, word[1]"),
}
DECLARED = 'double zero = 0; int i = 3; const char *word = "xyz"; i++;'


def call(name: str) -> str:
    form, arguments = PRINTS[name]
    return f'printf({form}{", " if arguments else ""}{arguments}); printf("\\n");'


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
def test_a_printf_comes_out_as_a_compiler_has_it(tmp_path):
    # g++ evaluates arguments from the right, so no print may depend on the order.
    calls = [call(n).replace("i++, i * 2 + 1", "i++, j * 2 + 1") for n in PRINTS]
    statements = f"{DECLARED} int j = 9;\n" + "\n".join(calls)
    source = tmp_path / "p.cpp"
    source.write_text(f"#include <cstdint>\n#include <cstdio>\nint main() {{ {statements} }}\n")
    subprocess.run(["g++", "-w", "-o", str(tmp_path / "p"), str(source)], check=True)
    done = subprocess.run([tmp_path / "p"], check=True, capture_output=True, text=True)
    assert "".join(run(body(statements), [0]).prints) == done.stdout


def test_the_program_keeps_the_text_of_each_core():
    """The prints are in the order of the cores, with the values of the data."""
    text = """
    __global__ __aicore__ void k(__gm__ half *x, int32_t n) {
        for (int i = 0; i < n; i++) {
            printf("core %d: x[%d] = %.1f\\n", block_idx, i, x[i]);
        }
    }"""
    arguments = {"x": np.array([1.5, -2, 0], np.float16), "n": 2}
    program, _ = build(read(text), load_chip("ascend910"), arguments, blocks=2)
    names = [str(core) for core in program]
    assert program.prints == [
        (names[core], f"core {core}: x[{i}] = {x}\n")
        for core in (0, 1)
        for i, x in enumerate(("1.5", "-2.0"))
    ]


def test_strings_are_in_memory():
    sink = run(body('const char *s = "ab"; out[0] = s[1]; out[1] = s == "ab"; out[2] = s[2];'), [0])
    assert sink.values("GM", "int64", 3) == [ord("b"), 1, 0]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ('printf("%d");', "printf: %d must have an argument"),
        ('printf("%d", 1.5f);', "printf: the argument of %d must be an integer, not float"),
        ('printf("%f", 1);', "printf: the argument of %f must be a floating-point number, not int"),
        ('printf("%s", 1);', "printf: the argument of %s must be a string, not int"),
        ('printf("%y", 1);', "printf: %y is not a known conversion"),
        ('printf("%");', "printf: a % at the end of the format must be written as %%"),
        ('printf("%99999999999d", 1);', "printf: a width must be at most 1000, not 999999999"),
        ("printf(out);", "the first argument of printf must be a string in quotes"),
        ("printf();", "the first argument of printf must be a string in quotes"),
        ('cce_printf("%d", nothing);', "nothing is not declared"),
    ],
)
def test_mistakes_of_a_printf(statement, message):
    with pytest.raises(CceError) as caught:
        run(body(statement), [0])
    assert str(caught.value).startswith("k.cce:3:") and message in str(caught.value)


def test_prints_are_bounded():
    sink = run(body('for (int i = 0; i < 5000; i++) printf("%1000d", i);'), [0])
    assert (1 << 20) < sum(map(len, sink.prints)) < (1 << 20) + 100
    assert sink.prints[-1].endswith("(the rest of what this core prints is left out)\n")


def test_a_namespace_before_a_print_is_ignored():
    calls = "".join(f'{name}("{i};");' for i, name in enumerate(NAMES))
    assert run(body(calls), [0]).prints == [f"{i};" for i in range(len(NAMES))]


NAMES = ("printf", "PRINTF", "cce_printf", "cce::printf", "AscendC::printf", "AscendC::PRINTF")

DUMP = """
__global__ __aicore__ void k(__gm__ half *x, __gm__ int32_t *n, __gm__ bfloat16_t *b) {
    __ubuf__ half *u = (__ubuf__ half *)get_imm(64);
    copy_gm_to_ubuf(u, x + 16 * block_idx, 0, 1, 1, 0, 0);
    AscendC::DumpTensor(u, 5, 3);
    vrelu(u, u, 1, 1, 1, 8, 8);
    DumpTensor(u + 1, 6, 2);
    printf("between\\n");
    DumpTensor(n, 7, 2);
    DumpTensor(b, 8, 2);
}
"""


def test_dumps_are_in_program_order_and_cost_nothing():
    x = np.linspace(-2, 2, 32).astype(np.float16)
    arguments = {"x": x, "n": np.array([3, -4], np.int32)}
    arguments["b"] = np.array([0x3F80, 0xC000], np.uint16)
    program, _ = build(read(DUMP), load_chip("ascend910"), arguments, blocks=2)
    names = [str(core) for core in program]
    for block, name in enumerate(names):
        y = x[16 * block : 16 * block + 3]
        texts = [text for core, text in program.prints if core == name]
        shown = ", ".join(f"{v:f}" for v in y)
        assert texts[0] == (
            "DumpTensor: desc=5, addr=0x40, data_type=float16, position=UB, dump_size=3\n"
            f"[{shown}]\n"
        )
        shown = ", ".join(f"{max(v, 0):f}" for v in y[1:])
        assert texts[1].startswith("DumpTensor: desc=6, addr=0x42, ")
        assert texts[1].endswith(f"\n[{shown}]\n")
        assert texts[2] == "between\n"
        assert "data_type=int32, position=GM" in texts[3] and texts[3].endswith("\n[3, -4]\n")
        assert texts[4].endswith(
            "data_type=bfloat16, position=GM, dump_size=2\n[1.000000, -2.000000]\n"
        )
    ops = [instr.op for core in program for instr in core.instructions]
    assert ops == ["copy", "vrelu"] * 2, "a dump is no instruction"


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DumpTensor(u, 1);", "must have 3 arguments (pointer, number, count), not 2"),
        ("DumpTensor(3, 1, 2);", "the pointer must be into GM, L1, UB, L0C, not int"),
        ("int a[4]; DumpTensor(a, 1, 2);", "not of the function's own variables"),
        (
            "DumpTensor((__ca__ half *)u0, 1, 2);",
            "the pointer must be into GM, L1, UB, L0C, not L0A",
        ),
        ("DumpTensor(u, 1.5f, 2);", "number and count must be integers, not float"),
        ("DumpTensor(u, -1, 2);", "number must be 0 to 4294967295, not -1"),
        ("DumpTensor(u, 1, 0);", "count must be 1 or more, not 0"),
        ("DumpTensor(u, 1, 1 << 20);", "a dump reaches outside UB: bytes 0 to 2097152"),
        ("DumpTensor(u, 1, 1 << 24);", "the kernel must end within 10000000 steps"),
    ],
)
def test_mistakes_of_a_dump(statement, message):
    before = "uintptr_t u0 = 0; __ubuf__ half *u = (__ubuf__ half *)u0;"
    with pytest.raises(CceError) as caught:
        build(read(body(f"{before}\n{statement}", "")), load_chip("ascend910"), {})
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_data_of_a_dump_must_be_known():
    arguments = {"x": np.zeros(32, np.float16), "n": np.zeros(2, np.int32), "b": None}
    with pytest.raises(CceError, match=r"the data in memory are unknown"):
        build(read(DUMP), load_chip("ascend910"), arguments, execute=False)

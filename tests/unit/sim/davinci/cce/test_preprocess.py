"""The preprocessor of the CCE reader against that of a C compiler, and its positions."""

import random
import shutil
import subprocess

import pytest

from tests.support.cce_sinks import body, run
from vitruvian.sim.davinci.cce import CceError
from vitruvian.sim.davinci.cce.language.preprocess import preprocess

MACROS = r"""
#define EMPTY
#define ONE 1
#define TWO (ONE + ONE)
#define ADD(a, b) ((a) + (b))
#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))
#define SELF SELF + ONE
#define PASTE(a, b) a##b
#define NAME(n) PASTE(buf_, n)
#define STR(x) #x
#define ALL(first, ...) f(first, __VA_ARGS__)
#define LOOP(i, n) for (int i = 0; i < (n); \
                        ++i)
#define CALL_LATER ADD
TWO SELF EMPTY ADD(ADD(1, 2), TWO) CEIL_DIV(N + 3, 16) PASTE(a, 1) NAME(7) NAME(ONE) STR(a + b)
STR("a\n" '"') STR( a+b )
ALL(1, 2, (3, 4)) LOOP(k, CEIL_DIV(100, ONE)) CALL_LATER(1, 2) ADD (5, 6) ADD
ADD(
  1 /* one */, // and
  2
)
#undef ONE
ONE TWO
#if defined(TWO) && !defined ONE && (TWO_ > 3 || 2 * 3 == 6)
yes
#else
no
#endif
#ifdef ONE
one
#elif 1 - 1
never
#elif 'a' == 97 && ~0 < 0 && (7 % 4 ? 3 : 0) == 3
elif
#else
else
#endif
#ifndef ONE
#if 0
#error never seen
#include "nothing.h"
x ' y
#endif
last
#endif
"""


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
def test_tokens_agree_with_a_compiler(tmp_path):
    source = tmp_path / "m.cpp"
    source.write_text(MACROS)
    done = subprocess.run(
        ["g++", "-E", "-P", str(source)], check=True, capture_output=True, text=True
    )
    expected = [t.text for t in preprocess(done.stdout, "m")]
    actual = [t.text for t in preprocess(MACROS, "m")]
    assert actual == expected
    assert "elif" in actual and "never" not in actual and "SELF" in actual


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
def test_conditions_agree_with_a_compiler(tmp_path):
    rng = random.Random(3)

    def expression(depth: int) -> str:
        if not depth:
            return rng.choice(("0", "1", "7", "0x10", "010", "UNKNOWN", "SIX", "2u"))
        a, b = expression(depth - 1), expression(rng.randrange(depth))
        sign = rng.choice(("+", "-", "*", "<", ">=", "==", "!=", "&&", "||", "&", "|", "^"))
        return rng.choice((f"({a} {sign} {b})", f"!{a}", f"(-{a})", f"({a} ? {b} : 3)", f"({a})"))

    lines = ["#define SIX 6"]
    for i in range(150):
        lines += [f"#if {expression(3)}", f"yes{i}", "#endif"]
    text = "\n".join(lines)
    source = tmp_path / "c.cpp"
    source.write_text(text)
    done = subprocess.run(["g++", "-E", "-P", source], check=True, capture_output=True, text=True)
    actual = [t.text for t in preprocess(text, "c")]
    assert actual == done.stdout.split() and 20 < len(actual) < 140


def test_lines_stay_right(tmp_path):
    (tmp_path / "sizes.h").write_text(
        "#pragma once\n\n#define LENGTH 64\nint helper() { return x; }\n"
    )
    text = '#include <cmath>\n#include "sizes.h"\n#include "sizes.h"\n#include "absent.h"\n'
    text += "/* a\n comment */\n#define CALL(x) \\\n  pipe_barrier(x)\n"
    text += body("int a = \\\n LENGTH;\nCALL(PIPE_V);\nCALL(\nPIPE_M);")
    sink = run(text, [0], directory=tmp_path)
    assert [c.position.line for c in sink.calls] == [13, 14]
    with pytest.raises(CceError, match=r"^sizes.h:4:23: x is not declared"):
        run(text.replace("CALL(PIPE_V)", "helper()"), [0], directory=tmp_path)


@pytest.mark.parametrize(
    "argument, expected",
    [
        (r'"a\n"', r'"\"a\\n\""'),
        (r"""'"' '\0' """, r'''"'\"' '\\0'"'''),
        (r"\n", r'"\n"'),  # only literals are escaped
        (" a+b  /* of */ c ", '"a+b c"'),
        ("a\n  b", '"a b"'),
        ("  ", '""'),
    ],
)
def test_an_argument_becomes_a_string(argument, expected):
    """Escape the quotes and backslashes of literals, and keep one space where there is any."""
    tokens = preprocess(f"#define STR(x) #x\nSTR({argument})", "k.cce")
    assert [(t.kind, t.text) for t in tokens] == [("string", expected)]


def test_defines_are_given_from_outside():
    text = body("#if defined(CHIP) && CHIP == 310\nset_mask_norm();\n#endif\n")
    assert run(text, [0]).names() == []
    assert run(text, [0], defines={"CHIP": "310"}).names() == ["set_mask_norm"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("int x;\n#if 1\n", "k.cce:2:2: this condition has no #endif"),
        ("#endif\n", "k.cce:1:2: #endif without an #if before it"),
        ("#if 1\n#else\n#else\n#endif", "k.cce:3:2: #else after the #else of k.cce:1"),
        ("#if 1 +\n#endif", "k.cce:1:2: #if must be followed by a complete expression"),
        ("#if 1 / 0\n#endif", "#if divides by zero"),
        ("#if (1\n#endif", "#if has a ( without its )"),
        ("#if 1.5\n#endif", "k.cce:1:5: #if must contain only integers, not '1.5'"),
        ("#if 1 2\n#endif", "k.cce:1:7: #if does not expect '2' here"),
        ("#define F(a, b) a\nint x = F(1);", "k.cce:2:9: macro F must have 2 arguments, not 1"),
        ("#define F(a) a\nint x = F(1;", "k.cce:2:9: the arguments of macro F have no ')'"),
        ("#define 3", "k.cce:1:2: #define must be followed by a name"),
        ("#defin A", "k.cce:1:2: #defin is not a directive of the preprocessor"),
        ("#error not for this chip", "k.cce:1:2: #error not for this chip"),
        ("int a;\n /* open", "k.cce:2:2: the comment that begins here does not end"),
        ("void k() { int a = `3`; }", "k.cce:1:20: no C token begins with '`'"),
        ("", "k.cce:1:1: there is no function in this file"),
        ("void k() { int a = 3 }", "k.cce:1:22: syntax error before '}'"),
        ("void k() { int a = 3; ", "k.cce:1:10: the '{' here is not closed"),
        ("void k() { f(1]; }", "k.cce:1:15: ')' must close the '(' of k.cce:1:13, not ']'"),
        ("void k() { int a; } }", "k.cce:1:21: '}' has no matching opening bracket"),
        ("void k() { hafl x = 3; }", "k.cce:1:17: syntax error before 'x'; hafl is not a known"),
        ("void k() {\n  for (int i = 0; i < 3, ++i) {}\n}", "k.cce:2:29: syntax error"),
        ("void k(hafl *p) { }", "k.cce:1:13: syntax error before '*'; hafl is not a known type"),
        ("void k() { int a = 3 +;\n}", "k.cce:1:23: syntax error before ';'"),
        ("void k() { f((__ubuf__ hafl *)0); }", "k.cce:1:15: syntax error: missing type in decl"),
        ("void k() { f((__ubuf__ hafl *)0); }", "; hafl is not a known type"),
        ("void k() { f((hafl *)0); }", "k.cce:1:21: syntax error before ')'; hafl is not a known"),
        ("void k() { int b; b * ; }", "k.cce:1:23: syntax error before ';'"),
        ("#ifdef __DAV_X__\nvoid k() { }\n#endif", "; it asks for __DAV_X__, which is not def"),
        ("struct S { int a; };\nvoid k(S x) { x.go(); }", "k.cce:2:15: struct S has no method go"),
        ("void k() { int a = 0189; }", "k.cce:1:20: syntax error: invalid octal constant"),
        (
            "struct S { int a = 3 };\nvoid k() { S s; }",
            "k.cce:1:1: this structure cannot be parsed",
        ),
        ("inline void () { int a = 3; }", "k.cce:1:1: void must be the name of a function"),
        ('void k() { asm("NOP"); }', "k.cce:1:12: assembly is not part of the dialect"),
        (
            "int a;\nint &b = a;\nvoid k() { b = 2; }",
            "k.cce:2:5: reference b must be a variable of",
        ),
        ("template <typename T> void k(T *p) { }", "must be a function; k is a template"),
    ],
)
def test_mistakes_are_one_line(text, message):
    with pytest.raises(CceError) as error:
        run(text)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_the_entry_is_found():
    two = "__global__ void a() { pipe_barrier(PIPE_V); }\n"
    two += "__global__ void b() { pipe_barrier(PIPE_M); }"
    with pytest.raises(CceError, match=r"k.cce:2:1: entry must be given, as one of a, b"):
        run(two)
    assert run(two, entry="b").calls[0].pipe == "M"
    with pytest.raises(CceError, match="entry must be one of a, b, not 'bb'; did you mean b"):
        run(two, entry="bb")
    assert run("void helper() { } __global__ void k() { helper(); }").calls == []
    assert run("void only() { set_mask_norm(); }").names() == ["set_mask_norm"]
    with pytest.raises(CceError, match="there is no function in this file"):
        run("int x;")


def test_host_code_is_not_read():
    text = """
    #include <vector>
    using namespace std;
    extern "C" {
    __global__ __aicore__ void k(__gm__ half *x) { set_mask_count(); }
    }
    namespace host { int twice(int n) { return 2 * n; } }
    template <typename T> struct Box { T value; };
    template <typename... T> void log(T... x) { print(x...); }
    template <typename T, typename... U> struct List { T value; };
    template <typename T, std::enable_if_t<(sizeof(T) > 2), int> = 0> void g(T t) {}
    class Runner { public: Runner() {} ~Runner() = default; void go(); int operator()(int x); };
    struct Other : Runner { Other(int a) : Runner(), v{a}, w(a) { use(w); } ~Other() { w = 0; } };
    extern "C" void launch(uint32_t blocks, void *l2ctrl, void *stream, uint8_t *x)
    {
        k<<<blocks, l2ctrl, stream>>>((half *)x);
    }
    const char *text() { return "it's" "@"; } /* don't */ // can't
    #if 0
    don't read `this`
    #endif
    int main(int argc, char **argv) { std::vector<int> v{1, 2}; return v[0] ? 0 : throw 3; }
    """
    assert run(text, [0]).names() == ["set_mask_count"]

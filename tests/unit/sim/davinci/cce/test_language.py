"""The C of the CCE reader against a C compiler, and the rules of the dialect."""

import random
import shutil
import struct
import subprocess

import pytest

from tests.support.cce_sinks import body, results, run
from vitruvian.sim.davinci.cce import CceError

TYPES = ("int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t", "int64_t", "uint64_t")
SIGNS = ("+", "-", "*", "&", "|", "^", "<", "<=", ">", ">=", "==", "!=", "&&", "||", "/", "%")


def _value(rng: random.Random, name: str) -> str:
    bits = int(name.strip("uint_")) - 1
    size = rng.choice((3, bits, bits + 1))
    value = rng.getrandbits(size) & ((1 << bits) - 1)
    return f"({name}){value}ULL" if rng.random() < 0.7 else f"({name})-{value}LL"


def _expression(rng: random.Random, depth: int) -> str:
    """Return an expression over v0 ... v7 in which no division or shift is undefined."""
    if depth == 0:
        return rng.choice([f"v{rng.randrange(8)}", str(rng.randrange(300)), "0x7fu", "1LL"])
    a = _expression(rng, depth - 1)
    b = _expression(rng, rng.randrange(depth))
    kind = rng.randrange(10)
    if kind == 0:
        return f"({rng.choice(TYPES)})({a})"
    if kind == 1:
        return f"({a} ? {b} : {_expression(rng, depth - 1)})"
    if kind == 2:
        return f"({rng.choice('-~!+')}({a}))"
    if kind == 3:
        return f"(({a}) {rng.choice(('<<', '>>'))} {rng.randrange(31)})"
    sign = rng.choice(SIGNS)
    if sign in "/%":
        return f"(({a}) {sign} (({b}) % 7 == 0 ? 3 : ({b}) % 7))"
    return f"(({a}) {sign} ({b}))"


def _program(seed: int, count: int) -> str:
    rng = random.Random(seed)
    lines = [f"{t} v{i} = {_value(rng, t)};" for i, t in enumerate(TYPES)]
    for i in range(count):
        lines.append(f"out[{i}] = (int64_t)({_expression(rng, 3)});")
        target = rng.randrange(8)
        update = rng.choice(
            (f"v{target} += v{rng.randrange(8)};", f"v{target}++;", f"--v{target};")
        )
        lines.append(update)
        lines.append(f"out[{count + i}] = v{target};")
    return "\n".join(lines)


def compiled(program: str, count: int, tmp_path) -> list[int]:
    """Return the results of the statements when g++ compiles them (signed integers wrap)."""
    source = tmp_path / "p.cpp"
    source.write_text(
        "#include <cstdint>\n#include <cstdio>\n#include <cmath>\n#include <algorithm>\n"
        "using std::max; using std::min; typedef double result;\n"
        f"int64_t out[{count}];\nint main() {{\n{program}\n"
        'for (int64_t x : out) printf("%lld\\n", (long long)x);\n}\n'
    )
    options = ["-O0", "-w", "-fwrapv", "-ffp-contract=off", "-o", str(tmp_path / "p"), str(source)]
    subprocess.run(["g++", *options], check=True, capture_output=True)
    done = subprocess.run([tmp_path / "p"], check=True, capture_output=True, text=True)
    return [int(x) for x in done.stdout.split()]


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
def test_integers_agree_with_a_compiler(tmp_path):
    count = 300
    program = _program(7, count)
    expected = compiled(program, 2 * count, tmp_path)
    actual = results(program, 2 * count)
    assert len(set(expected)) > 100
    wrong = [(i, e, f) for i, (e, f) in enumerate(zip(expected, actual, strict=True)) if e != f]
    assert not wrong, (wrong[0], program.splitlines()[8 + 3 * (wrong[0][0] % count)])


FLOATS = """
float a = 1.1f; double b = 3.7; int c = -7; float z = 0.0f; uint32_t u = 3000000000u;
float t[4] = {1e30f, -2.5f, 3.0e-40f};
out[0] = bits(a * b); out[1] = bits((float)(a * c)); out[2] = bits(a / 3 + t[1]);
out[3] = bits((double)t[0] * t[0]); out[4] = (int64_t)(a * 1e6f); out[5] = bits(c / 2 * a);
out[6] = bits((float)u); out[7] = a > b; out[8] = bits(-t[1] - a); out[9] = (int32_t)t[1];
out[10] = bits((float)(t[2] * 0.5f)); out[11] = bits(0.1f + 0.2); out[12] = bits(u * 1.5f);
out[13] = bits((float)16777217); out[14] = bits(1 / 3.0f); out[15] = bits(.5e1f * 0x10);
"""


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
def test_floats_are_those_of_a_compiler(tmp_path):
    prelude = "auto bits = [](double x) { int64_t y; __builtin_memcpy(&y, &x, 8); return y; };"
    expected = compiled(prelude + FLOATS, 16, tmp_path)
    actual = results(
        FLOATS, 16, before="int64_t bits(double x) { int64_t y[1]; *(double *)y = x; return *y; }"
    )
    assert actual == expected
    assert struct.unpack("<d", struct.pack("<q", actual[6]))[0] == 3000000000.0


CONTROL = """
int n = 0;
for (int i = 0, j = 10; i < j; ++i, j--) { if (i == 2) continue; n += i * j; if (n > 40) break; }
out[0] = n;
int k = 0; while (true) { if (++k == 5) break; }
out[1] = k;
do { k -= 2; } while (k > 0);
out[2] = k;
for (int m = 0; m < 6; m++) { switch (m) { case 0: n = 1; case 1: n += 10; break;
  case 4: case 5: n += 100; break; default: n += 1000; } }
out[3] = n;
int x = 3; { int x = 4; out[4] = x; } out[5] = x;
int p = 5; int *q = &p; *q += 2; out[6] = p++ + ++p; out[7] = (p, p + 1);
int grid[3][4] = {{1, 2}, {5, 6, 7, 8}}; out[8] = grid[1][3] + grid[2][0] + grid[0][1];
uint8_t wrap = 250; wrap += 10; out[9] = wrap; out[10] = sizeof(grid) + sizeof(int64_t);
int *cursor = &grid[1][0]; *cursor++ += 40; out[11] = grid[1][0]; out[12] = *cursor;
out[13] = x > 2 ? 7 : 1 / (x - 3); out[14] = max(3, min(9, 5)); out[15] = 0x10 | 010;
"""


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
def test_control_and_memory_are_those_of_a_compiler(tmp_path):
    assert results(CONTROL, 16) == compiled(CONTROL, 16, tmp_path)


def test_half_is_rounded_after_every_operation():
    actual = results(
        "half a = 2049.0f; half b = half(1.0f); out[0] = a; out[1] = a + b + b; out[2] = a * a;"
        "half third = b / (half)3; out[3] = third; out[4] = (float)third * 3; out[5] = 1e-8;",
        6,
        "fp16",
    )
    assert actual == [2048, 2048, float("inf"), 0.333251953125, 1.0, 0]
    assert actual[4] != 0.333251953125 * 3  # in float, then rounded when stored


def test_functions_scopes_and_structures():
    text = """
    #define UNUSED __attribute__((unused))
    struct Tile { int32_t rows; half scale; int64_t sizes[2]; };
    typedef struct { uint8_t a; uint32_t b; } Pair;
    static const int TABLE[4] = {1, 10, 100, 1000};
    constexpr int N = 1 << 3;
    enum Mode { OFF, ON = 5, BOTH };
    static inline __aicore__ int64_t sum(const Tile *t, int n) {
        int64_t total = t->rows;
        for (int i = 0; i < n; ++i) total += t->sizes[i] * TABLE[i + 1];
        return total;
    }
    UNUSED __aicore__ inline void fill(__gm__ int64_t *p, int64_t value) {
        if (value < 0) return; *p = value; }
    int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    """
    actual = results(
        """Tile t = {3, 0.5f, {4, 5}};
        Tile copy; copy = t; copy.sizes[1] += 1;
        fill(out, sum(&copy, 2)); fill(out + 1, -1); out[2] = fib(12); out[3] = sizeof(Pair);
        Pair pair = {.b = 7}; out[4] = pair.a + pair.b; out[5] = N + BOTH;
        auto second = copy.scale * 4; out[6] = second; out[7] = static_cast<int>(3.9f) + int(2.9);
        out[8] = *reinterpret_cast<int64_t *>(t.sizes);""",
        9,
        before=text,
    )
    assert actual == [3 + 40 + 600, 0, 144, 8, 7, 14, 2, 5, 4]


def test_a_name_of_an_inner_block_ends_with_it():
    actual = results(
        "int a = 1; { int a = 2; { int a = 3; out[0] = a; } out[1] = a; } out[2] = a;"
        "for (int a = 7; a < 8; a++) { int b = a; out[3] = b; } out[4] = a;",
        5,
    )
    assert actual == [3, 2, 1, 7, 1]
    with pytest.raises(CceError, match="b is not declared"):
        results("{ int b = 2; } out[0] = b;", 1)


def test_scalar_accesses_are_the_sinks():
    sink = run(
        body(
            "__ubuf__ int32_t *u = (__ubuf__ int32_t *)((uintptr_t)64);\n"
            "u[1] = p[0] + 1; *(__ubuf__ half *)(u + 2) = 1.5f;\n"
            "for (int i = 0; i < *u; ++i) pipe_barrier(PIPE_V);",
            "__gm__ int32_t *p",
        ),
        [16],
    )
    kinds = [(kind, a.space, a.address, a.dtype, at.line) for kind, a, at in sink.accesses]
    assert kinds[:3] == [
        ("load", "GM", 16, "int32", 4),
        ("store", "UB", 68, "int32", 4),
        ("store", "UB", 72, "fp16", 4),
    ]
    assert kinds[3:] == [("load", "UB", 64, "int32", 5)]


def test_bounds_may_come_from_memory_and_cores():
    text = body(
        "for (int i = 0; i < *(__gm__ int *)n + get_block_num(); ++i)\n"
        "  set_vector_mask(block_idx, get_block_idx() * block_num + i);",
        "__gm__ uint8_t *n",
    )
    sink = run(text, [0], block_idx=2, block_num=3)
    assert [dict(c.arguments) for c in sink.calls] == [{"high": 2, "low": 6 + i} for i in range(3)]


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        ("int a = 1 / 0;", "k.cce:3:9: the right side of / is zero"),
        ("int a = 1 << 32;", "k.cce:3:9: a shift of int must be 0 to 31, not 32"),
        ("float f; f % 2;", "k.cce:3:10: operands of % must be integers, not float"),
        ("abc = 3;", "k.cce:3:1: abc is not declared"),
        ("int count; coumt = 3;", "k.cce:3:12: coumt is not declared; did you mean count?"),
        ("__ubuf__ half *u = out;", "GM int64_t* cannot be converted to UB half*"),
        ("__ubuf__ half *u = (__ubuf__ half *)out;", "GM int64_t* cannot be converted to UB half*"),
        ("int a = out;", "a value of type int must be a number, not GM int64_t*"),
        ("int a[2]; a[5] = 1;", "address 0x54 is outside the function's variables"),
        ("int *p = 0; *p = 3;", "address 0x0 is outside the function's variables"),
        ("int a[2] = {1, 2, 3};", "a list for int[2] must have at most 2 values"),
        ("break;", "k.cce:3:1: break must be within a loop or a switch"),
        ("goto end; end: ;", "Goto is not part of the dialect"),
        ("int a = (int[]){1, 2}[0];", "compound literals are not part of the dialect"),
        ("int a[2] = {[1] = 3};", "k.cce:3:13: ArrayDesignator is not supported as an expression"),
        ("3 = 4;", "the left side of = must be a variable"),
        ("__ubuf__ half x;", "x must be a pointer to an address in UB, not a variable in UB"),
        ("int n = 3; int a[n];", "this must be a constant integer"),
        ("out->x = 3;", "the left side of -> must be a structure, not int64_t"),
        ("return 3;", "a function of type void must return no value"),
        ("k(out);", "calls must be at most 100 deep"),
    ],
)
def test_mistakes_are_named_with_their_place(statements, message):
    with pytest.raises(CceError) as error:
        run(body(statements), [0])
    assert message in str(error.value) and str(error.value).startswith("k.cce:")


def test_integer_constants_have_the_types_that_c_gives_them():
    """It is the smallest that holds the value; a decimal one without u is signed if 64 bits do."""
    types = {
        "2147483647": (4, True),
        "2147483648": (8, True),
        "0x7fffffff": (4, True),
        "0x80000000": (4, False),
        "0xffffffff": (4, False),
        "0x100000000": (8, True),
        "4294967295u": (4, False),
        "4294967296u": (8, False),
        "9223372036854775807": (8, True),
        "0x7fffffffffffffff": (8, True),
        "0x8000000000000000": (8, False),
        "0xffffffffffffffff": (8, False),
        "2147483647l": (8, True),
        "037777777777": (4, False),
    }
    statements = "".join(
        f"out[{2 * i}] = sizeof({text}); out[{2 * i + 1}] = -1 < (0 * {text});"
        for i, text in enumerate(types)
    )
    actual = results(statements, 2 * len(types))
    assert actual == [int(x) for pair in types.values() for x in pair]
    with pytest.raises(CceError, match="an integer must be below 2\\^64"):
        results("out[0] = 0x10000000000000000;", 1)


def test_an_array_of_structures_is_a_pointer_to_its_first():
    before = "struct point { int x; int y; };"
    actual = results(
        "struct point p[2]; p->y = 5; (p + 1)->x = 7; (*p).x = 3;"
        "struct point *q = p + 1; q->y = 9;"
        "out[0] = p[0].x; out[1] = p[0].y; out[2] = p[1].x; out[3] = q->y; out[4] = (&p[0])->x;",
        5,
        before=before,
    )
    assert actual == [3, 5, 7, 9, 3]


@pytest.mark.parametrize(
    "words", ["half half x", "T T x", "PIPE_V y", "PIPE_V PIPE_V x", "while while x", "3 __gm__ y"]
)
def test_a_word_that_is_known_is_not_called_unknown(words):
    with pytest.raises(CceError, match="syntax error") as error:
        run(body(f"{words};", before="typedef struct { int x; } T;"), [0])
    assert "is not a known type" not in str(error.value)
    with pytest.raises(CceError, match="foo is not a known type"):
        run(body("foo y;"), [0])


def test_an_endless_loop_is_stopped():
    with pytest.raises(CceError, match=r"k.cce:4:1: the kernel must end within 1000 steps"):
        run(body("int n = 0;\nfor (;;) { n++; }"), [0], limit=1000)
    run(body("for (int i = 0; i < 900; i++) { }"), [0], limit=1000)


def test_functions_of_the_scalar_unit():
    actual = results(
        "float nan = 0.0f / 0.0f; float inf = 1.0f / 0.0f;"
        "out[0] = conv_f322s32r(2.5f); out[1] = conv_f322s32c(-2.5f); out[2] = conv_f322s32f(nan);"
        "out[3] = conv_f322s32z(inf) > 1 << 30; out[4] = floor(inf) == inf; out[5] = sqrt(16);"
        "out[6] = abs(-7) + fabs(-0.5f) * 2; out[7] = max(3, 2.5f) * 2; out[8] = bcnt1(255);"
        "out[9] = clz(1); out[10] = (int64_t)nan; out[11] = sqrt(-1.0f) != sqrt(-1.0f);",
        12,
    )
    assert actual == [2, -2, 0, 1, 1, 4, 8, 6, 8, 63, 0, 1]

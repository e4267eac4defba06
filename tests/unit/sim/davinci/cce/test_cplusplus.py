"""The C++ constructs of the dialect, and corner cases of C, against g++."""

import re
import shutil
import subprocess

import pytest

from tests.support.cce_sinks import Recorder, body, results, run
from vitruvian.sim.davinci.cce import CceError, read

#: For each case: the text before the kernel, the statements of the kernel, and the number of
#: elements of ``out`` that they fill.
CASES = {
    "references": (
        "void inc(int64_t &x, int64_t by = 2) { x += by; }\n"
        "void both(int64_t &x) { inc(x); inc(x, 5); }\n"
        "int64_t twice(const int64_t &x) { return 2 * x; }",
        "int64_t a = 1; inc(a); both(a); out[0] = a; int64_t b[2] = {1, 2}; inc(b[1]);"
        "out[1] = b[1]; out[2] = twice(7) + twice(a);",
        3,
    ),
    "defaults": (
        "int f(int a, int b = 3, int c = 4 * (2 + 0)) { return a * 100 + b * 10 + c; }",
        "out[0] = f(1); out[1] = f(1, 2); out[2] = f(1, 2, 3);",
        3,
    ),
    "braces": ("", "int64_t a{5}; int b[2]{1, 2}; uint32_t c{}; out[0] = a + b[1] + c;", 1),
    "aliases": ("using T = int32_t; using P = int64_t *;", "T a = 5; P p = out; p[0] = a;", 1),
    "if constexpr": (
        "constexpr bool X = true;",
        "if constexpr (X) { out[0] = 3; } else { out[0] = 4; }",
        1,
    ),
    "auto": (
        "",
        "auto *p = out; *p = 9; const auto q = p + 1; *q = 8; auto x = 3.5f; out[2] = x * 2;",
        3,
    ),
    "limits": (
        "",
        "float a = INFINITY; out[0] = a > FLT_MAX; out[1] = INT32_MAX;"
        "out[2] = UINT8_MAX + UINT16_MAX; out[3] = INT64_MIN < 0; out[4] = UINT32_MAX;",
        5,
    ),
    "attributes": (
        "[[maybe_unused]] __attribute__((always_inline)) inline int g(int x) noexcept "
        "{ return x + 1; }",
        "[[maybe_unused]] int y = g(2); out[0] = y; (void)y;",
        1,
    ),
    "brackets": ("", "int a(3); float h(1.5); out[0] = a * h * 2;", 1),
    "enum class": (
        "enum class Mode : uint8_t { A = 1, B };",
        "Mode m = Mode::B; out[0] = (int)m; if (m == Mode::B) out[1] = 1;",
        2,
    ),
    "structures": (
        "struct P { int a; int b; };\nP make(int a) { P p; p.a = a; p.b = 2 * a; return p; }\n"
        "int sum(P p) { p.a += 1; return p.a + p.b; }\nint look(const P &p) { return p.a + p.b; }",
        "P p = make(3); out[0] = p.a + p.b; out[1] = make(4).b; out[2] = sum(p); out[3] = p.a;"
        "out[4] = look(p); P q; q = make(1); out[5] = q.b + sum(make(5));",
        6,
    ),
    "pragmas": (
        "",
        "#pragma unroll\nfor (int i = 0; i < 3; i++) {\n#pragma clang loop unroll(full)\n"
        "for (int j = 0; j < 2; j++) out[0] += 1; }",
        1,
    ),
    "variables outside": (
        "static int64_t table[3] = {1, 2, 3}; static int64_t *gp;",
        "gp = &table[1]; out[0] = gp[1]; table[2] = 7; out[1] = gp[1];",
        2,
    ),
    "declarators": (
        "",
        "int64_t a = 1, *p = &a, b[2] = {3}; *p += b[0]; out[0] = a; int64_t (*q)[2] = &b;"
        "out[1] = (*q)[0]; out[2] = sizeof b; int c[2][3] = {{1, 2, 3}, {4, 5, 6}};"
        "int (*r)[3] = c; out[3] = r[1][0];",
        4,
    ),
    "null": ("", "int64_t *p = out ? out + 1 : nullptr; *p = 3; out[0] = p != NULL;", 2),
    "widths": (
        "",
        "long long a = -5LL; unsigned b = 3; unsigned long c = 7ul; short d = -1;"
        "unsigned char e = 255; out[0] = a + b; out[1] = c; out[2] = d + e;"
        "signed char f = -3; out[3] = f; out[4] = 0b101 + 1'000; out[5] = 'a' + '\\n';",
        6,
    ),
    "side effects": (
        "",
        "int a[4] = {1, 2, 3, 4}; int i = 0; a[i++] += 10; out[0] = a[0] * 10 + i; a[1] <<= 3;"
        "a[2] ^= 1; out[1] = a[1] + a[2]; int *p = a; *p++ *= 2; (*p)++; out[2] = a[0] + a[1];",
        3,
    ),
    "macros": (
        "#define A(x) B(x) + 1\n#define B(x) ((x) * 2)\n#define CAT(a, b) a##_##b\n"
        "#define W(x) do { out[2] += (x); } while (0)",
        "int v_1 = 5; out[0] = A(3); out[1] = CAT(v, 1); W(1); if (1) W(2); else W(3);",
        3,
    ),
    "pointers in structures": (
        "typedef struct { int64_t *p[2]; int n; } Buf;\n"
        "void fill(Buf *b, int64_t *x) { for (int i = 0; i < 2; i++) b->p[i] = x + i; b->n = 2; }",
        "Buf b; int64_t x[2] = {5, 6}; fill(&b, x); out[0] = *b.p[1] + b.n;",
        1,
    ),
    "templates": (
        "template <typename T, int N = 2> T grown(T x) { return x * (T)N; }\n"
        "template <int A, int B> int64_t both(int64_t x) { return grown<int64_t, A>(x) * B; }\n"
        "template <typename T>\nint64_t width(int64_t n) { if (n > 0) return width<T>(n - 1) + 1;"
        "  if constexpr (sizeof(T) == 2) return 100; else return sizeof(T); }",
        "out[0] = grown<int64_t>(3); out[1] = grown<int64_t, 2 + 3>(4) * 2; out[2] = both<3, 4>(5);"
        "out[3] = width<int16_t>(2) + width<double>(1); out[4] = grown<int, (1 < 2)>(9);",
        5,
    ),
    "specialisations": (
        "template <typename T, int N> int f(T x) { return 1; }\n"
        "template <> int f<float, 2>(float x) { return 2; }\n"
        "template <> int f<int32_t, 1 + 1>(int x)\n"
        "{ return x > 0 ? 3 + f<int32_t, 2>(x - 1) : 0; }\n"
        "template <typename T> int g(T x, T y, int z = 3) { return z; }\n"
        "template <typename T> int g(T x) { return sizeof(T); }",
        "out[0] = f<float, 2>(0); out[1] = f<int, 1 + 1>(2) * 10 + f<float, 3>(1);"
        "out[2] = g(1) + g<double>(2); out[3] = g(1, 2) * 10 + g(1, 2, 4);",
        4,
    ),
    "arguments told by a call before defaults": (
        "template <uint32_t D, typename T = uint32_t> inline T up(const T a) {\n"
        '  static_assert(D != 0, "zero"); static_assert(std::is_arithmetic<T>::value, "what");\n'
        "  T d = D; return (a + d - 1) / d; }\n"
        "template <typename T> inline T up(const T a, const T d) { return (a + d - 1) / d; }",
        "uint64_t big = 1ull << 40; uint8_t small = 250; out[0] = up<16>(big) + up(7, 2);"
        "out[1] = up<7>(small); out[2] = up(big, big); out[3] = up<3, uint8_t>(511);",
        4,
    ),
    "variables of templates, traits, limits": (
        "template <typename T> constexpr T MOST = std::numeric_limits<T>::max();\n"
        "template <typename T, int N = 2> static const T SCALED = N * sizeof(T);",
        "out[0] = MOST<int> + (int64_t)MOST<uint32_t>; out[1] = SCALED<float, 3> + SCALED<char>;"
        "out[2] = std::numeric_limits<int64_t>::min(); out[3] = MOST<uint8_t> + MOST<int16_t>;"
        "out[4] = (MOST<float> > 3.4e38f) + 2 * std::is_signed_v<int>"
        " + 4 * std::is_floating_point<float>::value + 8 * std::is_integral<float>::value"
        " + 16 * std::is_unsigned<uint8_t>::value + 32 * std::is_arithmetic_v<int *>;"
        "out[5] = std::numeric_limits<float>::lowest() == -MOST<float>;"
        "out[6] = std::numeric_limits<float>::min() * 1.2676506002282294e30f * 1e9f;"
        "out[7] = std::numeric_limits<float>::infinity() > MOST<float>;",
        8,
    ),
    "structures around pointers": (
        "struct A;\nstruct alignas(32) A { int64_t (*rows)[2]; int n; };\nint f(A &a);\n"
        "struct B { int n; union { float f; uint32_t u; }; };",
        "int64_t x[2][2] = {{1, 2}, {3, 4}}; alignas(32) int pad[8]; A a; a.rows = x; a.n = 1;"
        "out[0] = a.rows[a.n][1]; (void)pad;"
        "B b; b.f = 1.0f; out[1] = b.u; out[2] = sizeof(B);",
        3,
    ),
    "classes": (
        "int total = 100;\nstruct Size { int n = 3; int sum() const { return n + total; } };\n"
        "class Counter {\npublic:\n"
        "  inline Counter() : count(7), size{} { made = count + 1; }\n  ~Counter() {}\n"
        "  void init(int64_t *to, int by = 2) { this->to = to; step = by; total = 5; }\n"
        "  int made, count;\n  Size size;\n"
        "  template <typename T> T grown(T x) { return x * step + total; }\n"
        "  int both() { return grown<int>(1) + grown(2.5) + one(); }\n"
        "  void go() { count += 1; go(3); }\n  void go(int by) { count += by * scale(by); }\n"
        "  void put(int at) { to[at] = this->count; }\n"
        "private:\n  static int scale(int x) { return x * 10; }\n  int one() const { return 1; }\n"
        "  int64_t *to = nullptr;\n  int step = 9;\n};",
        "int64_t x[2]; Counter c; c.init(x); c.go(); c.put(1); Counter *p = &c; p->size.n += 1;"
        "out[0] = x[1] + 1000 * c.made; out[1] = p->size.sum(); out[2] = c.both();"
        "Counter d = c; d.count = 0; out[3] = c.count + d.count; out[4] = p->grown(2);",
        5,
    ),
    "templates of classes": (
        "template <typename T, int N = 4> class Row {\npublic:\n"
        "  Row(T first, int by) : step(by) { for (int i = 0; i < N; i++) x[i] = first + i * by; }\n"
        "  T sum() { T s = 0; for (int i = 0; i < N; i++) s += x[i]; return s; }\n"
        "  template <int M> T scaled() { return sum() * M; }\n"
        "  T twice() { return scaled<2>(); }\n"
        "  T x[N];\nprivate:\n  int step;\n};\n"
        "template <typename T> T total(Row<T> &r) { return r.sum(); }",
        "Row<int> a(1, 2); Row<float, 2> b(0.5f, 1); out[0] = a.sum(); out[1] = b.twice() * 10;"
        "out[2] = total<int>(a) + a.x[3]; out[3] = sizeof(Row<double, 3>);",
        4,
    ),
    "values of members": (
        "struct In { int a = 3, b, c{7}; float f = 2.5f; };\n"
        "class S { public: In in; In two[2]; int *p = nullptr; static constexpr int N = 5;\n"
        "private: static const int M = N * 2; union { int u; float v; }; };\n"
        "typedef struct { uint64_t n = 1ull << 40; } Big;\nS all;\n"
        "S made(int a) { S s; s.in.a += a; return s; }",
        "In i; out[0] = i.a + i.c * i.f * 2; S s; s.two[1].a++;"
        "out[1] = s.two[1].a + 10 * s.two[0].c;"
        "out[2] = (s.p == nullptr) + S::N + 10 * all.two[1].c; Big b; out[3] = b.n;"
        "auto t = made(4); out[4] = t.in.a + 100 * std::max<int64_t>(t.in.c, -1);"
        "In j{1}; out[5] = j.a + 10 * j.c; auto u = t; u.in.a = 0; out[6] = t.in.a + (int)0x1.8p3f;"
        "int max = 3; if (max < 4 && i.a > (2)) out[7] = max;",
        8,
    ),
    "overloads": (
        "int f(int a) { return 1; }\nint f(float a) { return 2; }\nint f(double a) { return 3; }\n"
        "int f(int a, int b) { return 4; }\nint f(int *a) { return 5; }\n"
        "int f(const float *a) { return 6; }\nstruct P { int a; };\nint f(P p) { return 7; }\n"
        "void g(int &x) { x += 1; }\nvoid g(float &x) { x *= 2; }\n"
        "template <typename T> int h(T x) { return sizeof(T); }\nint h(float x) { return -1; }\n",
        "int16_t s = 1; float x = 1.5f; int n = 1; P p; g(x); g(n); int a[2];"
        "out[0] = f(1) + 10 * f(x) + 100 * f(2.0); out[1] = f(s) + 10 * f(1, 2) + 100 * f(a);"
        "out[2] = f(&x) + 10 * f(p); out[3] = n + 10 * x; out[4] = h(1) + 10 * h(x) + 100 * h(2.0);"
        "out[5] = f('c');",
        6,
    ),
    "references as variables": (
        "struct T { int n; int m[4]; };",
        "int a = 3; int &b = a; b += 4; auto &c = b; c *= 2; const int64_t &d = a; T t; T &u = t;"
        "u.n = 9; u.m[2] = 4; int &w = u.m[2]; w++; const auto &five = 5; int *q = &a;"
        "int *&r = q; *r = *r + 1; for (int i = 0; i < 2; i++) { int &x = t.m[i]; x = i * 10 + 7; }"
        "out[0] = a; out[1] = d; out[2] = t.n + w; out[3] = t.m[1]; out[4] = a & five;"
        'asm volatile(""); __asm__ __volatile__("" ::: "memory");',
        5,
    ),
    "later": ("int later(int);\nint later(int x) { return 2 * x; }", "out[0] = later(3);", 1),
}


def of_compiler(before, statements, count, tmp_path):
    """Return the values of ``out`` when g++ compiles the same text."""
    source = tmp_path / "p.cpp"
    source.write_text(
        "#include <cstdint>\n#include <cstdio>\n#include <cfloat>\n#include <cmath>\n"
        "#include <limits>\n#include <type_traits>\n"
        f"{before}\nint64_t out[{count}];\nint main() {{\n{statements}\n"
        'for (int64_t x : out) printf("%lld\\n", (long long)x);\n}\n'
    )
    subprocess.run(
        ["g++", "-std=c++17", "-w", "-o", tmp_path / "p", source], check=True, capture_output=True
    )
    done = subprocess.run([tmp_path / "p"], check=True, capture_output=True, text=True)
    return [int(x) for x in done.stdout.split()]


def separate(text):
    """Return a text whose macros may redefine those of other cases in the same file."""
    return re.sub(r"^#define (\w+)", r"#undef \1\n#define \1", text, flags=re.MULTILINE)


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
def test_all_cases_agree_with_a_compiler(tmp_path):
    blocks, counts = [], []
    for number, (before, statements, count) in enumerate(CASES.values()):
        local = f"namespace n{number} {{\n{separate(before)}\n"
        local += f"void k(int64_t *out) {{\n{statements}\n}}\n}}"
        blocks.append(local)
        counts.append(count)
    calls = "".join(
        f"{{ int64_t o[8] = {{0}}; n{i}::k(o); for (int j = 0; j < {c}; j++) out[at++] = o[j]; }}\n"
        for i, c in enumerate(counts)
    )
    total = sum(counts)
    expected = of_compiler("\n".join(blocks), "int at = 0;\n" + calls, total, tmp_path)
    results = []
    for name, (before, statements, count) in CASES.items():
        text = body(statements, "__gm__ int64_t *out", before)
        if name in ("auto", "null", "aliases"):  # pointers to out are to global memory
            text = text.replace("int64_t *", "__gm__ int64_t *").replace("__gm__ __gm__", "__gm__")
        sink = Recorder()
        read(text, "k.cce", entry="k").run(sink, [4096])
        results += [(name, v) for v in sink.values("GM", "int64", count, 4096)]
    wrong = [(name, v, e) for (name, v), e in zip(results, expected, strict=True) if v != e]
    assert not wrong and total == 102


def test_arguments_of_templates_are_the_same_when_their_values_are():
    before = "template <int N> int f() { static int n = 0; n += 1; return n; }"
    calls = ("f<1 - 1>()", "f<0>()", "f<3 - 2>()", "f<1>()")
    statements = " ".join(f"out[{i}] = {call};" for i, call in enumerate(calls))
    actual = results(statements, 4, before=before)
    assert actual == [1, 2, 1, 2]


def test_a_member_may_begin_with_a_value_in_brackets():
    before = "struct S { int x = (3); int y = 2; };"
    actual = results("S s; out[0] = s.x; out[1] = s.y;", 2, before=before)
    assert actual == [3, 2]


def test_global_memory_and_names_of_the_dialect():
    before = "void w(GM_ADDR p) { *(__gm__ int64_t *)p = 6; }\n"
    before += "struct T { int64_t n; half s; };\nint64_t n(__gm__ T &t) { return t.n; }"
    text = "w((GM_ADDR)out); auto t = (__gm__ T *)out; out[2] = n(*t) + n(t[0]);"
    text += "__gm__ T &u = *t; u.n++; auto &v = t->n; v *= 3;"
    sink = run(body(text, "__gm__ int64_t *out", before), [4096], entry="k")
    assert sink.values("GM", "int64", 3, 4096) == [21, 0, 12]


@pytest.mark.parametrize(
    ("before", "statements", "message"),
    [
        (
            "void f(int64_t &x) { }",
            "f(out[0]);",
            "a reference int64_t& cannot refer to a value in GM",
        ),
        ("void f(__gm__ int &x) { }", "f(3);", "must refer to a value in GM"),
        ("int f(int a, int b = 1) { return a; }", "f();", "f must have 2 arguments, not 0"),
        ("struct T { int n; }; int f(T t) { return t.n; }", "f(*(__gm__ T *)out);", "be copied to"),
        (
            "int f(int a) { return a; }\nint f(int32_t b) { return b; }",
            "f(3);",
            "k.cce:2:5: f must be defined only once; it is also defined at k.cce:1:5",
        ),
        (
            "int f(int a, double b) { return 1; }\nint f(double a, int b) { return 2; }",
            "f(1, 2);",
            "more than one overload of f takes (int32_t, int32_t)",
        ),
        (
            "int f(int *a) { return 1; }\nint f(float *a) { return 2; }",
            "f(1);",
            "k.cce:4:1: no overload of f takes (int32_t)",
        ),
        ("class T : U { int n; };", "T t;", "classes are not part of the dialect"),
        (
            "struct T { int n; int operator+(int x) { return x; } };",
            "T t;",
            "operators of classes are not part of the dialect",
        ),
        (
            "class T { public: int n; int f(); };",
            "T t;",
            "k.cce:1:30: method f must be defined inside T",
        ),
        ("int n; class T { ~T() { n = 1; } };", "T t;", "k.cce:1:19: ~T must have an empty body"),
        (
            "struct T { int n[2] = {1, 2}; };",
            "T t;",
            "k.cce:1:21: initial values of arrays in structures are not supported",
        ),
        (
            "struct T { int n[2] = 5; };",
            "T t;",
            "k.cce:1:21: initial values of arrays in structures are not supported",
        ),
        (
            'template <int N> int f() { static_assert(N > 2, "too few"); return N; }',
            "f<3>(); f<2>();",
            'k.cce:1:28: a static assertion does not hold: "too few"',
        ),
        (
            "template <typename T> T f(T x) { return std::numeric_limits<T>::digits(); }",
            "f(3);",
            "numeric_limits<int32_t>::digits is not supported",
        ),
        ("", "out[0] = std::is_same<int>::value;", "is_same must have 2 types, not 1"),
    ],
)
def test_unsupported_constructs_are_named(before, statements, message):
    with pytest.raises(CceError, match=re.escape(message)):
        run(body(statements, before=before), [4096], entry="k")

"""A mutated or hostile source either runs or gives one line with a position."""

import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.cce_sinks import Recorder
from vitruvian.sim.davinci.cce import CceError, read

KERNELS = sorted((Path(__file__).parent / "kernels").glob("*.cce"))
WORD = re.compile(r"\w+|\s+|[^\w\s]")
STRANGE = "0 -1 ( ) { } ; * & half 1e9 0x ' \" # < > [ ] 1.5f nullptr int".split()


def mutated(text: str, rng: random.Random) -> str:
    """Return the text with one to three words deleted, inserted, swapped or replaced."""
    words = WORD.findall(text)
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(words) - 1)
        kind = rng.randrange(5)
        if kind == 0:
            del words[at]
        elif kind == 1:
            words.insert(at, rng.choice(words))
        elif kind == 2:
            words[at] = rng.choice(words)
        elif kind == 3:
            words[at], words[at + 1] = words[at + 1], words[at]
        else:
            words[at] = rng.choice(STRANGE)
    return "".join(words)


@pytest.mark.parametrize("path", KERNELS, ids=lambda p: p.stem)
def test_mutated_kernels(path):
    rng = random.Random(path.stem)
    text, answers = path.read_text(), []
    for _ in range(40):
        try:
            kernel = read(mutated(text, rng), "k.cce", defines={"__DAV_C220_CUBE__": "1"})
            pointers = [4096 * (i + 1) for i in range(len(kernel.parameters))]
            values = [
                p if q.is_pointer else 5 for p, q in zip(pointers, kernel.parameters, strict=True)
            ]
            kernel.run(Recorder(), values, limit=2000)
            answers.append("")
        except CceError as error:
            answers.append(str(error))
    for answer in filter(None, answers):
        assert re.fullmatch(r"k\.cce:\d+:\d+: [^\n]+", answer), answer
    assert len(set(answers)) > 15


CONSTRUCTS = (
    ("out[0] = ", "(", "1", ")", ";"),
    ("out[0] = ", "-(", "1", ")", ";"),
    ("out[0] = ", "out[", "0", "]", ";"),
    ("out[0] = ", "max(1, ", "1", ")", ";"),
    ("out[0] = ", "f(", "1", ")", ";"),
    ("out[0] = ", "g(", "1", ")", ";"),
    ("out[0] = ", "int(", "1", ")", ";"),
    ("out[0] = ", "static_cast<int>(", "1", ")", ";"),
    ("out[0] = ", "(int)", "1", "", ";"),
    ("out[0] = ", "~ ", "1", "", ";"),
    ("out[0] = ", "1 + ", "1", "", ";"),
    ("out[0] = ", "out[0] ? 1 : ", "1", "", ";"),
    ("out[0] = ", "out[0] ? ", "1", " : 2", ";"),
    ("out[0] = ", "sizeof(int[", "1", "])", ";"),
    ("out[0] = sizeof(", "P<", "int", "> ", ");"),
    ("", "{", ";", "}", ""),
    ("", "if (out[0]) ", ";", " else ;", ""),
    ("", "while (out[0]) ", ";", "", ""),
    ("", "switch (1) case 1: ", ";", "", ""),
    ("int a", "[1]", "", "", ";"),
    ("int ", "*", "a", "", ";"),
    ("int a[1] = ", "{", "0", "}", ";"),
    ("", "I(", ";", ")", ""),
    ("", "J(", ";", ")", ""),
    ("", "#if 1\n", ";", "\n#endif\n", ""),
    ("", "struct { int a; ", "int b;", "} c;", ""),
)
BEFORE = """#define I(x) x
#define J(x) x x
int f(int x) { return x + 1; }
float f(float x) { return x; }
template <typename T> T g(T x) { return x; }
template <typename T> struct P { T a; };
"""


def nested(rng: random.Random) -> str:
    """Return a construct nested in itself; sometimes a closing bracket is missing or added."""
    first, opening, inner, closing, last = rng.choice(CONSTRUCTS)
    deep = rng.choice((3, 30, 200, 400, 3000))
    less = rng.choice((0, 0, 0, 1, -1))
    text = f"{first}{opening * deep}{inner}{closing * (deep - less)}{last}"
    return f"{BEFORE}__global__ __aicore__ void k(__gm__ int *out) {{\n{text}\n}}\n"


def bomb(rng: random.Random) -> str:
    """Return macros, structures or templates whose size grows exponentially."""
    levels, wide = rng.choice((3, 10, 40)), rng.choice((2, 10))
    kind = rng.randrange(5)
    steps = range(levels)
    if kind == 0:
        rows = [f"#define M{i + 1} {f'M{i} ' * wide}" for i in steps]
        before, use = "\n".join(["#define M0 1 +", *rows]), f"out[0] = M{levels} 1;"
    elif kind == 1:
        rows = [f"#define M{i + 1}(x) {f'M{i}(x) ' * wide}" for i in steps]
        before, use = "\n".join(["#define M0(x) x;", *rows]), f"M{levels}(out[0]++)"
    elif kind == 2:
        rows = [f"struct S{i + 1} {{ {f'S{i} a{i}; S{i} b{i};'} }};" for i in steps]
        before, use = "\n".join(["struct S0 { int a; };", *rows]), f"S{levels} x, y; x = y;"
    elif kind == 3:
        before = "template <typename A, int N> struct B { P<A> a; B<P<A>, N - 1> b; };\n"
        before, use = "template <typename T> struct P { T a, b; };\n" + before, f"B<int, {wide}> b;"
    else:
        before = "template <int N> int f() { return f<N + 1>() + f<N + 2>(); }"
        use = "out[0] = f<0>();"
    return f"{before}\n__global__ __aicore__ void k(__gm__ int *out) {{\n{use}\n}}\n"


def junk(rng: random.Random) -> str:
    """Return a random sequence of characters and words."""
    words = [*STRANGE, "__global__", "void", "k", "#define", "#if", "\n", "\0", "\\", "é", "'''"]
    return " ".join(rng.choices(words, k=rng.choice((5, 50, 500))))


def long(rng: random.Random) -> str:
    """Return a kernel with one short text repeated up to 3000 times."""
    unit = rng.choice(
        ("out[0]++; ", "9", "a", '"\\q', "\\'", "a::", "a<", "?", "1, ", "()", "/*", ". ")
    )
    text = unit * rng.choice((100, 3000))
    return f"__global__ __aicore__ void k(__gm__ int *out) {{\nout[0] = {text};\n}}\n"


GENERATORS = (nested, nested, bomb, junk, long)


def corpus() -> list[str]:
    """Return two hundred texts, the same every time: from the generators, and mutated kernels."""
    rng = random.Random("hostile")
    texts = [rng.choice(GENERATORS)(rng) for _ in range(160)]
    for path in KERNELS:
        words = path.read_text()
        for _ in range(8):
            for _ in range(4):
                words = mutated(words, rng)
            texts.append(words)
    return texts


def test_a_hostile_corpus_ends_in_a_line_with_its_position():
    """Nesting, bombs and macros used to end in tracebacks, or not at all."""
    texts = corpus()
    assert len(texts) >= 200
    seen = 0
    for text in texts:
        start = time.process_time()
        try:
            kernel = read(text, "k.cce")
            kernel.run(Recorder(), [0] * len(kernel.parameters), limit=2000)
        except CceError as error:
            answer, seen = str(error), seen + 1
            assert re.fullmatch(r"k\.cce:\d+:\d+: [^\n]+", answer) and len(answer) < 1200, answer
        assert time.process_time() - start < 5, text[:200]
    assert 100 < seen < len(texts)


def test_bombs_fit_one_gibibyte(tmp_path):
    """A file of 400 bytes used to take 333 MB in half a minute, and did not end."""
    macros = "#define M0 x x x x x x x x x x\n" + "".join(
        f"#define M{i + 1} {f'M{i} ' * 10}\n" for i in range(10)
    )
    kernel = "__global__ __aicore__ void k() {{ {} }}\n"
    texts = {
        "macros": macros + kernel.format("M9"),
        "brackets": kernel.format("int a = " + "(" * 100_000 + "1" + ")" * 100_000 + ";"),
        "intrinsics": kernel.format("for (int i = 0;; i++) set_vector_mask(i, i);"),
    }
    paths = []
    for name, text in texts.items():
        paths.append(str(tmp_path / f"{name}.cce"))
        Path(paths[-1]).write_text(text)
    program = (
        "import resource, sys; from vitruvian.cli import main\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        "print([main(['cce', path, '--steps', '100000']) for path in sys.argv[1:]])\n"
    )
    command = [sys.executable, "-c", program, *paths]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert done.stdout == "[2, 2, 2]\n", done.stderr
    lines = done.stderr.splitlines()
    for name, line in zip(texts, lines, strict=True):
        assert re.match(rf"error: {name}\.cce:\d+:\d+: .* must .* \d+", line), line

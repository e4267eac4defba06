"""Units of compilation: launches, includes at a file's beginning, and precompiled headers."""

import platform
import shutil

import numpy as np
import pytest

from vitruvian.common.errors import UserError
from vitruvian.sim.davinci import load_chip, simulate
from vitruvian.sim.davinci.ascendc import build, compile_kernel, units

CHIP = load_chip("ascend910b")

needs_compiler = pytest.mark.skipif(
    shutil.which("g++") is None or platform.machine() != "x86_64",
    reason="AscendC is compiled by g++ on x86-64",
)

KERNEL = """// A kernel whose last line has no barrier before it.
#include "kernel_operator.h"
#include "scale.h"

extern "C" __global__ __aicore__ void twice(GM_ADDR x) {
    __gm__ float *to = reinterpret_cast<__gm__ float *>(x);
    __ubuf__ float *data = reinterpret_cast<__ubuf__ float *>(0);
    copy_gm_to_ubuf(data, to, 0, 1, 8, 0, 0);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    vmuls(data, data, SCALE, 1, 1, 1, 8, 8);
    vmuls(data, data, SCALE, 1, 1, 1, 8, 8);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    copy_ubuf_to_gm(to, data, 0, 1, 8, 0, 0);
}
"""


@pytest.mark.parametrize(
    ("text", "found", "rest"),
    [
        ("", [], ""),
        ("int x;\n#include <a>\n", [], "int x;\n#include <a>\n"),
        ("#include <a>\n  #  include \"b.h\" // why\nint x;", 2, " // why\nint x;"),
        ("/* one\n two */ #include <a> /* three */\nint x;", 1, " /* three */\nint x;"),
        ("#include <a>\n#if X\n#include <b>\n#endif\n", 1, "\n#if X\n#include <b>\n#endif\n"),
        ("#include <a>\n#pragma once\n#include <b>\n", 1, "\n#pragma once\n#include <b>\n"),
        ("#include NAME\n#include <b>\n", [], "#include NAME\n#include <b>\n"),
        ("#include <a>\n// on \\\n#include <b>\nint x;", 1, "\n// on \\\n#include <b>\nint x;"),
        ("#include <a>\r\n#include <b>\r\nint x;", 2, "\r\nint x;"),
        ("#include <a> int x;\n", [], "#include <a> int x;\n"),
        ("#include_next <a>\n", [], "#include_next <a>\n"),
        ("/* open\n#include <a>\n", [], "/* open\n#include <a>\n"),
    ],
)  # fmt: skip
def test_beginning(text, found, rest):
    """Only includes that no condition, macro or open comment changes belong to the beginning."""
    includes, length = units.beginning(text)
    assert (includes if found == [] else len(includes)) == found
    assert text[length:] == rest
    assert all(line.startswith("#") and "\n" not in line for line in includes)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a << b <<c", "a << b <<c"),
        ("f<1, 2>  <<<n + 1,\n  0, s>>>(x);", '::vitruvian::launch("f", n + 1, '
         "[&](auto... a) { f<1, 2>(a...); })(\nx);"),
        ("k<<<1>>>(a); n::k<<<2>>>(b);", '::vitruvian::launch("k", 1, [&](auto... a) '
         '{ k(a...); })(a); ::vitruvian::launch("n::k", 2, [&](auto... a) { n::k(a...); })(b);'),
        ("<<<1>>>(x)", "<<<1>>>(x)"),
        ("f<<<1 (x)", "f<<<1 (x)"),
    ],
)  # fmt: skip
def test_launches(text, expected):
    """A launch becomes a call of as many lines; other text is kept."""
    assert units.with_launches(text) == expected


class Compiler:
    """Compiles a kernel in a folder of its own and notes what g++ is asked for."""

    def __init__(self, folder, monkeypatch):
        self.file = folder / "twice.cpp"
        self.asked = []
        monkeypatch.setenv("VITRUVIAN_CACHE", str(folder / "cache"))
        (folder / "scale.h").write_text("#define SCALE 2.0f\n")
        from vitruvian.sim.davinci.ascendc import compile as module

        run = module._run

        def noted(names, command, *rest):
            whole = "c++-header" in command
            self.asked.append("precompile" if whole else "-E" if "-E" in command else "compile")
            return run(names, command, *rest)

        monkeypatch.setattr(module, "_run", noted)

    def value(self, text=KERNEL):
        """Return what the kernel makes of 1, and the line of the finding."""
        self.asked.clear()
        self.file.write_text(text)
        compiled = compile_kernel(str(self.file), CHIP)
        program, functional = build({compiled.kind: compiled}, CHIP, {"x": np.ones(64, np.float32)})
        (finding,) = simulate(program).findings
        assert finding.check == "hazard"
        return functional.read("x")[0], finding.message.partition("twice.cpp:")[2].split()[0]

    @property
    def precompiled(self):
        return sorted(self.file.parent.glob("cache/ascendc-beginnings/*/beginning.h.gch"))


@needs_compiler
def test_precompiled_beginning(tmp_path, monkeypatch):
    """The second version of a kernel precompiles its includes, and all later ones use them."""
    compiler = Compiler(tmp_path, monkeypatch)
    assert compiler.value() == (4.0, "11")
    assert "precompile" not in compiler.asked
    assert compiler.value() == (4.0, "11")  # nothing changed: nothing is compiled
    assert "compile" not in compiler.asked
    assert not compiler.precompiled
    assert compiler.value("\n" + KERNEL) == (4.0, "12")
    assert compiler.asked.count("precompile") == 1
    assert compiler.value(KERNEL.replace("    vmuls", "\n    vmuls", 1)) == (4.0, "12")
    assert "precompile" not in compiler.asked
    assert len(compiler.precompiled) == 1
    with pytest.raises(UserError, match=r"twice\.cpp:15: .*does not name|expected"):
        compiler.value(KERNEL.replace("copy_ubuf_to_gm(to", "copy_ubuf_to_gm(to +"))
    assert compiler.asked.count("compile") == 1


@needs_compiler
def test_a_changed_header_is_compiled_again(tmp_path, monkeypatch):
    """Neither a changed header nor a new one before another is overlooked."""
    compiler = Compiler(tmp_path, monkeypatch)
    for version in range(3):
        compiler.value(KERNEL + f"// {version}\nint v{version};\n")
    assert len(compiler.precompiled) == 1
    (tmp_path / "scale.h").write_text("#define SCALE 3.5f\n")
    assert compiler.value() == (12.25, "11")
    # A file of the same name in the kernel's own folder goes before the library's.
    (tmp_path / "kernel_operator.h").write_text("#error of one's own\n")
    with pytest.raises(UserError, match="of one's own"):
        compiler.value(KERNEL + "int other;\n")


@needs_compiler
@pytest.mark.parametrize("damage", ["deleted", "cut"])
def test_a_damaged_precompiled_header(tmp_path, monkeypatch, damage):
    """A precompiled header that is damaged is not needed."""
    compiler = Compiler(tmp_path, monkeypatch)
    for version in range(3):
        compiler.value(KERNEL + f"int v{version};\n")
    (path,) = compiler.precompiled
    if damage == "deleted":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:100_000])
    assert compiler.value(KERNEL + "int other;\n") == (4.0, "11")


@needs_compiler
def test_only_the_newest_are_kept(tmp_path, monkeypatch):
    """Precompiled headers take much room, so that old ones are deleted."""
    compiler = Compiler(tmp_path, monkeypatch)
    monkeypatch.setattr(units, "_MOST", 2)
    for version in range(3):
        begin = KERNEL.replace('#include "scale.h"', '#include "scale.h"\n' * (version + 1))
        for number in range(2):
            compiler.value(begin + f"int v{number};\n")
    assert len(compiler.precompiled) == 2


@needs_compiler
def test_a_beginning_that_g_plus_plus_cannot_read(tmp_path, monkeypatch):
    """It is looked at once, and compiled as a part of the text."""
    compiler = Compiler(tmp_path, monkeypatch)
    (tmp_path / "scale.h").write_text("#define SCALE 2.0f\n[aicore] inline int none();\n")
    asked = []
    for version in range(4):
        assert compiler.value(KERNEL + f"int v{version};\n") == (4.0, "11")
        asked.append(compiler.asked.count("-E"))
        assert "precompile" not in compiler.asked
    assert asked == [1, 2, 1, 1]

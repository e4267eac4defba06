"""Compilation of a kernel in AscendC to a program that records its intrinsics."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from vitruvian.common.cache import digest, entry
from vitruvian.common.errors import UserError
from vitruvian.common.files import read_whole
from vitruvian.common.validate import listed, nearest, printable, shortened
from vitruvian.sim.davinci.cce.kernel import KernelParameter
from vitruvian.sim.davinci.chip.model import Chip

from .header import intrinsics_header
from .kernels import (
    OF_950,
    Declared,
    calls_other_cores,
    chosen_text,
    declared_kernels,
    kinds_of,
    refuse_other_chips,
)
from .sources import Source, archive, chip_header, host_sources
from .tilings import kernel_tiling
from .units import Unit, build_from, texts_of

_INCLUDE = Path(__file__).parent / "include"

#: Folders below ``--headers`` that the library's own files include from, where they exist.
_LIBRARY = ("", "include", "include/basic_api", "include/utils", "impl", "impl/basic_api")
_LIBRARY += ("impl/utils", "include/adv_api", "include/adv_api/tiling", "include/utils/tiling")
_LIBRARY += ("ascendc/include/basic_api/interface", "ascendc/include/basic_api", "asc/include")

#: Macros of the device's compiler by chip and by kind of core.
_CHIPS = {
    "ascend910b": {"__NPU_ARCH__": "2201", "__CCE_AICORE__": "220"},
    "ascend910": {"__NPU_ARCH__": "1001", "__CCE_AICORE__": "100"},
}
_KINDS = {
    "cube": {"__DAV_C220_CUBE__": "1", "__DAV_CUBE__": "1"},
    "vector": {"__DAV_C220_VEC__": "1", "__DAV_VEC__": "1"},
    "aicore": {"__DAV_C100__": "1"},
}

#: Macros of a library of tiles (PTO): the chips of both families keep operands in memories.
_TILES = {"MEMORY_BASE": "1"}

#: Macros for the headers of AscendC: the compiler's pass for the device, and that they are there.
_DEVICE = {"__NPU_DEVICE__": "1", "VITRUVIAN_LIBRARY": "1"}

_OPTIONS = """-std=c++17 -w -O0 -g1 -fno-omit-frame-pointer -fno-pie -no-pie
    -fno-stack-protector -fcf-protection=none -fno-optimize-sibling-calls
    -ftrivial-auto-var-init=zero
    -Wl,-Ttext-segment=0x10000000
    -Wl,--wrap=printf -fno-builtin-printf""".split()

#: Headers of device code define functions that are neither inline nor static.
_LINK = ("-Wl,--allow-multiple-definition",)

#: The options of plain C++ files of a host program.
_PLAIN = "-std=c++17 -w -O0 -g1 -fno-omit-frame-pointer -fno-pie".split()

_HOST_MAIN = "int main() { return vitruvian::start_host(vitruvian_host_main); }\n"

#: Bounds of g++: seconds of CPU, and kilobytes of memory and of an output file.
_LIMITS = "ulimit -t 120; ulimit -v 6000000; ulimit -f 2000000; ulimit -c 0; "

_ERROR = re.compile(
    r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):\d+: (?:fatal )?error: (?P<text>.*)$", re.M
)
_UNDEFINED = re.compile(r"undefined reference to `([^']*)'")
_MULTIPLE = re.compile(r"multiple definition of `([^']*)'")
#: Scalar atomics that the library declares for the 950 alone.
_ATOMIC = re.compile(r"\b(Atomic(?:Add|Max|Min|Cas|Exch))\b")
_NO_FILE = re.compile(r"(\S+): No such file or directory")


@dataclass(frozen=True)
class NativeKernel:
    """A compiled kernel.

    Attributes
    ----------
    name : str
        The name of the kernel.
    file : str
        The source file as the user named it.
    kind : str
        The kind of core that it is compiled for.
    program : Path
        The compiled program, which records its intrinsics.
    declared : Declared
        What the source says about the kernel's parameters.
    sources : mapping of str to str
        The text of the source file by its name in messages.
    libraries : tuple of Path
        Folders of headers that are not the user's.
    shown : mapping of Path to str
        The name in messages of each of the user's files.
    """

    name: str
    file: str
    kind: str
    program: Path
    declared: Declared
    sources: Mapping[str, str]
    libraries: tuple[Path, ...]
    shown: Mapping[Path, str]

    @property
    def parameters(self) -> tuple[KernelParameter, ...]:
        """The kernel's parameters."""
        return self.declared.parameters


def compile_kernel(
    file: str,
    chip: Chip,
    *,
    kernel: str | None = None,
    kind: str | None = None,
    headers: str | None = None,
    defines: Mapping[str, str] | None = None,
    include_path: Sequence[str | Path] = (),
    host: bool = False,
    sources: Sequence[str] = (),
) -> NativeKernel:
    """Compile a kernel, or a host program that launches kernels.

    The program is kept in the project's cache, under the hash of the preprocessed text.

    Parameters
    ----------
    file : str
        The source file.
    chip : Chip
        The chip, whose macros are defined.
    kernel : str, optional
        The name of the kernel, with template arguments if it has any; by default the only
        ``__global__`` function.
    kind : str, optional
        The kind of core, by default the first one of the chip with a vector unit.
    headers : str, optional
        A folder with the headers of AscendC, such as a clone of asc-devkit, or with those of PTO,
        a clone of pto-isa, which are used beside this project's own; by default the few
        functions of this project's own ``kernel_operator.h``.
    defines : mapping of str to str, optional
        Further macros.
    include_path : sequence of path, optional
        Folders of files that the kernel may include.
    host : bool
        If True, the program is the source's own ``main``, whose launches are simulated.
    sources : sequence of str
        Further files of the program, or folders of them. Without ``host`` all are device code.

    Raises
    ------
    UserError
        If the file, the kernel or the headers cannot be used, or g++ finds a mistake.
    """
    if chip.name not in _CHIPS:
        raise UserError(f"--chip must be one of {listed(_CHIPS)} for AscendC, not {chip.name!r}")
    path = Path(file).resolve()
    text = read_whole(file, 1 << 24).decode(errors="replace")
    kernels = declared_kernels(text)
    declared = _host(kernels, file) if host else _chosen(kernels, kernel, file)
    tiles = _tiles(headers)
    headers = None if tiles else headers
    libraries = [_kept("vitruvian_chip.h", chip_header(chip)), *_libraries(headers), *tiles]
    kind = chip.kind(kind or _kind(chip, declared)).name
    compiler = _compiler()
    others = [s for s in host_sources(sources) if s.path != path]
    on_device = [s for s in others if s.on_device or not host]
    names = _CompilerMessages({str(s.path): s.shown for s in others} | {str(path): file}, headers)
    run = partial(_run, names)
    macros = _CHIPS[chip.name] | _KINDS[kind] | (_DEVICE if headers else {})
    macros |= (_TILES if tiles else {}) | dict(defines or {})
    device = _Options(macros, [path.parent, *map(Path, include_path), *libraries])  # fmt: skip
    choose = partial(_conditions, run, macros, path.parent)
    refuse_other_chips(text, file, choose)
    parts = [Source(path, file, text), *on_device]
    # The generated header is no file, so that it is a part of each unit's text.
    lead = '#include "vitruvian_device.h"\n#include "vitruvian_host.h"\n'
    lead += '#include "vitruvian_library.h"\n' if headers else ""
    start = '#ifdef PLATFORM_ASCENDC_H\n#include "vitruvian_platform.h"\n#endif\n'
    before = "#define main vitruvian_host_main\n"
    units = []
    for part in parts:
        after = "#undef main\n"
        if host and (part.has_main or len(parts) == 1):
            # The device's compiler adds this call for the library's messages between cores.
            serves = headers and calls_other_cores(chosen_text(part.text, choose))
            clear = "AscendC::clearWorkspace(__get_kfc_workspace_addr());" if serves else ""
            after += f"{start}void vitruvian::before_kernel() {{ {clear} }}\n{_HOST_MAIN}"
        elif part is parts[0] and not host:
            # A file may have the host's launches too, which nothing calls here.
            after += "void vitruvian::before_kernel() {}\n"
            after += f'#define VITRUVIAN_KERNEL {declared.call}\n#include "vitruvian_main.h"\n'
        command = (compiler[0], *_OPTIONS, *device.words(part.path.parent))
        folders = (part.path.parent, *map(Path, include_path))
        units.append(Unit(part.path, part.text, lead, before, after, command, folders, run))
    # Neither the recorder's headers nor the kernel's macros, so that the objects stay valid.
    folders = [*map(Path, include_path), *libraries[libraries.index(_INCLUDE / "library") :]]
    plain = _Options(_CHIPS[chip.name], folders)
    library = archive(
        [s for s in others if s not in on_device],
        [compiler[0], *_PLAIN, *plain.words()],
        plain.folders,
        run,
    )

    def link(folder: Path, ready: Sequence[str]) -> None:
        files = [f"unit{number}.ii" for number in range(len(ready))]
        for name, unit in zip(files, ready, strict=True):
            (folder / name).write_text(unit)
        linked = [] if library is None else [str(library), "-rdynamic"]
        command = [compiler[0], *_OPTIONS, *files, *(() if host else _LINK), *linked]
        run([*command, "-o", "kernel"], folder)
        for name in files:
            (folder / name).unlink()

    texts = texts_of(units)

    def build(folder: Path) -> dict[str, Any]:
        build_from(units, texts, lambda ready: link(folder, ready))
        return {}

    folder, _ = entry("ascendc", digest(compiler[1], *_OPTIONS, *texts, str(library)), build)
    return NativeKernel(
        declared.name, file, kind, folder / "kernel", declared,
        {s.shown: s.text for s in parts}, tuple(libraries), {s.path: s.shown for s in parts},
    )  # fmt: skip


@dataclass(frozen=True)
class _Options:
    """Macros and folders of headers for the compiler."""

    macros: Mapping[str, str]
    folders: Sequence[Path]

    def words(self, *first: Path) -> list[str]:
        """Return the options, with further folders before the others."""
        folders = [f"-I{folder}" for folder in (*first, *self.folders)]
        return [*(f"-D{name}={value}" for name, value in self.macros.items()), *folders]


def _host(kernels: Mapping[str, Declared], file: str) -> Declared:
    return Declared(
        Path(file).stem, "", (), False, " ".join(k.attributes for k in kernels.values())
    )


def kinds_of_file(file: str, chip: Chip, defines: Mapping[str, str] | None = None) -> str | None:
    """Return ``kinds_of`` the lines of a source that its conditions choose.

    Parameters
    ----------
    file, chip, defines
        As for ``compile_kernel``.

    Raises
    ------
    UserError
        If the file cannot be read.
    """
    path = Path(file).resolve()
    macros = _CHIPS.get(chip.name, {}) | dict(defines or {})
    run = partial(_run, _CompilerMessages({str(path): file}, None))
    text = read_whole(file, 1 << 24).decode(errors="replace")
    return kinds_of(chosen_text(text, partial(_conditions, run, macros, path.parent)))


def _conditions(
    run: Callable[[list[str], Path, str], str], macros: Mapping[str, str], folder: Path, bare: str
) -> str:
    """Return the lines of a text that the conditions of the preprocessor choose, with markers."""
    command = [_compiler()[0], "-E", "-fdirectives-only", *_Options(macros, ()).words()]
    return run([*command, "-x", "c++", "-"], folder, bare)


def _chosen(kernels: Mapping[str, Declared], name: str | None, file: str) -> Declared:
    if not kernels:
        raise UserError(f"{file} must have a __global__ function")
    if name is None:
        if len(kernels) > 1:
            raise UserError(f"--kernel must name one of {listed(kernels)}")
        name = next(iter(kernels))
    bare = name.partition("<")[0]
    if bare not in kernels:
        hint = nearest(bare, kernels)
        raise UserError(f"--kernel must be one of {listed(kernels)}, not {shortened(name)}{hint}")
    found = kernels[bare]
    if found.is_template and "<" not in name:
        raise UserError(f"--kernel must have template arguments, as in {bare}<half>")
    return found.instance(name)


def _kind(chip: Chip, declared: Declared) -> str:
    """Return the kind of core that a kernel asks for, by default one with a vector unit."""
    if "cube" in chip.kinds and "__cube__" in declared.attributes:
        return "cube"
    return next(name for name, kind in chip.kinds.items() if "UB" in kind.buffers)


def _tiles(headers: str | None) -> list[Path]:
    """Return the folder of PTO's headers if ``--headers`` names a clone of them."""
    folders = [] if headers is None else [Path(headers), Path(headers) / "include"]
    return [f.resolve() for f in folders if (f / "pto" / "pto-inst.hpp").is_file()][:1]


def _libraries(headers: str | None) -> list[Path]:
    own = [_INCLUDE / "device", _kept("vitruvian_intrinsics.h", intrinsics_header())]
    own.append(_INCLUDE / "host")
    if headers is None:
        return [*own, _INCLUDE / "ascendc", _INCLUDE / "library"]
    folder = Path(headers)
    found = [folder / name for name in _LIBRARY if (folder / name).is_dir()]
    if not any((each / "kernel_operator.h").is_file() for each in found):
        raise UserError(
            "--headers must be a folder with AscendC's kernel_operator.h, such as a clone of "
            f"asc-devkit, or with PTO's pto/pto-inst.hpp, not {headers!r}"
        )
    found = [each.resolve() for each in found]
    if not any((each / "kernel_tiling" / "kernel_tiling.h").is_file() for each in found):
        text = kernel_tiling(each for each in found if each.name == "adv_api")
        found.append(_kept("kernel_tiling/kernel_tiling.h", text))
    return [*own, _INCLUDE / "library", *found]


def _kept(name: str, text: str) -> Path:
    """Return the folder in the cache that has a generated header."""

    def build(folder: Path) -> dict[str, Any]:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
        return {}

    return entry("ascendc-headers", digest(name, text), build)[0]


@cache
def _compiler() -> tuple[str, str]:
    """Return g++ and its version."""
    for program in ("g++", "addr2line", "sh"):
        if shutil.which(program) is None:
            raise UserError(f"{program} must be installed to compile AscendC (Debian: g++)")
    done = subprocess.run(["g++", "--version"], capture_output=True, text=True, check=False)
    machine = subprocess.run(["g++", "-dumpmachine"], capture_output=True, text=True, check=False)
    if not machine.stdout.startswith("x86_64"):
        raise UserError("AscendC must be compiled on x86-64, whose scalar accesses are decoded")
    return "g++", done.stdout.partition("\n")[0]


@dataclass(frozen=True)
class _CompilerMessages:
    """How messages name the user's file, and the option of the headers."""

    shown: Mapping[str, str]
    headers: str | None

    def error(self, output: str) -> UserError:
        """Return the first error of g++ as one line."""
        match = _ERROR.search(output)
        if match is None:
            if absent := _UNDEFINED.search(output):
                if atomic := _ATOMIC.search(absent[1]):
                    return UserError(f"{atomic[1]} {OF_950}")
                return UserError(printable(f"{absent[1][:300]} is declared, but not defined"))
            if twice := _MULTIPLE.search(output):
                return UserError(printable(f"{twice[1][:300]} is defined in two files"))
            lines = [line for line in output.splitlines() if line.strip()]
            return UserError(f"g++ failed: {printable(lines[-1] if lines else 'no message')[:300]}")
        file = self.shown.get(match["file"], match["file"])
        text = match["text"][:400]
        if absent := _NO_FILE.match(text):
            which = "the folder of --headers" if self.headers else "this project's own headers"
            text = f"{absent[1]} is not in {which}"
            if not self.headers:
                text += "; give --headers with a clone of asc-devkit, or -I"
        elif (atomic := _ATOMIC.search(text)) and ("not declared" in text or "not a mem" in text):
            text = f"{atomic[1]} {OF_950}"
        # Columns are those of the text without macros, which the user does not see.
        return UserError(printable(f"{file}:{match['line']}: {text}"))


def _run(names: _CompilerMessages, command: list[str], folder: Path, text: str = "") -> str:
    """Run g++ within its limits and return its output."""
    done = subprocess.run(
        ["sh", "-c", f'{_LIMITS}exec "$@"', "sh", *command],
        cwd=folder,
        input=text,
        env=os.environ | {"LC_ALL": "C"},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise names.error(done.stderr)
    return done.stdout

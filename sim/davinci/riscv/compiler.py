"""The compiler for the RISC-V: clang from the package ``ziglang``, and the image that it makes."""

import importlib.metadata
import importlib.util
import os
import re
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from vitruvian.common.cache import cache_root, digest, entry
from vitruvian.common.errors import UserError
from vitruvian.common.interrupt import run_killable
from vitruvian.golden.core.memory_map import ARGUMENT_BYTES, CODE, HEAD_BYTES

#: A kernel has at most so many parameters.
MOST_ARGUMENTS = 32
_MISSING = (
    "compiling a kernel for the RISC-V needs the package ziglang; "
    "install it with pip install ziglang"
)
#: RV32I with the multiplications of M, and no other extension.
_TARGET = ("-target", "riscv32-freestanding-none", "-mcpu=generic_rv32+zmmul-m-a-c-f-d-zicsr")
_OPTIONS = (
    *("-std=c++17", "-O2", "-fno-exceptions", "-fno-rtti", "-fno-sanitize=all", "-g0"),
    # Each operation of half is rounded, and address 0 is a place in UB.
    *("-Xclang", "-ffloat16-excess-precision=none", "-ffp-contract=off"),
    *("-fno-delete-null-pointer-checks", "-fno-strict-aliasing", "-fwrapv"),
    *("-fno-threadsafe-statics", "-ffunction-sections", "-Wno-everything"),
)
#: Where the compiler keeps the libraries that it has built.
_PLACES = ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR")
#: Type of a segment that is loaded.
_LOAD = 1
_LINKER = """ENTRY(boot)
SECTIONS
{{
    . = {code:#x};
    .image : {{
        KEEP(*(.head)) *(.text*) *(.rodata*) *(.srodata*) *(.data*) *(.sdata*)
        *(.sbss*) *(.bss*) *(COMMON)
        . = ALIGN(32);
    }}
    image_blocks = SIZEOF(.image) / 32;
    stack_top = {code:#x} + {memory_bytes};
    /DISCARD/ : {{ *(.comment) *(.eh_frame*) *(.riscv.attributes) *(.note*) }}
}}
"""


def program() -> Path:
    """Return the compiler's program.

    Raises
    ------
    UserError
        If its package is not installed.
    """
    spec = importlib.util.find_spec("ziglang")
    places = (spec and spec.submodule_search_locations) or ()
    for place in places:
        for name in ("zig", "zig.exe"):
            if (Path(place) / name).is_file():
                return Path(place) / name
    raise UserError(_MISSING)


def compile_kernel(text: str, name: str, *, memory_bytes: int) -> np.ndarray:
    """Return the image of a kernel without arguments, whole blocks of 32 bytes.

    Parameters
    ----------
    text, name : str
        Kernel in C++ with its header, and its name for messages.
    memory_bytes : int
        Memory of the processor. A quarter of it must be left for the stack.

    Raises
    ------
    UserError
        If the compiler is missing, refuses the text, or its image is too large.
    """
    program()
    version = importlib.metadata.version("ziglang")

    def build(folder: Path) -> dict[str, Any]:
        (folder / "kernel.cpp").write_text(text)
        (folder / "memory.ld").write_text(_LINKER.format(code=CODE, memory_bytes=memory_bytes))
        target = folder / "kernel.elf"
        files = ["-T", str(folder / "memory.ld"), str(folder / "kernel.cpp"), "-o", str(target)]
        places = {name: str(cache_root() / "zig") for name in _PLACES}
        done = run_killable(
            [str(program()), "c++", *_TARGET, *_OPTIONS, "-static", *files],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env=os.environ | places,
        )
        if done.returncode:
            raise UserError(f"{name}: the compiler for the RISC-V {_first_error(done.stderr)}")
        (folder / "image.bin").write_bytes(_image(target.read_bytes()))
        target.unlink()
        return {}

    key = digest("riscv", version, *_TARGET, *_OPTIONS, _LINKER, memory_bytes, text)
    folder, _ = entry("riscv", key, build)
    image = np.frombuffer((folder / "image.bin").read_bytes(), np.uint8)
    if len(image) > memory_bytes * 3 // 4:
        raise UserError(
            f"{name} must have at most {memory_bytes * 3 // 4} bytes of code and variables on the "
            f"RISC-V, not {len(image)}"
        )
    return image


def _first_error(text: str) -> str:
    """Return the first error of the compiler's output in words that follow its name."""
    match = re.search(r"^([^\n]*?):(\d+):\d+: (?:fatal )?error: (.*)", text, re.MULTILINE)
    if match:
        return f"refuses line {match[2]} of {Path(match[1]).name}: {match[3]}"
    lines = [line for line in text.splitlines() if "error" in line] or text.splitlines()
    return f"failed: {lines[0] if lines else 'it said nothing'}"


def _image(elf: bytes) -> bytes:
    """Return the bytes of the only section that is loaded; variables at its end are zeros."""
    (start,) = struct.unpack_from("<I", elf, 28)  # e_phoff
    size, count = struct.unpack_from("<HH", elf, 42)
    for number in range(count):
        header = struct.unpack_from("<8I", elf, start + size * number)
        kind, offset, address, _, in_file, in_memory = header[:6]
        if kind == _LOAD and in_memory and address == CODE:
            found = elf[offset : offset + in_file].ljust(in_memory, b"\0")
            return found.ljust(-(-in_memory // 32) * 32, b"\0")
    raise UserError("the compiler for the RISC-V must write a section that is loaded")


def with_arguments(
    image: np.ndarray, values: list[bytes], *, block: int = 0, blocks: int = 1
) -> np.ndarray:
    """Return an image with arguments, the number of its block, and the number of blocks."""
    if len(values) > MOST_ARGUMENTS:
        raise UserError(f"a kernel must have at most {MOST_ARGUMENTS} parameters on the RISC-V")
    image = image.copy()
    image[8:16] = np.array([block, blocks], np.uint32).view(np.uint8)
    for number, value in enumerate(values):
        start = HEAD_BYTES + ARGUMENT_BYTES * number
        padded = value.ljust(ARGUMENT_BYTES, b"\0")
        image[start : start + ARGUMENT_BYTES] = np.frombuffer(padded, np.uint8)
    return image

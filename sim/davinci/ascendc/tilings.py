"""Structures of tilings, from the declarations of AscendC's host headers.

An installed CANN has a generated header ``kernel_tiling/kernel_tiling.h``; a clone of the library
has only the macros that it is generated from.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from vitruvian.common.files import read_whole

_BLOCK = re.compile(r"BEGIN_TILING_DATA_DEF\(\s*(\w+)\s*\)(.*?)END_TILING_DATA_DEF", re.S)
_FIELD = re.compile(r"TILING_DATA_FIELD_DEF(_ARR|_STRUCT)?\(([^)]*)\)")
_NAME = re.compile(r"[A-Za-z_][\w:]*")


def tiling_structures(text: str) -> str:
    """Return the structures that a header declares by macros, as C++.

    Examples
    --------
    >>> print(tiling_structures(
    ...     "BEGIN_TILING_DATA_DEF(T) TILING_DATA_FIELD_DEF(uint32_t, n);"
    ...     "TILING_DATA_FIELD_DEF_ARR(int8_t, 4, a); END_TILING_DATA_DEF"
    ... ))
    struct T { uint32_t n = {}; int8_t a[4] = {}; };
    """
    structures = []
    for name, body in _BLOCK.findall(text):
        fields = []
        for kind, arguments in _FIELD.findall(body):
            words = [word.strip() for word in arguments.split(",")]
            if not all(_NAME.fullmatch(word) or word.isdecimal() for word in words):
                continue
            if kind == "_ARR" and len(words) == 3:
                fields.append(f"{words[0]} {words[2]}[{words[1]}] = {{}};")
            elif len(words) == 2:
                fields.append(f"{words[0]} {words[1]} = {{}};")
        structures.append(f"struct {name} {{ {' '.join(fields)} }};")
    return "\n".join(structures)


def kernel_tiling(folders: Iterable[Path]) -> str:
    """Return the text of ``kernel_tiling.h`` for a clone of the library."""
    parts = ["#pragma once", "#include <cstdint>", "namespace AscendC { namespace tiling {"]
    files = {f.resolve(): None for folder in folders for f in folder.rglob("*_tilingdata.h")}
    seen: set[str] = set()
    for file in sorted(files):
        for line in tiling_structures(read_whole(file, 1 << 22).decode(errors="replace")).split(
            "\n"
        ):
            if line and line not in seen:
                seen.add(line)
                parts.append(line)
    parts.append("} }")
    parts += [
        f"using AscendC::tiling::{line.split()[1]};" for line in parts if line[:7] == "struct "
    ]
    return "\n".join(parts) + "\n"

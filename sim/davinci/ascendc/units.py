"""The text of one unit of compilation, whose first includes may be compiled beforehand.

The headers of AscendC take most of the time of a compilation. A unit begins with the recorder's
headers and the includes that the user's file begins with; g++ can keep what it made of these in a
precompiled header. Making one takes longer than compiling the file, so a unit's beginning is
precompiled when a second file, or a second version of one file, begins in the same way.
"""

import os
import re
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from vitruvian.common.cache import ResultCache, cache_root, digest, verified_entry
from vitruvian.common.errors import UserError

#: Runs the compiler in a folder with a text as its input, and returns its output.
Run = Callable[[list[str], Path, str], str]

_NAME = re.compile(r"([A-Za-z_][\w:]*(?:<[^<>;{}]*>)?)\s*$")
_LAUNCH = re.compile(r"<<<(.*?)>>>\s*\(", re.S)
_ATTRIBUTE = re.compile(r"(?<!\[)\[\s*(?:host\s*,\s*)?aicore\s*\](?=\s*(?:[A-Za-z_~:]|\[\[))")
_LOCAL = re.compile(r"\[\[(?:block|workgroup)_local\]\](?!\s*(?:inline|static)\b)")

#: What a file may begin with: includes, comments and empty lines. A comment that ends in a
#: backslash goes on in the next line, so that it ends the beginning.
_INCLUDE = r"[ \t]*#[ \t]*include[ \t]*(?:<[^>\n]*>|\"[^\"\n]*\")(?=[ \t]*(?://|/\*|\r?\n|$))"
_BEGINNING = re.compile(rf"(?:\s+|//[^\n]*(?<!\\)(?=\n)|/\*.*?\*/|(?P<include>{_INCLUDE}))", re.S)

#: The most characters of a launched kernel's name with its template arguments.
_LONGEST_NAME = 2000

#: Precompiled headers that are kept; each takes about 100 MB.
_MOST = 4

_KIND = "ascendc-beginnings"


def with_launches(text: str) -> str:
    """Replace the launches of a host (in triple angle brackets) by calls that C++ knows.

    Examples
    --------
    >>> with_launches("add<half><<<8, nullptr, stream>>>(x, y);")
    '::vitruvian::launch("add", 8, [&](auto... a) { add<half>(a...); })(x, y);'
    """
    done, parts = 0, []
    while (start := text.find("<<<", done)) >= 0:
        begin = max(done, start - _LONGEST_NAME)
        name, launch = _NAME.search(text[begin:start]), _LAUNCH.match(text, start)
        if name is None or launch is None:
            parts.append(text[done : start + 3])
            done = start + 3
            continue
        blocks = launch[1].partition(",")[0]
        whole = text[begin + name.start() : launch.end()]
        kernel = f"[&](auto... a) {{ {name[1]}(a...); }}"
        bare = name[1].partition("<")[0]
        parts.append(text[done : begin + name.start()])
        parts.append(f'::vitruvian::launch("{bare}", {blocks}, {kernel})(')
        parts.append("\n" * whole.count("\n"))
        done = launch.end()
    return "".join(parts) + text[done:]


def in_plain_words(text: str) -> str:
    """Return a text without what only the device's compiler knows.

    These are launches, and the attribute ``[aicore]`` of a function, which is not in C++.
    """
    return with_launches(_ATTRIBUTE.sub("", text) if "aicore" in text else text)


def with_weak_symbols(text: str) -> str:
    """Make a variable of each core, which every file of a program may define, a weak symbol."""
    return _LOCAL.sub("[[gnu::weak]]", text)


def beginning(text: str) -> tuple[list[str], int]:
    r"""Return the includes that a file begins with, and the length of that part of its text.

    Examples
    --------
    >>> beginning('// An example.\n#include <vector>\n#define N 4\n#include "n.h"\n')
    (['#include <vector>'], 32)
    """
    found, length, place = [], 0, 0
    while match := _BEGINNING.match(text, place):
        place = match.end()
        if match["include"]:
            found.append(match["include"].strip())
            length = place
    return found, length


@dataclass(frozen=True)
class Unit:
    """A file of the user's with the text around it.

    Attributes
    ----------
    path : Path
        The user's file.
    text : str
        Its contents.
    lead : str
        Includes before the file; no text of it is the user's.
    before, after : str
        Lines between the lead and the file, and after the file.
    command : tuple of str
        The compiler with its options.
    folders : tuple of Path
        The user's own folders of headers.
    run : callable
        Runs the compiler.
    """

    path: Path
    text: str
    lead: str
    before: str
    after: str
    command: tuple[str, ...]
    folders: tuple[Path, ...]
    run: Run

    def preprocessed(self) -> str:
        """Return the preprocessed text, which needs no header."""
        unit = f'{self.lead}{self.before}#include "{self.path}"\n{self.after}'
        return in_plain_words(self.run([*self.command, *_PREPROCESS], self.path.parent, unit))

    def has_beginning(self) -> bool:
        """Return whether there is a precompiled beginning for the unit as it is now."""
        return self._known() is not None

    def shortened(self, *, make: bool) -> str | None:
        """Return the preprocessed text after a precompiled beginning, or None if there is none.

        Parameters
        ----------
        make : bool
            If True, a missing beginning is precompiled if it was asked for before.
        """
        if not self._includes[0] or "\ufffd" in self.text:
            return None  # nothing to precompile, or bytes that a copy of the text would change
        with suppress(UserError):  # the whole text has the same mistake
            header = self._known() or (self._made() if make else None)
            if header is None:
                return None
            length = self._includes[1]
            blank = "\n" * self.text[:length].count("\n")
            unit = f'#include "{header.name}"\n{self.before}#line 1 "{self.path}"\n'
            unit += f'{blank}{self.text[length:]}\n#line 1 "<stdin>"\n{self.after}'
            options = [f"-I{header.parent}", *self._compile, *_PREPROCESS, "-fpch-preprocess"]
            return in_plain_words(self.run([self.command[0], *options], self.path.parent, unit))
        return None

    @cached_property
    def _includes(self) -> tuple[list[str], int]:
        return beginning(self.text)

    @cached_property
    def _compile(self) -> list[str]:
        # With an option of the linker, g++ would link what is to be a precompiled header.
        return [w for w in self.command[1:] if not w.startswith("-Wl,") and w != "-no-pie"]

    @cached_property
    def _key(self) -> str:
        headers = sorted({p.name for f in self.folders if f.is_dir() for p in f.glob("*.h*")})
        return digest(self.lead, self._includes[0], self.command, headers)

    def _known(self) -> Path | None:
        """Return the precompiled header if none of its files has changed."""
        found = ResultCache(kind=_KIND).get(self._key)
        if not found or found["stamps"] != _stamps(found["files"]):
            return None
        header = cache_root() / _KIND / (found["entry"] or "none") / "beginning.h"
        return header if header.with_suffix(".h.gch").is_file() else None

    def _made(self) -> Path | None:
        """Precompile the beginning, or only note that it was asked for at the first time."""
        documents = ResultCache(kind=_KIND)
        noted = documents.get(self._key)
        if noted is None:
            documents.put(self._key, {"entry": "", "files": [], "stamps": None})
            return None
        unfit = not noted["entry"] and noted["stamps"] is not None
        if unfit and noted["stamps"] == _stamps(noted["files"]):
            return None
        text = self.lead + "".join(f"{line}\n" for line in self._includes[0])
        whole = self.run([*self.command, *_PREPROCESS], self.path.parent, text)
        files = sorted({str(self.path.parent / name) for name in _FILE.findall(whole)})
        stamps = _stamps(files)
        if in_plain_words(whole) != whole:
            # g++ would have to compile what only the device's compiler knows.
            documents.put(self._key, {"entry": "", "files": files, "stamps": stamps})
            return None

        def build(folder: Path) -> dict[str, Any]:
            (folder / "beginning.h").write_text(text)
            options = [*self._compile, f"-I{self.path.parent}", "-x", "c++-header", "beginning.h"]
            self.run([self.command[0], *options, "-o", "beginning.h.gch"], folder, "")
            return {}

        key = digest(self._key, files, stamps)
        folder = verified_entry(_KIND, key, build)
        documents.put(self._key, {"entry": key, "files": files, "stamps": stamps})
        _forget(folder)
        return folder / "beginning.h"


_PREPROCESS = ("-E", "-x", "c++", "-")

#: g++'s words for a precompiled header that it cannot use.
_PRECOMPILED = re.compile(r"\bPCH\b|\.gch\b|precompiled header")

#: A header in preprocessed text, by g++'s marks of lines.
_FILE = re.compile(r'^# \d+ "([^<"\n][^"\n]*[^/"])"', re.M)


def _stamps(files: Sequence[str]) -> list[list[int]] | None:
    """Return the sizes and times of files, or None if one is absent."""
    try:
        return [[s.st_size, s.st_mtime_ns] for s in map(os.stat, files)]
    except OSError:
        return None


def _forget(newest: Path) -> None:
    """Delete the oldest precompiled headers; whoever uses one compiles without it."""
    with suppress(OSError):
        folders = [p.parent for p in newest.parent.glob("*/beginning.h.gch")]
        folders.sort(key=lambda folder: folder.stat().st_mtime)
        for folder in folders[:-_MOST]:
            shutil.rmtree(folder, ignore_errors=True)


def texts_of(units: Sequence[Unit]) -> list[str]:
    """Return the preprocessed texts of a program's units.

    Variables of each core in a precompiled header are no weak symbols, so that only a program of
    one unit begins with one.
    """
    if len(units) > 1:
        return [with_weak_symbols(unit.preprocessed()) for unit in units]
    return [unit.shortened(make=False) or unit.preprocessed() for unit in units]


def build_from(
    units: Sequence[Unit], texts: Sequence[str], build: Callable[[Sequence[str]], None]
) -> None:
    """Build a program from units, with precompiled beginnings where that works.

    Parameters
    ----------
    units : sequence of Unit
        The units.
    texts : sequence of str
        Their texts, as ``texts_of`` returns them.
    build : callable
        Compiles texts and links them; it raises UserError for a mistake.
    """
    short: str | None = None
    if len(units) == 1:  # where there is a beginning already, the text is the shorter one
        known = units[0].has_beginning()
        short = texts[0] if known else units[0].shortened(make=True)
    if short is None:
        build(texts)
        return
    try:
        build([short])
    except UserError as error:
        if units[0].has_beginning() and not _PRECOMPILED.search(str(error)):
            raise  # the user's mistake, not one of a header that is damaged or deleted
        build([units[0].preprocessed()])

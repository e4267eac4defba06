"""Identify the modules of an RTLIL text by content, so that equal modules are synthesised once.

Amaranth emits every instance as a module of its own and numbers its internal names across the
whole design, so the 256 processing elements of a tile become 256 texts that differ only in numbers.
This module gives every RTLIL module a numbering of its own and names it after the hash of the
result. It handles children first, because the text of a parent contains their names.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from vitruvian.common.cache import digest

_NUMBERED = re.compile(r"(\\[^\s$]*)?\$\d\S*")
_CELL = re.compile(r"  cell (\\\S+) (\S+)$")
_PORT = re.compile(r"  wire .*\b(?:input|output|inout) \d+\s+(\S+)$")
_PLACEHOLDER = "\\this"


@dataclass
class Module:
    r"""One distinct module: its canonical text, its children and its identity.

    Members
    -------
    name : str
        ``\LABEL_HASH``. LABEL is the name of the module's first instance in the text, or the class
        of a shared module.
    text : str
        RTLIL from ``module`` to ``end``, with the module named ``name``.
    children : list of (instance, name)
        Instances of other modules of the design.
    cells : int
        Number of primitive cells and processes in the module itself, without its children.
    """

    name: str
    text: str
    children: list[tuple[str, str]] = field(default_factory=list)
    cells: int = 0

    def blackbox(self) -> str:
        """Return a declaration of the module's ports, for a parent that is synthesised alone."""
        ports = [line for line in self.text.splitlines() if _PORT.match(line)]
        head = f"attribute \\blackbox 1\nmodule {self.name}\n"
        return head + "\n".join(ports) + "\nend\n"


@dataclass(frozen=True)
class SynthesisedPart:
    """A piece that is synthesised on its own.

    ``rtlil`` has the top module ``top``, and ``count`` is the number of the piece's instances.
    """

    label: str
    top: str
    rtlil: str
    count: int


class Design:
    """The distinct modules of one RTLIL text.

    Parameters
    ----------
    rtlil : str
        RTLIL text as Amaranth emits it.
    top : str
        Name of the top module, without the backslash.

    Raises
    ------
    ValueError
        If the text has no module ``top``.
    """

    def __init__(self, rtlil: str, *, top: str = "top"):
        self._texts = dict(_split(rtlil))
        if "\\" + top not in self._texts:
            names = [name.lstrip("\\") for name in self._texts]
            raise ValueError(f"top must be one of the modules {names}, not {top!r}")
        self.modules: dict[str, Module] = {}
        self._by_original: dict[str, tuple[str, dict[str, str]]] = {}
        self.top, _ = self._canonical("\\" + top)

    def _canonical(self, original: str) -> tuple[str, dict[str, str]]:
        """Return the canonical name of module ``original`` and a map of its port names.

        The map leads from each port's original name to its new name.
        """
        if original in self._by_original:
            return self._by_original[original]
        # Amaranth's numbers are replaced in the order of their first occurrence.
        numbers: dict[str, str] = {}

        def rename(match: re.Match[str]) -> str:
            fresh = f"{match[1] or ''}${len(numbers)}"
            return numbers.setdefault(match[0], fresh)

        def own(text: str) -> str:
            return _NUMBERED.sub(rename, text)

        lines: list[str] = []
        children: list[tuple[str, str]] = []
        ports: dict[str, str] = {}
        renamed: dict[str, str] | None = None  # port names of the child that this cell instantiates
        cells = 0
        for line in self._texts[original].splitlines()[1:]:
            cell, port = _CELL.match(line), _PORT.match(line)
            # An instance of another module refers to it by its canonical name.
            if cell and cell[1] in self._texts:
                instance = own(cell[2])
                child, renamed = self._canonical(cell[1])
                children.append((instance.lstrip("\\"), child))
                lines.append(f"  cell {child} {instance}")
            elif renamed is not None and line.startswith("    connect "):
                # A port of the child is connected under its new name.
                _, name, signal = line.strip().split(" ", 2)
                lines.append(f"    connect {renamed[name]} {own(signal)}")
            else:
                cells += line.startswith(("  cell ", "  process "))
                lines.append(own(line))
                if port:
                    ports[port[1]] = own(port[1])
                if line == "  end":
                    # The cell ends here; the next connection belongs to another cell.
                    renamed = None
        body = "\n".join(line for line in lines if line.strip()) + "\n"
        # The instance name, or the class of a shared module without its hash.
        base = re.sub(r"_[0-9a-f]{8}$", "", original.lstrip("\\").rsplit(".", 1)[-1])
        name = f"\\{re.sub(r'[^A-Za-z0-9_]', '_', base)}_{digest(body)[:12]}"
        # Two instances may differ in their label only; the first label is kept.
        known = next((m for m in self.modules if m.rsplit("_", 1)[1] == name.rsplit("_", 1)[1]), "")
        if not known:
            self.modules[name] = Module(name, f"module {name}\n{body}", children, cells)
        self._by_original[original] = known or name, ports
        return self._by_original[original]

    def counts(self) -> dict[str, int]:
        """Return how many instances of every distinct module the whole design contains."""
        total: Counter[str] = Counter()

        def visit(name: str, times: int) -> None:
            total[name] += times
            for child, count in Counter(c for _, c in self.modules[name].children).items():
                visit(child, times * count)

        visit(self.top, 1)
        return dict(total)

    def parts(
        self, cut: Callable[[str, str], bool] = lambda path, label: False
    ) -> list[SynthesisedPart]:
        """Cut the design into distinct pieces and return them, the top first.

        Parameters
        ----------
        cut : callable
            Receives an instance path below the top (``array.pe_0_0``) and the module's label. If
            it returns True, the module becomes a piece of its own; otherwise it stays inside its
            parent's piece. A module that is cut in one place is cut everywhere.

        Returns
        -------
        list of SynthesisedPart
        """
        # A module that is cut in one place is a piece everywhere, so a set of names suffices.
        pieces = {self.top}
        for path, name in self._paths(self.top, ""):
            if cut(path, label(name)):
                pieces.add(name)
        counts = self.counts()
        order = [self.top, *(name for name in self.modules if name in pieces - {self.top})]
        return [
            SynthesisedPart(label(name), name, self._assemble(name, pieces), counts[name])
            for name in order
        ]

    def _paths(self, name: str, prefix: str) -> Iterator[tuple[str, str]]:
        for instance, child in self.modules[name].children:
            yield prefix + instance, child
            yield from self._paths(child, f"{prefix}{instance}.")

    def _assemble(self, root: str, pieces: set[str]) -> str:
        texts: dict[str, str] = {}

        def visit(name: str) -> None:
            if name not in texts:
                # Other pieces appear as black boxes, with their ports only.
                inside = name == root or name not in pieces
                module = self.modules[name]
                texts[name] = module.text if inside else module.blackbox()
                for child in dict.fromkeys(c for _, c in module.children) if inside else ():
                    visit(child)

        visit(root)
        return "\n".join(texts.values())


def label(name: str) -> str:
    r"""Return the readable part of a canonical module name (LABEL of ``\LABEL_HASH``)."""
    return name.lstrip("\\").rsplit("_", 1)[0]


def _split(rtlil: str) -> Iterator[tuple[str, str]]:
    for block in re.split(r"(?m)^(?=module )", rtlil)[1:]:
        text = block[: block.index("\nend\n") + 5] if "\nend\n" in block else block
        yield text.split(None, 2)[1], text

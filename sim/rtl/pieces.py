"""Large modules with many instances, taken out of a design and compiled once.

Verilator lays a design out flat: sixteen instances of a module are sixteen times its code. A module
that is taken out becomes a model of its own, and in its place stands a wrapper that calls it, one
object per instance: see `sim.rtl.shell`.
"""

import re
from collections import Counter

from vitruvian.cache import digest

from .shell import can_be_wrapped

__all__ = ["split"]

_FEWEST = 3
_SMALLEST_TEXT = 40_000

_MODULE = re.compile(
    r"^(?:\(\*[^\n]*\*\)\n)*module\s+(\\\S+ |\w+)\s*\((.*?)\);(.*?)^endmodule\n?",
    re.MULTILINE | re.DOTALL,
)
_INSTANCE = re.compile(r"^  (\\\S+ |\w+) (?:\\\S+ |\w+) \(", re.MULTILINE)


def split(text: str, top: str) -> tuple[str, dict[str, str]]:
    """Take pieces out of Verilog as Yosys writes it.

    Returns
    -------
    rest : str
        The design, with instances of the pieces by their new names.
    pieces : dict of str to str
        Verilog by name of the piece, which is a hash of it: equal pieces of different designs have
        one name.
    """
    modules = {match[1].strip(): match for match in _MODULE.finditer(text)}
    children = {
        name: Counter(child.strip() for child in _INSTANCE.findall(match[3]))
        for name, match in modules.items()
    }
    if top not in modules:
        return text, {}
    counts: Counter[str] = Counter()

    def visit(name: str, times: int) -> None:
        counts[name] += times
        for child, number in children[name].items():
            if child in modules:
                visit(child, times * number)

    visit(top, 1)

    def within(name: str) -> list[str]:
        found = [name]
        for child in children[name]:
            if child in modules:
                found += [x for x in within(child) if x not in found]
        return found

    chosen: list[str] = []
    for name, match in modules.items():  # parents of parents included: a piece holds no other piece
        size = sum(len(modules[x][0]) for x in within(name))
        plain = re.fullmatch(r"[\w\s,]*", match[2])
        if name != top and plain and counts[name] >= _FEWEST and size >= _SMALLEST_TEXT:
            chosen.append(name)
    chosen = [x for x in chosen if all(can_be_wrapped(modules[y][0]) for y in within(x))]
    chosen = [x for x in chosen if not any(x in within(y)[1:] for y in chosen)]

    pieces: dict[str, str] = {}
    if not chosen:
        return text, pieces
    needed = _reached(top, children, modules, chosen)
    rest = "".join(modules[name][0] for name in modules if name in needed)
    for name in chosen:
        bare = name.lstrip("\\")
        body = "".join(modules[x][0] for x in within(name))
        body = re.sub(rf"\\?\b{re.escape(bare)}(?=[.\s(])", _renamer("piece"), body)
        final = f"piece_{digest(body)[:16]}"
        pieces[final] = re.sub(r"(?<![\w\\])piece(?=[\s(])", final, body)
        rest = re.sub(rf"^  {re.escape(name)} ?(?=\s*\S+ ?\s*\()", f"  {final} ", rest, flags=re.M)
    return rest, pieces


def _renamer(name: str):
    """Replace an identifier and keep the backslash of a name with a dot in it."""

    def replace(match: re.Match[str]) -> str:
        dotted = match.string[match.end() : match.end() + 1] == "."
        return ("\\" if dotted and match[0].startswith("\\") else "") + name

    return replace


def _reached(top: str, children: dict, modules: dict, chosen: list[str]) -> set[str]:
    """Modules that the design needs besides those inside the pieces."""
    found, waiting = set(), [top]
    while waiting:
        name = waiting.pop()
        if name in found or name in chosen:
            continue
        found.add(name)
        waiting += [child for child in children[name] if child in modules]
    return found

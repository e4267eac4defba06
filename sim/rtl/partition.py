"""Separation of large modules with many instances, which are then compiled only once.

Verilator flattens a design, so sixteen instances of a module become sixteen copies of its code. A
separated module, called a piece, becomes a model of its own. A wrapper replaces the module in the
design and calls this model, with one object for each instance; see ``sim.rtl.once_per_cycle``.
"""

import re
from collections import Counter

from vitruvian.common.cache import digest

from .once_per_cycle import can_be_wrapped

_MIN_INSTANCES = 3
_MIN_TEXT = 40_000  # characters of Verilog

_MODULE = re.compile(
    r"^(?:\(\*[^\n]*\*\)\n)*module\s+(\\\S+ |\w+)\s*\((.*?)\);(.*?)^endmodule\n?",
    re.MULTILINE | re.DOTALL,
)
_INSTANCE = re.compile(r"^  (\\\S+ |\w+) (?:\\\S+ |\w+) \(", re.MULTILINE)


def split(text: str, top: str) -> tuple[str, dict[str, str]]:
    """Separate the pieces of a design.

    Parameters
    ----------
    text : str
        Verilog in the form in which Yosys writes it.
    top : str
        Name of the top module.

    Returns
    -------
    rest : str
        The design without the pieces; it instantiates them by their new names.
    pieces : dict of str to str
        Verilog of each piece by its name. The name is a hash of the Verilog, so that equal pieces
        of different designs have the same name.
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
        names = [name]
        for child in children[name]:
            if child in modules:
                names += [x for x in within(child) if x not in names]
        return names

    chosen: list[str] = []
    for name, match in modules.items():
        size = sum(len(modules[x][0]) for x in within(name))
        # The wrapper passes ports by name, so escaped names are excluded.
        plain = re.fullmatch(r"[\w\s,]*", match[2])
        if name != top and plain and counts[name] >= _MIN_INSTANCES and size >= _MIN_TEXT:
            chosen.append(name)
    chosen = [x for x in chosen if all(can_be_wrapped(modules[y][0]) for y in within(x))]
    # A piece contains no other piece: of nested candidates, the outermost is chosen.
    chosen = [x for x in chosen if not any(x in within(y)[1:] for y in chosen)]

    pieces: dict[str, str] = {}
    if not chosen:
        return text, pieces
    needed = _reached(top, children, modules, chosen)
    rest = "".join(modules[name][0] for name in modules if name in needed)
    for name in chosen:
        # The module's name must not enter the hash: it differs between designs with equal pieces.
        bare = name.lstrip("\\")
        body = "".join(modules[x][0] for x in within(name))
        body = re.sub(rf"\\?\b{re.escape(bare)}(?=[.\s(])", _renamer("piece"), body)
        final = f"piece_{digest(body)[:16]}"
        pieces[final] = re.sub(r"(?<![\w\\])piece(?=[\s(])", final, body)
        rest = re.sub(rf"^  {re.escape(name)} ?(?=\s*\S+ ?\s*\()", f"  {final} ", rest, flags=re.M)
    return rest, pieces


def _renamer(name: str):
    """Return a function for ``re.sub`` that replaces an identifier by ``name``.

    An identifier that contains a dot keeps its backslash, which Verilog requires.
    """

    def replace(match: re.Match[str]) -> str:
        dotted = match.string[match.end() : match.end() + 1] == "."
        return ("\\" if dotted and match[0].startswith("\\") else "") + name

    return replace


def _reached(top: str, children: dict, modules: dict, chosen: list[str]) -> set[str]:
    """Return the modules that are reachable from ``top`` without entering a piece."""
    reached, waiting = set(), [top]
    while waiting:
        name = waiting.pop()
        if name in reached or name in chosen:
            continue
        reached.add(name)
        waiting += [child for child in children[name] if child in modules]
    return reached

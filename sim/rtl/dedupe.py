"""Removal of equal modules from RTLIL, because Amaranth emits a module for every instance.

A tile of 256 equal processing elements becomes one module with 256 instances, so that Yosys and
Verilator process it once. Modules are compared by their RTLIL, from the leaves of the hierarchy to
the top. The comparison ignores the module names of instances and the numbers that Amaranth appends
to the names of some ports.
"""

import re

from vitruvian.common.cache import digest

_MODULE = re.compile(
    r"^((?:attribute [^\n]*\n)*)module (\\\S+)\n(.*?)^end$", re.MULTILINE | re.DOTALL
)
_CELL = re.compile(r"^  cell (\\\S+) (\S+)\n(.*?)^  end\n", re.MULTILINE | re.DOTALL)
_NUMBERED = re.compile(r"\\port\$\d+\$\d+(?=\s)")
#: A numbered port of an instance. What it is connected to may have a name of the same form.
_CONNECTED = re.compile(r"(?<=^    connect )\\port\$\d+\$\d+(?=\s)", re.MULTILINE)


def deduplicate(rtlil: str) -> str:
    """Return RTLIL text of the same design in which no two modules are equal.

    The first of several equal modules keeps its name.
    """
    bodies = {name: (head, body) for head, name, body in _MODULE.findall(rtlil)}
    if len(bodies) < 2:
        return rtlil
    chosen: dict[str, str] = {}  # module -> the equal module that is kept
    ports: dict[str, dict[str, str]] = {}  # module -> new names of its numbered ports
    kept: dict[str, str] = {}  # hash -> module
    texts: list[str] = []

    def visit(name: str) -> None:
        if name in chosen:
            return
        head, body = bodies[name]
        for child, _, _ in _CELL.findall(body):
            if child in bodies:
                visit(child)

        def renamed(match: re.Match) -> str:
            child, instance, connections = match.groups()
            if child not in bodies:
                return match[0]
            names = ports[child]
            fixed = _CONNECTED.sub(lambda m: names.get(m[0], m[0]), connections)
            # The space protects the port names of the child from the renaming of this module's own
            # ports below, and is removed after it.
            fixed = re.sub(r"^    connect \\port\$", "    connect \\\\ port$", fixed, flags=re.M)
            return f"  cell {chosen[child]} {instance}\n{fixed}  end\n"

        body = _CELL.sub(renamed, body)
        own: dict[str, str] = {}
        body = _NUMBERED.sub(lambda m: own.setdefault(m[0], f"\\port${len(own)}"), body)
        body = body.replace("connect \\ port$", "connect \\port$")
        ports[name] = own
        chosen[name] = kept.setdefault(digest(head, body), name)
        if chosen[name] == name:
            texts.append(f"{head}module {name}\n{body}end\n")

    for name in bodies:
        visit(name)
    return "\n".join(texts)

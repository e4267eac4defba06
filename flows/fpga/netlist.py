"""A mapped netlist, as Yosys writes it, on which steps work one after the other."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

#: A step changes the top module in place.
Step = Callable[[dict[str, Any]], None]
#: Net -> inputs on it.
Users = dict[Any, set[tuple[str, str]]]


def changed(netlist: str, top: str, steps: Iterable[Step]) -> str:
    """Return a flat netlist (JSON) after some steps on its module ``top``."""
    design = json.loads(netlist)
    for step in steps:
        step(design["modules"][top])
    return json.dumps(design)


def users_of(module: Mapping[str, Any]) -> Users:
    """Return the inputs on each net: (cell's name, port); ports of the module have no cell."""
    users: Users = {}
    for name, cell in module["cells"].items():
        for port, bits in cell["connections"].items():
            if cell["port_directions"][port] == "output":
                continue
            for bit in bits:
                users.setdefault(bit, set()).add((name, port))
    for name, port in module["ports"].items():
        for bit in port["bits"]:
            users.setdefault(bit, set()).add(("", name))
    return users

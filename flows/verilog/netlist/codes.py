"""Names for the codes of nets whose values are an enumeration: constants of the module.

Amaranth writes the members of an enumeration as attributes of the wires that have its shape. A
comparison, a case or an assignment that has such a wire and a constant gets the member's name.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from vitruvian.flows.verilog.netlist.fold import is_constant
from vitruvian.flows.verilog.netlist.rtlil import Sig
from vitruvian.flows.verilog.netlist.simplify import Netlist


class Codes:
    """The enumerations of one module.

    Parameters
    ----------
    netlist : Netlist
        Its wires have the enumerations.
    same : mapping of str to sequence of str
        Net -> further names that the source has for it. Their enumeration is that of the net.
    """

    def __init__(self, netlist: Netlist, same: Mapping[str, Sequence[str]]):
        self._wires = netlist.wires
        #: Net -> code -> constant.
        self._names: dict[str, dict[int, str]] = {}
        #: Constant -> width and code.
        self._values: dict[str, tuple[int, int]] = {}
        for net in netlist.wires:
            wires = [netlist.wires[name] for name in (net, *same.get(net, ()))]
            wire = next((wire for wire in wires if wire.codes), None)
            if wire is not None:
                self._names[net] = self._chosen(wire.kind, wire.width, wire.codes)

    def _chosen(self, kind: str, width: int, codes: Mapping[int, str]) -> dict[int, str]:
        """Return code -> constant; two enumerations of one name have different constants."""
        stem = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind.rpartition(".")[2])
        number = 1
        while True:
            prefix = stem if number == 1 else f"{stem}_{number}"
            words = {code: f"{prefix}_{member}".upper() for code, member in codes.items()}
            names = {code: re.sub(r"\W+", "_", word) for code, word in words.items()}
            values = {name: (width, code) for code, name in names.items()}
            # An equal enumeration of another net has the same constants.
            if all(self._values.get(name, value) == value for name, value in values.items()):
                if not values.keys() & self._wires.keys():
                    self._values |= values
                    return names
            number += 1

    def name(self, net: Sig, value: Sig) -> str:
        """Return the constant for a value that is compared with a net or goes to it, or nothing."""
        if len(net) != 1 or len(value) != 1 or not is_constant(value):
            return ""
        wire = self._wires.get(net[0].name)
        if wire is None or net != wire.whole:
            return ""
        return self._names.get(wire.name, {}).get(value[0].low, "")

    def declared(self, text: str) -> Iterator[str]:
        """Yield the declarations of the constants in a text."""
        used = set(re.findall(r"\w+", text)) & self._values.keys()
        for name, (width, code) in self._values.items():
            if name in used:
                size = f"[{width - 1}:0] " if width > 1 else ""
                yield f"  localparam {size}{name} = {width}'d{code};"

"""Export a unit as lint-clean Verilog with a header that describes it and says how to rebuild it.

Port names are those of the component. A port that is an array becomes one vector, with element i
at ``name[W*i +: W]``; a member of an interface becomes ``port__member``. An inner name of the RTL
stays, with ``_`` for every character that Verilog does not allow. A net without a name is written
inside the expression that reads it, or is named after what it feeds.
"""

import os
import re
from functools import cache
from importlib.metadata import version
from pathlib import Path

from vitruvian import flows, golden, hdl
from vitruvian.common.cache import ResultCache, digest
from vitruvian.common.files import write_whole
from vitruvian.flows.verilog.header import header
from vitruvian.flows.verilog.netlist.keywords import KEYWORDS
from vitruvian.flows.verilog.netlist.write import verilog
from vitruvian.hdl.catalogue.unit import Variant
from vitruvian.hdl.elaborate import only_described, snake, state_of, to_rtlil

_IDENTIFIER = re.compile(r'("(?:[^"\\]|\\.)*")|\\(\S+)')
_PORT = re.compile(r"port\$\d+\$\d+")  # a nameless value of the parent module


def emit(variant: Variant, *, plain: bool = False) -> str:
    """Return the Verilog text of ``variant``: the header comment, then every module.

    Parameters
    ----------
    plain : bool
        If True, statements have the order of the netlist, for a flow whose results are recorded.
        Otherwise they stand under the names of stages and parts, and equal lanes are instances.

    Raises
    ------
    UserError
        If the variant cannot be built.
    SynthesisError
        If Yosys cannot write the design.
    """
    component = variant.build()
    rtlil = to_rtlil(component, name=variant.module, shared=variant.unit.shared, sources=True)
    ports = ["__".join(map(str, path)) for path, _, _ in component.signature.flatten(component)]
    rtlil = _readable(rtlil, variant.module, [snake(cls.__name__) for cls in variant.unit.shared])
    # A design with the pins of a chip has a clock among its ports.
    order = list(dict.fromkeys(["clk", "rst", *ports]))
    text = verilog(rtlil, variant.module, order, plain=plain)
    return f"{header(variant, component)}\n{text}"


def stored(variant: Variant, *, enabled: bool = True) -> str:
    """Return the text of ``emit`` from the cache, and emit it first if it is not there.

    The key of the cache is a hash of the sources of ``golden``, ``hdl`` and ``flows``, of the
    version of Amaranth, and of everything that the elaboration of the component may depend on.

    Parameters
    ----------
    enabled : bool
        If False, ignore the cache.

    Raises
    ------
    UserError, SynthesisError
        As ``emit``.
    """
    component = only_described(variant.build())
    state = state_of(component)
    # Other sources than ours and values without a full text are not part of the key.
    ours = type(component).__module__.startswith("vitruvian.hdl.") and " at 0x" not in state
    store = ResultCache(kind="emitted", enabled=enabled and ours)
    seed = os.environ.get("PYTHONHASHSEED", "")  # Amaranth's names may depend on it
    key = digest(_sources(), version("amaranth"), seed, variant.module, variant.arguments, state)
    text = store.get(key)
    if not isinstance(text, str):
        text = emit(variant)
        store.put(key, text)
    return text


@cache
def _sources() -> str:
    """Return the hash of every source file that the text may depend on."""
    folders = [Path(str(package.__file__)).parent for package in (golden, hdl, flows)]
    files = sorted(file for folder in folders for file in folder.rglob("*.*"))
    return digest(*(file.read_bytes() for file in files if file.suffix in (".py", ".toml")))


def write(variant: Variant, folder: Path) -> Path:
    """Write ``folder/MODULE.v`` atomically and return its path."""
    path = folder / f"{variant.module}.v"
    write_whole(path, emit(variant))
    return path


def _readable(rtlil: str, top: str, shared: list[str]) -> str:
    """Replace every identifier that Verilog would have to escape, consistently in the whole text.

    The RTLIL name of a shared module consists of its class and a hash. Its new name consists of
    ``top`` and its class.
    """
    names = dict.fromkeys(match[2] for match in _IDENTIFIER.finditer(rtlil) if match[2])
    plain = {name for name in names if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII)}
    hashed = re.compile(rf"({'|'.join(shared) or '(?!)'})_[0-9a-f]{{8}}(?=\.|$)")
    # A shared module's name contains a hash and is replaced although it is legal.
    plain -= {name for name in plain if hashed.match(name) or name in KEYWORDS}
    chosen: dict[str, str] = {}
    taken = set(plain) | KEYWORDS

    def free(wish: str, joint: str) -> str:
        """Return ``wish``, with a number appended if that name is in use."""
        fresh, number = wish, 1
        while fresh in taken:
            number += 1
            fresh = f"{wish}{joint}{number}"
        taken.add(fresh)
        return fresh

    roles: dict[str, str] = {}
    for name in names:
        role = hashed.match(name)
        if role and role[0] not in roles:
            roles[role[0]] = free(f"{top}_{role[1]}", "_")
    # Values of a parent without a name are numbered in the order of their occurrence.
    ports = [name for name in names if _PORT.fullmatch(name)]
    chosen |= {name: free(f"port_{index}", "_v") for index, name in enumerate(ports)}
    for name in sorted(names.keys() - plain - set(ports)):
        wish = hashed.sub(lambda role: roles[role[0]], name, count=1)
        if name in roles:
            chosen[name] = wish
            continue
        wish = re.sub(r"\W+", "_", wish, flags=re.ASCII).strip("_") or "net"
        chosen[name] = free(f"n{wish}" if wish[0].isdigit() else wish, "_v")

    def rename(match: re.Match[str]) -> str:
        return match[0] if match[1] else "\\" + chosen.get(match[2], match[2])

    return _IDENTIFIER.sub(rename, rtlil)

"""The shell around a piece of a design, because of which the piece is evaluated once in a cycle.

A piece is a model of its own, which the rest of the design calls through a wrapper. In every call,
Verilator evaluates all logic that depends on a model's inputs, even if they have not changed. So
the shell holds the inputs in registers, which are loaded when ``go`` changes. A call passes the new
inputs and, if the clock has risen since the last call, an edge of the clock. Verilator processes
both edges in one evaluation, so that the registers of the piece are loaded with values that depend
on the old inputs, as in a design without pieces.

A piece at rest is not evaluated. While its inputs stay the same, its next state depends on its
state only. So if all memory of its model is the same after two edges of the clock (one would differ
in the clock itself), and the outputs were the same in between, nothing changes until an input does:
of the edges in the meantime, an even number can be left out.
"""

import re
from dataclasses import dataclass

from .emit import declared_ports

CLOCK = "clk"
# The event control of an always block.
_EVENT = re.compile(r"@\s*\(([^)]*)\)")
_RISING = f"posedge {CLOCK}"


def can_be_wrapped(text: str) -> bool:
    """Return True if every event in the Verilog ``text`` is a rising edge of the clock or ``*``."""
    return all(event.strip() in (_RISING, "*") for event in _EVENT.findall(text))


@dataclass(frozen=True)
class _Port:
    name: str
    width: int

    @property
    def bits(self) -> str:
        return f"[{self.width - 1}:0]"


class Shell:
    """The texts of the shell around a piece.

    Parameters
    ----------
    name : str
        Name of the piece's module.
    text : str
        Verilog of the piece, in which the widths of ports are literal numbers.

    Attributes
    ----------
    design : str
        Verilog of the model: the piece behind registers, with a clock that acts at both edges. The
        top module is ``{name}_shell``.
    wrapper : str
        SystemVerilog of a module with the name and the ports of the piece, which calls the model.
    driver : str
        C++ of the functions that the wrapper calls.
    """

    def __init__(self, name: str, text: str):
        ports = declared_ports(text, name)
        self.name = name
        self.clocked = any(port == CLOCK for port, _, _ in ports)
        self.inputs = [_Port(p, width) for p, way, width in ports if way == "input" and p != CLOCK]
        self.outputs = [_Port(p, width) for p, way, width in ports if way == "output"]
        # A call toggles the clock once; each edge is a cycle.
        self.design = text.replace(f"({_RISING})", f"(edge {CLOCK})") + self._held()
        self.wrapper = self._wrapper()
        self.driver = self._driver()

    def _held(self) -> str:
        ports = ["input go", f"input {CLOCK}"]
        ports += [f"input {p.bits} i{n}" for n, p in enumerate(self.inputs)]
        ports += [f"output {p.bits} o{n}" for n, p in enumerate(self.outputs)]
        joins = [f".{CLOCK}({CLOCK})"] if self.clocked else []
        joins += [f".{p.name}(h{n})" for n, p in enumerate(self.inputs)]
        joins += [f".{p.name}(o{n})" for n, p in enumerate(self.outputs)]
        lines = [f"module {self.name}_shell({', '.join(ports)});"]
        for n, p in enumerate(self.inputs):
            # Both edges of ``go`` load, so that it need not be reset.
            lines += [f"  reg {p.bits} h{n} = 0;", f"  always @(edge go) h{n} <= i{n};"]
        lines += [f"  {self.name} held ({', '.join(joins)});", "endmodule", ""]
        return "\n".join(lines)

    def _wrapper(self) -> str:
        name = self.name
        ports = [f"input {CLOCK}"] if self.clocked else []
        ports += [f"input {p.bits} {p.name}" for p in self.inputs]
        ports += [f"output reg {p.bits} {p.name}" for p in self.outputs]
        # ``ticks`` counts clock edges, by which a call knows if there was one since the last.
        taken = ["input chandle piece", "input int unsigned ticks"]
        taken += [f"input bit {p.bits} i{n}" for n, p in enumerate(self.inputs)]
        taken += [f"output bit {p.bits} o{n}" for n, p in enumerate(self.outputs)]
        given = ["the_piece", "the_ticks", *(p.name for p in (*self.inputs, *self.outputs))]
        lines = [
            f"module {name}({', '.join(ports)});",
            f'  import "DPI-C" function chandle {name}_new();',
            f'  import "DPI-C" function void {name}_delete(input chandle piece);',
            f'  import "DPI-C" function void {name}_eval({", ".join(taken)});',
            "  chandle the_piece;",
            "  int unsigned the_ticks = 0;",
            f"  initial the_piece = {name}_new();",
            *([f"  always @({_RISING}) the_ticks <= the_ticks + 1;"] if self.clocked else []),
            f"  always_comb {name}_eval({', '.join(given)});",
            f"  final {name}_delete(the_piece);",
            "endmodule",
            "",
        ]
        return "\n".join(lines)

    def _driver(self) -> str:
        name = self.name
        taken = ["void* handle", "uint32_t ticks"]
        taken += [f"const uint32_t* i{n}" for n in range(len(self.inputs))]
        taken += [f"uint32_t* o{n}" for n in range(len(self.outputs))]
        inputs, outputs = range(len(self.inputs)), range(len(self.outputs))
        differs = [f"differs(p.model.i{n}, i{n})" for n in inputs]
        constant = [f"p.kept(p.model.o{n})" for n in outputs]
        return _DRIVER.format(
            name=name,
            taken=", ".join(taken),
            differs=" || ".join(differs) or "false",
            takes=_lines(f"take(p.model.i{n}, i{n});" for n in inputs),
            gives=_lines(f"give(p.model.o{n}, o{n});" for n in outputs),
            kept=" && ".join(constant) or "true",
        )


def _lines(lines) -> str:
    return "\n    ".join(lines)


_DRIVER = """
#include "V{name}__Syms.h"
#include "verilated.h"
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {{

// Edges with equal inputs after which the memory is compared for the first time.
constexpr uint32_t FIRST_LOOK = 8;

struct Piece {{
    V{name} model{{Verilated::threadContextp(), "piece"}};  // that of the design which calls
    uint32_t ticks = 0;
    bool fresh = true;
    bool rests = false;        // nothing changes until an input does
    uint32_t quiet = 0;        // edges since the last change of an input
    uint32_t look = FIRST_LOOK;
    bool constant = false;     // the outputs did not change since ``look``
    std::vector<char> seen;    // all memory at ``look``

    char* memory() {{ return reinterpret_cast<char*>(model.rootp->vlSymsp); }}
    static constexpr size_t size = sizeof(V{name}__Syms);

    template <typename T> bool kept(const T& port) {{
        const char* place = reinterpret_cast<const char*>(&port);
        return !std::memcmp(place, seen.data() + (place - memory()), sizeof(T));
    }}
    void edge() {{
        model.clk = !model.clk;
        model.go = !model.go;
        model.eval();
    }}
}};

// Ports of up to 64 bits are numbers, wider ones arrays of 32-bit words.
template <typename T> inline T number(const uint32_t* words) {{
    T value = static_cast<T>(words[0]);
    if constexpr (sizeof(T) == 8) std::memcpy(&value, words, 8);
    return value;
}}
template <typename T> inline bool differs(const T& port, const uint32_t* words) {{
    if constexpr (sizeof(T) <= 8) return port != number<T>(words);
    else return std::memcmp(&port, words, sizeof(T)) != 0;
}}
template <typename T> inline void take(T& port, const uint32_t* words) {{
    if constexpr (sizeof(T) <= 8) port = number<T>(words);
    else std::memcpy(&port, words, sizeof(T));
}}
template <typename T> inline void give(const T& port, uint32_t* words) {{
    if constexpr (sizeof(T) <= 4) words[0] = port;
    else std::memcpy(words, &port, sizeof(T));
}}

// Look for the state at rest: at ``look`` the memory is kept, and two edges later compared.
void rest(Piece& p) {{
    if (p.quiet == p.look) {{
        p.seen.assign(p.memory(), p.memory() + Piece::size);
    }} else if (p.quiet == p.look + 1) {{
        p.constant = {kept};
    }} else if (p.quiet == p.look + 2) {{
        p.rests = p.constant && !std::memcmp(p.memory(), p.seen.data(), Piece::size);
        p.look *= 4;
    }}
}}

}}  // namespace

extern "C" void* {name}_new() {{ return new Piece; }}
extern "C" void {name}_delete(void* handle) {{ delete static_cast<Piece*>(handle); }}
extern "C" void {name}_eval({taken}) {{
    if (!handle) return;
    Piece& p = *static_cast<Piece*>(handle);
    const bool moved = p.fresh || {differs};
    if (moved) {{
        if (p.rests) {{
            // The last of the edges in the meantime comes with the new inputs.
            if (ticks != p.ticks && (ticks - p.ticks) % 2 == 0) p.edge();
            p.rests = false;
        }}
        p.quiet = 0;
        p.look = FIRST_LOOK;
        {takes}
    }}
    if ((moved || ticks != p.ticks) && !p.rests) {{
        if (ticks != p.ticks) {{
            p.edge();
            p.quiet++;
        }} else {{
            p.model.go = !p.model.go;
            p.model.eval();
        }}
        p.ticks = ticks;
        p.fresh = false;
        rest(p);
    }}
    {gives}
}}
"""

"""The C++ that moves batches of data between NumPy arrays and a Verilator model.

There is a translation unit for each model. It consists of generated functions for the model's ports
and of a fixed part, the file ``driver.inc`` beside this one. A call processes a whole batch, so
that no Python runs in the loop over vectors.
"""

import sys
from pathlib import Path

from vitruvian.common.validate import ceil_div

from .ports import Interface, Port, Stream

TEMPLATE = Path(__file__).with_name("driver.inc")
WRAPPER = "vitruvian_batch"


def driver_code(interface: Interface, *, clock: bool, reset: bool, latency: int) -> str:
    """Return the C++ text of the driver of a model.

    Parameters
    ----------
    interface : Interface
        Ports of the Verilog top module.
    clock, reset : bool
        True if the module has the port ``clk``, and ``rst``.
    latency : int
        Number of rising clock edges from an input to its output.

    Raises
    ------
    NotImplementedError
        On a big-endian machine.
    """
    # Arrays are copied into words byte by byte.
    if sys.byteorder != "little":  # pragma: no cover
        raise NotImplementedError("compiled models must run on a little-endian machine")
    lines = [
        '#include "Vmodel.h"',
        '#include "verilated.h"',
        "#include <cstdint>",
        "#include <cstring>",
        "#include <memory>",
        f"#define HAS_CLOCK {int(clock)}",
        f"#define HAS_RESET {int(reset)}",
        f"static constexpr uint64_t LATENCY = {latency};",
        _HELPERS,
    ]
    lines += [_port_code(port, get=False) for port in interface.inputs]
    lines += [_port_code(port, get=True) for port in interface.outputs]
    lines += [_port_code(stream.payload, get=False) for stream in interface.streams_in]
    lines += [_port_code(stream.payload, get=True) for stream in interface.streams_out]
    lines += _batch_code("put_all", interface.inputs, get=False)
    lines += _batch_code("get_all", interface.outputs, get=True)
    lines += _stream_code(interface.streams_in, "input")
    lines += _stream_code(interface.streams_out, "output")
    lines += [f'#include "{TEMPLATE.name}"', ""]
    return "\n".join(lines)


_HELPERS = """
static inline void deposit(uint32_t* words, uint32_t at, int width, uint64_t value) {
    const uint32_t i = at >> 5, s = at & 31;
    if (width < 64) value &= (uint64_t(1) << width) - 1;
    const unsigned __int128 x = static_cast<unsigned __int128>(value) << s;
    words[i] |= static_cast<uint32_t>(x);
    if (s + width > 32) words[i + 1] |= static_cast<uint32_t>(x >> 32);
    if (s + width > 64) words[i + 2] |= static_cast<uint32_t>(x >> 64);
}
static inline uint64_t extract(const uint32_t* words, uint32_t at, int width) {
    const uint32_t i = at >> 5, s = at & 31;
    unsigned __int128 x = words[i];
    if (s + width > 32) x |= static_cast<unsigned __int128>(words[i + 1]) << 32;
    if (s + width > 64) x |= static_cast<unsigned __int128>(words[i + 2]) << 64;
    const uint64_t value = static_cast<uint64_t>(x >> s);
    return width < 64 ? value & ((uint64_t(1) << width) - 1) : value;
}
static inline int64_t extend(uint64_t value, int width) {
    return static_cast<int64_t>(value << (64 - width)) >> (64 - width);
}
"""


def _member(name: str) -> str:
    """Return Verilator's C++ name of a port, in which two underscores are escaped."""
    return name.replace("__", "___05F")


def _port_code(port: Port, *, get: bool) -> str:
    """Return a C++ function that copies value ``i`` of a port between the model and arrays.

    Parameters
    ----------
    get : bool
        If True, copy from the model to the arrays of the port's leaves, else the other way.
    """
    words, member = ceil_div(port.width, 32), _member(port.name)
    body = [f"    uint32_t words[{words}] = {{}};"]
    if get:
        body.append(f"    std::memcpy(words, &m.{member}, sizeof(m.{member}));")
        parameters = "const Vmodel& m, void* const* arrays, uint64_t i"
    else:
        parameters = "Vmodel& m, const void* const* arrays, uint64_t i"
    for index, leaf in enumerate(port.leaves):
        pieces = leaf.pieces()
        count, item = len(pieces), leaf.dtype.itemsize
        kind = f"{'' if leaf.dtype.kind == 'i' else 'u'}int{8 * item}_t"
        const = "" if get else "const "
        memory = f"(static_cast<{const}{kind}*>(arrays[{index}]) + i * {count})"
        # Elements of whole bytes without gaps, from a word on: one copy instead of a loop.
        dense = [(leaf.offset + 8 * item * n, 8 * item) for n in range(count)]
        if pieces == dense and leaf.offset % 32 == 0:
            ends = (f"words + {leaf.offset // 32}", memory)
            target, source = ends[::-1] if get else ends
            body.append(f"    std::memcpy({target}, {source}, {item * count});")
            continue
        places = ", ".join(str(at) for at, _ in pieces)
        widths = ", ".join(str(width) for _, width in pieces)
        body.append(f"    {{ static constexpr uint32_t at[] = {{{places}}};")
        body.append(f"    static constexpr uint8_t width[] = {{{widths}}};")
        body.append(f"    auto* memory = {memory};")
        body.append(f"    for (int n = 0; n < {count}; n++)")
        if get:
            value = "extract(words, at[n], width[n])"
            if leaf.dtype.kind == "i":
                value = f"extend({value}, width[n])"
            body.append(f"        memory[n] = static_cast<{kind}>({value}); }}")
        else:
            body.append(
                "        deposit(words, at[n], width[n], static_cast<uint64_t>(memory[n])); }"
            )
    if not get:
        body.append(f"    std::memcpy(&m.{member}, words, sizeof(m.{member}));")
    verb = "get" if get else "put"
    return "\n".join([f"static inline void {verb}_{port.name}({parameters}) {{", *body, "}"])


def _batch_code(name: str, ports: tuple[Port, ...], *, get: bool) -> list[str]:
    const, verb = ("", "get") if get else ("const ", "put")
    model = "const Vmodel& m" if get else "Vmodel& m"
    lines = [f"static inline void {name}({model}, {const}void* const* arrays, uint64_t i) {{"]
    at = 0
    for port in ports:
        lines.append(f"    {verb}_{port.name}(m, arrays + {at}, i);")
        at += len(port.leaves)
    return [*lines, "}"]


def _stream_code(streams: tuple[Stream, ...], side: str) -> list[str]:
    """Return C++ functions that access payload and hand-shake of a stream by its number."""
    # The driver drives valid of inputs and ready of outputs, and samples the other one.
    ours, theirs = ("valid", "ready") if side == "input" else ("ready", "valid")
    verb, const = ("put", "const ") if side == "input" else ("get", "")
    model = "Vmodel& m" if side == "input" else "const Vmodel& m"
    at, offsets = 0, []
    for stream in streams:
        offsets.append(str(at))
        at += len(stream.payload.leaves)
    lines = [
        f"static constexpr int {side}_count = {len(streams)};",
        f"static constexpr int {side}_leaves[] = {{{', '.join([*offsets, str(at)])}}};",
        f"static constexpr bool {side}_forced[] = "
        f"{{{', '.join([str(int(getattr(s, ours) is None)) for s in streams] + ['0'])}}};",
        f"static inline void {side}_payload(int s, {model}, {const}void* const* arrays, uint64_t i)"
        " {",
        "    (void)m; (void)arrays; (void)i;",
        "    switch (s) {",
    ]
    for n, stream in enumerate(streams):
        lines.append(f"    case {n}: {verb}_{stream.payload.name}(m, arrays, i); break;")
    lines += ["    }", "}", f"static inline void {side}_drive(int s, Vmodel& m, bool on) {{"]
    lines += ["    (void)m; (void)on;", "    switch (s) {"]
    for n, stream in enumerate(streams):
        if getattr(stream, ours):
            lines.append(f"    case {n}: m.{_member(getattr(stream, ours))} = on; break;")
    lines += ["    }", "}", f"static inline bool {side}_sample(int s, const Vmodel& m) {{"]
    lines += ["    (void)m;", "    switch (s) {"]
    for n, stream in enumerate(streams):
        if getattr(stream, theirs):
            lines.append(f"    case {n}: return m.{_member(getattr(stream, theirs))};")
    return [*lines, "    }", "    return true;", "}"]


def registered_wrapper(interface: Interface, *, top: str, reset: bool) -> str:
    """Return Verilog of a wrapper that puts a register on every data input of ``top``.

    Verilator evaluates logic that depends on top-level inputs twice, once with the clocked logic
    and once without. Behind a register it is evaluated only once, which halves the time of a
    pipelined unit.
    """
    control = ["clk", "rst"] if reset else ["clk"]
    ports = [f"input {name}" for name in control]
    ports += [f"input [{port.width - 1}:0] {port.name}" for port in interface.inputs]
    ports += [f"output [{port.width - 1}:0] {port.name}" for port in interface.outputs]
    joins = [f".{name}({name})" for name in control]
    joins += [f".{port.name}({port.name}_held)" for port in interface.inputs]
    joins += [f".{port.name}({port.name})" for port in interface.outputs]
    lines = [f"module {WRAPPER}({', '.join(ports)});"]
    lines += [f"  reg [{port.width - 1}:0] {port.name}_held;" for port in interface.inputs]
    lines += ["  always @(posedge clk) begin"]
    lines += [f"    {port.name}_held <= {port.name};" for port in interface.inputs]
    lines += ["  end", f"  {top} held ({', '.join(joins)});", "endmodule", ""]
    return "\n".join(lines)

"""Write a self-checking bench in plain Verilog-2005 that compares a unit with golden vectors.

The bench is one process that drives, waits, samples and then makes the clock edge, so that no
simulator can order its statements otherwise.
"""

from collections.abc import Sequence
from string import Template
from textwrap import indent

from vitruvian.flows.verilog.bench_line import line
from vitruvian.sim.bench.vectors import GoldenVectors
from vitruvian.sim.rtl.ports import Stream

#: Port -> the net of the bench that is its clock or its reset.
_CLOCKS = {"clk": "clk", "rst": "rst", "aclk": "clk", "aresetn": "~rst"}


class _Text(Template):
    """A text with places like ``@name``, because Verilog uses the dollar sign and braces itself."""

    delimiter = "@"


_HEAD = _Text("""\
// @{module}_tb: compares @module with golden vectors.
//
// Plain Verilog-2005, to be run in the folder that contains vectors/. It prints PASS and ends with
// the exit code 0, or prints FAIL with the first mismatches and ends with another code.
@remark
`timescale 1ns / 1ps
module @{module}_tb;
  reg clk = 0;
  reg rst = 1;
@ports

  // Words of vectors/*.hex: what the unit gets, and what it must give.
@memories

  @module unit (
@connections
  );

  integer tb_cycle, tb_wrong;
""")

# Inputs change after the falling edge and outputs are read just before the rising one, so that the
# bench needs no delays of its own for set-up and hold.
_PIPELINE = _Text("""
  localparam SENT = @sent;
  localparam EXPECTED = @expected;
  localparam LATENCY = @latency;
  integer tb_index;

  initial begin
@read
    tb_wrong = 0;
@clear
    repeat (2) begin
      #5 clk = 1;
      #5 clk = 0;
    end
    rst = 0;
    for (tb_cycle = 0; tb_cycle < EXPECTED + LATENCY; tb_cycle = tb_cycle + 1) begin
      if (tb_cycle < SENT) begin
@drive
      end
      #4;
      tb_index = tb_cycle - LATENCY;
      if (tb_index >= 0)
        if (@differ) begin
          tb_wrong = tb_wrong + 1;
          if (tb_wrong <= 5) begin
            $display("MISMATCH vector %0d", tb_index);
@shown
          end
        end
      #1 clk = 1;
      #5 clk = 0;
    end
    if (tb_wrong != 0) begin
      $display("FAIL %0d of %0d vectors of @module", tb_wrong, EXPECTED);
      $fatal(1, "@module differs from golden");
    end else begin
      $display("PASS %0d vectors", EXPECTED);
      $finish;
    end
  end
endmodule
""")

_STREAMS = _Text("""
@counts
  integer tb_quiet, tb_drain, tb_stalls;
  reg [31:0] tb_random;

  // A linear-feedback shift register (xorshift).
  function [31:0] shifted(input [31:0] x);
    begin
      shifted = x ^ (x << 13);
      shifted = shifted ^ (shifted >> 17);
      shifted = shifted ^ (shifted << 5);
    end
  endfunction

  initial begin
@read
    if (!$value$plusargs("stalls=%d", tb_stalls)) tb_stalls = 1;
    if (!$value$plusargs("seed=%d", tb_random)) tb_random = 1;
    if (tb_random == 0) tb_random = 1;  // the register would never leave zero
    tb_wrong = 0;
    tb_quiet = 0;
    tb_drain = 0;
@clear
    repeat (2) begin
      #5 clk = 1;
      #5 clk = 0;
    end
    rst = 0;
    // The cycles after the last word show whether the unit gives surplus ones.
    for (tb_cycle = 0;
         tb_drain < 64 && tb_quiet < 10000 && tb_wrong < 100;
         tb_cycle = tb_cycle + 1) begin
      tb_quiet = tb_quiet + 1;
@drive
      #4;
@sample
      if (@done) tb_drain = tb_drain + 1;
      #1 clk = 1;
      #5 clk = 0;
    end
    if (tb_quiet >= 10000) begin
      tb_wrong = tb_wrong + 1;
      $display("MISMATCH no word passes any more; so far @progress", @counters);
    end
    if (tb_wrong != 0) begin
      $display("FAIL %0d mismatches in %0d vectors of @module", tb_wrong, @total);
      $fatal(1, "@module differs from golden");
    end else begin
      $display("PASS %0d vectors in %0d cycles", @total, tb_cycle);
      $finish;
    end
  end
endmodule
""")

# A word stays until it has passed, as the hand-shake demands; without a word the payload is noise,
# so that a unit that looks at it is found.
_DRIVE_IN = _Text("""\
tb_random = shifted(tb_random);
if (tb_@{name}_passed) @valid = 0;
if (!@valid) begin
  @payload = @noise;
  if (tb_@{name}_next < SENT_@name@gate && (tb_stalls == 0 || tb_random[1:0] != 0)) begin
    @valid = 1;
    @payload = tb_@name[tb_@{name}_next];
  end
end
""")

_SAMPLE_IN = _Text("""\
tb_@{name}_passed = @valid && @ready;
if (tb_@{name}_passed) begin
  tb_@{name}_next = tb_@{name}_next + 1;
  tb_quiet = 0;
end
""")

# With stalls, a word is offered or taken in three of four cycles.
_DRIVE_OUT = _Text("""\
tb_random = shifted(tb_random);
@ready = tb_stalls == 0 || tb_random[1:0] != 0;
""")

# ``!==`` and not ``!=``: a comparison with an x would be x, which counts as false.
_SAMPLE_OUT = _Text("""\
if (tb_@{name}_held && (!@valid || @payload !== tb_@{name}_last)) begin
  tb_wrong = tb_wrong + 1;
  $display("MISMATCH @name: word %0d changed while it waited, from %h to %h (valid %b)",
           tb_@{name}_next, tb_@{name}_last, @payload, @valid);
end
if ((^@valid) === 1'bx) begin
  tb_wrong = tb_wrong + 1;
  $display("MISMATCH @name: valid is unknown");
end
tb_@{name}_held = @valid && !@ready;
tb_@{name}_last = @payload;
if (@valid && @ready) begin
  if (tb_@{name}_next >= EXPECTED_@name) begin
    tb_wrong = tb_wrong + 1;
    $display("MISMATCH @name: surplus word %h", @payload);
@early  end else if (@differs) begin
    tb_wrong = tb_wrong + 1;
    if (tb_wrong <= 5)
      $display("MISMATCH @name: word %0d: %h, expected %h", tb_@{name}_next, @payload,
               tb_@name[tb_@{name}_next]);
  end
  tb_@{name}_next = tb_@{name}_next + 1;
  tb_quiet = 0;
end
""")

_EARLY = _Text("""\
  end else if (!(@condition)) begin
    tb_wrong = tb_wrong + 1;
    $display("MISMATCH @name: word %0d came too early", tb_@{name}_next);
""")

# A pulse on a port follows a word of a stream by up to eight cycles; −1 says that none is due.
_DRIVE_ANSWER = _Text("""\
tb_random = shifted(tb_random);
@name = tb_@{name}_left == 0;
""")

_SAMPLE_ANSWER = _Text("""\
if (tb_@{name}_left >= 0) tb_@{name}_left = tb_@{name}_left - 1;
if (@valid && @ready) tb_@{name}_left = tb_stalls == 0 ? 0 : tb_random[2:0];
""")

_SAMPLE_ZERO = _Text("""\
if (@name !== 0) begin
  tb_wrong = tb_wrong + 1;
  $display("MISMATCH @name: %h, expected 0", @name);
end
""")


def memories(vectors: GoldenVectors) -> dict[str, str]:
    """Return the text of each ``$readmemh`` file by its name; a line is a word."""
    widths = _widths(vectors)
    files: dict[str, str] = {}
    for end, group in (
        ("", vectors.inputs),
        (".expected", vectors.outputs),
        (".care", vectors.care),
    ):
        for name, words in group.items():
            digits = -(-widths[name] // 4)
            files[f"{name}{end}.hex"] = "".join(f"{word:0{digits}x}\n" for word in words)
    for (name, event), counts in vectors.after.items():
        files[f"{name}.after.{event}.hex"] = "".join(f"{count:08x}\n" for count in counts)
    return files


def bench(module: str, vectors: GoldenVectors, *, ports: Sequence[str]) -> str:
    """Return the text of the module ``MODULE_tb``.

    Parameters
    ----------
    module : str
        Name of the unit's module.
    vectors : GoldenVectors
        Words that the unit gets, and those that it must give.
    ports : sequence of str
        Names of the module's ports, among them those of clock and reset if it has them.
    """
    # A serial line is a bench of its own, because its words are frames of many cycles.
    streams = vectors.interface.has_streams
    head = _head(module, vectors, ports)
    if vectors.bit_cycles:
        return head + line(
            module,
            sent=len(vectors.inputs["rx"]),
            expected=len(vectors.outputs["tx"]),
            bit_cycles=vectors.bit_cycles,
            read=_read(vectors),
        )
    return head + (_with_streams(module, vectors) if streams else _without(module, vectors))


def _widths(vectors: GoldenVectors) -> dict[str, int]:
    """Return the width of the words of each port or stream in bits."""
    if vectors.bit_cycles:
        return {"rx": 8, "tx": 8}
    interface = vectors.interface
    return {port.name: port.width for port in interface.inputs + interface.outputs} | {
        stream.name: stream.payload.width for stream in interface.streams_in + interface.streams_out
    }


def _range(width: int) -> str:
    return f"[{width - 1}:0] " if width > 1 else ""


def _lines(lines: Sequence[str], spaces: int) -> str:
    return indent("\n".join(lines), " " * spaces)


def _nets(vectors: GoldenVectors, stream: Stream) -> list[tuple[str, int]]:
    """Return names and widths of the nets of a stream's payload."""
    alone = {stream.payload.name: stream.payload.width}
    return list(vectors.nets.get(stream.name, alone).items())


def _head(module: str, vectors: GoldenVectors, ports: Sequence[str]) -> str:
    """Return the bench up to the instance of the unit."""
    interface, widths = vectors.interface, _widths(vectors)
    # The bench drives what the unit reads, and the ready of what it writes.
    driven = [(port.name, port.width) for port in interface.inputs]
    read = [(port.name, port.width) for port in interface.outputs]
    for stream in interface.streams_in:
        driven += [*_nets(vectors, stream), (_valid(stream), 1)]
        read.append((_ready(stream), 1))
    for stream in interface.streams_out:
        driven.append((_ready(stream), 1))
        read += [*_nets(vectors, stream), (_valid(stream), 1)]
    words = [(name, widths[name], len(w)) for name, w in (vectors.inputs | vectors.outputs).items()]
    words += [(f"{name}_care", widths[name], len(w)) for name, w in vectors.care.items()]
    words += [(f"{x}_after_{event}", 32, len(w)) for (x, event), w in vectors.after.items()]
    names = {port: net for port, net in _CLOCKS.items() if port in ports}
    names |= {name: name for name, _ in driven + read}
    return _HEAD.substitute(
        module=module,
        remark="//\n// Streams stall at random: +stalls=0 switches this off, +seed=N changes it.\n"
        * interface.has_streams,
        ports=_lines(
            [f"reg {_range(width)}{name};" for name, width in driven]
            + [f"wire {_range(width)}{name};" for name, width in read],
            2,
        ),
        # A memory without words is declared because the text reads it.
        memories=_lines(
            [f"reg {_range(w)}tb_{name} [0:{max(n, 1) - 1}];" for name, w, n in words], 2
        ),
        connections=indent(",\n".join(f".{port}({net})" for port, net in names.items()), " " * 4),
    )


def _read(vectors: GoldenVectors) -> str:
    """Return the statements that read the words."""
    files = {f"tb_{name}": name for name, words in vectors.inputs.items() if words}
    files |= {f"tb_{name}": f"{name}.expected" for name, w in vectors.outputs.items() if w}
    files |= {f"tb_{name}_care": f"{name}.care" for name, words in vectors.care.items() if words}
    files |= {f"tb_{x}_after_{event}": f"{x}.after.{event}" for x, event in vectors.after}
    return _lines([f'$readmemh("vectors/{f}.hex", {memory});' for memory, f in files.items()], 4)


def _differs(vectors: GoldenVectors, name: str, port: str, index: str) -> str:
    """Return the condition that a word of an output is not golden's; an x differs as well."""
    if name not in vectors.care:
        return f"{port} !== tb_{name}[{index}]"
    # Bits without meaning, as those of a lane that is not there, may differ.
    return f"((({port} ^ tb_{name}[{index}]) & tb_{name}_care[{index}]) !== 0)"


def _without(module: str, vectors: GoldenVectors) -> str:
    """Return the rest of the bench for a unit that takes a vector in each cycle."""
    inputs, outputs = list(vectors.inputs), list(vectors.outputs)
    shown = [f'$display("  {name} = %h", tb_{name}[tb_index]);' for name in inputs]
    shown += [
        f'$display("  {name} = %h, expected %h", {name}, tb_{name}[tb_index]);' for name in outputs
    ]
    return _PIPELINE.substitute(
        module=module,
        sent=len(vectors.inputs[inputs[0]]),
        expected=len(vectors.outputs[outputs[0]]),
        latency=vectors.latency,
        read=_read(vectors),
        clear=_lines([f"{name} = 0;" for name in inputs], 4),
        drive=_lines([f"{name} = tb_{name}[tb_cycle];" for name in inputs], 8),
        differ=" || ".join(_differs(vectors, name, name, "tb_index") for name in outputs),
        shown=_lines(shown, 12),
    )


def _with_streams(module: str, vectors: GoldenVectors) -> str:
    """Return the rest of the bench for a unit with streams."""
    ins, outs = vectors.interface.streams_in, vectors.interface.streams_out
    both = ins + outs
    by_name = {stream.name: stream for stream in both}
    answered = {name: by_name[stream] for name, stream in vectors.answers.items()}
    # Words are counted by their streams, and pulses of other ports by counters of their own.
    pulses = list(dict.fromkeys(event for _, event in vectors.after if event not in by_name))
    counts = [f"localparam SENT_{s.name} = {len(vectors.inputs[s.name])};" for s in ins]
    counts += [f"localparam EXPECTED_{s.name} = {len(vectors.outputs[s.name])};" for s in outs]
    counts += [f"integer tb_{s.name}_next;" for s in both]
    counts += [f"integer tb_{name}_next;" for name in pulses]
    counts += [f"integer tb_{name}_left;" for name in answered]
    counts += [f"reg tb_{s.name}_passed;" for s in ins]
    counts += [f"reg tb_{s.name}_held;" for s in outs]
    counts += [f"reg {_range(s.payload.width)}tb_{s.name}_last;" for s in outs]
    clear = [f"tb_{name}_next = 0;" for name in (*by_name, *pulses)]
    clear += [f"{port.name} = 0;" for port in vectors.interface.inputs]
    clear += [f"tb_{name}_left = -1;" for name in answered]
    clear += [f"{name} = 0;" for s in ins for name in (f"tb_{s.name}_passed", _valid(s))]
    clear += [f"{s.payload.name} = 0;" for s in ins]
    clear += [f"{name} = 0;" for s in outs for name in (f"tb_{s.name}_held", _ready(s))]
    clear += [f"tb_{s.name}_last = 0;" for s in outs]
    drive = [_fill(_DRIVE_IN, vectors, s) for s in ins]
    drive += [_fill(_DRIVE_OUT, vectors, s) for s in outs]
    drive += [_DRIVE_ANSWER.substitute(name=name) for name in answered]
    # Outputs are sampled first: the conditions of a word count the inputs up to the cycle before.
    sample = [_fill(_SAMPLE_OUT, vectors, s) for s in outs]
    sample += [_fill(_SAMPLE_IN, vectors, s) for s in ins]
    sample += [
        _SAMPLE_ANSWER.substitute(name=name, valid=_valid(s), ready=_ready(s))
        for name, s in answered.items()
    ]
    sample += [f"if ({name}) tb_{name}_next = tb_{name}_next + 1;\n" for name in pulses]
    sample += [_SAMPLE_ZERO.substitute(name=name) for name in vectors.zeros]
    done = [f"tb_{s.name}_next == SENT_{s.name}" for s in ins]
    done += [f"tb_{s.name}_next >= EXPECTED_{s.name}" for s in outs]
    return _STREAMS.substitute(
        module=module,
        counts=_lines(counts, 2),
        read=_read(vectors),
        clear=_lines(clear, 4),
        drive=indent("".join(drive).rstrip(), " " * 6),
        sample=indent("".join(sample).rstrip(), " " * 6),
        done=" && ".join(done),
        progress=", ".join(f"%0d of {s.name}" for s in both),
        counters=", ".join(f"tb_{s.name}_next" for s in both),
        total=" + ".join(f"tb_{s.name}_next" for s in outs),
    )


def _fill(text: _Text, vectors: GoldenVectors, stream: Stream) -> str:
    """Return the statements of one stream."""
    name, payload = stream.name, stream.payload
    conditions = [
        f"tb_{event}_next >= tb_{name}_after_{event}[tb_{name}_next]"
        for waiting, event in vectors.after
        if waiting == name
    ]
    early = _EARLY.substitute(name=name, condition=" && ".join(conditions)) if conditions else ""
    # The random number has 32 bits.
    copies = -(-payload.width // 32)
    return text.substitute(
        name=name,
        payload=payload.name,
        valid=_valid(stream),
        ready=_ready(stream),
        gate="".join(f" && {condition}" for condition in conditions),
        early=early,
        # An assignment cuts the copies to the width of the payload.
        noise=f"{{{copies}{{tb_random}}}}" if payload.width % 32 == 0 else _noise(payload.width),
        differs=_differs(vectors, name, payload.name, f"tb_{name}_next"),
    )


def _noise(width: int) -> str:
    """Return an expression of random bits of exactly this width."""
    whole, rest = divmod(width, 32)
    part = f"tb_random[{rest - 1}:0]"
    return f"{{{part}, {{{whole}{{tb_random}}}}}}" if whole else part


def _valid(stream: Stream) -> str:
    assert stream.valid is not None, f"stream {stream.name} must have the signal valid"
    return stream.valid


def _ready(stream: Stream) -> str:
    assert stream.ready is not None, f"stream {stream.name} must have the signal ready"
    return stream.ready

"""The part of a plain Verilog bench that drives a serial line: 8 data bits, 1 stop bit (8N1)."""

from string import Template


class _LineText(Template):
    """A text with places like ``@name``, because Verilog uses the dollar sign and braces itself."""

    delimiter = "@"


# Times are in clock cycles: a bit of the line is BIT of them, and ``tb_rx_wait`` and ``tb_tx_wait``
# are the cycles until the next one.
_LINE = _LineText("""
  localparam SENT = @sent;
  localparam EXPECTED = @expected;
  localparam BIT = @bit_cycles;  // clock cycles of a bit
  integer tb_rx_next, tb_rx_left, tb_rx_wait, tb_tx_next, tb_tx_left, tb_tx_wait;
  integer tb_quiet, tb_drain;
  reg [9:0] tb_rx_frame;
  reg [7:0] tb_tx_byte;

  initial begin
@read
    tb_wrong = 0;
    tb_quiet = 0;
    tb_drain = 0;
    tb_rx_next = 0;
    tb_rx_left = 0;
    tb_rx_wait = 0;
    tb_rx_frame = 0;
    tb_tx_next = 0;
    tb_tx_left = 0;
    tb_tx_wait = 0;
    tb_tx_byte = 0;
    rx = 1;
    repeat (2) begin
      #5 clk = 1;
      #5 clk = 0;
    end
    rst = 0;
    // The silence after the last byte shows whether the unit sends surplus ones.
    for (tb_cycle = 0;
         tb_drain < 20 * BIT && tb_quiet < 1000 * BIT && tb_wrong < 100;
         tb_cycle = tb_cycle + 1) begin
      tb_quiet = tb_quiet + 1;
      if (tb_rx_wait != 0) begin
        tb_rx_wait = tb_rx_wait - 1;
      end else if (tb_rx_left != 0) begin
        {tb_rx_frame, rx} = {1'b1, tb_rx_frame};
        tb_rx_left = tb_rx_left - 1;
        tb_rx_wait = BIT - 1;
      end else if (tb_rx_next < SENT && tb_tx_next >= tb_rx_after_tx[tb_rx_next]) begin
        // A frame is a start bit, the byte from its lowest bit on, and a stop bit.
        tb_rx_frame = {2'b11, tb_rx[tb_rx_next]};
        rx = 0;
        tb_rx_left = 9;
        tb_rx_wait = BIT - 1;
        tb_rx_next = tb_rx_next + 1;
        tb_quiet = 0;
      end
      #4;
      if (tx !== 0 && tx !== 1) begin
        tb_wrong = tb_wrong + 1;
        $display("MISMATCH tx: the line is unknown");
      end
      if (tb_tx_wait != 0) begin
        tb_tx_wait = tb_tx_wait - 1;
      end else if (tb_tx_left == 0) begin
        // A falling edge begins a start bit; the first data bit is sampled in its middle.
        if (tx === 0) begin
          tb_tx_left = 9;
          tb_tx_wait = BIT + BIT / 2 - 1;
        end
      end else begin
        tb_tx_left = tb_tx_left - 1;
        tb_tx_wait = BIT - 1;
        if (tb_tx_left != 0) begin
          tb_tx_byte = {tx, tb_tx_byte[7:1]};
        end else begin
          tb_tx_wait = 0;
          if (tx !== 1) begin
            tb_wrong = tb_wrong + 1;
            $display("MISMATCH tx: byte %0d has no stop bit", tb_tx_next);
          end else if (tb_tx_next >= EXPECTED) begin
            tb_wrong = tb_wrong + 1;
            $display("MISMATCH tx: surplus byte %h", tb_tx_byte);
          end else if (tb_tx_byte !== tb_tx[tb_tx_next]) begin
            tb_wrong = tb_wrong + 1;
            if (tb_wrong <= 5)
              $display("MISMATCH tx: byte %0d: %h, expected %h", tb_tx_next, tb_tx_byte,
                       tb_tx[tb_tx_next]);
          end
          tb_tx_next = tb_tx_next + 1;
          tb_quiet = 0;
        end
      end
      if (tb_rx_next == SENT && tb_tx_next >= EXPECTED) tb_drain = tb_drain + 1;
      #1 clk = 1;
      #5 clk = 0;
    end
    if (tb_quiet >= 1000 * BIT) begin
      tb_wrong = tb_wrong + 1;
      $display("MISMATCH no byte passes any more; so far %0d of rx, %0d of tx", tb_rx_next,
               tb_tx_next);
    end
    if (tb_wrong != 0) begin
      $display("FAIL %0d mismatches in %0d vectors of @module", tb_wrong, tb_tx_next);
      $fatal(1, "@module differs from golden");
    end else begin
      $display("PASS %0d vectors in %0d cycles", tb_tx_next, tb_cycle);
      $finish;
    end
  end
endmodule
""")


def line(module: str, *, sent: int, expected: int, bit_cycles: int, read: str) -> str:
    """Return the rest of the bench, behind the instance of the unit.

    Parameters
    ----------
    module : str
        Name of the unit's module.
    sent, expected : int
        Numbers of bytes of the lines ``rx`` and ``tx``.
    bit_cycles : int
        Clock cycles of a bit.
    read : str
        Statements that read the memories.
    """
    # A frame is 10 bits, so that 20 bit times of silence show a surplus byte, and 1000 show that
    # the unit no longer answers.
    return _LINE.substitute(
        module=module, sent=sent, expected=expected, bit_cycles=bit_cycles, read=read
    )

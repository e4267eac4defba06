"""A buffer with the control that gives its orders, so that benches can send passes to it."""

from typing import TYPE_CHECKING

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from vitruvian.hdl.sparse.buffer import DualBuffer
from vitruvian.hdl.sparse.control import PipelineControl
from vitruvian.hdl.sparse.oei_config import OEIConfig, Refusal


class BufferFrame(wiring.Component):
    """A buffer whose orders come from a control, as in the pipeline, so that passes can be tested.

    Parameters
    ----------
    buffer : type
        Class of the buffer.

    Members
    -------
    command : In(stream)
        An index to write, or with ``run`` the start of a pass up to the sub-tensor ``last``.
    i, o, csr : streams
        Those of the buffer.
    status : Out(stream.Signature(Refusal))
        The end of each pass.
    mutant : In(4)
        Chooses a mistake in a derived buffer.
    """

    if TYPE_CHECKING:
        command: stream.Interface
        i: stream.Interface
        o: stream.Interface
        csr: stream.Interface
        status: stream.Interface
        mutant: Signal

    def __init__(self, *, config: OEIConfig, buffer: type[DualBuffer] = DualBuffer):
        self.config, self._buffer = config, buffer
        command = data.StructLayout({"index": config.index, "run": 1, "last": config.sub_bits})
        super().__init__(
            {
                "command": In(stream.Signature(command)),
                "i": In(stream.Signature(config.csc)),
                "o": Out(stream.Signature(config.csc)),
                "csr": Out(stream.Signature(config.csr)),
                "status": Out(stream.Signature(Refusal)),
                "mutant": In(4),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.buffer = buffer = self._buffer(config=self.config)
        m.submodules.control = control = PipelineControl(config=self.config)
        mutant = getattr(buffer, "mutant", None)
        if mutant is not None:
            m.d.comb += mutant.eq(self.mutant)
        connect(m, flipped(self.i), buffer.i)
        connect(m, buffer.o, flipped(self.o))
        connect(m, buffer.csr, flipped(self.csr))
        connect(m, control.os, buffer.columns)
        connect(m, control.is_, buffer.rows)
        connect(m, control.status, flipped(self.status))
        command = self.command
        m.d.comb += [
            buffer.index.payload.eq(command.payload.index),
            # An index waits for the end of a pass, when the control takes commands.
            buffer.index.valid.eq(command.valid & ~command.payload.run & control.command.ready),
            control.command.payload.eq(command.payload.last),
            control.command.valid.eq(command.valid & command.payload.run),
            command.ready.eq(
                Mux(command.payload.run, control.command.ready, buffer.index.ready)
                & control.command.ready
            ),
            control.ewise.ready.eq(1),
            # There is no element-wise core, so its steps end at once.
            control.ewise_done.eq(control.ewise.valid),
            control.os_done.eq(buffer.columns_done),
            control.is_done.eq(buffer.rows_done),
            control.waiting.eq(buffer.waiting),
            control.refusal.eq(buffer.refusal),
        ]
        return m

"""The control of the OEI pipeline: it gives each stage the index of a sub-tensor in each step."""

from typing import TYPE_CHECKING

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from vitruvian.common.validate import check_type

from .oei_config import OEIConfig, Refusal


class PipelineControl(wiring.Component):
    """Sub-tensor dispatcher, equal to ``golden.sparse.buffer.schedule``.

    In step s, the output-stationary stage gets sub-tensor s, the element-wise stage s − 1, and the
    input-stationary stage s − 2. A step ends when each stage that has got a sub-tensor has
    finished it. A pass over S sub-tensors has S + 2 steps.

    Members
    -------
    command : In(stream.Signature(config.sub_bits))
        The index of the last sub-tensor. It starts a pass.
    os, ewise, is_ : Out(stream.Signature(config.sub_bits))
        The index for each stage, which the stage takes when it starts.
    os_done, ewise_done, is_done : In(1)
        1 for a cycle when a stage has finished its sub-tensor.
    waiting : In(1)
        1 while the output-stationary stage waits for space in the buffer. If the input-stationary
        stage has finished its sub-tensor, nothing can free space, and the pass is given up.
    refusal : In(Refusal)
        The buffer's reason to give up the pass.
    status : Out(stream.Signature(Refusal))
        The end of a pass. After a reason other than NONE, the control stops until a reset.

    Latency
    -------
    The cycle after the last stage has finished belongs to the next step.

    Raises
    ------
    TypeError
        If ``config`` is no ``OEIConfig``.

    References
    ----------
    Zhang 2024, §4.4.4, Fig. 4.16. The thesis also prefetches the columns of the sub-tensor after
    that of the output-stationary stage. Here CSC space takes columns as long as it has room.
    """

    if TYPE_CHECKING:
        command: stream.Interface
        os: stream.Interface
        ewise: stream.Interface
        is_: stream.Interface
        os_done: Signal
        ewise_done: Signal
        is_done: Signal
        waiting: Signal
        refusal: Signal
        status: stream.Interface

    def __init__(self, *, config: OEIConfig):
        check_type("config", config, OEIConfig)
        self.config = config
        index = stream.Signature(config.sub_bits)
        super().__init__(
            {
                "command": In(index),
                "os": Out(index),
                "ewise": Out(index),
                "is_": Out(index),
                "os_done": In(1),
                "ewise_done": In(1),
                "is_done": In(1),
                "waiting": In(1),
                "refusal": In(Refusal),
                "status": Out(stream.Signature(Refusal)),
                **self._derived_ports(),
            }
        )

    def _derived_ports(self) -> dict[str, wiring.Member]:
        """Return the ports that a derived control has in addition."""
        return {}

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c = self.config
        running, step, last = Signal(), Signal(c.sub_bits), Signal(c.sub_bits)
        starts, stopped = Signal(), Signal()
        stages = ((self.os, self.os_done), (self.ewise, self.ewise_done), (self.is_, self.is_done))
        busy = [Signal(name=f"busy_{k}") for k in range(len(stages))]

        m.d.comb += [
            stopped.eq(self.status.valid),
            self.command.ready.eq(~running & ~stopped),
        ]
        with m.If(self.command.valid & self.command.ready):
            m.d.sync += [running.eq(1), starts.eq(1), step.eq(0), last.eq(self.command.payload)]

        ended: Value = ~starts
        for delay, ((to, done), at_work) in enumerate(zip(stages, busy, strict=True)):
            has_work = (step <= last + delay) & ((step >= delay) if delay else 1)
            # A stage may take its index in any cycle after the step has begun.
            with m.If(starts & has_work):
                m.d.sync += [
                    to.valid.eq(1),
                    to.payload.eq(step - self._delay(delay)),
                    at_work.eq(1),
                ]
            with m.If(to.valid & to.ready):
                m.d.sync += to.valid.eq(0)
            with m.If(done):
                m.d.sync += at_work.eq(0)
            ended = ended & self._finished(delay, at_work)
        m.d.sync += starts.eq(0)
        with m.If(self.command.valid & self.command.ready):
            m.d.sync += starts.eq(1)
        with m.If(running & ended):
            with m.If(step == last + 2):
                m.d.sync += [running.eq(0), self.status.valid.eq(1)]
                m.d.sync += self.status.payload.eq(Refusal.NONE)
            with m.Else():
                m.d.sync += [step.eq(step + 1), starts.eq(1)]

        refused = Signal(Refusal)
        m.d.comb += refused.eq(self.refusal)
        with m.If(self.waiting & ~busy[2] & ~starts):
            m.d.comb += refused.eq(Refusal.SPACE)
        halted = Signal()
        with m.If(self.status.valid & self.status.ready):
            m.d.sync += self.status.valid.eq(0)
        with m.If(running & (refused != Refusal.NONE)):
            m.d.sync += [
                running.eq(0),
                halted.eq(1),
                self.status.valid.eq(1),
                self.status.payload.eq(refused),
            ]
        with m.If(halted):
            m.d.comb += self.command.ready.eq(0)
        return m

    def _delay(self, delay: int) -> int:
        """Return the steps by which a stage is behind the first one."""
        return delay

    def _finished(self, stage: int, at_work: Value) -> Value:
        """Return 1 if a stage has nothing left to do in this step."""
        return ~at_work

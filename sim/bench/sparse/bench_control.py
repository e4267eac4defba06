"""cocotb bench of ``PipelineControl``: the sub-tensors of every step, refusals and resets.

Parameters: ``configuration``, a partial configuration of the unit ``sparse-control`` in the
catalogue; and ``count``, the number of passes of a round.
"""

from collections import Counter
from typing import Any

import cocotb

from vitruvian.golden.sparse.buffer import schedule
from vitruvian.hdl.catalogue import UNITS
from vitruvian.hdl.sparse.control import PipelineControl
from vitruvian.hdl.sparse.oei_config import Refusal
from vitruvian.sim.bench.harness import Harness, parameters
from vitruvian.sim.bench.scoreboard import Scoreboard
from vitruvian.sim.bench.stream import StreamDriver, StreamMonitor
from vitruvian.sim.rtl.emit import interface_of

_STAGES = ("os", "ewise", "is_")


def unit_of(values: dict[str, Any]) -> PipelineControl:
    """Return the control that a bench's parameters describe."""
    unit = UNITS["sparse-control"]
    control = unit.build(unit.default(values.get("configuration", {})))
    assert isinstance(control, PipelineControl)
    return control


class _Work:
    """The stages: each works for a random time after it has taken an index."""

    def __init__(self, bench: "_Bench"):
        self.bench = bench
        self.left: dict[str, int] = {}
        self.waiting = False
        self.refusal = Refusal.NONE
        #: Whether ``waiting`` is 1 in the first cycle of each step in which the last stage works,
        #: the number of such cycles, and the cycles since a stage was at work.
        self.at_start, self.pulses, self.idle = False, 0, 0

    def __str__(self) -> str:
        return f"stages at work: {self.left}"

    def drive(self) -> None:
        dut = self.bench.harness.dut
        for stage in _STAGES:
            getattr(dut, f"{stage.rstrip('_')}_done").value = int(self.left.get(stage) == 0)
        pulse = self.at_start and self.idle == 2 and self.bench.finished["ewise"] > 0
        self.pulses += pulse
        dut.waiting.value = int(self.waiting or pulse)
        dut.refusal.value = self.refusal.value

    def sample(self) -> None:
        for stage in list(self.left):
            if self.left[stage] == 0:
                del self.left[stage]
                self.bench.finished[stage] += 1
            else:
                self.left[stage] -= 1
        self.idle = 0 if self.left else self.idle + 1

    def reset(self) -> None:
        self.left.clear()
        self.waiting, self.refusal = False, Refusal.NONE
        self.drive()


class _Bench:
    """A control between a driver of commands and stages with random delays."""

    def __init__(self, dut: Any, stall: float):
        self.unit, self.count = unit_of(parameters()), parameters()["count"]
        face = interface_of(self.unit)
        self.harness = Harness(dut, face)
        self.boards = {
            stage: Scoreboard(stage, seed=self.harness.seed, digits=2) for stage in _STAGES
        }
        self.status = Scoreboard("status", seed=self.harness.seed, digits=1)
        self.work = _Work(self)
        #: The events before which no step may start, and those that have started and finished.
        self.steps: list[Counter[str]] = []
        self.started: Counter[str] = Counter()
        self.finished: Counter[str] = Counter()
        self.harness.agents.append(self.work)
        self.driver = StreamDriver(self.harness, face.streams_in[0], stall_rate=stall)
        for stream in face.streams_out:
            if stream.name in self.boards:
                StreamMonitor(
                    self.harness, stream, stall_rate=stall, received=self.receiver(stream.name)
                )
            else:
                StreamMonitor(self.harness, stream, stall_rate=stall, received=self.status.check)

    def receiver(self, stage: str) -> Any:
        """Return the function that receives a stage's index."""

        def receive(value: int, cycle: int) -> None:
            self.boards[stage].check(value, cycle)
            # All that belongs to earlier steps must have finished.
            need = self.before[stage].pop(0)
            for other, count in need.items():
                assert self.finished[other] >= count, (
                    f"{stage} must not start in cycle {cycle} before {other} has finished "
                    f"{count} sub-tensors, not {self.finished[other]} (seed {self.harness.seed})"
                )
            self.work.left[stage] = self.harness.rng.choice([0, 0, 1, 2, 7, 20])

        return receive

    def send(self, subs: list[int], *, status: Refusal = Refusal.NONE) -> None:
        """Queue passes over the given numbers of sub-tensors."""
        self.before: dict[str, list[Counter[str]]] = {stage: [] for stage in _STAGES}
        total = Counter(self.finished)
        for count in subs:
            self.driver.send([count - 1])
            for step in schedule(count):
                at_start = Counter(total)
                for stage, index in zip(_STAGES, step, strict=True):
                    if index is not None:
                        self.boards[stage].expect(index, f"sub-tensor of {stage}")
                        self.before[stage].append(at_start)
                        total[stage] += 1
            self.status.expect(status.value, "status")

    def forget(self) -> None:
        """Expect nothing any more, after a reset."""
        for board in (*self.boards.values(), self.status):
            board.forget()

    def random_subs(self) -> list[int]:
        """Return random numbers of sub-tensors."""
        return [self.harness.rng.randint(1, self.unit.config.subs) for _ in range(self.count)]

    async def drain(self) -> None:
        """Run until all passes have ended, and then for cycles in which nothing may come."""
        await self.harness.run_until(lambda: not self.status.queue, limit=1000 * self.count)
        await self.harness.step(40)
        for board in (*self.boards.values(), self.status):
            board.finish()


@cocotb.test()
async def passes(dut: Any) -> None:
    """Check the sub-tensors of every step, and that no stage starts before the step."""
    for stall in (0.0, 0.5):
        bench = _Bench(dut, stall)
        await bench.harness.start()
        bench.send([1, bench.unit.config.subs, *bench.random_subs()])
        await bench.drain()


@cocotb.test()
async def reset_in_mid_flight(dut: Any) -> None:
    """Check that a reset ends a pass."""
    bench = _Bench(dut, 0.2)
    await bench.harness.start()
    for _ in range(8):
        bench.send(bench.random_subs())
        await bench.harness.step(bench.harness.rng.randrange(1, 60))
        await bench.harness.reset(cycles=bench.harness.rng.randrange(1, 4))
        bench.forget()
    bench.send(bench.random_subs())
    await bench.drain()


@cocotb.test()
async def refusals(dut: Any) -> None:
    """Check that the pass ends with the reason, that no other one starts, and a reset helps."""
    bench = _Bench(dut, 0.2)
    await bench.harness.start()
    for reason in (Refusal.SPACE, Refusal.ROW, Refusal.BORDER):
        subs = bench.unit.config.subs
        bench.send([subs], status=reason)
        # A step takes at least three cycles, so the pass has not ended yet.
        await bench.harness.step(bench.harness.rng.randrange(3, 3 * (subs + 2)))
        if reason == Refusal.SPACE:
            # While the last stage is at work, it may free space, so that the control must wait.
            bench.work.waiting = True
        else:
            bench.work.refusal = reason
        await bench.harness.run_until(lambda: not bench.status.queue, limit=200)
        bench.status.finish()
        bench.driver.send([0])
        taken = bench.driver.sent
        await bench.harness.step(60)
        assert bench.driver.sent == taken, "a control that has stopped must take no command"
        await bench.harness.reset()
        bench.forget()
    bench.send(bench.random_subs())
    await bench.drain()


@cocotb.test()
async def waiting_for_space(dut: Any) -> None:
    """Check that a wait for space is no reason to refuse while the last stage is at work."""
    bench = _Bench(dut, 0.0)
    await bench.harness.start()
    bench.send([bench.unit.config.subs])
    await bench.harness.run_until(lambda: "is_" in bench.work.left, limit=2000)
    bench.work.left["is_"] = 50
    bench.work.waiting = True
    await bench.harness.step(45)
    assert bench.status.queue, "the control must wait for the stage that frees space"
    bench.work.waiting = False
    await bench.drain()


@cocotb.test()
async def waiting_as_a_step_begins(dut: Any) -> None:
    """Check that a wait is no reason to refuse before the last stage has taken its sub-tensor."""
    bench = _Bench(dut, 0.0)
    await bench.harness.start()
    bench.work.at_start = True
    bench.send([bench.unit.config.subs])
    await bench.drain()
    # The last of these cycles is behind the pass.
    assert bench.work.pulses == bench.unit.config.subs + 1, bench.work.pulses

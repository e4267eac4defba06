"""cocotb bench of ``PipelineControl``: the sub-tensors of every step, refusals and resets.

Parameters: ``configuration``, a partial configuration of the unit ``sparse-control`` in the
catalogue; and ``count``, the number of passes of a round.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import cocotb

from vitruvian.golden.sparse.buffer import schedule
from vitruvian.hdl.sparse.control import PipelineControl
from vitruvian.hdl.sparse.oei_config import Refusal
from vitruvian.sim.bench.stream_bench import (
    StreamBench,
    from_catalogue,
    random_resets,
)
from vitruvian.sim.rtl.ports import Stream

_STAGES = ("os", "ewise", "is_")

unit_of = from_catalogue("sparse-control", PipelineControl)


class _StageWork:
    """The stages: each works for a random time after it has taken an index."""

    def __init__(self, bench: "ControlBench"):
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


class ControlBench(StreamBench[list[int]]):
    """A control between a driver of commands and stages with random delays.

    Attributes
    ----------
    before : dict of str to list of Counter
        For each index that a stage is to get: what must have finished before.
    finished : Counter
        Number of sub-tensors that each stage has finished.
    """

    unit_of = staticmethod(unit_of)

    def surround(self, streams: Mapping[str, Stream]) -> None:
        """Add the stages."""
        self.work = _StageWork(self)
        self.before: dict[str, list[Counter[str]]] = {}
        self.finished: Counter[str] = Counter()
        self.harness.agents.append(self.work)

    def stimuli(self, count: int | None = None) -> list[int]:
        """Return random numbers of sub-tensors, one for each pass."""
        passes = range(count or self.count)
        return [self.harness.rng.randint(1, self.config.subs) for _ in passes]

    def items(self, traffic: list[int]) -> dict[str, Any]:
        """Return the commands."""
        return {"command": [count - 1 for count in traffic]}

    def expect(self, traffic: list[int], status: Refusal = Refusal.NONE) -> None:
        """Expect the sub-tensors of each step, and the end of each pass."""
        self.before = {stage: [] for stage in _STAGES}
        total = Counter(self.finished)
        for count in traffic:
            for step in schedule(count):
                at_start = Counter(total)
                for stage, index in zip(_STAGES, step, strict=True):
                    if index is not None:
                        self.boards[stage].expect(index, f"sub-tensor of {stage}")
                        self.before[stage].append(at_start)
                        total[stage] += 1
            self.boards["status"].expect(status.value, "status")

    def refuse(self, subs: int, status: Refusal) -> None:
        """Send a pass that ends with a refusal."""
        self.drivers["command"].send([subs - 1])
        self.expect([subs], status)

    def busy(self) -> bool:
        """Return True until the last pass has ended."""
        return bool(self.boards["status"].queue)

    def receive(self, name: str, value: Any, cycle: int) -> None:
        """Let a stage work on its sub-tensor, if all of the earlier steps have finished."""
        super().receive(name, value, cycle)
        if name not in _STAGES:
            return
        for other, count in self.before[name].pop(0).items():
            assert self.finished[other] >= count, (
                f"{name} must not start in cycle {cycle} before {other} has finished "
                f"{count} sub-tensors, not {self.finished[other]} (seed {self.harness.seed})"
            )
        self.work.left[name] = self.harness.rng.choice([0, 0, 1, 2, 7, 20])


@cocotb.test()
async def passes(dut: Any) -> None:
    """Check the sub-tensors of every step, and that no stage starts before the step."""
    for stall in (0.0, 0.5):
        bench = ControlBench(dut, inputs=stall, outputs=stall)
        await bench.start()
        bench.send([1, bench.config.subs, *bench.stimuli()])
        await bench.drain()


@cocotb.test()
async def reset_in_mid_flight(dut: Any) -> None:
    """Check that a reset ends a pass."""
    await random_resets(ControlBench(dut, inputs=0.2, outputs=0.2), cycles=(1, 60))


@cocotb.test()
async def refusals(dut: Any) -> None:
    """Check that the pass ends with the reason, that no other one starts, and a reset helps."""
    bench = ControlBench(dut, inputs=0.2, outputs=0.2)
    driver, subs = bench.drivers["command"], bench.config.subs
    await bench.start()
    for reason in (Refusal.SPACE, Refusal.ROW, Refusal.BORDER):
        bench.refuse(subs, reason)
        # A step takes at least three cycles, so the pass has not ended yet.
        await bench.harness.step(bench.harness.rng.randrange(3, 3 * (subs + 2)))
        if reason == Refusal.SPACE:
            # While the last stage is at work, it may free space, so that the control must wait.
            bench.work.waiting = True
        else:
            bench.work.refusal = reason
        await bench.harness.run_until(lambda: not bench.busy(), limit=200)
        bench.boards["status"].finish()
        driver.send([0])
        sent = driver.sent
        await bench.harness.step(60)
        assert driver.sent == sent, "a control that has stopped must take no command"
        await bench.reset()
    bench.send(bench.stimuli())
    await bench.drain()


@cocotb.test()
async def waiting_for_space(dut: Any) -> None:
    """Check that a wait for space is no reason to refuse while the last stage is at work."""
    bench = ControlBench(dut)
    await bench.start()
    bench.send([bench.config.subs])
    await bench.harness.run_until(lambda: "is_" in bench.work.left, limit=2000)
    bench.work.left["is_"] = 50
    bench.work.waiting = True
    await bench.harness.step(45)
    assert bench.busy(), "the control must wait for the stage that frees space"
    bench.work.waiting = False
    await bench.drain()


@cocotb.test()
async def waiting_as_a_step_begins(dut: Any) -> None:
    """Check that a wait is no reason to refuse before the last stage has taken its sub-tensor."""
    bench = ControlBench(dut)
    await bench.start()
    bench.work.at_start = True
    bench.send([bench.config.subs])
    await bench.drain()
    # The last of these cycles is behind the pass.
    assert bench.work.pulses == bench.config.subs + 1, bench.work.pulses

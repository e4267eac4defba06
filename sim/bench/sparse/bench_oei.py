"""cocotb bench of ``OEIPipeline``: stalls, resets, matrices that do not fit, and wrong beats.

Parameters: ``configuration``, a partial configuration of the unit ``sparse-oei`` in the catalogue;
and ``count``, the number of passes of a round.
"""

from typing import Any

import cocotb
import numpy as np

from vitruvian.golden.sparse.buffer import csc_beats, csr_beats
from vitruvian.hdl.catalogue import UNITS
from vitruvian.hdl.sparse.oei import OEIPipeline
from vitruvian.hdl.sparse.oei_config import Refusal
from vitruvian.sim.bench.harness import Harness, parameters
from vitruvian.sim.bench.scoreboard import Scoreboard
from vitruvian.sim.bench.stream import StreamDriver, StreamMonitor
from vitruvian.sim.rtl.emit import interface_of

from .passes import Pass, commands, csc_payload, random_passes

#: The stall rates of the inputs and the outputs in the rounds of a test.
_ROUNDS = ((0.0, 0.0), (0.6, 0.0), (0.0, 0.6), (0.3, 0.3))


def unit_of(values: dict[str, Any]) -> OEIPipeline:
    """Return the pipeline that a bench's parameters describe."""
    unit = UNITS["sparse-oei"]
    pipeline = unit.build(unit.default(values.get("configuration", {})))
    assert isinstance(pipeline, OEIPipeline)
    return pipeline


def _items(payload: Any) -> list[Any]:
    """Return a payload of arrays as a list of one value for each beat."""
    if isinstance(payload, dict):
        parts = {name: _items(value) for name, value in payload.items()}
        count = len(next(iter(parts.values())))
        return [{name: part[t] for name, part in parts.items()} for t in range(count)]
    return np.asarray(payload).tolist()


def _present(values: Any, present: Any) -> list[int | None]:
    """Return an item of the element-wise core; the values of other lanes are undefined."""
    return [value if there else None for value, there in zip(values, present, strict=True)]


class _Bench:
    """A pipeline between drivers of commands and beats and monitors of z, y and the status."""

    def __init__(self, dut: Any, stalls: tuple[float, float]):
        self.unit, self.count = unit_of(parameters()), parameters()["count"]
        self.config = self.unit.config
        face = interface_of(self.unit)
        self.harness = Harness(dut, face)
        self.rng = np.random.default_rng(self.harness.rng.getrandbits(32))
        digits = self.config.number.storage_bits // 4
        self.drivers = {
            stream.name: StreamDriver(self.harness, stream, stall_rate=stalls[0])
            for stream in face.streams_in
        }
        self.boards: dict[str, Scoreboard] = {}
        for stream in face.streams_out:
            board = Scoreboard(stream.name, seed=self.harness.seed, digits=digits)
            self.boards[stream.name] = board
            StreamMonitor(self.harness, stream, stall_rate=stalls[1], received=self.receiver(board))

    def receiver(self, board: Scoreboard) -> Any:
        """Return the function that receives a stream's items."""

        def receive(value: Any, cycle: int) -> None:
            if isinstance(value, dict):
                lanes = [value["present"] >> k & 1 for k in range(self.config.lanes)]
                value = _present(value["values"], lanes)
            board.check(value, cycle)

        return receive

    def send(self, passes: list[Pass], status: Refusal = Refusal.NONE) -> None:
        """Queue passes, and what golden expects; ``status`` is the end of a last refused pass."""
        c = self.config
        self.drivers["command"].send(commands(passes, c))
        for each in passes:
            beats = csc_beats(each.columns, c.lanes, c.columns)
            self.drivers["i"].send(_items(csc_payload([beats], c)))
            self.drivers["v"].send(each.v.tolist())
            plan = csr_beats(each.columns, c.lanes, c.columns, c.capacity)
            # In the step that is refused, the element-wise core finishes the sub-tensor before.
            per_sub = c.columns // c.lanes
            ends = len(each.z) if plan.refused_at is None else plan.refused_at * per_sub
            # A body stores the same number of items in each step, and an epilogue a few more.
            share = ends * (len(each.w) // len(each.z)) if each.refused else len(each.w)
            for name, end in (("z", ends), ("w", share)):
                values = getattr(each, name)[:end].tolist()
                present = getattr(each, f"{name}_present")[:end].tolist()
                for value, lanes in zip(values, present, strict=True):
                    self.boards[name].expect(_present(value, lanes), f"item of {name}")
            if not each.refused:
                for group in each.y.reshape(-1, c.lanes).tolist():
                    self.boards["y"].expect(group, "group of y")
            self.boards["status"].expect(status.value if each.refused else 0, "status")

    def forget(self) -> None:
        """Expect nothing any more, after a reset."""
        for board in self.boards.values():
            board.forget()

    async def drain(self) -> None:
        """Run until all results have come, and then for cycles in which none may come."""
        limit = 40 * sum(len(driver.queue) for driver in self.drivers.values()) + 2000
        await self.harness.run_until(
            lambda: not any(board.queue for board in self.boards.values()), limit=limit
        )
        await self.harness.step(40)
        for board in self.boards.values():
            board.finish(at_least=0)


@cocotb.test()
async def random_traffic(dut: Any) -> None:
    """Run random passes while the inputs, the outputs or both stall."""
    for stalls in _ROUNDS:
        bench = _Bench(dut, stalls)
        await bench.harness.start()
        bench.send(random_passes(bench.rng, bench.config, bench.count))
        await bench.drain()
        assert bench.boards["y"].checked, "some results must have come"


@cocotb.test()
async def reset_in_mid_flight(dut: Any) -> None:
    """Check that a reset leaves an empty pipeline in any step of a pass."""
    bench = _Bench(dut, (0.1, 0.3))
    await bench.harness.start()
    for _ in range(8):
        bench.send(random_passes(bench.rng, bench.config, bench.count))
        await bench.harness.step(bench.harness.rng.randrange(1, 600))
        await bench.harness.reset(cycles=bench.harness.rng.randrange(1, 4))
        bench.forget()
    assert bench.boards["z"].checked, "some results must have come before the resets"
    bench.send(random_passes(bench.rng, bench.config, bench.count))
    await bench.drain()


@cocotb.test()
async def matrices_that_do_not_fit(dut: Any) -> None:
    """Check that a pass ends with SPACE exactly if golden says so, and that a reset helps."""
    bench = _Bench(dut, (0.1, 0.1))
    await bench.harness.start()
    for _ in range(max(bench.count // 2, 3)):
        bench.send(random_passes(bench.rng, bench.config, 1, refused=True), Refusal.SPACE)
        await bench.drain()
        await bench.harness.reset()
        bench.forget()
    bench.send(random_passes(bench.rng, bench.config, bench.count))
    await bench.drain()


@cocotb.test()
async def wrong_beats(dut: Any) -> None:
    """Check the refusal of a row with too many elements, and of a beat with two sub-tensors."""
    bench = _Bench(dut, (0.0, 0.0))
    c = bench.config
    await bench.harness.start()
    for reason in (Refusal.ROW, Refusal.BORDER):
        given = random_passes(bench.rng, c, 1)[0]
        sent = commands([given], c)
        if reason == Refusal.ROW:
            columns = [[(1, 0)], *([] for _ in range(c.columns - 1))]
            for item in sent:
                item["counts"] = [0] * c.lanes
            beats = _items(csc_payload([csc_beats(columns, c.lanes, c.columns)], c))
        else:
            # One column too many, so that a mark follows that of the sub-tensor's last column.
            columns = [[] for _ in range(c.columns + 1)]
            beats = _items(csc_payload([csc_beats(columns, c.lanes, 2 * c.columns)], c))
            beats[-2], beats[-1] = beats[-1], beats[-2]
        bench.drivers["command"].send(sent)
        bench.drivers["v"].send(given.v.tolist())
        bench.drivers["i"].send(beats)
        bench.boards["status"].expect(reason.value, "status")
        await bench.drain()
        await bench.harness.reset()
        bench.forget()
    bench.send(random_passes(bench.rng, c, bench.count))
    await bench.drain()

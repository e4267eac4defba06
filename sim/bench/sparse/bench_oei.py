"""cocotb bench of ``OEIPipeline``: stalls, resets, matrices that do not fit, and wrong beats.

Parameters: ``configuration``, a partial configuration of the unit ``sparse-oei`` in the catalogue;
and ``count``, the number of passes of a round.
"""

from typing import Any

import cocotb
import numpy as np

from vitruvian.golden.sparse.buffer import csc_beats, csr_beats
from vitruvian.hdl.sparse.oei import OEIPipeline
from vitruvian.hdl.sparse.oei_config import Refusal
from vitruvian.sim.bench.stream_bench import (
    StreamBench,
    from_catalogue,
    random_resets,
    random_rounds,
)

from .passes import Pass, commands, csc_payload, random_passes

unit_of = from_catalogue("sparse-oei", OEIPipeline)


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


class OEIBench(StreamBench[list[Pass]]):
    """A pipeline between drivers of commands and beats and monitors of z, y and the status."""

    unit_of = staticmethod(unit_of)

    def stimuli(self, count: int | None = None, *, refused: bool = False) -> list[Pass]:
        """Return random passes; the matrices of ``refused`` ones do not fit into the buffer."""
        return random_passes(self.rng, self.config, count or self.count, refused=refused)

    def items(self, traffic: list[Pass]) -> dict[str, Any]:
        """Return the commands, the beats of the matrices, and the vectors."""
        c = self.config
        beats = [csc_beats(each.columns, c.lanes, c.columns) for each in traffic]
        return {
            "command": commands(traffic, c),
            "i": [item for each in beats for item in _items(csc_payload([each], c))],
            "v": [group for each in traffic for group in each.v.tolist()],
        }

    def expect(self, traffic: list[Pass]) -> None:
        """Expect the results of passes; a pass whose matrix does not fit ends with SPACE."""
        c = self.config
        for each in traffic:
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
            status = Refusal.SPACE if each.refused else Refusal.NONE
            self.boards["status"].expect(status.value, "status")

    def busy(self) -> bool:
        """Return True while results are to come; a refused pass leaves items untaken."""
        return bool(self.outstanding())

    def compared(self, name: str, value: Any) -> Any:
        """Return the elements of an item that are present, or the value of another output."""
        if not isinstance(value, dict):
            return value
        return _present(
            value["values"], [value["present"] >> k & 1 for k in range(self.config.lanes)]
        )


@cocotb.test()
async def random_traffic(dut: Any) -> None:
    """Run random passes while the inputs, the outputs or both stall."""
    await random_rounds(OEIBench, dut)


@cocotb.test()
async def reset_in_mid_flight(dut: Any) -> None:
    """Check that a reset leaves an empty pipeline in any step of a pass."""
    await random_resets(OEIBench(dut, inputs=0.1, outputs=0.3), cycles=(1, 600))


@cocotb.test()
async def matrices_that_do_not_fit(dut: Any) -> None:
    """Check that a pass ends with SPACE exactly if golden says so, and that a reset helps."""
    bench = OEIBench(dut, inputs=0.1, outputs=0.1)
    await bench.start()
    for _ in range(max(bench.count // 2, 3)):
        bench.send(bench.stimuli(1, refused=True))
        await bench.drain()
        await bench.reset()
    bench.send(bench.stimuli())
    await bench.drain()


@cocotb.test()
async def wrong_beats(dut: Any) -> None:
    """Check the refusal of a row with too many elements, and of a beat with two sub-tensors."""
    bench = OEIBench(dut)
    c = bench.config
    await bench.start()
    for reason in (Refusal.ROW, Refusal.BORDER):
        one = bench.stimuli(1)[0]
        sent = commands([one], c)
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
        for name, items in (("command", sent), ("v", one.v.tolist()), ("i", beats)):
            bench.drivers[name].send(items)
        bench.boards["status"].expect(reason.value, "status")
        await bench.drain()
        await bench.reset()
    bench.send(bench.stimuli())
    await bench.drain()

"""cocotb bench of ``EwiseCore``: stalls, resets, and the cycle of every command and item.

Parameters: ``configuration``, a partial configuration of the unit ``sparse-ewise`` in the
catalogue; and ``count``, the number of random steps of a round.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import cocotb
import numpy as np

from vitruvian.golden.sparse.programs import (
    INPUTS,
    OUTPUTS,
    ProgramStep,
    ProgramWrite,
    SparseInstruction,
    run,
)
from vitruvian.hdl.catalogue import UNITS
from vitruvian.hdl.sparse import EwiseCore
from vitruvian.sim.bench.harness import Harness, parameters
from vitruvian.sim.bench.scoreboard import Scoreboard
from vitruvian.sim.bench.stream import StreamDriver, StreamMonitor
from vitruvian.sim.rtl.emit import interface_of

from .ewise_traffic import EwiseTraffic, command_items, random_traffic

#: The stall rates of the inputs and the outputs in the rounds of a test.
_ROUNDS = ((0.0, 0.0), (0.7, 0.0), (0.0, 0.7), (0.4, 0.4))


def unit_of(values: dict[str, Any]) -> EwiseCore:
    """Return the core that a bench's parameters describe."""
    unit = UNITS["sparse-ewise"]
    core = unit.build(unit.default(values.get("configuration", {})))
    assert isinstance(core, EwiseCore)
    return core


class _Bench:
    """A core between drivers and monitors."""

    def __init__(self, dut: Any, stalls: tuple[float, float]):
        self.unit, self.count = unit_of(parameters()), parameters()["count"]
        self.config = self.unit.config
        face = interface_of(self.unit)
        self.harness = Harness(dut, face)
        self.rng = np.random.default_rng(self.harness.rng.getrandbits(32))
        digits = self.config.number.storage_bits // 4
        self.starts: list[int] = []  # the cycle in which the core took each command
        self.ends: dict[str, list[int]] = {name: [] for name in OUTPUTS}
        by_name = {stream.name: stream for stream in (*face.streams_in, *face.streams_out)}
        self.commands = StreamDriver(
            self.harness,
            by_name["command"],
            stall_rate=stalls[0],
            taken=lambda _: self.starts.append(self.harness.cycle),
        )
        self.vectors = {
            name: StreamDriver(self.harness, by_name[name], stall_rate=stalls[0]) for name in INPUTS
        }
        self.boards: dict[str, Scoreboard] = {}
        for name in OUTPUTS:
            self.boards[name] = Scoreboard(name, seed=self.harness.seed, digits=digits)
            StreamMonitor(
                self.harness,
                by_name[name],
                stall_rate=stalls[1],
                received=lambda value, cycle, name=name: self.receive(name, value, cycle),
            )

    def receive(self, name: str, value: Any, cycle: int) -> None:
        """Compare an item of an output stream."""
        self.ends[name].append(cycle)
        self.boards[name].check([*value["values"], value["present"]], cycle)

    def send(self, traffic: EwiseTraffic) -> None:
        """Queue commands, vectors, and the items that golden expects."""
        self.commands.send(command_items(traffic.commands))
        for name in INPUTS:
            self.vectors[name].send(traffic.inputs[name].tolist())
        for name in OUTPUTS:
            masks = traffic.present[name] @ (1 << np.arange(self.config.lanes))
            for n, (row, mask) in enumerate(zip(traffic.values[name], masks, strict=True)):
                self.boards[name].expect([*row.tolist(), int(mask)], f"store {n}")

    def random(self, count: int) -> EwiseTraffic:
        return random_traffic(self.rng, self.config, count)

    async def drain(self) -> None:
        """Run until all items have come, and then for cycles in which none may come."""
        waiting = {name: len(board.queue) for name, board in self.boards.items()}
        limit = 200 * (len(self.commands.queue) + 20)
        await self.harness.run_until(
            lambda: not any(board.queue for board in self.boards.values()), limit=limit
        )
        await self.harness.step(40)
        for name, board in self.boards.items():
            board.finish(at_least=waiting[name])


@cocotb.test()
async def random_programs(dut: Any) -> None:
    """Run random programs while the inputs, the outputs or both stall."""
    for stalls in _ROUNDS:
        bench = _Bench(dut, stalls)
        await bench.harness.start()
        bench.send(bench.random(bench.count))
        await bench.drain()


def _program(store: dict[int, SparseInstruction], address: int) -> list[SparseInstruction]:
    """Return the program that begins at an address."""
    program = [store[address]]
    while not program[-1].end:
        address += 1
        program.append(store[address])
    return program


def _executed(
    commands: Sequence[ProgramWrite | ProgramStep], starts: list[int], end: int
) -> tuple[list[ProgramWrite | ProgramStep], bool]:
    """Return commands that do what the core has done at a reset.

    Parameters
    ----------
    starts : list of int
        Cycle in which the core took each of the first commands.
    end : int
        The first of two cycles in which the inputs offer nothing and the outputs take nothing. The
        second one is the reset. Without stalls, each cycle before them executes an instruction.

    Returns
    -------
    done : list of ProgramWrite or ProgramStep
    cut : bool
        True if a program was cut off.
    """
    done: list[ProgramWrite | ProgramStep] = []
    store: dict[int, SparseInstruction] = {}
    cut = False
    for command, start in zip(commands, starts, strict=False):
        if isinstance(command, ProgramWrite):
            store[command.address] = command.instruction
            done.append(command)
            continue
        program = _program(store, command.address)
        count = min(len(program), end - start - 1)
        last = program[count - 1] if count else None
        full = {last.d} if last is not None and last.op == "store" else set[int]()
        for i in program[count : count + 2]:
            if i.op == "load" or (i.op == "store" and i.d in full):
                break
            full |= {i.d} if i.op == "store" else set()
            count += 1
        count = min(count, len(program))
        cut = count < len(program)
        if not cut:
            done.append(command)
        elif count:
            # The part becomes a program of its own.
            at = command.address + count - 1
            done += [
                ProgramWrite(address=at, instruction=replace(program[count - 1], end=True)),
                command,
            ]
            done.append(ProgramWrite(address=at, instruction=program[count - 1]))
    return done, cut


@cocotb.test()
async def reset_in_mid_flight(dut: Any) -> None:
    """Check that a reset stops a program, and leaves the registers as they are.

    After each reset, a program stores all registers.
    """
    bench = _Bench(dut, (0.0, 0.0))
    await bench.harness.start()
    config, cuts = bench.config, 0
    for _ in range(12):
        traffic = bench.random(bench.count)
        bench.starts.clear()
        bench.send(traffic)
        # The commands before the second step write the store and load all registers.
        least = next(n for n, c in enumerate(traffic.commands) if isinstance(c, ProgramStep))
        least += config.registers + 2
        await bench.harness.step(least + bench.harness.rng.randrange(4 * bench.count))
        end = bench.harness.cycle
        await bench.harness.reset(cycles=bench.harness.rng.randrange(1, 4))
        for board in bench.boards.values():
            board.forget()
        done, cut = _executed(traffic.commands, bench.starts, end)
        cuts += cut
        blank = np.zeros((config.registers, config.lanes), traffic.inputs["x"].dtype)
        outcome = run(done, blank, traffic.inputs, config.format)
        everyone = np.ones(config.lanes, bool)
        dump: list[ProgramWrite | ProgramStep] = []
        for n in range(config.registers):
            store = SparseInstruction(op="store", d=1, a=n, end=n == config.registers - 1)
            dump.append(ProgramWrite(address=n, instruction=store))
        dump.append(ProgramStep(address=0, present=everyone))
        left = run(dump, outcome.registers, {}, config.format)
        bench.send(
            EwiseTraffic(
                commands=dump,
                inputs=dict.fromkeys(INPUTS, blank[:0]),
                values=left.values,
                present=left.present,
                count=left.count,
            )
        )
        await bench.drain()
    assert cuts > 2, "some resets must have stopped a program"


@cocotb.test()
async def full_rate(dut: Any) -> None:
    """Check the cycle in which the core takes each command, and that of every item."""
    bench = _Bench(dut, (0.0, 0.0))
    await bench.harness.start()
    traffic = bench.random(bench.count)
    bench.send(traffic)
    await bench.drain()
    cycle = bench.starts[0]
    starts: list[int] = []
    ends: dict[str, list[int]] = {name: [] for name in OUTPUTS}
    store: dict[int, SparseInstruction] = {}
    for command in traffic.commands:
        starts.append(cycle)
        if isinstance(command, ProgramWrite):
            store[command.address] = command.instruction
            cycle += 1
            continue
        program = _program(store, command.address)
        for n, i in enumerate(program):
            if i.op == "store":
                ends[OUTPUTS[i.d]].append(cycle + n + bench.unit.latency)
        cycle += len(program)
    assert bench.starts == starts, "the core must take every command in its cycle"
    assert bench.ends == ends, "every item must come in its cycle"

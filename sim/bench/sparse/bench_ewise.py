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
from vitruvian.hdl.sparse import EwiseCore
from vitruvian.sim.bench.stream_bench import StreamBench, from_catalogue, random_rounds

from .ewise_traffic import EwiseTraffic, command_items, random_traffic

unit_of = from_catalogue("sparse-ewise", EwiseCore)


class EwiseBench(StreamBench[EwiseTraffic]):
    """An element-wise core between drivers of commands and vectors and monitors of its stores."""

    unit_of = staticmethod(unit_of)

    def stimuli(self, count: int | None = None) -> EwiseTraffic:
        """Return random programs and their operands."""
        return random_traffic(self.rng, self.config, count or self.count)

    def items(self, traffic: EwiseTraffic) -> dict[str, Any]:
        """Return the commands, and the vectors that the programs load."""
        vectors = {name: traffic.inputs[name].tolist() for name in INPUTS}
        return {"command": command_items(traffic.commands), **vectors}

    def expect(self, traffic: EwiseTraffic) -> None:
        """Expect the vectors that the programs store."""
        for name in OUTPUTS:
            masks = traffic.present[name] @ (1 << np.arange(self.config.lanes))
            for n, (row, mask) in enumerate(zip(traffic.values[name], masks, strict=True)):
                self.boards[name].expect([*row.tolist(), int(mask)], f"store {n}")

    def compared(self, name: str, value: Any) -> list[int]:
        """Return the elements of a vector, and which of them are present."""
        return [*value["values"], value["present"]]


@cocotb.test()
async def random_programs(dut: Any) -> None:
    """Run random programs while the inputs, the outputs or both stall."""
    await random_rounds(EwiseBench, dut)


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
    bench = EwiseBench(dut)
    await bench.start()
    config, cuts = bench.config, 0
    for _ in range(12):
        traffic = bench.stimuli()
        bench.send(traffic)
        # The commands before the second step write the store and load all registers.
        earliest = next(n for n, c in enumerate(traffic.commands) if isinstance(c, ProgramStep))
        earliest += config.registers + 2
        await bench.harness.step(earliest + bench.harness.rng.randrange(4 * bench.count))
        end, starts = bench.harness.cycle, bench.taken["command"].copy()
        await bench.reset()
        done, cut = _executed(traffic.commands, starts, end)
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
        bench.forget()
    assert cuts > 2, "some resets must have stopped a program"


@cocotb.test()
async def full_rate(dut: Any) -> None:
    """Check the cycle in which the core takes each command, and that of every item."""
    bench = EwiseBench(dut)
    await bench.start()
    traffic = bench.stimuli()
    bench.send(traffic)
    await bench.drain()
    cycle = bench.taken["command"][0]
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
    assert bench.taken["command"] == starts, "the core must take every command in its cycle"
    assert bench.given == ends, "every item must come in its cycle"

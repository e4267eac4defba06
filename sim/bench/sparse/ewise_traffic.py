"""Random programs and vectors for the benches of the element-wise core."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vitruvian.golden.sparse.names import OPERATIONS
from vitruvian.golden.sparse.programs import (
    INPUTS,
    OUTPUTS,
    ProgramStep,
    ProgramWrite,
    SparseInstruction,
    run,
)
from vitruvian.hdl.sparse import EwiseConfig

from .traffic import codes


@dataclass(frozen=True, kw_only=True)
class EwiseTraffic:
    """Commands, the items of the input streams, and the outputs that golden expects.

    Attributes
    ----------
    commands : sequence of ProgramWrite or ProgramStep
    inputs : dict of str to (T, N) ndarray of unsigned int
    values, present : dict of str to (S, N) ndarray
        Items of the output streams.
    count : int
        Number of executed instructions.
    """

    commands: Sequence[ProgramWrite | ProgramStep]
    inputs: dict[str, np.ndarray]
    values: dict[str, np.ndarray]
    present: dict[str, np.ndarray]
    count: int


def _bits(present: np.ndarray) -> int:
    """Return a mask of lanes as a number."""
    return sum(1 << k for k in np.flatnonzero(present).tolist())


def command_items(commands: Sequence[ProgramWrite | ProgramStep]) -> list[dict[str, Any]]:
    """Return commands as items of the core's stream ``command``."""
    items: list[dict[str, Any]] = []
    for command in commands:
        write = isinstance(command, ProgramWrite)
        # The core ignores the instruction of a step.
        i = command.instruction if write else SparseInstruction(op="load")
        items.append(
            {
                "kind": int(write),
                "address": command.address,
                "present": 0 if isinstance(command, ProgramWrite) else _bits(command.present),
                "instruction": {
                    "op": OPERATIONS.index(i.op),
                    "d": i.d,
                    "a": i.a,
                    "b": i.b,
                    "end": int(i.end),
                },
            }
        )
    return items


def commands_payload(commands: Sequence[ProgramWrite | ProgramStep]) -> dict[str, Any]:
    """Return commands as the payload of an array of items."""
    items = command_items(commands)
    payload: dict[str, Any] = {
        name: np.array([item[name] for item in items], np.uint64)
        for name in ("kind", "address", "present")
    }
    payload["instruction"] = {
        name: np.array([item["instruction"][name] for item in items], np.uint64)
        for name in ("op", "d", "a", "b", "end")
    }
    return payload


def _random_instruction(rng: np.random.Generator, config: EwiseConfig) -> SparseInstruction:
    """Return a random instruction that does not end its program.

    Stores are frequent, because they show the registers to the comparison. So are loads, because
    computed numbers are seldom NaNs.
    """
    kind = rng.random()
    op = "store" if kind < 0.2 else "load" if kind < 0.35 else str(rng.choice(OPERATIONS))
    registers = config.registers
    d, a, b = (int(n) for n in rng.integers(0, registers, 3))
    if op == "exchange":
        # Distances beyond the lanes are allowed as well.
        b = int(rng.integers(0, min(config.lanes.bit_length() + 1, registers)))
    # This field of a load or a store names one of two streams and no register.
    if op == "load":
        a = int(rng.integers(2))
    if op == "store":
        d = int(rng.integers(2))
    return SparseInstruction(op=op, d=d, a=a, b=b)


def _programs(
    rng: np.random.Generator, config: EwiseConfig, start: int
) -> tuple[list[ProgramWrite], list[int]]:
    """Return writes that fill the store from an address, and addresses in the store."""
    writes: list[ProgramWrite] = []
    size = config.instructions - start
    # Programs have five instructions on average; the last one must end within the store.
    ends = rng.random(size) < 0.2
    ends[-1] = True
    for offset in range(size):
        i = _random_instruction(rng, config)
        i = SparseInstruction(op=i.op, d=i.d, a=i.a, b=i.b, end=bool(ends[offset]))
        writes.append(ProgramWrite(address=start + offset, instruction=i))
    # A step may begin in the middle of a program.
    return writes, [start + int(n) for n in rng.integers(0, size, 8)]


def _mask(rng: np.random.Generator, lanes: int) -> np.ndarray:
    """Return the lanes of a step: all, the first ones, or any."""
    kind = rng.random()
    if kind < 0.5:
        return np.ones(lanes, bool)
    if kind < 0.75:
        return np.arange(lanes) < rng.integers(0, lanes + 1)
    return rng.random(lanes) < 0.5


def random_traffic(
    rng: np.random.Generator, config: EwiseConfig, steps: int, *, reload: int = 12
) -> EwiseTraffic:
    """Return random programs, steps and vectors.

    The first program loads every register, and a last one stores every register. Short ones with an
    exchange over each distance follow the first. After them, the rest of the store is written again
    from time to time.

    Parameters
    ----------
    config : EwiseConfig
        The store must have more than two instructions for each register.
    steps : int
        Number of steps of random programs.
    reload : int
        Steps after which the store is written again.
    """
    r, everyone = config.registers, np.ones(config.lanes, bool)
    commands: list[ProgramWrite | ProgramStep] = []
    for n in range(r):
        last = n == r - 1
        load = SparseInstruction(op="load", d=n, a=n % 2, end=last)
        save = SparseInstruction(op="store", d=1, a=n, end=last)
        commands += [
            ProgramWrite(address=n, instruction=load),
            ProgramWrite(address=r + n, instruction=save),
        ]
    commands.append(ProgramStep(address=0, present=everyone))
    # Every distance of an exchange occurs, also one beyond the lanes.
    for n in range(min(config.lanes.bit_length() + 1, r)):
        exchange = SparseInstruction(op="exchange", d=0, a=r - 1, b=n)
        save = SparseInstruction(op="store", d=0, a=0, end=True)
        commands += [
            ProgramWrite(address=2 * r, instruction=exchange),
            ProgramWrite(address=2 * r + 1, instruction=save),
            ProgramStep(address=2 * r, present=everyone),
        ]
    entries: list[int] = []
    for n in range(steps):
        if n % reload == 0:
            writes, entries = _programs(rng, config, 2 * r)
            commands += writes
        address = int(rng.choice(entries))
        commands.append(ProgramStep(address=address, present=_mask(rng, config.lanes)))
    commands.append(ProgramStep(address=r, present=everyone))
    # A vector for each load that the steps run, so that no input is left.
    loads = _loads(commands)
    inputs = {
        name: codes(rng, (loads[n], config.lanes), config.format) for n, name in enumerate(INPUTS)
    }
    # The first program loads all registers, so the start is never seen.
    start = np.zeros((r, config.lanes), inputs["x"].dtype)
    outcome = run(commands, start, inputs, config.format)
    assert set(outcome.values) == set(OUTPUTS)
    return EwiseTraffic(
        commands=commands,
        inputs=inputs,
        values=outcome.values,
        present=outcome.present,
        count=outcome.count,
    )


def _loads(commands: Sequence[ProgramWrite | ProgramStep]) -> list[int]:
    """Return the number of loads from each input stream."""
    store: dict[int, SparseInstruction] = {}
    counts = [0] * len(INPUTS)
    for command in commands:
        if isinstance(command, ProgramWrite):
            store[command.address] = command.instruction
            continue
        address, end = command.address, False
        while not end:
            i = store[address]
            if i.op == "load":
                counts[i.a] += 1
            address, end = address + 1, i.end
    return counts

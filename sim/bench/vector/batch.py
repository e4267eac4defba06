"""Batch checks of the vector unit, which compare compiled RTL under stalls with golden.vector."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from vitruvian.common.validate import ceil_div
from vitruvian.hdl.catalogue import UNITS
from vitruvian.hdl.catalogue.vector import vector_config
from vitruvian.hdl.vector import Operation, Rounding, VectorConfig, VectorUnit
from vitruvian.sim.rtl import CompiledModel, compile_unit
from vitruvian.sim.verify.check import Check
from vitruvian.sim.verify.compare import Result, compare

from .expected import BlockWrite, VectorCommand, VectorMachine
from .stimuli import every_fp16, make_commands

#: Commands for each requested vector; a command has up to six blocks of several elements.
COMMANDS_PER_VECTOR = 1 / 64


def as_streams(config: VectorConfig, commands: Sequence[VectorCommand]) -> dict[str, Any]:
    """Return commands and blocks as the inputs of ``CompiledModel.stream``."""
    # A compiled model takes fields of up to 64 bits as numbers, wider ones as rows of words.
    size = config.block_bits // 64
    words = ceil_div(config.lanes, 64)

    def gathered(name: str) -> np.ndarray:
        parts = [getattr(c, name) for c in commands if getattr(c, name) is not None]
        whole = np.concatenate(parts) if parts else np.zeros((0, 2 * config.lanes), np.uint8)
        block = np.ascontiguousarray(whole).view(np.uint64)
        return block[:, 0] if size == 1 else block

    masks = np.zeros((len(commands), 8 * words), np.uint8)
    for row, command in zip(masks, commands, strict=True):
        packed = np.packbits(command.mask, bitorder="little")
        row[: len(packed)] = packed
    mask = masks.view(np.uint64)

    def codes(name: str) -> np.ndarray:
        return np.array([getattr(c, name).value for c in commands], np.uint8)

    return {
        "command": {
            "operation": codes("operation"),
            "format": codes("format"),
            "condition": codes("condition"),
            "rounding": codes("rounding"),
            "from_scalar": np.array([c.from_scalar for c in commands], np.uint8),
            "scalar": np.array([c.scalar for c in commands], np.uint32),
            "repeat": np.array([c.repeat for c in commands], np.uint8),
            "mask": mask[:, 0] if words == 1 else mask,
        },
        "a": gathered("a"),
        "b": gathered("b"),
    }


def expected_writes(
    config: VectorConfig, commands: Sequence[VectorCommand]
) -> tuple[list[BlockWrite], list[int]]:
    """Return golden's writes to memory in order, and the number of the command of each."""
    machine = VectorMachine(config.lanes)
    writes, origin = [], []
    for number, command in enumerate(commands):
        for write in machine.run(command):
            writes.append(write)
            origin.append(number)
    return writes, origin


def compare_commands(
    model: CompiledModel,
    config: VectorConfig,
    commands: Sequence[VectorCommand],
    *,
    stall_rate: float,
    seed: int,
) -> Result:
    """Run commands through a compiled unit, and compare the memory after every result.

    Every result is written over random bytes, which stand for the old destination. The result of
    golden is written over the same bytes, so a byte that only one of the two writes is noticed.
    """
    writes, origin = expected_writes(config, commands)
    streams = as_streams(config, commands)
    result = model.stream(
        inputs=streams, outputs={"o": len(writes)}, stall_rate=stall_rate, stall_seed=seed
    )
    out = result.outputs["o"]
    data = _as_bytes(out["data"], len(writes))
    enable = np.unpackbits(_as_bytes(out["enable"], len(writes)), axis=1, bitorder="little")
    enable = enable[:, : 2 * config.lanes].astype(bool)
    old = np.random.default_rng(seed).integers(0, 256, data.shape, dtype=np.uint8)
    got = np.where(enable, data, old)
    golden = np.stack([np.where(w.enable, w.data, o) for w, o in zip(writes, old, strict=True)])
    chosen = [commands[number] for number in origin]
    return compare(
        "memory after a repeat",
        got=got,
        expected=golden,
        operands={
            "command": np.array(origin),
            "operation": np.array([c.operation.value for c in chosen], np.uint8),
            "format": np.array([c.format.value for c in chosen], np.uint8),
        },
        seed=seed,
    )


def _as_bytes(values: np.ndarray, count: int) -> np.ndarray:
    return np.ascontiguousarray(values).reshape(count, -1).view(np.uint8)


def run_unit(
    config: VectorConfig,
    operations: Sequence[Operation] | None,
    share: float,
    vectors: int,
    seed: int,
    *,
    model: CompiledModel | None = None,
) -> Result:
    """Send random commands with stalls on every stream, and compare every result.

    Parameters
    ----------
    operations : sequence of Operation or None
        None means all operations that the unit has.
    share : float
        Share of the vectors.
    model : CompiledModel, optional
        Model of the unit; by default it is compiled.
    """
    model = model or compile_unit(VectorUnit, config=config)
    # COMPARE and LOAD_BITS give no result; SELECT and COMPARE_BITS show what they did.
    shown = operations
    if operations is not None and set(operations) & {Operation.COMPARE, Operation.LOAD_BITS}:
        shown = (*operations, Operation.SELECT)
    count = max(int(vectors * share * COMMANDS_PER_VECTOR), 20)
    commands = make_commands(config, shown, count=count, seed=seed)
    return compare_commands(model, config, commands, stall_rate=0.2, seed=seed)


#: Operations with one FP16 operand, which are checked on all codes.
ONE_OPERAND = (
    Operation.RELU,
    Operation.NOT,
    Operation.TO_FP32,
    Operation.TO_INT32,
    Operation.TO_INT16,
    Operation.TO_INT8,
    Operation.TO_UINT8,
    Operation.EXP,
    Operation.LN,
)


def run_every_code(
    config: VectorConfig,
    operations: Sequence[Operation],
    vectors: int,
    seed: int,
    *,
    model: CompiledModel | None = None,
) -> Result:
    """Compare operations with one operand on all 65536 FP16 codes; the vectors do not count.

    Conversions to integers are compared in every rounding. A result of the comparison is a block.
    """
    del vectors
    model = model or compile_unit(VectorUnit, config=config)
    result = Result(vectors=0, mismatches=0)
    for op in operations:
        roundings = tuple(Rounding) if "_INT" in op.name or "_UINT" in op.name else (Rounding(0),)
        for rounding in roundings:
            commands = every_fp16(config, op, rounding=rounding)
            result += compare_commands(model, config, commands, stall_rate=0.0, seed=seed)
    return result


def checks() -> Iterator[Check]:
    """Yield rows for the checked units: all operations in turn, each operation, all codes."""
    for number, c in enumerate(map(UNITS["vector"].default, UNITS["vector"].checked)):
        config = vector_config(c)
        name = f"{config.lanes} lanes"
        form = "" if config.multiplier == "booth" else f" {config.multiplier}"
        form += "" if config.passes == 1 else f" {config.passes} passes"
        yield Check(
            unit="vector.VectorUnit",
            configuration=f"{name} {'+'.join(config.groups)} {config.sharing}{form} in turn",
            run=partial(run_unit, config, None, 1.0),
            weight=10 + config.lanes // 8,
        )
        # Single operations are rows of the first unit only.
        if number:
            continue
        for op in config.operations:
            yield Check(
                unit="vector.VectorUnit",
                configuration=f"{name} {op.name}",
                run=partial(run_unit, config, (op,), 0.5),
                weight=1,
            )
        for op in (op for op in config.operations if op in ONE_OPERAND):
            yield Check(
                unit="vector.VectorUnit",
                configuration=f"{name} {op.name} of all FP16 codes",
                run=partial(run_every_code, config, (op,)),
                weight=1,
            )

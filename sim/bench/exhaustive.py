"""Comparison of RTL and golden on every input of the small units, in chunks.

A task is a unit and all of its inputs, which are numbered. A chunk is a range of these numbers. A
file records the finished chunks, so that a later run continues after an interruption. The record
contains a hash of the design and of golden's sources; if either changes, the task starts again. The
file is always replaced as a whole.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import vitruvian.golden.fp
from vitruvian.common.files import write_whole
from vitruvian.common.workers import Call, Workers
from vitruvian.golden.fp import FORMATS, fused_dot
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.hdl.fp.dot import DotProduct
from vitruvian.sim.bench.fp_small.batch import (
    ALL,
    SmallUnit,
    compare_group,
    compile_group,
    expected,
    groups,
)
from vitruvian.sim.rtl import CompiledModel, compile_unit
from vitruvian.sim.verify.compare import Result, compare

#: Base-2 logarithm of the number of inputs in a chunk, which takes a fifth of a second and 16 MiB.
CHUNK_BITS = 20

#: Formats of which all pairs are few enough.
_SMALL = tuple(f.name for f in FORMATS.values() if f.storage_bits == 8)


@dataclass(frozen=True, kw_only=True)
class ExhaustiveTask:
    """A unit and all of its inputs.

    Attributes
    ----------
    name : str
        Unique name.
    inputs : int
        Number of inputs.
    build : callable
        Function that compiles the unit and returns its model.
    run : callable
        Function that compares the inputs of a chunk. Its arguments are the model and the numbers of
        the inputs, (N,) ndarray of uint32; it returns a ``Result``.
    """

    name: str
    inputs: int
    build: Callable[[], CompiledModel]
    run: Callable[[CompiledModel, np.ndarray], Result]


def tasks() -> list[ExhaustiveTask]:
    """Return all tasks, the small ones first."""
    result = [_dot(a, b) for a in _SMALL for b in _SMALL]
    for name, units in groups(ALL).items():
        format = FORMATS.get(units[0].source)
        bits = 8 if format is None else format.code_bits
        if units[0].source == "int32" or bits * units[0].operands > 16:
            continue
        result.append(
            ExhaustiveTask(
                name=f"{name}: {len(units)} units",
                inputs=1 << bits * units[0].operands,
                build=partial(compile_group, units),
                run=partial(_run_group, units, bits),
            )
        )
    for unit in ALL:
        if unit.source == "fp16" and unit.name in _ALL_PAIRS:
            result.append(
                ExhaustiveTask(
                    name=f"all pairs: {unit.name}",
                    inputs=1 << 32,
                    build=partial(_build_unit, unit),
                    run=partial(_run_pairs, unit),
                )
            )
    return result


#: The FP16 units that are compared on all 2**32 pairs.
_ALL_PAIRS = (
    "Multiplier format=fp16 output=fp32",
    "Multiplier format=fp16",
    "Adder format=fp16",
)


def _dot(a: str, b: str) -> ExhaustiveTask:
    spec = PRESETS["ieee"].spec(a, "fp32", k=1, input_b=b)
    bits = spec.input_b.code_bits

    def build() -> CompiledModel:
        return compile_unit(DotProduct, spec=spec)

    def run(model: CompiledModel, numbers: np.ndarray) -> Result:
        x, y = _split(numbers, bits)
        x, y = x[:, None], y[:, None]
        c = np.full(
            len(x), spec.output.negative_zero, np.uint32
        )  # adding -0 keeps the sign of a product that is zero
        return compare(
            f"{a} times {b}",
            got=model.run(a=x, b=y, c=c),
            expected=fused_dot(x, y, c, spec),
            operands={"a": x, "b": y},
        )

    inputs = 1 << (spec.input.code_bits + bits)
    return ExhaustiveTask(name=f"DotProduct K=1 {a} x {b}", inputs=inputs, build=build, run=run)


def _split(numbers: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the code of A above the lowest ``bits`` bits, and that of B in them."""
    dtype = np.uint8 if bits <= 8 else np.uint16
    low = numbers & np.uint32((1 << bits) - 1)
    return (numbers >> np.uint32(bits)).astype(dtype), low.astype(dtype)


def _run_group(units: Sequence[SmallUnit], bits: int, model: CompiledModel, numbers: np.ndarray):
    if units[0].operands == 1:
        dtype = np.uint8 if bits <= 8 else np.uint16
        return compare_group(model, units, {"a": numbers.astype(dtype)})
    a, b = _split(numbers, bits)
    return compare_group(model, units, {"a": a, "b": b})


def _build_unit(unit: SmallUnit) -> CompiledModel:
    return compile_unit(unit.unit, **unit.parameters)


def _run_pairs(unit: SmallUnit, model: CompiledModel, numbers: np.ndarray) -> Result:
    a, b = _split(numbers, 16)
    # The adder's input ``subtract`` stays 0. As b takes both signs, all differences are sums.
    held = {port.name: 0 for port in model.interface.inputs if port.name not in ("a", "b")}
    return compare(
        unit.name,
        got=model.run(a=a, b=b, **held),
        expected=expected(unit, 0, a=a, b=b),
        operands={"a": a, "b": b},
    )


#: First bytes of every progress file.
_HEAD = b'{\n "version": 1,\n "tasks": {'


class ExhaustiveProgress:
    """A record of finished chunks in a file.

    Parameters
    ----------
    path : Path
        JSON file. It is created if it does not exist, and replaced if it is damaged.
    restart : bool
        If True, ignore the contents of the file.

    Raises
    ------
    ValueError
        If the file exists and is not a record of this kind. Such a file is never replaced.
    OSError
        If the file cannot be read or replaced.
    """

    def __init__(self, path: Path, *, restart: bool = False):
        self.path = path
        stored = self._read()
        self._tasks: dict[str, dict[str, Any]] = {} if restart else stored

    def _read(self) -> dict[str, dict[str, Any]]:
        if not self.path.exists():
            return {}
        head = b""
        if self.path.is_file():
            with open(self.path, "rb") as file:
                head = file.read(len(_HEAD))
        if head != _HEAD:
            raise ValueError(
                f"the progress file must be absent or written by this command, "
                f"not {str(self.path)!r}"
            )
        try:
            return json.loads(self.path.read_text())["tasks"]
        except (ValueError, RecursionError):
            return {}  # a damaged record

    def open(self, name: str, *, key: str, chunks: int) -> list[int]:
        """Return the chunks of a task that remain, and drop the record if the key differs.

        Parameters
        ----------
        name : str
            Name of the task.
        key : str
            Hash of the design and of golden.
        chunks : int
            Number of chunks of the task.
        """
        entry = self._tasks.get(name)
        if not entry or entry["key"] != key or entry["chunks"] != chunks:
            entry = {"key": key, "chunks": chunks, "done": "0", "vectors": 0}
            entry |= {"mismatches": 0, "examples": []}
            self._tasks[name] = entry
        done = int(entry["done"], 16)
        return [n for n in range(chunks) if not done >> n & 1]

    def add(self, name: str, chunk: int, result: Result) -> None:
        """Record a finished chunk and its result."""
        entry = self._tasks[name]
        entry["done"] = f"{int(entry['done'], 16) | 1 << chunk:x}"
        entry["vectors"] += result.vectors
        entry["mismatches"] += result.mismatches
        entry["examples"] = (entry["examples"] + list(result.examples))[:3]

    def result(self, name: str) -> Result:
        """Return the sum of the results of all finished chunks."""
        entry = self._tasks[name]
        return Result(
            vectors=entry["vectors"],
            mismatches=entry["mismatches"],
            examples=tuple(entry["examples"]),
        )

    def save(self) -> None:
        """Replace the file.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        write_whole(self.path, json.dumps({"version": 1, "tasks": self._tasks}, indent=1))


@lru_cache
def _golden_digest() -> str:
    state = hashlib.sha256()
    for path in sorted(Path(str(vitruvian.golden.fp.__file__)).parent.glob("*.py")):
        state.update(path.read_bytes())
    return state.hexdigest()[:16]


#: Tasks whose models are compiled in this process.
_OPEN: dict[str, tuple[ExhaustiveTask, CompiledModel]] = {}


def _model(name: str) -> tuple[ExhaustiveTask, CompiledModel]:
    if name not in _OPEN:
        task = next(task for task in tasks() if task.name == name)
        _OPEN[name] = task, task.build()
    return _OPEN[name]


def _run_chunk(name: str, chunk: int, chunk_bits: int) -> Result:
    task, model = _model(name)
    low, high = chunk << chunk_bits, min((chunk + 1) << chunk_bits, task.inputs)
    return task.run(model, np.arange(low, high, dtype=np.int64).astype(np.uint32))


def run_tasks(
    chosen: Sequence[ExhaustiveTask],
    *,
    progress: ExhaustiveProgress,
    chunk_bits: int = CHUNK_BITS,
    limit: int | None = None,
    jobs: int = 1,
) -> Iterator[tuple[ExhaustiveTask, int, int, Result]]:
    """Run the remaining chunks of tasks, and save the record after every chunk.

    Parameters
    ----------
    progress : ExhaustiveProgress
        Record of the finished chunks.
    chunk_bits : int
        Base-2 logarithm of the number of inputs in a chunk.
    limit : int, optional
        Largest number of inputs of a task in this run, in whole chunks; there is none by default.
    jobs : int
        Number of processes.

    Yields
    ------
    task : ExhaustiveTask
    left : int
        Number of chunks of the task that remain.
    inputs : int
        Number of inputs of the chunk that has finished; 0 when a task begins.
    total : Result
        Sum of the results of all finished chunks of the task.
    """
    with Workers(jobs) as workers:
        for task in chosen:
            _OPEN[task.name] = task, task.build()
            design = _OPEN[task.name][1].path.parent.name
            chunks = -(-task.inputs >> chunk_bits)
            left = progress.open(task.name, key=f"{design}-{_golden_digest()}", chunks=chunks)
            yield task, len(left), 0, progress.result(task.name)
            todo = left if limit is None else left[: max(1, limit >> chunk_bits)]
            remaining = len(left)
            for chunk, result in _chunks(workers, jobs, task.name, todo, chunk_bits):
                progress.add(task.name, chunk, result)
                progress.save()
                remaining -= 1
                size = min(task.inputs, 1 << chunk_bits)
                yield task, remaining, size, progress.result(task.name)
            del _OPEN[task.name]


def _chunks(
    workers: Workers, jobs: int, name: str, todo: Sequence[int], chunk_bits: int
) -> Iterator[tuple[int, Result]]:
    """Yield the results of chunks as they finish; a task with few chunks runs in this process."""
    if len(todo) < 2 * jobs or jobs == 1:
        for chunk in todo:
            yield chunk, _run_chunk(name, chunk, chunk_bits)
        return
    calls = (Call(key=n, function=_run_chunk, arguments=(name, n, chunk_bits)) for n in todo)
    for event in workers.run(calls):
        if event.kind == "failed":
            raise event.value
        if event.kind == "done":
            yield event.key, event.value

"""The compiled core: words of machine code in, memory and cycles out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from vitruvian.common.validate import nearest, round_up

from .core_stop import Stop, stop_of

_BLOCK = 32
_WRITE, _START, _READ = range(3)
#: Cycles without a block from the core after which it counts as stopped.
_QUIET = 5_000_000
#: Bytes of global memory unless a program needs more: one model serves most programs.
_MEMORY = 1 << 20


class CoreFault(RuntimeError):
    """The core has stopped before the end of its program; the message says why.

    Attributes
    ----------
    stop : Stop
    memory : (bytes,) ndarray of uint8
        Global memory after the stop.
    """

    def __init__(self, stop: Stop, memory: np.ndarray):
        super().__init__(str(stop))
        self.stop, self.memory = stop, memory


@dataclass(frozen=True)
class CoreRun:
    """What a program did on the core.

    Attributes
    ----------
    memory : (bytes,) ndarray of uint8
        Global memory at the end.
    cycles : int
        Clock cycles from the start to the end.
    busy : dict of str to int
        Cycles in which each unit had an instruction, by the core's own counters.
    written : dict of str to int
        Bytes that each unit has written; for S, bytes of the program that were fetched.
    conflicts : int
        Cycles in which a request to UB waited for another one to its bank.
    words : int
        Words of the program.
    spans : dict of str to (N, 2) ndarray
        If they were asked for: cycles in which each instruction of a unit began and ended.
    """

    memory: np.ndarray
    cycles: int
    busy: dict[str, int]
    written: dict[str, int]
    conflicts: int
    words: int
    spans: dict[str, np.ndarray] = field(default_factory=dict)


def core_names() -> tuple[str, ...]:
    """Return the names of the presets."""
    from vitruvian.hdl.core import CORES

    return tuple(CORES)


def core_config(core: Any) -> Any:
    """Return the parameters of a core that is given by name or by them.

    Raises
    ------
    ValueError
        If there is no such preset.
    """
    from vitruvian.hdl.core import CORES

    if not isinstance(core, str):
        return core
    if core not in CORES:
        hint = nearest(core, CORES)
        raise ValueError(f"core must be one of {', '.join(CORES)}, not {core!r}{hint}")
    return CORES[core]


def core_facts(core: Any) -> dict[str, dict[str, Any]]:
    """Return the numbers that the times of a core follow from (``hdl.core.facts``)."""
    from vitruvian.hdl.core.facts import core_facts as facts

    return facts(core_config(core))


def refusal_of(config: Any, op: str, unit: str, words: tuple[int, ...]) -> str | None:
    """Return why a core lacks an instruction, in words that follow its name; None if it has it."""
    from vitruvian.golden.core.encoding import ENCODINGS
    from vitruvian.hdl.core.support import refusal

    values, _ = ENCODINGS[op].unpack(words)
    return refusal(config, ENCODINGS[op], unit, values)


@lru_cache(8)
def board(config: Any, memory_bytes: int, traced: bool = False) -> Any:
    """Return the compiled model of a core with its global memory (``hdl.core.CoreBoard``)."""
    from vitruvian.hdl.core import CoreBoard

    from . import compile_unit

    return compile_unit(CoreBoard, config=config, memory_bytes=memory_bytes, traced=traced)


def model_key(core: Any) -> str:
    """Return a name of the content of a core's compiled model, which changes with its RTL."""
    return board(core_config(core), _MEMORY).path.parent.name


def run_words(
    core: Any,
    memory: np.ndarray,
    words: Sequence[int] | np.ndarray,
    *,
    latency: int = 1,
    noise: int = 0,
    counts: Mapping[str, int] | None = None,
) -> CoreRun:
    """Run a program that stands behind a memory image.

    Parameters
    ----------
    core : str or CoreConfig
    memory : (bytes,) ndarray of uint8
        Global memory at the start.
    words : sequence of int
        The program, with the word 0 at its end.
    latency : int
        Cycles from a read of global memory to its data, up to 255.
    noise : int
        Seed of random latencies and pauses of global memory; 0 for none.
    counts : mapping of str to int, optional
        Instructions of each unit but flags and barriers. With it, the core is a model of its own
        that records when each of them begins and ends.

    Raises
    ------
    CoreFault
        If the core stops with a fault, or because all its queues wait.
    StreamError
        If the program has not ended after five million cycles.
    """
    config = core_config(core)
    names = config.units
    start = round_up(len(memory), _BLOCK)
    image = np.zeros(round_up(start + 8 * len(words), _BLOCK), np.uint8)
    image[: len(memory)] = memory
    image[start : start + 8 * len(words)] = np.asarray(words, np.uint64).view(np.uint8)
    # What the fetch unit reads ahead of the program's end may lie beyond memory.
    size = max(_MEMORY, 1 << (len(image) - 1).bit_length())
    blocks, back = len(image) // _BLOCK, start // _BLOCK
    count = blocks + 1 + back
    kind = np.full(count, _WRITE, np.uint8)
    kind[blocks], kind[blocks + 1 :] = _START, _READ
    address = np.zeros(count, np.uint32)
    address[:blocks] = np.arange(blocks) * _BLOCK
    address[blocks], address[blocks + 1 :] = start, np.arange(back) * _BLOCK
    data = np.zeros((count, _BLOCK // 8), np.uint64)
    data[:blocks] = image.view(np.uint64).reshape(blocks, -1)
    traces = {} if counts is None else {f"t__{n}": name for n, name in enumerate(names[1:])}
    done = board(config, size, counts is not None).stream(
        inputs={"i": {"kind": kind, "address": address, "data": data}},
        outputs={"o": back} | {port: (counts or {}).get(n, 0) for port, n in traces.items()},
        held={"latency": latency, "noise": noise},
        quiet_limit=_QUIET,
    )
    ports = {name: _number(port) for name, port in done.ports.items() if not isinstance(port, dict)}
    after = np.ascontiguousarray(done.outputs["o"]).view(np.uint8).reshape(-1)[: len(memory)]
    if ports["fault"]:
        raise CoreFault(_stop(config, done.ports), after)
    busy, written = (
        {name: ports[f"{what}__{n}"] for n, name in enumerate(names)} for what in ("busy", "bytes")
    )
    spans = {
        name: np.stack([done.outputs[port]["begin"], done.outputs[port]["end"]], axis=1)
        for port, name in traces.items()
    }
    return CoreRun(after, ports["cycles"], busy, written, ports["conflicts"], len(words), spans)


def _stop(config: Any, ports: Mapping[str, Any]) -> Stop:
    def numbers(name: str) -> dict[str, int]:
        return {part: _number(value) for part, value in ports[name].items()}

    return stop_of(
        _number(ports["fault"]),
        **numbers("origin"),
        waits={name: numbers(f"waits__{n}") for n, name in enumerate(config.units)},
        processor=config.scalar == "riscv",
    )


def _number(port: Any) -> int:
    return int(np.asarray(port).ravel()[0])

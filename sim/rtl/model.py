"""A compiled model: arrays of stimuli in, arrays of results out."""

import ctypes
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from .ports import Interface, Port, Stream

__all__ = ["CompiledModel", "StreamError", "StreamResult"]

_SMALLEST_CHUNK = 4096


class StreamError(RuntimeError):
    """A unit hung or gave more beats than expected; the message counts beats per stream."""


@dataclass(frozen=True, kw_only=True)
class StreamResult:
    """What a run through streams gave.

    Attributes
    ----------
    outputs : dict
        Payloads per output stream, first axis the beats.
    input_cycles, output_cycles : dict
        Clock cycle of every transfer, per stream.
    ports : dict
        Plain outputs at the end.
    cycles : int
        Clock cycles from reset to the last expected transfer and the drain after it.
    """

    outputs: dict[str, Any]
    input_cycles: dict[str, np.ndarray]
    output_cycles: dict[str, np.ndarray]
    ports: dict[str, Any]
    cycles: int


class _Job(ctypes.Structure):
    _fields_ = [
        ("seed", ctypes.c_uint64),
        ("quiet_limit", ctypes.c_uint64),
        ("drain", ctypes.c_uint64),
        ("reset_at", ctypes.c_uint64),
        ("held", ctypes.c_void_p),
        ("plain", ctypes.c_void_p),
        ("input_items", ctypes.c_void_p),
        ("input_arrays", ctypes.c_void_p),
        ("input_cycles", ctypes.c_void_p),
        ("input_done", ctypes.c_void_p),
        ("input_stall", ctypes.c_void_p),
        ("output_items", ctypes.c_void_p),
        ("output_arrays", ctypes.c_void_p),
        ("output_cycles", ctypes.c_void_p),
        ("output_done", ctypes.c_void_p),
        ("output_stall", ctypes.c_void_p),
        ("cycles", ctypes.c_uint64),
    ]


class CompiledModel:
    """RTL as a function on NumPy arrays; made by :func:`sim.rtl.compile`.

    Attributes
    ----------
    name : str
        Name of the unit, for messages.
    interface : Interface
        Ports and their fields.
    latency : int
        Clock cycles from an input to its output; not seen by the caller of :meth:`run`.
    cached : bool
        Whether the library was there already.
    build_seconds : float
        Time the build took when it was made.
    """

    def __init__(
        self, library: Path, *, name: str, interface: Interface, latency: int, facts: dict[str, Any]
    ):
        self.name = name
        self.interface = interface
        self.latency = latency
        self.path = library
        self.cached = bool(facts["cached"])
        self.build_seconds = float(facts["seconds"])
        self._library = ctypes.CDLL(str(library))
        self._library.vitruvian_new.restype = ctypes.c_void_p
        self._library.vitruvian_delete.argtypes = [ctypes.c_void_p]
        pointers = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p]
        self._library.vitruvian_run.argtypes = pointers
        self._library.vitruvian_run.restype = None
        self._library.vitruvian_stream.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Job)]
        self._idle: list[int] = []
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"<CompiledModel {self.name}, latency {self.latency}>"

    def __del__(self):
        for handle in getattr(self, "_idle", ()):
            self._library.vitruvian_delete(handle)

    def run(self, *, threads: int = 1, **inputs: Any) -> Any:
        """Send one vector a clock through a unit of fixed latency.

        Parameters
        ----------
        threads : int
            Instances of the model that share the batch; each runs on a core of its own.
        **inputs : array_like
            One per input port: (N, …) of integers, the trailing axes as the port's shape, or a
            mapping of such arrays for a structure. A lone integer is held for the whole batch. Fields
            wider than 64 bits end in an axis of uint64 words, the low word first. A signed array of
            exactly the field's width is taken as its two's complement code.

        Returns
        -------
        ndarray, or dict of ndarray
            The output port's values (N, …), by name when there are several.

        Raises
        ------
        TypeError, ValueError
            If a port is missing or unknown, or an array does not fit its port.
        """
        if self.interface.has_streams:
            raise TypeError(f"{self.name} has streams; use stream(), not run()")
        if not isinstance(threads, int) or threads < 1:
            raise ValueError(f"threads must be a positive number, not {threads!r}")
        arrays, count = self._batch(inputs)
        results = [port.allocate(count) for port in self.interface.outputs]
        flat = [array for group in results for array in group]
        threads = max(1, min(threads, count // _SMALLEST_CHUNK))
        bounds = [count * n // threads for n in range(threads + 1)]

        def part(n: int) -> None:
            low, high = bounds[n], bounds[n + 1]
            with self._instance() as handle:
                self._library.vitruvian_run(
                    handle, high - low, _pointers(arrays, low), _pointers(flat, low)
                )

        if threads == 1:
            part(0)
        else:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(part, range(threads)))
        return self._named(results)

    def stream(
        self,
        *,
        inputs: Mapping[str, Any] | None = None,
        outputs: Mapping[str, int] | None = None,
        held: Mapping[str, Any] | None = None,
        stall_rate: float | Mapping[str, float] = 0.0,
        stall_seed: int | None = None,
        quiet_limit: int = 10_000,
        drain: int = 64,
        reset_at: int | None = None,
    ) -> StreamResult:
        """Send items into a unit's input streams and gather its output streams.

        Parameters
        ----------
        inputs : mapping
            Per input stream the payloads, first axis the beats; a structure is a mapping of arrays.
        outputs : mapping
            Per output stream the number of beats expected.
        held : mapping
            Values of plain input ports, constant over the run.
        stall_rate : float or mapping
            Probability in [0, 1) that a stream idles in a cycle, for all streams or by name.
        stall_seed : int, optional
            Seed of the stalls; 0 when there are stalls and none is given.
        quiet_limit : int
            Cycles without any transfer that count as a hang.
        drain : int
            Cycles to go on after the last expected beat; any beat then is surplus.
        reset_at : int, optional
            Cycle of a reset in mid-flight; everything is sent again after it, and only what comes
            after it is returned.

        Returns
        -------
        StreamResult

        Raises
        ------
        StreamError
            If the unit hangs or gives more beats than expected.
        TypeError, ValueError
            If a stream is missing or unknown, or an array does not fit.
        """
        if not self.interface.has_streams:
            raise TypeError(f"{self.name} has no streams; use run(), not stream()")
        run = _StreamRun(self, inputs or {}, outputs or {}, held or {})
        job = run.job(
            stall_rate=stall_rate,
            seed=stall_seed or 0,
            quiet_limit=quiet_limit,
            drain=drain,
            reset_at=reset_at,
        )
        with self._instance() as handle:
            status = self._library.vitruvian_stream(handle, ctypes.byref(job))
        return run.result(job, hung=bool(status), seed=stall_seed or 0)

    @contextmanager
    def _instance(self):
        """An instance of the model that nobody else uses meanwhile."""
        with self._lock:
            handle = self._idle.pop() if self._idle else None
        if handle is None:
            handle = self._library.vitruvian_new()
        try:
            yield handle
        finally:
            with self._lock:
                self._idle.append(handle)

    def _batch(self, inputs: Mapping[str, Any]) -> tuple[list[np.ndarray], int]:
        """Arrays of all input leaves, of one length."""
        _check_names("inputs", inputs, [port.name for port in self.interface.inputs])
        groups = [port.to_memory(inputs[port.name]) for port in self.interface.inputs]
        lengths = {
            port.name: len(array)
            for port, group in zip(self.interface.inputs, groups, strict=True)
            for array in group
            if array.ndim
        }
        if not lengths:
            raise ValueError("at least one input must be an array with one row per vector")
        if len(set(lengths.values())) > 1:
            raise ValueError(f"inputs must have one length, not {lengths}")
        count = next(iter(lengths.values()))
        leaves = [leaf for port in self.interface.inputs for leaf in port.leaves]
        flat = [array for group in groups for array in group]
        return [
            array
            if array.ndim
            else np.ascontiguousarray(np.broadcast_to(array, (count, *leaf.shape)))
            for leaf, array in zip(leaves, flat, strict=True)
        ], count

    def _named(self, results: list[list[np.ndarray]]) -> Any:
        values = {
            port.name: port.from_memory(arrays)
            for port, arrays in zip(self.interface.outputs, results, strict=True)
        }
        return next(iter(values.values())) if len(values) == 1 else values


class _StreamRun:
    """Memory of one run through streams; kept until the results are read."""

    def __init__(
        self,
        model: CompiledModel,
        inputs: Mapping[str, Any],
        outputs: Mapping[str, int],
        held: Mapping[str, Any],
    ):
        face = model.interface
        self.name, self.face = model.name, face
        _check_names("inputs", inputs, [s.name for s in face.streams_in])
        _check_names("outputs", outputs, [s.name for s in face.streams_out])
        _check_names("held", held, [p.name for p in face.inputs])
        self.sent = [_items(s, inputs[s.name]) for s in face.streams_in]
        self.items = [len(group[0]) for group in self.sent]
        self.expected = [_count(s.name, outputs[s.name]) for s in face.streams_out]
        self.got = [
            s.payload.allocate(n) for s, n in zip(face.streams_out, self.expected, strict=True)
        ]
        self.held = [
            array.reshape(1, *array.shape)
            for port in face.inputs
            for array in _held(port, held[port.name])
        ]
        self.plain = [port.allocate(1) for port in face.outputs]
        self.cycles_in = [np.zeros(n, np.uint64) for n in self.items]
        self.cycles_out = [np.zeros(n, np.uint64) for n in self.expected]
        self.done_in = np.zeros(len(self.items) + 1, np.uint64)
        self.done_out = np.zeros(len(self.expected) + 1, np.uint64)

    def job(
        self,
        *,
        stall_rate: float | Mapping[str, float],
        seed: int,
        quiet_limit: int,
        drain: int,
        reset_at: int | None,
    ) -> _Job:
        """The C structure that points at all of it."""
        keep: list[Any] = []

        def point(value: Any) -> int:
            keep.append(value)
            return value.ctypes.data if isinstance(value, np.ndarray) else ctypes.addressof(value)

        def numbers(values: Sequence[int]) -> int:
            return point(np.array([*values, 0], np.uint64))

        def table(groups: Sequence[np.ndarray]) -> int:
            return point(_pointers(groups, 0))

        rates = {s.name: 0.0 for s in self.face.streams_in + self.face.streams_out}
        if isinstance(stall_rate, Mapping):
            unknown = sorted(set(stall_rate) - set(rates))
            if unknown:
                raise ValueError(f"stall_rate must name streams of {sorted(rates)}, not {unknown}")
            rates |= stall_rate
        else:
            rates = dict.fromkeys(rates, stall_rate)
        for name, rate in rates.items():
            if not 0 <= rate < 1:
                raise ValueError(f"stall_rate of {name} must be within [0, 1), not {rate!r}")
        job = _Job(
            seed=seed & (2**64 - 1),
            quiet_limit=quiet_limit,
            drain=drain,
            reset_at=2**64 - 1 if reset_at is None else reset_at,
            held=table(self.held),
            plain=table([a for group in self.plain for a in group]),
            input_items=numbers(self.items),
            input_arrays=table([a for group in self.sent for a in group]),
            input_cycles=table(self.cycles_in),
            input_done=point(self.done_in),
            input_stall=numbers([int(rates[s.name] * 2**32) for s in self.face.streams_in]),
            output_items=numbers(self.expected),
            output_arrays=table([a for group in self.got for a in group]),
            output_cycles=table(self.cycles_out),
            output_done=point(self.done_out),
            output_stall=numbers([int(rates[s.name] * 2**32) for s in self.face.streams_out]),
        )
        self._keep = keep
        return job

    def result(self, job: _Job, *, hung: bool, seed: int) -> StreamResult:
        """What came out, or the error that says what did not."""
        ins, outs = self.face.streams_in, self.face.streams_out
        tally = [f"{s.name} took {self.done_in[n]} of {self.items[n]}" for n, s in enumerate(ins)]
        tally += [
            f"{s.name} gave {self.done_out[n]} of {self.expected[n]}" for n, s in enumerate(outs)
        ]
        if hung:
            raise StreamError(
                f"{self.name} hung by cycle {job.cycles} (seed {seed}): {', '.join(tally)}"
            )
        if any(self.done_out[n] > self.expected[n] for n in range(len(outs))):
            raise StreamError(
                f"{self.name} gave surplus beats by cycle {job.cycles} (seed {seed}): "
                f"{', '.join(tally)}"
            )
        return StreamResult(
            outputs={s.name: s.payload.from_memory(self.got[n]) for n, s in enumerate(outs)},
            input_cycles={s.name: self.cycles_in[n] for n, s in enumerate(ins)},
            output_cycles={s.name: self.cycles_out[n] for n, s in enumerate(outs)},
            ports={
                port.name: port.from_memory(arrays)
                for port, arrays in zip(self.face.outputs, self.plain, strict=True)
            },
            cycles=int(job.cycles),
        )


def _pointers(arrays: Sequence[np.ndarray], start: int) -> Any:
    """C array of the addresses of row ``start`` of each array."""
    addresses = [a.ctypes.data + start * a.strides[0] for a in arrays]
    return (ctypes.c_void_p * (len(addresses) + 1))(*addresses)


def _items(stream: Stream, value: Any) -> list[np.ndarray]:
    arrays = stream.payload.to_memory(value, label=stream.name)
    lengths = {len(a) if a.ndim else None for a in arrays}
    if len(lengths) != 1 or None in lengths:
        raise ValueError(f"{stream.name} must be arrays of one length, not of {lengths}")
    return arrays


def _held(port: Port, value: Any) -> list[np.ndarray]:
    """One value of a port that is constant over the run."""
    arrays = []
    for leaf in port.leaves:
        inner = value
        for key in leaf.path:
            inner = inner[key]
        arrays.append(leaf.to_memory(np.asarray(inner)[None], name=port.name)[0])
    return arrays


def _count(name: str, value: Any) -> int:
    if not isinstance(value, int | np.integer) or value < 0:
        raise ValueError(f"number of beats of {name} must be 0 or more, not {value!r}")
    return int(value)


def _check_names(what: str, given: Mapping[str, Any], wanted: list[str]) -> None:
    if set(given) != set(wanted):
        have = ", ".join(sorted(given)) or "nothing"
        raise ValueError(f"{what} must be {', '.join(wanted) or 'empty'}, not {have}")

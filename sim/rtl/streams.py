"""One run of a model with streams: the arrays that it uses, its result and its errors."""

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .ports import Interface, Port, Stream


class StreamError(RuntimeError):
    """A unit hung or returned more beats than expected; the message counts the beats by stream."""


@dataclass(frozen=True, kw_only=True)
class StreamResult:
    """The result of a run through streams.

    Attributes
    ----------
    outputs : dict
        Payloads of each output stream; the first axis counts the beats.
    input_cycles, output_cycles : dict of (beats,) ndarray of uint64
        Clock cycle of each transfer, by stream.
    ports : dict
        Values of the plain outputs at the end.
    cycles : int
        Clock cycles from reset to the end of the drain after the last expected transfer.
    """

    outputs: dict[str, Any]
    input_cycles: dict[str, np.ndarray]
    output_cycles: dict[str, np.ndarray]
    ports: dict[str, Any]
    cycles: int


class Job(ctypes.Structure):
    """The C structure ``Job`` of ``driver.inc``, which describes a run to the driver."""

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


class StreamRun:
    """The memory of a run through streams, which must live until the results are read."""

    def __init__(
        self,
        name: str,
        interface: Interface,
        inputs: Mapping[str, Any],
        outputs: Mapping[str, int],
        held: Mapping[str, Any],
    ):
        self.name, self.interface = name, interface
        check_names("inputs", inputs, [s.name for s in interface.streams_in])
        check_names("outputs", outputs, [s.name for s in interface.streams_out])
        check_names("held", held, [p.name for p in interface.inputs])
        self.sent = [_items(s, inputs[s.name]) for s in interface.streams_in]
        self.items = [len(group[0]) for group in self.sent]
        self.expected = [_count(s.name, outputs[s.name]) for s in interface.streams_out]
        self.got = [
            s.payload.allocate(n) for s, n in zip(interface.streams_out, self.expected, strict=True)
        ]
        self.held = [
            array.reshape(1, *array.shape)
            for port in interface.inputs
            for array in _held(port, held[port.name])
        ]
        self.plain = [port.allocate(1) for port in interface.outputs]
        self.cycles_in = [np.zeros(n, np.uint64) for n in self.items]
        self.cycles_out = [np.zeros(n, np.uint64) for n in self.expected]
        # One element more than needed, so that a unit without such streams has a valid address.
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
    ) -> Job:
        """Return the C structure with pointers to the arrays of this run.

        Parameters
        ----------
        stall_rate : float or mapping
            Probability in [0, 1) that a stream is idle in a cycle, for all streams or by name.
        seed : int
            Seed of the stalls.
        quiet_limit, drain, reset_at
            As in ``CompiledModel.stream``.

        Raises
        ------
        ValueError
            If a rate is out of range or names an unknown stream.
        """
        # The C structure holds addresses only, so the arrays must be kept alive as long as the run.
        keep: list[Any] = []

        def point(value: Any) -> int:
            keep.append(value)
            return value.ctypes.data if isinstance(value, np.ndarray) else ctypes.addressof(value)

        def numbers(values: Sequence[int]) -> int:
            return point(np.array([*values, 0], np.uint64))

        def table(groups: Sequence[np.ndarray]) -> int:
            return point(pointers(groups, 0))

        rates = {s.name: 0.0 for s in self.interface.streams_in + self.interface.streams_out}
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
        # A stall rate is passed as a threshold for random numbers of 32 bits. Without a reset, its
        # cycle is the largest number, which no run reaches.
        job = Job(
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
            input_stall=numbers([int(rates[s.name] * 2**32) for s in self.interface.streams_in]),
            output_items=numbers(self.expected),
            output_arrays=table([a for group in self.got for a in group]),
            output_cycles=table(self.cycles_out),
            output_done=point(self.done_out),
            output_stall=numbers([int(rates[s.name] * 2**32) for s in self.interface.streams_out]),
        )
        self._keep = keep
        return job

    def result(self, job: Job, *, hung: bool, seed: int) -> StreamResult:
        """Return the result of a finished run.

        Raises
        ------
        StreamError
            If the unit hung or returned surplus beats.
        """
        ins, outs = self.interface.streams_in, self.interface.streams_out
        tally = [f"{s.name} took {self.done_in[n]} of {self.items[n]}" for n, s in enumerate(ins)]
        tally += [
            f"{s.name} gave {self.done_out[n]} of {self.expected[n]}" for n, s in enumerate(outs)
        ]
        # No beat has passed for ``quiet_limit`` cycles.
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
                for port, arrays in zip(self.interface.outputs, self.plain, strict=True)
            },
            cycles=int(job.cycles),
        )


def pointers(arrays: Sequence[np.ndarray], start: int) -> Any:
    """Return a C array with the address of row ``start`` of each array."""
    addresses = [a.ctypes.data + start * a.strides[0] for a in arrays]
    # C has no arrays of length 0.
    return (ctypes.c_void_p * (len(addresses) + 1))(*addresses)


def _items(stream: Stream, value: Any) -> list[np.ndarray]:
    arrays = stream.payload.to_memory(value, label=stream.name)
    # One array for each leaf of the payload.
    lengths = {len(a) if a.ndim else None for a in arrays}
    if len(lengths) != 1 or None in lengths:
        raise ValueError(f"{stream.name} must be arrays of one length, not of {lengths}")
    return arrays


def _held(port: Port, value: Any) -> list[np.ndarray]:
    """Return the arrays of a port's value that is constant during the run."""
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


def check_names(thing: str, values: Mapping[str, Any], expected: list[str]) -> None:
    """Raise ValueError unless ``values`` has exactly the expected names."""
    if set(values) != set(expected):
        names = ", ".join(sorted(values)) or "nothing"
        raise ValueError(f"{thing} must be {', '.join(expected) or 'empty'}, not {names}")

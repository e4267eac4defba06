"""Compiled models, which map arrays of stimuli to arrays of results."""

import ctypes
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from .ports import Interface
from .streams import Job, StreamResult, StreamRun, check_names, pointers

_SMALLEST_CHUNK = 4096


class CompiledModel:
    """RTL as a function on NumPy arrays; ``sim.rtl.compile`` returns one.

    Attributes
    ----------
    name : str
        Name of the unit, for messages.
    interface : Interface
        Ports and their fields.
    latency : int
        Clock cycles from an input to its output. The method ``run`` hides them.
    path : Path
        The shared library.
    cached : bool
        True if the library came from the cache.
    build_seconds : float
        Time that the build took.
    """

    def __init__(
        self, library: Path, *, name: str, interface: Interface, latency: int, facts: dict[str, Any]
    ):
        self.name = name
        self.interface = interface
        self.latency = latency
        self.path = library
        self.cached: bool = bool(facts["cached"])
        self.build_seconds: float = float(facts["seconds"])
        self._library = ctypes.CDLL(str(library))
        self._library.vitruvian_new.restype = ctypes.c_void_p
        self._library.vitruvian_delete.argtypes = [ctypes.c_void_p]
        arguments = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p]
        self._library.vitruvian_run.argtypes = arguments
        self._library.vitruvian_run.restype = None
        self._library.vitruvian_stream.argtypes = [ctypes.c_void_p, ctypes.POINTER(Job)]
        self._idle: list[int] = []
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"<CompiledModel {self.name}, latency {self.latency}>"

    def __del__(self) -> None:
        # ``_idle`` does not exist if the library could not be loaded.
        for handle in getattr(self, "_idle", ()):
            self._library.vitruvian_delete(handle)

    def run(self, *, threads: int = 1, **inputs: Any) -> Any:
        """Send one vector in every clock cycle through a unit of fixed latency.

        Parameters
        ----------
        threads : int
            Number of instances of the model that share the batch; each runs on its own core.
        **inputs : array_like
            One for each input port: integers of shape (N, …), whose trailing axes are the port's
            shape, or a mapping of such arrays for a structure. A single integer holds for the
            whole batch. Fields wider than 64 bits have a last axis of uint64 words, the low word
            first. In a signed array of exactly the field's width, negative numbers stand for
            their two's complement codes.

        Returns
        -------
        outputs : ndarray, or dict of ndarray
            Values of the output port, of shape (N, …). Several output ports give a dict by name.

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
        # A result depends on its own vector only, so parts of the batch may run on different
        # instances. ctypes releases Python's global lock during the calls.
        threads = max(1, min(threads, count // _SMALLEST_CHUNK))
        bounds = [count * n // threads for n in range(threads + 1)]

        def part(n: int) -> None:
            low, high = bounds[n], bounds[n + 1]
            with self._instance() as handle:
                self._library.vitruvian_run(
                    handle, high - low, pointers(arrays, low), pointers(flat, low)
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
            Payloads of each input stream. The first axis of an array counts the beats; a structure
            is a mapping of arrays.
        outputs : mapping
            Number of beats that are expected from each output stream.
        held : mapping
            Values of plain input ports, which are constant during the run.
        stall_rate : float or mapping
            Probability in [0, 1) that a stream is idle in a cycle, for all streams or by name.
        stall_seed : int, optional
            Seed of the stalls; 0 by default.
        quiet_limit : int
            Number of cycles without any transfer after which the unit counts as hung.
        drain : int
            Number of cycles to continue after the last expected beat. Any beat in them is surplus.
        reset_at : int, optional
            Cycle of a reset. All items are sent again after it, and only the outputs after it are
            returned.

        Returns
        -------
        StreamResult

        Raises
        ------
        StreamError
            If the unit hangs or returns more beats than expected.
        TypeError, ValueError
            If a stream is missing or unknown, or an array does not fit.
        """
        if not self.interface.has_streams:
            raise TypeError(f"{self.name} has no streams; use run(), not stream()")
        run = StreamRun(self.name, self.interface, inputs or {}, outputs or {}, held or {})
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
        """Lend an instance of the model to the block, which no other thread uses meanwhile."""
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
        """Return the arrays of all input leaves, and their common length."""
        check_names("inputs", inputs, [port.name for port in self.interface.inputs])
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

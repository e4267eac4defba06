"""Sinks for tests of the CCE C reader."""

import struct

from vitruvian.sim.davinci.cce import Address, IntrinsicCall, SourcePosition, read

FORMATS = {"fp16": "<e", "fp32": "<f", "int8": "<b", "uint8": "<B", "int16": "<h", "uint16": "<H"}
FORMATS |= {"int32": "<i", "uint32": "<I", "int64": "<q", "uint64": "<Q"}


class Recorder:
    """A sink that records every call and holds the memory of scalar loads and stores."""

    def __init__(self):
        self.calls: list[IntrinsicCall] = []
        self.prints: list[str] = []
        self.memory: dict[str, bytearray] = {}
        self.accesses: list[tuple[str, Address, SourcePosition]] = []

    def buffer(self, space: str) -> bytearray:
        return self.memory.setdefault(space, bytearray(1 << 16))

    def issue(self, call: IntrinsicCall) -> None:
        self.calls.append(call)

    def load(self, source: Address, position: SourcePosition):
        self.accesses.append(("load", source, position))
        return struct.unpack_from(FORMATS[source.dtype], self.buffer(source.space), source.address)[
            0
        ]

    def store(self, target: Address, value, position: SourcePosition) -> None:
        self.accesses.append(("store", target, position))
        struct.pack_into(FORMATS[target.dtype], self.buffer(target.space), target.address, value)

    def peek(self, source: Address, count: int, position: SourcePosition):
        return self.values(source.space, source.dtype, count, source.address)

    def print(self, text: str, position: SourcePosition) -> None:
        self.prints.append(text)

    def names(self) -> list[str]:
        return [call.name for call in self.calls]

    def values(self, space: str, dtype: str, count: int, start: int = 0) -> list:
        form = f"<{count}{FORMATS[dtype][1]}"
        return list(struct.unpack_from(form, self.buffer(space), start))


def run(text: str, arguments=(), *, sink=None, **options) -> Recorder:
    """Read a kernel, run it, and return its sink.

    ``options`` are keyword arguments of ``read`` or of ``Kernel.run``.
    """
    own = {k: options.pop(k) for k in ("entry", "defines", "directory") if k in options}
    sink = sink or Recorder()
    read(text, "k.cce", **own).run(sink, arguments, **options)
    return sink


def body(statements: str, parameters: str = "__gm__ int64_t *out", before: str = "") -> str:
    """Return the text of a kernel whose only function consists of ``statements``."""
    return f"{before}\n__global__ __aicore__ void k({parameters}) {{\n{statements}\n}}\n"


def results(statements: str, count: int, dtype: str = "int64", before: str = "") -> list:
    """Run statements as a kernel, and return the values that they write to ``out``."""
    kind = {"fp16": "half", "fp32": "float"}.get(dtype, f"{dtype}_t")
    sink = run(body(statements, f"__gm__ {kind} *out", before), [0])
    return sink.values("GM", dtype, count)

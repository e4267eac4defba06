"""Records: bytes of a hostile process, and the text of the recorder."""

import random
import struct

import pytest

from vitruvian.sim.davinci.ascendc.calls import call_of
from vitruvian.sim.davinci.ascendc.header import ENUMS, TYPES, intrinsics_header, names
from vitruvian.sim.davinci.ascendc.kernels import declared_kernels
from vitruvian.sim.davinci.ascendc.records import Argument, Reader, RecordError
from vitruvian.sim.davinci.cce import CceError, SourcePosition, intrinsic_table
from vitruvian.sim.davinci.cce.sink.context import GM_BASE

HERE = SourcePosition("k.cpp", 3)
HALF, INT32 = (next(i for i, t in enumerate(TYPES) if str(t) == n) for n in ("half", "int32_t"))


def test_random_bytes_are_refused_or_read():
    """No bytes raise anything but a RecordError or a CceError with the line."""
    random.seed(1)
    good = struct.pack("<cHB", b"I", names().index("pipe_barrier"), 1)
    good += struct.pack("<cBq", b"e", ENUMS.index("pipe_t") + 1, 1) + struct.pack("<BQ", 1, 5)
    kinds = {"read": 0, "refused": 0}
    for _ in range(20_000):
        data = bytearray(good)
        for _ in range(random.randrange(3)):
            data[random.randrange(len(data))] = random.randrange(256)
        record = Reader(bytes(data[: random.randrange(len(data) + 1)] or data))
        try:
            name, arguments = record.intrinsic()
            record.chain()
            call_of(name, arguments, 64, HERE)
            kinds["read"] += 1
        except (RecordError, CceError):
            kinds["refused"] += 1
    assert min(kinds.values()) > 100


@pytest.mark.parametrize("data", [b"P\x64\0\0\0abc", b"P\3", b"", b"E\2" + bytes(8)])
def test_a_record_that_ends_too_early(data):
    """No field reaches beyond the end of its record."""
    record = Reader(data)
    with pytest.raises(RecordError, match="ends too early"):
        record.text() if record.kind == "P" else record.chain()


def pointer(value, type=HALF):
    return Argument("p", type, value)


def test_a_pointer_is_of_the_memory_that_the_signature_names():
    """g++ has no address spaces: the intrinsic decides what the address 64 means."""
    numbers = [Argument("i", INT32, n) for n in (0, 1, 2, 0, 0)]
    call = call_of("copy_gm_to_ubuf", (pointer(64), pointer(GM_BASE), *numbers), 64, HERE)
    assert (call.arguments["dst"].space, call.arguments["src"].space) == ("UB", "GM")
    call = call_of("copy_gm_to_cbuf", (pointer(64), pointer(GM_BASE), *numbers), 64, HERE)
    assert (call.arguments["dst"].space, call.pipe) == ("L1", "MTE2")


@pytest.mark.parametrize("place", [64, GM_BASE - 1, GM_BASE + 64, 1 << 63])
def test_a_pointer_outside_of_the_arrays(place):
    """Global memory has the kernel's arrays and nothing else."""
    numbers = [Argument("i", INT32, n) for n in (0, 1, 2, 0, 0)]
    with pytest.raises(CceError, match=r"k\.cpp:3:1: copy_gm_to_ubuf: src must "):
        call_of("copy_gm_to_ubuf", (pointer(0), pointer(place), *numbers), 64, HERE)


def test_every_intrinsic_has_a_template():
    """A name that is missing would be an error of g++ and not of the kernel's line."""
    text = intrinsics_header()
    assert all(f" {name}(" in text for name in intrinsic_table())
    assert names() == tuple(sorted(intrinsic_table()))


def test_declarations_of_kernels():
    """Comments, namespaces, templates, attributes and macros of types are read."""
    text = """/* __global__ void no(int a) */ namespace one::two {
    template <typename T> __global__ __aicore__ void k(GM_ADDR x, __gm__ const T *y, unsigned n) {}
    } extern "C" __global__ __mix__(1, 2) void m(__gm__ half* __restrict__ a, uint8_t b = 3);"""
    kernels = declared_kernels(text)
    assert list(kernels) == ["k", "m"]
    assert kernels["k"].call == "one::two::k" and kernels["k"].is_template
    assert kernels["k"].instance("k<half>").call == "one::two::k<half>"
    shown = [[(p.name, p.dtype, p.is_pointer) for p in k.parameters] for k in kernels.values()]
    assert shown[0] == [("x", "uint8", True), ("y", "uint8", True), ("n", "uint32", False)]
    assert shown[1] == [("a", "fp16", True), ("b", "uint8", False)]

"""The files of the probe kit: operands of several instructions, with room for their results.

All numbers are little-endian. The file begins with a header of 128 bytes:

| offset | content |
|---|---|
| 0 | the eight bytes ``VTPROBE`` and zero |
| 8 | uint32: version of the kit |
| 12 | uint32: number of sections |
| 16 | uint64: seed of the operands |
| 24 | uint64: length of the file in bytes |
| 32 | SHA-256 of the file with zeros in the place of everything that a program writes |
| 64 | 64 bytes: text that names the device, written by the program |

A section header of 256 bytes follows for each instruction: the texts name, input, input_b, output
and scale (64, 32, 32, 32 and 32 bytes, padded with zeros), the uint32 numbers status (1 if the
program has run the instruction), rows, terms, scales in a row, and the sizes of an element of A, B
and C in bytes, and an unused one, then the uint64 offset of A; B, C, the scales of A, those of B
and D follow A without gaps. A program fills the device, each status and each D, and writes the
whole file back.
"""

import hashlib
import re
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.common.files import read_whole
from vitruvian.golden.fp.codec import code_dtype
from vitruvian.golden.fp.formats import (
    FORMATS,
    INT_FORMATS,
    OTHER_FORMATS,
    FloatFormat,
    IntFormat,
)
from vitruvian.golden.fp.scales import SCALES
from vitruvian.golden.machines.probe import (
    KIT_VERSION,
    Cases,
    Results,
    kept_terms,
    with_results,
)

_MAGIC = b"VTPROBE\0"
_HEADER = struct.Struct("<8sIIQQ32s64s")
# Without alignment: the struct Section of the C programs has the same offsets because every member
# is aligned by itself.
_SECTION = struct.Struct("<64s32s32s32s32sIIIIIIIIQ24x")


@dataclass(frozen=True)
class ProbeSection:
    """An instruction with its operands, and with its results if it has run.

    Attributes
    ----------
    name : str
        Name of the instruction.
    cases : Cases or Results
    """

    name: str
    cases: Cases


def _dtype(format: FloatFormat | IntFormat) -> np.dtype:
    if isinstance(format, FloatFormat):
        return code_dtype(format)
    return np.dtype(f"u{format.bits // 8}")


def pack(sections: list[ProbeSection], seed: int) -> bytes:
    """Return the file of the operands of these sections."""
    bodies: list[bytes] = []
    headers: list[bytes] = []
    offset = _HEADER.size + len(sections) * _SECTION.size
    for section in sections:
        x = section.cases
        rows = len(x.c)
        parts = [x.a, x.b, x.c]
        parts += [] if x.scale_a is None or x.scale_b is None else [x.scale_a, x.scale_b]
        parts.append(np.zeros(rows, x.c.dtype))
        body = b"".join(p.astype(p.dtype.newbyteorder("<")).tobytes() for p in parts)
        # Each section begins at a multiple of 16 bytes, so that programs may read whole words.
        body += bytes(-len(body) % 16)
        headers.append(
            _SECTION.pack(
                section.name.encode(),
                *(str(f).encode() for f in (x.input, x.input_b, x.output, x.scale or "")),
                0,
                rows,
                x.terms,
                0 if x.scale_a is None else x.scale_a.shape[1],
                *(p.dtype.itemsize for p in parts[:3]),
                0,
                offset,
            )
        )
        bodies.append(body)
        offset += len(body)
    rest = b"".join(headers) + b"".join(bodies)
    fixed = (_MAGIC, KIT_VERSION, len(sections), seed, offset)
    # The hash covers the operands only, so that a file with results can be checked against it.
    digest = hashlib.sha256(_HEADER.pack(*fixed, bytes(32), bytes(64)) + rest).digest()
    return _HEADER.pack(*fixed, digest, bytes(64)) + rest


def read(path: Path) -> tuple[str, list[ProbeSection]]:
    """Read a file that a program has written.

    Returns
    -------
    device : str
        The text that names the device.
    sections : list of ProbeSection
        The instructions that have run; their cases are ``Results``.

    Raises
    ------
    UserError
        If the file is no such file, is not whole, is larger than 256 MiB, or is of another version
        of the kit.
    """
    data = bytearray(read_whole(path))
    if data[:8] != _MAGIC or len(data) < _HEADER.size:
        raise UserError(f"{path} must be an outputs file of the probe kit, or an .npz file")
    _, version, count, _, length, digest, device = _HEADER.unpack_from(data)
    if version != KIT_VERSION:
        raise UserError(
            f"{path} must be of version {KIT_VERSION} of the probe kit, not {version}; "
            "write the inputs again"
        )
    if len(data) != length or _HEADER.size + count * _SECTION.size > length:
        raise UserError(f"{path} must have {length} bytes, not {len(data)}; it is truncated")
    whole = bytes(data)
    sections: list[ProbeSection] = []
    for number in range(count):
        place = _HEADER.size + number * _SECTION.size
        try:
            section, ran, d_at, d_bytes = _section(whole, place)
        except (ValueError, KeyError, OverflowError, MemoryError, struct.error):
            raise UserError(f"section {number} of {path} must be whole, but it is not") from None
        # The status and D are what a program writes; zeros take their places before the hash is
        # compared.
        data[place + 192 : place + 196] = bytes(4)
        data[d_at : d_at + d_bytes] = bytes(d_bytes)
        if ran:
            sections.append(section)
    # The hash itself and the name of the device.
    data[32:128] = bytes(96)
    if hashlib.sha256(data).digest() != digest:
        raise UserError(f"{path} must hold the operands that were written, but they were changed")
    if not sections:
        raise UserError(f"{path} must hold results, but no instruction has run")
    text = device.split(b"\0")[0].decode("utf-8", "replace")
    # The text comes from another machine, and goes to a terminal.
    return "".join(c if c.isprintable() else "\ufffd" for c in text), sections


def _section(data: bytes, place: int) -> tuple[ProbeSection, bool, int, int]:
    """Return a section, if it has run, and the place of D with its size in bytes."""
    fields = _SECTION.unpack_from(data, place)
    name, a, b, c, scale = (text.split(b"\0")[0].decode() for text in fields[:5])
    status, rows, terms, scales, *_, offset = fields[5:]
    if not rows or not terms or (scales and terms % scales):
        raise ValueError("rows, terms and scales must fit")
    if not re.fullmatch(r"[\w.:+-]+", name):  # it is printed, and becomes the name of a file
        raise ValueError("the name of an instruction must be a word")
    formats = [_format(f) for f in (a, b, c)]
    shapes = [(rows, terms), (rows, terms), (rows,)]
    dtypes = [_dtype(f) for f in formats]
    if scales:
        shapes += [(rows, scales), (rows, scales)]
        dtypes += [np.dtype(np.uint8)] * 2
    arrays: list[np.ndarray] = []
    for shape, dtype in zip([*shapes, (rows,)], [*dtypes, dtypes[2]], strict=True):
        size = int(np.prod(shape))
        part = np.frombuffer(data, dtype.newbyteorder("<"), size, offset)
        arrays.append(part.reshape(shape).astype(dtype))
        # After the loop this is the place of D, the last array.
        place_d, offset = offset, offset + part.nbytes
    given = Cases(
        input=formats[0],
        input_b=formats[1],
        output=formats[2],
        a=arrays[0],
        b=arrays[1],
        c=arrays[2],
        scale=SCALES[scale] if scale else None,
        scale_a=arrays[3] if scales else None,
        scale_b=arrays[4] if scales else None,
    )
    return (
        ProbeSection(name, with_results(given, arrays[-1])),
        status == 1,
        place_d,
        arrays[-1].nbytes,
    )


def _format(name: str) -> FloatFormat | IntFormat:
    for table in (FORMATS, OTHER_FORMATS, INT_FORMATS):
        if name in table:
            return table[name]
    raise KeyError(name)


def results_of(section: ProbeSection) -> Results:
    """Return the results of a section that has run; of a sparse instruction, the terms it adds."""
    data = kept_terms(section.cases) if "sp" in section.name.split("_") else section.cases
    assert isinstance(data, Results)
    return data

"""Records of a running kernel, as hostile bytes that become checked values."""

import struct
from dataclasses import dataclass
from typing import Any

from .header import ENUMS, TYPES, names

#: The largest record, in bytes.
LARGEST = 6000

#: The largest part of a copy between host and device, in bytes.
PART = 1 << 16

_U64 = 1 << 64


class RecordError(ValueError):
    """Bytes that are no record."""


@dataclass(frozen=True)
class Argument:
    """An argument of an intrinsic.

    Attributes
    ----------
    tag : str
        p (a pointer), i (an integer), e (an enumeration), f (a floating-point number), or w (words
        of the kernel's own memory).
    type : int
        The index in ``TYPES``, or that in ``ENUMS`` plus one.
    value : int, float or tuple of int
    """

    tag: str
    type: int
    value: Any


class Reader:
    """A record, read field by field.

    Parameters
    ----------
    data : bytes
        The record without its size.

    Attributes
    ----------
    kind : str
        The letter of the record's kind; "" for an empty record.
    """

    def __init__(self, data: bytes):
        self.data, self._at = data, 1
        self.kind = chr(data[0]) if data else ""

    def take(self, form: str) -> Any:
        """Return the next field, of a letter of ``struct``."""
        size = struct.calcsize(f"<{form}")
        if self._at + size > len(self.data):
            raise RecordError("a record ends too early")
        (value,) = struct.unpack_from(f"<{form}", self.data, self._at)
        self._at += size
        return value

    def take_bytes(self, count: int) -> bytes:
        """Return the next bytes."""
        if count > len(self.data) - self._at:
            raise RecordError("a record ends too early")
        self._at += count
        return self.data[self._at - count : self._at]

    def chain(self) -> bytes:
        """Return the chain of calls, which ends the record."""
        chain = self.take_bytes(8 * self.take("B"))
        if self._at != len(self.data):
            raise RecordError("a record is too long")
        return chain

    def intrinsic(self) -> tuple[str, tuple[Argument, ...]]:
        """Return the name and the arguments of an intrinsic."""
        number, count = self.take("H"), self.take("B")
        known = names()
        if number >= len(known):
            raise RecordError("a record names no intrinsic")
        return known[number], tuple(self._argument() for _ in range(count))

    def _argument(self) -> Argument:
        tag, type = chr(self.take("B")), self.take("B")
        if tag == "w":
            if type > 8:
                raise RecordError("a record has too many words")
            return Argument(tag, type, tuple(self.take("Q") for _ in range(type)))
        if tag not in "pief?" or type >= (len(ENUMS) + 1 if tag == "e" else len(TYPES)):
            raise RecordError("a record has an unknown type")
        return Argument(tag, type, self.take({"p": "Q", "f": "d"}.get(tag, "q")))

    def text(self) -> str:
        """Return a text."""
        return self.take_bytes(self.take("I")).decode(errors="replace")

"""The frames of the serial line, as the host makes and reads them; ``hdl.bus.frames`` in Python."""

from binascii import crc_hqx
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

#: Most words in a frame.
MOST_WORDS = 63
_REQUEST, _RESPONSE = 0xA5, 0x5A
_WRITE, _INCREMENT, _REFUSED, _COUNT = 0x80, 0x40, 0x80, 0x3F


def crc(data: bytes) -> bytes:
    """Return the CRC-16/IBM-3740 of bytes, high byte first."""
    return crc_hqx(data, 0xFFFF).to_bytes(2, "big")


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request to read or write words.

    Attributes
    ----------
    sequence : int
        Sequence number, 0 to 255. A request with the number of the one before is a repetition,
        unless the number is 0.
    address : int
        Address of the first word, 0 to 255.
    count : int
        Number of words, 0 to ``MOST_WORDS``.
    words : tuple of int, optional
        The ``count`` words to write; None makes the request a read.
    increment : bool
        If True, the address grows by 1 after each word.
    """

    sequence: int
    address: int
    count: int
    words: tuple[int, ...] | None = None
    increment: bool = False

    def __bytes__(self) -> bytes:
        """Return the bytes of the frame."""
        write, words = self.words is not None, self.words or ()
        if not 0 <= self.count <= MOST_WORDS or (write and len(words) != self.count):
            raise ValueError(f"count must be the number of words, 0 to {MOST_WORDS}")
        command = self.count | _INCREMENT * self.increment | _WRITE * write
        payload = b"".join(word.to_bytes(4, "little") for word in words)
        body = bytes([self.sequence, command, self.address]) + payload
        return bytes([_REQUEST]) + body + crc(body)


@dataclass(frozen=True, kw_only=True)
class Response:
    """A response.

    Attributes
    ----------
    sequence : int
        Sequence number of the request. That of a refused request may be damaged.
    refused : bool
        The request was damaged and had no effect.
    words : tuple of int
        The words that a read has returned.
    """

    sequence: int
    refused: bool = False
    words: tuple[int, ...] = ()

    def __bytes__(self) -> bytes:
        """Return the bytes of the frame."""
        payload = b"".join(word.to_bytes(4, "little") for word in self.words)
        body = bytes([self.sequence, len(self.words) | _REFUSED * self.refused]) + payload
        return bytes([_RESPONSE]) + body + crc(body)


class Reader:
    """Reader of responses from a stream of bytes, which may be damaged.

    Bytes before a frame and frames with a wrong CRC are skipped. After a wrong CRC, the search for
    the next frame begins at the second byte of the damaged one.
    """

    def __init__(self) -> None:
        self._bytes = bytearray()

    def clear(self) -> None:
        """Forget an incomplete frame."""
        self._bytes.clear()

    def put(self, data: bytes) -> Iterator[Response]:
        """Return the responses that are complete with more bytes."""
        self._bytes += data
        while (begin := self._bytes.find(_RESPONSE)) >= 0:
            del self._bytes[:begin]
            if len(self._bytes) < 3 or len(self._bytes) < (size := _size(self._bytes[2])):
                return
            body, check = self._bytes[1 : size - 2], self._bytes[size - 2 : size]
            if crc(bytes(body)) != check:
                del self._bytes[0]
                continue
            del self._bytes[:size]
            yield Response(
                sequence=body[0], refused=bool(body[1] & _REFUSED), words=_words(body[2:])
            )
        self._bytes.clear()


def _size(status: int) -> int:
    """Return the bytes of a response by its status and count."""
    return 5 + 4 * (status & _COUNT)


def _words(payload: Sequence[int]) -> tuple[int, ...]:
    data = bytes(payload)
    return tuple(int.from_bytes(data[n : n + 4], "little") for n in range(0, len(data), 4))

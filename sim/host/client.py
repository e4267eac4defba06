"""Reads and writes of a board's registers, repeated until they succeed."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from vitruvian.common.errors import UserError, WorkError
from vitruvian.hdl.bus.registers import MAP

from .frames import MOST_WORDS, Reader, Request, Response
from .port import ByteStream, SerialPort

#: Bits per second of a board, by default.
BAUD = 1_000_000
#: Seconds without a response after which a request is repeated, by default.
TIMEOUT_S = 2.0
_ATTEMPTS = 10
_FIRST_ATTEMPTS = 3


class NoAnswerError(WorkError):
    """A board that does not answer."""


@dataclass
class Traffic:
    """Counts of what went over the line.

    Attributes
    ----------
    requests : int
        Requests, without repetitions.
    refused : int
        Requests that the board refused because they were damaged.
    unanswered : int
        Requests that were repeated because no undamaged response came in time.
    sent, received : int
        Bytes to and from the board.
    """

    requests: int = 0
    refused: int = 0
    unanswered: int = 0
    sent: int = 0
    received: int = 0


class Client:
    """The registers of a board at the end of a line.

    A damaged request has no effect, so it is repeated. A request whose response was damaged has
    been executed; the repetition has the same sequence number and gets the response again.

    Parameters
    ----------
    stream : ByteStream
        The line.
    timeout : float
        Seconds without a response after which a request is repeated.
    name : str
        Name of the line, for messages.

    Attributes
    ----------
    traffic : Traffic
        Counts of requests and bytes so far.
    """

    def __init__(self, stream: ByteStream, *, timeout: float = TIMEOUT_S, name: str = "the line"):
        self.name, self.traffic = name, Traffic()
        self._stream, self._timeout = stream, timeout
        self._reader = Reader()
        self._sequence = 0

    def close(self) -> None:
        """Close the line."""
        self._stream.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, register: str, count: int) -> tuple[int, ...]:
        """Begin a session by reading successive registers.

        Such a request has the sequence number 0, so the board executes it even if it repeats the
        last one of an earlier session. It may be executed twice, so a read of these registers must
        have no effect.

        Raises
        ------
        NoAnswerError
            If there is no answer, with a lower number of attempts than later in the session.
        """
        self._sequence = 0
        request = Request(
            sequence=0, address=MAP[register].address, count=count, increment=count > 1
        )
        return self._transact(request, _FIRST_ATTEMPTS)

    def read(self, register: str, count: int = 1) -> tuple[int, ...]:
        """Read ``count`` words from one register.

        Raises
        ------
        NoAnswerError
            If the board does not answer.
        """
        words: list[int] = []
        for begin in range(0, count, MOST_WORDS):
            words += self.transfer(MAP[register].address, min(MOST_WORDS, count - begin))
        return tuple(words)

    def write(self, register: str, words: Sequence[int]) -> None:
        """Write words to one register, one after the other.

        Raises
        ------
        NoAnswerError
            If the board does not answer.
        """
        for begin in range(0, len(words), MOST_WORDS):
            part = tuple(int(word) for word in words[begin : begin + MOST_WORDS])
            self.transfer(MAP[register].address, len(part), part)

    def transfer(
        self,
        address: int,
        count: int,
        words: tuple[int, ...] | None = None,
        *,
        increment: bool = False,
    ) -> tuple[int, ...]:
        """Read words, or write ``words``, by one request.

        Parameters
        ----------
        address, count, words, increment
            As in ``Request``.

        Returns
        -------
        tuple of int
            The words of a read; none for a write.

        Raises
        ------
        NoAnswerError
            If the board does not answer.
        """
        self._sequence = self._sequence % 255 + 1
        request = Request(
            sequence=self._sequence,
            address=address,
            count=count,
            words=words,
            increment=increment,
        )
        return self._transact(request, _ATTEMPTS)

    def _transact(self, request: Request, attempts: int) -> tuple[int, ...]:
        """Send a request until its response has come, and return the words of the response."""
        frame = bytes(request)
        count = 0 if request.words is not None else request.count
        self.traffic.requests += 1
        began = time.monotonic()
        for _ in range(attempts):
            self._stream.write(frame)
            self.traffic.sent += len(frame)
            response = self._response(request.sequence, count)
            if response is None:
                self.traffic.unanswered += 1
            elif response.refused:
                self.traffic.refused += 1
            else:
                return response.words
            self._reader.clear()
        seconds = time.monotonic() - began
        raise NoAnswerError(f"{self.name} gave no answer to {attempts} requests in {seconds:.1f} s")

    def _response(self, sequence: int, count: int) -> Response | None:
        """Return the response to a request, or a refusal, or None if neither comes in time."""
        deadline = time.monotonic() + self._timeout
        while True:
            data = self._stream.read(deadline - time.monotonic())
            self.traffic.received += len(data)
            for response in self._reader.put(data):
                # A late response to an earlier request has another sequence number.
                right = response.sequence == sequence and len(response.words) == count
                if response.refused or right:
                    return response
            if time.monotonic() >= deadline:
                return None


def connect(port: str, *, baud: int = BAUD, timeout: float = TIMEOUT_S) -> Client:
    """Open a serial port and return the registers of the board behind it.

    Parameters
    ----------
    port : str
        The device, for example /dev/ttyUSB0.
    baud : int
        Bits per second.
    timeout : float
        Seconds without a response after which a request is repeated.

    Raises
    ------
    UserError
        If the port cannot be opened.
    """
    if not 0 < timeout < 3600:
        raise UserError(f"timeout must be more than 0 and less than 3600 s, not {timeout!r}")
    return Client(SerialPort(port, baud), timeout=timeout, name=f"{port} at {baud} baud")


def recognise(
    client: Client, registers: Sequence[str], *, identity: int, version: int, a_core: bool = False
) -> dict[str, int]:
    """Return the registers that describe a board, from ``identity`` and ``version`` on.

    Parameters
    ----------
    registers : sequence of str
        Names of the registers, in the order of their offsets.
    identity, version : int
        What the first two must be; the lower half of the version counts additions.
    a_core : bool
        The board must have a core, not a matrix unit.

    Raises
    ------
    UserError
        If nothing answers, if the board is another one, or if its registers have another version.
    """
    try:
        words = client.start("identity", len(registers))
    except NoAnswerError as error:
        raise UserError(f"port must lead to a board that answers: {error}") from None
    values = dict(zip(registers, words, strict=True))
    if values["identity"] != identity:
        must = "be a core with" if a_core else "have"
        hint = "; `vitruvian board --core tiny` is one" if a_core else ""
        raise UserError(
            f"board must {must} the identity {identity:#010x}, not {values['identity']:#010x} "
            f"({client.name}){hint}"
        )
    if values["version"] >> 16 != version >> 16:
        raise UserError(
            f"board must have registers of version {version >> 16}, "
            f"not {values['version'] >> 16} ({client.name})"
        )
    return values

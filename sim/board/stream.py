"""A simulated board in the same process, as the line of a client."""

from .model import LineModel


class ModelStream:
    """The line to a compiled model, without an operating system between.

    Parameters
    ----------
    model : LineModel
        The board.
    """

    def __init__(self, model: LineModel):
        self.model = model
        self._back = bytearray()

    def write(self, data: bytes) -> None:
        """Send bytes to the board, and simulate it until it has nothing left to do."""
        self._back += self.model.exchange(data)

    def read(self, seconds: float) -> bytes:
        """Return the bytes that have come; ``seconds`` has no effect, since no more can come."""
        del seconds
        data = bytes(self._back)
        self._back.clear()
        return data

    def close(self) -> None:
        """Do nothing."""

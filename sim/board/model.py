"""The compiled RTL of a component with a serial line, and the bits on that line."""

import ctypes
import shutil
from pathlib import Path
from typing import Any

from amaranth.lib import wiring

from vitruvian.common.cache import entry
from vitruvian.common.validate import check_int
from vitruvian.sim.rtl.build import LIBRARY
from vitruvian.sim.rtl.emit import to_rtlil, verilog_of

_DRIVER = Path(__file__).with_name("line.inc")
_ONE = 1 << 16  # a clock cycle in the units of the driver
_ROOM = 1 << 16  # bytes that a call may return


class LineModel:
    """A compiled component at the end of a serial line.

    Every bit passes the RTL of the receiver and of the transmitter. Between the calls, the clock
    stands still.

    Parameters
    ----------
    component : wiring.Component or str
        Component with the ports ``rx``, ``tx`` and ``led``, which is 1 while the component works;
        or the Verilog of such a component with a top module ``top``, for example of a mutant.
    divisor : int
        Clock cycles of a bit.
    mismatch : float
        Relative difference of the host's bits: 0.02 makes them 2 % longer than those of the board.
    noise : float
        Probability that the line to the board has the wrong level in a clock cycle.
    seed : int
        Seed of the noise.

    Raises
    ------
    ToolError, BuildError
        If a tool is missing, or refuses the design.
    TypeError, UserError
        If the divisor is not an int, or is too small.
    """

    def __init__(
        self,
        component: "wiring.Component[Any] | str",
        *,
        divisor: int,
        mismatch: float = 0.0,
        noise: float = 0.0,
        seed: int = 1,
    ):
        self.divisor = check_int("divisor", divisor, 1)
        self._bit = round(divisor * (1 + mismatch) * _ONE)
        self._noise = min(round(noise * 2**32), 2**32 - 1)
        self._handle: int | None = None
        self._library = ctypes.CDLL(str(_built(component)))
        self._library.line_new.restype = ctypes.c_void_p
        self._library.line_delete.argtypes = [ctypes.c_void_p]
        self._library.line_seed.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
        for name in ("line_cycles", "line_errors"):
            getattr(self._library, name).argtypes = [ctypes.c_void_p]
            getattr(self._library, name).restype = ctypes.c_uint64
        self._library.line_run.restype = ctypes.c_uint64
        self._library.line_run.argtypes = [
            *(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_uint64),
            *(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint32),
        ]
        self._handle = self._library.line_new()
        self._library.line_seed(self._handle, seed)

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self._library.line_delete(self._handle)

    @property
    def cycles(self) -> int:
        """Clock cycles since the reset."""
        return self._library.line_cycles(self._handle)

    @property
    def errors(self) -> int:
        """Bytes from the component with a wrong start or stop bit."""
        return self._library.line_errors(self._handle)

    def exchange(self, data: bytes, *, limit: int = 1 << 22, idle: int | None = None) -> bytes:
        """Send bytes and return those that come back.

        Parameters
        ----------
        data : bytes
            Bytes to the component, sent without gaps.
        limit : int
            Most clock cycles to run. Bytes that have not been sent then are sent in the next call.
        idle : int, optional
            Number of cycles after which to stop if nothing happens on the line and ``led`` is 0;
            the length of two bytes by default.
        """
        idle = 20 * self.divisor if idle is None else idle
        back = ctypes.create_string_buffer(_ROOM)
        count = self._library.line_run(
            self._handle, data, len(data), back, _ROOM, limit, idle, self._bit, self._noise
        )
        return ctypes.string_at(back, count)


def _built(component: "wiring.Component[Any] | str") -> Path:
    """Return the shared library of a component's model, which is built if it is not cached."""
    text = component if isinstance(component, str) else to_rtlil(component)
    driver = _DRIVER.read_text()

    def build(folder: Path) -> dict[str, Any]:
        verilog = text if isinstance(component, str) else verilog_of(text)
        source, work = folder / "model.v", folder / "work"
        source.write_text(verilog)
        pieces = LIBRARY.translate(source, work, top="top")
        (work / "line.cpp").write_text(driver)
        objects = LIBRARY.objects(work) + pieces
        LIBRARY.link(objects, folder / "model.so", "-shared", "-Wl,-Bsymbolic")
        shutil.rmtree(work)
        return {}

    return entry("line", LIBRARY.key("line", text, driver), build)[0] / "model.so"

"""State of a kernel's core that the functions for single intrinsics share."""

from typing import NoReturn

from vitruvian.sim.davinci.cce.intrinsics.runtime import Address, IntrinsicCall
from vitruvian.sim.davinci.cce.language.errors import CceError
from vitruvian.sim.davinci.chip.model import GM
from vitruvian.sim.davinci.isa.operands import DTYPES, View, contiguous
from vitruvian.sim.davinci.program.program import Core
from vitruvian.sim.davinci.semantics import Functional

#: Address of the first byte of global memory as a kernel sees it: no pointer is null.
GM_BASE = 1 << 40


class SinkContext:
    """The core that a kernel's intrinsics go to, and the registers that they have set.

    The functions of ``sink.moves``, ``sink.matrix``, ``sink.images``, ``sink.vector`` and
    ``sink.gather_sort`` take this object and a call. ``ProgramSink`` is derived from it.

    Parameters
    ----------
    functional : Functional, optional
        Carries out each instruction. Without it, data in memory are unknown.

    Attributes
    ----------
    registers : dict of str to int or float
        Control registers that have been set.
    mask : int
        Bit l enables lane l; in counting mode, a number of elements.
    counting : bool
        If True, the core is in counting mode.
    atomic : (dtype, operation)
        How moves to global memory combine with what is there; dtype "" if they replace it.
    addresses : dict of int to tuple of int
        The vector address registers.
    compared : Address or None
        Address from which set_cmpmask loaded the register of comparisons; None after a comparison.
    held : bytes
        The first four bytes that it loaded; empty if the data are unknown.
    unit_flags : (frozenset, frozenset) of (int, int)
        Bytes of L0C that instructions of M and of FIX with a unit flag have used since the other
        unit waited for them.
    version : int
        A number that changes with every register that has no attribute of its own.
    """

    def __init__(self, core: Core, functional: Functional | None = None):
        self.core, self.functional = core, functional
        self.registers: dict[str, int | float] = {}
        self.mask, self.counting = (1 << 128) - 1, False
        self.atomic = ("", "add")
        self.addresses: dict[int, tuple[int, ...]] = {}
        self.compared: Address | None = None
        self.held = b""
        self.unit_flags: tuple[frozenset[tuple[int, int]], ...] = (frozenset(), frozenset())
        self.version = 0

    def view(self, address: Address, shape: tuple[int, ...], dtype: str | None = None) -> View:
        """Return a dense view of the elements that a pointer points to.

        Parameters
        ----------
        dtype : str, optional
            By default that of the pointer.
        """
        dtype = dtype or address.dtype
        strides = contiguous(shape, DTYPES[dtype].itemsize)
        start = address.address - (GM_BASE if address.space == GM else 0)
        return View(address.space, start, dtype, shape, strides)

    def fail(self, call: IntrinsicCall, message: str) -> NoReturn:
        """Raise a ``CceError`` at the intrinsic."""
        raise CceError(call.position, f"{call.name}: {message}")

"""Programs in Python, written as kernels are written in C: tensors, instructions, flags, loops.

>>> from vitruvian.sim.davinci import Program, Unit, load_chip
>>> program = Program(load_chip("ascend310"))
>>> x = program.tensor("x", (1024,), "fp16")
>>> core = program.core()
>>> u = core.allocate("UB", (1024,), "fp16")
>>> core.copy(u, x)
>>> core.set_flag(Unit.MTE2, Unit.V, 0)
>>> core.wait_flag(Unit.MTE2, Unit.V, 0)
>>> core.vrelu(u, u)

A ``Core`` has a method for every operation of ``OPERATIONS``. Each method appends one
``Instruction``, except that a lane-wise vector method without ``repeat`` appends as many as its
views need. Loops are Python's.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from vitruvian.common.validate import check_int, round_up
from vitruvian.sim.davinci.chip.model import GM, Chip, CoreKind
from vitruvian.sim.davinci.isa.instruction import Kind, Unit
from vitruvian.sim.davinci.isa.operands import DTYPES, View, contiguous, dtype_bytes
from vitruvian.sim.davinci.program.builder import unit_name
from vitruvian.sim.davinci.program.gather_sort import GatherSort
from vitruvian.sim.davinci.program.images import Images
from vitruvian.sim.davinci.program.vector_methods import VectorMethods

#: Alignment of tensors in global memory, a fractal.
_GM_ALIGN = 512

#: The largest number of blocks of a launch: the runtime's field for it has 16 bits.
_MOST_BLOCKS = (1 << 16) - 1

#: Core-to-core flags by mode: who must have set before a wait goes on.
_CROSS = ("kind", "group", "others")


class Core(VectorMethods, GatherSort, Images):
    """The instructions of one core, in program order.

    Attributes
    ----------
    program : Program
    index : int
        Index of the core among those of its kind.
    kind : CoreKind
    """

    def __init__(self, program: "Program", index: int, kind: CoreKind) -> None:
        super().__init__(program.chip, kind.units)
        self.program: Program = program
        self.index: int = index
        self.kind: CoreKind = kind
        self._used = dict.fromkeys(kind.buffers, 0)
        self._flags: dict[int, dict[str, Any]] = {}

    def __str__(self) -> str:
        return f"{self.kind.name} {self.index}"

    # Memory.

    def allocate(
        self, buffer: str, shape: int | tuple[int, ...], dtype: str, name: str = ""
    ) -> View:
        """Allocate a tensor in a buffer of this core, behind those allocated before.

        Parameters
        ----------
        buffer : str
            Name of the buffer, such as "UB" or "L1".
        shape : int or tuple of int
            Numbers of elements along the axes; the last axis is contiguous.
        dtype : str
            A key of ``DTYPES``.
        name : str
            Name in messages.

        Raises
        ------
        ProgramError
            If the core has no such buffer, or the tensor does not fit what is left of it.
        """
        if buffer not in self.kind.buffers:
            self.fail(f"buffer must be one of {', '.join(self.kind.buffers)}, not {buffer!r}")
        memory = self.kind.buffers[buffer]
        # Tensors are never moved: what is allocated stays at its place until ``release``.
        start = round_up(self._used[buffer], memory.align)
        view = self.view(buffer, start, shape, dtype, name)
        if start + view.nbytes > memory.nbytes:
            shown = f"{name or 'tensor'} of {view.nbytes} bytes"
            self.fail(f"{shown} must fit the {memory.nbytes - start} bytes left of {buffer}")
        self._used[buffer] = start + view.nbytes
        return view

    def release(self) -> None:
        """Release all tensors: the next ones use the buffers from their start."""
        self._used = dict.fromkeys(self._used, 0)

    def view(
        self, buffer: str, offset: int, shape: int | tuple[int, ...], dtype: str, name: str = ""
    ) -> View:
        """Return a tensor at any place of a buffer; only the checks find an invalid place.

        Parameters
        ----------
        buffer : str
            Name of the buffer.
        offset : int
            First byte in the buffer.
        shape : int or tuple of int
            Numbers of elements along the axes; the last axis is contiguous.
        dtype : str
            A key of ``DTYPES``.
        name : str
            Name in messages.

        Raises
        ------
        ProgramError
            If there is no such dtype.
        """
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        if dtype not in DTYPES:
            self.fail(f"dtype must be one of {', '.join(DTYPES)}, not {dtype!r}")
        return View(buffer, offset, dtype, shape, contiguous(shape, dtype_bytes(dtype)), name)

    # Synchronisation.

    def set_flag(self, source: Unit, target: Unit, register: int) -> None:
        """Set a flag on ``source`` after all its earlier work; ``target`` may wait for it.

        Parameters
        ----------
        source, target : Unit
            Two different units of the core.
        register : int
            Number of the event register, from 0; the chip says how many there are.

        Raises
        ------
        ProgramError
            If the core lacks a unit, the units are the same, or there is no such register.
        """
        self._flag("set_flag", Kind.SET, source, source, target, register)

    def wait_flag(self, source: Unit, target: Unit, register: int) -> None:
        """Make ``target`` wait for the matching set_flag of ``source``.

        Parameters
        ----------
        source, target, register
            As ``set_flag`` takes them.

        Raises
        ------
        ProgramError
            As for ``set_flag``.
        """
        self._flag("wait_flag", Kind.WAIT, target, source, target, register)

    def _flag(
        self, op: str, kind: Kind, on: Unit, source: Unit, target: Unit, register: int
    ) -> None:
        # Kernels repeat few flags millions of times, so each one is checked once.
        if type(source) is type(target) is Unit and type(register) is int:
            # Integers, because enumerations are hashed by slow functions.
            fields = self._flags.get(register << 8 | source << 4 | target)
            if fields is not None:
                self.add(on, op, kind, fields=fields)
                return
        for unit in (source, target):
            if unit not in self.kind.units:
                units = ", ".join(u.name for u in self.kind.units)
                self.fail(f"unit of {op} must be one of {units}, not {unit_name(unit)}")
        if source == target:
            self.fail(f"units of {op} must be two, not {source.name} twice")
        registers = self.chip.event_registers
        if isinstance(register, bool) or not isinstance(register, int | np.integer):
            self.fail(f"register of {op} must be an integer, not {register!r}")
        if not 0 <= register < registers:
            self.fail(f"register of {op} must be 0 … {registers - 1}, not {register}")
        fields = {"source": Unit(source), "target": Unit(target), "register": int(register)}
        self._flags[int(register) << 8 | source << 4 | target] = fields
        self.add(Unit(on), op, kind, fields=fields)

    def pipe_barrier(self, unit: Unit | None = None) -> None:
        """Make later work wait for the earlier work of a unit, or of all units if none is given.

        Parameters
        ----------
        unit : Unit, optional
            The unit whose later work waits for its earlier work.

        Raises
        ------
        ProgramError
            If the core has no such unit.
        """
        if unit is None:
            self.add(Unit.S, "pipe_barrier", Kind.BARRIER_ALL, fields={"unit": None})
            return
        if unit not in self.kind.units:
            units = ", ".join(u.name for u in self.kind.units)
            self.fail(f"unit of pipe_barrier must be one of {units}, not {unit_name(unit)}")
        self.add(Unit(unit), "pipe_barrier", Kind.BARRIER, fields={"unit": Unit(unit)})

    def cross_set(self, unit: Unit, register: int, mode: str = "others") -> None:
        """Set a flag for other cores when ``unit`` has done all earlier work.

        Parameters
        ----------
        unit : Unit
            The unit whose earlier work comes before the flag.
        register : int
            0 … 15.
        mode : {"kind", "group", "others"}
            The cores that wait for each other: all cores of this kind; those of this kind in the
            group; or the group's cores of the other kind, which wait for this one.

        Raises
        ------
        ProgramError
            If the chip has no such flags, the core no such unit, or a value is not allowed.
        """
        self._cross("cross_set", Kind.SET, unit, register, mode)

    def cross_wait(self, unit: Unit, register: int, mode: str = "others") -> None:
        """Make ``unit`` wait for the matching cross_set of the other cores.

        Parameters
        ----------
        unit : Unit
            The unit that waits.
        register, mode
            As ``cross_set`` takes them.

        Raises
        ------
        ProgramError
            As for ``cross_set``.
        """
        self._cross("cross_wait", Kind.WAIT, unit, register, mode)

    def _cross(self, op: str, kind: Kind, unit: Unit, register: int, mode: str) -> None:
        if self.chip.cross_s is None:
            self.fail(f"{op} must be on a chip with cross-core flags, not {self.chip.name}")
        if unit not in self.kind.units or not 0 <= register < 16 or mode not in _CROSS:
            allowed = f"a unit of the core, a register 0 … 15, a mode of {', '.join(_CROSS)}"
            self.fail(f"{op} must have {allowed}, not {unit_name(unit)}, {register}, {mode!r}")
        self.add(Unit(unit), op, kind, fields={"register": register, "mode": mode})

    # The scalar unit.

    def scalar(self, cycles: int | None = None, text: str = "") -> None:
        """Append work of the scalar unit.

        Parameters
        ----------
        cycles : int, optional
            Cycles that the work takes; without it, the time that the chip states for ``text``.
        text : str
            Name of the work.

        Raises
        ------
        ProgramError
            If the cycles are no integer from 0 on.
        """
        if cycles is not None and not (isinstance(cycles, int) and cycles >= 0):
            self.fail(f"cycles must be an integer, 0 or more, not {cycles!r}")
        self.add(Unit.S, "scalar", fields={"cycles": cycles, "text": text})

    def scalar_load(self, src: View, expected: Any = None) -> None:
        """Load one element to a register.

        Parameters
        ----------
        src : View
            Its first element is loaded.
        expected : int or float, optional
            The element on which the later instructions of the program depend. A run with data
            refuses the program if memory has another one, because the device would then execute
            other instructions.
        """
        fields = {} if expected is None else {"expected": expected}
        where = (src[(0,) * len(src.shape)].span,)
        self.add(Unit.S, "scalar_load", operands={"src": src}, fields=fields, reads=where)

    def scalar_store(self, dst: View, value: Any) -> None:
        """Store one element from a register.

        Parameters
        ----------
        dst : View
            Its first element is written.
        value : int or float
            The element.
        """
        where = (dst[(0,) * len(dst.shape)].span,)
        self.add(
            Unit.S, "scalar_store", operands={"dst": dst}, fields={"value": value}, writes=where
        )

    def set_mask(self, mask: int, count: bool = False) -> None:
        """Set the mask register. It costs time only: vector instructions carry their own mask.

        Parameters
        ----------
        mask : int
            Bit l enables lane l; with ``count``, the number of elements.
        count : bool
            If True, the unit counts elements instead of lanes.
        """
        self.add(Unit.S, "set_mask", fields={"mask": mask, "count": count})

    def set_control(self, name: str, value: Any) -> None:
        """Set any other control register; it costs time only.

        Parameters
        ----------
        name : str
            Name of the register.
        value : object
            Its value, for messages.
        """
        self.add(Unit.S, "set_control", fields={"name": name, "value": value})


class Program:
    """Instructions for the cores of a chip, and the tensors that they share in global memory.

    Parameters
    ----------
    name : str
        Name in reports.
    blocks : int, optional
        The number of blocks of the launch. If it exceeds the number of cores, the blocks run in
        rounds: a block begins on the first core that has ended an earlier one, in ascending order
        of the blocks. ``core`` then takes the index of a block. Without this number, every index is
        that of a core.

    Attributes
    ----------
    tensors : dict of str to View
        Tensors in global memory by name.
    data : dict of str to ndarray
        Initial data of tensors; a tensor without data is not initialised.
    cores : dict of (kind, index) to Core
        Cores that have been asked for.
    prints : list of (str, str)
        The core and the text of every ``printf`` of a kernel in CCE C, in the order in which the
        cores ran.
    sources : dict of str to str
        The source texts of a kernel in CCE C by file name, for reports by line.
    calls : dict of str to str
        The calls in which a line of a kernel in AscendC ran first: file:line → the functions.
    """

    def __init__(self, chip: Chip, name: str = "kernel", *, blocks: int | None = None) -> None:
        if not isinstance(chip, Chip):
            raise TypeError(f"chip must be a Chip (see load_chip), not {chip!r}")
        if blocks is not None:
            check_int("blocks", blocks, 1, _MOST_BLOCKS)
        self.chip: Chip = chip
        self.blocks: int | None = blocks
        self.name: str = name
        self.tensors: dict[str, View] = {}
        self.data: dict[str, np.ndarray] = {}
        self.cores: dict[tuple[str, int], Core] = {}
        self.prints: list[tuple[str, str]] = []
        self.sources: dict[str, str] = {}
        self.calls: dict[str, str] = {}
        self.gm_bytes: int = 0

    def __len__(self) -> int:
        """Return the number of instructions of all cores."""
        return sum(len(core.instructions) for core in self.cores.values())

    def __iter__(self) -> Iterator[Core]:
        """Iterate over the cores in the chip's order of kinds, then by index."""
        order = {name: i for i, name in enumerate(self.chip.kinds)}
        return iter(sorted(self.cores.values(), key=lambda c: (order[c.kind.name], c.index)))

    def tensor(self, name: str, shape: int | tuple[int, ...], dtype: str, data: Any = None) -> View:
        """Add a tensor to global memory and return it; ``data`` initialise it.

        Parameters
        ----------
        name : str
            Name of the tensor; results have it too.
        shape : int or tuple of int
            Numbers of elements along the axes; the last axis is contiguous.
        dtype : str
            A key of ``DTYPES``.
        data : array_like, optional
            Elements of this shape and dtype; without them, the tensor is not initialised.

        Raises
        ------
        ValueError
            If the name is taken, or the data have another shape or dtype.
        """
        if name in self.tensors:
            raise ValueError(f"name of a tensor must be new, not {name!r}")
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        strides = contiguous(shape, dtype_bytes(dtype))
        start = round_up(self.gm_bytes, _GM_ALIGN)
        view = View(GM, start, dtype, shape, strides, name)
        if data is not None:
            array = np.ascontiguousarray(data)
            if array.shape != shape or array.dtype != DTYPES[dtype]:
                expected = f"{'×'.join(map(str, shape))} of {DTYPES[dtype]}"
                actual = f"{'×'.join(map(str, array.shape))} of {array.dtype}"
                raise ValueError(f"data of {name} must be {expected}, not {actual}")
            self.data[name] = array
        self.tensors[name], self.gm_bytes = view, start + view.nbytes
        return view

    def core(self, index: int = 0, kind: str | None = None) -> Core:
        """Return a core, to append instructions to; or a block of a launch that has ``blocks``.

        Parameters
        ----------
        index : int
            Number of the core among those of its kind, from 0.
        kind : str, optional
            Kind of the core, such as "vector" on the 910B; by default the chip's first.

        Raises
        ------
        ValueError
            If the chip has no core of this kind or index.
        """
        what = self.chip.kind(kind)
        count = max(what.count, (self.blocks or 0) * what.per_group)
        if not 0 <= index < count:
            raise ValueError(f"index of a core must be 0 … {count - 1}, not {index!r}")
        key = (what.name, index)
        if key not in self.cores:
            self.cores[key] = Core(self, index, what)
        return self.cores[key]

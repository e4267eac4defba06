"""Random legal programs in which all units of a core work at the same time."""

from collections.abc import Callable
from typing import Any

import numpy as np

from vitruvian.golden.scu import Patches
from vitruvian.sim.davinci.isa.instruction import Instruction, Unit
from vitruvian.sim.davinci.isa.operands import DTYPES, View
from vitruvian.sim.rtl.core import refusal_of

from .encode import Texts, encode
from .random_programs import MOST_REPEATS, RandomProgram

_KIB, _BLOCK, _FRACTAL = 1024, 32, 512
#: Regions of UB: the operands of V (from 0 on), and what the other units read or write.
_LANES, _LOADED, _CONSTANT = 0, 32 * _KIB, 40 * _KIB
_STORED, _MOVED, _UB = 48 * _KIB, 52 * _KIB, 60 * _KIB
#: Regions of L1: what MTE1 reads, and what MTE2 and MTE3 write.
_SOURCE, _FROM_GM, _FROM_UB, _L1 = 0, 16 * _KIB, 32 * _KIB, 48 * _KIB
#: Fractals of L0A and L0B, and of L0C, that are used.
_OPERANDS, _SUMS = 32, 32
_UNITS = (Unit.S, Unit.V, Unit.M, Unit.MTE1, Unit.MTE2, Unit.MTE3)
_SCALARS = ("int8", "uint8", "fp16", "int16", "uint16", "fp32", "int32", "uint32", "int64")
_ELEMENTS = ("fp16", "fp32", "int32", "int16", "int8", "uint8")


class OverlappingProgram(RandomProgram):
    """A program of phases in which each unit has instructions of its own.

    In a phase, the units read and write different parts of the buffers, so that their order does
    not matter. Flags between random units order them further. M and V change the halves of L0A, L0B
    and L0C that they use with MTE1 and each other from phase to phase. The operands of products are
    finite numbers, because a NaN would hide all others.

    Parameters
    ----------
    seed : int
    core : str or CoreConfig
        Only instructions that this core has are drawn. Its UB and L1 have 64 KiB or more, L0A and
        L0B 16 KiB, and L0C 32 KiB.
    count : int
        Number of phases.

    Attributes
    ----------
    program : Program
        The tensors "ub", "l1", "sums", "products" and "stored" have the contents of UB, of L1 and
        of L0C at the end, products of all of L0A and L0B, and what MTE3 and S have stored.
    """

    def __init__(self, seed: int, core: Any, count: int = 8):
        self.phase = 0
        super().__init__(seed, core, count)

    def _first_products(self) -> None:
        """Give all memory a value; the base class has loaded parts of UB and L1."""
        ub, l1 = (
            self.program.tensor(name, (size // 2,), "fp16", self._halves(size // 2))
            for name, size in (("finite_ub", _UB), ("finite_l1", _L1))
        )
        self.core.copy(self._view("UB", 0, _UB // 2, "fp16"), ub)
        self.core.copy(self._view("L1", 0, _L1 // 2, "fp16"), l1)
        self.core.pipe_barrier()
        self.constant = np.asarray(self.program.data["finite_ub"]).view(np.uint8)
        for buffer in ("L0A", "L0B"):
            self.core.load(
                self.core.view(buffer, 0, (1,), "fp16"),
                self._view("L1", 0, 1, "fp16"),
                repeat=_OPERANDS,
            )
        self.core.pipe_barrier()
        for byte in (0, _SUMS * _KIB // 2):
            self._product(m=64, k=32, n=64, init="zero", c=byte)
        self.core.pipe_barrier()
        self.program.tensor("stored", (20 * _KIB,), "uint8")

    def _halves(self, count: int) -> np.ndarray:
        """Return finite numbers of FP16 of different sizes."""
        scale = 2.0 ** self.random.integers(-6, 4, count)
        return (self.random.standard_normal(count) * scale).astype(np.float16)

    def _draw(self) -> None:
        """Append a phase."""
        self.phase += 1
        makers: dict[Unit, tuple[Callable[[], None], ...]] = {
            Unit.S: (self._scalar_load, self._scalar_store),
            Unit.V: (
                *(self._lanes,) * 3,
                self._reduction,
                self._conversion,
                self._accumulate,
                self._copy_lanes,
                self._sums_out,
                self._col2im,
            ),
            Unit.M: (self._any_product,),
            Unit.MTE1: (self._load, self._im2col, self._copy_l1, self._fill),
            Unit.MTE2: (self._copy_in, self._nd2nz, self._load_in),
            Unit.MTE3: (self._copy_out,),
        }
        queues = {unit: self._instructions(unit, makers[unit]) for unit in _UNITS}
        order = [unit for unit in _UNITS for _ in queues[unit]]
        self.random.shuffle(order)
        phase = [queues[unit].pop(0) for unit in order]
        self._flags(phase)
        self.ops += [instr.op for instr in phase]
        self.core.instructions.extend(phase)
        self.core.pipe_barrier()

    def _instructions(
        self, unit: Unit, makers: tuple[Callable[[], None], ...]
    ) -> list[Instruction]:
        """Return some instructions of a unit that the core has."""
        texts, found, before = Texts(), [], len(self.core.instructions)
        # V depends most on what it has done before.
        wanted = self._number(2, 8) if unit is Unit.V else self._number(0, 4)
        for _ in range(200):
            if len(found) >= wanted:
                break
            self._choice(makers)()
            drawn = self.core.instructions[before:]
            del self.core.instructions[before:]
            refused = (refusal_of(self.config, i.op, i.unit.name, encode(i, texts)) for i in drawn)
            if all(instr.unit is unit for instr in drawn) and not any(refused):
                found += drawn
        return found

    def _flags(self, phase: list[Instruction]) -> None:
        """Insert flags, each set before it is waited for, with no number twice."""
        before = len(self.core.instructions)
        used: set[tuple[int, int, int]] = set()
        for _ in range(self._number(1, 6)):
            a, b = self.random.choice(len(_UNITS), 2, replace=False)
            number = self._number(0, 8)
            if (a, b, number) in used:
                continue
            used.add((a, b, number))
            self.core.set_flag(_UNITS[a], _UNITS[b], number)
            self.core.wait_flag(_UNITS[a], _UNITS[b], number)
            pair = self.core.instructions[before:]
            del self.core.instructions[before:]
            places = sorted(int(x) for x in self.random.integers(0, len(phase) + 1, 2))
            phase.insert(places[1], pair[1])
            phase.insert(places[0], pair[0])

    @property
    def _mine(self) -> int:
        """The half of L0A, L0B and L0C that M uses in this phase."""
        return self.phase % 2

    # S

    def _scalar_load(self) -> None:
        dtype = self._choice(_SCALARS)
        size = np.dtype(DTYPES[dtype]).itemsize
        place = _CONSTANT + size * self._number(0, (_STORED - _CONSTANT) // size)
        value = self.constant[place : place + size].view(DTYPES[dtype])[0].item()
        if self._number(0, 2):
            view = self._view("UB", place, 1, dtype)
        else:
            view = self.program.tensors["finite_ub"].astype("uint8")[place:].astype(dtype)[:1]
        self.core.scalar_load(view, expected=value if np.isfinite(value) else None)

    def _scalar_store(self) -> None:
        dtype = self._choice(_SCALARS)
        size = np.dtype(DTYPES[dtype]).itemsize
        if dtype.startswith("fp"):
            value: Any = float(self._halves(1)[0])
        else:
            value = int.from_bytes(self.random.bytes(size), "little", signed=dtype[0] == "i")
        place = size * self._number(0, _KIB // size)
        if self._number(0, 2):
            self.core.scalar_store(self._view("UB", _STORED + place, 1, dtype), value)
        else:
            tensor = self.program.tensors["stored"][16 * _KIB + place :]
            self.core.scalar_store(tensor.astype(dtype)[:1], value)

    # V

    def _accumulate(self) -> None:
        """Append an operation each of whose repeats reads what the last one has written."""
        op, dtype = self._choice(("vadd", "vmax", "vmin", "vsub")), self._choice(("fp16", "fp32"))
        upper = bool(self._number(0, 2))
        target = self._half(upper, dtype)
        step = self._number(0, 5)
        views = {"dst": target, "src0": target, "src1": self._half(not upper, dtype)}
        strides = {"dst": (1, step), "src0": (1, step), "src1": self._steps()}
        repeat = self._number(2, MOST_REPEATS + 1)
        mask = self._mask(64 if dtype == "fp32" else 128)
        self.core.vector(op, views, repeat=repeat, mask=mask, strides=strides)

    def _copy_lanes(self) -> None:
        blocks, size = self._number(1, 9), self._number(1, 240)
        sums = bool(self._number(0, 2))
        low = (1 - self._mine) * 16 * _KIB + _BLOCK * self._number(0, 125)
        high = self.ub // 2 + _BLOCK * self._number(0, 125)
        self.core.copy(
            self._view("L0C", low, 1)
            if sums
            else self._view("UB", _BLOCK * self._number(0, 125), 1),
            self._view("UB", high, 1),
            bursts=self._number(1, 8),
            burst_bytes=size,
            dst_stride=_BLOCK * (-(-size // _BLOCK) + blocks),
            src_stride=_BLOCK * self._number(0, 25),
        )

    def _sums_out(self) -> None:
        dtype = self._choice(("fp32", "fp16"))
        rows, columns = self._number(1, 40), self._number(1, 4)
        first = self._number(0, 4) * _KIB + 128 * self._number(0, 4)
        source = self.core.view("L0C", (1 - self._mine) * 16 * _KIB + first, (1,), "fp32")
        self.core.matrix_out(
            self._view("UB", _BLOCK * self._number(0, 200), 1, dtype),
            source,
            m=rows,
            n=16 * columns - self._number(0, 16),
            src_stride=128 * self._number(0, 30),
            dst_stride=_BLOCK * (2 * rows + self._number(0, 8)),
            relu=dtype == "fp16" and bool(self._number(0, 2)),
        )

    def _col2im(self) -> None:
        patches = self._any_patches()
        place = (self._number(0, patches.kernel[0]), self._number(0, patches.kernel[1]))
        self.core.col2im(
            self._view("UB", _BLOCK * self._number(0, 50), 1, "fp16"),
            self._view("UB", self.ub // 2 + _BLOCK * self._number(0, 50), 1, "fp16"),
            patches,
            repeat=self._number(1, 4),
            kernel_position=place,
            position=patches.corner(self._number(0, patches.rows * patches.columns)),
            channel=self._number(0, 2),
        )

    def _any_patches(self) -> Patches:
        kernel = (self._number(1, 4), self._number(1, 4))
        return Patches(
            height=self._number(5, 11),
            width=self._number(5, 11),
            kernel=kernel,
            stride=(self._number(1, 4), self._number(1, 4)),
            pad=tuple(self._number(0, 3) for _ in range(4)),  # pyright: ignore[reportArgumentType]
            dilation=(self._number(1, 3), self._number(1, 3)),
        )

    # M

    def _any_product(self) -> None:
        a, b, c = (self._mine * 16 + self._number(0, 9) for _ in range(3))
        self.core.mmad(
            self.core.view("L0C", c * _KIB, (1,), "fp32"),
            self.core.view("L0A", a * _FRACTAL, (1,), "fp16"),
            self.core.view("L0B", b * _FRACTAL, (1,), "fp16"),
            m=self._number(1, 33),
            k=self._number(1, 65) if not self._number(0, 3) else self._number(1, 33),
            n=self._number(1, 33),
            init=self._choice(("zero", "accumulate")),
        )

    # MTE1

    def _operand(self) -> View:
        """Return fractals of L0A or L0B that M does not use in this phase."""
        place = (1 - self._mine) * 16 + self._number(0, 8)
        return self.core.view(self._choice(("L0A", "L0B")), place * _FRACTAL, (1,), "fp16")

    def _load(self) -> None:
        down = bool(self._number(0, 4) == 0)
        first = _FRACTAL * self._number(8, 16) if down else _BLOCK * self._number(0, 100)
        self.core.load(
            self._operand(),
            self._view("L1", _SOURCE + first, 1, "fp16"),
            repeat=self._number(1, 5),
            src_stride=-_FRACTAL if down else _BLOCK * self._number(0, 48),
            dst_stride=_FRACTAL * self._number(1, 3),
            transpose=bool(self._number(0, 2)),
        )

    def _im2col(self) -> None:
        patches = self._any_patches()
        dtype = self._choice(("fp16", "int8", "uint8"))
        self.core.im2col(
            self._operand().astype(dtype)
            if self._number(0, 3)
            else self._view("UB", _MOVED, 1, dtype),
            self._view("L1", _SOURCE + _BLOCK * self._number(0, 100), 1, dtype),
            patches,
            repeat=self._number(1, 5),
            position=patches.corner(self._number(0, patches.rows * patches.columns)),
            kernel_position=(
                self._number(0, patches.kernel[0]),
                self._number(0, patches.kernel[1]),
            ),
            channel=self._number(0, 2),
            mode=self._number(0, 2),
            dst_stride=_FRACTAL * self._number(1, 3),
            pad_value=float(self._number(0 if dtype == "uint8" else -3, 4)),
        )

    def _copy_l1(self) -> None:
        self._bursts(self._view("UB", _MOVED, 1), self._view("L1", _SOURCE, 1), grain=_BLOCK)

    def _bursts(self, dst: View, src: View, room: int = 4000, grain: int = 1) -> None:
        """Copy bursts of any length from one view to another, at multiples of ``grain`` bytes."""
        size, bursts = self._number(1, 260), self._number(1, 8)

        def number(low: int, high: int) -> int:
            return grain * self._number(-(-low // grain), -(-high // grain))

        def place(view: View) -> View:
            first = number(0, room)
            if view.buffer == "GM":
                return view[first:][:1]
            return self.core.view(view.buffer, view.offset + first, (1,), "uint8")

        self.core.copy(
            place(dst),
            place(src),
            bursts=bursts,
            burst_bytes=size,
            dst_stride=number(size, 500),
            src_stride=number(0, 500),
        )

    def _fill(self) -> None:
        dtype = self._choice(_ELEMENTS)
        size = np.dtype(DTYPES[dtype]).itemsize
        shape = (3, 4, 96 // size)
        low = size * self._number(0, 64)
        if self._number(0, 2):
            view = self.core.view("UB", _MOVED + low, shape, dtype)
        else:
            view = self.core.view("L0A", self._operand().offset + low, shape, dtype)
        cut = (self._number(1, 4), self._number(1, 5), self._number(1, 96 // size + 1))
        self.core.fill(view[: cut[0], : cut[1], : cut[2]], float(self._number(0, 99)))

    # MTE2 and MTE3

    def _copy_in(self) -> None:
        source = self.program.tensors["ub_at_start"]
        if self._number(0, 2):
            self._bursts(self._view("UB", _LOADED, 1), source)
        else:
            self._bursts(self._view("L1", _FROM_GM, 1), source)

    def _load_in(self) -> None:
        source = self.program.tensors["finite_l1"][16 * self._number(0, 100) :][:1]
        self.core.load(
            self.core.view("L1", _FROM_GM + _BLOCK * self._number(0, 100), (1,), "fp16"),
            source,
            repeat=self._number(1, 5),
            src_stride=_BLOCK * self._number(0, 48),
            dst_stride=_FRACTAL * self._number(1, 3),
        )

    def _nd2nz(self) -> None:
        source = self.program.tensors["ub_at_start"].astype(self._choice(_ELEMENTS))
        rows, matrices = self._number(1, 9), self._number(1, 4)
        # Half of the rows are whole blocks.
        whole = _BLOCK // source.itemsize
        columns = whole * self._number(1, 4) if self._number(0, 2) else self._number(1, 60)
        blocks = -(-columns * source.itemsize // _BLOCK)
        step = _BLOCK * (rows + self._number(0, 3))
        self.core.nd2nz(
            self._view("L1", _FROM_GM + _BLOCK * self._number(0, 8), 1, source.dtype),
            source[self._number(0, 100) :][:1],
            matrices=matrices,
            rows=rows,
            columns=columns,
            src_matrix_stride=source.itemsize * self._number(0, 200),
            src_row_stride=source.itemsize * self._number(0, 100),
            dst_c0_stride=step,
            dst_row_stride=_BLOCK,
            dst_matrix_stride=step * blocks,
        )

    def _copy_out(self) -> None:
        source = self._view("UB", _CONSTANT, 1)
        if self._number(0, 3):
            self._bursts(self.program.tensors["stored"], source)
        else:
            self._bursts(self._view("L1", _FROM_UB, 1), source)

    def _finish(self) -> None:
        """Copy the buffers, and products of all operands, to global memory."""
        core = self.core
        half = 16 * _KIB
        names = {"ub": _UB, "l1": _L1, "sums": 2 * half, "products": 2 * half}
        tensors = {name: self.program.tensor(name, (s,), "uint8") for name, s in names.items()}
        self._out(tensors["ub"], _UB)
        for byte in range(0, _L1, half):
            core.copy(self._view("UB", 0, half), self._view("L1", byte, half))
            core.pipe_barrier()
            self._out(tensors["l1"][byte : byte + half], half)
        for name in ("sums", "products"):
            if name == "products":
                for n in range(2):
                    a, b = (
                        core.view(buffer, n * _OPERANDS // 2 * _FRACTAL, (1,), "fp16")
                        for buffer in ("L0A", "L0B")
                    )
                    target = core.view("L0C", n * half, (1,), "fp32")
                    core.mmad(target, a, b, m=64, k=64, n=64, init="zero")
                core.pipe_barrier()
            core.matrix_out(
                self._view("UB", 0, 1, "fp32"),
                core.view("L0C", 0, (1,), "fp32"),
                m=16 * _SUMS,
                n=16,
                src_stride=_KIB,
            )
            core.pipe_barrier()
            self._out(tensors[name], 2 * half)

    def _out(self, tensor: View, size: int) -> None:
        self.core.copy(tensor, self._view("UB", 0, size))
        self.core.pipe_barrier()

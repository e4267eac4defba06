"""Random legal programs for a core, for comparisons of RTL and simulator."""

from typing import Any

import numpy as np

from vitruvian.golden.core.encoding import CONDITIONS, ENCODINGS, ORDERS
from vitruvian.golden.scu import Patches
from vitruvian.sim.davinci.chip.file import load_chip
from vitruvian.sim.davinci.isa.instruction import Unit
from vitruvian.sim.davinci.isa.lanes import ALL
from vitruvian.sim.davinci.isa.operands import View, dtype_bytes
from vitruvian.sim.davinci.isa.vector import REDUCE, VECTOR_OPS
from vitruvian.sim.davinci.program.program import Core, Program
from vitruvian.sim.rtl.core import core_config, core_facts, refusal_of

from .chip import core_chip
from .encode import Texts, encode

_BLOCK, _FRACTAL = 32, 512
#: The dtypes from which conversions are drawn.
_DTYPES = ("fp16", "fp32", "int32", "int16", "int8", "uint8")
#: The dtypes that the Cube of an Ascend 310 multiplies.
_OF_ASCEND = {"fp16", "int8"}
_ROUNDINGS = ("none", "rint", "round", "floor", "ceil", "trunc")
#: Operations that have integers as well, or integers alone.
_INTEGER_OPS = ("vadd", "vsub", "vadds", "vaddrelu", "vsubrelu", "vabs", "vshl", "vshr")
#: The dtypes of sums that are no FP32, by those of operands.
_SUMS = {"int8": "int32", "fp64": "fp64", "fp32c": "fp32c"}
#: Repeats of an instruction.
MOST_REPEATS = 5
#: The units that wait for each other, and the numbers of their flags.
_UNITS, _FLAGS = (Unit.S, Unit.V, Unit.M, Unit.MTE1, Unit.MTE2, Unit.MTE3), 8
#: Instructions of which most are refused are drawn again this many times.
_TRIES = 200


class RandomProgram:
    """A program of random instructions for one core.

    Targets and sources of an instruction are in different halves of a buffer, because an
    instruction that reads what it writes itself depends on the order of the hardware.

    Parameters
    ----------
    seed : int
    core : str or CoreConfig
        Only instructions that this core has are drawn.
    count : int
        Number of instructions besides copies and synchronisation.

    Attributes
    ----------
    program : Program
        The tensors "ub", "l1" and "sums" have the contents of UB, of L1 and of a part of L0C at
        the end. With a unit FIX, "fixed" has what it gave.
    ops : list of str
        The operations that were drawn.
    """

    def __init__(self, seed: int, core: Any, count: int = 20):
        self.config = core_config(core)
        self.random = np.random.default_rng(seed)
        # The products of the core's tile: dtype, and the operation if it is no mma.
        self._products = [name.split() for name in core_facts(self.config)["products"]]
        # No chip with a vector unit beside the Cube has a unit FIX, or other products than these.
        known = {name for name, *operation in self._products if not operation} <= _OF_ASCEND
        known = known and not self.config.fix and not any(rest for _, *rest in self._products)
        chip = load_chip("ascend310") if known else core_chip(self.config)
        self.program = Program(chip, f"random {seed}")
        self.core: Core = self.program.core()
        self.ops: list[str] = []
        sizes = self.config.buffers
        self.ub, self.l1 = min(sizes["UB"], 1 << 15), min(sizes["L1"], 1 << 14)
        for name, buffer, size in (("ub", "UB", self.ub), ("l1", "L1", self.l1)):
            data = self.random.integers(0, 256, size, dtype=np.uint8)
            tensor = self.program.tensor(f"{name}_at_start", (size,), "uint8", data)
            self.core.copy(self._view(buffer, 0, size), tensor)
        for buffer in ("L0A", "L0B"):
            self.core.set_flag(Unit.MTE2, Unit.MTE1, 0)
            self.core.wait_flag(Unit.MTE2, Unit.MTE1, 0)
            self.core.load(
                self.core.view(buffer, 0, (1,), "fp16"),
                self.core.view("L1", 0, (1,), "fp16"),
                repeat=min(self.l1, sizes[buffer]) // _FRACTAL,
            )
        self.fixed: View | None = None
        if self.config.fix:
            self.fixed = self.program.tensor("fixed", (1 << 14,), "uint8")
        self.core.pipe_barrier()
        self._first_products()
        for _ in range(count):
            self._draw()
        self._finish()

    def _view(self, buffer: str, byte: int, size: int, dtype: str = "uint8") -> View:
        return self.core.view(buffer, byte, (size,), dtype)

    def _first_products(self) -> None:
        """Give the first fractals of L0C a value."""
        self._product(m=64, k=32, n=32, init="zero", c=0)
        self.core.pipe_barrier()

    def _product(self, *, m: int, k: int, n: int, init: str, c: int) -> None:
        dtype, *operation = self._choice(self._products)
        a, b = (self.core.view(buffer, 0, (1,), dtype) for buffer in ("L0A", "L0B"))
        target = self.core.view("L0C", c, (1,), _SUMS.get(dtype, "fp32"))
        named = {"operation": operation[0]} if operation else {}
        if a.itemsize != 2:
            k = max(k * 2 // a.itemsize - self._number(0, 2), 1)
        self.core.mmad(target, a, b, m=m, k=k, n=n, init=init, **named)

    def _draw(self) -> None:
        """Append an instruction that the core has, and synchronise behind it."""
        makers = (self._lanes,) * 6 + (self._reduction, self._conversion, self._move, self._cube)
        for _ in range(_TRIES):
            before = len(self.core.instructions)
            makers[self.random.integers(len(makers))]()
            texts = Texts()
            drawn = self.core.instructions[before:]
            if not any(refusal_of(self.config, i.op, i.unit.name, encode(i, texts)) for i in drawn):
                break
            del self.core.instructions[before:]
        else:
            raise AssertionError("a core must have some of the instructions")
        self.ops += [instr.op for instr in drawn]
        # V completes its instructions in order, so only others need barriers around them.
        if any(instr.unit != Unit.V or instr.op == "matrix_out" for instr in drawn):
            del self.core.instructions[before:]
            self._order(drawn[0].unit, before=True)
            self.core.instructions.extend(drawn)
            self._order(drawn[-1].unit, before=False)

    def _order(self, unit: Unit, *, before: bool) -> None:
        """Let a unit wait for all others, or all others for it, by flags or by a barrier."""
        if self._number(0, 2):
            self.core.pipe_barrier()
            return
        units = (*_UNITS, Unit.FIX) if self.config.fix else _UNITS
        for other in self.random.permutation([each for each in units if each != unit]):
            pair = (Unit(other), unit) if before else (unit, Unit(other))
            number = self._number(0, _FLAGS)
            self.core.set_flag(*pair, number)
            self.core.wait_flag(*pair, number)

    def _number(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high))

    def _choice(self, values: Any) -> Any:
        return values[self.random.integers(len(values))]

    def _half(self, upper: bool, dtype: str, align: int = _BLOCK, room: int = 9216) -> View:
        """Return a view in one half of UB, with room behind it."""
        half = self.ub // 2
        place = self._number(0, (half - room) // align) * align
        return self._view("UB", place + half * upper, 1, dtype)

    def _mask(self, lanes: int) -> int:
        kind = self._number(0, 4)
        if kind == 0:
            return ALL
        if kind == 1:
            return (1 << self._number(1, lanes + 1)) - 1
        return int.from_bytes(self.random.bytes(lanes // 8), "little")

    def _steps(self, low: int = 0) -> tuple[int, int]:
        """Return strides of blocks and of repeats."""
        return self._number(low, 4), self._number(8 * low, 20)

    def _lanes(self) -> None:
        names = [op.name for op in VECTOR_OPS.values() if op.form.lanewise and op.name != "vconv"]
        op = self._choice([*names, "vcmp", "vcmpv", "vcmpvs", "vsel"])
        dtype = self._choice(("fp16", "fp32"))
        if op in _INTEGER_OPS:
            dtype = self._choice(VECTOR_OPS[op].dtypes.split())
        lanes = 64 if "32" in dtype else 128
        repeat, upper = self._number(1, MOST_REPEATS + 1), bool(self._number(0, 2))
        options: dict[str, Any] = {"repeat": repeat, "mask": self._mask(lanes)}
        fields: dict[str, Any] = {}
        members = {member.name for member in ENCODINGS[op].members}
        if "scalar" in members:
            number = float(np.float16(self.random.standard_normal()))
            fields["scalar"] = self._number(0, 1 << 15) if "int" in dtype else number
        if "condition" in members:
            fields["condition"] = self._choice(CONDITIONS)
        if "amount" in members:
            fields["amount"] = self._number(0, 40)
            fields["round"] = bool(self._number(0, 2))
        sources = [n for n in ENCODINGS[op].operands if n not in ("dst", "bits")]
        views = {name: self._half(not upper, dtype) for name in sources}
        strides = {name: self._steps() for name in sources}
        if op in ("vcmpv", "vcmpvs"):
            dst = self._half(upper, "uint8", align=2)
            getattr(self.core, op)(dst, **views, **fields, repeat=repeat, strides=strides)
        elif op == "vcmp":
            self.core.vcmp(**views, **fields, **options, strides=strides)
        else:
            # An operation that also reads its target reads each place once.
            views = {"dst": self._half(upper, dtype), **views}
            strides["dst"] = (1, 8) if VECTOR_OPS[op].reads_dst else self._steps(low=1)
            self.core.vector(op, views, **options, strides=strides, **fields)

    def _reduction(self) -> None:
        op = self._choice([op.name for op in VECTOR_OPS.values() if op.form is REDUCE])
        dtype = self._choice(("fp16", "fp32"))
        upper = bool(self._number(0, 2))
        indexed = op in ("vcmax", "vcmin")
        block, step = self._steps()
        self.core.vreduce_lanes(
            op,
            self._half(upper, dtype, align=16),
            self._half(not upper, dtype),
            repeat=self._number(1, MOST_REPEATS + 1),
            mask=self._mask(128 if dtype == "fp16" else 64),
            dst_repeat_bytes=16 * self._number(0, 20),
            src_block_stride=block,
            src_repeat_stride=step,
            order=self._choice(ORDERS) if indexed else ORDERS[0],
        )

    def _conversion(self) -> None:
        upper = bool(self._number(0, 2))
        if self._number(0, 8) == 0:
            dtype = self._choice(("fp16", "int16", "uint16"))
            self.core.vtranspose(self._half(upper, dtype), self._half(not upper, dtype))
            return
        source, target = self._choice(_DTYPES), self._choice(_DTYPES)
        views = {"dst": self._half(upper, target), "src": self._half(not upper, source)}
        lanes = 256 // max(view.itemsize for view in views.values())
        self.core.vector(
            "vconv",
            views,
            repeat=self._number(1, MOST_REPEATS + 1),
            mask=self._mask(lanes),
            strides={"dst": self._steps(low=1), "src": self._steps()},
            rounding=self._choice(_ROUNDINGS),
        )

    def _move(self) -> None:
        half = self.l1 // 2
        kind = self._number(0, 6)
        if kind == 5:  # rows of L0C, or bursts of UB
            to_sums = bool(self._number(0, 2))
            self.core.copy(
                self._view("L0C" if to_sums else "UB", 64 * self._number(0, 40), 1),
                self._half(True, "uint8"),
                bursts=self._number(1, 8),
                burst_bytes=64,
                dst_stride=64,
                src_stride=_BLOCK * self._number(0, 4),
            )
        elif kind == 0:  # bursts of any length to L1
            size = self._number(1, 200)
            at = (self._number(0, half), self._number(0, self.ub - 4096))
            self.core.copy(
                self._view("L1", at[0], 1),
                self.program.tensors["ub_at_start"][at[1] : at[1] + 1],
                bursts=self._number(1, 8),
                burst_bytes=size,
                dst_stride=self._number(size, 400),
                src_stride=self._number(0, 400),
            )
        elif kind == 1:
            source = self.program.tensors["l1_at_start"].astype(self._choice(("fp16", "int8")))
            rows, columns = self._number(1, 20), self._number(1, 60)
            dst = self._view("L1", _BLOCK * self._number(0, 8), 1, source.dtype)
            self.core.nd2nz(
                dst,
                source[self._number(0, 100) :][:1],
                rows=rows,
                columns=columns,
                src_row_stride=source.itemsize * self._number(0, 100),
            )
        elif kind == 2:
            self.core.load(
                self.core.view(self._choice(("L0A", "L0B")), 0, (1,), "fp16"),
                self._view("L1", 0, 1, "fp16"),
                repeat=self._number(1, 6),
                src_stride=_FRACTAL * self._number(0, 3),
                transpose=bool(self._number(0, 2)),
            )
        elif kind == 3:
            self.core.fill(
                self._view("UB" if self._number(0, 2) else "L0A", _BLOCK, 640, "fp16"),
                float(self._number(0, 9)),
            )
        else:
            self._patches()

    def _patches(self) -> None:
        kernel = (self._number(1, 4), self._number(1, 4))
        border = self._number(0, 2)
        patches = Patches(
            height=self._number(3, 9),
            width=self._number(3, 9),
            kernel=kernel,
            stride=(self._number(1, 3), self._number(1, 3)),
            pad=(border, border, border, border),
        )
        if self._number(0, 2):
            self.core.im2col(
                self.core.view(self._choice(("L0A", "L0B")), 0, (1,), "fp16"),
                self._view("L1", 0, 1, "fp16"),
                patches,
                repeat=self._number(1, kernel[0] * kernel[1] + 1),
                pad_value=float(self._number(-3, 4)),
            )
        else:
            place = (self._number(0, kernel[0]), self._number(0, kernel[1]))
            dtype = self._choice(("fp16", "fp32"))
            self.core.col2im(
                self._view("UB", _BLOCK * self._number(0, 4), 1, dtype),
                self._view("UB", self.ub // 2, 1, dtype),
                patches,
                repeat=self._number(1, 3),
                kernel_position=place,
            )

    def _sums(self) -> tuple[str, tuple[str, ...]]:
        """Draw a dtype of sums; return it with the dtypes to which they can be moved."""
        wide = [dtype for dtype, *_ in self._products if dtype in ("fp64", "fp32c")]
        if wide and self._number(0, 2):
            sums = self._choice(wide)
            return sums, (sums,)
        return "fp32", ("fp32", "fp16")

    def _fixed(self, target: View) -> None:
        """Move results of L0C to global memory."""
        sums, results = self._sums()
        dtype = self._choice(results)
        size = dtype_bytes(dtype)
        layout, rows = self._choice(("nz", "nd")), self._number(1, 33)
        layout = layout if sums == "fp32" else "nz"
        begin = _BLOCK * self._number(0, 64)
        self.core.matrix_out(
            target[begin : begin + 12288].astype(dtype),
            self.core.view("L0C", 1024 * self._number(0, 2), (1,), sums),
            m=rows,
            n=self._number(1, 33),
            src_stride=2048,
            # Of a column of fractals, or of a row.
            dst_stride=size * (16 * rows if layout == "nz" else 32) + _BLOCK * self._number(0, 3),
            relu=bool(self._number(0, 2)) and sums == "fp32",
            layout=layout,
        )

    def _cube(self) -> None:
        if self.fixed is not None and self._number(0, 4) == 0:
            self._fixed(self.fixed)
        elif self._number(0, 2):
            self._product(
                m=self._number(1, 65),
                k=self._number(1, 33),
                n=self._number(1, 33),
                init=self._choice(("zero", "accumulate")),
                c=0,
            )
        else:
            sums, results = self._sums()
            dtype = self._choice(results)
            source = self.core.view("L0C", 1024 * self._number(0, 2), (1,), sums)
            rows = self._number(1, 33)
            self.core.matrix_out(
                self._half(True, dtype),
                source,
                m=rows,
                n=16 * self._number(1, 3),
                src_stride=2048,
                relu=bool(self._number(0, 2)) and sums == "fp32",
            )

    def _finish(self) -> None:
        """Copy the buffers to global memory."""
        core = self.core
        core.pipe_barrier()
        results = {
            name: self.program.tensor(name, (size,), "uint8")
            for name, size in (("ub", self.ub), ("sums", 4096))
        }
        core.copy(results["ub"], self._view("UB", 0, self.ub))
        core.pipe_barrier()
        sums = self._view("UB", 0, 4096, "fp32")
        core.matrix_out(sums, core.view("L0C", 0, (1,), "fp32"), m=16, n=64, src_stride=1024)
        core.pipe_barrier()
        core.copy(results["sums"], self._view("UB", 0, 4096))

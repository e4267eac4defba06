"""The sink that translates intrinsics into the instructions of a program.

``ProgramSink`` appends the instructions of every intrinsic to a core. With a ``Functional``, it
carries them out at once, so that a kernel can read its data.
"""

import struct
from contextlib import suppress

import numpy as np

from vitruvian.sim.davinci.cce.intrinsics.runtime import Address, IntrinsicCall
from vitruvian.sim.davinci.cce.language.errors import CceError, SourcePosition
from vitruvian.sim.davinci.cce.sink.context import SinkContext
from vitruvian.sim.davinci.cce.sink.matrix import MATRIX, not_modelled
from vitruvian.sim.davinci.cce.sink.moves import MOVES
from vitruvian.sim.davinci.cce.sink.scheduler import Scheduler
from vitruvian.sim.davinci.cce.sink.vector import NOT_MODELLED, is_vector, vector_call
from vitruvian.sim.davinci.isa.instruction import Instruction, Position, Unit
from vitruvian.sim.davinci.program.program import Core
from vitruvian.sim.davinci.semantics import Functional

#: Intrinsics that set control registers which later instructions need; their values are kept.
_KEPT = frozenset(
    """set_fmatrix set_fmatrix_b set_fcol2img set_padding set_mov_pad_val set_nd_para set_quant_pre
    set_fpc set_deqscale set_l0_set_value set_l0_set_value_h set_l0_set_value_bf16
    set_l0_set_value_ui""".split()
)


#: Intrinsics without effect: they control what is not modelled, or what needs no control.
_NO_EFFECT = frozenset(
    """set_l1_3d_size set_l3d_rpt set_ctrl
    set_st_atomic_cfg set_ffts_base_addr set_mask_spr set_channel_para set_lrelu_alpha
    set_quant_post set_hf32_mode set_hf32_trans_mode set_mm_layout_transform dcci dsb""".split()
)


def status(name: str) -> str:
    """Return the status of an intrinsic: "modelled", "no effect", or "not modelled"."""
    if name in _NO_EFFECT:
        return "no effect"
    return (
        "not modelled" if MATRIX.get(name) is not_modelled or name in NOT_MODELLED else "modelled"
    )


#: Number of calls whose instructions are kept for when they are repeated.
_MOST_KNOWN = 1 << 16


class ProgramSink(SinkContext):
    """A sink that appends the instructions of a kernel to a core.

    Parameters
    ----------
    functional : Functional, optional
        Carries out each instruction. Without it, a scalar load is refused.
    scheduler : Scheduler, optional
        Runs other cores where this one waits for them.
    """

    def __init__(
        self, core: Core, functional: Functional | None = None, scheduler: Scheduler | None = None
    ):
        super().__init__(core, functional)
        self.scheduler = scheduler
        self.known: dict[tuple, list[Instruction]] = {}
        self.done = len(core.instructions)

    def issue(self, call: IntrinsicCall, content: bytes = b"") -> None:
        """Append an intrinsic; a repeated call in the same state reuses its instructions.

        Parameters
        ----------
        content : bytes, optional
            Bytes that are the same for equal calls alone, by which they are found faster.
        """
        state = self._state()
        # The name is part of the key, because all intrinsics of a macro have one position.
        key = (
            (content, state)
            if content
            else (call.name, call.position, state, *call.arguments.values())
        )
        known = self.known.get(key)
        if known is not None:
            self.core.instructions += known
            self._carry_out()
            self._report_flag(known)
            return
        self._at(call.position)
        name = call.name
        if name in MOVES:
            MOVES[name](self, call)
        elif name in MATRIX:
            MATRIX[name](self, call)
        elif is_vector(name):
            vector_call(self, call)
        elif name in ("set_flag", "wait_flag"):
            self._flag(call)
        elif name == "pipe_barrier":
            unit = call.arguments["unit"]
            self.core.pipe_barrier(None if unit == "ALL" else Unit[unit])
        else:
            self._control(call)
        now = self._state()
        # A call that changes the state itself has other instructions the next time.
        if now == state and len(self.known) < _MOST_KNOWN:
            self.known[key] = self.core.instructions[self.done :]
        fresh = self.core.instructions[self.done :]
        self._carry_out()
        self._report_flag(fresh)

    def _state(self) -> tuple:
        """Return all that an instruction depends on besides its arguments.

        ``version`` counts the changes of the control registers.
        """
        return (
            self.mask,
            self.counting,
            self.atomic,
            self.compared,
            self.held,
            self.version,
            self.unit_flags,
        )

    def load(self, source: Address, position: SourcePosition) -> int | float:
        """Append a scalar load and return its value."""
        self._at(position)
        self.core.scalar_load(self.view(source, (1,)))
        self._carry_out()
        return self._elements("a scalar load", source, 1, position)[0]

    def peek(self, source: Address, count: int, position: SourcePosition) -> list[int | float]:
        """Return elements as they are in program order, without an instruction or any time."""
        return self._elements("a dump", source, count, position)

    def _elements(
        self, who: str, source: Address, count: int, position: SourcePosition
    ) -> list[int | float]:
        if self.functional is None:
            raise CceError(
                position, "the data in memory are unknown, because nothing is carried out"
            )
        try:
            values = self.functional.memory(self.core).elements(self.view(source, (count,)))
        except IndexError as error:
            raise CceError(position, f"{who} reaches outside {source.space}: {error}") from None
        if source.dtype == "bf16":
            # bf16 is the upper half of FP32.
            values = (values.astype(np.uint32) << 16).view(np.float32)
        return values.tolist()

    def store(self, target: Address, value: int | float, position: SourcePosition) -> None:
        """Append a scalar store."""
        self._at(position)
        if target.dtype == "bf16":
            value = struct.unpack("<I", struct.pack("<f", value))[0] >> 16
        self.core.scalar_store(self.view(target, (1,)), value)
        self._carry_out()

    def print(self, text: str, position: SourcePosition) -> None:
        """Record the text of a printf and the name of its core."""
        self.core.program.prints.append((str(self.core), text))

    # Control.

    def _at(self, position: SourcePosition) -> None:
        self.core.position = Position(position.file, position.line)

    def _carry_out(self) -> None:
        fresh = self.core.instructions[self.done :]
        self.done = len(self.core.instructions)
        if self.functional is not None:
            for instr in fresh:
                self._execute(self.functional, instr)

    def _execute(self, functional: Functional, instr: Instruction) -> None:
        functional.execute(self.core, instr)

    def _report_flag(self, fresh: list[Instruction]) -> None:
        """Tell the scheduler about flags between cores."""
        if self.scheduler is None or not fresh:
            return
        last = fresh[-1]
        if last.op == "cross_set":
            self.scheduler.set(self.core, last.fields["mode"], last.fields["register"])
        elif last.op == "cross_wait":
            self.scheduler.wait(self.core, last.fields["mode"], last.fields["register"])

    def _flag(self, call: IntrinsicCall) -> None:
        a = call.arguments
        method = self.core.set_flag if call.name == "set_flag" else self.core.wait_flag
        method(Unit[a["source"]], Unit[a["target"]], a["register"])

    def _control(self, call: IntrinsicCall) -> None:
        name, a = call.name, call.arguments
        if name == "set_vector_mask":
            self.mask = a["high"] << 64 | a["low"]
        elif name == "set_vector_mask_dup":
            self.mask = a["mask"] << 64 | a["mask"]
        elif name in ("set_mask_norm", "set_mask_count"):
            self.counting = name == "set_mask_count"
        elif name.startswith("set_va_reg"):
            self.addresses[a["register"]] = a["addresses"]
            self.version += 1
        elif name.startswith("set_atomic_"):
            self._atomic(name.removeprefix("set_atomic_"))
        elif name == "set_cmpmask":
            self._load_compared(a["src"])
        elif name == "ffts_cross_core_sync":
            self._cross_set(call)
            return
        elif name == "wait_flag_dev":
            self._cross_wait(call)
            return
        elif name in _KEPT:
            self.version += 1
            self.registers[name.removesuffix("_h").removesuffix("_bf16").removesuffix("_ui")] = a[
                "config" if "config" in a else "value"
            ]
        if name.startswith("set_vector_mask"):
            self.core.set_mask(self.mask, self.counting)
        else:
            self.core.set_control(name, next(iter(a.values()), None))

    def _load_compared(self, source: Address) -> None:
        """Load the register of comparisons; a later write to its source does not change it."""
        self.compared, self.held = source, b""
        if self.functional is not None:
            memory = self.functional.memory(self.core)
            with suppress(IndexError):  # the check of bounds reports the instruction that reads it
                self.held = memory.elements(self.view(source, (4,), "uint8")).tobytes()

    def _atomic(self, what: str) -> None:
        dtypes = {"f32": "fp32", "f16": "fp16", "s32": "int32", "s16": "int16", "s8": "int8"}
        # Dtype and operation are set by separate calls; each leaves the other as it is.
        if what == "none":
            self.atomic = ("", "add")
        elif what in dtypes:
            self.atomic = (dtypes[what], self.atomic[1])
        elif what in ("add", "max", "min"):
            self.atomic = (self.atomic[0], what)
        else:
            self.atomic = (what, self.atomic[1])

    def _cross_set(self, call: IntrinsicCall) -> None:
        """Set a flag; its word has the mode in bits 4 and 5, the register in bits 8 to 11."""
        word = call.arguments["config"]
        mode, register = word >> 4 & 3, word >> 8 & 15
        if mode == 3:
            self.fail(call, "mode must be 0 to 2, not 3")
        mode_name = ("kind", "group", "others")[mode]
        self.registers[f"cross {register}"] = mode
        self.version += 1
        self.core.cross_set(Unit[call.arguments["unit"]], register, mode_name)

    def _cross_wait(self, call: IntrinsicCall) -> None:
        """Wait in the mode in which this core sets the flag, else for cores of the other kind."""
        register = call.arguments["register"]
        # The intrinsic that waits has no mode.
        mode = int(self.registers.get(f"cross {register}", 2))
        unit = Unit[call.arguments.get("unit", "S")]
        self.core.cross_wait(unit, register, ("kind", "group", "others")[mode])

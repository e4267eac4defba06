"""The parts of an entry in the table of vector instructions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

#: Fields of a packed word: the name of each, its first bit, and its number of bits.
Layout = tuple[tuple[str, int, int], ...]

#: Default of a field that a builder method must be given.
REQUIRED: Any = object()

#: The two last arguments of most intrinsics. Nothing here depends on their values.
MODES = "repeat_stride_mode:bool=0 stride_size_mode:bool=0"


@dataclass(frozen=True, slots=True)
class VectorField:
    """A field of an instruction besides its operands.

    Attributes
    ----------
    name : str
    type : str
        Type annotation of the builder method's parameter.
    default : Any
        Default of the builder method's parameter; ``REQUIRED`` if it has none.
    optional : bool
        If True, an instruction may lack the field.
    argument : str
        Kind or bounds of the intrinsic's argument, as ``cce.intrinsics.signature`` writes them;
        "" if the intrinsic has no such argument.
    """

    name: str
    type: str = "int"
    default: Any = REQUIRED
    optional: bool = False
    argument: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorForm:
    """Operands, strides and packed arguments that several vector instructions share.

    Attributes
    ----------
    operands : tuple of str
        Names in ``Instruction.operands``; one in brackets may be absent.
    fields : tuple of VectorField
        Fields that all instructions of the form have.
    arguments : str
        Repeat and strides as arguments of the intrinsics, with their bounds.
    packed : Layout
        Layout of the 64-bit word that replaces these arguments; () if there is no such word.
    lanewise : bool
        If True, every lane of dst depends on the same lane of the operands alone, and the builder
        method and the function that computes it need nothing but the table.
    """

    operands: tuple[str, ...]
    fields: tuple[VectorField, ...] = ()
    arguments: str = ""
    packed: Layout = ()
    lanewise: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorOp:
    """One vector instruction.

    Attributes
    ----------
    name : str
        Value of ``Instruction.op``.
    form : VectorForm
    meaning : str
        One line that says what the instruction computes.
    compute : callable, optional
        Function of ``golden.vector`` that computes a lane-wise instruction. Its arguments are
        (repeat, lanes) arrays: the old dst if ``reads_dst``, the sources in order, then the field
        ``scalar`` in the dtype of the source.
    kernel : str
        Key of the function in ``semantics.vectors`` that computes an instruction without
        ``compute``.
    fields : tuple of VectorField
        Fields besides those of the form.
    reads_dst : bool
        If True, the instruction reads dst as well.
    short_dst : bool
        If True, dst holds a few results, aligned to elements instead of blocks.
    bitwise : bool
        If True, the instruction works on bits, whatever the dtypes of the operands.
    results : int
        Results of a repeat of a reduction; 0 stands for one result for every two lanes.
    intrinsics : tuple of str, optional
        Names of the CCE intrinsics; the name of the instruction by default.
    dtypes : str
        Dtypes that the letter T in the intrinsic's signature stands for.
    pointers : tuple of str
        Alternatives for the first arguments of the intrinsics, the pointers; by default one
        pointer into UB for every operand, all of the same dtype.
    options : str
        The last arguments of the intrinsics.
    word : bool
        If True, the intrinsics also take repeat and strides as one packed word.
    """

    name: str
    form: VectorForm
    meaning: str
    compute: Callable[..., Any] | None = None
    kernel: str = ""
    fields: tuple[VectorField, ...] = ()
    reads_dst: bool = False
    short_dst: bool = False
    bitwise: bool = False
    results: int = 8
    intrinsics: tuple[str, ...] | None = None
    dtypes: str = "fp16 fp32"
    pointers: tuple[str, ...] = ()
    options: str = MODES
    word: bool = True

    @property
    def operands(self) -> tuple[str, ...]:
        """Names in ``Instruction.operands``; one in brackets may be absent."""
        return self.form.operands

    @property
    def all_fields(self) -> tuple[VectorField, ...]:
        """The fields of the form, then those of the instruction."""
        return self.form.fields + self.fields

    @property
    def has_scalar(self) -> bool:
        """True if the instruction has a scalar for its last operand."""
        return any(field.name == "scalar" for field in self.fields)

    def results_of(self, lanes: int, order: str = "value_index") -> int:
        """Return the number of results that a repeat of a reduction writes.

        Parameters
        ----------
        lanes : int
            Lanes of a repeat.
        order : {"value_index", "index_value", "value", "index"}
            The results of vcmax and vcmin and their order.
        """
        if self.results == 2 and order in ("value", "index"):
            return 1
        return self.results or lanes // 2

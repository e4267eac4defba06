"""The public interface of the CCE reader: a source text becomes a kernel that any core can run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitruvian.common.validate import round_up
from vitruvian.sim.davinci.cce.compile.context import CompiledFunction
from vitruvian.sim.davinci.cce.compile.parse import parse
from vitruvian.sim.davinci.cce.compile.unit import TranslationUnit
from vitruvian.sim.davinci.cce.intrinsics.runtime import CceMachine, Sink
from vitruvian.sim.davinci.cce.language.errors import CceError, SourcePosition
from vitruvian.sim.davinci.cce.language.limits import deep_stack, too_deep
from vitruvian.sim.davinci.cce.language.sources import source_text
from vitruvian.sim.davinci.cce.language.types import Pointer, Scalar, Type, converter

#: The default number of steps after which a kernel is stopped.
LIMIT = 10_000_000


@dataclass(frozen=True)
class KernelParameter:
    """A parameter of a kernel.

    Attributes
    ----------
    name : str
        The name in the source.
    dtype : str
        The dtype of the value, or of the elements that a pointer points to.
    is_pointer : bool
        If True, the value is an address in global memory.
    """

    name: str
    dtype: str
    is_pointer: bool


@dataclass(frozen=True)
class CceKernel:
    """A kernel that has been read and can be run.

    Attributes
    ----------
    name : str
        The name of the entry function.
    file : str
        The name of the source file in messages.
    parameters : tuple of KernelParameter
        The parameters of the entry function, in order.
    unit : TranslationUnit
        The compiled source.
    function : CompiledFunction
        The compiled entry function.
    sources : mapping of str to str
        The texts of the source file and of the files that it includes, by their names in messages.
    """

    name: str
    file: str
    parameters: tuple[KernelParameter, ...]
    unit: TranslationUnit
    function: CompiledFunction
    sources: Mapping[str, str]

    def run(
        self,
        sink: Sink,
        arguments: Sequence[int | float] | Mapping[str, int | float] = (),
        *,
        block_idx: int = 0,
        block_num: int = 1,
        limit: int = LIMIT,
        registers: Mapping[str, int] | None = None,
    ) -> int:
        """Run one block of the kernel.

        Parameters
        ----------
        sink : Sink
            The receiver of every intrinsic and of every scalar access to a buffer.
        arguments : sequence or mapping of numbers
            The arguments by position or by name; a pointer is an address in global memory.
        block_idx, block_num : int
            The number of this block, from 0, and the number of blocks.
        limit : int
            The most steps (calls, intrinsics, prints and loop iterations) that the kernel may take.
        registers : mapping of str to int, optional
            The initial registers: "subblockid" and "subblockdim" of a vector core.

        Returns
        -------
        int
            The number of steps taken.

        Raises
        ------
        ValueError
            If the arguments do not fit the parameters.
        CceError
            If the kernel makes a mistake; the message begins with its position.
        """
        values = self._values(arguments)
        machine = CceMachine(sink, block_idx, block_num, limit)
        machine.registers.update(registers or {})
        # The stack of calls begins behind the variables of the outermost level.
        machine.top = round_up(self.unit.globals.size, 16)
        if machine.top > len(machine.memory):
            message = f"variables must fit {len(machine.memory)} bytes; they need {machine.top}"
            raise CceError(self.function.position, message)
        try:
            with deep_stack():
                # Every run starts with fresh variables of the outermost level.
                for start in self.unit.globals.initialisers:
                    start([machine, 0])
                self.function.run(machine, values, self.function.position)
        except RecursionError:
            raise CceError(self.function.position, "the kernel nests too deeply") from None
        return machine.steps

    def _values(self, arguments) -> list[int | float]:
        names = [p.name for p in self.parameters]
        if isinstance(arguments, Mapping):
            check_names(arguments, names)
            arguments = [arguments[n] for n in names]
        if len(arguments) != len(names):
            raise ValueError(
                f"{self.name} must be called with {len(names)} arguments "
                f"({', '.join(names)}), not {len(arguments)}"
            )
        pairs = zip(arguments, self.function.parameters, strict=True)
        return [_fitting(value, name, type) for value, (name, type) in pairs]


def check_names(arguments: Mapping[str, object], names: Sequence[str]) -> None:
    """Require one argument for each parameter name and no others.

    Raises
    ------
    ValueError
        If an argument is unknown or missing.
    """
    unknown = [n for n in arguments if n not in names]
    missing = [n for n in names if n not in arguments]
    if unknown or missing:
        reason = f"{unknown[0]!r} is unknown" if unknown else f"{missing[0]!r} is missing"
        raise ValueError(f"arguments must be {', '.join(names)}; {reason}")


def _fitting(value, name: str, type: Type):
    """Return an argument as a value of its parameter's type; the range of integers is checked."""
    if isinstance(type, Scalar) and type.is_float:
        convert = converter(Scalar("f", 8, "double"), type)
        return convert(float(value)) if convert else float(value)
    if not isinstance(value, int):
        raise ValueError(f"{name} must be an integer, not {value!r}")
    size = 8 if not isinstance(type, Scalar) else type.size
    signed = isinstance(type, Scalar) and type.kind == "i"
    # A pointer is an unsigned address of 8 bytes.
    low, high = (-(1 << 8 * size - 1), 1 << 8 * size - 1) if signed else (0, 1 << 8 * size)
    if not low <= value < high:
        raise ValueError(f"{name} must be {low} to {high - 1}, not {value!r}")
    return value


def read(
    text: str,
    file: str = "kernel.cce",
    *,
    entry: str | None = None,
    defines: Mapping[str, str] | None = None,
    directory: Path | None = None,
    include_path: Sequence[str | Path] = (),
) -> CceKernel:
    """Read a kernel from its text.

    Parameters
    ----------
    text, file : str
        The source text, and its file name in messages.
    entry : str, optional
        The function to run; by default the only ``__global__`` function, or the only function.
    defines : mapping of str to str, optional
        Macros that are defined before the first line.
    directory : Path, optional
        The folder of files that the text includes in quotes; without it nothing is included.
    include_path : sequence of str or Path
        Further folders of such files. A file in any other folder is refused.

    Returns
    -------
    CceKernel

    Raises
    ------
    CceError
        If the text contains a mistake; the message is one line that begins with the position.
    """
    folders = {"directory": directory, "include_path": include_path}
    sources = {file: text}
    try:
        with deep_stack():
            tree = parse(text, file, entry=entry, defines=defines, texts=sources, **folders)
            unit = TranslationUnit(tree)
            function = unit.function(tree.entry)
    except RecursionError:
        raise too_deep(SourcePosition(file, 1)) from None
    if function is None:
        raise CceError(SourcePosition(file, 1), f"{tree.entry} must be the name of a function")
    parameters = tuple(_parameter(name, type) for name, type in function.parameters)
    return CceKernel(tree.entry, file, parameters, unit, function, sources)


def _parameter(name: str, type: Type) -> KernelParameter:
    inner = type.target if isinstance(type, Pointer) else type
    # A pointer to a structure or to void takes bytes.
    dtype = inner.dtype if isinstance(inner, Scalar) else "uint8"
    return KernelParameter(name, dtype, isinstance(type, Pointer))


def read_file(path: str | Path, **options: Any) -> CceKernel:
    """Read a kernel from a file; ``options`` are those of ``read``.

    Raises
    ------
    CceError
        If the text contains a mistake.
    ValueError
        If the path is not a regular file, or the file is too large.
    OSError
        If the file cannot be read.
    """
    path = Path(path)
    # As a C compiler does, files in quotes are looked for beside the source first.
    options.setdefault("directory", path.parent)
    try:
        text = source_text(path)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return read(text, path.name, **options)

"""The reader's face: a source in, a kernel that can be run on any core out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vitruvian.sim.davinci.cce.compile.function import Function, Program
from vitruvian.sim.davinci.cce.compile.parse import parse
from vitruvian.sim.davinci.cce.intrinsics.runtime import Machine, Sink
from vitruvian.sim.davinci.cce.language.errors import CceError
from vitruvian.sim.davinci.cce.language.limits import deep_stack, too_deep
from vitruvian.sim.davinci.cce.language.sources import source_text
from vitruvian.sim.davinci.cce.language.types import Pointer, Scalar, Type, converter

__all__ = ["LIMIT", "Kernel", "Parameter", "read", "read_file"]

#: Steps after which a kernel is stopped unless one says otherwise.
LIMIT = 10_000_000


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel.

    Attributes
    ----------
    name : str
    dtype : str
        Of its value, or of what it points to.
    is_pointer : bool
        Whether it is an address in global memory.
    """

    name: str
    dtype: str
    is_pointer: bool


@dataclass(frozen=True)
class Kernel:
    """A kernel that has been read.

    Attributes
    ----------
    name : str
    file : str
    parameters : tuple of Parameter
    """

    name: str
    file: str
    parameters: tuple[Parameter, ...]
    program: Program
    function: Function

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
        """Run it for one core.

        Parameters
        ----------
        sink : Sink
            Gets every intrinsic and every scalar access to a buffer.
        arguments : sequence or mapping of numbers
            By place or by name; a pointer is an address in global memory.
        block_idx, block_num : int
            The core's number and the number of cores.
        limit : int
            Calls, intrinsics and passes of loops after which it is stopped.
        registers : mapping of str to int, optional
            "subblockid" and "subblockdim" of a vector core.

        Returns
        -------
        int
            Steps taken.

        Raises
        ------
        ValueError
            For arguments that do not fit the parameters.
        CceError
            For a mistake in the kernel, with its place.
        """
        values = self._values(arguments)
        machine = Machine(sink, block_idx, block_num, limit)
        machine.registers.update(registers or {})
        machine.top = -(-self.program.globals_size // 16) * 16
        if machine.top > len(machine.memory):
            message = f"variables must fit {len(machine.memory)} bytes; they need {machine.top}"
            raise CceError(self.function.position, message)
        try:
            with deep_stack():
                for start in self.program.starts:
                    start([machine, 0])
                self.function.run(machine, values, self.function.position)
        except RecursionError:
            raise CceError(self.function.position, "the kernel nests too deeply") from None
        return machine.steps

    def _values(self, arguments) -> list[int | float]:
        names = [p.name for p in self.parameters]
        if isinstance(arguments, Mapping):
            wrong = [n for n in arguments if n not in names] + [
                n for n in names if n not in arguments
            ]
            if wrong:
                raise ValueError(f"arguments must be {', '.join(names)}; {wrong[0]!r} is not right")
            arguments = [arguments[n] for n in names]
        if len(arguments) != len(names):
            raise ValueError(
                f"{self.name} must be given {len(names)} arguments "
                f"({', '.join(names)}), not {len(arguments)}"
            )
        pairs = zip(arguments, self.function.parameters, strict=True)
        return [_fitting(value, name, type) for value, (name, type) in pairs]


def _fitting(value, name: str, type: Type):
    if isinstance(type, Scalar) and type.is_float:
        convert = converter(Scalar("f", 8, "double"), type)
        return convert(float(value)) if convert else float(value)
    if not isinstance(value, int):
        raise ValueError(f"{name} must be an integer, not {value!r}")
    size = 8 if not isinstance(type, Scalar) else type.size
    signed = isinstance(type, Scalar) and type.kind == "i"
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
) -> Kernel:
    """Read a kernel from its text.

    Parameters
    ----------
    text, file : str
        The source, and its name in messages.
    entry : str, optional
        The function to run; by default the only `__global__` one, or the only one.
    defines : mapping of str to str, optional
        Macros that are there from the start.
    directory : Path, optional
        Where files that it includes in quotes are; without it nothing is included.
    include_path : sequence of str or Path
        Further folders of such files. A file in another folder is refused.

    Raises
    ------
    CceError
        For a mistake in the text, as one line with its place.
    """
    where = {"directory": directory, "include_path": include_path}
    try:
        with deep_stack():
            tree = parse(text, file, entry=entry, defines=defines, **where)
            program = Program(tree)
            function = program.function(tree.entry)
    except RecursionError:
        raise too_deep(_start(file)) from None
    if function is None:
        raise CceError(_start(file), f"{tree.entry} must be the name of a function")
    parameters = tuple(_parameter(name, type) for name, type in function.parameters)
    return Kernel(tree.entry, file, parameters, program, function)


def _start(file: str):
    from vitruvian.sim.davinci.cce.language.errors import Position

    return Position(file, 1)


def _parameter(name: str, type: Type) -> Parameter:
    inner = type.target if isinstance(type, Pointer) else type
    dtype = inner.dtype if isinstance(inner, Scalar) else "uint8"
    return Parameter(name, dtype, isinstance(type, Pointer))


def read_file(path: str | Path, **options) -> Kernel:
    """Read a kernel from a file; `options` as for `read`.

    Raises
    ------
    CceError
        For a mistake in the text.
    ValueError
        For what is no plain file, and for one that is too large.
    OSError
        When the file cannot be read.
    """
    path = Path(path)
    options.setdefault("directory", path.parent)
    try:
        text = source_text(path)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return read(text, path.name, **options)

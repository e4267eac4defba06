"""The machine that ``sim.sparse`` simulates, read from a TOML file with a source for every number.

References
----------
Zhang 2024: §4.4 (structure), §4.5.1 (sizes of the default machine, ``sida.toml``).
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType

from vitruvian.common.errors import UserError
from vitruvian.common.toml_reader import TomlReader
from vitruvian.common.toml_table import TomlTable
from vitruvian.common.validate import check_int

#: The file of the default machine.
DEFAULT = Path(__file__).with_name("sida.toml")

#: The largest file in bytes; the default machine's has about 3,000.
_FILE_BYTES = 1 << 16

#: The largest number of processing elements or indices of a sub-tensor.
_COUNT = 1 << 20

_TABLES = ("name", "description", "core", "memory", "buffer", "format", "energy")


class ArchitectureError(ValueError):
    """A mistake in an architecture file; the message contains the file and line."""


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """The sizes, rates and energies of a machine.

    Attributes
    ----------
    name : str
    pes : int
        Processing elements in each of the OS, e-wise and IS cores; each computes one semiring
        operation per cycle.
    clock_hz : Fraction
    sub_tensor : int
        Columns that one step of the pipeline processes: T in Zhang 2024 §4.4.4.
    memory_bytes_per_s : Fraction
    buffer_bytes : int
        Bytes of the on-chip buffer, shared by CSC space and CSR space.
    repack_share : Fraction
        Share of the buffer that consumed data must exceed to start a repacking.
    value_bytes, coordinate_bytes, pointer_bytes, block_coordinate_bytes : int
        Bytes of a value, of a row or column coordinate, of an entry of an index array, and of a
        coordinate within a block.
    memory_pj_per_byte, buffer_pj_per_byte, operation_pj : Fraction
        Energy of a byte that crosses the memory's interface, of a byte that is read from or written
        to the buffer, and of one operation of a processing element.
    sources : mapping of str to str
        The source of each number, by its name in the file.

    Raises
    ------
    ValueError
        If a number of elements or bytes is less than 1, or a rate is not positive.
    """

    name: str
    pes: int
    clock_hz: Fraction
    sub_tensor: int
    memory_bytes_per_s: Fraction
    buffer_bytes: int
    repack_share: Fraction
    value_bytes: int
    coordinate_bytes: int
    pointer_bytes: int
    block_coordinate_bytes: int
    memory_pj_per_byte: Fraction
    buffer_pj_per_byte: Fraction
    operation_pj: Fraction
    sources: Mapping[str, str]

    def __post_init__(self) -> None:
        for name in ("pes", "sub_tensor", "buffer_bytes"):
            check_int(name, getattr(self, name), 1)
        for name in ("clock_hz", "memory_bytes_per_s"):
            if not getattr(self, name) > 0:
                raise UserError(f"{name} must be more than 0, not {getattr(self, name)}")

    @property
    def bytes_per_cycle(self) -> Fraction:
        """Bytes that the memory transfers in one cycle of the cores."""
        return self.memory_bytes_per_s / self.clock_hz


def read_architecture(text: str, file: str = "architecture") -> Architecture:
    """Parse the text of an architecture file; ``file`` is the name that messages quote.

    Raises
    ------
    ArchitectureError
        At the first mistake.
    """
    try:
        return _read(TomlReader(text, file, "architecture", ArchitectureError))
    except RecursionError:
        message = "architecture must be a TOML file of tables and lists that nest less deeply"
        raise ArchitectureError(f"{file}:1: {message}") from None


def load_architecture(path: str | Path = DEFAULT) -> Architecture:
    """Load an architecture from a TOML file, by default the machine of Zhang 2024 §4.5.1.

    Raises
    ------
    ArchitectureError
        If the file is absent, is too large, or has a mistake.
    """
    return read_architecture(read_text(Path(path), "architecture"), str(path))


def read_text(path: Path, thing: str) -> str:
    """Return the text of a TOML file; ``thing`` is what it describes, for messages.

    Raises
    ------
    ArchitectureError
        If the file is absent, is too large, or is not UTF-8.
    """
    if path.suffix != ".toml" or not path.is_file():
        raise ArchitectureError(f"{thing} must be a TOML file, not {str(path)!r}")
    with path.open("rb") as file:
        data = file.read(_FILE_BYTES + 1)
    if len(data) > _FILE_BYTES:
        raise ArchitectureError(f"{path}: {thing} must have at most {_FILE_BYTES:,} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"{thing} must be a TOML file in UTF-8"
        raise ArchitectureError(f"{path}:{line}: {message}") from None


def _read(reader: TomlReader) -> Architecture:
    top = TomlTable(reader, (), reader.data)
    name = top.word("name")
    top.word("description", default="")
    core, memory, buffer = table_of(top, "core"), table_of(top, "memory"), table_of(top, "buffer")
    layout, energy = table_of(top, "format"), table_of(top, "energy")
    architecture = Architecture(
        name=name,
        pes=core.whole("pes", high=_COUNT),
        clock_hz=core.number("clock_mhz", zero=False, scale=10**6),
        sub_tensor=core.whole("sub_tensor", high=_COUNT),
        memory_bytes_per_s=memory.number("gb_per_s", zero=False, scale=10**9),
        buffer_bytes=_buffer_bytes(buffer),
        repack_share=buffer.number("repack_share"),
        value_bytes=layout.whole("value_bytes", high=64),
        coordinate_bytes=layout.whole("coordinate_bytes", high=8),
        pointer_bytes=layout.whole("pointer_bytes", high=8),
        block_coordinate_bytes=layout.whole("block_coordinate_bytes", high=8),
        memory_pj_per_byte=energy.number("memory_pj_per_byte"),
        buffer_pj_per_byte=energy.number("buffer_pj_per_byte"),
        operation_pj=energy.number("operation_pj"),
        sources=MappingProxyType(reader.sources),
    )
    if architecture.repack_share > 1:
        buffer.fail("repack_share", "a number from 0 to 1")
    # The engine computes in 64-bit integers: bytes times the denominator must not overflow.
    rate = architecture.bytes_per_cycle
    if max(rate.numerator, rate.denominator) > 10**6:
        memory.fail(
            "gb_per_s",
            "such that bytes per cycle are a fraction of integers up to 1,000,000",
        )
    for table in (core, memory, buffer, layout, energy):
        table.done()
    for key in top.data:
        if key not in _TABLES:
            near = difflib.get_close_matches(key, _TABLES, 1)
            hint = f"; the nearest is {near[0]}" if near else ""
            reader.fail((key,), f"{key} must be one of the tables {', '.join(_TABLES)}{hint}")
    return architecture


def table_of(top: TomlTable, key: str) -> TomlTable:
    """Return a table that a file must have."""
    table = top.table(key)
    assert table is not None
    return table


def _buffer_bytes(buffer: TomlTable) -> int:
    unit, scale = ("kib", 1 << 10) if buffer.has("kib") else ("mib", 1 << 20)
    return buffer.whole(unit, high=(1 << 40) // scale) * scale

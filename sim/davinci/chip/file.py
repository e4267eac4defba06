"""The reader of chip files, which reports every mistake in one line with file and line number."""

import difflib
import re
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

from vitruvian.common.toml_reader import TomlReader
from vitruvian.common.toml_table import TABLES, TomlTable
from vitruvian.common.validate import nearest
from vitruvian.golden.core.encoding import PRODUCTS
from vitruvian.sim.davinci.chip.hardware import MEMORY, Hardware
from vitruvian.sim.davinci.chip.hardware_table import read_hardware
from vitruvian.sim.davinci.chip.interlocks import read_units
from vitruvian.sim.davinci.chip.model import GM, Chip, CoreKind
from vitruvian.sim.davinci.chip.parts import (
    Buffer,
    Bus,
    Cache,
    Cube,
    Route,
    Throughput,
    VectorTiming,
)
from vitruvian.sim.davinci.chip.selection import read_selection
from vitruvian.sim.davinci.isa.instruction import Unit
from vitruvian.sim.davinci.isa.operands import DTYPES, REPEAT_BYTES
from vitruvian.sim.davinci.isa.operations import OPERATIONS

#: The folder of the chips that come with the simulator.
CHIPS = Path(__file__).parents[2] / "chips"

#: The largest chip file in bytes; those in ``CHIPS`` have about 12,000.
FILE_BYTES = 1 << 17

#: The largest number of dots in a line: the time to read a dotted key is quadratic in its parts.
_DOTS = 1000

#: The largest buffer of a core in bytes.
_BUFFER_BYTES = 1 << 30


class ChipError(ValueError):
    """A mistake in a chip file; the message contains the file and line."""


def chip_names() -> list[str]:
    """Return the names of the chips that come with the simulator."""
    return sorted(path.stem for path in CHIPS.glob("*.toml"))


def find_chip(name: str | Path) -> Path:
    """Return the file of a chip, given by name or by path.

    Raises
    ------
    ValueError
        If the name is unknown and is not the path of a TOML file.
    """
    path = Path(name)
    if str(name) in chip_names():
        return CHIPS / f"{name}.toml"
    if path.suffix == ".toml" and path.is_file():  # neither a folder nor a pipe
        return path
    if path.suffix == ".toml" and not path.exists():
        raise ValueError(f"{name}: No such file or directory")
    hint = nearest(str(name), chip_names())
    names = ", ".join(chip_names())
    raise ValueError(f"chip must be one of {names} or a TOML file, not {name!r}{hint}")


def read_chip(text: str, file: str = "chip") -> Chip:
    """Parse the text of a chip file; ``file`` is the name that messages quote.

    Raises
    ------
    ChipError
        At the first mistake.
    """
    size = len(text.encode(errors="replace"))
    if size > FILE_BYTES:
        raise ChipError(
            f"{file}: chip must be a file of at most {FILE_BYTES:,} bytes, not {size:,}"
        )
    for number, line in enumerate(text.splitlines(), 1):
        if line.count(".") > _DOTS:
            raise ChipError(f"{file}:{number}: a line of a chip must have at most {_DOTS} dots")
    try:
        return _ChipReader(text, file).chip()
    except RecursionError:
        message = "chip must be a TOML file of tables and lists that nest less deeply"
        raise ChipError(f"{file}:1: {message}") from None


_NS, _GB = Fraction(1, 10**9), 10**9


class _ChipReader(TomlReader):
    """The tables of a chip file, and the line of each key for messages."""

    def __init__(self, text: str, file: str) -> None:
        super().__init__(text, file, "chip", ChipError)

    def chip(self) -> Chip:
        top = TomlTable(self, (), self.data)
        name = top.word("name")
        top.word("description", default="")
        general = top.table("chip")
        assert general is not None
        settings: dict[str, Any] = {
            "clock_hz": general.number("clock_mhz", zero=False, scale=10**6),
            "launch_s": general.number("launch_ns", scale=_NS),
            "dispatch_s": general.number("dispatch_ns", scale=_NS),
            "flag_s": general.number("flag_ns", scale=_NS),
            "event_registers": general.whole("event_registers"),
        }
        # A block that begins later takes as long to launch as the first ones unless stated.
        launch_ns = settings["launch_s"] / _NS
        settings["block_s"] = general.number("block_ns", launch_ns, scale=_NS)
        general.done()
        self.clock = settings["clock_hz"]
        self.kinds = {k: self.kind(k, t) for k, t in top.tables("core").items()}
        self.buses = {k: self.bus(k, t) for k, t in top.tables("bus").items()}
        routes = {k: self.route(k, t) for k, t in top.tables("path").items()}
        cube = top.table("cube", needed=any(Unit.M in k.units for k in self.kinds.values()))
        cross = top.table("cross", needed=False)
        cross_s = None
        if cross is not None:
            cross_s = cross.number("latency_ns", scale=_NS)
            cross.done()
        chip = Chip(
            name=name,
            kinds=MappingProxyType(self.kinds),
            routes=MappingProxyType(routes),
            buses=MappingProxyType(self.buses),
            vector=self.vector(top.table("vector")),
            cube=self.cube(cube) if cube is not None else None,
            scalar=self.scalar(top.table("scalar")),
            cross_s=cross_s,
            cache=self.cache(top.table("cache", needed=False)),
            hardware=self.hardware(top.table("hardware", needed=False)),
            sources=MappingProxyType(self.sources),
            **settings,
        )
        for key in top.data:
            if key not in TABLES:
                near = difflib.get_close_matches(key, TABLES, 1)
                hint = f"; the nearest is {near[0]}" if near else ""
                self.fail((key,), f"{key} must be one of the tables {', '.join(TABLES)}{hint}")
        return chip

    def kind(self, name: str, table: TomlTable) -> CoreKind:
        units = tuple(Unit[u] for u in table.words("units", Unit.__members__))
        if Unit.S not in units:
            table.fail("units", "a list that has S, the program queue")
        buffers = {}
        for key, inner in table.tables("buffer").items():
            if key == GM:
                inner.reader.fail(inner.where, "GM must not be a buffer of a core: cores share it")
            # Sizes are stated in KiB, or in bytes for small buffers.
            unit, scale = ("kib", 1024) if inner.has("kib") else ("bytes", 1)
            nbytes = inner.whole(unit, high=_BUFFER_BYTES // scale) * scale
            align = inner.whole("align", high=nbytes)
            if nbytes % align:
                inner.fail("align", f"a divisor of {nbytes} bytes")
            inner.done()
            buffers[key] = Buffer(key, nbytes, align)
        table.taken.add("buffer")
        count, group = table.whole("count"), table.whole("per_group", 1)
        if count % group:
            table.fail("per_group", f"a divisor of count = {count}")
        interlocks, posted = (read_units(table, key, units) for key in ("interlocks", "posted"))
        selection = read_selection(table)
        table.done()
        return CoreKind(
            name, count, units, MappingProxyType(buffers), group, interlocks, selection, posted
        )

    def bus(self, name: str, table: TomlTable) -> Bus:
        totals = tuple(n * _GB for n in table.numbers("gb_per_s"))
        per_core = table.take("per_core", False)
        if not isinstance(per_core, bool):
            table.fail("per_core", "true or false")
        # The engine's bound on the total time relies on this.
        if any(a > b for a, b in pairwise(totals)):
            table.fail("gb_per_s", "a list that does not fall: totals of 1, 2, … transfers")
        table.done()
        return Bus(name, totals, per_core)

    def route(self, name: str, table: TomlTable) -> Route:
        memories = [GM, *dict.fromkeys(b for k in self.kinds.values() for b in k.buffers)]
        parts = re.fullmatch(r"(\w+)->(\w+)(?: (\w+))?", name)
        if parts is None or any(p not in memories for p in parts.groups()[:2]):
            allowed = f"'A->B' or 'A->B operation' with A and B of {', '.join(memories)}"
            self.fail(table.where, f"path must be {allowed}, not {name!r}")
        assert parts is not None
        if parts[3] and parts[3] not in OPERATIONS:
            self.fail(table.where, f"operation of path {name!r} must be in the vocabulary")
        unit = Unit[table.word("unit", Unit.__members__)]
        places = {GM: list(self.kinds)} | {
            b: [k.name for k in self.kinds.values() if b in k.buffers] for b in memories[1:]
        }
        homes = [k for k in places[parts[1]] if k in places[parts[2]]]
        if not any(unit in self.kinds[k].units for k in homes):
            table.fail("unit", f"a unit of a core that has both ends of {name}")
        bus = table.word("bus", self.buses) if table.has("bus") else None
        table.taken.add("bus")
        rate, init = self.rate(table), table.number("init_ns", scale=_NS)
        issue = table.number("issue_ns", scale=_NS) if table.has("issue_ns") else None
        bursts = table.whole("bursts") if table.has("bursts") else 0
        latency = self.latency(table)
        if rate.points and latency > rate.points[0][1]:
            table.fail("latency_ns", "at most the time of the smallest size measured")
        counts = table.word("counts", ("read", "written"), default="read")
        table.taken |= {"issue_ns", "bursts", "counts"}
        table.done()
        written = counts == "written"
        return Route(
            name, parts[1], parts[2], unit, rate, init, bus, issue, bursts, latency, written
        )

    def cache(self, table: TomlTable | None) -> Cache | None:
        if table is None:
            return None
        nbytes = table.whole("mib") << 20
        cache = Cache(nbytes, table.number("latency_ns", scale=_NS), table.word("bus", self.buses))
        table.done()
        return cache

    def hardware(self, table: TomlTable | None) -> Hardware | None:
        found = read_hardware(table)
        if found is not None and MEMORY not in self.buses:
            self.fail(("hardware",), f"bus.{MEMORY} must be there beside hardware")
        return found

    def latency(self, table: TomlTable) -> Fraction:
        """Return ``latency_s`` of a path or a vector operation, given in cycles or in ns."""
        if table.has("latency_cycles") and table.has("latency_ns"):
            table.fail("latency_ns", "left out beside latency_cycles")
        cycles = table.number("latency_cycles", 0, scale=1 / self.clock)
        return cycles + table.number("latency_ns", 0, scale=_NS)

    def rate(self, table: TomlTable) -> Throughput:
        table.taken |= {"gb_per_s", "kib", "gib_per_s"}
        if table.has("gb_per_s"):
            return Throughput(table.number("gb_per_s", zero=False, scale=_GB))
        if not table.has("kib"):
            table.fail("gb_per_s", "a number more than 0 (or a table of kib and gib_per_s)")
        sizes = [kib * 1024 for kib in table.numbers("kib", rising=True)]
        rates = [gib * 2**30 for gib in table.numbers("gib_per_s")]
        if len(sizes) != len(rates) or any(size.denominator != 1 for size in sizes):
            table.fail("gib_per_s", f"a list of {len(sizes)} numbers, one for each of kib")
        # Times and not rates are interpolated between the points: time is nearly linear in the
        # size.
        points = [(int(s), s / r) for s, r in zip(sizes, rates, strict=True)]
        for (_, early), (size, late) in pairwise(points):
            if late < early:
                table.fail("gib_per_s", f"such that time does not fall at {size / 1024:g} KiB")
        return Throughput(rates[-1], tuple(points))

    def vector(self, table: TomlTable | None) -> Mapping[str, VectorTiming]:
        assert table is not None
        base = table.number("gb_per_s", zero=False, scale=_GB)
        start, init = table.number("start_ns", 0, scale=_NS), table.number("init_ns", scale=_NS)
        drain = table.number("drain_ns", 0, scale=_NS)
        lanes = {"": VectorTiming(REPEAT_BYTES / base, start, init, drain)}
        for key, inner in table.tables("operation", needed=False).items():
            op, *dtypes = key.split(" ")
            if op not in OPERATIONS or len(dtypes) > 2 or any(x not in DTYPES for x in dtypes):
                allowed = "a vector operation, and up to two dtypes (of source and result)"
                self.fail(inner.where, f"vector.operation must be {allowed}, not {key!r}")
            lanes[key] = VectorTiming(
                inner.number("repeats_factor", 1, zero=False) * REPEAT_BYTES / base,
                inner.number("start_ns", start / _NS, scale=_NS),
                inner.number("init_ns", init / _NS, scale=_NS),
                inner.number("drain_ns", drain / _NS, scale=_NS),
                self.latency(inner),
            )
            inner.done()
        table.taken.add("operation")
        table.done()
        return MappingProxyType(lanes)

    def cube(self, table: TomlTable) -> Cube:
        depths = {}
        inner = table.table("depth")
        assert inner is not None
        for dtype in [k for k in inner.data if k != "source"]:
            if dtype not in DTYPES:
                self.fail((*inner.where, dtype), f"cube.depth must be of dtypes, not {dtype!r}")
            depths[dtype] = inner.whole(dtype)
        inner.done()
        others = self.operation_depths(table.table("operation_depth", needed=False))
        cube = Cube(
            table.whole("m"),
            table.whole("n"),
            MappingProxyType(depths),
            1 / table.number("steps_per_us", zero=False, scale=10**6),
            table.number("start_ns", 0, scale=_NS),
            table.number("init_ns", scale=_NS),
            table.number("drain_ns", 0, scale=_NS),
            operation_depths=MappingProxyType(others),
        )
        table.done()
        return cube

    def operation_depths(self, table: TomlTable | None) -> dict[str, int]:
        """Return the pairs of a step by dtype and operation; the table may be absent."""
        depths: dict[str, int] = {}
        if table is None:
            return depths
        for key in [k for k in table.data if k != "source"]:
            dtype, _, operation = key.partition(" ")
            if dtype not in DTYPES or operation not in PRODUCTS[1:]:
                must = "cube.operation_depth must be of a dtype and an operation as 'fp16 minplus'"
                self.fail((*table.where, key), f"{must}, not {key!r}")
            depths[key] = table.whole(key)
        table.done()
        return depths

    def scalar(self, table: TomlTable | None) -> Mapping[str, Fraction]:
        assert table is not None
        times = {"cycle": 1 / self.clock, "": table.number("default_ns", scale=_NS)}
        inner = table.table("operation_ns", needed=False)
        if inner is not None:
            for key in [k for k in inner.data if k != "source"]:
                times[key] = inner.number(key, scale=_NS)
            inner.done()
        table.done()
        return MappingProxyType(times)


def load_chip(name: str | Path) -> Chip:
    """Load a chip by name (such as "ascend310", see ``sim/chips``) or from your own TOML file.

    Raises
    ------
    ValueError
        If the name is unknown, or the file has a mistake; the message is one line that contains
        the file and line.

    Examples
    --------
    >>> from vitruvian import load_chip
    >>> chip = load_chip("ascend310")
    >>> chip.name
    'ascend310'
    """
    return read_chip(*chip_text(name))


def chip_text(name: str | Path) -> tuple[str, str]:
    """Return the text of a chip's file and its path, from which ``read_chip`` makes the chip.

    Another machine has the text, but not the file.

    Raises
    ------
    ValueError
        If the name is unknown, or the file is too large or not in UTF-8.
    """
    path = find_chip(name)
    with path.open("rb") as file:
        data = file.read(FILE_BYTES + 1)
    if len(data) > FILE_BYTES:
        raise ChipError(f"{path}: chip must be a file of at most {FILE_BYTES:,} bytes")
    try:
        text = data.decode("utf-8-sig")  # some editors begin a file with a byte order mark
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ChipError(f"{path}:{line}: chip must be a TOML file in UTF-8") from None
    return text, str(path)

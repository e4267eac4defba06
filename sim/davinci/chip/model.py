"""Chips as data: buffers, paths, throughputs, and the time one instruction takes alone.

A chip is read from a TOML file (`chip_file.load_chip`, see `sim/chips`). Numbers are exact
rationals from the file's decimals on; times are rounded once, to whole attoseconds, when an
instruction's period is asked for.

References
----------
Tang 2024: §1.1.2 (structure), Tables 2.1 and 2.3 (Ascend 310), §2.2.3 (shared bus), Alg. 2 line 4
(period = size / throughput + initialisation).
"""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from vitruvian.sim.davinci.isa.instruction import Instruction, Kind, Unit
from vitruvian.sim.davinci.isa.operands import REPEAT_BYTES
from vitruvian.validate import one_of

__all__ = [
    "ATTO",
    "GM",
    "Buffer",
    "Bus",
    "Chip",
    "CoreKind",
    "Cube",
    "Lane",
    "Rate",
    "Route",
    "Timing",
]

#: Name of the memory outside the cores, which they share.
GM = "GM"

#: Attoseconds in a second: the grain of simulated time. 2⁶³ of them are nine seconds.
ATTO = 10**18

#: Attoseconds that anything may take, so that sums of two stay within 64 bits.
LONGEST = 1 << 62


@dataclass(frozen=True)
class Buffer:
    """A memory of a core.

    Attributes
    ----------
    name : str
    nbytes : int
    align : int
        Bytes that an operand's first byte must be a multiple of.
    """

    name: str
    nbytes: int
    align: int


@dataclass(frozen=True)
class Bus:
    """Something that transfers share in equal parts (Tang 2024, §2.2.3).

    Attributes
    ----------
    name : str
    totals : tuple of Fraction
        Bytes per second of all together when 1, 2, … transfers are active; the last holds beyond.
    per_core : bool
        Whether every core has one of its own.
    """

    name: str
    totals: tuple[Fraction, ...]
    per_core: bool = False

    def total(self, active: int) -> Fraction:
        """Bytes per second of ``active`` transfers together."""
        return self.totals[min(active, len(self.totals)) - 1]


@dataclass(frozen=True)
class Rate:
    """Throughput: constant, or measured at some sizes.

    Attributes
    ----------
    bytes_per_s : Fraction
        The constant, or that of the largest size measured.
    points : tuple of (bytes, seconds)
        Measured times by rising size, between which time is linear. Below the first size a transfer
        takes as long as the first, above the last it goes on at ``bytes_per_s``.
    """

    bytes_per_s: Fraction
    points: tuple[tuple[int, Fraction], ...] = ()

    def seconds(self, nbytes: int) -> Fraction:
        """Time of ``nbytes``, without initialisation."""
        if not nbytes:
            return Fraction(0)
        if not self.points:
            return nbytes / self.bytes_per_s
        at = bisect_left(self.points, nbytes, key=lambda p: p[0])
        if at == 0:
            return self.points[0][1]
        if at == len(self.points):
            size, time = self.points[-1]
            return time + (nbytes - size) / self.bytes_per_s
        (size0, time0), (size1, time1) = self.points[at - 1 : at + 1]
        return time0 + (time1 - time0) * Fraction(nbytes - size0, size1 - size0)


@dataclass(frozen=True)
class Route:
    """A path between two memories, and the unit that drives it.

    Attributes
    ----------
    name : str
        "GM->L1"; or "GM->L1 nd2nz" for one operation that is faster or slower than the others.
    source, target : str
    unit : Unit
    rate : Rate
    init_s : Fraction
        Seconds before the first byte; the bus is free meanwhile.
    bus : str or None
        What it shares with other paths.
    """

    name: str
    source: str
    target: str
    unit: Unit
    rate: Rate
    init_s: Fraction
    bus: str | None = None


@dataclass(frozen=True)
class Lane:
    """Time of vector instructions: initialisation + max(start, repeats · repeat).

    Attributes
    ----------
    repeat_s : Fraction
        Seconds of one repeat, 256 bytes.
    start_s : Fraction
        What an instruction takes at least, without initialisation.
    init_s : Fraction
    """

    repeat_s: Fraction
    start_s: Fraction
    init_s: Fraction


@dataclass(frozen=True)
class Cube:
    """Time of matrix instructions: initialisation + start + steps · step.

    Attributes
    ----------
    m, n : int
        Rows and columns of a step.
    depths : mapping of str to int
        Terms of a step by dtype of the operands.
    step_s, start_s, init_s : Fraction
        Seconds.
    """

    m: int
    n: int
    depths: Mapping[str, int]
    step_s: Fraction
    start_s: Fraction
    init_s: Fraction

    def steps(self, m: int, k: int, n: int, dtype: str) -> int:
        """Steps of a product of m × k by k × n; the last ones may be partly filled.

        Raises
        ------
        ValueError
            For a dtype that the Cube does not multiply.
        """
        one_of("mmad dtype", dtype, self.depths)
        return -(-m // self.m) * -(-n // self.n) * -(-k // self.depths[dtype])


@dataclass(frozen=True)
class CoreKind:
    """Cores of one kind: all of them on the 310 and 910, Cube or vector cores on the 910B.

    Attributes
    ----------
    name : str
    count : int
        How many the chip has.
    units : tuple of Unit
    buffers : mapping of str to Buffer
    per_group : int
        How many of them synchronise as a group with those of the other kinds.
    """

    name: str
    count: int
    units: tuple[Unit, ...]
    buffers: Mapping[str, Buffer]
    per_group: int = 1


@dataclass(frozen=True)
class Timing:
    """What an engine needs to know of an instruction, in attoseconds.

    Attributes
    ----------
    init : int
        Before it uses its bus, or all of it if it uses none.
    data : int
        While it uses its bus, if it is alone there; 0 without a bus.
    rate : Fraction
        Bytes per second that it takes of its bus when it is alone there; 0 without.
    bus : str or None
    """

    init: int
    data: int = 0
    rate: Fraction = Fraction(0)
    bus: str | None = None

    @property
    def period(self) -> int:
        """Of the instruction alone: P in the thesis' Alg. 2."""
        return self.init + self.data


@dataclass(frozen=True, eq=False)
class Chip:
    """A chip; every attribute is from its file.

    Attributes
    ----------
    name : str
    clock_hz : Fraction
    launch_s : Fraction
        From the launch of a kernel to its first instruction.
    dispatch_s : Fraction
        Between two instructions that the program queue hands out.
    flag_s : Fraction
        Of a set_flag, wait_flag or pipe_barrier itself.
    event_registers : int
        Of each ordered pair of units.
    kinds : mapping of str to CoreKind
    routes : mapping of str to Route
    buses : mapping of str to Bus
    vector : mapping of str to Lane
        By operation with dtypes of source and result ("vconv fp32 fp16"), by operation and dtype of
        the source ("vexp fp16"), by operation, and "" for all others.
    cube : Cube or None
    scalar : mapping of str to Fraction
        Seconds by operation; "" for all others; "cycle" of one cycle of ``scalar`` work.
    cross_s : Fraction or None
        From a core's cross_set until another core sees it; None if there is no such thing.
    sources : mapping of str to str
        Where each table of numbers is from.
    """

    name: str
    clock_hz: Fraction
    launch_s: Fraction
    dispatch_s: Fraction
    flag_s: Fraction
    event_registers: int
    kinds: Mapping[str, CoreKind]
    routes: Mapping[str, Route]
    buses: Mapping[str, Bus]
    vector: Mapping[str, Lane]
    cube: Cube | None
    scalar: Mapping[str, Fraction]
    cross_s: Fraction | None
    sources: Mapping[str, str]
    _known: dict = field(default_factory=dict, repr=False)

    def kind(self, name: str | None = None) -> CoreKind:
        """A kind of core by name; without a name, the first.

        Raises
        ------
        ValueError
            If there is none of that name.
        """
        if name is None:
            return next(iter(self.kinds.values()))
        one_of("kind of core", name, self.kinds)
        return self.kinds[name]

    def route(self, source: str, target: str, operation: str = "copy") -> Route:
        """The path from one memory to another.

        Raises
        ------
        ValueError
            If this chip has none.
        """
        name = f"{source}->{target}"
        found = self.routes.get(f"{name} {operation}") or self.routes.get(name)
        if found is None:
            raise ValueError(f"path must be one of {', '.join(self.routes)}, not '{name}'")
        return found

    def timing(self, instruction: Instruction) -> Timing:
        """Time of an instruction that is alone on the chip.

        Raises
        ------
        ValueError
            For a path, operation or dtype that the chip does not have.
        """
        work, op = instruction.work, instruction.op
        key = (op, instruction.kind, instruction.path, instruction.unit, work, _dtypes(instruction))
        if op == "scalar":
            key += (instruction.fields.get("cycles"), instruction.fields.get("text"))
        if key not in self._known:
            self._known[key] = self._timing(instruction)
        return self._known[key]

    def _timing(self, instruction: Instruction) -> Timing:
        work, op = instruction.work, instruction.op
        if op == "cross_set" or op == "cross_wait":
            if self.cross_s is None:
                raise ValueError(f"{op} must be on a chip with cross-core flags, not {self.name}")
            return Timing(_atto(self.flag_s))
        if instruction.kind != Kind.NORMAL:
            return Timing(_atto(self.flag_s))
        if instruction.path:
            source, target = instruction.path.split("->")
            route = self.route(source, target, op)
            seconds = route.rate.seconds(work.nbytes)
            if route.bus is None or not seconds:
                return Timing(_atto(route.init_s) + _atto(seconds))
            seconds = max(seconds, work.nbytes / self.buses[route.bus].total(1))
            return Timing(_atto(route.init_s), _atto(seconds), work.nbytes / seconds, route.bus)
        if instruction.unit == Unit.S:
            return Timing(_atto(self._scalar(instruction)))
        if instruction.unit == Unit.M:
            if self.cube is None:
                raise ValueError(f"mmad must be on a chip with a Cube, not {self.name}")
            cube = self.cube
            return Timing(_atto(cube.init_s + cube.start_s + work.repeats * cube.step_s))
        source, target = _dtypes(instruction)
        names = f"{op} {source} {target}", f"{op} {source}", op, ""
        lane = next(self.vector[name] for name in names if name in self.vector)
        return Timing(_atto(lane.init_s + max(lane.start_s, work.repeats * lane.repeat_s)))

    def _scalar(self, instruction: Instruction) -> Fraction:
        cycles = instruction.fields.get("cycles")
        if instruction.op == "scalar" and cycles is not None:
            return cycles * self.scalar["cycle"]
        text = instruction.fields.get("text", "") if instruction.op == "scalar" else instruction.op
        return self.scalar.get(text, self.scalar[""])

    def peak_operations(self, dtype: str = "fp16") -> Fraction:
        """Operations per second of the Cubes of all cores, 2 for a multiply-accumulate.

        0 without a Cube, or for a dtype that it does not multiply.
        """
        if self.cube is None:
            return Fraction(0)
        cores = sum(k.count for k in self.kinds.values() if Unit.M in k.units)
        step = 2 * self.cube.m * self.cube.n * self.cube.depths.get(dtype, 0)
        return cores * step / self.cube.step_s

    def vector_bytes_per_s(self) -> Fraction:
        """Bytes of one operand that one vector unit passes in a second."""
        return REPEAT_BYTES / self.vector[""].repeat_s


def _dtypes(instruction: Instruction) -> tuple[str, str]:
    """Of its source, or of its result if it has none, and of its result."""
    found = {name: view.dtype for name, view in instruction.operands.items()}
    target = found.get("dst", "")
    return next((found[x] for x in ("src0", "src", "a") if x in found), target), target


def _atto(seconds: Fraction) -> int:
    atto = round(seconds * ATTO)
    if atto > LONGEST:
        raise ValueError(
            f"time of an instruction must stay below 4.6 s, not {float(seconds):.3g} s"
        )
    return atto

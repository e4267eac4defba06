"""The description of a chip: buffers, paths, throughputs, and the time of a lone instruction.

A chip is read from a TOML file (``chip.file.load_chip``, see ``sim/chips``). Numbers are exact
rationals, as the file states them in decimals. Times are rounded once, to whole attoseconds, when
the period of an instruction is computed.

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

#: Name of the global memory outside the cores, which all cores share.
GM = "GM"

#: Attoseconds in a second: the unit of simulated time. 2⁶³ of them are nine seconds.
ATTO = 10**18

#: The longest time in attoseconds, chosen such that sums of two stay within 64 bits.
LONGEST = 1 << 62


@dataclass(frozen=True)
class Buffer:
    """A memory of a core.

    Attributes
    ----------
    name : str
    nbytes : int
        Size in bytes.
    align : int
        The address of an operand's first byte must be a multiple of this number of bytes.
    """

    name: str
    nbytes: int
    align: int


@dataclass(frozen=True)
class Bus:
    """A bus that transfers share in equal parts (Tang 2024, §2.2.3).

    Attributes
    ----------
    name : str
    totals : tuple of Fraction
        Bytes per second of 1, 2, … active transfers together; the last holds for any larger number.
    per_core : bool
        If True, every core has a bus of its own; if False, all cores share one.
    """

    name: str
    totals: tuple[Fraction, ...]
    per_core: bool = False

    def total(self, active: int) -> Fraction:
        """Return the bytes per second of ``active`` transfers together."""
        return self.totals[min(active, len(self.totals)) - 1]


@dataclass(frozen=True)
class Rate:
    """A throughput, either constant or measured at some sizes.

    Attributes
    ----------
    bytes_per_s : Fraction
        The constant throughput, or that of the largest size measured.
    points : tuple of (bytes, seconds)
        Measured times in ascending order of size. Between two sizes time is linear. A transfer
        smaller than the first size takes as long as the first; beyond the last size, the remainder
        moves at ``bytes_per_s``.
    """

    bytes_per_s: Fraction
    points: tuple[tuple[int, Fraction], ...] = ()

    def seconds(self, nbytes: int) -> Fraction:
        """Return the seconds that a transfer of ``nbytes`` takes, without initialisation."""
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
        For example "GM->L1"; or "GM->L1 nd2nz" for an operation with times of its own.
    source, target : str
        Names of the memories.
    unit : Unit
    rate : Rate
    init_s : Fraction
        Seconds before the first byte is moved; the bus is free during that time.
    bus : str or None
        The bus that this path shares with others.
    issue_s : Fraction or None
        Seconds between two transfers whose latencies overlap. A measured time then consists of
        this, of the transfer at the throughput of the largest size, and of the latency, during
        which the unit takes the next transfer. None if transfers do not overlap.
    bursts : int
        Number of bursts of the measured transfers; the time of others of the same length is
        proportional to their number, without ``latency_s``. 0 if only the number of bytes counts.
    latency_s : Fraction
        Seconds from the end of initialisation until the first bytes arrive, whatever the amount. A
        measured time contains them, and a constant throughput does not.
    """

    name: str
    source: str
    target: str
    unit: Unit
    rate: Rate
    init_s: Fraction
    bus: str | None = None
    issue_s: Fraction | None = None
    bursts: int = 0
    latency_s: Fraction = Fraction(0)

    def seconds(self, nbytes: int, bursts: int = 0) -> tuple[Fraction, Fraction, Fraction]:
        """Return the seconds before, during and after the transfer of ``nbytes``.

        Parameters
        ----------
        nbytes : int
        bursts : int
            Number of bursts of the same length that the transfer consists of; 0 if unknown.

        Returns
        -------
        init, data, drain : Fraction
            Seconds until the transfer uses its bus, on the bus, and from then on until the last
            byte is written. The unit is free after ``data``.
        """
        alone = self._alone(nbytes)
        data = alone
        if self.bursts and bursts and nbytes:
            data = self._alone(nbytes * self.bursts // bursts) - self.latency_s
            data *= Fraction(bursts, self.bursts)
            alone = data + self.latency_s
        elif self.issue_s is not None:
            data = min(nbytes / self.rate.bytes_per_s, alone)
        if self.issue_s is None or not alone:
            return self.init_s, alone, Fraction(0)
        issue = min(self.issue_s, alone - data)
        return self.init_s + issue, data, alone - data - issue

    def _alone(self, nbytes: int) -> Fraction:
        """Return the seconds of a transfer alone, from the end of initialisation to the last byte.

        This is the time of as many bursts as were measured, if bursts count.
        """
        added = self.latency_s if nbytes and not self.rate.points else Fraction(0)
        return self.rate.seconds(nbytes) + added


@dataclass(frozen=True)
class Lane:
    """The time of vector instructions: initialisation + latency + max(start, repeats · repeat).

    The unit is then free for the next instruction, and the results are there after ``drain``.

    Attributes
    ----------
    repeat_s : Fraction
        Seconds of one repeat (256 bytes).
    start_s : Fraction
        The least time of an instruction in seconds, without initialisation.
    init_s : Fraction
        Seconds of initialisation.
    drain_s : Fraction
        Seconds until the results are there; the pipeline takes further instructions meanwhile.
    latency_s : Fraction
        Seconds from the end of initialisation until the first repeat, whatever their number; the
        unit takes no further instruction meanwhile.
    """

    repeat_s: Fraction
    start_s: Fraction
    init_s: Fraction
    drain_s: Fraction = Fraction(0)
    latency_s: Fraction = Fraction(0)

    def seconds(self, repeats: int) -> Fraction:
        """Return the seconds for which an instruction occupies the unit."""
        return self.init_s + self.latency_s + max(self.start_s, repeats * self.repeat_s)


@dataclass(frozen=True)
class Cube:
    """The time of matrix instructions: initialisation + start + steps · step.

    Attributes
    ----------
    m, n : int
        Rows and columns of the result of a step.
    depths : mapping of str to int
        Terms that a step sums for each element, by dtype of the operands.
    step_s, start_s, init_s : Fraction
        Times in seconds.
    """

    m: int
    n: int
    depths: Mapping[str, int]
    step_s: Fraction
    start_s: Fraction
    init_s: Fraction

    def steps(self, m: int, k: int, n: int, dtype: str) -> int:
        """Return the number of steps of an m × k by k × n product; edge steps may be partly filled.

        Parameters
        ----------
        m, k, n : int
            Sizes in elements.
        dtype : str
            The dtype of the operands.

        Raises
        ------
        ValueError
            If the Cube does not multiply this dtype.
        """
        one_of("mmad dtype", dtype, self.depths)
        return -(-m // self.m) * -(-n // self.n) * -(-k // self.depths[dtype])


@dataclass(frozen=True)
class CoreKind:
    """A kind of core: the 310 and 910 have one kind, the 910B has Cube cores and vector cores.

    Attributes
    ----------
    name : str
    count : int
        Number of such cores on the chip.
    units : tuple of Unit
    buffers : mapping of str to Buffer
    per_group : int
        Number of such cores in a group; a group synchronises cores of all kinds.
    interlocks : tuple of Unit
        Units whose queue makes an instruction wait for the earlier ones of the queue that it
        depends on. In the other queues, the program must separate them by a barrier.
    vsel_from_memory : bool
        If True, vsel can take other bits for each repeat from memory. If False, all its repeats use
        the bits of the mask register.
    """

    name: str
    count: int
    units: tuple[Unit, ...]
    buffers: Mapping[str, Buffer]
    per_group: int = 1
    interlocks: tuple[Unit, ...] = ()
    vsel_from_memory: bool = True


@dataclass(frozen=True)
class Timing:
    """The times of an instruction as the engines need them, in attoseconds.

    Attributes
    ----------
    init : int
        Time before the instruction uses its bus, or its whole time if it uses none.
    data : int
        Time on the bus if no other transfer uses it; 0 without a bus.
    rate : Fraction
        Bytes per second that the instruction moves if no other transfer uses its bus; 0 without a
        bus.
    bus : str or None
    drain : int
        Time from the end of the instruction, when its unit is free for the next one, until its
        results are there. Flags and barriers of the unit wait for that.
    """

    init: int
    data: int = 0
    rate: Fraction = Fraction(0)
    bus: str | None = None
    drain: int = 0

    @property
    def period(self) -> int:
        """The time for which an instruction alone occupies its unit: P in Alg. 2 of Tang 2024."""
        return self.init + self.data


@dataclass(frozen=True, eq=False)
class Chip:
    """A chip; every attribute comes from the chip file.

    Attributes
    ----------
    name : str
    clock_hz : Fraction
        Clock frequency of the cores.
    launch_s : Fraction
        Seconds from the launch of a kernel to its first instruction.
    dispatch_s : Fraction
        Seconds between two instructions that the program queue issues.
    flag_s : Fraction
        Seconds of a set_flag, wait_flag or pipe_barrier itself.
    block_s : Fraction
        Seconds from the end of a block until the first instruction of the next block on the same
        core, if a kernel has more blocks than there are cores.
    event_registers : int
        Number of flags for each ordered pair of units.
    kinds : mapping of str to CoreKind
    routes : mapping of str to Route
    buses : mapping of str to Bus
    vector : mapping of str to Lane
        Keyed by operation with the dtypes of source and result ("vconv fp32 fp16"), by operation
        and dtype of the source ("vexp fp16"), or by operation; "" stands for all others.
    cube : Cube or None
    scalar : mapping of str to Fraction
        Seconds by operation; "" stands for all others, "cycle" for one cycle of ``scalar`` work.
    cross_s : Fraction or None
        Seconds from a core's cross_set until another core sees it; None if the chip has no such
        flags.
    sources : mapping of str to str
        The source of each table of numbers.
    """

    name: str
    clock_hz: Fraction
    launch_s: Fraction
    dispatch_s: Fraction
    flag_s: Fraction
    block_s: Fraction
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
        """Return a kind of core by name, or the first one if no name is given.

        Raises
        ------
        ValueError
            If the name is unknown.
        """
        if name is None:
            return next(iter(self.kinds.values()))
        one_of("kind of core", name, self.kinds)
        return self.kinds[name]

    def route(self, source: str, target: str, operation: str = "copy") -> Route:
        """Return the path from one memory to another.

        Parameters
        ----------
        source, target : str
            Names of the memories.
        operation : str
            The operation that uses the path, as some have times of their own.

        Raises
        ------
        ValueError
            If this chip has no such path.
        """
        name = f"{source}->{target}"
        route = self.routes.get(f"{name} {operation}") or self.routes.get(name)
        if route is None:
            raise ValueError(f"path must be one of {', '.join(self.routes)}, not '{name}'")
        return route

    def timing(self, instruction: Instruction) -> Timing:
        """Return the times of an instruction that runs alone on the chip.

        Raises
        ------
        ValueError
            If the chip lacks the path, operation or dtype, or the time is 4.6 s or more.
        """
        work, op = instruction.work, instruction.op
        # Programs have millions of instructions, but few distinct times.
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
            init, seconds, drain = route.seconds(work.nbytes, work.repeats)
            drain_atto = _atto(drain)
            if route.bus is None or not seconds:
                return Timing(_atto(init) + _atto(seconds), drain=drain_atto)
            # The path is measured or stated by itself, but a transfer is not faster than its bus.
            seconds = max(seconds, work.nbytes / self.buses[route.bus].total(1))
            rate = work.nbytes / seconds
            return Timing(_atto(init), _atto(seconds), rate, route.bus, drain_atto)
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
        return Timing(_atto(lane.seconds(work.repeats)), drain=_atto(lane.drain_s))

    def _scalar(self, instruction: Instruction) -> Fraction:
        cycles = instruction.fields.get("cycles")
        if instruction.op == "scalar" and cycles is not None:
            return cycles * self.scalar["cycle"]
        text = instruction.fields.get("text", "") if instruction.op == "scalar" else instruction.op
        return self.scalar.get(text, self.scalar[""])

    def peak_operations(self, dtype: str = "fp16") -> Fraction:
        """Return the operations per second of all Cubes; a multiply-accumulate counts as 2.

        The result is 0 if the chip has no Cube, or if the Cube does not multiply this dtype.
        """
        if self.cube is None:
            return Fraction(0)
        cores = sum(k.count for k in self.kinds.values() if Unit.M in k.units)
        step = 2 * self.cube.m * self.cube.n * self.cube.depths.get(dtype, 0)
        return cores * step / self.cube.step_s

    def vector_bytes_per_s(self) -> Fraction:
        """Return the bytes of one operand that one vector unit processes in a second."""
        return REPEAT_BYTES / self.vector[""].repeat_s


def _dtypes(instruction: Instruction) -> tuple[str, str]:
    """Return the dtypes of an instruction's source (its result if it has none) and result."""
    operands = instruction.operands
    target = operands["dst"].dtype if "dst" in operands else ""
    for name in ("src0", "src", "a"):
        if name in operands:
            return operands[name].dtype, target
    return target, target


def _atto(seconds: Fraction) -> int:
    atto = round(seconds * ATTO)
    if atto > LONGEST:
        raise ValueError(
            f"time of an instruction must stay below 4.6 s, not {float(seconds):.3g} s"
        )
    return atto

"""The description of a chip: buffers, paths, throughputs, and the time of a lone instruction.

A chip is read from a TOML file (``chip.file.load_chip``, see ``sim/chips``). Numbers are exact
rationals, as the file states them in decimals. Times are rounded once, to whole attoseconds, when
the period of an instruction is computed.

References
----------
Tang 2024: §1.1.2 (structure), Tables 2.1 and 2.3 (Ascend 310), §2.2.3 (shared bus), Alg. 2 line 4
(period = size / throughput + initialisation).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from vitruvian.common.validate import one_of
from vitruvian.sim.davinci.chip.hardware import MEMORY, PORTS, Hardware
from vitruvian.sim.davinci.chip.parts import Buffer, Bus, Cache, Cube, Route, VectorTiming
from vitruvian.sim.davinci.isa.instruction import Instruction, Kind, Unit, Work
from vitruvian.sim.davinci.isa.operands import REPEAT_BYTES

#: Name of the global memory outside the cores, which all cores share.
GM = "GM"

#: Attoseconds in a second: the unit of simulated time. 2⁶³ of them are nine seconds.
ATTO = 10**18

#: The longest time in attoseconds, chosen such that sums of two stay within 64 bits.
LONGEST = 1 << 62


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
    posted : tuple of Unit
        Units that take the next instruction while a set_flag waits for the results before it; see
        ``Lowered.posted``. In the other units, the next instruction waits, too.
    """

    name: str
    count: int
    units: tuple[Unit, ...]
    buffers: Mapping[str, Buffer]
    per_group: int = 1
    interlocks: tuple[Unit, ...] = ()
    vsel_from_memory: bool = True
    posted: tuple[Unit, ...] = ()


@dataclass(frozen=True)
class ChipTiming:
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
    ports : tuple of float
        If the bus is a memory of several ports, the part of ``data`` in which each is needed.
    """

    init: int
    data: int = 0
    rate: Fraction = Fraction(0)
    bus: str | None = None
    drain: int = 0
    ports: tuple[float, ...] = ()

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
    vector : mapping of str to VectorTiming
        Keyed by operation with the dtypes of source and result ("vconv fp32 fp16"), by operation
        and dtype of the source ("vexp fp16"), or by operation; "" stands for all others.
    cube : Cube or None
    scalar : mapping of str to Fraction
        Seconds by operation; "" stands for all others, "cycle" for one cycle of ``scalar`` work.
    cross_s : Fraction or None
        Seconds from a core's cross_set until another core sees it; None if the chip has no such
        flags.
    cache : Cache or None
        The second-level cache; None if the chip file describes none. Transfers then never miss.
    sources : mapping of str to str
        The source of each table of numbers.
    hardware : Hardware or None
        How the core is built, for a core in hardware. Its cycles then replace the times of paths,
        vector unit, Cube and S.
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
    vector: Mapping[str, VectorTiming]
    cube: Cube | None
    scalar: Mapping[str, Fraction]
    cross_s: Fraction | None
    sources: Mapping[str, str]
    cache: Cache | None = None
    hardware: Hardware | None = None
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

    def timing(self, instruction: Instruction) -> ChipTiming:
        """Return the times of an instruction that runs alone on the chip.

        Raises
        ------
        ValueError
            If the chip lacks the path, operation or dtype, or the time is 4.6 s or more.
        """
        work, op = instruction.work, instruction.op
        if self.hardware is not None:
            timing = self._in_hardware(self.hardware, instruction)
            return self._known.setdefault(timing, timing)
        # Programs have millions of instructions, but few distinct times.
        key = (op, instruction.kind, instruction.path, instruction.unit, work, _dtypes(instruction))
        if op == "scalar":
            # Work of the scalar unit has its time in its fields.
            key += (instruction.fields.get("cycles"), instruction.fields.get("text"))
        elif op == "matrix_out":
            key += (_written(instruction),)
        if key not in self._known:
            self._known[key] = self._timing(instruction)
        return self._known[key]

    def _in_hardware(self, hardware: Hardware, instruction: Instruction) -> ChipTiming:
        """Return the times of an instruction on a core in hardware."""
        cycle = 1 / self.clock_hz
        if instruction.kind != Kind.NORMAL:
            return ChipTiming(_atto(cycle), ports=(0.0,) * len(PORTS))
        took = hardware.occupied(instruction)
        moving = took.moving
        # The unit takes the instruction in the first cycle.
        before = took.cycles - moving + (instruction.unit != Unit.S)
        ports = tuple(took.ports.get(name, 0) / max(moving, 1) for name in PORTS)
        if not moving:
            return ChipTiming(_atto(before * cycle), ports=ports)
        rate = self.buses[MEMORY].total(1)
        return ChipTiming(_atto(before * cycle), _atto(moving * cycle), rate, MEMORY, ports=ports)

    def _timing(self, instruction: Instruction) -> ChipTiming:
        work, op = instruction.work, instruction.op
        if op == "cross_set" or op == "cross_wait":
            if self.cross_s is None:
                raise ValueError(f"{op} must be on a chip with cross-core flags, not {self.name}")
            return ChipTiming(_atto(self.flag_s))
        if instruction.kind != Kind.NORMAL:
            return ChipTiming(_atto(self.flag_s))
        if instruction.path:
            source, target = instruction.path.split("->")
            route = self.route(source, target, op)
            nbytes = _written(instruction) if route.counts_written else work.nbytes
            return self._move(route, nbytes, work)
        if instruction.unit == Unit.S:
            return ChipTiming(_atto(self._scalar(instruction)))
        if instruction.unit == Unit.M:
            if self.cube is None:
                raise ValueError(f"mmad must be on a chip with a Cube, not {self.name}")
            cube = self.cube
            period = cube.init_s + cube.start_s + work.repeats * cube.step_s
            return ChipTiming(_atto(period), drain=_atto(cube.drain_s))
        source, target = _dtypes(instruction)
        names = f"{op} {source} {target}", f"{op} {source}", op, ""
        # The most special entry that the chip file has.
        lane = next(self.vector[name] for name in names if name in self.vector)
        return ChipTiming(_atto(lane.seconds(work.repeats)), drain=_atto(lane.drain_s))

    def _move(self, route: Route, nbytes: int, work: Work) -> ChipTiming:
        """Return the times of a move of ``nbytes`` over a path."""
        init, seconds, drain = route.seconds(nbytes, work.repeats)
        if route.bus is None or not seconds:
            return ChipTiming(_atto(init) + _atto(seconds), drain=_atto(drain))
        bus, carried = route.bus, nbytes
        if work.missed and self.cache is not None:
            # The hardware serialises accesses to one address that is not in the cache.
            init += self.cache.latency_s if work.sharers > 1 else 0
            # A transfer uses one bus: of the cache and the memory, the one that takes longer if all
            # cores transfer. A line that several cores need comes from the memory only once.
            every, behind = (self.buses[b].totals[-1] for b in (bus, self.cache.bus))
            if work.missed / behind > nbytes / every:
                bus, carried = self.cache.bus, work.missed
        # The path is measured or stated by itself, but a transfer is not faster than its bus.
        seconds = max(seconds, carried / self.buses[bus].total(1))
        return ChipTiming(_atto(init), _atto(seconds), carried / seconds, bus, _atto(drain))

    def _scalar(self, instruction: Instruction) -> Fraction:
        cycles = instruction.fields.get("cycles")
        if instruction.op == "scalar" and cycles is not None:
            return cycles * self.scalar["cycle"]
        # Loads and stores of scalars have an entry by their name.
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


def _written(instruction: Instruction) -> int:
    """Return the number of bytes that an instruction writes."""
    return sum(span.nbytes for span in instruction.writes)


def _atto(seconds: Fraction) -> int:
    atto = round(seconds * ATTO)
    if atto > LONGEST:
        raise ValueError(
            f"time of an instruction must stay below 4.6 s, not {float(seconds):.3g} s"
        )
    return atto

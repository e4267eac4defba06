"""The parts of a chip: its memories, buses, paths, and the times of its instructions.

``chip.model`` puts them together. Numbers are exact rationals, and times are in seconds.
"""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from vitruvian.common.validate import ceil_div, one_of
from vitruvian.sim.davinci.isa.instruction import Unit


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
class Throughput:
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
    rate : Throughput
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
    counts_written : bool
        If True, the time depends on the bytes written, which a conversion makes fewer than the
        bytes read; by default it depends on the bytes read.
    """

    name: str
    source: str
    target: str
    unit: Unit
    rate: Throughput
    init_s: Fraction
    bus: str | None = None
    issue_s: Fraction | None = None
    bursts: int = 0
    latency_s: Fraction = Fraction(0)
    counts_written: bool = False

    def seconds(self, nbytes: int, bursts: int = 0) -> tuple[Fraction, Fraction, Fraction]:
        """Return the seconds before, during and after the transfer of ``nbytes``.

        Parameters
        ----------
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
            # The measurement has ``self.bursts`` bursts of each length: its time for this length of
            # a burst is scaled to the number here. The latency occurs once in both.
            data = self._alone(nbytes * self.bursts // bursts) - self.latency_s
            data *= Fraction(bursts, self.bursts)
            alone = data + self.latency_s
        elif self.issue_s is not None:
            # What the bus carries at full rate; the rest of the measured time is issue and latency.
            data = min(nbytes / self.rate.bytes_per_s, alone)
        # Transfers that do not overlap occupy the unit to the last byte.
        if self.issue_s is None or not alone:
            return self.init_s, alone, Fraction(0)
        # The parts add up to the measured time, however short that is.
        issue = min(self.issue_s, alone - data)
        return self.init_s + issue, data, alone - data - issue

    def _alone(self, nbytes: int) -> Fraction:
        """Return the seconds of a transfer alone, from the end of initialisation to the last byte.

        This is the time of as many bursts as were measured, if bursts count.
        """
        added = self.latency_s if nbytes and not self.rate.points else Fraction(0)
        return self.rate.seconds(nbytes) + added


@dataclass(frozen=True)
class Cache:
    """The second-level cache between the cores' buses and the memory.

    Attributes
    ----------
    nbytes : int
        Bytes of data that stay in it while a kernel uses them.
    latency_s : Fraction
        Seconds by which a transfer that misses occupies its unit before it uses its bus, if other
        cores miss the same data at the same time.
    bus : str
        The bus between the cache and the memory.
    """

    nbytes: int
    latency_s: Fraction
    bus: str


@dataclass(frozen=True)
class VectorTiming:
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
    drain_s : Fraction
        Seconds from the last step until the results are there; the pipeline takes the steps of the
        next product meanwhile.
    operation_depths : mapping of str to int
        Pairs that a step of another operation than mma takes, by dtype and operation ("fp16
        minplus"). Most Cubes have none.
    """

    m: int
    n: int
    depths: Mapping[str, int]
    step_s: Fraction
    start_s: Fraction
    init_s: Fraction
    drain_s: Fraction = Fraction(0)
    operation_depths: Mapping[str, int] = field(default_factory=dict)

    def steps(self, m: int, k: int, n: int, dtype: str, operation: str = "mma") -> int:
        """Return the number of steps of an m × k by k × n product; edge steps may be partly filled.

        Parameters
        ----------
        m, k, n : int
            Sizes in elements.
        dtype : str
            The dtype of the operands.
        operation : str
            The operation, a mnemonic of ``golden.simd2.Op``.

        Raises
        ------
        ValueError
            If the Cube does not multiply this dtype, or lacks the operation on it.
        """
        if operation == "mma":
            one_of("mmad dtype", dtype, self.depths)
            depth = self.depths[dtype]
        else:
            keys = [key.split() for key in self.operation_depths]
            allowed = ("mma", *(name for kind, name in keys if kind == dtype))
            one_of(f"operation of mmad on {dtype}", operation, allowed)
            depth = self.operation_depths[f"{dtype} {operation}"]
        return ceil_div(m, self.m) * ceil_div(n, self.n) * ceil_div(k, depth)

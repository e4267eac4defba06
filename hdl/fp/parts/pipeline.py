"""Pipeline stages with names: the configuration alone decides which of them have registers."""

from collections.abc import Iterable, Mapping
from itertools import takewhile

from amaranth.hdl import Module, Shape, Signal, Value

from vitruvian.common.validate import check_int, one_of

#: The stage boundaries of a dot product that have registers at each pipeline depth.
PIPELINES: dict[int, tuple[str, ...]] = {
    0: (),
    1: ("sum",),
    2: ("product", "total"),
    3: ("product", "sum", "total"),
    4: ("product", "sum", "total", "normalised"),
}

#: The same for a retimed dot product: the last rank stands inside the rounding, between the two
#: shifters of a subnormal result, instead of behind them. Latency and results are the same.
RETIMED: dict[int, tuple[str, ...]] = {4: ("product", "sum", "total", "retimed")}

_BEHIND = ("sum", "total", "leading", "normalised")
_FAR_BEHIND = ("distance", "aligned", "sum", "total", "magnitude", "leading")
#: The same for the units that can have more ranks. The ranks above 4 are for FPGAs, where wires and
#: look-up tables are slow and flip-flops are free (docs/decisions/0021-dsp-registers.md).
DEEP_PIPELINES: dict[int, tuple[str, ...]] = {
    **PIPELINES,
    5: ("operand", *PIPELINES[4]),
    6: ("operand", "lane", "product", "sum", "total", "normalised"),
    7: ("operand", "lane", "product", "aligned", "sum", "total", "normalised"),
    8: ("operand", "lane", "product", "aligned", *_BEHIND),
    9: ("operand", "lane", "product", "distance", "aligned", *_BEHIND),
    10: ("operand", "lane", "product", *_FAR_BEHIND, "normalised"),
    11: ("operand", "lane", "largest", "product", *_FAR_BEHIND, "normalised"),
}

#: The same for a unit with fewer glitches: registers stand behind the distances, not in front of
#: them, so that the inputs of a shifter change at the same time.
QUIET_PIPELINES: dict[int, tuple[str, ...]] = {
    depth: tuple("distance" if name == "product" else name for name in names)
    for depth, names in DEEP_PIPELINES.items()
    if "distance" not in names
}

#: The boundaries that an addend can skip, because the datapath uses it only behind them: those of a
#: floating-point and, after ``operand``, those of an integer dot product. A floating-point addend
#: does not skip ``largest``, and an integer one does not skip ``products``, because the work behind
#: them leaves no time to read a memory.
_BEFORE_ADDEND = ("operand", "lane", "tree")


def before_addend(names: Iterable[str]) -> tuple[str, ...]:
    """Return the boundaries in front of the first use of the addend.

    Parameters
    ----------
    names : iterable of str
        The boundaries that have registers, from the operands to the result.
    """
    return tuple(takewhile(_BEFORE_ADDEND.__contains__, names))


def check_pipeline(depth: int, stages: Mapping[int, object] = PIPELINES) -> int:
    """Return the depth of a unit's pipeline if the unit can have it.

    Parameters
    ----------
    depth : int
        Number of register ranks, the unit's parameter ``pipeline``.
    stages : mapping of int to object
        The unit's boundaries with registers at each possible depth.

    Raises
    ------
    ValueError
        If ``stages`` does not have the depth.
    """
    return one_of("pipeline", depth, sorted(stages))


class PipelineStages:
    """The boundaries between the pipeline stages of a datapath, each with a name.

    A datapath passes every value that crosses a boundary through ``cross``. The configuration
    decides whether the boundary is a rank of registers or a rank of wires. It decides this once
    for each boundary, so all values that cross it have the same delay by construction.

    Parameters
    ----------
    m : Module
        The module that gets the registers (clock domain ``sync``).
    names : iterable of str
        The boundaries that have registers; all other boundaries are wires.
    addend_cycles : int
        Cycles by which the addend comes later than the operands; it skips as many boundaries.
    used : mapping of str to Value, optional
        For each boundary with registers, a bit that is set in the cycles in which they take new
        values. In other cycles they keep theirs, so that synthesis can gate their clock. Without
        it, they always take new values.

    Raises
    ------
    ValueError
        If the addend would come after its first use.
    """

    def __init__(
        self,
        m: Module,
        names: Iterable[str],
        addend_cycles: int = 0,
        *,
        used: Mapping[str, Value] | None = None,
    ):
        self._m = m
        ordered = tuple(names)
        self.names = frozenset(ordered)
        early = before_addend(ordered)
        check_int("addend_cycles", addend_cycles, 0, len(early))
        self._skipped = frozenset(early[:addend_cycles])
        self._used = used or {}

    def cross(self, stage: str, value: Value, name: str) -> Signal:
        """Return ``value`` behind the boundary ``stage``, as a signal called ``name``.

        Parameters
        ----------
        stage : str
            Name of the boundary.
        value : Value
            The value in front of the boundary.
        name : str
            Name of the new signal.
        """
        # Data registers need no reset: a valid bit says which contents count.
        signal = Signal(Shape.cast(value.shape()), name=name, reset_less=True, src_loc_at=1)
        if stage in self._used:
            with self._m.If(self._used[stage]):
                self._m.d.sync += signal.eq(value)
        elif stage in self.names:
            self._m.d.sync += signal.eq(value)
        else:
            self._m.d.comb += signal.eq(value)
        return signal

    def skips(self, stage: str) -> bool:
        """Return True if the addend comes behind a boundary."""
        return stage in self._skipped

    def cross_addend(self, stage: str, value: Value, name: str) -> Value:
        """Return a part of the addend behind a boundary, as ``cross`` does if it does not skip it.

        Parameters
        ----------
        stage : str
            Name of the boundary.
        value : Value
            The value in front of the boundary.
        name : str
            Name of the new signal.
        """
        return value if self.skips(stage) else self.cross(stage, value, name)

    @property
    def rounding(self) -> str:
        """The boundary of the rounding: ``retimed`` if it has registers, else ``normalised``."""
        return "retimed" if "retimed" in self.names else "normalised"

    def cross_extra(self, stage: str, value: Value, name: str) -> Value:
        """Return ``value`` behind a boundary that few units have; without it, ``value`` itself.

        Parameters
        ----------
        stage : str
            Name of the boundary.
        value : Value
            The value in front of the boundary.
        name : str
            Name of the new signal, if the boundary has registers.
        """
        return self.cross(stage, value, name) if stage in self.names else value

    def cross_all(self, stage: str, values: Mapping[str, Value], prefix: str) -> dict[str, Value]:
        """Return several named values behind a boundary, as signals called ``prefix_key``.

        Parameters
        ----------
        stage : str
            Name of the boundary.
        values : mapping of str to Value
            The values in front of the boundary.
        prefix : str
            First part of every new signal's name.
        """
        return {key: self.cross(stage, value, f"{prefix}_{key}") for key, value in values.items()}


def followed(m: Module, names: Iterable[str], bit: Value, prefix: str) -> dict[str, Value]:
    """Return a bit in front of each of several ranks of registers, in the order of the ranks.

    Parameters
    ----------
    bit : Value
        The bit in front of the first rank.
    prefix : str
        First part of the names of the new signals.
    """
    found: dict[str, Value] = {}
    for name in names:
        if found:
            following = Signal(name=f"{prefix}_{name}", reset_less=True)
            m.d.sync += following.eq(bit)
            bit = following
        found[name] = bit
    return found


def delayed(stages: PipelineStages, order: Iterable[str], value: Value, name: str) -> Value:
    """Return a value that no stage uses behind several boundaries.

    Parameters
    ----------
    order : iterable of str
        The boundaries, in their order.
    value : Value
        The value in front of the first boundary.
    name : str
        Last part of the names of the new signals.
    """
    for stage in order:
        value = stages.cross(stage, value, f"{stage}_{name}")
    return value

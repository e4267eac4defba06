"""Bases of the units of ``hdl.fp``: a depth of the pipeline, a form of multipliers, and ports."""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from vitruvian.golden.fp.spec import DotSpec

from .multiply import check_multiplier
from .pipeline import PIPELINES, check_pipeline

#: Default of the multiplier of a unit without multipliers.
_WITHOUT: Any = object()


def dot_ports(
    k: int,
    bits: tuple[int, int],
    output_bits: int,
    scales: Mapping[str, wiring.Member] | None = None,
) -> dict[str, wiring.Member]:
    """Return the ports of a dot product with an addend.

    Parameters
    ----------
    k : int
        Number of pairs of operands.
    bits : tuple of int
        Bits of an operand of A, and of one of B.
    output_bits : int
        Bits of the addend and of the result.
    scales : mapping of str to Member, optional
        Ports between the operands and the addend.
    """
    return {
        "a": In(data.ArrayLayout(bits[0], k)),
        "b": In(data.ArrayLayout(bits[1], k)),
        **(scales or {}),
        "c": In(output_bits),
        "d": Out(output_bits),
    }


class PipelinedUnit(wiring.Component):
    """A unit of fixed latency that takes operands in every cycle, without hand-shakes.

    Parameters
    ----------
    ports : mapping of str to Member
        The signature.
    pipeline : int
        Number of register stages, a key of ``depths``.
    depths : mapping of int to object
        The depths that the unit can have.
    multiplier : {"booth", "dsp"}, optional
        ``booth``: Booth rows and carry-save trees, for standard cells. ``dsp``: ``*`` and ``+``,
        for the DSP blocks of an FPGA. A unit without multipliers leaves it out.

    Attributes
    ----------
    latency : int
        Cycles from the operands to their result; ``pipeline`` unless a unit sets another one.

    Raises
    ------
    ValueError
        If the depth of the pipeline or the multiplier is unknown.
    """

    pipeline: int
    multiplier: str
    latency: int

    def __init__(
        self,
        ports: Mapping[str, wiring.Member],
        *,
        pipeline: int,
        depths: Mapping[int, object] = PIPELINES,
        multiplier: str = _WITHOUT,
    ):
        self.pipeline = self.latency = check_pipeline(pipeline, depths)
        if multiplier is not _WITHOUT:
            self.multiplier = check_multiplier(multiplier)
        super().__init__(dict(ports))


class DotUnit(PipelinedUnit):
    """A dot product ``d = c + sum(a[k] * b[k])`` by the rule ``spec``.

    A derived unit gives ``check``, and ``depths`` and ``scale_ports`` if it needs others.

    Parameters
    ----------
    spec : DotSpec
        Formats, K and roundings.
    pipeline, multiplier
        As in ``PipelinedUnit``.

    Members
    -------
    a, b : In(ArrayLayout(storage_bits, k))
        Codes of the operands.
    c : In(output.storage_bits)
        Code of the addend.
    d : Out(output.storage_bits)
        Code of the result.

    Latency
    -------
    ``latency = pipeline`` cycles, with one result per cycle. The unit never stalls and has no
    valid bit.
    """

    a: data.View
    b: data.View
    c: Signal
    d: Signal
    spec: DotSpec

    def __init__(self, *, spec: DotSpec, pipeline: int = 0, multiplier: str = "booth"):
        self.spec = spec
        self.check()
        super().__init__(
            dot_ports(
                spec.k,
                self.operand_bits(),
                spec.output.storage_bits,
                self.scale_ports(),
            ),
            pipeline=pipeline,
            depths=self.depths(),
            multiplier=multiplier,
        )

    def check(self) -> None:
        """Raise ``ValueError`` if the unit does not have the rule ``spec``."""
        raise NotImplementedError

    def depths(self) -> Mapping[int, object]:
        """Return the stage boundaries with registers at each depth of the pipeline."""
        return PIPELINES

    def operand_bits(self) -> tuple[int, int]:
        """Return the bits of an operand of A, and of one of B."""
        return self.spec.input.storage_bits, self.spec.input_b.storage_bits

    def scale_ports(self) -> dict[str, wiring.Member]:
        """Return the ports of scales, which stand between the operands and the addend."""
        return {}

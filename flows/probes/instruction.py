"""An instruction that a program of the probe kit runs."""

from dataclasses import dataclass

from vitruvian.golden.fp.formats import (
    FORMATS,
    INT_FORMATS,
    OTHER_FORMATS,
    FloatFormat,
    IntFormat,
)
from vitruvian.golden.fp.scales import SCALES
from vitruvian.golden.machines.probe import Cases, cases


@dataclass(frozen=True)
class ProbedInstruction:
    """An instruction with its formats.

    Parameters
    ----------
    name : str
        Name in the files.
    input, input_b, output : str
        Formats of A, of B, and of C and D.
    terms : int
        Number of terms of a dot product.
    scale : str, optional
        Format of the scales.
    block : int, optional
        Number of values that share a scale.
    sparse : bool
        If True, A is 2:4 sparse.
    text : str
        The target's text: the assembly without its operands, or the name of a builtin function.
    kind : str
        How operands are arranged; the target's programs define it.
    device : int
        The least device that has it: 80 for sm_80.
    """

    name: str
    input: str
    input_b: str
    output: str
    terms: int
    scale: str | None = None
    block: int | None = None
    sparse: bool = False
    text: str = ""
    kind: str = ""
    device: int = 0

    @property
    def operands(self) -> tuple[object, ...]:
        """The facts that the operands depend on; instructions that share them share operands."""
        formats = (self.input, self.input_b, self.output)
        return (*formats, self.terms, self.scale, self.block, self.sparse)

    def cases(self, seed: int) -> Cases:
        """Return the operands for this instruction."""
        return cases(
            _format(self.input),
            _format(self.output),
            self.terms,
            input_b=_format(self.input_b),
            scale=None if self.scale is None else SCALES[self.scale],
            block=self.block,
            seed=seed,
            sparse=self.sparse,
        )


def _format(name: str) -> FloatFormat | IntFormat:
    if name in INT_FORMATS:
        return INT_FORMATS[name]
    return FORMATS[name] if name in FORMATS else OTHER_FORMATS[name]

"""A plan: the steps, slices and restarts of a library's product, and its epilogue."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vitruvian.common.errors import UserError
from vitruvian.common.validate import ceil_div, check_int, one_of
from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.machines.spec import fma_step
from vitruvian.golden.machines.table import find

#: What the factors of a product belong to: all of it, a row of A and a column of B, or blocks of
#: 128 terms (of a row of A, and of 128 columns of B).
SCALES = ("", "tensor", "row", "block")
#: How a plan is known.
EVIDENCE = ("measured", "derived", "vendor", "published", "assumed")
#: Terms of a block that has factors of its own.
BLOCK = 128
#: Instructions of general cores, by the name that a rule has in a plan.
_FMA = {"fma_fp32": "fp32", "fma_fp64": "fp64"}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How a library adds the terms of each element of A·B, and what it makes of the sum.

    The terms along K are divided among slices. A slice begins at zero and takes ``step`` terms at
    a time in rising order, as an instruction adds them. With a restart, each part of so many terms
    begins at zero, and the parts are added in FP32 (FP64 for such sums). The slices are added
    likewise, in their order. Factors, bias and the rounding to the output follow.

    Parameters
    ----------
    rule : str
        The rule of a step: a row of ``vitruvian machines``, or "fma_fp32" or "fma_fp64" for a
        fused multiply-add of each term.
    step : int, optional
        Terms of a step; by default those of the rule.
    restart : int
        Terms of a part; 0 for none.
    starts : tuple of int
        The first terms of contiguous slices.
    cyclic : (int, int), optional
        Terms of a tile, and number of slices: tile t belongs to slice t modulo that number. Then
        ``starts`` must be (0,).
    remainder_first : int
        If it is not 0, the first step of a slice has what exceeds a multiple of it.
    scales : {"", "tensor", "row", "block"}
        Which factors the sum is multiplied by. Those of blocks multiply the sum of each block, in a
        fused multiply-add onto the others.
    bias : bool
        A bias of the output format is added in FP32, an element for each column.
    output : str
        The format of the result: fp32, fp16, bf16 or fp64.
    evidence : {"measured", "derived", "vendor", "published", "assumed"}
        Derived is a plan whose kernel was recorded, and whose results were not.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not allowed.
    """

    rule: str
    step: int | None = None
    restart: int = 0
    starts: tuple[int, ...] = (0,)
    cyclic: tuple[int, int] | None = None
    remainder_first: int = 0
    scales: str = ""
    bias: bool = False
    output: str = "fp32"
    evidence: str = "assumed"

    def __post_init__(self) -> None:
        if self.rule not in _FMA and not isinstance(find(self.rule).rule, DotSpec):
            raise ValueError(f"rule must be one of floating-point sums, not {self.rule!r}")
        if self.step is not None:
            check_int("step", self.step, 1, 1024)
        check_int("restart", self.restart, 0)
        check_int("remainder_first", self.remainder_first, 0)
        if self.cyclic is not None:
            tile, count = self.cyclic
            check_int("tile of cyclic", tile, 1)
            check_int("count of cyclic", count, 1)
        rising = list(self.starts) == sorted(set(self.starts)) and self.starts[:1] == (0,)
        if not rising or (self.cyclic is not None and self.starts != (0,)):
            raise ValueError(
                f"starts must rise from 0, and be (0,) beside cyclic, not {self.starts}"
            )
        if self.remainder_first and (self.restart or self.scales == "block"):
            raise ValueError("remainder_first must be 0 with restarts")
        one_of("scales", self.scales, SCALES)
        one_of("evidence", self.evidence, EVIDENCE)
        one_of("output", self.output, ("fp32", "fp16", "bf16", "fp64"))
        if (self.output == "fp64") != (self.spec.output.name == "fp64"):
            raise ValueError(
                f"output of {self.rule} must be as wide as its sums, not {self.output}"
            )

    @cached_property
    def spec(self) -> DotSpec:
        """The arithmetic of a step."""
        if self.rule in _FMA:
            return fma_step(_FMA[self.rule], _FMA[self.rule])
        rule = find(self.rule).rule
        assert isinstance(rule, DotSpec)
        return rule if self.step is None else rule.replace(k=self.step)

    def slices(self, terms: int) -> list[np.ndarray]:
        """Return the places along K of each slice that has some, in the order of its steps."""
        place = np.arange(terms)
        if self.cyclic is not None:
            tile, count = self.cyclic
            found = [place[place // tile % count == s] for s in range(count)]
        else:
            ends = (*self.starts[1:], terms)
            found = [place[s:e] for s, e in zip(self.starts, ends, strict=True)]
        return [part for part in found if len(part)]

    def parts(self, places: np.ndarray) -> list[np.ndarray]:
        """Return the places of the parts of a slice, each of which begins at zero."""
        length = self.restart or (BLOCK if self.scales == "block" else len(places))
        return [places[first : first + length] for first in range(0, len(places), length)]

    def __str__(self) -> str:
        words = [self.rule, f"{self.spec.k} terms a step"]
        if self.restart:
            words.append(f"from zero every {self.restart}")
        if self.cyclic is not None:
            words.append(f"{self.cyclic[1]} slices of tiles of {self.cyclic[0]} in turn")
        elif len(self.starts) > 1:
            words.append(f"{len(self.starts)} slices from {', '.join(map(str, self.starts))}")
        if self.remainder_first:
            words.append(f"the remainder of {self.remainder_first} first")
        if self.scales:
            words.append(f"factors by {self.scales}")
        words += ["bias"] if self.bias else []
        return f"{'; '.join(words)}; to {self.output} ({self.evidence})"


def contiguous(k: int, slices: int, tile: int = 128) -> tuple[int, ...]:
    """Return the first terms of contiguous slices of as many whole tiles each, but for the last.

    Parameters
    ----------
    k : int
        Terms in all.
    slices : int
        Slices that the library asks for; the last ones may have no tile, and are left out.
    tile : int
        Terms of a tile.

    Examples
    --------
    >>> contiguous(16384, 3)
    (0, 5504, 11008)
    """
    for name, value in (("k", k), ("slices", slices), ("tile", tile)):
        check_int(name, value, 1)
    tiles = ceil_div(k, tile)
    each = ceil_div(tiles, slices)
    return tuple(range(0, tiles * tile, each * tile))


#: Row of the machine table of each GPU whose ``_scaled_mm`` has the plan below.
_SCALED = {"h100": "published", "h200": "measured"}


def scaled_mm(
    k: int,
    *,
    gpu: str = "h100",
    input: str = "e4m3",
    fast: bool = False,
    slices: int = 1,
    scales: str = "tensor",
    output: str = "bf16",
) -> Plan:
    """Return the plan of PyTorch's ``_scaled_mm`` on a Hopper GPU, as cuBLASLt computes it.

    How many slices cuBLASLt chooses depends on shape, GPU and version; ``find`` has recorded ones.

    Parameters
    ----------
    k : int
        Terms of the product.
    gpu : {"h100", "h200"}
    input : str
        Formats of A and B: e4m3, or one of the pairs "e4m3xe5m2" and "e5m2xe4m3".
    fast : bool
        PyTorch's ``use_fast_accum``. Without it, the sum restarts every 128 terms.
    slices : int
        Contiguous slices of whole tiles of 128.
    scales, output
        As those of ``Plan``.

    Raises
    ------
    UserError
        If there is no such GPU or format.

    Examples
    --------
    >>> print(scaled_mm(512, slices=2))
    h100_wgmma_e4m3_fp32; 32 terms a step; from zero every 128; 2 slices from 0, 256; \
factors by tensor; to bf16 (published)
    """
    if gpu not in _SCALED:
        raise UserError(f"gpu must be one of {', '.join(_SCALED)}, not {gpu!r}")
    inputs = ("e4m3", "e4m3xe5m2", "e5m2xe4m3")
    if input not in inputs:
        raise UserError(f"input must be one of {', '.join(inputs)}, not {input!r}")
    return Plan(
        rule=f"{gpu}_wgmma_{input}_fp32",
        restart=0 if fast else 128,
        starts=contiguous(k, slices),
        scales=scales,
        output=output,
        evidence=_SCALED[gpu],
    )

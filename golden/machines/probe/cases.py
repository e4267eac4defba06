"""Operands that tell the rules of matrix units apart, in strata from the simplest on."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np

from vitruvian.golden.fp.formats import FloatFormat, IntFormat
from vitruvian.golden.fp.scales import ScaleFormat
from vitruvian.golden.machines.probe import strata
from vitruvian.golden.machines.probe.rows import Rows

#: Version of the inputs and of the files; files of another version are refused.
KIT_VERSION = 2
_INTEGERS = 400  # random rows of an integer instruction


@dataclass(frozen=True, kw_only=True)
class Cases:
    """Operands of N dot products of K terms.

    Attributes
    ----------
    input, input_b, output : FloatFormat or IntFormat
        Formats of A, of B, and of C and D.
    a, b : (N, K) ndarray of unsigned int
        Codes. Codes of signed integers are their bit patterns.
    c : (N,) ndarray of unsigned int
    scale : ScaleFormat or None
    scale_a, scale_b : (N, K / block) ndarray of uint8, or None
    """

    input: FloatFormat | IntFormat
    input_b: FloatFormat | IntFormat
    output: FloatFormat | IntFormat
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    scale: ScaleFormat | None = None
    scale_a: np.ndarray | None = None
    scale_b: np.ndarray | None = None

    @property
    def terms(self) -> int:
        """The number of terms K."""
        return self.a.shape[1]

    @property
    def block(self) -> int | None:
        """The number of values that share a scale, or None without scales."""
        return None if self.scale_a is None else self.terms // self.scale_a.shape[1]


@dataclass(frozen=True, kw_only=True)
class Results(Cases):
    """Operands, and what a machine returned for them.

    Attributes
    ----------
    d : (N,) ndarray of unsigned int, codes of the output format
    """

    d: np.ndarray

    def rows(self, chosen: np.ndarray) -> "Results":
        """Return only these rows, which a mask or indices choose."""
        parts = {n: getattr(self, n) for n in ("a", "b", "c", "d", "scale_a", "scale_b")}
        return replace(self, **{n: x if x is None else x[chosen] for n, x in parts.items()})


def with_results(given: Cases, d: np.ndarray) -> Results:
    """Return operands together with their results."""
    return Results(**{f.name: getattr(given, f.name) for f in fields(Cases)}, d=np.asarray(d))


def kept_terms(data: Cases) -> Cases:
    """Return the terms that a 2:4 sparse instruction adds, half of each row of sparse operands.

    The places of four neighbours (two in formats of 32 bits) are the same every 16 (8) columns, as
    those of ``cases``. They are those of the codes of A that are not zero, then the first others.
    A value of B at another place has no effect on the result.
    """
    wide = isinstance(data.input, FloatFormat) and data.input.storage_bits == 32
    group = 2 if wide else 4
    used = (data.a.reshape(len(data.a), -1, 4, group) != 0).any(axis=1)
    columns = np.arange(group)
    order = np.argsort(np.where(used, columns, columns + group), axis=2)
    places = np.sort(order[:, :, : group // 2], axis=2)
    chunks = np.arange(data.terms // group)
    index = (group * chunks[:, None] + places[:, chunks % 4]).reshape(len(data.a), -1)
    a, b = (np.take_along_axis(x, index, 1) for x in (data.a, data.b))
    return replace(data, a=a, b=b)


def cases(
    input: FloatFormat | IntFormat,
    output: FloatFormat | IntFormat,
    terms: int,
    *,
    input_b: FloatFormat | IntFormat | None = None,
    scale: ScaleFormat | None = None,
    block: int | None = None,
    seed: int = 1,
    sparse: bool = False,
) -> Cases:
    """Return operands that separate the parameters of the rules.

    Parameters
    ----------
    input, output : FloatFormat or IntFormat
        Format of A; format of C and D.
    terms : int
        Terms K of the instruction.
    input_b : FloatFormat or IntFormat, optional
        Format of B, by default that of A.
    scale : ScaleFormat, optional
    block : int, optional
        Number of values that share a scale.
    seed : int
        Start of the random numbers.
    sparse : bool
        If True, at most two of four neighbouring values of A are not zero (one of two for a format
        of 32 bits), as 2:4 sparse instructions require.
    """
    rng = np.random.default_rng(seed)
    other = input if input_b is None else input_b
    if isinstance(input, IntFormat) or isinstance(other, IntFormat):
        return _integers(rng, input, other, output, terms, sparse)
    assert isinstance(output, FloatFormat)
    rows = Rows(rng, input, other, output, terms, scale, block)
    makers: tuple[Callable[[Rows], None], ...] = strata.STRATA
    for stratum in makers:
        stratum(rows)
    made = rows.arrays()
    if sparse:
        made["a"] = _thinned(rng, made["a"], 2 if input.storage_bits == 32 else 4)
    return Cases(input=input, input_b=other, output=output, scale=scale, **made)


def _integers(
    rng: np.random.Generator,
    input: FloatFormat | IntFormat,
    input_b: FloatFormat | IntFormat,
    output: FloatFormat | IntFormat,
    terms: int,
    sparse: bool,
) -> Cases:
    """Return operands of an integer instruction: random ones, and all pairs of extreme values."""
    extremes = np.array([0, 1, 0x7F, 0x80, 0x81, 0xFF], np.uint8)
    ends = np.array([0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF], np.uint32)
    x, y, z = (g.ravel() for g in np.meshgrid(extremes, extremes, ends, indexing="ij"))
    a, b = rng.integers(0, 256, (2, _INTEGERS, terms), np.uint8)
    c = rng.integers(0, 1 << 32, _INTEGERS, np.uint32)
    single = np.zeros((len(x), terms), np.uint8)
    first, second = single.copy(), single.copy()
    first[:, 0], second[:, 0] = x, y
    parts_a = (first, np.repeat(x[:, None], terms, 1), a)
    parts_b = (second, np.repeat(y[:, None], terms, 1), b)
    a, b = np.concatenate(parts_a), np.concatenate(parts_b)
    a = _thinned(rng, a, 4) if sparse else a
    return Cases(input=input, input_b=input_b, output=output, a=a, b=b, c=np.concatenate((z, z, c)))


def _thinned(rng: np.random.Generator, a: np.ndarray, group: int) -> np.ndarray:
    """Clear codes, so that at most half of each group are not zero.

    Four groups have the same places as the next four, because then the layout of an instruction's
    metadata does not matter to a program. Places with more numbers are kept first.
    """
    chunks = a.reshape(len(a), -1, 4, group)
    filled: np.ndarray = (chunks != 0).sum(axis=1)
    order = np.argsort(np.argsort(rng.random(filled.shape) - filled, axis=2), axis=2)
    kept = (order < group // 2)[:, None]
    thinned: np.ndarray = np.where(kept, chunks, 0)
    return thinned.astype(a.dtype).reshape(a.shape)

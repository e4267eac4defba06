"""Files of conformance vectors: text that Verilog reads with ``$readmemh``, and NumPy's .npz.

A line of the text is one row, a hexadecimal number whose fields are separated by underscores. Lines
that begin with // are the header; ``$readmemh`` ignores them and the underscores.
"""

import hashlib
import io
import json
from dataclasses import dataclass

import numpy as np

from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.machines import Machine, Rule, compute
from vitruvian.golden.machines.spec import changed_parameters
from vitruvian.golden.machines.table import output_format
from vitruvian.sim.conformance.stimulus_classes import STRATA, ConformanceOperands, draw

_SENTENCES = {
    "rvbna": (
        "The products are exact. E is the largest sum of the exponents of the two operands among",
        "the products that are not zero; a subnormal operand has the least normal exponent.",
        "Each product is cut at 2^(E - 23 - g), where g = ceil(log2 K), and its last bit is set if",
        "bits were lost (rounding to odd). The sum is exact, and DOT is the sum rounded to odd",
        "once: overflow is an infinity, zero is +0, subnormal results are kept.",
        "D = DOT + C, rounded to odd, with the signs of zero of IEEE 754. NaN is 7fc00000.",
    )
}


@dataclass(frozen=True, kw_only=True)
class Vectors:
    """Operands with the results of golden.

    Attributes
    ----------
    machine : Machine
        The row of the table.
    seed : int
        Start of the random numbers.
    operands : ConformanceOperands
    d : (n,) ndarray of unsigned int
        The results.
    dot : (n,) ndarray of unsigned int, or None
        The rounded sum of the products, of a rule that adds C to it.
    """

    machine: Machine
    seed: int
    operands: ConformanceOperands
    d: np.ndarray
    dot: np.ndarray | None


def make_vectors(machine: Machine, rows: int, seed: int = 1) -> Vectors:
    """Return conformance vectors; parameters and exceptions are those of ``strata.draw``."""
    x = draw(machine, rows, seed)
    rule = machine.rule

    def run(rule: Rule, c: np.ndarray) -> np.ndarray:
        return compute(rule, x.a, x.b, c, x.scale_a, x.scale_b)

    dot = None
    if isinstance(rule, DotSpec) and rule.addend.how == "late":
        # The sum before C is added, which a unit may have as an output of its own.
        dot = run(rule.replace(accumulate="tree"), np.zeros_like(x.c))
    return Vectors(machine=machine, seed=seed, operands=x, d=run(rule, x.c), dot=dot)


def to_text(vectors: Vectors) -> str:
    """Return the file as text."""
    rows = _rows(vectors)
    return "".join(f"// {line}".rstrip() + "\n" for line in _header(vectors)) + rows


def checksum(vectors: Vectors) -> str:
    """Return the SHA-256 of the rows of the text, in hexadecimal digits."""
    return hashlib.sha256(_rows(vectors).encode()).hexdigest()


def to_npz(vectors: Vectors) -> bytes:
    """Return an .npz file with the arrays and the header as JSON."""
    x, machine = vectors.operands, vectors.machine
    header = {
        "name": machine.stem,
        "rows": len(vectors.d),
        "K": x.a.shape[1],
        "formats": [str(machine.input), str(machine.input_b), machine.output],
        "rule": _parameters(machine.rule),
        "strata": list(STRATA),
        "seed": vectors.seed,
        "sha256": checksum(vectors),
    }
    optional = {"scale_a": x.scale_a, "scale_b": x.scale_b, "dot": vectors.dot}
    arrays = {"a": x.a, "b": x.b, "c": x.c, "d": vectors.d, "stratum": x.stratum}
    arrays |= {name: array for name, array in optional.items() if array is not None}
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, header=np.array(json.dumps(header)), **arrays)
    return file.getvalue()


def _columns(vectors: Vectors) -> list[tuple[str, int, np.ndarray]]:
    """Return name, hexadecimal digits and codes of each column, from left to right."""
    x, machine = vectors.operands, vectors.machine
    output = output_format(machine)
    assert output is not None
    wide = output.storage_bits // 4
    found: list[tuple[str, int, np.ndarray]] = [("stratum", 2, x.stratum), ("D", wide, vectors.d)]
    if vectors.dot is not None:
        found.append(("DOT", wide, vectors.dot))
    found.append(("C", wide, x.c))
    # From the left, the highest bits first: element 0 of A is at the right end of a line.
    sides = [("scaleB", x.scale_b), ("scaleA", x.scale_a), ("B", x.b), ("A", x.a)]
    for name, array in sides:
        if array is not None:
            digits = 2 * array.dtype.itemsize
            found += [(f"{name}[{k}]", digits, array[:, k]) for k in range(array.shape[1])[::-1]]
    return found


def _rows(vectors: Vectors) -> str:
    """Return the lines below the header."""
    columns = [
        [f"{code:0{digits}x}" for code in codes.tolist()] for _, digits, codes in _columns(vectors)
    ]
    return "".join("_".join(row) + "\n" for row in zip(*columns, strict=True))


def _header(vectors: Vectors) -> list[str]:
    machine, x = vectors.machine, vectors.operands
    terms = x.a.shape[1]
    columns = _columns(vectors)
    bits = 4 * sum(digits for _, digits, _ in columns)
    lines = [
        f"Conformance vectors of {machine.stem}: {machine.maker} {machine.title}",
        f"D = C + sum of A[k] * B[k], k = 0 to {terms - 1}",
        f"formats: A {machine.input}, B {machine.input_b}, C and D {machine.output}",
        f"rule: {', '.join(f'{k} {v}' for k, v in _parameters(machine.rule).items())}",
        *_SENTENCES.get(machine.rule_name, ()),
        "A NaN among D stands for any NaN, unless the rule fixes its code."
        if machine.rule_name != "rvbna"
        else "Exception flags are not included.",
        "",
        f"Each line is one word of {bits} bits in hexadecimal digits, for $readmemh.",
        "Fields from the left, with their bits:",
    ]
    high = bits - 1
    for name, digits, _ in columns:
        lines.append(f"  {name:10} [{high}:{high + 1 - 4 * digits}]")
        high -= 4 * digits
    lines += ["", f"rows: {len(vectors.d)}, seed: {vectors.seed}", "strata:"]
    counts = np.bincount(x.stratum, minlength=len(STRATA)).tolist()
    for number, (name, count) in enumerate(zip(STRATA, counts, strict=True)):
        lines.append(f"  {number:02x} {name}, {count} rows: {STRATA[name]}")
    return [*lines, f"SHA-256 of the lines without //: {checksum(vectors)}", ""]


def _parameters(rule: Rule) -> dict[str, str]:
    """Return the parameters that are not at their defaults, as text."""
    return {
        name: f"{value:#x}" if name == "nan" else str(value)
        for name, value in changed_parameters(rule).items()
        if name not in ("input", "input_b", "output")
    }

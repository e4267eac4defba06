"""The instruction that a dot of tiles becomes, and the order in which it takes the terms."""

from dataclasses import dataclass, replace

from vitruvian.common.errors import UserError
from vitruvian.common.validate import check_int
from vitruvian.golden.machines.table import machine_name, machines

#: Machines that Triton compiles for, and what its compiler calls their generation.
TARGETS = {
    "a100": "sm80",
    "a30": "sm80",
    "a2": "sm86",
    "a40": "sm86",
    "ada": "sm89",
    "h100": "sm90",
    "h200": "sm90",
    "b200": "sm100",
    "rtx50": "sm120",
    "cdna3": "gfx942",
}
#: Formats whose products are exact in FP16.
FP8 = ("e4m3", "e5m2")
#: Bits of the formats of operands.
WIDTHS = {
    **dict.fromkeys(("e4m3", "e5m2", "fp8", "bf8", "int8"), 8),
    "fp16": 16,
    "bf16": 16,
    "fp32": 32,
    "fp64": 64,
}
PRECISIONS = ("tf32", "tf32x3", "ieee")
_LEAST = {8: 32, 16: 16, 32: 8, 64: 4}  # terms of a tile, by the bits of an operand
#: Tiles of the recorded calls, all with 4 warps and FP32 results.
_RECORDED = ((64, 64), (16, 16))
_UNLIMITED = 1 << 30


@dataclass(frozen=True, kw_only=True)
class Dot:
    """How the terms of a dot of two tiles are added.

    Parameters
    ----------
    rule : str
        A row of ``vitruvian machines``, "fma_fp32" or "fma_fp64" for a fused multiply-add of each
        term, or "int32" for exact sums.
    input : str
        Format of A, or formats of A and B with an x between them.
    convert : str
        Format to which both operands are widened first, exactly; "" for none.
    group : int
        Terms that lie side by side in a thread's registers. With more than an instruction takes
        from there at a time, the order of the terms is not that of K.
    pair : int
        Terms that an instruction takes from a register.
    restart : int
        Terms after which the sum is added in FP32 to that of the others, and begins again at zero;
        0 for none.
    split : bool
        Three products in TF32: of the rest of A, of the rest of B, and of both without the rest.
    saturate : int
        For "int32": terms after which the sum is clamped; 0 for a sum modulo 2^32, and −1 where
        only sums that stay in range are known.
    evidence : {"measured", "vendor", "published", "assumed"}
        "measured": results of Triton on this machine are equal. "vendor": Triton's compiler writes
        this instruction, whose rule was measured; "published": whose rule is published.
    """

    rule: str
    input: str
    convert: str = ""
    group: int = 0
    pair: int = 0
    restart: int = 0
    split: bool = False
    saturate: int = 0
    evidence: str = "assumed"

    @property
    def reordered(self) -> bool:
        """Whether the order of the terms is not that of K."""
        return self.group > self.pair > 0

    def __str__(self) -> str:
        words = [f"{self.input}: {self.rule}"]
        words += [f"operands in {self.convert}"] if self.convert else []
        words += ["three products in TF32"] if self.split else []
        if self.reordered:
            words.append(f"terms k with k mod {self.group} < {self.pair} first")
        words += [f"from zero every {self.restart}"] if self.restart else []
        return f"{'; '.join(words)} ({self.evidence})"


def lower(
    machine: str,
    input: str,
    shape: tuple[int, int, int],
    *,
    output: str = "fp32",
    warps: int = 4,
    imprecise: int | None = None,
    precision: str | None = None,
    batched: bool = False,
    loaded: int | None = None,
    assume: bool = False,
) -> Dot:
    """Return how Triton's compiler computes a dot of tiles on a machine.

    Parameters
    ----------
    machine : str
        A machine of the table, for example "h100".
    input : str
        Format of both operands, or both with an x between them: fp16, bf16, fp32, fp64, int8, e4m3,
        e5m2, and on CDNA 3 fp8 and bf8.
    shape : (int, int, int)
        M, N and K of the tiles.
    output : str
        Format of the result: fp32, fp16, fp64 or int32.
    warps : int
        ``num_warps`` of the launch.
    imprecise : int, optional
        ``max_num_imprecise_acc``; by default the compiler's.
    precision : {"tf32", "tf32x3", "ieee"}, optional
        ``input_precision`` for FP32 operands; by default the compiler's.
    batched : bool
        If True, the tiles have three axes.
    loaded : int, optional
        Bits of the narrowest array that the operands were loaded from, if that is less than the
        bits of an operand.
    assume : bool
        If True, take the most likely rule where none is known, with the evidence "assumed".

    Raises
    ------
    UserError
        If the machine, the formats or an option have no known rule.

    Examples
    --------
    >>> from vitruvian.golden.triton import lower
    >>> print(lower("h200", "e4m3", (64, 64, 128), imprecise=64))
    e4m3: h200_wgmma_e4m3_fp32; from zero every 64 (measured)
    >>> print(lower("h200", "e4m3", (16, 16, 128)))
    e4m3: h200_mma_fp16_fp32; operands in fp16; terms k with k mod 4 < 2 first (measured)
    """
    name = machine_name(machine.lower())
    if name not in TARGETS:
        known = ", ".join(TARGETS)
        raise UserError(f"machine must be one that Triton has dots for ({known}), not {machine!r}")
    formats = input.split("x")
    if not 0 < len(formats) <= 2 or any(f not in WIDTHS for f in formats):
        raise UserError(f"input must be of {', '.join(WIDTHS)}, not {input!r}")
    bits = WIDTHS[formats[0]]
    for thing, value in zip(("M", "N", "K"), shape, strict=True):
        check_int(thing, value, 1)
    if shape[2] < _LEAST[bits]:
        raise UserError(f"K of a tile of {input} must be at least {_LEAST[bits]}, not {shape[2]}")
    check_int("num_warps", warps, 1)
    limit = default_imprecise(name) if imprecise is None else imprecise
    check_int("max_num_imprecise_acc", limit, 0)
    precise = formats[0] in FP8 and limit < 32 and output == "fp32" and TARGETS[name] == "sm90"
    unit = "mma" if batched or precise else _unit(name, shape, warps, input)
    if formats[0] == "int8":
        return _integers(name, unit)
    if formats[0] == "fp64":
        return Dot(rule="fma_fp64", input=input, evidence="vendor")
    if name == "cdna3":
        return _cdna(input, shape, output, precision or "ieee", batched)
    if input == "fp32":
        dot = _singles(name, unit, shape, output, precision or "tf32")
    elif formats[0] in FP8:
        dot = _bytes(name, unit, input, shape[2], output, limit, assume)
    else:
        dot = Dot(rule=_row(name, unit, input, output), input=input)
    if dot.rule.startswith("fma"):
        return dot
    if unit != "mma":
        return _judged(dot, name, shape, warps, output, loaded)
    own = 16 if dot.convert else bits
    group = 32 // min(bits, loaded or bits)
    dot = replace(dot, group=group, pair=32 // own)
    return _judged(dot, name, shape, warps, output, loaded, batched)


def default_imprecise(machine: str) -> int:
    """Return the compiler's ``max_num_imprecise_acc`` for FP8 operands."""
    return _UNLIMITED if TARGETS[machine] == "sm90" else 0


def _unit(name: str, shape: tuple[int, int, int], warps: int, input: str) -> str:
    """Return the instruction: of a group of warps or of the tensor memory, or of one warp."""
    rows, columns, _ = shape
    target = TARGETS[name]
    large = rows % 64 == 0 and columns % 8 == 0
    if target == "sm90" and large and warps % 4 == 0:
        unit = "wgmma"
    elif target == "sm100" and large and warps in (4, 8):
        unit = "tcgen05"
    else:
        return "mma"
    if columns < 16 and input.split("x")[0] in FP8:
        raise UserError(f"N of a tile of {input} must be at least 16 for {unit}, not {columns}")
    return unit


def _singles(name: str, unit: str, shape: tuple[int, int, int], output: str, precision: str) -> Dot:
    """Return the sum of a dot of FP32 on an NVIDIA GPU."""
    if precision not in PRECISIONS:
        raise UserError(
            f"input_precision must be one with a known rule ({', '.join(PRECISIONS)}), "
            f"not {precision!r}"
        )
    if precision == "ieee":
        evidence = "measured" if name == "h200" and shape[:2] in _RECORDED else "vendor"
        return Dot(rule="fma_fp32", input="fp32", evidence=evidence)
    rule = _row(name, unit, "tf32", output)
    return Dot(rule=rule, input="fp32", split=precision == "tf32x3")


def _bytes(
    name: str, unit: str, input: str, terms: int, output: str, limit: int, assume: bool
) -> Dot:
    """Return the sum of a dot of FP8 on an NVIDIA GPU."""
    target = TARGETS[name]
    if "e4m3" in input and target in ("sm80", "sm86"):
        raise UserError(f"input must not be {input} on {name}: Triton has no e4m3 there")
    if target == "sm120":
        if not assume:
            raise UserError(
                f"the rule of FP8 dots on {name} must be known: its instruction was measured on "
                "another GPU (assume=True takes that one's)"
            )
        return Dot(rule=_row(name, "mmasync", input, output), input=input)
    if target == "sm89":
        return Dot(rule=_row(name, unit, input, output), input=input)
    if unit == "mma":
        return Dot(rule=_row(name, unit, "fp16", output), input=input, convert="fp16")
    # The sum restarts after whole instructions, and only within a tile.
    restart = limit + -limit % 32 if target == "sm90" and output == "fp32" else 0
    if limit > terms:
        restart = 0
    return Dot(rule=_row(name, unit, input, output), input=input, restart=restart)


def _cdna(
    input: str, shape: tuple[int, int, int], output: str, precision: str, batched: bool
) -> Dot:
    """Return the sum of a dot on CDNA 3, whose instructions take the terms in the order of K."""
    if input == "fp32" and precision != "ieee":
        raise UserError(f"input_precision must be ieee on cdna3, not {precision!r}")
    if output != "fp32" or batched or min(shape[:2]) < 16 or shape[2] < 32:
        raise UserError(
            "a dot on cdna3 must have two axes, M and N of at least 16, K of at least 32, and fp32 "
            f"results, not {shape} and {output}"
        )
    if input == "fp32":
        return Dot(rule="fma_fp32", input=input, evidence="published")
    return Dot(rule=_row("cdna3", "mfma", input, output), input=input, evidence="published")


def _integers(name: str, unit: str) -> Dot:
    """Return the sum of a dot of integers, which is exact but for what exceeds 32 bits."""
    known = name in ("h100", "h200")
    saturate = (0 if unit == "wgmma" else 32) if known else -1
    return Dot(rule="int32", input="int8", saturate=saturate, evidence="vendor")


def _row(name: str, unit: str, formats: str, output: str) -> str:
    """Return the row of the table, or refuse the formats by name."""
    stem = f"{name}_{unit}_{formats}_{output}"
    if stem not in machines():
        raise UserError(f"input and output must have a rule on {name}, not {formats} to {output}")
    return stem


def _judged(
    dot: Dot,
    name: str,
    shape: tuple[int, int, int],
    warps: int,
    output: str,
    loaded: int | None,
    batched: bool = False,
) -> Dot:
    """Return the dot with its evidence."""
    row = machines()[dot.rule]
    plain = not batched and loaded is None and warps == 4 and output == "fp32"
    if name == "h200" and plain and shape[:2] in _RECORDED and "x" not in dot.input:
        return replace(dot, evidence="measured")
    if row.instruction == "mmasync":
        return replace(dot, evidence="assumed")
    silicon = row.evidence.startswith("S") and row.instruction != "tcgen05"
    return replace(dot, evidence="vendor" if silicon else "published")

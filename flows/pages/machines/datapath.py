"""The datapath of every rule of the table of machines, drawn from the rule's parameters."""

from vitruvian.flows.pages.machines.drawing import Box, Rank, draw
from vitruvian.golden.fp.formats import FloatFormat
from vitruvian.golden.fp.spec import DotSpec, IntDotSpec, dot_spec
from vitruvian.golden.machines import ChainSpec, IntPhaseSpec, Machine, PhaseSpec, RdnaSpec

_KEPT = {
    "magnitude": "bits below q are dropped",
    "odd": "a term that lost bits becomes odd",
    "floor": "floored; lost bits set one sticky bit",
}


def datapath(row: Machine) -> str:
    """Return the SVG text of the datapath of a row of the table."""
    rule = row.rule
    if isinstance(rule, IntDotSpec | IntPhaseSpec):
        words = ["int32"]
    else:
        words = [str(rule.output)]
        if not rule.rdna4 if isinstance(rule, RdnaSpec) else _step(rule).flush:
            words.append("subnormals are zeros")
    has_c = not (isinstance(rule, ChainSpec) and rule.add_c == "none")
    name = "Dst" if isinstance(rule, PhaseSpec | IntPhaseSpec) else "C"
    c = Box(name, tuple(words)) if has_c else None
    title = f"Datapath of {row.title}: {row.stem}"
    return draw(title, ranks_of(row), c)


def _step(rule: DotSpec | ChainSpec | PhaseSpec) -> DotSpec:
    """Return the parameters of flushing of a rule."""
    if isinstance(rule, ChainSpec):
        return rule.step
    if isinstance(rule, PhaseSpec):
        return dot_spec(input="fp32", output="fp32", k=1, window=1)
    return rule


def ranks_of(row: Machine) -> list[Rank]:
    """Return the ranks of boxes of a row's datapath, from the operands to the result."""
    rule = row.rule
    if isinstance(rule, IntDotSpec):
        return _integer(rule)
    if isinstance(rule, IntPhaseSpec):
        return _integer_phases(rule)
    if isinstance(rule, PhaseSpec):
        return _phases(rule)
    if isinstance(rule, ChainSpec):
        return _chain(rule)
    if isinstance(rule, RdnaSpec):
        return _rdna(rule)
    ranks = _operands(rule, rule.k)
    # With one product and a sticky bit nothing can be seen of the window: it is a fused
    # multiply-add.
    if rule.k == 1 and rule.sum.truncate == "floor":
        words = (f"exact product and sum, rounded once by {rule.result.rounding}",)
        return [*ranks, Rank((Box("Fused multiply-add", words),), takes_c=True), _pack(rule)]
    if rule.sum.lanes == "halves":
        late = [_late(rule)] if rule.addend.how == "late" else []
        return [*ranks, *_halves(rule), *late, _pack(rule)]
    if rule.addend.how == "aligned":
        return [*ranks, *_aligned(rule), _pack(rule)]
    ranks += [Rank((_multiply(rule),)), *_scaled(rule), *_sum(rule)]
    if rule.addend.how == "after":
        ranks.append(Rank((Box("Add C exactly"),), takes_c=True))
    ranks.append(Rank((_round(rule),)))
    if rule.addend.how == "late":
        ranks.append(_late(rule))
    return [*ranks, _pack(rule)]


def _operands(rule: DotSpec | ChainSpec, k: int | None) -> list[Rank]:
    """Return the boxes of the operands and of their decoders."""
    many = "K" if k is None else str(k)
    a, b = rule.input, rule.input_b
    boxes = [Box(f"A: {many} × {a}"), Box(f"B: {many} × {b}")]
    step = _step(rule)
    if isinstance(rule, DotSpec) and rule.scales is not None:
        boxes.append(Box("Scales", (f"{rule.scales.format}, one for {rule.scales.block} values",)))
    wide = _multiplied(rule)
    both = f"{wide[0].significand_bits} bits"
    if wide[0].significand_bits != wide[1].significand_bits:
        both = f"{wide[0].significand_bits} and {wide[1].significand_bits} bits"
    words = [f"sign, exponent, significand of {both}"]
    if step.a.convert is not None:
        words.append(f"converted to {step.a.convert} first")
    zeros = isinstance(rule, ChainSpec) and rule.zero_subnormals
    flushed = "subnormals become zeros" if step.flush else "subnormals are kept"
    words.append("subnormals and zeros become +0" if zeros else flushed)
    return [Rank(tuple(boxes)), Rank((Box("Decode", tuple(words)),))]


def _multiplied(rule: DotSpec | ChainSpec) -> tuple[FloatFormat, FloatFormat]:
    """Return the formats in which A and B are multiplied."""
    convert = _step(rule).a.convert
    return convert or rule.input, convert or rule.input_b


def _multiply(rule: DotSpec, many: int | None = None) -> Box:
    a, b = _multiplied(rule)
    many = rule.k if many is None else many
    if rule.products.slices is None:
        times = "one multiplier" if many == 1 else f"{many} multipliers"
        words = [f"{times}, {a.significand_bits} × {b.significand_bits} bits"]
    else:
        slices = rule.products.slices
        width = max(_width(mask) for pair in slices for mask in pair)
        words = [f"{len(slices)} partial products of up to {width} × {width} bits for each pair"]
    if rule.products.overflow:
        words.append(f"2^{rule.output.emax + 1} and more is an infinity")
    return Box("Multiply", tuple(words))


def _width(mask: int) -> int:
    """Return the number of bits between the ends of a mask."""
    # From the highest one down to the lowest.
    return mask.bit_length() - ((mask & -mask).bit_length() - 1)


def _scaled(rule: DotSpec) -> list[Rank]:
    """Return the boxes that apply the scales of blocks."""
    if rule.scales is None:
        return []
    if rule.sum.lanes == "sixteens":
        words = (
            "times both scales" if rule.scales.format.fraction_bits else "scales join the exponent",
        )
        sums = Box("Add 16 products exactly", (f"{rule.k // 16} groups",))
        return [Rank((sums,)), Rank((Box("Scale each group", words),))]
    words = ("the scales' exponents are added to each product's",)
    return [Rank((Box("Scale", words),))]


def _sum(rule: DotSpec) -> list[Rank]:
    """Return the boxes of a sum whose terms are aligned at one exponent."""
    # An exact sum of 16 products is one term.
    many = rule.k // 16 if rule.sum.lanes == "sixteens" else rule.k
    many *= len(rule.products.slices or (0,))
    tree = rule.addend.how == "tree"
    terms = f"{many} terms and C" if tree else f"{many} terms"
    if rule.sum.window is None:
        return [Rank((Box("Add exactly", (terms,)),), takes_c=tree)]
    least = "" if rule.sum.floor is None else f", at least {_minus(rule.sum.floor)}"
    # By default a product has the sum of its operands' exponents, whether it is normalised or not.
    of = "leading ones" if rule.products.exponent == "leading" else "nonzero terms"
    unit = f"q = 2^(E_max − {rule.sum.window})"
    return [
        Rank((Box("Largest exponent E_max", (f"of the {of}{least}",)),), takes_c=tree),
        Rank((Box(f"Align to {unit}", (_KEPT[rule.sum.truncate],)),), takes_c=tree),
        Rank((Box("Add", (f"{terms}, exactly",)),)),
    ]


def _minus(number: int) -> str:
    return str(number).replace("-", "−")


def _round(rule: DotSpec) -> Box:
    return Box(
        "Normalise and round", (f"{rule.result.rounding} to {rule.result.bits} fraction bits",)
    )


def _late(rule: DotSpec) -> Rank:
    rounding = "RTO" if rule.result.rounding == "RTO" else "RNE"
    return Rank((Box("Add C", (f"one IEEE addition, rounded by {rounding}",)),), takes_c=True)


def _halves(rule: DotSpec) -> list[Rank]:
    """Return the boxes of two sums, the second of which begins with the result of the first."""
    unit = f"truncated at 2^(E_max − {rule.sum.window}), rounded by {rule.result.rounding}"
    half, late = rule.k // 2, rule.addend.how == "late"
    return [
        Rank((_multiply(rule),)),
        Rank((Box(f"Add {half} terms, k mod 4 of 0 or 1", (unit,)),), takes_c=not late),
        Rank((Box(f"Add {half} terms, k mod 4 of 2 or 3", ("and the first sum", unit)),)),
    ]


def _aligned(rule: DotSpec) -> list[Rank]:
    """Return the boxes of the rule of CDNA 3."""
    lanes = ("even k", "odd k") if rule.sum.lanes == "parity" else ("",)
    many = rule.k // len(lanes)
    multiply = tuple(_multiply(rule, many) for _ in lanes)
    own = tuple(
        Box(f"Add {many} terms{f', {lane}' if lane else ''}", ("truncated at 2^(E_max − 24)",))
        for lane in lanes
    )
    ranks = [Rank(multiply), Rank(own)]
    if len(lanes) > 1:
        ranks.append(Rank((Box("Add both, floored at 2^(E_d − 24)"),)))
    add = ("products floored at 2^(E_m − 32), C at 2^(E_m − 24)",)
    return [
        *ranks,
        Rank((Box("Add C", add),), takes_c=True),
        Rank((Box("Floor to 32 bits, round", (f"{rule.result.rounding}",)),)),
    ]


def _pack(rule: DotSpec) -> Rank:
    """Return the box of the result."""
    zero = {"positive": "every zero is +0", "ieee": "zeros as in IEEE 754", "exact": "exact: +0"}
    words = [f"{zero[rule.result.zero]}; NaN 0x{rule.nan_code:X}"]
    if rule.result.zero == "exact":
        words = [f"an exact zero is +0; NaN 0x{rule.nan_code:X}"]
    if rule.result.flush:
        when = f"{rule.result.flush} rounding"
        if rule.result.flush == "unbounded":
            when = "after rounding without a least exponent"
        words.append(f"tiny results become zeros, judged {when}")
    return Rank((Box(f"D: {rule.output}", tuple(words)),))


def _chain(rule: ChainSpec) -> list[Rank]:
    """Return the boxes of a chain or of a tree of rounded operations."""
    ranks = _operands(rule, rule.k)
    rounding = f"rounded by {rule.step.result.rounding}"
    k = rule.k
    if rule.complex:
        words = (
            "A's parts change places" if rule.complex == "imaginary" else "A's odd codes negated"
        )
        ranks.append(Rank((Box(f"Complex: {rule.complex} part", (words,)),)))
    if rule.products == "paired":
        many = rule.accumulators
        ranks.append(Rank((Box("Multiply, add neighbours", (rounding,)),)))
        ranks.append(
            Rank(tuple(Box("Accumulate", (f"pair mod {many} = {i}",)) for i in range(many)))
        )
        ranks += _pairs(many, rounding)
        ranks.append(Rank((Box("Add C", (rounding,)),), takes_c=True))
    elif rule.products == "rounded":
        assert k is not None
        ranks.append(Rank(tuple(Box("Multiply", (rounding,)) for _ in range(k))))
        ranks += _pairs(k, rounding)
        ranks.append(Rank((Box("Add C", (rounding,)),), takes_c=True))
    elif rule.accumulators > 1:
        many = rule.accumulators
        ranks.append(
            Rank(tuple(Box("FMA chain", (f"k mod {many} = {i}", rounding)) for i in range(many)))
        )
        ranks += _pairs(many, rounding)
        if rule.add_c == "last":
            ranks.append(Rank((Box("Add C", (rounding,)),), takes_c=True))
    elif k is not None and k <= 4:
        # The drawing goes down in the order of the operations.
        order = list(reversed(range(k))) if rule.descending else list(range(k))
        ranks += [
            Rank((Box(f"Fused multiply-add, k = {i}", (rounding,)),), takes_c=i == order[0])
            for i in order
        ]
    else:
        words = (f"in rising k, each {rounding}",)
        many = "K" if k is None else str(k)
        ranks.append(Rank((Box(f"{many} fused multiply-adds", words),), takes_c=True))
    return [*ranks, _pack(rule.step)]


def _pairs(many: int, rounding: str) -> list[Rank]:
    """Return the ranks of a tree of rounded additions."""
    ranks: list[Rank] = []
    while many > 1:
        many //= 2
        ranks.append(Rank(tuple(Box("Add", (rounding,)) for _ in range(many))))
    return ranks


def _phases(rule: PhaseSpec) -> list[Rank]:
    """Return the boxes of one phase of MVMUL."""
    # Significant bits, with the hidden one.
    kept = {"fp32": 24, "bf16": 8, "fp16": 11}[rule.output.name]
    # Sources with a narrow exponent keep FP16's significand.
    kept = 11 if kept < 24 and rule.narrow else kept
    groups = tuple(
        Box(f"Terms {8 * i} to {8 * i + 7}", ("aligned half up at their largest exponent", "added"))
        for i in range(2)
    )
    result = [f"half up to {kept} significant bits; subnormals become +0"]
    if not rule.blackhole:
        result.append("erratum: a sum of −1 is shifted wrongly")
    field = "5" if rule.narrow else "8"
    name, operands = str(rule.input), [Box("A"), Box("B")]
    widen = [f"field of {field} bits, 10 fraction bits; no ∞, no NaN"]
    if rule.shared_bits is not None:
        name = f"BFP{rule.shared_bits}"
        operands.append(Box("Exponents", ("one for 16 values",)))
        widen.insert(0, "magnitudes are normalised; −0 becomes −∞")
    operands[:2] = [Box(f"{box.heading}: 16 × {name}") for box in operands[:2]]
    return [
        Rank(tuple(operands)),
        Rank((Box("Widen to 19 bits", tuple(widen)),)),
        Rank((Box("Multiply slices, 5 × 7 bits", (_named_phases(rule.phases),)),)),
        Rank(groups),
        Rank((Box("Align both groups and Dst, half up", ("at the largest field",)),), takes_c=True),
        Rank((Box("Add and normalise"),)),
        Rank((Box(f"Dst: {rule.output}", tuple(result)),)),
    ]


def _named_phases(many: int) -> str:
    return "phase 0" if many == 1 else f"phases 0 to {many - 1}, one after the other"


def _integer_phases(rule: IntPhaseSpec) -> list[Rank]:
    """Return the boxes of one phase of MVMUL with integers."""
    return [
        Rank((Box("A: 16 × int8, sign and magnitude"), Box("B: 16 × int8, sign and magnitude"))),
        Rank((Box("Multiply slices, 5 × 4 bits at most", (_named_phases(rule.phases),)),)),
        Rank((Box("Add", ("16 products, exactly",)),)),
        Rank((Box("Add Dst", ("clipped to ±(2^31 − 1)",)),), takes_c=True),
        Rank((Box("Dst: int32, sign and magnitude"),)),
    ]


def _integer(rule: IntDotSpec) -> list[Rank]:
    """Return the boxes of an integer dot product."""
    a, b = ("int8" if signed else "uint8" for signed in (rule.signed_a, rule.signed_b))
    end = "clipped to int32" if rule.saturate else "modulo 2^32"
    return [
        Rank((Box(f"A: {rule.k} × {a}"), Box(f"B: {rule.k} × {b}"))),
        Rank((Box("Multiply", (f"{rule.k} multipliers, 8 × 8 bits",)),)),
        Rank((Box("Add", (f"{rule.k} products and C, {end}",)),), takes_c=True),
        Rank((Box("D: int32"),)),
    ]


def _rdna(rule: RdnaSpec) -> list[Rank]:
    """Return the boxes of a step of RDNA."""
    k, out = rule.k, str(rule.output)
    operands = Rank((Box(f"A: {k} × {rule.input}"), Box(f"B: {k} × {rule.input_b}")))
    multiply = Rank(tuple(Box("Multiply", ("exactly",)) for _ in range(k)))
    if rule.rdna4:
        many = 1 if rule.input.width == 8 else k // 2
        sums = Rank(tuple(Box(f"Add {k // many}", ("floored at their grid",)) for _ in range(many)))
        align = [sums, Rank((Box("Align all, floored"),), takes_c=True)]
    else:
        words = ("in the sign of C; bits of other terms are inverted",)
        align = [Rank((Box("Align all, truncated", words),), takes_c=True)]
    tiny = "subnormals are kept" if rule.rdna4 or out == "fp16" else "tiny results become +0"
    words = (tiny, "the lower half is dropped") if out == "bf16" else (tiny,)
    ends = [Rank((Box("Add"),)), Rank((Box("Round by RNE"),)), Rank((Box(f"D: {out}", words),))]
    return [operands, multiply, *align, *ends]

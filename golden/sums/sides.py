"""The text of the functions ``left`` and ``right``, which decode the operands of matrices."""

from vitruvian.golden.sums import decode, quick
from vitruvian.golden.sums.align import how_to_add
from vitruvian.golden.sums.decode import GROUP, SPECIAL, ZERO, function, indented
from vitruvian.golden.sums.rule import CodeFacts, Facts
from vitruvian.golden.sums.strips import codes

_INT16 = 1 << 15


def number_type(f: Facts) -> str:
    """Return the type of the decoded operands."""
    if f.is_grouped:
        sizes = [unit_of(code)[0] for code in (f.a, f.b)]
        return "int16" if GROUP * sizes[0] * sizes[1] < _INT16 else "int32"
    if quick.computes(f):
        return "float32"
    wide = how_to_add(f) in ("bounded", "odd", "long")
    return "float32" if f.narrow and not wide and not f.slices else "float64"


def unit_of(code: CodeFacts) -> tuple[int, float]:
    """Return the largest number of a format in units of its least one, and 1 / unit."""
    largest = ((2 << code.fraction_bits) - 1) << ((1 << code.exponent_bits) - 2)
    return largest, 2.0 ** (code.fraction_bits - code.emin)


def slice_masks(f: Facts, side: int) -> list[int]:
    """Return the distinct masks of the slices of an operand."""
    return sorted({pair[side] for pair in f.slices or ()})


def plane_count(f: Facts, side: int) -> int:
    """Return the number of arrays of an operand: its slices and, for special sums, the whole."""
    return len(slice_masks(f, side)) + 1


def operands(f: Facts) -> list[str]:
    """Return the functions ``left`` and ``right``, which decode the operands."""
    if f.a == f.b and f.slices is None and f.scale is None:
        return [_side(f, 0), "right = left\n"]
    return [_side(f, 0), _side(f, 1)]


def _side(f: Facts, side: int) -> str:
    """Return the function that decodes one operand, with an inner function for each row."""
    code, name = (f.a, f.b)[side], ("left", "right")[side]
    real, masks, planes = number_type(f), slice_masks(f, side), plane_count(f, side)
    body = ["x = np.int32(codes[i])", *decode.operand(code, f, "x", "u", "e")]
    if f.is_grouped:
        unit = unit_of(code)[1]
        value = f"np.{real}(np.int32(u).view(np.float32) * np.float32({unit!r}))"
        body = ["x = np.int32(codes[i])", *decode.fp32_bits(code, "x", "u"), f"v0[i] = {value}"]
    else:
        fraction = (f.convert or code).fraction_bits
        for plane, mask in enumerate(masks):
            body.append(f"v{plane}[i] = {decode.part('u', mask, fraction, real)}")
        body += [
            f"v{planes - 1}[i] = np.{real}(np.int32(u).view(np.float32))",
            "exponents[i] = np.int16(e)",
        ]
    views = [f"v{plane}" for plane in range(planes)]
    head = f"{name}_row({', '.join(['codes', 'exponents', *views])})"
    text = function(head, ["for i in range(codes.size):", *indented(body)])
    if side == 0:
        rows = [f"values[r, {p} * n : {p + 1} * n]" for p in range(planes)]
        shape = f"(m, {planes} * n)"
    else:
        rows = [f"values[{p} * m + r]" for p in range(planes)]
        shape = f"({planes} * m, n)"
    call = f"{name}_row(codes[r], exponents[r], {', '.join(rows)})"
    results = [f"types.{real}[:, ::1]", "types.int16[:, ::1]"]
    kinds, arguments, returned = [codes(code.storage_bits)], "codes", "values, exponents"
    body = [
        "m, n = codes.shape",
        f"values, exponents = np.empty({shape}, np.{real}), np.empty((m, n), np.int16)",
        "for r in range(m):",
        f"    {call}",
    ]
    if f.scale is not None:
        kinds, arguments = [*kinds, codes(8)], "codes, scales"
        scaling, more = _scaling(f, side)
        text += scaling
        body += more
        if f.is_grouped:
            results += ["types.float64[:, ::1]", "types.uint16[:, ::1]"]
            returned = "values, shift, factor, there"
    kind = f"types.Tuple(({', '.join(results)}))({', '.join(kinds)})"
    lines = [
        f"@numba.njit({kind}, cache=True, nogil=True, error_model='numpy')",
        f"def {name}({arguments}):",
        *indented([*body, f"return {returned}"]),
        "",
    ]
    return text + "\n".join(lines)


def _scaling(f: Facts, side: int) -> tuple[str, list[str]]:
    """Return a function, and statements of ``left`` or ``right``, that apply the scales."""
    assert f.scale is not None and f.block is not None
    name = ("left", "right")[side]
    one = ["x = np.int32(codes[i])", *decode.scale(f.scale, "x", "v", "e")]
    one += ["factor[i] = v", "shift[i] = np.int16(e)"]
    head = f"{name}_scales(codes, factor, shift)"
    text = function(head, ["for i in range(codes.size):", *indented(one)])
    body = [
        "h, w = scales.shape",
        "factor, shift = np.empty((h, w), np.float64), np.empty((h, w), np.int16)",
        "for r in range(h):",
        f"    {name}_scales(scales[r], factor[r], shift[r])",
    ]
    if f.is_grouped:
        groups = f.block // GROUP
        if side == 0:
            shape, at, places = f"(m, {groups} * w)", f"r, g // {groups}", f"r, {GROUP} * g + k"
        else:
            shape, at, places = f"({groups} * h, n)", f"g // {groups}, r", f"{GROUP} * g + k, r"
        whole = ("r, g", "g, r")[side]
        body += [
            f"factors, shifts = np.empty({shape}, np.float64), np.empty({shape}, np.int16)",
            f"there = np.zeros({shape}, np.uint16)",
            f"for r in range({('m', 'n')[side]}):",
            f"    for g in range({('factors.shape[1]', 'factors.shape[0]')[side]}):",
            f"        factors[{whole}], shifts[{whole}] = factor[{at}], shift[{at}]",
            "        marks = np.uint16(0)",
            f"        for k in range({GROUP}):",
            f"            marks |= np.uint16(np.uint16(values[{places}] != 0) << k)",
            f"        there[{whole}] = marks",
            "factor, shift = factors, shifts",
        ]
        return text, body
    at = (f"r, k // {f.block}", f"r // {f.block}, k")[side]
    body += [
        "for r in range(m):",
        "    for k in range(n):",
        f"        values[r, k] *= factor[{at}]",
        f"        e, s = exponents[r, k], shift[{at}]",
        f"        e = np.int16({ZERO}) if min(e, s) == {ZERO} else np.int16(e + s)",
        f"        special = max(exponents[r, k], s) == {SPECIAL}",
        f"        exponents[r, k] = np.int16({SPECIAL}) if special else e",
    ]
    return text, body

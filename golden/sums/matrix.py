"""The text of a module that computes matrices: D = C + A·B in steps of K terms.

Operands are decoded once. The sums then go along rows of D; a stage of a strip does for its columns
what ``golden.sums.rows`` does for rows.
"""

from vitruvian.golden.sums import align, quick, result
from vitruvian.golden.sums.align import how_to_add
from vitruvian.golden.sums.columns import stages
from vitruvian.golden.sums.rows import HEAD
from vitruvian.golden.sums.rule import Facts
from vitruvian.golden.sums.sides import number_type, operands, plane_count, slice_masks
from vitruvian.golden.sums.strips import STRIP, driver


def source(f: Facts, title: str) -> str:
    """Return the text of the module of a rule that ``rows.computes`` accepts.

    The module has three functions. ``left`` and ``right`` return arrays of the decoded operands,
    with M rows of those of A, and ``rows`` computes D from any of these rows.
    """
    parts = [
        HEAD.format(title=title.replace('"', "'").replace("\\", "/")),
        result.HELPERS,
        result.addends(f),
        result.codes(f),
        result.rounding(f),
        result.settled(f),
        result.join(f),
        *operands(f),
        *(quick.stages(f) if quick.computes(f) else stages(f)),
        _driver(f),
    ]
    return "\n".join(part for part in parts if part)


def _driver(f: Facts) -> str:
    """Return the function ``rows``, which computes rows of D."""
    real, grouped = number_type(f), f.is_grouped
    operand = [f"types.{real}[:, ::1]", "types.int16[:, ::1]"]
    names = ["values", "exponents"]
    if grouped:
        operand += ["types.float64[:, ::1]", "types.uint16[:, ::1]"]
        names += ["factor", "there"]
    arguments = [f"{name}_{side}" for side in ("left", "right") for name in names]
    top = "int16" if not f.leading else {"float64": "int64", "float32": "int32"}[real]
    arrays = [
        f"y, w = np.empty({STRIP}, np.float32), np.empty({STRIP}, np.float32)",
        f"top0, top1 = np.empty({STRIP}, np.{top}), np.empty({STRIP}, np.{top})",
        f"high = np.empty({STRIP}, np.{top})",
        f"emax, part = np.empty({STRIP}, np.int32), np.empty({STRIP}, np.int32)",
        f"scale = np.empty({STRIP}, np.{'float64' if grouped else real})",
        f"total, low = np.empty({STRIP}, np.float64), np.empty({STRIP}, np.uint16)",
        f"numbers, rest = np.empty({f.k}, np.float64), np.empty({STRIP}, np.int32)",
        f"sums = np.empty(({f.summed if grouped else 1}, {STRIP}), np.{real})",
    ]
    step = str(f.summed if grouped else f.k)
    return driver(
        f.c, [*operand, *operand], arguments, "float32", step, arrays, _step(f), _views(f)
    )


def _views(f: Facts) -> list[str]:
    """Return statements that name the arrays of B."""
    if f.is_grouped:
        return []
    parts = range(plane_count(f, 1))
    return [f"right{p} = values_right[{p} * terms : {p + 1} * terms]" for p in parts]


def _step(f: Facts) -> list[str]:
    """Return the statements of one step for one row ``i`` of a strip."""
    if quick.computes(f):
        return quick.step(f)
    late = f.accumulate == "late"
    given = "w" if late else "own"
    lines = align.first_addend(f, "own")
    if not f.is_grouped:
        parts = range(plane_count(f, 0))
        lines += [f"left{p} = values_left[i, {p} * terms : {p + 1} * terms]" for p in parts]
    whole = f"left{plane_count(f, 0) - 1}, right{plane_count(f, 1) - 1}"
    end = [
        f"finish(emax, {given}, total, scale, y, n)",
        "if special:",
        f"    specials({whole}, sums, first, start, {given}, emax, y, n, 0)",
        "for r in range(n):",
        f"    {given}[r] = y[r]",
    ]
    if how_to_add(f) == "bounded":
        exponents = "exponents_left[i], exponents_right, first, start, top0, low, n"
        if not align.is_pair(f):
            lines += [f"largest({exponents})", f"begin(top0, low, {given}, emax, scale, n)"]
        lines += [
            f"add({whole}, first, start, {given}, total, n)",
            f"close({whole}, first, start, {given}, total, scale, part, numbers, emax, y, n)",
            "for r in range(n):",
            f"    {given}[r] = y[r]",
        ]
    elif f.is_grouped:
        exponents = "exponents_left[i], exponents_right, there_left[i], there_right"
        factors = "factor_left[i], factor_right, first, start"
        end[2] = f"    specials({factors.replace(', first, start', '')}, sums, first, start, "
        end[2] += f"{given}, emax, y, n, 0)"
        lines += [
            f"largest({exponents}, first, start, top0, n)",
            f"special = begin(top0, {given}, emax, scale, total, n)",
            f"add(values_left[i], values_right, {factors}, scale, sums, total, n)",
            *end,
        ]
    elif f.accumulate == "aligned":
        lanes = range(len(f.lane_terms))
        operands = "exponents_left[i], exponents_right, first, start"
        lines += [f"largest{lane}({operands}, top{lane}, n)" for lane in lanes]
        if len(lanes) == 2:
            lines += ["for r in range(n):", "    high[r] = max(top0[r], top1[r])"]
        high = "high" if len(lanes) == 2 else "top0"
        lines += [
            f"special = begin({high}, {given}, emax, scale, total, n)",
            "for r in range(n):",
            "    total[r] = 0.0",
        ]
        for lane in lanes:
            lines.append(
                f"lane{lane}({whole}, first, start, top{lane}, emax, scale, part, total, n)"
            )
        lines += end
    else:
        masks = [slice_masks(f, side) for side in (0, 1)]
        pairs = [(masks[0].index(a), masks[1].index(b)) for a, b in f.slices or ()] or [(0, 0)]
        operands = whole if f.leading else "exponents_left[i], exponents_right"
        for lane in range(len(f.lane_terms)):
            end[2] = end[2].replace("n, 0)", f"n, {2 * lane})")
            lines += [
                f"largest{lane}({operands}, first, start, top0, n)",
                f"special = begin(top0, {given}, emax, scale, total, n)",
            ]
            for p, q in pairs:
                lines.append(f"add{lane}(left{p}, right{q}, first, start, scale, part, total, n)")
            lines += end  # the first sum is the C of the second
    if late:
        lines += [f"join({given}, own, n)", "for r in range(n):", f"    own[r] = {given}[r]"]
    return lines

"""Simplification of the statements of processes."""

from vitruvian.flows.verilog.netlist.fold import is_constant
from vitruvian.flows.verilog.netlist.rtlil import Body, Chunk, RtlilCase, Sig, Switch


def retargeted(body: Body, name: str) -> Body:
    """Return the statements with the wire ``name`` as their target."""
    result: Body = []
    for item in body:
        if isinstance(item, Switch):
            cases = [RtlilCase(case.patterns, retargeted(case.body, name)) for case in item.cases]
            result.append(Switch(item.select, cases))
        else:
            result.append((tuple(Chunk(name, c.low, c.width) for c in item[0]), item[1]))
    return result


def tidied(body: Body, old: str = "") -> Body:
    """Return shorter statements with the same effect.

    Parameters
    ----------
    body : list
        Statements of a process with one target.
    old : str
        A register whose next value the process computes: it need not be assigned to itself.
    """
    result: Body = []
    for item in body:
        if not isinstance(item, Switch):
            _assign(result, item)
            continue
        if is_constant(item.select):
            # A constant selects a case once and for all.
            for inner in tidied(_chosen(item), old):
                _append(result, inner)
            continue
        cases = [RtlilCase(case.patterns, tidied(case.body, old)) for case in item.cases]
        # The last cases have no statements, so that no case at all does the same; one in the middle
        # must stay, as it keeps the later ones from matching.
        while cases and not cases[-1].body:
            cases.pop()
        if cases:
            _append(result, Switch(item.select, cases))
    if not old:
        return result
    return [item for item in result if isinstance(item, Switch) or not _same(item, old)]


def _same(item: tuple[Sig, Sig], old: str) -> bool:
    """Return whether a statement assigns a register to itself."""
    return item[1] == tuple(Chunk(old, chunk.low, chunk.width) for chunk in item[0])


def _append(result: Body, item: tuple[Sig, Sig] | Switch) -> None:
    last = result[-1] if result else None
    if not isinstance(item, Switch):
        _assign(result, item)
    elif isinstance(last, Switch) and _shape(last)[:2] == _shape(item)[:2]:
        cases = []
        # Two switches in a row with the same conditions are one.
        for one, two in zip(last.cases, item.cases, strict=True):
            joint: Body = list(one.body)
            for inner in two.body:
                _append(joint, inner)
            cases.append(RtlilCase(one.patterns, joint))
        result[-1] = Switch(last.select, cases)
    else:
        result.append(item)


def _assign(result: Body, item: tuple[Sig, Sig]) -> None:
    """Append an assignment in place of those just before it that it overwrites."""
    if not item[0]:
        return
    (new,) = item[0]
    while result and not isinstance(result[-1], Switch):
        (chunk,) = result[-1][0]
        covered = new.low <= chunk.low and chunk.low + chunk.width <= new.low + new.width
        # The older assignment still has bits of its own.
        if chunk.name != new.name or not covered:
            break
        result.pop()
    result.append(item)


def _chosen(switch: Switch) -> Body:
    """Return the statements that a constant selects."""
    value, shift = 0, 0
    for _, bits, width in switch.select:
        value |= bits << shift
        shift += width
    text = f"{value:0{shift}b}" if shift else ""
    for case in switch.cases:
        for pattern in case.patterns or [text]:
            if all(p in ("-", t) for p, t in zip(pattern, text, strict=True)):
                return case.body
    return []


def _shape(switch: Switch) -> tuple[object, ...]:
    """Return a key that is equal for switches whose cases can be joined."""
    return switch.select, tuple(tuple(case.patterns) for case in switch.cases)


def _skeleton(body: Body) -> tuple[object, ...]:
    """Return the conditions of statements without the assignments."""
    parts: list[object] = []
    for item in body:
        if isinstance(item, Switch):
            inner = tuple(_skeleton(case.body) for case in item.cases)
            parts.append((*_shape(item), inner))
        elif not parts or parts[-1] != "assign":
            parts.append("assign")
    return tuple(parts)


def grouped(steps: dict[str, Body], clocks: dict[str, str]) -> list[tuple[str, Body]]:
    """Return (clock, statements) with registers of equal conditions in one list of statements.

    Parameters
    ----------
    steps : dict of str to list
        Register -> the statements that set it.
    clocks : dict of str to str
        Register -> its clock.
    """
    groups: dict[object, list[Body]] = {}
    for name, body in steps.items():
        groups.setdefault((clocks[name], _skeleton(body)), []).append(body)
    return [(str(key[0]), _merged(bodies)) for key, bodies in groups.items()]  # type: ignore[index]


def _merged(bodies: list[Body]) -> Body:
    """Return the statements of all bodies, which have equal conditions."""
    result: Body = []
    # The next statement of each body.
    positions = [0] * len(bodies)
    while True:
        for number, body in enumerate(bodies):
            while positions[number] < len(body) and not isinstance(body[positions[number]], Switch):
                result.append(body[positions[number]])
                positions[number] += 1
        rest = [body[at] for at, body in zip(positions, bodies, strict=True) if at < len(body)]
        switches = [item for item in rest if isinstance(item, Switch)]
        if not switches:
            return result
        cases = [
            RtlilCase(case.patterns, _merged([switch.cases[index].body for switch in switches]))
            for index, case in enumerate(switches[0].cases)
        ]
        result.append(Switch(switches[0].select, cases))
        positions = [at + 1 for at in positions]

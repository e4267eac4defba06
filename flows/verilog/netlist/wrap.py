"""Break long statements of Verilog at commas and operators, the outermost ones first."""

import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

#: Characters of the longest line.
WIDTH = 100
_OPERATORS = frozenset("& | ^ + - * << >> >>> == != < <= > >= ? :".split())
_ASSIGNMENT = re.compile(r" (?:<?=)(?= )")
_CLOSING = {"(": ")", "{": "}", "[": "]"}


@dataclass
class _Group:
    """Brackets and the items in them."""

    opening: str
    items: "list[_Item]" = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.opening}{_flat(self.items)}{_CLOSING[self.opening]}"


#: Text without a space outside brackets.
_Item = list["str | _Group"]


def comment(text: str, indent: str = "  ") -> list[str]:
    """Return the lines of a comment; there is none without a text."""
    return [f"{indent}// {line}" for line in textwrap.wrap(text, WIDTH - len(indent) - 3)]


def fitted(line: str) -> list[str]:
    """Return the lines of a line of a module; a comment behind a long statement precedes it."""
    code, mark, words = line.partition("  // ")
    if len(line) <= WIDTH or (not code.strip() and mark):
        return [line]
    return [*(comment(words) if mark else []), *wrapped(code)]


def spaced(lines: list[str]) -> list[str]:
    """Return the lines of a module with an empty line before and behind each block.

    A block is an ``always`` or ``initial`` block, with the declaration of the net that it computes
    without a clock, or an instance with a line for each port, with the nets that it drives.
    """
    result: list[str] = []
    behind = False
    for index, line in enumerate(lines):
        opens = line.startswith(("  always @(", "  initial"))
        if not opens and line.startswith("  reg ") and index + 1 < len(lines):
            opens = lines[index + 1].startswith("  always @*")
        elif line.startswith("  always @*"):
            opens = not lines[index - 1].startswith("  reg ")
        above = result[-1] if result else ""
        if line and above and (behind or (opens and not above.startswith("  //"))):
            result.append("")
        behind = line in ("  end", "  );")
        result.append(line)
    return result


def wrapped(line: str, width: int = WIDTH) -> list[str]:
    """Return the lines into which a statement is broken.

    Parameters
    ----------
    line : str
        A statement, or the first line of one such as ``if (…) begin``, without a comment.
    width : int
        Characters of the longest line. Only a single word that is longer stays longer.
    """
    if len(line) <= width:
        return [line]
    indent = len(line) - len(line.lstrip())
    place = _assignment(line)
    if place is None:
        return list(_block(_parsed(line.strip()), indent, width))
    head, tail = line[:place], _parsed(line[place:].strip())
    heads = [head] if len(head) <= width else list(_block(_parsed(head.strip()), indent, width))
    # A value in brackets opens them behind the assignment; anything else begins a line.
    if len(tail) == 1 and _largest(tail[0]) is not None:
        last = heads.pop()
        room = width - len(last) + len(last.lstrip()) - 1
        first, *rest = _broken(tail[0], indent, room)
        if len(last) + 1 + len(first.strip()) <= width:
            return [*heads, f"{last} {first.strip()}", *rest]
        heads.append(last)
    return [*heads, *_lines(tail, indent + 2, width)]


def _assignment(line: str) -> int | None:
    """Return the place behind the first assignment outside brackets, or None."""
    depth, previous = 0, 0
    for match in _ASSIGNMENT.finditer(line):
        text = line[previous : match.start()]
        depth += sum(map(text.count, "({[")) - sum(map(text.count, ")}]"))
        previous = match.start()
        if not depth:
            return match.end()
    return None


def _parsed(text: str) -> list[_Item]:
    """Return the items of a text."""
    stack: list[tuple[str, list[_Item]]] = [("", [[]])]
    for part in re.findall(r"[({\[]|[)}\]]|\s+|[^(){}\[\]\s]+", text):
        items = stack[-1][1]
        if part in _CLOSING:
            stack.append((part, [[]]))
        elif part in ")}]":
            opening, inner = stack.pop()
            stack[-1][1][-1].append(_Group(opening, inner))
        elif part.isspace():
            items.append([])
        else:
            items[-1].append(part)
    return stack[0][1]


def _flat(items: list[_Item]) -> str:
    return " ".join("".join(map(str, item)) for item in items)


def _lines(items: list[_Item], indent: int, width: int) -> Iterator[str]:
    """Yield the lines of items that begin a line."""
    text = " " * indent + _flat(items)
    if len(text) <= width:
        yield text
        return
    elements = _split(items, lambda item: _ends(item, ","))
    if len(elements) > 1:
        yield from _filled(elements, indent, width)
        return
    # A choice is broken at its colons, and then at its question marks, before anything else.
    for operators in (frozenset(":"), frozenset("?"), _OPERATORS):
        parts = list(_terms(items, operators))
        if len(parts) > 1:
            break
    else:
        yield from _block(items, indent, width)
        return
    for part in parts:
        yield from _lines(part, indent, width)


def _ends(item: _Item, text: str) -> bool:
    return bool(item) and isinstance(item[-1], str) and item[-1].endswith(text)


def _split(items: list[_Item], last: Callable[[_Item], bool]) -> list[list[_Item]]:
    """Return runs of items, each up to an item for which ``last`` is true."""
    runs: list[list[_Item]] = [[]]
    for item in items:
        runs[-1].append(item)
        if last(item):
            runs.append([])
    return [run for run in runs if run]


def _terms(items: list[_Item], operators: frozenset[str]) -> Iterator[list[_Item]]:
    """Yield the operands of some operators, each with the operator in front of it."""
    part: list[_Item] = []
    for item in items:
        if part and len(item) == 1 and isinstance(item[0], str) and item[0] in operators:
            yield part
            part = []
        part.append(item)
    yield part


def _filled(elements: list[list[_Item]], indent: int, width: int) -> Iterator[str]:
    """Yield lines with as many elements of a list as there is room for."""
    space = line = " " * indent
    for element in elements:
        text = _flat(element)
        if len(line) + 1 + len(text) <= width and line.strip():
            line = f"{line} {text}"
            continue
        if line.strip():
            yield line
        line = space + text
        if len(line) > width:
            *broken, line = _lines(element, indent, width)
            yield from broken
    if line.strip():
        yield line


def _block(items: list[_Item], indent: int, width: int) -> Iterator[str]:
    """Yield the lines of items whose largest brackets are broken, if they are too long."""
    text = " " * indent + _flat(items)
    sizes = [len(str(_largest(item) or "")) for item in items]
    if len(text) <= width or not any(sizes):
        yield text
        return
    index = sizes.index(max(sizes))
    before, after = _flat(items[:index]), _flat(items[index + 1 :])
    first, *rest = _broken(items[index], indent, width)
    yield f"{' ' * indent}{before} {first.strip()}" if before else first
    yield from (rest[:-1] if after else rest)
    if after:
        yield f"{rest[-1]} {after}"


def _largest(item: _Item) -> _Group | None:
    groups = [part for part in item if isinstance(part, _Group)]
    return max(groups, key=lambda group: len(str(group)), default=None)


def _broken(item: _Item, indent: int, width: int) -> list[str]:
    """Return the lines of one item that is too long: its largest brackets on lines of their own."""
    group = _largest(item)
    if group is None:
        return [" " * indent + "".join(map(str, item))]
    index = next(i for i, part in enumerate(item) if part is group)
    before, after = ("".join(map(str, part)) for part in (item[:index], item[index + 1 :]))
    inner = _lines(group.items, indent + 2, width)
    space = " " * indent
    return [f"{space}{before}{group.opening}", *inner, f"{space}{_CLOSING[group.opening]}{after}"]

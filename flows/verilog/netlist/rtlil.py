"""The part of RTLIL that Amaranth emits, as Python objects.

A value is a sequence of chunks, the least significant first. A chunk is a range of bits of a wire,
or a constant.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple


class Chunk(NamedTuple):
    """The bits ``[low +: width]`` of wire ``name``, or the constant ``low`` if it has no name."""

    name: str
    low: int
    width: int


Sig = tuple[Chunk, ...]


@dataclass
class Wire:
    """A wire; ``way`` is empty, ``input`` or ``output``, and ``init`` is None without a value.

    ``src`` is the place in the source that makes it, or empty; so it is for cells and modules.
    ``codes`` has the names of its values if they are an enumeration, whose name is ``kind``.
    """

    name: str
    width: int
    signed: bool = False
    way: str = ""
    init: int | None = None
    keep: bool = False
    src: str = ""
    kind: str = ""
    codes: dict[int, str] = field(default_factory=dict)

    @property
    def named(self) -> bool:
        """True if the source gives this wire its name."""
        return not self.name.startswith("$")

    @property
    def whole(self) -> Sig:
        """The value of all its bits."""
        return (Chunk(self.name, 0, self.width),) if self.width else ()


@dataclass
class RtlilCell:
    """An operator, register, memory port or instance of a module."""

    kind: str
    name: str
    numbers: dict[str, int | str] = field(default_factory=dict)
    ports: dict[str, Sig] = field(default_factory=dict)
    src: str = ""


@dataclass
class RtlilCase:
    """The statements of a case; ``patterns`` is empty for the default."""

    patterns: list[str]
    body: "list[tuple[Sig, Sig] | Switch]" = field(default_factory=list)


@dataclass
class Switch:
    """A choice by the value of ``select``; the first case that matches applies."""

    select: Sig
    cases: list[RtlilCase] = field(default_factory=list)


Body = list[tuple[Sig, Sig] | Switch]


@dataclass
class Process:
    """Assignments to a wire, of which the last that applies wins."""

    body: Body = field(default_factory=list)


@dataclass
class RtlilModule:
    """A module of RTLIL; one that is not of the source has a title."""

    name: str
    wires: dict[str, Wire] = field(default_factory=dict)
    cells: list[RtlilCell] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    connects: list[tuple[Sig, Sig]] = field(default_factory=list)
    memories: dict[str, tuple[int, int]] = field(default_factory=dict)
    #: Memories with the attribute no_rw_check: a read in the cycle of a write finds anything.
    unchecked: set[str] = field(default_factory=set)
    src: str = ""
    title: str = ""


def width_of(sig: Sig) -> int:
    """Return the number of bits of a value."""
    return sum(chunk.width for chunk in sig)


def joined(chunks: Iterator[Chunk] | Sig) -> Sig:
    """Return a value in which neighbouring chunks that continue each other are one chunk."""
    result: list[Chunk] = []
    for chunk in chunks:
        if not chunk.width:
            continue
        last = result[-1] if result else None
        if last and last.name == chunk.name:
            if not chunk.name:
                # For a constant, ``low`` is its value.
                value = last.low | chunk.low << last.width
                result[-1] = Chunk("", value, last.width + chunk.width)
                continue
            if last.low + last.width == chunk.low:
                result[-1] = Chunk(last.name, last.low, last.width + chunk.width)
                continue
        result.append(chunk)
    return tuple(result)


def cut(sig: Sig, low: int, width: int) -> Sig:
    """Return the bits ``[low +: width]`` of a value."""
    chunks, begin = [], 0
    for name, first, size in sig:
        start, stop = max(low - begin, 0), min(low + width - begin, size)
        if start < stop:
            if name:
                chunks.append(Chunk(name, first + start, stop - start))
            else:
                chunks.append(Chunk("", first >> start & (1 << stop - start) - 1, stop - start))
        begin += size
    return tuple(chunks)


#: Attribute of a wire that names one of its values; the value follows in binary.
_MEMBER = "\\enum_value_"
# A name (with its escape), a brace, a range of bits, or a constant.
_TOKEN = re.compile(r"\\\S+|\{|\}|\[\d+(?::\d+)?\]|[^\s{}\[\]]+")


def _value(text: str, wires: dict[str, Wire]) -> Sig:
    chunks: list[Chunk] = []
    for token in _TOKEN.findall(text):
        if token in "{}":
            continue
        if token[0] == "[":
            high, _, low = token[1:-1].partition(":")
            # A range follows the wire that it cuts.
            name = chunks.pop().name
            chunks.append(Chunk(name, int(low or high), int(high) - int(low or high) + 1))
        elif token[0] in "\\$":
            name = token.removeprefix("\\")
            chunks.append(Chunk(name, 0, wires[name].width))
        else:
            width, _, bits = token.partition("'")
            # An undefined bit may have any value.
            chunks.append(Chunk("", int(bits.replace("x", "0"), 2) if bits else 0, int(width)))
    # A concatenation has its highest part first.
    return joined(tuple(chunks if "{" not in text else reversed(chunks)))


def _number(text: str) -> int | str:
    if text.startswith('"'):
        return text[1:-1].replace("\\\\", "\\")
    width, mark, bits = text.partition("'")
    if not mark:
        return int(width)
    return int(bits.replace("x", "0") or "0", 2)


def _body(lines: Iterator[list[str]], wires: dict[str, Wire]) -> Iterator[tuple[Sig, Sig] | Switch]:
    """Yield statements up to the line that ends them."""
    for word, rest in lines:
        if word == "assign":
            yield _assignment(rest, wires)
        elif word == "switch":
            yield _switch(_value(rest, wires), lines, wires)
        elif word == "end":
            return


def _assignment(text: str, wires: dict[str, Wire]) -> tuple[Sig, Sig]:
    target, rest = re.match(r"(\S+(?: \[\d+(?::\d+)?\])?) (.+)", text).groups()  # type: ignore
    return _value(target, wires), _value(rest, wires)


def _switch(select: Sig, lines: Iterator[list[str]], wires: dict[str, Wire]) -> Switch:
    switch = Switch(select)
    # Bodies of cases nest; each list below is the place where statements go.
    for word, rest in lines:
        if word == "case":
            patterns = [p.partition("'")[2] for p in rest.split(", ")] if rest else []
            switch.cases.append(RtlilCase(patterns))
        elif word == "assign":
            switch.cases[-1].body.append(_assignment(rest, wires))
        elif word == "switch":
            switch.cases[-1].body.append(_switch(_value(rest, wires), lines, wires))
        elif word == "end":
            break
    return switch


def parse(text: str) -> dict[str, RtlilModule]:
    """Return the modules of an RTLIL text by name.

    Parameters
    ----------
    text : str
        RTLIL as Amaranth writes it.
    """
    modules: dict[str, RtlilModule] = {}
    lines = ((line.strip().split(None, 1) + [""])[:2] for line in text.splitlines() if line.strip())
    module, attributes = RtlilModule(""), {}
    for word, rest in lines:
        if word == "module":
            name = rest.removeprefix("\\")
            module = modules.setdefault(name, RtlilModule(name, src=_source(attributes)))
        elif word == "attribute":
            name, value = rest.split(None, 1)
            attributes[name] = value
            continue
        elif word == "wire":
            wire = _wire(rest.split(), attributes)
            module.wires[wire.name] = wire
        elif word == "memory":
            words = rest.split()
            name = words[-1].removeprefix("\\")
            module.memories[name] = (int(words[1]), int(words[3]))
            if "\\no_rw_check" in attributes:
                module.unchecked.add(name)
        elif word == "connect":
            target, source = rest.split(None, 1)
            module.connects.append((_value(target, module.wires), _value(source, module.wires)))
        elif word == "cell":
            kind, name = rest.split()
            cell = RtlilCell(
                kind.removeprefix("\\"), name.removeprefix("\\"), src=_source(attributes)
            )
            module.cells.append(cell)
            # The same iterator: these are the lines up to the cell's end.
            for inner, more in lines:
                if inner == "end":
                    break
                name, value = more.split(None, 1)
                if inner == "connect":
                    cell.ports[name[1:]] = _value(value, module.wires)
                else:
                    cell.numbers[name[1:]] = _number(value.removeprefix("signed "))
        elif word == "process":
            module.processes.append(Process(list(_body(lines, module.wires))))
        # Attributes belong to the next object only.
        attributes = {}
    return modules


def _wire(words: list[str], attributes: dict[str, str]) -> Wire:
    way = next((word for word in words if word in ("input", "output")), "")
    # A register without a reset value has no such attribute.
    init = attributes.get("\\init")
    return Wire(
        name=words[-1].removeprefix("\\"),
        width=int(words[words.index("width") + 1]),
        signed="signed" in words,
        way=way,
        init=None if init is None else int(init.partition("'")[2] or "0", 2),
        keep="\\keep" in attributes,
        src=_source(attributes),
        kind=attributes.get("\\enum_base_type", "").strip('"'),
        codes={
            int(key.removeprefix(_MEMBER), 2): value.strip('"')
            for key, value in attributes.items()
            if key.startswith(_MEMBER)
        },
    )


def _source(attributes: dict[str, str]) -> str:
    return attributes.get("\\src", "").strip('"')

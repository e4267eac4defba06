"""The order in which the text of a module names its nets: by pipeline stage, then by part.

The *rank* of a register is the number of registers on the longest path of data from an input to it,
itself included; conditions under which a register keeps its value do not count. Registers in one
loop have the same rank. The rank of any other net is the largest one of what it reads. Stage R has
the nets of rank R.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Node:
    """A statement that drives nets from other nets.

    Attributes
    ----------
    key : hashable
        Its identity.
    makes : tuple of str
        The nets that it drives.
    reads : frozenset of str
        The nets that it reads, without those that decide when a register keeps its value.
    clocked : bool
        True if its nets are registers.
    part : hashable
        The part of the source that it belongs to.
    loose : bool
        True if its nets may be declared before it.
    """

    key: Hashable
    makes: tuple[str, ...]
    reads: frozenset[str]
    clocked: bool = False
    part: Hashable = None
    loose: bool = False


def ranks(nodes: Iterable[Node]) -> tuple[dict[str, int], set[str]]:
    """Return net -> rank, and the registers that are in a loop.

    Parameters
    ----------
    nodes : iterable of Node
        All statements of a module. Nets that none of them drives have rank 0.
    """
    drivers = {net: node for node in nodes for net in node.makes}
    found: dict[Hashable, int] = {}
    loops: set[str] = set()
    for group in _components(drivers):
        keys = {node.key for node in group}
        rank = 0
        looped = len(group) > 1
        for node in group:
            # True counts as 1: a register without data from others has rank 1.
            rank = max(rank, node.clocked)
            for net in node.reads:
                driver = drivers.get(net)
                if driver is None:
                    continue
                if driver.key in keys:
                    looped = True
                else:
                    rank = max(rank, found[driver.key] + node.clocked)
        for node in group:
            found[node.key] = rank
            if looped and node.clocked:
                loops |= set(node.makes)
    return {net: found[node.key] for net, node in drivers.items()}, loops


def _components(drivers: Mapping[str, Node]) -> Iterator[list[Node]]:
    """Yield the strongly connected sets of statements, each after those that it reads (Tarjan)."""
    index: dict[Hashable, int] = {}
    low: dict[Hashable, int] = {}
    stack: list[Node] = []
    waiting: set[Hashable] = set()

    def sources(node: Node) -> Iterator[Node]:
        return (drivers[net] for net in sorted(node.reads) if net in drivers)

    for root in drivers.values():
        if root.key in index:
            continue
        work = [(root, sources(root))]
        while work:
            node, rest = work[-1]
            if node.key not in index:
                index[node.key] = low[node.key] = len(index)
                stack.append(node)
                waiting.add(node.key)
            for source in rest:
                if source.key not in index:
                    work.append((source, sources(source)))
                    break
                if source.key in waiting:
                    low[node.key] = min(low[node.key], index[source.key])
            else:
                work.pop()
                if work:
                    above = work[-1][0].key
                    low[above] = min(low[above], low[node.key])
                if low[node.key] == index[node.key]:
                    group: list[Node] = []
                    while not group or group[-1].key != node.key:
                        group.append(stack.pop())
                        waiting.discard(group[-1].key)
                    # Tarjan's algorithm completes a component after all those that it reads, which
                    # is the order that ranks need.
                    yield group


def ordered(nodes: list[Node], known: set[str], ahead: Callable[[Node], None]) -> Iterator[Node]:
    """Yield statements so that each comes after what it reads, and parts stay together.

    Parameters
    ----------
    nodes : list of Node
        Statements, none of them clocked.
    known : set of str
        Nets that are declared already; the nets of each yielded node join them.
    ahead : callable
        Receives a statement whose nets must be declared before it, because of a loop through
        instances.
    """
    made = {net for node in nodes for net in node.makes}
    left = dict(enumerate(nodes))
    open_nets = made - known
    missing = {i: set(node.reads & open_nets) for i, node in left.items()}
    readers: dict[str, list[int]] = {}
    for i, nets in missing.items():
        for net in nets:
            readers.setdefault(net, []).append(i)
    part: Hashable = None

    def provide(nets: Iterable[str]) -> None:
        known.update(nets)
        for net in nets:
            for i in readers.get(net, ()):
                missing[i].discard(net)

    while left:
        ready = [i for i in left if not missing[i]]
        if not ready:
            # Every statement waits for another one: the nets of one of these come first.
            # A loop through an instance, for example: its nets are declared ahead of the statements
            # that read them.
            hidden = [node for node in left.values() if not known.issuperset(node.makes)]
            node = next((node for node in hidden if node.loose), hidden[0])
            ahead(node)
            provide(node.makes)
            continue
        same = [i for i in ready if left[i].part == part]
        if not same:
            part = left[_opening(ready, left, missing)].part
            same = [i for i in ready if left[i].part == part]
        for i in same:
            node = left.pop(i)
            provide(node.makes)
            yield node


def _opening(ready: list[int], left: Mapping[int, Node], missing: Mapping[int, set[str]]) -> int:
    """Return the first ready statement of a part that can be written whole, or else the first."""
    members: dict[Hashable, list[int]] = {}
    for i, node in left.items():
        members.setdefault(node.part, []).append(i)
    for i in ready:
        inside = members.pop(left[i].part, [])
        own = {net for j in inside for net in left[j].makes}
        if inside and all(missing[j] <= own for j in inside):
            return i
    return ready[0]

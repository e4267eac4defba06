"""The keys ``interlocks`` and ``posted`` of a kind of core in a chip file."""

from vitruvian.common.toml_table import TomlTable
from vitruvian.sim.davinci.isa.instruction import Unit


def read_units(table: TomlTable, key: str, units: tuple[Unit, ...]) -> tuple[Unit, ...]:
    """Return the units that a key lists, whose queues have a property; by default there is none.

    An empty list is a statement, too, so it has a source of its own.

    Parameters
    ----------
    table : TomlTable
        The table of the kind of core.
    key : str
    units : tuple of Unit
        The units of the core.

    Raises
    ------
    ChipError
        If the value is not a list of units other than S, or has no source.
    """
    if not table.has(key):
        return ()
    values = table.take(key)
    names = [unit.name for unit in units if unit != Unit.S]
    if not isinstance(values, list) or any(value not in names for value in values):
        table.fail(key, f"a list of {', '.join(names)}, or []")
    source = table.data.get("source")
    if not isinstance(source, dict) or not isinstance(source.get(key), str):
        table.fail("source", f"a table with a text for each number, also for {key}")
    return tuple(Unit[value] for value in dict.fromkeys(values))

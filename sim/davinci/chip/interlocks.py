"""The key ``interlocks`` of a kind of core in a chip file."""

from vitruvian.common.toml_table import TomlTable
from vitruvian.sim.davinci.isa.instruction import Unit


def read_interlocks(table: TomlTable, units: tuple[Unit, ...]) -> tuple[Unit, ...]:
    """Return the units whose queue interlocks dependent instructions; by default there is none.

    An empty list is a statement, too, so it has a source of its own.

    Parameters
    ----------
    table : TomlTable
        The table of the kind of core.
    units : tuple of Unit
        The units of the core.

    Raises
    ------
    ChipError
        If the value is not a list of units other than S, or has no source.
    """
    if not table.has("interlocks"):
        return ()
    values = table.take("interlocks")
    names = [unit.name for unit in units if unit != Unit.S]
    if not isinstance(values, list) or any(value not in names for value in values):
        table.fail("interlocks", f"a list of {', '.join(names)}, or []")
    source = table.data.get("source")
    if not isinstance(source, dict) or not isinstance(source.get("interlocks"), str):
        table.fail("source", "a table with a text for each number, also for interlocks")
    return tuple(Unit[value] for value in dict.fromkeys(values))

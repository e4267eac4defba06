"""The key ``vsel_from_memory`` of a kind of core in a chip file."""

from vitruvian.common.toml_table import TomlTable


def read_selection(table: TomlTable) -> bool:
    """Return True if vsel can take other bits for each repeat from memory; by default it can.

    Parameters
    ----------
    table : TomlTable
        The table of the kind of core.

    Raises
    ------
    ChipError
        If the value is not true or false, or has no source.
    """
    if not table.has("vsel_from_memory"):
        return True
    value = table.take("vsel_from_memory")
    if not isinstance(value, bool):
        table.fail("vsel_from_memory", "true or false")
    source = table.data.get("source")
    if not isinstance(source, dict) or not isinstance(source.get("vsel_from_memory"), str):
        table.fail("source", "a table with a text for each number, also for vsel_from_memory")
    return value

"""The table ``hardware`` of a chip file: how a core in hardware is built."""

from collections.abc import Mapping
from types import MappingProxyType

from vitruvian.common.toml_table import TomlTable
from vitruvian.sim.davinci.chip.hardware import Hardware
from vitruvian.sim.davinci.chip.products import BeatTiming, TileTiming

#: The largest number of words or blocks of a queue, or cycles of a latency.
_MOST = 1 << 16
#: Keys of the table and of its table ``tile``.
SETTINGS = (
    *("queue_words", "ahead", "fetch_blocks", "memory_latency", "stages"),
    *("line_blocks", "lane_blocks", "lane_passes", "ub_banks"),
)
TILE = ("m", "n", "slots", "latency", "occupied", "results", "turned_a", "turned_b")
PRODUCT = ("k", "cycles", "again", "slots")


def read_hardware(table: TomlTable | None) -> Hardware | None:
    """Return what the table describes; None if there is no table.

    Raises
    ------
    ChipError
        If a value is missing or not allowed.
    """
    if table is None:
        return None
    settings = {key: table.whole(key, high=_MOST) for key in SETTINGS}
    tile = table.table("tile")
    assert tile is not None
    sizes = {key: tile.whole(key, high=_MOST) for key in TILE}
    tile.done()
    products = {}
    for name, inner in table.tables("products").items():
        beat = {key: inner.whole(key, high=_MOST) for key in PRODUCT}
        products[name] = BeatTiming(**beat)
        inner.done()
    blocks, latencies = (_by_operation(table, key) for key in ("blocks", "latencies"))
    table.done()
    return Hardware(
        **settings,
        tile=TileTiming(**sizes),
        products=MappingProxyType(products),
        blocks=blocks,
        latencies=latencies,
    )


def _by_operation(table: TomlTable, key: str) -> Mapping[str, int]:
    """Return the numbers of a table whose keys are operations with a dtype; it may be absent."""
    inner = table.table(key, needed=False)
    if inner is None:
        return MappingProxyType({})
    names = [name for name in inner.data if name != "source"]
    found = {name: inner.whole(name, low=0, high=_MOST) for name in names}
    inner.done()
    return MappingProxyType(found)

"""The numbers of a core that its times follow from, for a chip file."""

from typing import Any

from ..vector.extension import EXTRA_GROUPS, Extra
from ..vector.operations import Format, Operation
from .config import FLAGS, CoreConfig
from .fetch import AHEAD
from .lane_results import holds_results
from .lanes import EXTRA_CONVERSIONS, EXTRA_OPS, INTEGER_OPS, INTEGERS, REDUCTIONS
from .products import products_of
from .tiles import bank_count

_FLOATS = ("fp16", "fp32")


def core_facts(config: CoreConfig) -> dict[str, dict[str, Any]]:
    """Return tables of numbers by name.

    Returns
    -------
    dict
        "buffers": bytes. "settings" and "tile": the keys of ``hardware`` and ``hardware.tile`` of a
        chip file, without the memory, and "flags". "products": those of each product of the tile.
        "blocks": cycles of a block that takes longer than its reads, by operation and dtype.
        "latencies": cycles from a block to its result, where these are not the stages of the vector
        unit.
    """
    tile, vector = config.tile, config.vector
    blocks, latencies = _extension(config)
    return {
        "buffers": config.buffers,
        "settings": {
            "queue_words": config.queue_words,
            "ahead": config.ahead,
            "fetch_blocks": AHEAD,
            "stages": vector.stages + holds_results(config),
            "lane_passes": vector.passes,
            "line_blocks": config.l1_blocks,
            "lane_blocks": config.lane_blocks,
            "ub_banks": config.ub_banks,
        },
        "flags": {"count": FLAGS},
        "units": {"fix": int(config.fix)},
        "tile": {
            "m": tile.m,
            "n": tile.n,
            "slots": tile.slot_count,
            "latency": tile.latency_cycles,
            "occupied": tile.occupied_cycles,
            # A buffered unit offers a result at most every second cycle.
            "results": 2 if tile.buffered else 1,
            # Rows of a transposed fractal that are written in a cycle.
            "turned_a": bank_count(tile.m, 2 * tile.k, config.l1_blocks),
            "turned_b": bank_count(tile.n, 2 * tile.k, config.l1_blocks),
        },
        "products": {
            product.name: {
                "k": product.terms,
                "cycles": product.cycles,
                "again": product.again,
                "slots": product.parts,
            }
            for product in products_of(tile)
        },
        "blocks": _reductions(config) | blocks,
        "latencies": latencies,
    }


def _reductions(config: CoreConfig) -> dict[str, int]:
    vector = config.vector
    return {
        f"{op} {dtype}": vector.cycles(operation, Format[dtype.upper()])
        for op, operation in REDUCTIONS.items()
        for dtype in _FLOATS
        if operation in vector.operations and operation is not Operation.SUM_PAIR
    }


def _extension(config: CoreConfig) -> tuple[dict[str, int], dict[str, int]]:
    blocks, latencies = {}, {}
    for op, extra in (*EXTRA_OPS.items(), *INTEGER_OPS.items()):
        operation = extra.operation
        if operation not in config.extension.operations:
            continue
        dtypes = INTEGERS if operation in EXTRA_GROUPS["integer"] else _FLOATS
        for dtype in (*dtypes, "int16") if operation is Extra.ABSOLUTE else dtypes:
            latency, block = config.extension.cycles(operation, wide=dtype.endswith("32"))
            # A block enters in its cycles, and its result comes so long after the last one.
            latencies[f"{op} {dtype}"] = max(latency - block + 1, 0)
            if block > 1:
                blocks[f"{op} {dtype}"] = block
    for (origin, _), operation in EXTRA_CONVERSIONS.items():
        if operation in config.extension.operations:
            latencies[f"vconv {origin}"], _ = config.extension.cycles(operation, wide=False)
    return blocks, latencies

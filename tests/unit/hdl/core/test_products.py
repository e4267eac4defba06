"""The products of a tile: those of every preset, and the tiles that no core can have."""

from dataclasses import replace

import pytest

from vitruvian.golden.core.encoding import DTYPES
from vitruvian.hdl.core import CORES
from vitruvian.hdl.core.core import Core
from vitruvian.hdl.core.products import products_of
from vitruvian.hdl.cube import CONFIGS
from vitruvian.hdl.cube.config import MatrixUnitConfig


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_every_preset_of_a_tile_has_its_products(name):
    tile = CONFIGS[name]
    products = products_of(tile)
    assert {p.dtype for p in products} == set(tile.precisions) <= set(DTYPES)
    assert {p.operation for p in products} == set(tile.operations)
    for product in products:
        assert product.nbytes == product.terms * product.element_bytes <= 2 * tile.k
        wide = product.dtype in ("fp64", "fp32c")
        own = product.dtype if wide or product.dtype == "int8" else "fp32"
        assert product.sums == {"int8": "int32"}.get(own, own)
        assert (product.sum_words, product.parts) == (1 + wide, 1 + (product.dtype == "fp32c"))
        assert product.compares == (product.operation not in ("mma", "addnorm"))
        assert (product.again == 1) <= product.compares


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_every_preset_of_a_tile_is_a_core(name):
    tile = CONFIGS[name]
    config = replace(CORES["semiring"], tile=tile)
    assert config.tile == tile
    assert config.wide_sums == bool({"fp64", "fp32c"} & set(tile.precisions))
    memory = Core(config=config).sums()
    assert (memory.wide, memory.tile_rows) == (config.wide_sums, tile.m)


def test_a_beat_of_several_steps_takes_as_many_cycles():
    cycles = {p.name: p.cycles for p in products_of(CONFIGS["m3xu"])}
    assert cycles == {"fp16": 1, "bf16": 1, "tf32": 1, "fp32": 2, "fp32c": 4}


def test_a_part_of_a_complex_sum_goes_on_before_the_other():
    again = {p.name: p.again for p in products_of(CONFIGS["m3xu"])}
    assert again["fp32c"] == again["fp32"] - 2 > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precisions": ("fp16",), "sparsity": True}, "must have no sparsity"),
        ({"precisions": ("fp16",), "output": "fp16"}, "must have sums of 32 bits, or of 64 in at"),
        ({"precisions": ("fp64",), "m": 16}, "of 64 in at most 8 rows, in beats of a power of two"),
    ],
)
def test_a_tile_without_a_product_is_refused(options, message):
    tile = MatrixUnitConfig(**{"m": 4, "n": 4, "k": 4} | options)
    with pytest.raises(ValueError, match=message):
        products_of(tile)
    with pytest.raises(ValueError, match=message):
        replace(CORES["semiring"], tile=tile)

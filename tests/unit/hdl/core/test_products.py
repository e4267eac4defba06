"""The products of a tile: those of every preset, and the tiles that no core can have."""

from dataclasses import replace

import pytest

from vitruvian.golden.core.encoding import DTYPES
from vitruvian.hdl.core import CORES
from vitruvian.hdl.core.products import products_of
from vitruvian.hdl.cube import CONFIGS
from vitruvian.hdl.cube.config import MatrixUnitConfig

#: Presets of tiles whose operands have less than the 32 bytes of a line.
_SHORT = ("tiny", "int8_8x8_dsp")


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_every_preset_of_a_tile_has_its_products(name):
    tile = CONFIGS[name]
    products = products_of(tile)
    known = {p for p in tile.precisions if p in DTYPES and tile.result_bits(p) == 32}
    assert {p.dtype for p in products} == known
    assert {p.operation for p in products} == set(tile.operations)
    for product in products:
        assert product.nbytes == product.terms * product.element_bytes <= 2 * tile.k
        assert product.sums == ("int32" if product.dtype == "int8" else "fp32")
        assert product.compares == (product.operation not in ("mma", "addnorm"))
        assert (product.again == 1) <= product.compares


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_every_preset_of_a_tile_is_a_core_if_its_operands_fill_a_line(name):
    tile = CONFIGS[name]
    if name in _SHORT:
        with pytest.raises(ValueError, match=r"k of 4, 8 or 16"):
            replace(CORES["semiring"], tile=tile)
    else:
        assert replace(CORES["semiring"], tile=tile).tile == tile


def test_a_beat_of_several_steps_takes_as_many_cycles():
    cycles = {p.name: p.cycles for p in products_of(CONFIGS["m3xu"])}
    assert cycles == {"fp16": 1, "bf16": 1, "tf32": 1, "fp32": 2}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precisions": ("fp16",), "sparsity": True}, "must have no sparsity"),
        ({"precisions": ("fp16",), "output": "fp16"}, "must have sums of 32 bits of fp16, bf16"),
        ({"precisions": ("fp64",)}, "must have sums of 32 bits of fp16, bf16, tf32, fp8, int8 or"),
    ],
)
def test_a_tile_without_a_product_is_refused(options, message):
    tile = MatrixUnitConfig(m=4, n=4, k=4, **options)
    with pytest.raises(ValueError, match=message):
        products_of(tile)
    with pytest.raises(ValueError, match=message):
        replace(CORES["semiring"], tile=tile)

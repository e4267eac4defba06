"""Every entry of the catalogue is complete, can be built, and is used by benches and documents."""

import pytest

from vitruvian.common.errors import UserError
from vitruvian.golden.fp import FORMATS
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.golden.simd2 import Op
from vitruvian.hdl.catalogue import PARTS, UNITS
from vitruvian.hdl.catalogue.semirings import OPERATIONS, operations_of
from vitruvian.hdl.catalogue.unit import Unit, Variant
from vitruvian.hdl.elaborate import only_described
from vitruvian.sim.verify.run import collect

#: Units whose component is that of another unit, which is checked and documented.
_SAME_COMPONENT = {"m3xu": "cube", "simd2": "cube"}


def _configurations(unit: Unit):
    partial = [*unit.rows(), *unit.more(), *unit.checked, *unit.simulated]
    return [unit.default(c) for c in (*partial, *unit.documented.values())]


@pytest.mark.parametrize("unit", UNITS.values(), ids=lambda unit: unit.name)
def test_every_configuration_has_a_value_for_every_option_and_can_be_built(unit: Unit):
    for c in _configurations(unit):
        assert set(c) == set(unit.options)
        only_described(unit.build(c))
        assert unit.macs(c) >= 0


@pytest.mark.parametrize("unit", UNITS.values(), ids=lambda unit: unit.name)
def test_every_unit_is_checked_and_its_ports_are_documented(unit: Unit):
    other = UNITS[_SAME_COMPONENT.get(unit.name, unit.name)]
    assert other.checked and other.documented
    assert unit.component(unit.default({}))[0] is other.component(other.default({}))[0]


def test_every_checked_component_has_rows_in_the_table_of_checks():
    rows = {check.unit.split(".")[1] for check in collect()} | {"small"}
    for unit in UNITS.values():
        for c in map(unit.default, unit.checked):
            name = unit.component(c)[0].__name__
            small = unit.name in ("add", "multiply", "compare", "minmax", "convert")
            assert small or name in rows, name


def test_every_format_and_every_preset_is_checked():
    """A new format or preset that no check covers is noticed here."""
    for name in ("add", "multiply", "compare", "minmax"):
        assert {c["format"] for c in UNITS[name].checked} >= set(FORMATS)
    conversions = {(c["from"], c["to"]) for c in UNITS["convert"].checked}
    assert {source for source, _ in conversions} >= set(FORMATS)
    # Presets that only give another name to the arithmetic of a checked one need no model.
    checked = [UNITS["dot"].default(c) for c in UNITS["dot"].checked]
    names = {c["preset"] for c in checked if c["preset"]}
    covered = {rule for name in names for rule in PRESETS[name].rules.values()}
    assert all(
        set(preset.rules.values()) & covered or preset.name in names for preset in PRESETS.values()
    )


def test_parts_are_documented_beside_a_unit():
    assert {part.package for part in PARTS} <= {unit.package for unit in UNITS.values()}


def test_a_rule_of_a_machine_chooses_the_unit():
    read = UNITS["dot"].options["rule"].read
    assert read("rvbna_bf16_n2_fp32") == "rvbna_bf16_n2_fp32"
    c = UNITS["dot"].default({"rule": "rvbna_bf16_n2_fp32"})
    assert c["preset"] is None and UNITS["dot"].macs(c) == 2
    assert Variant(UNITS["dot"], c).label == "rvbna-bf16-n2-fp32-p3"
    with pytest.raises(UserError, match="rule must be of the kind dot, not 'amx_tdpbssd'"):
        read("amx_tdpbssd")
    with pytest.raises(UserError, match="that the hardware has, not 'cdna1_mfma_bf16_fp32': input"):
        read("cdna1_mfma_bf16_fp32")
    with pytest.raises(UserError, match="rule must be given without k, which it determines"):
        UNITS["dot"].default({"rule": "rvbna_bf16_n2_fp32", "k": 4})


def test_names_of_operations():
    assert operations_of("all") == tuple(Op)
    assert operations_of("maxmul-mma") == (Op.MAXMUL, Op.MMA)
    assert OPERATIONS.values("mma,minplus-maxplus") == ["mma", "minplus-maxplus"]
    for text in ("", "mma-mma", "mma-tea", "all-mma", "-"):
        with pytest.raises(UserError, match="operations must be all, or different ones of mma"):
            operations_of(text)

"""The unit ``machine``: its option names rows, machines or all."""

import pytest

from vitruvian.common.errors import UserError
from vitruvian.golden.machines.table import machines
from vitruvian.hdl.catalogue import UNITS
from vitruvian.hdl.catalogue.machines import rows_with_units
from vitruvian.hdl.machines import NoUnit, realise

ROW = UNITS["machine"].options["row"]


def test_a_machine_stands_for_its_rows_and_all_for_every_unit():
    cdna3 = ROW.values("cdna3")
    assert "cdna3_mfma_fp8_fp32" in cdna3
    assert {machines()[stem].machine for stem in cdna3} == {"cdna3"}
    assert ROW.values("all") == list(rows_with_units())
    assert ROW.values("mi300x_mfma_fp16_fp32,cdna3_mfma_fp16_fp32") == ["cdna3_mfma_fp16_fp32"]


def test_every_unit_is_there_once_and_builds():
    units = [repr(unit) for unit in rows_with_units().values()]
    assert len(set(units)) == len(units) > 100
    component, parameters = UNITS["machine"].component(
        {"row": "avx512_vdpbf16ps", "pipeline": None, "multiplier": "dsp"}
    )
    assert (component.__name__, parameters["k"]) == ("ChainDot", 2)
    assert parameters["multiplier"] == "dsp"


def test_a_row_without_a_unit_is_refused_in_one_line():
    def has_none(rule: object) -> bool:
        try:
            realise(rule)
        except NoUnit:
            return True
        return False

    without = [stem for stem, row in machines().items() if has_none(row.rule)]
    for stem in without[:1]:
        with pytest.raises(UserError, match=f"as {stem} has no unit"):
            ROW.values(stem)
    with pytest.raises(UserError, match="machine must be a row of the table"):
        ROW.values("zzz")

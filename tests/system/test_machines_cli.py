"""The command ``vitruvian machines``: names, reasons, and JSON on standard output."""

import json

import numpy as np
import pytest

from vitruvian import gemm, machines
from vitruvian.cli import main
from vitruvian.common.errors import UserError


@pytest.mark.parametrize(
    ("name", "machine", "rows"),
    [
        ("mi300x", "cdna3", 9),
        ("MI300X", "cdna3", 9),
        ("l40s", "ada", 12),
        ("l40s_mma", "ada", 12),
        ("h100-wgmma", "h100", 20),
        ("h100_wgmma_e4m3_fp32", "h100", 1),
    ],
)
def test_other_names_of_machines_are_taken(name, machine, rows):
    found = machines.matching(name)
    assert {row.machine for row in found} == {machine} and len(found) == rows


def test_names_that_stand_for_the_same_rows_list_them_once(capsys):
    assert main(["machines", "mi300x", "cdna3"]) == 0
    assert "9 combinations of 1 machine" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "reason"), [("mi355x", "nothing is public"), ("xmx", "nothing is public")]
)
def test_a_machine_without_a_rule_gives_its_reason(name, reason, capsys):
    assert main(["machines", name]) == 0
    out = capsys.readouterr().out
    assert reason in " ".join(out.replace("│", " ").split()) and "combinations" not in out
    x = np.ones((2, 2), np.float16)
    with pytest.raises(UserError, match=f"with a known rule, not .*: .*{reason}"):
        gemm(x, x, machine=name)
    with pytest.raises(UserError, match=f"with a known rule, not .*: .*{reason}"):
        machines.find(f"{name}_fp16_fp32")
    assert main(["machines", name, "--errors"]) == 2
    assert f"NAME must have a known rule, not {name}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        ["machines"],
        ["machines", "v100"],
        ["machines", "v100_mma_fp16_fp32"],
        ["formats"],
        ["formats", "fp4e2m1"],
        ["conformance", "rvbna_bf16_n8_fp32", "--vectors", "100"],
    ],
)
def test_json_on_standard_output_comes_alone(command, capsys):
    main([*command, "--json", "-"])
    captured = capsys.readouterr()
    assert json.loads(captured.out) and "─" in captured.err

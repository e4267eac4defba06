"""Operands that tell rules apart, names of machines, and rules inferred from results."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

from tests.support.hidden_rules import hidden_rule, results_of
from vitruvian.golden.fp.spec import DotSpec
from vitruvian.golden.machines import find
from vitruvian.golden.machines.probe import Results, infer, machine_file, name, with_results
from vitruvian.golden.machines.probe.equality import equal_rules
from vitruvian.golden.machines.probe.score import Scorer
from vitruvian.golden.machines.probe.space import changed
from vitruvian.golden.machines.table import read_rows

#: Machines of every kind of rule, with the name of a parameter and the value beside it.
KINDS = [
    ("v100_mma_fp16_fp32", "window", 22),
    ("h100_mma_bf16_fp32", "emax_floor", -132),
    ("ada_mma_e4m3_fp32", "result_bits", 14),
    ("b200_mmasync_e4m3_fp32", "lanes", "together"),
    ("cdna3_mfma_fp16_fp32", "product_overflow", True),
    ("b200_nvf4_ue4m3_fp32", "window", 34),
    ("amx_tdpbssd", "signed_a", False),
    ("avx512_vdpbf16ps", "descending", False),
    ("bh_mvmul_bf16_fp32_hifi4", "phases", 3),
]


@pytest.mark.parametrize("stem", [stem for stem, _, _ in KINDS])
def test_a_machine_is_named(stem):
    machine = find(stem)
    found = name(results_of(machine.rule, machine))
    assert stem in [match.machine.stem for match in found]
    assert {match.wrong for match in found} == {0}
    assert all(equal_rules(match.machine.rule, machine.rule) for match in found)


def test_one_other_result_names_no_machine():
    machine = find("v100_mma_fp16_fp32")
    data = results_of(machine.rule, machine)
    d = data.d.copy()
    d[100] ^= 1
    found = name(with_results(data, d))
    assert [(m.machine.stem, m.wrong, m.first) for m in found] == [("v100_mma_fp16_fp32", 1, 100)]


@pytest.mark.parametrize(("stem", "parameter", "other"), KINDS)
def test_a_neighbouring_value_is_told_apart(stem, parameter, other):
    machine = find(stem)
    rule = machine.rule
    if parameter == "product_overflow":
        assert isinstance(rule, DotSpec)
        rule = rule.replace(product_overflow=False)  # fp16 products do not overflow
        wrong = rule.replace(accumulate="tree")
    else:
        wrong = changed(rule, parameter, other)
        assert wrong is not None
    assert Scorer(results_of(rule, machine)).count(wrong) > 0


def check_inferred(rule, data):
    """Check that results give a rule that is equal to theirs, and the evidence for its parameters.

    ``known`` is False: the search does not use the table of machines.
    """
    found = infer(data, known=False)
    assert found.wrong == 0
    assert equal_rules(found.rule, rule, data.terms), (found.rule, rule)
    for basis in found.basis:
        for value in basis.same[:2]:
            if basis.name != "convert" or value is None:
                same = changed(found.rule, basis.name, value)
                assert same is not None and not Scorer(data).count(same)
        if basis.row is not None:
            other = changed(found.rule, basis.name, basis.other)
            assert other is not None
            wrong = Scorer(data).differs(other)
            assert np.flatnonzero(wrong)[0] == basis.row


#: Hidden rules of the default suite: sums, a chain, integers, scales and phases.
FEW = (2, 11, 29, 33, 34, 39)


@pytest.mark.parametrize("seed", FEW)
def test_a_hidden_rule_is_inferred(seed):
    check_inferred(*hidden_rule(seed))


@pytest.mark.long
@pytest.mark.parametrize("seed", [seed for seed in range(50) if seed not in FEW])
def test_many_hidden_rules_are_inferred(seed):
    check_inferred(*hidden_rule(seed))


def test_what_cannot_be_told_is_not_determined():
    machine = find("h100_mma_fp16_fp32")
    found = infer(results_of(machine.rule, machine))
    basis = {b.name: b for b in found.basis}
    # A product of fp16 numbers is at least 2^-48, far above the floor of -133.
    assert {-132, -134, None} <= set(basis["emax_floor"].same)
    assert basis["zero"].same == ("exact",)  # no sum of such products rounds to zero
    assert basis["window"].same == () and basis["k"].same == ()
    assert isinstance(found.rule, DotSpec)
    assert found.nan_codes == (0x7FFFFFFF,) and found.rule.nan_code == 0x7FFFFFFF


def test_results_by_no_rule_have_a_closest_one():
    machine = find("amx_tdpbssd")
    data = results_of(machine.rule, machine)
    d = data.d.copy()
    d[[7, 50]] ^= 1
    found = infer(with_results(data, d))
    assert (found.rule, found.wrong, found.first, found.basis) == (machine.rule, 2, 7, ())


@pytest.mark.parametrize("stem", [stem for stem, _, _ in KINDS])
def test_a_machine_file_is_read_back(stem):
    machine = find(stem)
    data = results_of(machine.rule, machine, step=50)
    text = machine_file(machine.rule, data, machine="unknown", instruction="some")
    (row,) = read_rows(tomllib.loads(text))
    assert row.rule == machine.rule
    assert (row.input, row.input_b, row.output) == (data.input, data.input_b, str(data.output))


# ------------------------------------------------------------------ measured sets

SHARED = Path(__file__).resolve().parents[6] / "shared" / "data"
SETS = sorted(p for n in ("silicon", "silicon_fp8", "machines") for p in (SHARED / n).glob("*.npz"))


@pytest.mark.skipif(not SETS, reason="../shared/data is not there")
def test_every_set_is_named_without_its_name():
    from vitruvian.flows.probes.npz import read_npz

    wrong = []
    for path in SETS:
        plain = path.stem.split("_")[1] if path.parent.name == "silicon" else None
        for section in read_npz(path, plain)[1]:
            stem = path.stem
            if plain:
                stem = f"{stem.split('_')[0]}_mma_{plain}_{section.cases.output}"
            assert isinstance(section.cases, Results)
            matches = name(section.cases)
            names = [m.machine.stem for m in matches if not m.wrong]
            if find(stem).stem not in names:
                wrong.append((stem, names))
    assert len(SETS) >= 112 and not wrong

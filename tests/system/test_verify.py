"""The commands of verification: rows that agree, rows that must differ, and wrong arguments."""

import argparse
import dataclasses
import json
import os
import re
import shlex
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from amaranth.hdl import Cat, Const

import vitruvian.hdl.fp.core.dotcore
import vitruvian.hdl.fp.core.terms
from vitruvian.cli import build_parser, main
from vitruvian.common import workers
from vitruvian.common.cache import CacheError
from vitruvian.golden.fp import convert, fused_dot
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.hdl.fp.dot import DotProduct
from vitruvian.sim import rtl
from vitruvian.sim.bench import silicon
from vitruvian.sim.bench.fp.stimuli import CLASSES, dot_vectors
from vitruvian.sim.verify import run as verify
from vitruvian.sim.verify.compare import Result, compare

FP16 = PRESETS["ieee"].spec("fp16", "fp32", k=4)


def test_compare_names_operands_seed_and_both_sides():
    a = np.array([[1, 2], [0xFFFF, 4]], np.uint16)
    rtl = np.array([1, 2], np.uint32)
    golden = np.array([1, 3], np.uint32)
    result = compare("dot K=2", got=rtl, expected=golden, operands={"a": a}, seed=9)
    assert (result.vectors, result.mismatches) == (2, 1)
    expected = "dot K=2, vector 1 (seed 9): a = ffff 0004; RTL 00000002, golden 00000003"
    assert result.examples == (expected,)
    with pytest.raises(ValueError, match="at least one result, not"):
        compare("x", got=rtl[:0], expected=golden[:0], operands={})
    with pytest.raises(ValueError, match=r"one shape .* not \(1,\) and \(2,\)"):
        compare("x", got=rtl[:1], expected=golden, operands={})


def test_stimuli_repeat_and_reach_their_classes():
    a, b, c = dot_vectors(FP16, 7000, seed=3)
    again = dot_vectors(FP16, 7000, seed=3)
    assert all(np.array_equal(x, y) for x, y in zip((a, b, c), again, strict=True))
    assert (a.dtype, b.dtype, c.dtype) == (np.uint16, np.uint16, np.uint32)
    d = fused_dot(a, b, c, FP16)
    exponent = d >> 23 & 0xFF
    for share in (
        exponent == 0xFF,
        d & 0x7FFFFFFF == 0,
        d == 0x80000000,
        exponent < 113,
        exponent >= 254,
        d == 0x7FC00000,
    ):
        assert share.sum() >= 7000 // len(CLASSES) // 100, share.sum()
    with pytest.raises(ValueError, match="count must be at least 7, not 6"):
        dot_vectors(FP16, 6, seed=1)


def mismatches(spec, *, vectors=20_000) -> int:
    """Compile the patched component, which ``compile_unit`` would not notice."""
    model = rtl.compile(DotProduct(spec=spec))
    a, b, c = dot_vectors(spec, vectors, seed=5)
    expected = fused_dot(a, b, c, spec)
    return compare("dot", got=model.run(a=a, b=b, c=c), expected=expected, operands={}).mismatches


def shift_off_by_one(original):
    def faulty(m, word, distance, **options):
        return original(m, word, (distance + 1)[: len(distance)], **options)

    return faulty


def sticky_dropped(original):
    def faulty(m, word, distance, **options):
        return original(m, word, distance, **options)[0], Const(0, 1)

    return faulty


def ties_always_up(original):
    def faulty(m, number, **options):
        word = Cat(Const(1, 1), number.word[1:])
        return original(m, dataclasses.replace(number, word=word), **options)

    return faulty


@pytest.mark.parametrize(
    ("owner", "name", "fault", "preset"),
    [
        (vitruvian.hdl.fp.core.terms, "shift_right", shift_off_by_one, "ieee"),
        (vitruvian.hdl.fp.core.terms, "shift_right", shift_off_by_one, "a100"),
        (vitruvian.hdl.fp.core.terms, "shift_right", sticky_dropped, "ieee"),
        (vitruvian.hdl.fp.core.dotcore, "round_and_pack", ties_always_up, "ieee"),
    ],
)
def test_a_mutation_of_the_datapath_is_found(monkeypatch, owner, name, fault, preset):
    spec = PRESETS[preset].spec("fp16", "fp32", k=4)
    monkeypatch.setattr(owner, name, fault(getattr(owner, name)))
    assert mismatches(spec) > 0


@pytest.mark.parametrize("preset", ["ieee", "a100"])
def test_without_a_mutation_nothing_is_found(preset):
    assert mismatches(PRESETS[preset].spec("fp16", "fp32", k=4)) == 0


def write_set(folder, name, preset, formats, *, k, output="fp32", wrong=False):
    """Write golden's results as if they were measured."""
    spec = PRESETS[preset].spec(formats[0], output, input_b=formats[-1])
    block = spec.replace(k=min(k, spec.k))
    a, b, c = dot_vectors(block, 300, seed=2)
    if k > block.k:
        a, b = np.tile(a, 2), np.tile(b, 2)
    finite = np.isfinite(convert(c, output, "fp32").view(np.float32))
    c = np.where(finite, c, 0).astype(c.dtype)
    d = fused_dot(a, b, c, spec)
    bits = {
        "a": convert(a, spec.input, "fp32"),
        "b": convert(b, spec.input_b, "fp32"),
        "c": convert(c, output, "fp32") if output != "fp32" else c,
        f"d_{output}": convert(d, output, "fp32") if output != "fp32" else d,
    }
    if wrong:
        bits[f"d_{output}"] = bits[f"d_{output}"] ^ (np.arange(300) == 7).astype(np.uint32)
    path = folder / name
    np.savez(path, **{key: value.astype(np.uint32) for key, value in bits.items()})  # pyright: ignore[reportArgumentType]
    return str(path)


@pytest.mark.parametrize(
    ("name", "preset", "formats", "k", "output"),
    [
        pytest.param(
            *("h100_tf32.npz", "h100", ("tf32",), 4, "fp32"),  # fewer terms than the unit has
            marks=pytest.mark.long,
        ),
        ("v100_fp16.npz", "v100", ("fp16",), 8, "fp32"),  # two blocks
        ("a100_fp16.npz", "a100", ("fp16",), 8, "fp16"),
        ("ada_e4m3_e5m2.npz", "ada", ("fp8e4m3", "fp8e5m2"), 16, "fp32"),
    ],
)
def test_a_data_set_through_golden_and_rtl(tmp_path, capsys, name, preset, formats, k, output):
    path = write_set(tmp_path, name, preset, formats, k=k, output=output)
    assert main(["silicon", path, "--json", str(tmp_path / "rows.json")]) == 0
    rows = json.loads((tmp_path / "rows.json").read_text())
    # golden, the dot product, and an M3XU unit where one has these formats
    count = 3 if output == "fp32" and len(formats) == 1 else 2
    assert [row["vectors"] for row in rows] == [300] * count
    assert [row["mismatches"] for row in rows] == [0] * count
    assert "0 mismatches" in capsys.readouterr().out


def test_a_wrong_data_set_is_found(tmp_path, capsys):
    path = write_set(tmp_path, "set.npz", "a100", ("fp16",), k=8, wrong=True)
    assert main(["silicon", path, "--preset", "a100", "--input", "fp16"]) == 1
    out = capsys.readouterr().out
    assert "vector 7: a = " in out and "measured" in out and "3 of 3 rows failed" in out


def test_the_measured_sets_are_rows(silicon):
    units = [c.unit for c in verify.collect("*measured*")]
    assert units.count("golden.fused_dot") == units.count("fp.DotProduct") >= 5


def test_verify_as_a_command(tmp_path, capsys):
    rows = tmp_path / "rows.json"
    arguments = ["verify", "*v100 fp16→fp32*pipeline*", "--vectors", "5000", "--jobs", "1"]
    assert main([*arguments, "--json", str(rows)]) == 0
    (row,) = json.loads(rows.read_text())
    assert row["unit"] == "fp.DotProduct" and row["vectors"] == 5000 and row["mismatches"] == 0
    out = capsys.readouterr().out
    assert "1 row, 5,000 vectors: 0 mismatches" in out and "5,000" in out


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (Result(vectors=9, mismatches=1, examples=("here is why",)), "here is why"),
        (Result(vectors=0, mismatches=0), "nothing was compared"),
        (RuntimeError("it broke"), "RuntimeError: it broke"),
    ],
)
def test_a_failed_row_fails_the_command(monkeypatch, capsys, outcome, text):
    def run(vectors, seed, outcome):
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    check = verify.Check(unit="u", configuration="c", run=partial(run, outcome=outcome))
    monkeypatch.setattr("vitruvian.commands.verify.collect", lambda pattern: [check])
    assert main(["verify", "--jobs", "1"]) == 1
    out = capsys.readouterr().out
    assert text in out and "1 of 1 rows failed" in out


def test_a_cache_that_cannot_take_a_model_ends_the_command_with_one_line(monkeypatch, capsys):
    def run(vectors, seed):
        raise CacheError("VITRUVIAN_CACHE must be a folder with free space")

    check = verify.Check(unit="u", configuration="c", run=run)
    monkeypatch.setattr("vitruvian.commands.verify.collect", lambda pattern: [check])
    assert main(["verify", "--jobs", "1"]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        "error: VITRUVIAN_CACHE must be a folder with free space"
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["verify", "nothing"], "fp.ChainDot, fp.DotProduct, fp.ExactDotProduct, "),
        (["verify", "--vectors", "3"], "must be a whole number from 100 to 10000000, not '3'"),
        (["silicon", "missing.npz"], "name must begin with one of v100, a100"),
        (["silicon", "a100_fp16.npz"], "No such file"),
        (["silicon", "a100_int3.npz"], "format in a name must be one of fp16"),
        (["list", "--json", "/dev/null/x.json"], "--json: must be a file that can be written"),
        (["nonsense"], "invalid choice: 'nonsense'"),
        ([], "required: COMMAND"),
    ],
)
def test_a_wrong_argument_gets_one_line(arguments, text, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    try:
        code = main(arguments)
    except SystemExit as stop:
        code = stop.code
    captured = capsys.readouterr()
    assert code == 2 and text in captured.err
    assert len(captured.err.strip().splitlines()) == 1 and not captured.out


def rows_of(names):
    """Yield outcomes of passed checks, and report a compilation before each."""

    def run(vectors, seed, name):
        workers.tell("compiling")
        return Result(vectors=vectors, mismatches=0)

    return [
        verify.Check(unit="u", configuration=name, run=partial(run, name=name)) for name in names
    ]


def test_without_a_terminal_every_row_and_every_compilation_is_a_line_at_once(monkeypatch, capsys):
    seen = []

    def run_checks(checks, *, compiling, **options):
        for event in verify.run_checks(checks, compiling=compiling, **options):
            seen.append(capsys.readouterr())
            yield event
        seen.append(capsys.readouterr())

    monkeypatch.setattr("vitruvian.commands.verify.collect", lambda pattern: rows_of("ab"))
    monkeypatch.setattr("vitruvian.commands.verify.run_checks", run_checks)
    assert main(["verify", "--jobs", "1", "--vectors", "100"]) == 0
    lines = [(part.err, re.sub(r"\d+\.\d s", "s", part.out)) for part in seen]
    assert [err for err, _ in lines] == ["compiling u a …\n", "compiling u b …\n", ""]
    row = "u {}: 100 vectors, 0 mismatches, s\n"
    assert [out for _, out in lines] == ["", row.format("a"), row.format("b")]


def test_a_light_row_that_builds_its_unit_is_run_first():
    weights = {"light": 2, "heavy": 90, "follows": 1, "middle": 8}
    (check,) = rows_of("x")
    checks = [
        dataclasses.replace(check, unit=name, weight=weight) for name, weight in weights.items()
    ]
    order = [check.unit for _, check in verify._order(checks)]
    assert order == ["light", "heavy", "middle", "follows"]


def test_a_cache_that_cannot_be_written_is_told_before_the_rows(monkeypatch, tmp_path, capsys):
    (tmp_path / "file").touch()
    monkeypatch.setenv("VITRUVIAN_CACHE", str(tmp_path / "file" / "cache"))
    for command in (["verify", "*v100*"], ["exhaustive", "*e4m3 x fp8e4m3"]):
        assert main(command) == 2
        out, err = capsys.readouterr()
        assert not out and len(err.splitlines()) == 1
        assert "VITRUVIAN_CACHE must be a folder in which files can be created, not" in err


def test_names_of_checks_are_unique(monkeypatch):
    monkeypatch.setattr(
        verify, "PROVIDERS", ("vitruvian.sim.bench.fp.batch", "vitruvian.sim.bench.fp.batch")
    )
    with pytest.raises(ValueError, match="names of checks must be unique"):
        verify.collect()


def test_no_folder_of_data_sets_means_no_rows(monkeypatch, tmp_path):
    monkeypatch.setattr(silicon, "FOLDER", tmp_path)
    assert list(silicon.checks()) == []


def test_version_and_help_are_whole(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert re.fullmatch(r"vitruvian \d\S*\n", capsys.readouterr().out)
    parser = build_parser()
    (commands,) = [
        action for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    ]
    for name in ("list", "verify", "silicon", "exhaustive", "studies", "mma"):
        command = commands.choices[name]
        assert command.description and command.description.rstrip().endswith("."), name
        examples = re.findall(r"^(?:Example:)? +vitruvian (.*)$", command.epilog, re.M)
        assert examples
        for line in examples:
            assert parser.parse_args(shlex.split(line)).command == name
        for action in command._actions:
            assert action.help and not action.help.startswith(("of ", "per ", "all ")), action
            if action.option_strings and action.nargs != 0 and action.dest != "json":
                assert "default: " in action.help, action.option_strings


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["studies", "--list", "--size", "8"], "--size"),
        (["studies", "--list", "--json", "x.json"], "--json"),
        (["mma", "--list", "--json", "x.json"], "--json"),
        (["exhaustive", "--list", "--progress", "p.json"], "--progress"),
    ],
)
def test_options_that_do_not_apply_to_a_list_are_refused(
    arguments, option, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert capsys.readouterr() == ("", f"error: --list must come without {option}\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "arguments",
    [
        ["verify", "--vectors", "1000000000000"],
        ["verify", "--jobs", "1000000000"],
        ["verify", "--seed", "9" * 5000],
        ["mma", "--count", "1000000000000"],
        ["exhaustive", "--jobs", "257"],
        ["tune", "matmul", "--cores", "x" + "9" * 40],
        ["exhaustive", "--chunk", str(1 << 60)],
    ],
)
def test_sizes_without_a_bound_are_refused(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    (line,) = capsys.readouterr().err.splitlines()
    assert stop.value.code == 2 and "must be a whole number from " in line and len(line) < 200


@pytest.mark.parametrize("name", ["list", "units"])
def test_a_terminal_without_unicode_shows_escapes(name):
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "vitruvian", name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stderr and len(done.stdout.splitlines()) > 10


def test_a_worker_finds_every_check_by_its_name():
    """Also those that a wing registers, such as the sparse cores."""
    names = {check.name for check in verify.collect()}
    assert any(name.startswith("sparse.") for name in names)
    verify._by_name.cache_clear()
    assert set(verify._by_name()) == names

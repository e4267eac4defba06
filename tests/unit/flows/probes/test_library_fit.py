"""Plans that are fitted to samples of recorded calls, and the command that does it."""

import json
import re
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.library_plans import plan_of, record, recorded_call
from vitruvian import plans
from vitruvian.cli import main
from vitruvian.flows.probes import library_fit
from vitruvian.golden.plans import LibraryCall

CALLS = record()["calls"]


def some() -> list[int]:
    """Return a short call of each operation and format, in one slice and in several."""
    found: dict[tuple[object, ...], int] = {}
    for number, call in enumerate(CALLS):
        if call["plan"] and 128 < call["k"] <= 4096:
            more = call.get("scales"), bool(call.get("fast"))
            sliced = len(call["plan"].get("starts") or [0]) > 1
            found.setdefault((call["op"], call["a"], *more, sliced), number)
    return [n for n in found.values() if CALLS[n]["a"] not in ("fp32", "fp64", "tf32")]


@pytest.mark.parametrize("number", some()[::2], ids=lambda n: str(recorded_call(n).call))
def test_the_plan_of_the_tables_is_found_from_samples(number):
    assert library_fit.fit(recorded_call(number), "h200") == plan_of(CALLS[number])


def test_results_that_no_candidate_gives_have_no_plan():
    number = next(n for n, c in enumerate(CALLS) if c["plan"] and (c["op"], c["k"]) == ("mm", 72))
    recorded = recorded_call(number)
    changed = {kind: codes.copy() for kind, codes in recorded.samples.items()}
    changed["wide"][-1] ^= 1  # the last one is in the half that judges
    assert library_fit.fit(recorded, "h200") is not None
    assert library_fit.fit(replace(recorded, samples=changed), "h200") is None


def test_a_result_of_one_element_tells_nothing(monkeypatch):
    """Some candidate gives it by chance, though the tables say that none is right."""
    number = next(n for n, c in enumerate(CALLS) if (c["m"], c["n"], c["a"]) == (1, 1, "bf16"))
    assert CALLS[number]["plan"] is None
    assert library_fit.fit(recorded_call(number), "h200") is None
    monkeypatch.setattr(library_fit, "_ELEMENTS", 1)
    assert library_fit.fit(recorded_call(number), "h200") is not None


def test_no_candidate_comes_twice_and_those_of_the_kernel_first():
    name = "nvjet_sm90_tst_64x8_64x16_2x1_v_bz_splitK_TNT"
    call = LibraryCall(op="mm", a="fp16", b="fp16", m=1, k=4096, n=4096, layout="nt", output="fp16")
    recorded = library_fit.RecordedCall(call, 0, ((name, [2, 64, 1]),), {})
    found = list(library_fit.candidates(recorded, "h200"))
    assert found[0].starts == (0, 2048) and len(found) == len(set(found)) > 500


@pytest.mark.parametrize(
    ("machine", "name", "expected"),
    [
        ("h200", "e4m3", [("h200_wgmma_e4m3_fp32", None), ("h200_wgmma_e4m3_fp32", 16)]),
        ("a100", "bf16", [("a100_mma_bf16_fp32", 16), ("a100_mma_bf16_fp32", 8)]),
        ("b200", "tf32", [("b200_mma_tf32_fp32", 8), ("b200_mma_tf32_fp32", 4)]),
        ("v100", "e4m3", []),
        ("t4", "fp64", [("fma_fp64", None)]),
    ],
)
def test_rules_are_those_of_the_machine(machine, name, expected):
    op = "scaled" if name == "e4m3" else "mm"
    call = LibraryCall(op=op, a=name, b=name, m=8, k=64, n=8, output="fp32")
    found = library_fit.rules(call, machine)
    assert found[: len(expected)] == expected
    assert found[len(expected) :] == ([("fma_fp32", None)] if name == "tf32" else [])


def recording(folder: Path, numbers: list[int], gpu: str = "NVIDIA H200") -> None:
    """Write what the recorder would write of some calls."""
    cases, parts, offset = [], [], 0
    for position in range(max(numbers) + 1):
        call = CALLS[position]
        case = {key: call[key] for key in ("op", "a", "b", "m", "n", "k", "layout")}
        case |= {key: call[key] for key in ("fast", "scales", "bias", "batch") if key in call}
        if position not in numbers:
            cases.append(case | {"error": "out of memory"})
            continue
        recorded = recorded_call(position)
        samples: dict[str, object] = {"out": f"torch.{call['result']}"}
        for kind, codes in recorded.samples.items():
            samples[kind] = {"offset": offset, "shape": list(codes.shape), "dtype": codes.dtype.str}
            parts.append(codes.tobytes())
            offset += codes.nbytes
        kernels = [{"name": name, "grid": grid} for name, grid in recorded.kernels]
        cases.append(case | {"samples": samples, "kernels": kernels})
    folder.mkdir()
    (folder / "calls.json").write_text(json.dumps({"machine": {"gpu": gpu}, "calls": cases}))
    (folder / "calls.bin.z").write_bytes(zlib.compress(b"".join(parts)))


NUMBERS = some()[:3]


def test_the_command_writes_plans_that_can_be_loaded(tmp_path, capsys):
    recording(tmp_path / "mine", NUMBERS)
    out = tmp_path / "plans.csv"
    assert main(["plans", "fit", str(tmp_path / "mine"), "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}: plans of 3 of 3 calls (h200)\n"
    found = plans.load(out)
    assert found == {recorded_call(n).call: plan_of(CALLS[n]) for n in NUMBERS}
    call = replace(next(iter(found)), m=77)
    own = {call: replace(found[recorded_call(NUMBERS[0]).call], restart=64)}
    assert plans.find(call, plans=own).restart == 64
    assert main(["plans", "list", "--plans", str(out), "--json", "-"]) == 0
    rows = json.loads(capsys.readouterr().out)["calls"]
    assert {row["call"] for row in rows} == {str(each) for each in found}


def test_calls_without_a_plan_are_counted(tmp_path, capsys):
    number = next(n for n, c in enumerate(CALLS) if c["a"] == "fp64" and c["k"] < 20)
    recording(tmp_path / "mine", [number])
    blob = zlib.decompress((tmp_path / "mine" / "calls.bin.z").read_bytes())
    (tmp_path / "mine" / "calls.bin.z").write_bytes(zlib.compress(bytes(b ^ 1 for b in blob)))
    assert main(["plans", "fit", str(tmp_path / "mine"), "--out", str(tmp_path / "x.csv")]) == 1
    assert "plans of 0 of 1 calls" in capsys.readouterr().out
    assert not plans.load(tmp_path / "x.csv")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "calls.json").unlink(), "FOLDER must have the files calls.json"),
        (lambda f: (f / "calls.json").write_text("{"), "must be what plans record wrote"),
        (lambda f: (f / "calls.json").write_text("[]"), "must be what plans record wrote"),
        (lambda f: (f / "calls.bin.z").write_bytes(b"x"), "must be what plans record wrote"),
        (
            lambda f: (f / "calls.bin.z").write_bytes(zlib.compress(b"x")),
            "must be what plans record wrote",
        ),
        (
            lambda f: (f / "calls.json").write_text('{"machine": {"gpu": "GTX 980"}, "calls": []}'),
            "the GPU must be one of V100, .* not 'GTX 980'",
        ),
    ],
)
def test_a_damaged_recording_is_refused_in_one_line(tmp_path, capsys, damage, message):
    recording(tmp_path / "mine", NUMBERS[:1])
    damage(tmp_path / "mine")
    out = tmp_path / "plans.csv"
    assert main(["plans", "fit", str(tmp_path / "mine"), "--out", str(out)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(message, line) and not out.exists()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["list", "x"], "list must come without FOLDER"),
        (["fit", "--out", "x"], "fit must come with FOLDER"),
        (["fit", "x"], "fit must come with --out FILE"),
        (["list", "--calls", "3"], "--calls must come with record or fit"),
        (["record", "x", "--call", "y"], "--call must come with list"),
        (["list", "--call", "zzz"], "--call must select calls such as"),
        (["list", "--plans", "nowhere.csv"], "a file of plans must be readable"),
    ],
)
def test_other_lines_are_refused(capsys, line, message):
    assert main(["plans", *line]) == 2
    (printed,) = capsys.readouterr().err.splitlines()
    assert printed.startswith("error: ") and message in printed


def test_a_file_that_has_no_plans_is_refused(tmp_path, capsys):
    columns = ",".join(library_fit.COLUMNS)
    for text in (
        "a,b\n1,2\n",
        f"{columns}\n{'x,' * 17}x\n",
        f"{columns}\nmm,fp16,fp16,8,8,8,1,nt,fp16,0,,0,zzz,,,,,\n",
    ):
        (tmp_path / "plans.csv").write_text(text)
        assert main(["plans", "list", "--plans", str(tmp_path / "plans.csv")]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "must be" in line


def test_without_a_gpu_nothing_is_recorded(tmp_path, capsys):
    assert main(["plans", "record", str(tmp_path / "x")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "record needs PyTorch for CUDA" in line or "with an NVIDIA GPU" in line
    assert not (tmp_path / "x").exists()

"""Files of the probe kit, good ones and spoilt ones."""

import numpy as np
import pytest

from tests.support import measured
from tests.support.probes import answered, probe_file
from vitruvian.common.errors import UserError
from vitruvian.flows.probes import kit
from vitruvian.flows.probes.file import ProbeSection, pack, read, results_of
from vitruvian.flows.probes.npz import read_npz
from vitruvian.golden.fp.formats import FORMATS
from vitruvian.golden.machines.probe import Results, cases, name

CASES = cases(FORMATS["fp16"], FORMATS["fp32"], 4)


def test_operands_and_results_come_back(tmp_path):
    d = np.arange(len(CASES.c), dtype=np.uint32)
    data = answered(
        pack([ProbeSection("one", CASES), ProbeSection("two", CASES)], 7), [d.tobytes(), None]
    )
    path = tmp_path / "outputs.bin"
    path.write_bytes(data)
    device, sections = read(path)
    assert device == "a device" and [s.name for s in sections] == ["one"]
    assert isinstance(sections[0].cases, Results)
    for operand in "abc":
        found, given = getattr(sections[0].cases, operand), getattr(CASES, operand)
        np.testing.assert_array_equal(found, given)
    np.testing.assert_array_equal(sections[0].cases.d, d)


def test_sparse_results_have_the_terms_that_are_kept(tmp_path):
    each = next(i for i in kit.TARGETS["cuda"] if i.name == "wgmma_sp_m64n8k32_f16_f32")
    d = measured.results(each.name)
    path = tmp_path / "outputs.bin"
    path.write_bytes(answered(pack([ProbeSection(each.name, each.cases(1))], 1), [d.tobytes()]))
    (section,) = read(path)[1]
    found = results_of(section)
    assert found.terms == each.terms // 2 == 16
    machines = {match.machine.stem for match in name(found) if not match.wrong}
    assert {"h100_wgmma_fp16_fp32", "h200_wgmmasp_fp16_fp32"} <= machines


def test_scaled_operands_come_back(tmp_path):
    each = next(i for i in kit.TARGETS["cuda"] if i.name.startswith("mxf4nvf4"))
    given = each.cases(1)
    d = np.zeros(len(given.c), np.uint32)
    path = tmp_path / "outputs.bin"
    path.write_bytes(answered(pack([ProbeSection(each.name, given)], 1), [d.tobytes()]))
    (section,) = read(path)[1]
    assert section.cases.block == 16 and section.cases.scale == given.scale
    np.testing.assert_array_equal(section.cases.scale_b, given.scale_b)


GOOD = probe_file(step=20)
SPOILT = [
    (GOOD[:-1], "it is truncated"),
    (GOOD[:140], "it is truncated"),
    (GOOD[:8] + b"\1" + GOOD[9:], "must be of version 2 of the probe kit, not 1"),
    (GOOD[:400] + bytes([GOOD[400] ^ 1]) + GOOD[401:], "but they were changed"),
    (GOOD[:200] + b"\0\0\0zzz" + GOOD[206:], "but"),
    (b"VTPROBE", "must be an outputs file of the probe kit"),
    (GOOD[:320] + b"\0" + GOOD[321:], "no instruction has run"),
    (GOOD[:352] + b"\xff" * 8 + GOOD[360:], "whole"),
]


@pytest.mark.parametrize(("data", "message"), SPOILT)
def test_a_spoilt_file_is_refused_in_one_line(data, message, tmp_path):
    path = tmp_path / "outputs.bin"
    path.write_bytes(data)
    with pytest.raises(UserError, match=message) as error:
        read(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": np.zeros((2, 4), "u2"), "b": np.zeros((2, 4), "u2")}, "not lack d"),
        (
            {"a": np.zeros((2, 4), "u2"), "b": np.zeros((2, 5), "u2"), "d": [0, 0]},
            r"b must have the shape \(2, 4\), not \(2, 5\)",
        ),
        (
            {"a": np.zeros((2, 4)), "b": np.zeros((2, 4), "u2"), "d": [0, 0]},
            "a must hold integers, not float64",
        ),
        (
            {"a": np.zeros(2, "u2"), "b": np.zeros((2, 4), "u2"), "d": [0, 0]},
            r"a must have the shape \(rows, terms\) without zeros, not \(2,\)",
        ),
    ],
)
def test_an_npz_file_without_codes_is_refused(arrays, message, tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, **arrays)
    with pytest.raises(UserError, match=message):
        read_npz(path, "fp16")


def test_an_npz_file_says_its_formats(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, a=CASES.a, b=CASES.b, c=CASES.c, d=CASES.c)
    with pytest.raises(UserError, match=r"format of .* must be given with --input"):
        read_npz(path, None)
    (section,) = read_npz(path, "bf16_fp16")[1]
    assert (section.cases.input.name, section.cases.input_b.name) == ("bf16", "fp16")
    assert section.cases.output.name == "fp32"


@pytest.mark.parametrize(
    ("target", "patterns", "message"),
    [
        ("rocm", [], "target must be one of cuda, hip, amx, avx512, python, not 'rocm'"),
        ("amx", ["zzz"], "instruction must be one of amx_tdpbf16ps, .*, not 'zzz'"),
    ],
)
def test_what_there_is_not_is_refused(target, patterns, message):
    with pytest.raises(UserError, match=message):
        kit.chosen(target, patterns)


@pytest.mark.parametrize("target", kit.TARGETS)
def test_names_are_unique_and_fit_into_a_file(target):
    names = [each.name for each in kit.TARGETS[target]]
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() and len(name) < 64 for name in names)

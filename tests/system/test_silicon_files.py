"""Files of measured outputs: dtypes, limits before unpacking, and one line for a mistake."""

import io
import os
import re
import resource
import struct
import subprocess
import sys
import zipfile

import ml_dtypes
import numpy as np
import pytest

from vitruvian.cli import main
from vitruvian.golden.fp import FORMATS, convert, fused_dot
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.sim.bench import silicon
from vitruvian.sim.bench.codes import codes

FP16 = PRESETS["a100"].spec("fp16", "fp32")
RNG = np.random.default_rng(5)
HALF = RNG.standard_normal((2, 20, 8)).astype(np.float16)
ADDEND = RNG.standard_normal(20).astype(np.float32)


def operands(format):
    """Return small values as codes of a format and as fp32 patterns, with the results of a100."""
    values = (np.round(HALF.astype(np.float32) * 4) / 4).view(np.uint32)
    result = np.asarray(convert(values, "fp32", format))
    return result, np.asarray(convert(result, format, "fp32"))


def save(path, **arrays):
    np.savez(path, **arrays)
    return path


def loaded(path, **options):
    (data,) = silicon.load(path, **options)
    return data


AS_FP16 = {
    "codes": lambda codes, bits: codes,
    "signed codes": lambda codes, bits: codes.view(np.int16),
    "big-endian codes": lambda codes, bits: codes.astype(">u2"),
    "float16": lambda codes, bits: codes.view(np.float16),
    "big-endian float16": lambda codes, bits: codes.view(np.float16).astype(">f2"),
    "float32": lambda codes, bits: bits.view(np.float32),
    "big-endian float32": lambda codes, bits: bits.view(np.float32).astype(">f4"),
    "fp32 patterns": lambda codes, bits: bits,
}


@pytest.mark.parametrize("kind", AS_FP16)
def test_natural_dtypes_of_fp16_are_taken(tmp_path, kind):
    codes, bits = operands("fp16")
    d = fused_dot(codes[0], codes[1], ADDEND.view(np.uint32), FP16)
    a, b = (AS_FP16[kind](*pair) for pair in zip(codes, bits, strict=True))
    path = save(tmp_path / "a100_fp16.npz", a=a, b=b, c=ADDEND, d_fp32=d)
    data = loaded(path)
    assert np.array_equal(data.a, codes[0]) and np.array_equal(data.b, codes[1])
    assert silicon.run_golden(data).mismatches == 0


@pytest.mark.parametrize(
    ("name", "format", "dtype"),
    [
        ("a100_bf16", "bf16", ml_dtypes.bfloat16),
        ("h100_e4m3", "fp8e4m3", ml_dtypes.float8_e4m3fn),
        ("h100_e5m2", "fp8e5m2", ml_dtypes.float8_e5m2),
        ("a100_tf32", "tf32", np.float32),
    ],
)
def test_natural_dtypes_of_other_formats_are_taken(tmp_path, name, format, dtype):
    codes, bits = operands(format)
    for kind, (a, b) in {
        "codes": codes,
        "ml_dtypes": bits.view(np.float32).astype(dtype),
        "patterns": bits,
    }.items():
        d = np.zeros(20, np.float32)
        data = loaded(save(tmp_path / f"{name}.npz", a=a, b=b, c=d, d_fp32=d))
        assert np.array_equal(data.a, codes[0]) and np.array_equal(data.b, codes[1]), kind


def test_fp16_results_and_addends_are_codes_floats_or_patterns(tmp_path):
    codes, _ = operands("fp16")
    wide = {"c": ADDEND.astype(np.float16), "d": ADDEND.astype(np.float16)}
    for view in (np.uint16, np.int16, np.float16, np.float32):
        c, d = (x.astype(np.float32) if view is np.float32 else x.view(view) for x in wide.values())
        data = loaded(save(tmp_path / "a100_fp16.npz", a=codes[0], b=codes[1], c=c, d_fp16=d))
        assert np.array_equal(data.c, wide["c"].view(np.uint16))
        assert np.array_equal(data.d, wide["d"].view(np.uint16))


def test_an_unsupported_output_is_skipped_and_the_other_is_run(tmp_path, capsys):
    codes, _ = operands("bf16")
    spec = PRESETS["a100"].spec("bf16", "fp32")
    d = fused_dot(codes[0], codes[1], ADDEND.view(np.uint32), spec)
    arrays = {"a": codes[0], "b": codes[1], "c": ADDEND, "d_fp32": d}
    path = save(tmp_path / "a100_bf16.npz", **arrays, d_fp16=np.zeros(20, np.float16))
    notes = []
    data = loaded(path, note=notes.append)
    assert data.spec.output.name == "fp32" and len(notes) == 1
    assert re.match(r"a100_bf16.npz: d_fp16 is left out: .*bf16.*", notes[0])
    del arrays["d_fp32"]
    save(path, **arrays, d_fp16=np.zeros(20, np.float16))
    assert main(["silicon", str(path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_missing_c_and_arrays_that_are_not_read_are_said(tmp_path):
    codes, _ = operands("fp16")
    zero = np.zeros(20, np.uint32)
    d = fused_dot(codes[0], codes[1], zero, FP16)
    arrays = {"a": codes[0], "b": codes[1], "C": ADDEND, "d": d}
    notes = []
    data = loaded(save(tmp_path / "a100_fp16.npz", **arrays), note=notes.append)
    assert not data.c.any() and silicon.run_golden(data).mismatches == 0
    assert "a100_fp16.npz contains no c, so C = 0" in notes
    assert any("C is not read; the known names are a, b, c" in note for note in notes)


@pytest.mark.parametrize("content", [b"", b"not an archive", b"PK\x03\x04", None])
def test_a_broken_file_gets_one_line(content, tmp_path, capsys):
    path = tmp_path / "a100_fp16.npz"
    path.mkdir() if content is None else path.write_bytes(content)
    assert main(["silicon", str(path)]) == 2
    error = capsys.readouterr().err
    assert "must be an .npz file" in error and len(error.splitlines()) == 1


def n(shape, dtype="u4"):
    return np.zeros(shape, dtype)


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        ({"a": n((2, 8)), "d_fp32": n(2)}, "must hold a, b and d_fp32"),
        ({"a": n((2, 8), "f8"), "b": n((2, 8)), "d_fp32": n(2)}, "a must be .* not float64"),
        ({"a": n((2, 8)), "b": n((2, 8), "?"), "d_fp32": n(2)}, "b must be .* not bool"),
        ({"a": n((2, 8), "u1"), "b": n((2, 8)), "d_fp32": n(2)}, "uint16 codes of fp16, .* uint8"),
        ({"a": n((2, 8)), "b": n((3, 8)), "d_fp32": n(2)}, r"must hold a, b \(N, K\) and c, d"),
        ({"a": n((2, 8)), "b": n((2, 8)), "d_fp32": n(())}, r"must hold a, b .* d_fp32 \(\)"),
        ({"a": n((0, 8)), "b": n((0, 8)), "d_fp32": n(0)}, r"must hold a, b .* a \(0, 8\)"),
        ({"a": n((2, 8)) + 1, "b": n((2, 8)), "d": n(2)}, "a must hold values of fp16, not 0x0000"),
        ({"a": np.array([{}]), "b": n((2, 8)), "d": n(2)}, "must be an .npz file of plain arrays"),
    ],
)
def test_arrays_that_do_not_fit_get_one_line(tmp_path, capsys, arrays, text):
    path = save(tmp_path / "a100_fp16.npz", **arrays)
    assert main(["silicon", str(path)]) == 2
    error = capsys.readouterr().err.splitlines()
    assert re.search(text, error[-1]), error
    assert all(line.startswith("note: ") for line in error[:-1])


def test_arrays_in_fortran_order_are_taken(tmp_path):
    codes, _ = operands("fp16")
    d = np.zeros(20, np.uint32)
    a, b = (np.asfortranarray(x) for x in codes)
    data = loaded(save(tmp_path / "a100_fp16.npz", a=a, b=b, c=d, d_fp32=d))
    assert np.array_equal(data.a, a) and np.array_equal(data.b, b)


def member(shape, dtype="<u4"):
    """Return the header of an array."""
    out = io.BytesIO()
    header = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(out, header)
    return out.getvalue()


@pytest.mark.parametrize("shape", [(10**12, 8), (1 << 26, 8), (2**62, 2**62)])
def test_an_absurd_shape_is_refused_by_its_header(tmp_path, capsys, shape):
    path = tmp_path / "a100_fp16.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in {"a": member(shape), "b": member(shape), "d": member(shape[:1])}.items():
            archive.writestr(f"{name}.npy", data)
    assert main(["silicon", str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "must hold at most 268,435,456 bytes of arrays, not" in line


def test_half_precision_numbers_are_values_of_other_formats():
    numbers = np.array([1.5, -2], np.float16)
    assert codes(numbers, FORMATS["fp16"], "a").tolist() == [0x3E00, 0xC000]
    assert codes(numbers, FORMATS["bf16"], "a").tolist() == [0x3FC0, 0xC000]


@pytest.mark.parametrize("rows", [-2, True, 2.0])
def test_a_shape_of_other_than_counts_is_refused(tmp_path, capsys, rows):
    path = tmp_path / "a100_fp16.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name, shape in {"a": (rows, 8), "b": (rows, 8), "d": (rows,)}.items():
            archive.writestr(f"{name}.npy", member(shape) + bytes(64))
    assert main(["silicon", str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert (
        "must be an .npz file of plain arrays" in line
        and "structured arrays are not allowed" in line
    )


def bomb(path):
    """Write 3 MB that unpack to 3 GB, in a member that is read or in one that is not."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("a", "junk"):
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                file.write(member(((3 << 30) // 64, 8), "<f8"))
                for _ in range(3 << 4):
                    file.write(bytes(1 << 20))
        archive.writestr("b.npy", member((2, 8)) + bytes(64))
        archive.writestr("d.npy", member((2,)) + bytes(8))


def test_a_zip_bomb_is_not_unpacked(tmp_path):
    path = tmp_path / "a100_fp16.npz"
    bomb(path)
    code = "import sys; from vitruvian.cli import main; sys.exit(main(sys.argv[1:]))"

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))

    done = subprocess.run(
        [sys.executable, "-c", code, "silicon", str(path)],
        preexec_fn=limit,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr
    assert "must hold at most 268,435,456 bytes of arrays" in done.stderr


def test_a_member_that_lies_about_its_size_is_one_line(tmp_path, capsys):
    path = tmp_path / "a100_fp16.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name, shape in {"a": (1000, 8), "b": (1000, 8), "d": (1000,)}.items():
            archive.writestr(f"{name}.npy", member(shape) + struct.pack("<I", 1))
    assert main(["silicon", str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "must be an .npz file of plain arrays" in line


def test_help_documents_the_file(capsys):
    with pytest.raises(SystemExit):
        main(["silicon", "--help"])
    text = capsys.readouterr().out
    for part in ("a, b ", "d_fp32, d_fp16", "uint16 for fp16 and bf16", "Examples:", "C = 0"):
        assert part in text

"""Rules written in C99: compiled without a warning, and equal to golden."""

import ctypes
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from vitruvian.cli import main
from vitruvian.common.errors import UserError
from vitruvian.golden.fp import DotSpec, IntDotSpec
from vitruvian.golden.machines import Machine, find, machines, run
from vitruvian.golden.machines.c_source import CSource, c_source, function_name

#: Rows with each kind of specials, cut, rounding, zero, floor, shorter result and scales.
ROWS = (
    "v100_mma_fp16_fp32",
    "a100_mma_tf32_fp32",
    "h100_mma_fp16_fp16",
    "h100_wgmma_e4m3_fp32",
    "h100_wgmma_e5m2_fp16",
    "b200_tcgen05_e2m1_fp32",
    "b200_mxf8_e4m3_fp32",
    "cdna1_mfma_fp32_fp32",
    "amx_tdpbsud",
    "h100_mma_uint8xint8_int32_satfinite",
)


def _representatives() -> dict[str, str]:
    """Return one row of each rule that has a C form."""
    found: dict[str, str] = {}
    for stem, row in machines().items():
        try:
            c_source(row)
        except UserError:
            continue
        found.setdefault(repr(row.rule), stem)
    return found


def _codes(rng, format, shape):
    """Return codes: 60 % with exponents near each other, 30 % zeros, and some infinities."""
    codes = rng.integers(0, 1 << format.code_bits, shape, dtype=np.uint64)
    keep = np.uint64(format.sign_mask | format.fraction_mask)
    field = (format.bias + rng.integers(-4, 5, shape)) & format.exponent_ones
    low = np.uint64(format.fraction_bits + format.storage_shift)
    near = codes & keep | field.astype(np.uint64) << low
    codes = np.where(rng.random(shape) < 0.6, near, codes)
    zeros = np.where(rng.random(shape) < 0.5, format.negative_zero, 0).astype(np.uint64)
    codes = np.where(rng.random(shape) < 0.3, zeros, codes)
    if format.has_infinity:
        signed = np.where(rng.random(shape) < 0.5, format.sign_mask, 0).astype(np.uint64)
        codes = np.where(rng.random(shape) < 0.004, signed | np.uint64(format.infinity), codes)
    return codes.astype(f"u{format.storage_bits // 8}")


def _operands(row: Machine, many: int):
    """Return codes of a, b and c, and of the scales by their names."""
    rng, spec = np.random.default_rng(1), row.rule
    if isinstance(spec, IntDotSpec):
        a, b = (
            rng.choice((0, 1, -1, low, high), (many, spec.k)).astype(np.int8 if low else np.uint8)
            for low, high in (
                (-128, 127) if signed else (0, 255) for signed in (spec.signed_a, spec.signed_b)
            )
        )
        near = rng.choice((-(2**31), 2**31 - 1, 0), many) + rng.integers(0, 2, many)
        return a, b, near.clip(-(2**31), 2**31 - 1).astype(np.int32), {}
    assert isinstance(spec, DotSpec)
    a, b = (_codes(rng, f, (many, spec.k)) for f in (spec.input, spec.input_b))
    scales = {}
    if spec.scales is not None:
        assert spec.scales.block is not None
        f, shape = spec.scales.format, (many, spec.k // spec.scales.block)
        for name in ("scale_a", "scale_b"):
            near = (f.bias << f.fraction_bits) + rng.integers(-6, 7, shape)
            anything = rng.integers(0, 256, shape)
            scales[name] = np.where(rng.random(shape) < 0.9, near, anything).astype(np.uint8)
    return a, b, _codes(rng, spec.output, many), scales


def _compiled(source: CSource, row: Machine, folder: Path):
    for end, text in (("h", source.header), ("c", source.source)):
        (folder / f"{row.stem}.{end}").write_text(text)
    library = folder / f"{row.stem}.so"
    flags = ("-x", "c", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O1")
    command = [os.environ.get("CXX", "g++"), *flags, "-shared", "-fPIC", "-o", str(library)]
    subprocess.run([*command, str(folder / f"{row.stem}.c")], check=True)
    function = getattr(ctypes.CDLL(str(library)), function_name(row))
    code = ctypes.c_int32
    if isinstance(row.rule, DotSpec):
        code = getattr(ctypes, f"c_uint{row.rule.output.storage_bits}")
    function.restype = code
    scales = 2 if isinstance(row.rule, DotSpec) and row.rule.scales is not None else 0
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, code, *[ctypes.c_void_p] * scales]
    return function


def differing(stem: str, folder: Path, many: int = 300, change=lambda text: text) -> int:
    """Return how many results of the compiled file differ from golden's."""
    row = find(stem)
    header, source = c_source(row)
    function = _compiled(CSource(header, change(source)), row, folder)
    a, b, c, scales = _operands(row, many)
    expected = np.asarray(run(stem, a, b, c, **scales))
    at = [[x[i].ctypes.data for x in (a, b, *scales.values())] for i in range(many)]
    found = [function(x, y, int(c[i]), *rest) for i, (x, y, *rest) in enumerate(at)]
    mask = (1 << 8 * expected.itemsize) - 1  # integers of C have signs
    return int(np.count_nonzero(expected != np.array([x & mask for x in found], expected.dtype)))


@pytest.mark.parametrize("stem", ROWS)
def test_a_rule_in_c_is_golden(stem, tmp_path):
    assert differing(stem, tmp_path) == 0


@pytest.mark.long
def test_every_rule_in_c_is_golden(tmp_path):
    stems = _representatives().values()
    assert len(stems) > 100
    assert not {s: n for s in stems if (n := differing(s, tmp_path))}


@pytest.mark.parametrize(
    ("stem", "old", "new"),
    [
        ("h100_wgmma_e4m3_fp32", "largest - 13", "largest - 14"),
        ("cdna1_mfma_fp32_fp32", "all_negative ? 0x80000000u : 0", "0"),
        ("h100_mma_fp16_fp32", "nan |= zero;", "nan |= 0 * zero;"),
        ("h100_wgmma_e4m3_fp32", "size >> drop : 0", "size >> (drop - 1) : 0"),
        ("h100_wgmma_e4m3_fp32", ", 7, LAST)", ", 8, LAST)"),
        ("amx_tdpbsud", "(uint32_t)sum", "(uint32_t)(sum / 2)"),
        ("h100_mma_uint8xint8_int32_satfinite", "sum < INT32_MIN ? INT32_MIN", "0 ? 0"),
    ],
)
def test_a_changed_file_is_noticed(stem, old, new, tmp_path):
    assert old in c_source(find(stem)).source
    assert differing(stem, tmp_path, 1000, lambda text: text.replace(old, new)) > 0


def test_most_rows_of_windowed_sums_have_the_form():
    written, refused = 0, {}
    for stem, row in machines().items():
        try:
            c_source(row)
            written += 1
        except UserError as error:
            refused[stem] = str(error)
    assert written > 500
    assert "plain windowed sum" in refused["b200_mma_fp64_fp64"]
    assert all(text.startswith(f"{stem} must be a") for stem, text in refused.items())


def test_the_command_writes_a_file_and_its_header(tmp_path, capsys):
    folder = tmp_path / "rules"
    assert main(["machines", "h100_mma_fp16_fp32", "--c", str(folder)]) == 0
    assert sorted(file.name for file in folder.iterdir()) == [
        "h100_mma_fp16_fp32.c",
        "h100_mma_fp16_fp32.h",
    ]
    assert "vitruvian_h100_mma_fp16_fp32" in capsys.readouterr().out
    assert main(["machines", "b200", "--c", str(folder), "--json", "-"]) == 0
    assert '"b200_mma_fp64_fp64"' in capsys.readouterr().out
    for line in (
        ["machines", "b200_mma_fp64_fp64"],
        ["machines"],
        ["machines", "b200", "--errors"],
    ):
        other = tmp_path / "other"
        assert main([*line, "--c", str(other)]) == 2
        assert not other.exists()
    assert "--c must come with NAME" in capsys.readouterr().err

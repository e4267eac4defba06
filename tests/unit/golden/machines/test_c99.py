"""Rules written in C99: compiled without a warning, and equal to golden."""

import ctypes
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from vitruvian.cli import main
from vitruvian.golden.fp import DotSpec, IntDotSpec
from vitruvian.golden.machines import Machine, find, machines, run
from vitruvian.golden.machines.c99 import CSource, c_source, declaration, function_name
from vitruvian.golden.machines.spec import IntPhaseSpec, PhaseSpec

ANY_TERMS = 11  # of a rule that takes any number of them

#: Rows with each kind of specials, cut, rounding, zero, floor, shorter result and scales.
SHORT = (
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
#: Rows of the rules with further steps: each kind of lanes, addend, cut, conversion and chain.
LONG = (
    "b200_mma_fp64_fp64",
    "b200_nvf4_ue4m3_fp32",
    "h200_mmasync_e5m2_fp32",
    "rvbna_bf16_n4_fp32",
    "arm_fdot_e4m3_fp16",
    "cdna1_mfma_fp16_fp32",
    "cdna3_mfma_fp8_fp32",
    "cdna3_mfma_fp16_fp32",
    "gaudi2_fp32_fp32",
    "gaudi3_fp16_fp32",
    "gaudi1_bf16_fp32",
    "cdna2_mfma_bf16_fp32",
    "amx_tdpbf8ps_pairs",
    "amx_tcmmimfp16ps",
    "amx_tcmmrlfp16ps",
    "avx512_vdpbf16ps",
    "wh_mvmul_bf16_bf16_hifi4",
    "bh_mvmul_e5m2_fp16_hifi2",
    "wh_mvmul_bfp4_fp32_hifi3",
    "bh_mvmul_int8_int32_hifi4",
    "rdna3_wmma_bf16_bf16",
    "rdna3_dot2_fp16_fp32",
    "rdna4_wmma_fp16_fp16",
    "rdna4_dot4_e4m3xe5m2_fp32",
)


def _representatives() -> dict[str, str]:
    """Return one row of each rule."""
    found: dict[str, str] = {}
    for stem, row in machines().items():
        found.setdefault(repr(row.rule), stem)
    return found


def _codes(rng, format, shape, exponents=0):
    """Return codes: 60 % with exponents near some, 30 % zeros, and some infinities."""
    codes = rng.integers(0, 1 << format.code_bits, shape, dtype=np.uint64)
    keep = np.uint64(format.sign_mask | format.fraction_mask)
    field = format.bias + exponents + rng.integers(-4, 5, shape)
    field = field.clip(0, format.exponent_ones)
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
    k = _terms(row)
    if isinstance(spec, IntDotSpec):
        a, b = (
            rng.choice((0, 1, -1, low, high), (many, k)).astype(np.int8 if low else np.uint8)
            for low, high in (
                (-128, 127) if signed else (0, 255) for signed in (spec.signed_a, spec.signed_b)
            )
        )
        near = rng.choice((-(2**31), 2**31 - 1, 0), many) + rng.integers(0, 2, many)
        return a, b, near.clip(-(2**31), 2**31 - 1).astype(np.int32), {}
    if isinstance(spec, IntPhaseSpec):
        a, b = rng.integers(0, 256, (2, many, k)).astype(np.uint8)
        c = rng.integers(0, 1 << 32, many) | rng.choice((0, 0x7FFF0000), many)
        return a, b, c.astype(np.uint32), {}
    scales = {}
    if isinstance(spec, PhaseSpec) and spec.shared_bits:
        a, b = rng.integers(0, 1 << spec.shared_bits, (2, many, k)).astype(np.uint8)
        for name in ("scale_a", "scale_b"):
            near = rng.integers(120, 134, (many, 1))
            scales[name] = np.where(rng.random((many, 1)) < 0.9, near, 0).astype(np.uint8)
        return a, b, _codes(rng, spec.output, many), scales
    # Every fourth row has results near the least normal number, if operands can be so small.
    tiny = (np.arange(many) % 4 == 0) * spec.output.emin
    a, b = (_codes(rng, f, (many, k), tiny[:, None] // 2) for f in (spec.input, spec.input_b))
    if isinstance(spec, DotSpec) and spec.scales is not None:
        f, shape = spec.scales.format, (many, k // spec.scales.block)
        for name in ("scale_a", "scale_b"):
            near = (f.bias << f.fraction_bits) + rng.integers(-6, 7, shape)
            anything = rng.integers(0, 256, shape)
            scales[name] = np.where(rng.random(shape) < 0.9, near, anything).astype(np.uint8)
    return a, b, _codes(rng, spec.output, many, tiny), scales


def _terms(row: Machine) -> int:
    """Return K, or an odd number of terms for a rule that takes any number."""
    return ANY_TERMS if row.rule.k is None else row.rule.k


def _compiled(source: CSource, row: Machine, folder: Path):
    """Return the function of the compiled file and the type of its codes."""
    for end, text in (("h", source.header), ("c", source.source)):
        (folder / f"{row.stem}.{end}").write_text(text)
    library = folder / f"{row.stem}.so"
    flags = ("-x", "c", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O1")
    command = [os.environ.get("CXX", "g++"), *flags, "-shared", "-fPIC", "-o", str(library)]
    subprocess.run([*command, str(folder / f"{row.stem}.c")], check=True)
    function = getattr(ctypes.CDLL(str(library)), function_name(row))
    out = getattr(row.rule, "output", None)
    code = ctypes.c_uint32 if out is None else getattr(ctypes, f"c_uint{out.storage_bits}")
    scales = declaration(row).count("*scale_")
    function.restype = code
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, code, *[ctypes.c_void_p] * scales]
    if row.rule.k is None:
        function.argtypes = [*function.argtypes, ctypes.c_int]
    return function


def differing(stem: str, folder: Path, many: int = 300, change=lambda text: text) -> int:
    """Return how many results of the compiled file differ from golden's."""
    row = find(stem)
    header, source = c_source(row)
    function = _compiled(CSource(header, change(source)), row, folder)
    a, b, c, scales = _operands(row, many)
    expected = np.asarray(run(stem, a, b, c, **scales))
    at = [[x[i].ctypes.data for x in (a, b, *scales.values())] for i in range(many)]
    k = [ANY_TERMS] if row.rule.k is None else []
    found = [function(x, y, int(c[i]), *rest, *k) for i, (x, y, *rest) in enumerate(at)]
    return int(np.count_nonzero(expected != np.array(found, expected.dtype)))


@pytest.mark.parametrize("stem", SHORT + LONG)
def test_a_rule_in_c_is_golden(stem, tmp_path):
    assert differing(stem, tmp_path) == 0


@pytest.mark.long
def test_every_rule_in_c_is_golden(tmp_path):
    stems = _representatives().values()
    assert len(stems) > 300
    assert not {s: n for s in stems if (n := differing(s, tmp_path, 1000))}


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
        ("rvbna_bf16_n4_fp32", "if (how == ODD && bits)", "if (0)"),
        ("h200_mmasync_e5m2_fp32", "i % 4 / 2 == half", "i % 2 == half"),
        ("b200_nvf4_ue4m3_fp32", "each = r->block / size", "each = r->block"),
        ("gaudi2_fp32_fp32", "const int low = !z->significand ||", "const int low = 0 &&"),
        ("cdna3_mfma_fp8_fp32", "own - most, FLOOR", "own - most, MAGNITUDE"),
        ("rvbna_bf16_n4_fp32", "kept |= (uint64_t)(high | below)", "kept |= 0"),
        ("amx_tdpbf8ps_pairs", "s[i / 2 % 2]", "s[i % 2]"),
        ("amx_tcmmrlfp16ps", "x[i] ^= i % 2", "x[i] ^= 0"),
        ("avx512_vdpbf16ps", "last + 1, f, r->rounding", "last, f, r->rounding"),
        ("gaudi1_bf16_fp32", "s[(k + 0) % 4]", "s[0]"),
        (
            "wh_mvmul_bf16_bf16_hifi4",
            "value = divided(value, 13, down)",
            "value = divided(value, 13, 0)",
        ),
        ("wh_mvmul_bfp4_fp32_hifi3", "negative * 0x7F80", "0"),
        ("rdna3_dot2_fp16_fp32", "plus(term.size, wide(1))", "term.size"),
        ("rdna4_wmma_fp16_fp32", "exponent[i] - 24", "exponent[i] - 23"),
    ],
)
def test_a_changed_file_is_noticed(stem, old, new, tmp_path):
    assert old in c_source(find(stem)).source
    assert differing(stem, tmp_path, 1000, lambda text: text.replace(old, new)) > 0


def test_every_row_of_the_table_has_a_file():
    files = {stem: c_source(row) for stem, row in machines().items()}
    assert len(files) > 800
    for stem, (header, source) in files.items():
        declared = declaration(machines()[stem])
        assert f"{declared};" in header
        assert f'#include "{stem}.h"' in source
        assert f"{declared}\n{{" in source


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
        ["machines", "cdna4_mfma"],
        ["machines"],
        ["machines", "b200", "--errors"],
    ):
        other = tmp_path / "other"
        assert main([*line, "--c", str(other)]) == 2
        assert not other.exists()
    assert "--c must come with NAME" in capsys.readouterr().err

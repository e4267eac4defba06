"""Approximate functions against samples and hashes of an H200; the tables were fitted to samples.

The samples that the tables were fitted to are not what judges them: the hashes are over all
arguments, and over binades and signs that no sample is of.
"""

import ml_dtypes
import numpy as np
import pytest

from benchmarks import functions_all
from tests.support.measured import FOLDER
from vitruvian import functions
from vitruvian.common.errors import UserError
from vitruvian.golden.functions import interpolation

with np.load(FOLDER / "functions.npz") as file:
    STORED = {name: file[name] for name in file.files}
WIDE = [name for name in functions.instructions() if name.endswith(".f32")]
#: Blocks of 2^22 arguments: subnormal numbers, around one, large and negative ones.
BLOCKS = {
    "ex2": (717, 779),
    "lg2": (0, 253),
    "rcp": (0, 508),
    "rsqrt": (0, 255),
    "sqrt": (0, 254),
    "sin": (231, 766),
    "cos": (264, 766),
}


@pytest.mark.parametrize("name", [n for n in STORED if n.rpartition(".")[0] in WIDE])
def test_samples_are_equal(name):
    if name.endswith(".sums"):
        name, _, _ = name.rpartition(".")
        if name in ("sin.approx.f32", "cos.approx.f32"):  # flushing changes no bit of theirs
            same = STORED[f"{name[:3]}.approx.ftz.f32.sums"]
            assert np.array_equal(STORED[f"{name}.sums"], same)
            return
        for block in BLOCKS[name.partition(".")[0]]:
            expected = int(STORED[f"{name}.sums"][block])
            assert functions_all.total(name, block) == expected, block
        return
    instruction, _, start = name.rpartition(".")
    i = np.arange(1 << 16, dtype=np.uint64)
    x = (int(start, 16) + 128 * i + (i * 37 & 127)).astype(np.uint32).view(np.float32)
    expected = np.cumsum(STORED[name], dtype=np.int64).astype(np.uint32)
    assert np.array_equal(functions.compute(instruction, x).view(np.uint32), expected)


@pytest.mark.parametrize(
    ("name", "dtype"), [("ex2.approx.f16", np.float16), ("ex2.approx.ftz.bf16", ml_dtypes.bfloat16)]
)
def test_all_results_of_16_bits_are_equal(name, dtype):
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    expected = np.cumsum(STORED[name], dtype=np.int64).astype(np.uint16)
    assert np.array_equal(functions.compute(name, x).view(np.uint16), expected)


@pytest.mark.long
@pytest.mark.parametrize("name", WIDE)
def test_all_arguments_are_equal(name, monkeypatch):
    monkeypatch.setattr("sys.argv", ["functions_all", name])
    assert functions_all.main() == 0


def test_hashes_notice_one_bit_of_a_coefficient_and_one_column(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["functions_all", "--every", "1000", "rcp.approx.ftz.f32"])
    assert functions_all.main() == 0
    assert "2 of 2 blocks equal" in capsys.readouterr().out
    tables = {name: tuple(c.copy() for c in t) for name, t in interpolation._tables().items()}
    tables["rcp"][2][7] += 1
    monkeypatch.setattr(interpolation, "_tables", lambda: tables)
    table = interpolation.Interpolation(
        name="rcp", bits=16, columns=17, shifts=(32, 19, 2), constant=2023 << 19, point=34
    )
    monkeypatch.setattr("vitruvian.golden.functions.mufu._RCP", table)
    stored = int(STORED["rcp.approx.ftz.f32.sums"][254])
    assert functions_all.total("rcp.approx.ftz.f32", 254) != stored
    monkeypatch.setattr("sys.argv", ["functions_all", "--every", "600", "rcp.approx.ftz.f32"])
    monkeypatch.setattr(functions_all, "total", lambda name, block: 0)
    assert functions_all.main() == 1
    assert "0 of 2 blocks equal" in capsys.readouterr().out
    x = np.arange(1 << 17, dtype=np.int64)
    square = interpolation._squares(17, 0)
    assert np.array_equal(square, x * x)
    low = interpolation._squares(17, 19)
    assert (low <= square).all() and not (low & (1 << 19) - 1).any()


def test_there_are_as_many_coefficients_as_bits_of_the_publication():
    counts = {name: len(c[0]) for name, c in interpolation._tables().items()}
    assert counts == dict.fromkeys(counts, 64) | {"rcp": 128} and len(counts) == 8
    for name, columns in interpolation._tables().items():
        bits = [int(np.abs(column).max()).bit_length() for column in columns]
        assert bits[0] <= 26 and bits[1] <= 16 and bits[2] <= 10 + (name == "sin"), name


def test_functions_are_close_and_of_any_shape():
    x = np.linspace(0.1, 9, 60, dtype=np.float32).reshape(3, 4, 5)
    for name, exact in (("ex2", np.exp2), ("lg2", np.log2), ("sqrt", np.sqrt), ("sin", np.sin)):
        y = functions.compute(f"{name}.approx.f32", x[:, ::2])
        np.testing.assert_allclose(y, exact(x[:, ::2].astype(float)), rtol=1e-6, atol=1e-6)
        assert y.dtype == np.float32
    assert functions.compute("cos.approx.f32", np.zeros(0, np.float32)).shape == (0,)
    assert set(functions.__all__) < set(dir(functions))
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        functions.other  # noqa: B018


def test_what_has_no_rule_is_refused():
    x = np.ones(1, np.float32)
    for name in functions.missing():
        with pytest.raises(UserError, match=f"with a known rule, not {name}"):
            functions.compute(name, x)
    with pytest.raises(UserError, match="must be one of ex2"):
        functions.compute("exp", x)
    with pytest.raises(TypeError, match="x must be of float16, not float32"):
        functions.compute("ex2.approx.f16", x)
    recorded = {n.removesuffix(".sums") for n in STORED if n.endswith(".sums")}
    recorded |= {n for n in STORED if n.endswith(("f16", "bf16"))}
    assert recorded == {*functions.instructions(), *functions.missing()}

"""Arrays of vitruvian cce: generated arguments, and comparison with expected results."""

from dataclasses import dataclass

import numpy as np
import pytest

from vitruvian.cli import main
from vitruvian.common.errors import UserError
from vitruvian.golden import vector
from vitruvian.wings.ascend.cce_arrays import ExpectedArray, array_argument, expectations

SEED = (0, 0)

KERNEL = """__global__ __aicore__ void k(__gm__ uint8_t *in, __gm__ half *y, int32_t n) {
    __gm__ half *x = (__gm__ half *)in;
    for (int i = 0; i < n; i++) y[i] = x[i] + (half)1;
}
"""


@pytest.mark.parametrize(
    ("text", "dtype", "expected"),
    [
        ("zeros:3", "int8", np.zeros(3, np.int8)),
        ("zeros:fp16:3", "uint8", np.zeros(3, np.float16)),
        ("arange:3", "fp32", np.array([0, 1, 2], np.float32)),
        ("arange:bf16:3", "uint8", np.array([0, 0x3F80, 0x4000], np.uint16)),
        ("normal:4:7", "fp16", np.random.default_rng(7).normal(size=4).astype(np.float16)),
        ("normal:fp32:4", "uint8", np.random.default_rng([0, 0]).normal(size=4).astype("f4")),
        ("normal:4:7", "int32", np.rint(np.random.default_rng(7).normal(size=4)).astype("i4")),
        ("uniform:4:7", "fp32", np.random.default_rng(7).uniform(-1, 1, 4).astype("f4")),
        ("null", "fp16", None),
    ],
)
def test_generated_arrays(text, dtype, expected):
    array = array_argument("x", text, dtype, SEED)
    if expected is None:
        assert array is None
    else:
        assert array is not None and array.dtype == expected.dtype
        assert array.tobytes() == expected.tobytes()


def test_random_arrays():
    codes = array_argument("x", "normal:bf16:1000:3", "uint8", SEED)
    assert codes is not None and codes.dtype == np.uint16
    values = np.random.default_rng(3).normal(size=1000).astype(np.float32)
    assert (codes == vector.convert(values, "fp32", "bf16")).all()
    full = array_argument("x", "uniform:1000", "int8", SEED)
    assert full is not None and full.min() < -120 and full.max() > 120
    one, other = (array_argument("x", "normal:9", "fp16", (0, n)) for n in (0, 1))
    assert one is not None and other is not None and (one != other).any()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("normal:fp99:8", "--arg x=normal:DTYPE:N must have a dtype of fp16, "),
        ("normal:fp16", "--arg x=normal:N must have 1 to 268435456 elements, not 'fp16'"),
        ("normal:fp16:0", "--arg x=normal:N must have 1 to 268435456 elements, not '0'"),
        ("normal:8:x", "--arg x=normal:8 must end in a seed, a whole number, not in 'x'"),
        ("normal:8:1:2", "--arg x=normal:8 must end in a seed, a whole number, not in '2'"),
        ("zeros:8:1", "--arg x=zeros:8 must end after N, not in '1'"),
        ("zeros", "--arg x=zeros:N must have 1 to 268435456 elements, not ''"),
        ("normal:8", "--arg x=normal:N must have a signed dtype, such as normal:fp16:8, not uint8"),
        ("ones:8", "--arg x must be a file .npy, zeros:N, arange:N, normal:N, uniform:N"),
        ("no.npy", "--arg x must be a file .npy, not 'no.npy': No such file or directory"),
    ],
)
def test_mistakes_in_an_array(text, message):
    with pytest.raises(UserError) as caught:
        array_argument("x", text, "uint8", SEED)
    assert str(caught.value).startswith(message)


def compared(result, values, *, rtol=None, atol=None, is_bf16=False):
    return ExpectedArray("y", "ref.npy", np.asarray(values), is_bf16, rtol, atol).compare(result)


def test_bits_are_compared_without_a_tolerance():
    zeros = np.array([0.0, 1.0], np.float16)
    assert compared(zeros, zeros) == (0, "y: all 2 elements equal those of ref.npy")
    assert compared(zeros, -zeros) == (
        2,
        "y: 2 of 2 elements differ from ref.npy; the first is element 0: 0.0 (0x0000), "
        "expected -0.0 (0x8000)",
    )
    nans = np.array([0x7E00, 0x7E01], np.uint16).view(np.float16)
    assert compared(nans, nans)[0] == 0, "a NaN equals itself"
    assert compared(nans, nans[::-1].copy())[0] == 2, "and no NaN with another payload"


def test_tolerances():
    result = np.array([1.0, 2.0, np.inf, np.nan, -np.inf, 5.0], np.float32)
    values = np.array([1.1, 2.1, np.inf, np.nan, np.inf, np.nan])
    assert compared(result, values, rtol=0.1)[0] == 2
    count, line = compared(result, values, atol=0.05)
    assert count == 4 and "element 0: 1.0 (0x3f800000), expected 1.1 (0x3ff199999999999a)" in line
    assert compared(result[:2], values[:2], rtol=0.02, atol=0.09)[0] == 0
    assert compared(result[:2], values[:2], rtol=0.0)[0] == 2
    finite, infinite = np.zeros(1, np.float32), np.full(1, np.inf)
    assert compared(finite, infinite, rtol=1.0)[0] == 1, "an infinite bound accepts nothing"
    halves = np.array([0x3F80, 0x4000], np.uint16)
    assert compared(halves, np.array([1.0, 2.01]), rtol=0.01, is_bf16=True)[0] == 0
    count, line = compared(halves, np.array([1.0, 3.0]), rtol=0.01, is_bf16=True)
    assert count == 1 and "element 1: 2.0 (0x4000), expected 3.0" in line


@dataclass
class Parameter:
    """A stand-in for a kernel's parameter."""

    name: str
    dtype: str
    is_pointer: bool = True


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["y"], "--expect must be NAME=FILE, not 'y'"),
        (["n=ok.npy"], "--expect must be of one of y, not 'n'"),
        (["null=ok.npy"], "--expect must be of one of y, not 'null'"),
        (["y=ok.npy", "y=ok.npy"], "--expect y must be given once, not as 'y=ok.npy' again"),
        (["y=ok.txt"], "--expect y must be a file .npy, not 'ok.txt'"),
        (["y=no.npy"], "--expect y must be a file .npy, not 'no.npy': No such file or directory"),
        (["y=long.npy"], "--expect y must have 8 elements, not 9"),
        (["y=wide.npy"], "--expect y must have float16, not float32 (or give --rtol or --atol)"),
        (["y=text.npy"], "--expect y must have float16, not <U1 (or give --rtol or --atol)"),
    ],
)
def test_mistakes_in_an_expectation(texts, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arrays = {"ok": np.zeros(8, np.float16), "long": np.zeros(9, np.float16)}
    arrays |= {"wide": np.zeros(8, np.float32), "text": np.array(list("abcdefgh"))}
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    parameters = [Parameter("y", "fp16"), Parameter("n", "int32", False), Parameter("null", "fp16")]
    arguments = {"y": np.zeros((2, 4), np.float16), "n": 3, "null": None}
    with pytest.raises(UserError) as caught:
        expectations(texts, parameters, arguments, rtol=None, atol=None)
    assert str(caught.value) == message


def test_the_command_compares(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.cce").write_text(KERNEL)
    x = np.random.default_rng(5).normal(size=4).astype(np.float16)
    np.save("ref.npy", x + np.float16(1))
    np.save("off.npy", np.where(np.arange(4) == 2, x, x + np.float16(1)))
    words = ["cce", "k.cce", "--arg", "in=normal:fp16:4:5", "--arg", "y=zeros:4", "--arg", "n=4"]
    assert main([*words, "--expect", "y=ref.npy"]) == 0
    assert "y: all 4 elements equal those of ref.npy" in capsys.readouterr().out
    assert main([*words, "--expect", "y=off.npy"]) == 1
    assert "y: 1 of 4 elements differ from off.npy; the first is element 2: " in (
        capsys.readouterr().out
    )
    assert main([*words, "--expect", "y=off.npy", "--rtol", "0", "--atol", "1"]) == 0
    assert main([*words, "--atol", "1"]) == 2
    assert capsys.readouterr().err == "error: --atol must come with --expect\n"

"""The reader of Matrix Market files equals SciPy's, and names the line of every mistake."""

import bz2
import gzip
import io
import re
import tracemalloc
from typing import Any, cast

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from hypothesis import given, settings, strategies

from vitruvian.common import compiling, matrix_market
from vitruvian.common.errors import UserError
from vitruvian.sim.sparse.matrix_market import read_matrix

HEAD = "%%MatrixMarket matrix coordinate real general\n"


def read(tmp_path, text, **options):
    path = tmp_path / "matrix.mtx"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_matrix(path, **options)


def same_as_scipy(ours, text):
    theirs = cast(Any, scipy.io.mmread(io.StringIO(text)))
    theirs = theirs if isinstance(theirs, np.ndarray) else theirs.toarray()
    return ours.shape == theirs.shape and (ours.dense() == theirs).all()


@pytest.mark.parametrize("field", ["real", "integer", "pattern", "double", "unsigned-integer"])
@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
@pytest.mark.parametrize("form", ["coordinate", "array"])
def test_every_form_equals_scipy(tmp_path, form, field, symmetry):
    if "unsigned" in field and symmetry == "skew-symmetric":
        pytest.skip("SciPy cannot negate unsigned numbers")
    if field == "pattern" and (form == "array" or symmetry == "skew-symmetric"):
        with pytest.raises(UserError, match=r"not pattern \(line 1\)"):
            read(tmp_path, f"%%MatrixMarket matrix {form} {field} {symmetry}\n1 1 0\n")
        return
    rng = np.random.default_rng(1)
    size, lines = 7, []
    for column in range(size):
        begin = {"general": 0, "symmetric": column, "skew-symmetric": column + 1}[symmetry]
        for row in range(begin, size):
            value = {"real": repr(rng.standard_normal()), "double": f"{rng.random():.3e}"}.get(
                field, str(rng.integers(0, 9))
            )
            value = "" if field == "pattern" else value
            place = "" if form == "array" else f"{row + 1} {column + 1} "
            if form == "array" or rng.random() < 0.4:
                lines.append(place + value)
    sizes = f"{size} {size}" + (f" {len(lines)}" if form == "coordinate" else "")
    head = f"%%MatrixMarket matrix {form} {field} {symmetry}"
    text = "\n".join([head, "% a comment", sizes, *lines]) + "\n"
    ours = read(tmp_path, text)
    assert same_as_scipy(ours, text) and ours.nonzeros > 5
    if symmetry == "symmetric":  # either triangle may be the one that is stored
        swapped = [" ".join([w[1], w[0], *w[2:]]) for w in map(str.split, lines) if len(w) > 1]
        if swapped:
            assert same_as_scipy(read(tmp_path, "\n".join([head, sizes, *swapped])), text)


NUMBERS = """
0 -0 +0.0 1 -1 .5 5. 1e5 1E-5 1e+05 00012.500 123456789012345678 1234567890123456789
12345678901234567890 9007199254740992 9007199254740993 9007199254740995 0.1 1e22 1e23 1e-22 1e-23
3e22 179769313486231570814e288 2.2250738585072011e-308 4.9e-324 1e-400 0e999 1e-99999999999999
0.000000000000000000000000000000123 123456789012345678e-17 8.98846567431158e307
17976931348623157e292
0.30000000000000004 100000000000000000000000000000000000000000000000000000000000000000000000000
2.22507385850720113605740979670913197593481954635164564e-308
""".split()


@pytest.mark.parametrize("small", [0, 1 << 20])  # compiled, and as plain Python
def test_numbers_have_the_bits_of_python(tmp_path, monkeypatch, small):
    monkeypatch.setattr(compiling, "SMALL", small)
    lines = [f"1 {place + 1} {number}" for place, number in enumerate(NUMBERS)]
    text = f"{HEAD}1 {len(lines)} {len(lines)}\n" + "\n".join(lines)
    ours = read(tmp_path, text).row_values
    assert ours.tobytes() == np.array([float(number) for number in NUMBERS]).tobytes()


@settings(max_examples=25)
@given(strategies.lists(strategies.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_floats_survive(tmp_path_factory, numbers):
    folder = tmp_path_factory.mktemp("floats")
    for form in (repr, lambda x: f"{x:.17e}", lambda x: f"{x:.25g}"):
        lines = [f"{place + 1} 1 {form(number)}" for place, number in enumerate(numbers)]
        text = f"{HEAD}{len(lines)} 1 {len(lines)}\n" + "\n".join(lines)
        assert read(folder, text).row_values.tobytes() == np.array(numbers).tobytes()


def _random_words(rng, count):
    digits = rng.integers(1, 10**19, count, np.uint64) >> rng.integers(0, 20, count, np.uint64)
    exponents = rng.integers(-64, 65, count).tolist()
    return [
        *(f"{n}e{q}" for n, q in zip(digits.tolist(), exponents, strict=True)),
        *(repr(x) for x in rng.standard_normal(count).tolist()),
    ]


def _ties(rng, count):
    """Return halves of a last place, which round to even, and their neighbours."""
    halves = (rng.integers(1 << 53, 1 << 54, count) | 1).tolist()
    wholes = [str((half << k) + by) for k in (0, 7) for half in halves for by in (-1, 0, 1)]
    return wholes + [f"{half * 5**3}e-3" for half in halves]


@pytest.mark.parametrize(("words_of", "most"), [(_random_words, 0.01), (_ties, 1)])
def test_many_numbers_have_the_bits_of_python(tmp_path, monkeypatch, words_of, most):
    """The scanner rounds most of them, and leaves the others to NumPy."""
    rest: list[int] = []
    convert = matrix_market._convert

    def counted(content, values, entries, *places):
        rest.append(len(entries))
        convert(content, values, entries, *places)

    monkeypatch.setattr(matrix_market, "_convert", counted)
    words = words_of(np.random.default_rng(5), 50_000)
    lines = "".join(f"{row + 1} 1 {word}\n" for row, word in enumerate(words))
    ours = read(tmp_path, f"{HEAD}{len(words)} 1 {len(words)}\n{lines}").row_values
    assert ours.tobytes() == np.array([float(word) for word in words]).tobytes()
    assert 0 < sum(rest) < most * len(words)


def test_infinities_where_they_are_allowed(tmp_path):
    path = tmp_path / "matrix.mtx"
    words = ["inf", "-Inf", "+INFINITY", "1", "-infinity"]
    for repeat in (1, 100):
        lines = "".join(f"{word}\n" for word in words * repeat)
        path.write_text(ARRAY + f"{len(words) * repeat} 1\n{lines}")
        entries = matrix_market.read_entries(path, infinite=True)
        assert entries.is_dense and entries.shape == (len(words) * repeat, 1)
        assert entries.toarray()[:, 0].tolist() == [float(word) for word in words] * repeat
    for word in ("nan", "infi", "in", "+-inf", "inf1", "infinityx", "-"):
        path.write_text(HEAD + f"2 2 1\n1 1 {word}    \n")
        message = rf"^value must be a number or infinite, not '{re.escape(word)}' \(line 3\)$"
        with pytest.raises(UserError, match=message):
            matrix_market.read_entries(path, infinite=True)


def test_numbers_in_several_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(matrix_market, "_CHUNK", 3)
    numbers = np.random.default_rng(2).standard_normal(100)
    text = f"{HEAD}100 100 100\n" + "".join(
        f"{k + 1} 1 {x!r}\n" for k, x in enumerate(numbers.tolist())
    )
    assert (read(tmp_path, text).row_values == numbers).all()


def test_blanks_line_ends_and_packing(tmp_path):
    text = "%%matrixmarket MATRIX Coordinate Real General\r\n\r\n%c\r\n"
    text += " \t2 3  2\r\n\r\n\t1 3 5\r\n2  1\t-1e0 \r\n\r\n"
    expected = [[0, 0, 5], [-1, 0, 0]]
    assert read(tmp_path, text).dense().tolist() == expected
    assert read(tmp_path, text.strip()).dense().tolist() == expected
    assert read(tmp_path, gzip.compress(text.encode())).dense().tolist() == expected
    assert read(tmp_path, bz2.compress(text.encode())).dense().tolist() == expected


def test_duplicates_follow_the_rule(tmp_path):
    text = HEAD + "2 2 4\n2 1 3\n1 1 1\n2 1 4\n2 1 -5\n"
    assert read(tmp_path, text).dense()[1, 0] == 2
    assert read(tmp_path, text, duplicates="min").dense()[1, 0] == -5
    assert read(tmp_path, text).nonzeros == 2


def test_zeros_are_stored_but_not_those_of_arrays(tmp_path):
    assert read(tmp_path, HEAD + "2 2 1\n1 2 0\n").nonzeros == 1
    array = "%%MatrixMarket matrix array real general\n2 2\n1\n0\n0\n2\n"
    assert read(tmp_path, array).nonzeros == 2


def test_matrices_without_elements(tmp_path):
    assert read(tmp_path, HEAD + "0 0 0\n").shape == (0, 0)
    assert read(tmp_path, HEAD + "3 2 0").shape == (3, 2)
    assert read(tmp_path, "%%MatrixMarket matrix array real general\n0 4\n").shape == (0, 4)


SYMMETRIC = "%%MatrixMarket matrix coordinate real symmetric\n"
SKEW = "%%MatrixMarket matrix coordinate real skew-symmetric\n"
PATTERN = "%%MatrixMarket matrix coordinate pattern general\n"
WHOLE = "%%MatrixMarket matrix coordinate integer general\n"
ARRAY = "%%MatrixMarket matrix array real general\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1 must begin with %%MatrixMarket, not ''"),
        ("1 2 3\n", "line 1 must begin with %%MatrixMarket, not '1 2 3'"),
        ("%%MatrixMarket matrix\n", "line 1 must be '%%MatrixMarket matrix FORMAT FIELD SYMMETRY'"),
        (HEAD.replace("matrix c", "vector c"), "object must be matrix, not 'vector' (line 1)"),
        (HEAD.replace("coordinate", "list"), "format must be coordinate or array, not 'list'"),
        (HEAD.replace("real", "complex"), "integer or unsigned-integer or pattern, not 'complex'"),
        (HEAD.replace("general", "hermitian"), "or skew-symmetric, not 'hermitian' (line 1)"),
        (HEAD, "line of sizes is missing"),
        (HEAD + "% only\n\n", "line of sizes is missing"),
        (HEAD + "%\n2 2\n", "sizes must be rows, columns and entries, not '2 2' (line 3)"),
        (HEAD + "2 2 -1\n", "not '2 2 -1' (line 2)"),
        (HEAD + "2 2.0 1\n", "not '2 2.0 1' (line 2)"),
        (HEAD + "2 2147483648 0\n", "sizes must be less than 2147483648, not '2 2147483648 0'"),
        (ARRAY + "2 2 4\n1\n", "sizes must be rows and columns, not '2 2 4' (line 2)"),
        (SYMMETRIC + "2 3 0\n", "symmetric matrix must be square, not 2 by 3 (line 2)"),
        (HEAD + "2 2 99\n1 1 1\n", "99 entries must follow line 2, but the file ends 7 bytes"),
        (HEAD + "9 9 2\n1 1 1.000000\n", "2 entries must follow the sizes, not 1"),
        (HEAD + "9 9 1\n1 1 1\n\n2 2 2\n", "1 entries must follow the sizes, not more (line 5)"),
        (HEAD + "2 3 1\n3 1 1\n", "row must be between 1 and 2, not '3' (line 3)"),
        (HEAD + "2 3 2\n1 1 1\n0 1 1\n", "row must be between 1 and 2, not '0' (line 4)"),
        (HEAD + "2 3 1\n1 4 1\n", "column must be between 1 and 3, not '4' (line 3)"),
        (HEAD + "2 3 1\n1 -1 1\n", "column must be between 1 and 3, not '-1' (line 3)"),
        (HEAD + "2 3 1\n1.5 1 1\n", "row must be between 1 and 2, not '1.5' (line 3)"),
        (HEAD + "2 3 1\n99999999999999999999999 1 1\n", "not '99999999999999999999999' (line 3)"),
        (HEAD + "2 3 1\n%1 1 1\n", "row must be between 1 and 2, not '%1' (line 3)"),
        (HEAD + "2 3 1\n1 1     \n", "entry must be row, column and value, not '1 1' (line 3)"),
        (HEAD + "2 3 1\n1       ", "entry must be row, column and value, not '1' (line 3)"),
        (HEAD + "2 3 1\n1 1 1 1\n", "entry must be row, column and value, not '1 1 1 1' (line 3)"),
        (HEAD + "2 3 1\n1 1 nan\n", "value must be a finite number, not 'nan' (line 3)"),
        (HEAD + "2 3 1\n1 1 -inf\n", "value must be a finite number, not '-inf' (line 3)"),
        (HEAD + "2 3 1\n1 1 1e999\n", "value must be less than 1.8e308, not '1e999' (line 3)"),
        (HEAD + "2 3 1\n1 1 1_0\n", "value must be a finite number, not '1_0' (line 3)"),
        (HEAD + "2 3 1\n1 1 1,5\n", "value must be a finite number, not '1,5' (line 3)"),
        (HEAD + "2 3 1\n1 1 1e\n", "value must be a finite number, not '1e' (line 3)"),
        (HEAD + "2 3 1\n1 1 .\n", "value must be a finite number, not '.' (line 3)"),
        (HEAD + "2 3 1\n1 1 --1\n", "value must be a finite number, not '--1' (line 3)"),
        (HEAD + "2 3 1\n1 1 1\0\n", r"value must be a finite number, not '1\x00' (line 3)"),
        (WHOLE + "2 3 1\n1 1 1.5\n", "value must be a whole number, not '1.5' (line 3)"),
        (PATTERN + "2 3 1\n1 1 1\n", "entry must be row and column, not '1 1 1' (line 3)"),
        (ARRAY + "2 1\n1\n2 3\n", "entry must be value, not '2 3' (line 4)"),
        (ARRAY + "2 1\n1\n", "2 entries must follow line 2, but the file ends 3 bytes later"),
        (ARRAY + "2 1\n1.00000\n", "2 values must follow the sizes, not 1"),
        (SKEW + "2 2 1\n1 1 1\n", "matrix must have no entry on the diagonal (line 3)"),
        (
            SYMMETRIC + "3 3 3\n2 1 1\n1 1 1\n1 2 1\n",
            "entries of a symmetric matrix must be in one triangle, not '1 2 1' (line 5)",
        ),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_line(tmp_path, text, message):
    with pytest.raises(UserError) as caught:
        read(tmp_path, text)
    path, _, said = str(caught.value).partition(".mtx: ")
    assert message in said and path.endswith("matrix") and "\n" not in said


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(UserError, match="No such file"):
        read_matrix(tmp_path / "none.mtx")
    with pytest.raises(UserError, match="not a folder"):
        read_matrix(tmp_path)
    whole = gzip.compress((HEAD + "2 2 1\n1 1 1\n").encode())
    with pytest.raises(UserError, match="end-of-stream"):
        read(tmp_path, whole[:-12])
    with pytest.raises(UserError, match="line 1 must begin"):
        read(tmp_path, b"\x00\xff\xfe")


def test_a_matrix_that_does_not_fit_into_memory_is_refused(tmp_path, monkeypatch):
    text = HEAD + "2000000000 3 1\n1 1 1\n"
    monkeypatch.setattr(matrix_market, "free_bytes", lambda: 1 << 30)
    with pytest.raises(UserError, match=r"free memory of 1024 MiB, not 2000000000 by 3 .*line 2"):
        read(tmp_path, text)
    monkeypatch.setattr(matrix_market, "free_bytes", lambda: 3 << 20)
    with pytest.raises(UserError, match="matrix must have at most 1 MiB, not 2 MiB"):
        read(tmp_path, HEAD + "%" * (2 << 20))


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_a_bomb_is_refused_before_it_takes_memory(tmp_path, pack, monkeypatch):
    monkeypatch.setattr(matrix_market, "MOST_BYTES", 1 << 20)
    packed = pack(HEAD.encode() + b"%" * (30 << 20))
    tracemalloc.start()
    with pytest.raises(UserError, match="must unpack to at most 1 MiB; unpack a larger one first"):
        read(tmp_path, packed)
    assert tracemalloc.get_traced_memory()[1] < 12 << 20
    tracemalloc.stop()


def test_devices_are_refused():
    with pytest.raises(UserError, match="/dev/zero: matrix must be a file, not a device"):
        read_matrix("/dev/zero")


def test_random_matrices_that_scipy_writes(tmp_path):
    rng = np.random.default_rng(3)
    for seed in range(20):
        shape = (int(rng.integers(1, 40)), int(rng.integers(1, 40)))
        theirs = scipy.sparse.random_array(shape, density=0.2, rng=np.random.default_rng(seed))
        path = tmp_path / "written.mtx"
        scipy.io.mmwrite(path, theirs, precision=int(rng.integers(3, 18)))
        expected = cast(Any, scipy.io.mmread(path)).toarray()
        assert (read_matrix(path).dense() == expected).all()

"""vitruvian.ops compared with PyTorch itself, if it is installed.

``tests/support/against_torch.py`` draws the cases; a longer run is a loop over further seeds.
"""

import numpy as np
import pytest

from tests.support.against_torch import COMPARISONS, avg_pool2d, conv2d, max_pool2d, unfold_and_fold
from vitruvian import ops

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

#: Random cases of each function.
CASES = 12


@pytest.mark.parametrize("compare", COMPARISONS, ids=lambda compare: compare.__name__)
def test_random_cases_equal_pytorch(compare):
    different = [
        f"seed {seed}: {found}"
        for seed in range(CASES)
        if (found := compare(np.random.default_rng(seed)))
    ]
    assert not different, "\n".join(different)


def _noticed(compare):
    return any(compare(np.random.default_rng(seed)) for seed in range(CASES))


@pytest.mark.parametrize(
    ("compare", "name", "change"),
    [
        (max_pool2d, "max_pool2d", lambda y: (y[0], y[1] + 1)),
        (max_pool2d, "max_pool2d_backward", lambda y: y + np.float16(1)),
        (avg_pool2d, "avg_pool2d", lambda y: y * np.float16(1.01)),
        (avg_pool2d, "avg_pool2d_backward", lambda y: y * np.float16(1.1)),
        # Two units in the last place of FP16.
        (conv2d, "conv2d", lambda y: y * np.float16(1 + 2.0**-9)),
        (unfold_and_fold, "unfold", lambda y: np.roll(y, 1, axis=2)),
        (unfold_and_fold, "fold", lambda y: y * np.float16(1.01)),
    ],
)
def test_the_comparison_notices_other_results(compare, name, change, monkeypatch):
    whole = getattr(ops, name)
    monkeypatch.setattr(ops, name, lambda *a, **o: change(whole(*a, **o)))
    assert _noticed(compare)


def test_a_refusal_by_one_side_is_noticed(monkeypatch):
    def refuse(*_args, **_options):
        raise ValueError("refused")

    monkeypatch.setattr(ops, "unfold", refuse)
    with pytest.raises(AssertionError, match="ours: refused, PyTorch: None"):
        _noticed(unfold_and_fold)


def _pytorch(x, kernel):
    wide = torch.from_numpy(x).requires_grad_()
    y, where = torch.nn.functional.max_pool2d(wide, kernel, return_indices=True)
    y.sum().backward()
    return y.detach().flatten().tolist(), where.flatten().tolist(), wide.grad.flatten().tolist()


def test_special_values_differ_as_the_documentation_says():
    """The table of docs/units/pooling.md; the test of the pooling functions has our side."""
    nan, inf = np.nan, np.inf
    row = lambda *values: np.array([[[values]]], np.float16)  # noqa: E731
    y, where, grad = _pytorch(row(1, nan, 3, nan), (1, 4))
    # The NaN, the index of the last one, which gets the gradient.
    assert np.isnan(y).all() and where == [3] and grad == [0, 0, 0, 1]
    y, where, _ = _pytorch(row(-0.0, 0.0), (1, 2))
    assert np.signbit(y).all() and where == [0]
    y, where, grad = _pytorch(row(-inf, -inf), (1, 2))
    assert y == [-inf] and where == [0] and grad == [1, 0]
    pool = torch.nn.functional.avg_pool2d
    assert pool(torch.from_numpy(row(65504, 65504)), (1, 2)).item() == 65504
    assert ops.avg_pool2d(row(65504, 65504), (1, 2)).item() == inf
    for values in ((inf, 1), (inf, -inf), (nan, 1), (-0.0, -0.0)):
        x = row(*values)
        same = ops.avg_pool2d(x, (1, 2)), pool(torch.from_numpy(x), (1, 2)).numpy()
        assert np.array_equal(*same, equal_nan=True) and not np.signbit(same[0]).item()
    patterns = np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(1, 16, 64, 64)
    columns = torch.nn.functional.unfold(torch.from_numpy(patterns), (2, 1), 1, 0, (2, 1))
    assert ops.unfold(patterns, (2, 1), 1, 0, (2, 1)).tobytes() == columns.numpy().tobytes()

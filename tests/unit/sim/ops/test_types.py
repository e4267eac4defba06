"""The types that a checker sees: pyright reads this file, pytest runs it."""

from typing import assert_type, get_overloads

import numpy as np
import pytest

from vitruvian import ops
from vitruvian.sim.davinci import Report

X = np.ones((1, 4, 4), np.float16)


def test_the_types_of_results_follow_from_the_options():
    assert_type(ops.max_pool2d(X, 2), np.ndarray)
    assert_type(ops.max_pool2d(X, 2, return_indices=True), tuple[np.ndarray, np.ndarray])
    y, where, report = ops.max_pool2d(X, 2, return_indices=True, report=True)
    assert_type(report, Report)
    assert y.shape == where.shape == (1, 2, 2) and report.total_s > 0
    assert_type(ops.avg_pool2d(X, 2, report=True), tuple[np.ndarray, Report])
    assert_type(ops.max_pool2d_backward(y, X, 2), np.ndarray)
    assert_type(ops.avg_pool2d_backward(y, X, 2), np.ndarray)
    assert_type(ops.conv2d(X, np.ones((1, 1, 2, 2), np.float16)), np.ndarray)
    columns = ops.unfold(X, 2)
    assert_type(columns, np.ndarray)
    assert_type(ops.fold(columns, 4, 2), np.ndarray)
    assert_type(ops.taylor(["sin"], X), np.ndarray)
    points = np.eye(3, dtype=np.float16)
    assert_type(ops.knn(points, points, 1), tuple[np.ndarray, np.ndarray])


@pytest.mark.parametrize("name", ops.__all__)
def test_every_operator_has_a_type_with_and_without_its_report(name):
    given = {str(one.__annotations__["report"]) for one in get_overloads(getattr(ops, name))}
    assert given == {"typing.Literal[False]", "typing.Literal[True]", str(bool)}

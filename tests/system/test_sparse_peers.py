"""The benchmark of sparse applications beside other libraries: its answers and its check."""

import importlib.util
import sys
from types import ModuleType

import numpy as np
import pytest
import scipy.sparse

CHECKED = ("bfs", "sssp", "components", "kcore", "triangles", "mxm")


@pytest.fixture
def peers(root, monkeypatch) -> ModuleType:
    """Return the benchmark, which imports another one from its own folder."""
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    path = root / "benchmarks" / "sparse_peers.py"
    spec = importlib.util.spec_from_file_location("sparse_peers", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "sparse_peers", module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("grid", [False, True])
def test_the_answers_of_scipy_and_networkx_are_ours(grid, peers, capsys, monkeypatch):
    def absent(*_) -> None:
        raise ImportError("No module named 'pyalp'")

    monkeypatch.setitem(peers.CANDIDATES, "alp-graphblas", ("alp-graphblas", absent))
    for name in ("igraph", "python-graphblas"):
        monkeypatch.delitem(peers.CANDIDATES, name)
    a = peers.graph(144, 6, grid=grid)
    header, *rows = peers.compare(a, 1)
    assert header == ["problem", "ours [ms]", "SciPy [ms]", "NetworkX [ms]", "ours / SciPy"]
    assert [row[0] for row in rows] == list(peers.PROBLEMS)
    assert all(row[1] and (row[2] or row[0] == "kcore") for row in rows)
    printed = capsys.readouterr().out
    assert "alp-graphblas is left out: alp-graphblas is not installed (No module named" in printed


@pytest.mark.parametrize("problem", [*CHECKED, "pagerank", "cg", "bicgstab", "gmres"])
def test_a_wrong_answer_ends_the_benchmark(problem, peers, monkeypatch, capsys):
    """One element of SciPy's or NetworkX' answer is changed by a thousandth, or by one."""
    a = peers.graph(144, 6, grid=True)
    whole = peers.networkx if problem == "kcore" else peers.scipy

    def wrong(*arguments) -> dict:
        cases = whole(*arguments)
        call, convert = cases[problem]

        def changed(answer):
            found = convert(answer)
            if isinstance(found, int):
                return found - 1
            if scipy.sparse.issparse(found):
                found.data[7] += 1e-3
                return found
            found = np.array(found, float)
            found[7] += 1e-3
            return found

        return cases | {problem: (call, changed)}

    name = "NetworkX" if problem == "kcore" else "SciPy"
    kept = {"ours": peers.CANDIDATES["ours"], name: ("x", wrong)}
    monkeypatch.setattr(peers, "CANDIDATES", kept)
    monkeypatch.setattr(peers, "PROBLEMS", (problem,))
    with pytest.raises(SystemExit, match=f"{problem} of {name} must have our answer"):
        peers.compare(a, 1)

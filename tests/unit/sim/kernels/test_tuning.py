"""Tilings of the matrix product: fast programs, bounds, both searches."""

import json
import os
import signal
import threading
from dataclasses import fields, replace
from time import monotonic

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from vitruvian.cli import main
from vitruvian.sim.davinci import load_chip, simulate
from vitruvian.sim.davinci.chip.file import find_chip
from vitruvian.sim.davinci.timing import engine
from vitruvian.sim.davinci.timing.lowering import lower
from vitruvian.sim.kernels import matmul, search
from vitruvian.sim.kernels.bounds import lower_bound
from vitruvian.sim.kernels.search import TilingSearch, exhaustive, guided, tune
from vitruvian.sim.kernels.sequences import lower_matmul
from vitruvian.sim.kernels.tiling import Tiling, blocks_of, plan

C310, C910 = load_chip("ascend310"), load_chip("ascend910")
SMALL = TilingSearch(64, 96, 64)


def drawn(chip, blocks, data, cores):
    """Draw a tiling that fits; return it and its plan."""
    m, k, n = (data.draw(st.integers(1, b)) for b in blocks)
    tiling = Tiling(m, k, n, data.draw(st.integers(1, 8)))
    try:
        return tiling, plan(chip, blocks, tiling, cores)
    except ValueError:
        reject()


@settings(max_examples=25)
@given(st.tuples(*[st.integers(1, 12)] * 3), st.data())
def test_sequences_are_the_program_and_bounds_hold(blocks, data):
    m, k, n = (16 * b - 3 for b in blocks)
    cores = data.draw(st.integers(1, 4))
    tiling, p = drawn(C910, blocks, data, cores)
    lowered = lower(matmul.build(m, k, n, chip=C910, tiling=tiling, cores=cores))[0]
    other = lower_matmul(C910, p)
    for f in fields(lowered):
        assert np.array_equal(getattr(lowered, f.name), getattr(other, f.name)), f.name
    total = engine.run(lowered).total
    assert lower_bound(C910, p) <= total * (1 + 1e-8)


@settings(max_examples=15)
@given(st.tuples(*[st.integers(1, 10)] * 3), st.data())
def test_bounds_hold_on_the_310(blocks, data):
    _, p = drawn(C310, blocks, data, 2)
    total = engine.run(lower_matmul(C310, p)).total
    assert lower_bound(C310, p) <= total * (1 + 1e-8)


def test_a_bound_that_is_too_high_is_noticed():
    """The bound is tight enough to test: some program comes within two per cent of it."""
    tuned = []
    for tiling in (Tiling(1, 32, 2, 2), Tiling(2, 32, 2, 2)):
        p = plan(C310, blocks_of(96, 4096, 160), tiling, 2)
        tuned.append(lower_bound(C310, p) / engine.run(lower_matmul(C310, p)).total)
    assert max(tuned) > 0.98


@pytest.mark.parametrize(
    ("shape", "tiling"), [((16, 16, 16), Tiling(1, 1, 1, 1)), ((32, 64, 32), Tiling(1, 2, 1, 1))]
)
def test_the_bound_of_one_tile_is_its_time(shape, tiling):
    """Nothing overlaps in one tile; floating-point sums may differ by 10 attoseconds."""
    p = plan(C310, blocks_of(*shape), tiling, 1)
    assert abs(lower_bound(C310, p) - engine.run(lower_matmul(C310, p)).total) < 10


def test_exhaustive_times_every_tiling_and_the_engine_agrees():
    seen = []
    tuned = exhaustive(SMALL, jobs=1, watch=lambda done, total: seen.append((done, total)))
    assert tuned.proved and tuned.evaluated == tuned.space == seen[-1][0] == seen[-1][1]
    assert len(tuned.best) == 10
    assert [c.atto for c in tuned.best] == sorted(c.atto for c in tuned.best)
    best = tuned.best[0]
    report = simulate(matmul.build(64, 96, 64, tiling=best.tiling), cube=None)
    assert report.times.total == best.atto
    for tiling in (Tiling(1, 1, 1, 1), Tiling(4, 6, 4, 8), Tiling(2, 3, 2, 2)):
        program = matmul.build(64, 96, 64, tiling=tiling)
        assert simulate(program, cube=None).times.total >= best.atto


def test_two_processes_find_the_same():
    assert exhaustive(SMALL, jobs=2) == exhaustive(SMALL, jobs=1)


@pytest.mark.parametrize(
    "problem",
    [
        TilingSearch(256, 256, 256),
        TilingSearch(128, 1024, 96),
        TilingSearch(512, 64, 256, cores=1),
        TilingSearch(192, 320, 160, dtype="int8", out="int32"),
        TilingSearch(256, 128, 512, chip="ascend910", cores=4),
    ],
    ids=str,
)
def test_the_guided_search_finds_the_optimum_with_a_twentieth(problem):
    chip = load_chip(problem.chip)
    tilings = problem.tilings(chip)
    tuned = guided(problem)
    assert tuned.space == len(tilings)
    assert tuned.evaluated <= max(1, 0.05 * len(tilings))
    assert tuned.best[0].atto == min(problem.time(chip, t) for t in tilings)


def test_the_guided_search_says_when_it_has_proved():
    assert guided(SMALL, budget=1.0).proved
    full = guided(SMALL, budget=1.0)
    assert full.best[0].atto == exhaustive(SMALL, jobs=1).best[0].atto
    assert full.evaluated < full.space
    with pytest.raises(ValueError, match="budget must be above 0 and at most 1, not 0"):
        guided(SMALL, budget=0)


def test_any_integer_has_more_and_is_no_slower():
    some, more = exhaustive(SMALL, jobs=1), exhaustive(replace(SMALL, any_integer=True), jobs=1)
    assert more.space > some.space and more.best[0].atto <= some.best[0].atto


def test_results_are_cached_by_content(own_cache, monkeypatch, tmp_path):
    first = tune(SMALL, jobs=1)
    monkeypatch.setattr(search, "exhaustive", None)
    again = tune(SMALL, jobs=1)
    assert again.cached and not first.cached and again.best == first.best
    with pytest.raises(TypeError):  # another problem is searched for
        tune(replace(SMALL, m=65), jobs=1)
    chip = tmp_path / "mine.toml"
    text = find_chip("ascend310").read_text(encoding="utf-8")
    chip.write_text(text, encoding="utf-8")
    with pytest.raises(TypeError):  # so is one with another file
        tune(replace(SMALL, chip=str(chip)), jobs=1)


def test_mistakes_of_searches(monkeypatch):
    with pytest.raises(ValueError, match="method must be exhaustive or guided, not 'random'"):
        tune(SMALL, "random")
    with pytest.raises(ValueError, match="cores must be 1 … 2, not 7"):
        exhaustive(replace(SMALL, cores=7))
    monkeypatch.setitem(__import__("sys").modules, "dask.distributed", None)
    with pytest.raises(
        ValueError, match=r"scheduler must be None: dask must be installed: .*'\.\[dask\]'"
    ):
        exhaustive(SMALL, scheduler="tcp://nowhere:1")


def test_workers_of_a_dask_scheduler_find_the_same():
    distributed = pytest.importorskip("dask.distributed", reason="dask is not installed")
    with distributed.LocalCluster(
        n_workers=1, processes=False, protocol="tcp://", dashboard_address=None
    ) as cluster:
        there = exhaustive(SMALL, scheduler=cluster.scheduler_address)
    assert there == exhaustive(SMALL, jobs=1)


def test_workers_elsewhere_get_the_file_of_a_chip(tmp_path, monkeypatch):
    distributed = pytest.importorskip("dask.distributed", reason="dask is not installed")
    chip = tmp_path / "mine.toml"
    text = find_chip("ascend310").read_text(encoding="utf-8")
    chip.write_text(text.replace('name = "ascend310"', 'name = "mine"'), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    mine = replace(SMALL, chip="./mine.toml")
    submit = distributed.Client.submit

    def elsewhere(*args, **more):
        monkeypatch.chdir("/")  # a worker has another current folder
        return submit(*args, **more)

    monkeypatch.setattr(distributed.Client, "submit", elsewhere)
    with distributed.LocalCluster(
        n_workers=1, processes=False, protocol="tcp://", dashboard_address=None
    ) as cluster:
        there = exhaustive(mine, scheduler=cluster.scheduler_address)
    assert there == exhaustive(SMALL, jobs=1)


def _killed(problem, source, part):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_process_of_a_search_is_one_line(own_cache, monkeypatch, capsys):
    monkeypatch.setattr(search, "_portion", _killed)
    monkeypatch.setattr(search, "_PORTION", 1)
    assert main(["tune", "matmul", "--size", "64x96x64", "--jobs", "2"]) == 2
    error = capsys.readouterr().err
    assert "a process of the search was killed" in error and error.count("\n") == 1


@pytest.fixture
def cluster(monkeypatch):
    """Return a function that starts a Dask cluster in this process; shorten the time to answer."""
    distributed = pytest.importorskip("dask.distributed", reason="dask is not installed")
    monkeypatch.setattr(search, "ANSWER_S", 1.0)
    options = {"processes": False, "protocol": "tcp://", "dashboard_address": None}
    return lambda workers: distributed.LocalCluster(n_workers=workers, **options)


def test_a_scheduler_that_does_not_answer_is_refused_in_time(cluster, own_cache, capsys):
    began = monotonic()
    options = ["tune", "matmul", "--size", "64x96x64", "--scheduler", "tcp://127.0.0.1:1"]
    assert main(options) == 2 and monotonic() - began < 10
    error = capsys.readouterr().err
    assert "scheduler must be the address of a Dask scheduler that answers within 1 s" in error
    assert error.count("\n") == 1
    assert not [t for t in threading.enumerate() if "IO loop" in t.name and not t.daemon]


def test_a_scheduler_without_workers_is_given_up(cluster):
    with (
        cluster(0) as none,
        pytest.raises(search.SearchError, match="must run and have workers"),
    ):
        exhaustive(SMALL, scheduler=none.scheduler_address)


def test_a_scheduler_that_goes_away_is_given_up(cluster, monkeypatch):
    monkeypatch.setattr(search, "_PORTION", 1)
    began = monotonic()
    with cluster(1) as workers:
        address = workers.scheduler_address

        def watch(done, total):
            workers.close()

        with pytest.raises(search.SearchError, match="must run and have workers"):
            exhaustive(SMALL, scheduler=address, watch=watch)
    assert monotonic() - began < 30


def test_the_command(own_cache, capsys, tmp_path):
    file = tmp_path / "tuned.json"
    options = ["tune", "matmul", "--size", "64x96x64", "--jobs", "1", "--json", str(file)]
    assert main(options) == 0
    assert "the fastest there is" in capsys.readouterr().out
    tuned = json.loads(file.read_text())
    assert len(tuned["best"]) == 10 and not tuned["cached"]
    assert main([*options, "--method", "guided"]) == 0
    assert json.loads(file.read_text())["evaluated"] <= tuned["space"] * 0.05
    assert main(options) == 0 and "from the cache" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["relu", "--size", "1x1x1"], "KERNEL must be matmul, not 'relu'"),
        (["matmul", "--size", "16x16x16", "--chip", "z80"], "chip must be one of"),
        (["matmul", "--size", "16x16x16", "--dtype", "fp8"], "--dtype must be one of fp16, int8"),
        (
            ["matmul", "--size", "16x16x16", "--output-dtype", "int8"],
            "--output-dtype must be one of fp16, fp32",
        ),
        (["matmul", "--size", "16x16"], "--size must be MxKxN like 256x256x256, not 16x16"),
        (["matmul"], "--size must be MxKxN like 256x256x256, not nothing"),
        (["matmul", "--size", "16x16x16", "--chip", "ascend910b"], "cores with all units"),
        (
            ["matmul", "--size", "999999999x999999999x999999999"],
            "tilings of 999999999×999999999×999999999 must be at most",
        ),
        (
            ["matmul", "--size", "4096x4096x4096"],
            "steps of a tiling of 4096×4096×4096 must be at most 1,000,000",
        ),
        (
            ["matmul", "--size", "2048x2048x2048", "--any-integer"],
            "take a smaller size or divisors only",
        ),
        (
            ["matmul", "--size", "16x16x16", "--method", "guided", "--jobs", "2"],
            "--jobs must be for --method",
        ),
        (
            ["matmul", "--size", "16x16x16", "--jobs", "2", "--scheduler", "x"],
            "--jobs must not be given with",
        ),
        (
            ["matmul", "--size", "16x16x16", "--method", "luck"],
            "method must be exhaustive or guided",
        ),
    ],
)
def test_mistakes_are_one_line(arguments, message, capsys):
    assert main(["tune", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1

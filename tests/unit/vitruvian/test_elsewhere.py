"""``make elsewhere`` has every setting of every library, and fails if the tests fail in one."""

import subprocess

import pytest

from tests import elsewhere

NEW = ["X86_V3", "X86_V4", "AVX512_ICL"]


def test_every_setting_stands_in_an_environment():
    found = elsewhere.environments(NEW, {"X86_V3", "X86_V4"})
    values = {(key, value) for variables in found.values() for key, value in variables.items()}
    assert {("OPENBLAS_CORETYPE", name) for name in ("Haswell", "Zen", "SkylakeX")} <= values
    assert {("NUMBA_CPU_NAME", "generic"), ("NPY_DISABLE_CPU_FEATURES", "X86_V3 X86_V4")} <= values
    assert {("NUMBA_NUM_THREADS", "1"), ("OMP_NUM_THREADS", "4")} <= values


def test_a_processor_is_not_given_code_that_it_cannot_run():
    found = elsewhere.environments(NEW, {"X86_V3"})
    assert "OPENBLAS_CORETYPE" not in found["skylakex-four-threads"]
    found = elsewhere.environments(NEW, set())
    assert not any("OPENBLAS_CORETYPE" in variables for variables in found.values())
    assert "NPY_DISABLE_CPU_FEATURES" not in found["zen-generic"]


@pytest.mark.parametrize(("code", "words"), [(0, "passed"), (1, "FAILED (exit 1)")])
def test_a_failure_in_one_environment_is_a_failure(monkeypatch, capsys, code, words):
    def run(command, *, env, **options):
        wrong = code if env.get("NUMBA_CPU_NAME") else 0
        return subprocess.CompletedProcess(command, wrong)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.delenv("NUMBA_CPU_NAME", raising=False)  # this test runs in the environments, too
    assert elsewhere.main([]) == code
    last = capsys.readouterr().out.splitlines()[-3:]
    assert [words in line for line in last] == ([True] * 3 if code == 0 else [False, True, False])

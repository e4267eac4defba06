"""The example on real data, whose accumulators must all be bit-exact with golden."""

import json

import numpy as np
import pytest

from examples import digits


@pytest.mark.parametrize("dataflow", ["broadcast", "systolic"])
def test_digits(dataflow, tmp_path, capsys):
    file = tmp_path / "digits.json"
    assert digits.main(["--dataflow", dataflow, "--json", str(file)]) == 0
    result = json.loads(file.read_text())
    assert result["digits"] == 1797 and result["mismatches"] == 0
    assert result["accumulators"] == 1797 * (32 + 10)
    assert result["accuracy_held_out"] > 0.9
    # FP16 weights cost little accuracy: a few digits in 599.
    assert abs(result["accuracy_held_out"] - result["accuracy_float64_held_out"]) < 0.006
    assert result["beats"] == 450 * (8 * 16 + 3 * 8)
    assert result["cycles"] < 1.1 * result["beats"]
    assert "0 mismatches with golden" in capsys.readouterr().out


def test_a_wrong_accumulator_fails(monkeypatch, capsys):
    right = digits.mmad

    def wrong(a, b, c, *, spec):
        d = np.array(right(a, b, c, spec=spec))
        d[0, 0] ^= 1
        return d

    monkeypatch.setattr(digits, "mmad", wrong)
    assert digits.main([]) == 1
    assert " 2 mismatches with golden" in capsys.readouterr().out


def test_an_unknown_preset_is_refused(capsys):
    with pytest.raises(SystemExit) as caught:
        digits.main(["--preset", "huge"])
    assert caught.value.code == 2
    assert "invalid choice: 'huge'" in capsys.readouterr().err

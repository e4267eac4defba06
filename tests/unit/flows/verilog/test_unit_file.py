"""Configuration files say what the command line would, and refuse what it would not accept."""

import pytest

from vitruvian.cli import main
from vitruvian.common.errors import UserError
from vitruvian.flows.units import variants
from vitruvian.flows.verilog import unit_file
from vitruvian.hdl.catalogue.matrix import cube_config
from vitruvian.hdl.catalogue.options import PRECISIONS


@pytest.mark.parametrize(
    ("unit", "options"),
    [
        ("cube", {"preset": "tiny", "m": 3, "precisions": "fp16-int8"}),
        ("intdot", {"k": 4, "unsigned_a": True, "multiplier": "dsp"}),
        ("simd2", {"operations": "mma-minplus", "size": 2}),
        ("dot", {"input_b": "fp16"}),
    ],
)
def test_a_file_that_was_written_is_read_as_the_same_variant(unit, options, tmp_path):
    (variant,) = variants(unit, {name: [value] for name, value in options.items()})
    path = tmp_path / "unit.toml"
    path.write_text(unit_file.written(variant, "a remark"))
    name, given = unit_file.read(str(path))
    known = variant.unit.options
    (again,) = variants(name, {key: known[key].values(value) for key, value in given.items()})
    assert again == variant and len(given) >= len(options)


def test_a_list_stands_for_names_with_dashes(tmp_path):
    path = tmp_path / "unit.toml"
    path.write_text('unit = "cube"\nprecisions = ["int8", "fp16"]\nm = 2\n')
    assert unit_file.read(str(path)) == ("cube", {"precisions": "int8-fp16", "m": "2"})
    values = PRECISIONS.values("int8-fp16")
    assert values == ["fp16-int8"]
    (variant,) = variants("cube", {"precisions": values, "m": [8], "n": [4], "k": [8]})
    config = cube_config(variant.configuration)
    assert (config.m, config.n, config.k) == (8, 4, 8) and config.precisions == ("fp16", "int8")


def test_a_comma_separates_configurations_and_a_dash_the_precisions_of_one():
    assert PRECISIONS.values("fp16,int8") == ["fp16", "int8"]
    assert PRECISIONS.values("fp16-int8,bf16") == ["fp16-int8", "bf16"]
    for wrong in ("fp16-fp16", "fp17", "", "fp16--int8"):
        with pytest.raises(UserError, match="precisions must be different ones of fp16"):
            PRECISIONS.values(wrong)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("m = 2", "unit must be one of dot, "),
        ('unit = "cubes"', "unit must be one of dot, "),
        ("unit = 3", "unit must be one of dot, "),
        ('unit = "cube"\nmultiplyer = "dsp"', "(did you mean multiplier?)"),
        ('unit = "cube"\nlanes = 4', "a key of cube must be one of unit, preset"),
        ('unit = "cube"\nm = 2.5', "m must be a number, a text or a list of texts, not '2.5'"),
        ('unit = "cube"\nm = true', "m must be a number, a text or a list of texts"),
        ('unit = "cube"\nm = []', "m must be a number, a text or a list of texts"),
        ('unit = "intdot"\nsaturate = 1', "saturate must be true or false, not '1'"),
        ('unit = "intdot"\nunsigned-a = true\nunsigned_a = false', "must be given once"),
        ('unit = "cube"\nm = 65', "m must be a number from 1 to 64, not '65'"),
        ('unit = "cube"\nunit = "dot"', "must be a TOML file"),
        ('unit = "cube', "must be a TOML file"),
        ('unit = "simd2"\noperations = "addnorm"\nk = 2', "k must be a multiple of 4"),
    ],
)
def test_a_wrong_file_is_one_line_and_exit_code_2(text, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.toml").write_text(text)
    assert main(["verilog", "--config", "my.toml"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ") and message in line
    assert [path.name for path in tmp_path.iterdir()] == ["my.toml"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["dot"], "unit must be cube, as in my.toml, not 'dot'"),
        (["--m", "3"], "--m must be 2, as in my.toml, not '3'"),
        (["--lanes", "3"], "option of cube must be one of"),
    ],
)
def test_a_command_line_that_contradicts_the_file_is_refused(
    words, message, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.toml").write_text('unit = "cube"\npreset = "tiny"\nm = 2\n')
    assert main(["verilog", *words, "--config", "my.toml"]) == 2
    assert message in capsys.readouterr().err


def test_a_command_line_may_repeat_the_file_and_add_to_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.toml").write_text('unit = "add"\nformat = "fp8e4m3"\n')
    words = ["add", "--format", "fp8e4m3", "--pipeline", "1"]
    assert main(["verilog", *words, "--config", "my.toml"]) == 0
    assert capsys.readouterr().out.strip() == "build/verilog/add_fp8e4m3_RNE_p1.v"


@pytest.mark.parametrize("content", [b"\xff\xfe", b"unit = " + b"[" * 5000, None])
def test_a_file_that_is_no_text_is_refused(content, tmp_path, capsys):
    path = tmp_path / "my.toml"
    if content is not None:
        path.write_bytes(content)
    assert main(["area", "--config", str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    message = "must be a TOML file" if content is not None else "my.toml: No such file or directory"
    assert message in line

"""Grammars of the commands that measure and export hardware, for ``tests.system.fuzz_lines``."""

from tests.system.fuzz_grammar import Grammar
from tests.system.fuzz_values import FOLDERS as _FOLDERS
from tests.system.fuzz_values import NUMBERS as _NUMBERS
from tests.system.fuzz_values import OUTPUTS as _OUTPUTS
from tests.system.fuzz_values import UNITS as _UNITS
from tests.system.fuzz_values import inputs as _inputs

HARDWARE = (
    Grammar(
        ("vitruvian", "verilog"),
        (("compare", "minmax", "nosuch"),),
        ("--format=fp8e4m3",),
        {
            "--out": ("new", "IN/junk.bin", "/proc/no", "-"),
            "--config": (*_inputs("good.toml"), "/dev/zero"),
            "--no-cache": None,
            "--help": None,
            **_UNITS,
        },
    ),
    Grammar(
        ("vitruvian", "verilog"),
        (("axi-lite", "axi-stream"),),
        ("--core=simd2-int", "--m=1", "--n=1", "--k=2", "--width=8"),
        {
            "--out": ("new", "IN/junk.bin", "/proc/no", "-"),
            "--core": ("simd2-int", "tea"),
            "--slots": ("4", "0"),
            "--direct": None,
            "--json": _OUTPUTS,
        },
    ),
    Grammar(
        ("vitruvian", "bundle"),
        (("compare", "minmax", "nosuch", "sparse-os"),),
        ("--format=fp8e4m3", "--vectors=20"),
        {
            "--out": ("new", "IN/junk.bin", "/proc/no", "-"),
            "--vectors": ("20", "13", "1e9"),
            "--seed": _NUMBERS,
            "--force": None,
            **_UNITS,
        },
    ),
    Grammar(
        ("vitruvian", "new"),
        (
            ("my-unit", "my_unit", "module", "1st", "é", "a/b", ".."),
            ("compare", "minmax", "nosuch", "sparse-control"),
        ),
        ("--format=fp8e4m3",),
        {
            "--config": _inputs("good.toml", "deep.toml", "number.toml", "latin.toml"),
            "--out": ("new", "IN/junk.bin", "/proc/no", "IN"),
            "--replace": None,
            **_UNITS,
        },
    ),
    Grammar(
        ("vitruvian", "area"),
        (("compare", "nosuch"),),
        ("--format=fp8e4m3", "--jobs=1"),
        {
            "--liberty": _inputs("good.lib", "deep.lib"),
            "--delay-target": ("1000", "0", "-1", "1e99"),
            "--driving-cell": ("BUF_X4", "NOSUCH"),
            "--load": ("5", "nan", "inf", "-1", "1e300"),
            "--adders": None,
            "--clock-gates": None,
            "--markdown": _OUTPUTS,
            "--svg": _OUTPUTS,
            **_UNITS,
        },
    ),
    Grammar(
        ("vitruvian", "power"),
        (("dot", "compare", "nosuch"),),
        ("--preset=ieee", "--input=fp8e4m3", "--k=1", "--cycles=2"),
        {
            "--liberty": _inputs("good.lib", "deep.lib"),
            "--delay-target": ("1000", "0", "-1", "1e99"),
            "--driving-cell": ("BUF_X4", "NOSUCH"),
            "--load": ("5", "nan", "inf", "-1", "1e300"),
            "--adders": None,
            "--clock-gates": None,
            "--period": ("100", "0.001", "nan", "inf", "-1"),
            "--idle": ("50", "-1", "100", "nan"),
            "--stimulus": ("uniform", "relu,normal", "zzz", ","),
            "--cycles": _NUMBERS,
            "--seed": _NUMBERS,
            "--markdown": _OUTPUTS,
            **_UNITS,
        },
    ),
    Grammar(
        ("vitruvian", "layout"),
        (("compare", "nosuch"),),
        ("--format=fp8e4m3",),
        {
            "--delay-target": ("1000", "0", "-1", "1e99"),
            "--driving-cell": ("BUF_X4", "NOSUCH"),
            "--load": ("5", "nan", "inf", "-1", "1e300"),
            "--adders": None,
            "--clock-gates": None,
            "--power": None,
            "--utilisation": ("60", "0", "101", "nan"),
            "--out": ("new", "IN/junk.bin", "/proc/no", "-"),
            **_UNITS,
        },
    ),
    Grammar(
        ("vitruvian", "fpga"),
        (("compare", "nosuch"),),
        ("--format=fp8e4m3", "--board=arty"),  # for a board that is not routed, Yosys alone runs
        {
            "--board": ("pynq-z2", "arty,arty-100t", "ulx4s", "arty,", ","),
            "--family": ("ice40", "gowin,ecp5", "zzz", ""),
            "--element": None,
            "--seed": _NUMBERS,
            "--seeds": ("0", "-1", "999"),
            "--clock": ("0", "-1", "999", "x"),
            "--bitstream": None,
            "--path": None,
            "--out": ("new", "IN/junk.bin", "/proc/no"),
            "--svg": _OUTPUTS,
            **_UNITS,
        },
    ),
    Grammar(
        ("vitruvian", "formal"),
        (("cube.queue", "cube.q*", "cub.unt", "zzz"),),
        ("--jobs=1",),
        {
            "--mutations": None,
            "--list": None,
            "--no-cache": None,
            "--out": _FOLDERS,
            "--markdown": _OUTPUTS,
            "--jobs": ("1",),
            "--json": _OUTPUTS,
        },
    ),
    Grammar(("vitruvian", "cells"), (), (), {"--out": _OUTPUTS, "--json": _OUTPUTS}),
)

"""Configurations of the matrix unit: properties, errors, and one module for all elements."""

import re
from dataclasses import FrozenInstanceError, replace

import pytest

from vitruvian.golden.fp import IntDotSpec, dot_spec
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.hdl.cube import CONFIGS, MatrixUnit, MatrixUnitConfig, ProcessingElement
from vitruvian.sim.rtl.emit import to_rtlil

TINY = CONFIGS["tiny"]


def test_the_presets_of_the_documentation():
    shapes = {name: (c.m, c.n, c.k, c.preset) for name, c in CONFIGS.items()}
    assert shapes == {
        "tiny": (2, 2, 2, "ieee"),
        "cube_4x4x4": (4, 4, 4, "ieee"),
        "tensorcore_a100": (8, 4, 8, "a100"),
        "cube_davinci": (16, 16, 16, "ieee"),
        "m3xu": (8, 4, 8, "ieee"),
        "m3xu_pipelined": (8, 4, 8, "ieee"),
        "m3xu_fp64": (4, 4, 8, "ieee"),
        "simd2_4x4": (4, 4, 4, "ieee"),
        "int8_8x8_dsp": (8, 8, 1, "ieee"),
        "fp16_4x4x4_a100_dsp": (4, 4, 4, "a100"),
        "fp16_4x4x4_dsp": (4, 4, 4, "ieee"),
    }
    davinci = CONFIGS["cube_davinci"]
    assert (davinci.terms("fp16"), davinci.terms("int8"), davinci.macs) == (16, 32, 4096)
    assert [TINY.terms(name) for name in TINY.precisions] == [2, 2, 1, 4, 4, 4]
    with pytest.raises(FrozenInstanceError):
        setattr(TINY, "m", 3)  # noqa: B010


def test_machines_keep_their_windows():
    config = CONFIGS["tensorcore_a100"]
    for name in ("fp16", "bf16", "tf32"):
        assert config.spec(name) == PRESETS["a100"].spec(name)
    assert config.spec("int8") == IntDotSpec(k=16)
    ada = replace(config, preset="ada", precisions=("fp16", "fp8e4m3"))
    specs = ada.float_specs.values()
    assert [(spec.sum.window, spec.result.bits) for spec in specs] == [
        (24, 23),
        (13, 13),
    ]


def test_ieee_shares_the_widest_window():
    assert {spec.sum.window for spec in TINY.float_specs.values()} == {45}
    assert replace(TINY, precisions=("bf16", "tf32")).float_specs["bf16"].sum.window == 35
    alone = replace(TINY, precisions=("bf16",), k=1).spec("bf16")
    assert alone == dot_spec(input="bf16", output="fp32", k=1, window=32)


def test_latency_and_slots_follow_from_the_pipeline():
    for pipeline in range(5):
        config = replace(TINY, pipeline=pipeline)
        assert config.latency_cycles == pipeline + 2
        assert config.slot_count == pipeline + 3
        assert replace(config, slots=7).slot_count == 7
        systolic = replace(config, dataflow="systolic", m=3, n=5)
        assert systolic.latency_cycles == pipeline + 2 + 6
        assert MatrixUnit(config=systolic).latency == systolic.latency_cycles


def test_buffers_lengthen_the_latency_by_two_ranks_on_either_side():
    plain, buffered = TINY, replace(TINY, buffered=True)
    assert buffered.entry_cycles == plain.entry_cycles + 2
    assert buffered.latency_cycles == plain.latency_cycles + 4
    # The registers behind the array are not part of the time in which a slot is busy.
    assert buffered.slot_cycles == plain.slot_cycles + 2
    assert buffered.slot_count == plain.slot_count + 1
    assert MatrixUnit(config=buffered).latency == buffered.latency_cycles


def test_precisions_have_one_order():
    config = replace(TINY, precisions=("int8", "bf16", "fp16"))
    assert config.precisions == ("fp16", "bf16", "int8") and config.precision_bits == 2
    assert replace(TINY, precisions=["int8"]).precision_bits == 0


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"m": 0}, ValueError, "m must be between 1 and 64, not 0"),
        ({"n": 65}, ValueError, "n must be between 1 and 64, not 65"),
        ({"k": 2.0}, TypeError, "k must be an int, not 2.0"),
        ({"k": True}, TypeError, "k must be an int, not True"),
        ({"k": 3}, ValueError, "k must be even with tf32, which takes two lanes, not 3"),
        ({"pipeline": 12}, ValueError, "pipeline must be between 0 and 11, not 12"),
        (
            {"pipeline": 5, "precisions": ("fp16",), "assignment": "edge"},
            ValueError,
            "pipeline must be at most 4 with the assignment 'edge', not 5",
        ),
        (
            {"slot_memory": True, "dataflow": "systolic"},
            ValueError,
            "dataflow must be 'broadcast' with slot_memory, not 'systolic'",
        ),
        (
            {"slot_memory": True, "precisions": ("fp16",), "assignment": "edge"},
            ValueError,
            "assignment must be 'element' with slot_memory, not 'edge'",
        ),
        ({"buffered": 1}, TypeError, "buffered must be True or False, not 1"),
        ({"slots": 0}, ValueError, "slots must be between 1 and 64, not 0"),
        (
            {"precisions": ()},
            ValueError,
            "precisions must be different names, at least one, not ()",
        ),
        ({"precisions": "fp16"}, ValueError, "precisions must be different names"),
        ({"precisions": ("fp16", "fp16")}, ValueError, "precisions must be different names"),
        ({"precisions": ("fp32",)}, ValueError, "precision must be one of fp16, bf16, tf32,"),
        ({"preset": "exact"}, ValueError, "preset must be one of v100, a100, a2, "),
        ({"preset": "v100"}, ValueError, "formats of preset v100 must be one of fp16 -> fp32"),
        (
            {"dataflow": "ring"},
            ValueError,
            "dataflow must be one of broadcast, systolic, not 'ring'",
        ),
        ({"output": "fp16"}, ValueError, "output must have 32 bits with int8, not 'fp16'"),
        ({"output": "fp31"}, ValueError, "output must be one of fp16, bf16"),
        ({"saturate": 1}, TypeError, "saturate must be True or False, not 1"),
    ],
)
def test_errors_of_a_configuration(changes, error, message):
    with pytest.raises(error, match=re.escape(message)):
        replace(TINY, **changes)


def test_an_unknown_precision_is_named():
    with pytest.raises(ValueError, match="precision must be one of fp16, int8, not 'bf16'"):
        CONFIGS["cube_4x4x4"].spec("bf16")
    with pytest.raises(TypeError, match="config must be a MatrixUnitConfig, not 'tiny'"):
        MatrixUnit(config="tiny")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("dataflow", ["broadcast", "systolic"])
def test_all_elements_are_one_module_in_either_dataflow(dataflow, monkeypatch):
    """Sharing is switched off here; the tool that finds equal modules by their text agrees."""
    config = MatrixUnitConfig(m=2, n=3, k=1, precisions=("fp8e5m2",), pipeline=1, dataflow=dataflow)
    monkeypatch.setattr(MatrixUnit, "shared", ())
    modules = re.findall(r"^module \\(\S+)$", to_rtlil(MatrixUnit(config=config)), re.MULTILINE)
    assert [name for name in modules if "element" in name] == [
        "top.grid.element_0_0.dot",
        "top.grid.element_0_0",
    ]


def test_choices_that_do_not_exist_have_no_bits():
    config = MatrixUnitConfig(m=1, n=1, k=1, precisions=("fp16",), slots=1)
    element = ProcessingElement(config=config)
    assert element.control.shape().size == 1  # accumulate

"""Im2Col and Col2Im in RTL against golden, and mutants that the comparison must notice."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import vitruvian.hdl.scu.col2im
import vitruvian.hdl.scu.im2col
import vitruvian.hdl.scu.reader
from vitruvian.golden.scu import Patches
from vitruvian.hdl.fp.add import Adder
from vitruvian.hdl.scu import AddressGenerator, Col2Im, ConversionConfig, Im2Col, Mode
from vitruvian.hdl.scu.reader import Reader
from vitruvian.sim.bench.scu.batch import (
    compare_additions,
    compare_loads,
    elements,
    run_col2im,
    run_im2col,
)
from vitruvian.sim.bench.scu.traffic import additions, conversion, loads
from vitruvian.sim.rtl import StreamError, compile, compile_unit

#: A small unit, which builds fast: C0 is four FP16 values.
SMALL = ConversionConfig(
    rows=2, c0_bytes=8, address_bits=10, size_bits=5, kernel_bits=3, stride_bits=3, pad_bits=3,
    dilation_bits=2, channel_bits=3, repeat_bits=5,
)  # fmt: skip


def checked_loads(model, config=SMALL, count=40, **options):
    instructions = list(loads(config, count, np.random.default_rng(3)))
    return compare_loads(model, config, instructions, seed=3, **options)


def checked_additions(model, config=SMALL, count=30, dtype=np.float16, **options):
    groups = list(additions(config, count, np.random.default_rng(4)))
    return compare_additions(model, config, dtype, groups, seed=4, **options)


@pytest.mark.parametrize("stall_rate", [0, 0.5])
def test_loads_equal_golden(stall_rate):
    result = checked_loads(compile_unit(Im2Col, config=SMALL), count=400, stall_rate=stall_rate)
    assert not result.mismatches and result.vectors > 20_000, result.examples


def test_additions_equal_golden():
    result = checked_additions(compile_unit(Col2Im, config=SMALL), count=300)
    assert not result.mismatches and result.vectors > 10_000, result.examples


@pytest.mark.parametrize("channels", [1, 3, 5])
def test_rows_that_are_no_whole_words_equal_golden(channels):
    """Regression: the bench refused C0 rows of less than 8 bytes."""
    config = replace(SMALL, c0_bytes=2 * channels)
    for result in (
        checked_loads(compile_unit(Im2Col, config=config), config),
        checked_additions(compile_unit(Col2Im, config=config), config),
    ):
        assert not result.mismatches and result.vectors > 2000, result.examples


def test_the_traffic_has_every_kind_of_geometry():
    rng = np.random.default_rng(3)
    some = list(loads(SMALL, 400, rng)) + [i for part in additions(SMALL, 300, rng) for i in part]
    kinds = {
        "padding": lambda i: any(i.patches.pad),
        "stride": lambda i: max(i.patches.stride) > 1,
        "overlap": lambda i: i.patches.stride[1] < i.patches.extent[1],
        "gaps": lambda i: i.patches.stride[1] > i.patches.extent[1],
        "dilation": lambda i: max(i.patches.dilation) > 1 and max(i.patches.kernel) > 1,
        "channels": lambda i: i.channel > 0,
        "kernel mode to other channels": lambda i: (
            i.mode == Mode.KERNEL.value and i.walk(10).place[0].max() > i.channel
        ),
        "patches mode": lambda i: i.mode == Mode.PATCHES.value and i.repeat > 1,
        "tail": lambda i: (
            i.walk(10).place[1].max() - i.kernel_position[0] * i.patches.dilation[0]
            > i.patches.corner(i.patches.count - 1)[0]
        ),
        "one patch in a row": lambda i: i.patches.columns == 1,
    }
    for name, kind in kinds.items():
        assert sum(map(kind, some)) > 20, name


@pytest.mark.parametrize(
    "patches",
    [
        Patches(height=9, width=8, kernel=(3, 3), stride=(2, 2), pad=(1, 0, 1, 1)),
        Patches(height=7, width=9, kernel=(2, 3), stride=(1, 1), dilation=(2, 2)),
        Patches(height=6, width=5, kernel=(2, 2), stride=(3, 3)),
    ],
    ids=["overlap", "dilation", "gaps"],
)
def test_col2im_of_im2col_multiplies_each_pixel_by_its_number_of_patches(patches):
    image = np.random.default_rng(5).integers(-8, 9, (2, patches.height, patches.width, 4))
    image = image.astype(np.float16)
    steps = conversion(patches, 2)
    loaded = run_im2col(
        compile_unit(Im2Col, config=SMALL), SMALL, steps, [image.view(np.uint16)] * len(steps)
    )
    rows = elements(loaded.outputs["o"], SMALL, np.float16).reshape(len(steps), -1, 4)
    adder, total = compile_unit(Col2Im, config=SMALL), np.zeros_like(image)
    for step, added in zip(steps, rows, strict=True):
        walk = step.walk(SMALL.address_bits)
        place = tuple(axis[walk.inside] for axis in walk.place)
        pixels = np.zeros_like(added)
        pixels[walk.inside] = total[place]
        result = run_col2im(adder, SMALL, [step], [pixels], [added])
        sums = elements(result.outputs["o"]["rows"], SMALL, np.float16)
        written = {name: v.ravel() for name, v in result.outputs["o"]["pixels"].items()}
        inside = written["inside"].astype(bool)
        total.reshape(-1, 4)[written["address"][inside]] = sums[inside]
    (kh, kw), (sh, sw), (dh, dw) = patches.kernel, patches.stride, patches.dilation
    times = np.zeros((patches.height + 9, patches.width + 9), int)  # counted without golden
    for oy in range(patches.rows):
        for ox in range(patches.columns):
            for ky in range(kh):
                for kx in range(kw):
                    times[oy * sh + ky * dh, ox * sw + kx * dw] += 1
    top, left = patches.pad[0], patches.pad[2]
    times = times[top : top + patches.height, left : left + patches.width]
    assert (total == image * times[None, :, :, None]).all() and len(np.unique(times)) > 1


@pytest.mark.parametrize("rows", [1, 2, 8])
def test_latency_and_rate_of_loads(rows):
    config = replace(SMALL, rows=rows)
    model, unit = compile_unit(Im2Col, config=config), Im2Col(config=config)
    instructions = list(loads(config, 30, np.random.default_rng(6)))
    images = [np.zeros((*i.shape, 4), np.uint16) for i in instructions]
    result = run_im2col(model, config, instructions, images)
    start, beats = 1, sum(i.repeat for i in instructions) * config.beats
    assert result.input_cycles["i"][0] == start  # a command is taken in the second cycle
    first = start + unit.latency
    assert result.output_cycles["o"].tolist() == list(range(first, first + beats))


def test_a_command_without_repetitions_has_no_beat():
    model = compile_unit(Im2Col, config=SMALL)
    empty, full = (
        replace(i, repeat=n)
        for n, i in enumerate([next(loads(SMALL, 1, np.random.default_rng(7)))] * 2)
    )
    commands = [empty.command(), full.command(), empty.command()]
    beats = SMALL.beats
    result = model.stream(
        inputs={
            "i": {name: np.array([c[name] for c in commands]) for name in commands[0]},
            "rows": np.zeros((beats, 2), np.uint64),
        },
        outputs={"fetch": beats, "o": beats},
    )
    assert len(result.outputs["o"]) == beats


class IgnoresChannels(AddressGenerator):
    """After the last position of the kernel, the walk begins again in the same channels."""

    def _build_kernel_step(self, m, command, state):
        super()._build_kernel_step(m, replaced(command, height=0), state)


class IgnoresDilation(AddressGenerator):
    """A step to the right in the kernel goes one pixel, whatever the dilation is."""

    def _build_kernel_step(self, m, command, state):
        super()._build_kernel_step(m, replaced(command, dilation_width=1), state)


def replaced(view: Any, **values: Any) -> Any:
    """Return an object with the fields of a view, some of them replaced."""

    class Fields:
        def __getattr__(self, name):
            return values.get(name, getattr(view, name))

    return Fields()


class RowsGoOnBelow(AddressGenerator):
    """Rows of patches after the last one count as patches."""

    def _build_start(self, m, state, known):
        super()._build_start(m, state, known)
        m.d.sync += state.last_row.eq(self.i.payload.height + 15)


class KeepsTheEnd(AddressGenerator):
    """The next beat is chosen as if its row of patches ended where that of this beat does."""

    def _build_last(self, m, command, state, position):
        return state.last_here


@pytest.mark.parametrize("mutant", [IgnoresChannels, IgnoresDilation, RowsGoOnBelow, KeepsTheEnd])
def test_a_mutant_of_the_walk_is_noticed(monkeypatch, mutant):
    monkeypatch.setattr(vitruvian.hdl.scu.reader, "AddressGenerator", mutant)
    result = checked_loads(compile(Im2Col(config=SMALL)), count=100)
    assert result.mismatches and "seed 3" in result.examples[0]


class LosesRows(Reader):
    """Rows of the memory are taken while the output waits."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.rows.ready.eq(1)
        return m


def test_a_reader_that_loses_rows_is_noticed(monkeypatch):
    monkeypatch.setattr(vitruvian.hdl.scu.im2col, "Reader", LosesRows)
    with pytest.raises(StreamError, match="hung"):
        checked_loads(compile(Im2Col(config=SMALL)), stall_rate=0.5)


def test_a_mutant_of_the_sum_is_noticed(monkeypatch):
    monkeypatch.setattr(
        vitruvian.hdl.scu.col2im, "Adder", lambda **options: Adder(rounding="RZ", **options)
    )
    assert checked_additions(compile(Col2Im(config=SMALL))).mismatches


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": 3}, "rows must be one of 1, 2, 4, 8, 16, not 3"),
        ({"rows": 0}, "rows must be between 1 and 16, not 0"),
        ({"c0_bytes": 3}, "c0_bytes must be even, not 3"),
        ({"ahead": 1}, "ahead must be between 2 and 64, not 1"),
        ({"size_bits": 7}, "kernel_bits must be at most size_bits, 7, not 8"),
        ({"repeat_bits": 0}, "repeat_bits must be between 1 and 24, not 0"),
    ],
)
def test_a_wrong_size_is_refused(changes, message):
    with pytest.raises(ValueError) as error:
        ConversionConfig(**changes)
    assert str(error.value) == message


def test_other_wrong_parameters_are_refused():
    with pytest.raises(TypeError, match="config must be a ConversionConfig, not 8"):
        Im2Col(config=8)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="c0_bytes must be whole fp32 elements of 32 bits, not 6"):
        Col2Im(config=ConversionConfig(c0_bytes=6), format="fp32")
    with pytest.raises(ValueError, match="pipeline must be one of 0, 1, 2, 3, not 4"):
        Col2Im(config=ConversionConfig(), pipeline=4)

"""Pooling kernels: plain NumPy to the bit, the instruction counts of the paper, and mutants."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import pooling_windows as plain
from vitruvian.golden.scu import Patches
from vitruvian.sim.davinci import Kind, Unit, load_chip, simulate
from vitruvian.sim.davinci.chip.file import CHIPS, read_chip
from vitruvian.sim.kernels.pooling import METHODS, Pooling, build, expected, plan
from vitruvian.sim.kernels.pooling.geometry import backward_axis, forward_axis
from vitruvian.sim.kernels.pooling.layers import LAYERS

C910 = load_chip("ascend910")

#: A chip with buffers so small that small images need several tiles.
SMALL = read_chip(
    (CHIPS / "ascend910.toml")
    .read_text(encoding="utf-8")
    .replace("UB = { kib = 256", "UB = { kib = 8")
    .replace("L1 = { kib = 1024", "L1 = { kib = 4")
)

#: A chip with the later form of vsel, whose bits come from memory.
MEMORY = read_chip(
    (CHIPS / "ascend910.toml")
    .read_text(encoding="utf-8")
    .replace("vsel_from_memory = false", "vsel_from_memory = true")
)

#: The forms of a pooling: reduction, backward, argmax.
FORMS = {
    "max": ("max", False, False),
    "max with mask": ("max", False, True),
    "max backward": ("max", True, False),
    "average": ("avg", False, False),
    "average backward": ("avg", True, False),
}


def pooling_of(patches, form, method, blocks=(1, 1), divisors=None):
    reduction, backward, argmax = FORMS[form]
    images, groups = blocks
    return Pooling(patches, images, groups, reduction, method, backward, argmax, divisors)


def operands(pooling, seed=0, ties=True):
    """Return random operands; with ties, most windows have their maximum several times."""
    rng = np.random.default_rng(seed)
    shapes = pooling.shapes
    if not pooling.backward:
        x = rng.normal(0, 30, shapes["x"])
        return {"x": rng.integers(-3, 4, shapes["x"]).astype(np.float16) if ties else x.astype("e")}
    data = {"dy": rng.normal(0, 30, shapes["y"]).astype(np.float16)}
    if pooling.reduction == "max":
        data["mask"] = rng.integers(0, 2, shapes["mask"]).astype(np.float16)
    return data


def inner(array, axes=2):
    """Move the axes of rows and columns to the front, behind which all else stays in order."""
    return np.moveaxis(array, (-3, -2), (0, 1))


def reference(pooling, data):
    """Return the results of a pooling window by window."""
    p, method = pooling.patches, pooling.method
    divisors = pooling.divisors
    if divisors is None:
        divisors = np.full((p.rows, p.columns), p.kernel[0] * p.kernel[1])
    back = lambda a: np.moveaxis(a, (0, 1), (-3, -2))  # noqa: E731
    if pooling.backward:
        dy = inner(data["dy"])
        if pooling.reduction == "max":
            mask = inner(data["mask"])

            def share(i, j, position, gradient):
                return mask[i, j][:, :, position[0], position[1]] * gradient
        else:

            def share(i, j, position, gradient):
                return gradient / np.float16(divisors[i, j])

        return {"dx": back(plain.spread(dy, p, share, method == "xy"))}
    x = inner(data["x"])
    if pooling.reduction == "avg":
        return {"y": back(plain.average(x, p, divisors, method == "xy"))}
    y, first = plain.max_pool(x, p)
    results = {"y": back(y)}
    if pooling.argmax:
        at = back(first)[:, :, None, None]
        positions = np.arange(p.kernel[0] * p.kernel[1]).reshape(*p.kernel, 1, 1, 1)
        results["mask"] = (at == positions).astype(np.float16)
    return results


def check(pooling, chip=C910, cores=None, seed=0, ties=True, model=reference):
    """Run a pooling with all checks, and compare its results bit by bit."""
    data = operands(pooling, seed, ties)
    report = simulate(build(pooling, chip, cores=cores, data=data))
    assert not report.findings
    wanted = model(pooling, data)
    for name, array in wanted.items():
        assert np.array_equal(report.outputs[name].view("u2"), array.view("u2")), name
    return report


@st.composite
def geometries(draw):
    """Return patches with any padding, stride and dilation that a kernel of up to 3 × 4 allows."""
    kernel = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    dilation = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    pad = tuple(draw(st.integers(0, extent[axis] - 1)) for axis in (0, 0, 1, 1))
    size = [draw(st.integers(max(1, extent[a] - pad[2 * a] - pad[2 * a + 1]), 13)) for a in (0, 1)]
    stride = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    return Patches(
        height=size[0], width=size[1], kernel=kernel, stride=stride, pad=pad, dilation=dilation
    )


@pytest.mark.parametrize("chip", [C910, MEMORY, SMALL])
@pytest.mark.parametrize("method", METHODS)
def test_a_mask_may_have_all_largest_pixels(method, chip):
    patches = Patches(height=9, width=11, kernel=(3, 2), stride=(2, 1), pad=(1, 1, 1, 0))
    pooling = Pooling(patches, 1, 1, "max", method, argmax=True, ties="all")
    x = np.random.default_rng(5).integers(-1, 2, pooling.shapes["x"]).astype(np.float16)
    mask = simulate(build(pooling, chip, data={"x": x})).outputs["mask"]
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 0), (0, 0)), constant_values=np.nan)
    for i, j in np.ndindex(patches.rows, patches.columns):
        window = padded[0, 0, 2 * i : 2 * i + 3, j : j + 2]
        assert (mask[0, 0, :, :, i, j] == (window == np.nanmax(window, axis=(0, 1)))).all()
    assert (mask == expected.forward(pooling, x)["mask"]).all() and (mask.sum((2, 3)) > 1).any()


@settings(max_examples=25)
@given(geometries(), st.sampled_from(sorted(FORMS)), st.sampled_from(sorted(METHODS)), st.data())
def test_any_geometry_is_numpy_to_the_bit(patches, form, method, data):
    """The chip with small buffers makes several tiles, whose edges are the image's or not."""
    if not _has_a_pixel_in_each_window(patches):
        return
    divisors = None
    if "average" in form and data.draw(st.booleans()):
        divisors = np.arange(1, patches.count + 1).reshape(patches.rows, patches.columns)
    pooling = pooling_of(patches, form, method, (1, 2), divisors)
    chip = data.draw(st.sampled_from([C910, SMALL]))
    check(pooling, chip, cores=data.draw(st.integers(1, 2)), ties=data.draw(st.booleans()))


def _has_a_pixel_in_each_window(patches):
    return all(places for _, _, places in plain.windows(patches))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", METHODS)
def test_tiles_of_rows_of_columns_and_of_the_kernel(form, method):
    """An image of 30 columns needs tiles of parts of a row on the chip with small buffers."""
    patches = Patches(height=7, width=30, kernel=(3, 3), stride=(2, 1), pad=(1, 1, 1, 1))
    pooling = pooling_of(patches, form, method)
    tiles = pooling.plan(SMALL).tiles
    assert len({tile.rows for tile in tiles}) > 1
    check(pooling, SMALL)


@pytest.mark.parametrize("form", ["max", "max with mask", "max backward", "average"])
def test_a_window_whose_positions_do_not_fit_at_once(form):
    """The kernel takes a part of the positions at a time; the mask needs the maximum of all."""
    patches = Patches(height=11, width=11, kernel=(11, 11))
    pooling = pooling_of(patches, form, "im2col")
    assert len(pooling.plan(SMALL).chunks(pooling.task)) > 1
    check(pooling, SMALL)


# The layers of networks. A case has 16 channels, since all groups of 16 are computed alike, and
# the methods with an instruction for each window get the first rows of large images only.

#: Windows times positions of the kernel that a case of the suite may have, by method.
MOST = {"direct": 200, "xy": 400, "expansion": 1_000, "im2col": 3_000, "strided": 3_000}


def _layer_rows(layer, method):
    """Return the number of rows of the image such that the case is small enough."""
    whole = layer.patches()
    most = max(1, MOST[method] // (whole.columns * layer.kernel**2))
    return (
        None if most >= whole.rows else max(layer.kernel, (most - 1) * layer.stride + layer.kernel)
    )


def _layer_case(layer, method, rows, blocks=(1, 1)):
    patches = layer.patches(rows)
    forms = [form for form in FORMS if form.startswith(layer.reduction[:2])]
    divisors = None
    if layer.reduction == "avg":
        ones = Pooling(replace(patches), 1, 1, "avg", "im2col")
        divisors = np.array([len(places) for _, _, places in plain.windows(ones.patches)]).reshape(
            patches.rows, patches.columns
        )
    for form in forms:
        pooling = pooling_of(patches, form, method, blocks, divisors if "av" in form else None)
        data = operands(pooling, seed=layer.side)
        outputs = simulate(build(pooling, C910, data=data), checks=False).outputs
        for name, array in _expected(pooling, data).items():
            assert np.array_equal(outputs[name].view("u2"), array.view("u2")), (form, name)


def _expected(pooling, data):
    kind = expected.backward if pooling.backward else expected.forward
    return kind(pooling, **data)


def _different(layers):
    """Return one layer of each geometry: 16 channels make the others equal to it."""
    found = {}
    for layer in layers:
        found.setdefault((layer.reduction, layer.patches()), layer)
    return list(found.values())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("layer", _different(LAYERS), ids=str)
def test_layers_of_four_networks(layer, method):
    """``expected`` is compared with the windows one by one in the test below."""
    _layer_case(layer, method, _layer_rows(layer, method))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["im2col", "strided"])
@pytest.mark.parametrize("layer", _different(LAYERS), ids=str)
def test_whole_layers_of_four_networks(layer, method):
    """The other methods differ in the instructions for a row, and take minutes for all rows."""
    _layer_case(layer, method, None)


@settings(max_examples=25)
@given(geometries(), st.sampled_from(sorted(FORMS)), st.sampled_from(sorted(METHODS)))
def test_the_expected_results_are_those_of_the_windows(patches, form, method):
    if not _has_a_pixel_in_each_window(patches):
        return
    pooling = pooling_of(patches, form, method, (1, 1))
    data = operands(pooling)
    got = _expected(pooling, data)
    for name, array in reference(pooling, data).items():
        assert np.array_equal(got[name].view("u2"), array.view("u2")), name


# Instruction counts: Rohwedder 2021, §4.1 and §4.2.


def counts(pooling, chip=C910):
    """Return how often each instruction occurs with each number of enabled lanes."""
    program = build(pooling, chip, cores=1)
    return Counter(
        (i.op, i.work.operations // max(i.work.repeats, 1))
        for i in program.core().instructions
        if i.kind == Kind.NORMAL and i.unit != Unit.S
    )


@pytest.mark.parametrize("side", [9, 17, 35])
@pytest.mark.parametrize("stride", [2, 3])
def test_vmax_is_issued_as_often_as_the_paper_says(side, stride):
    patches = Patches(height=side, width=side, kernel=(3, 3), stride=(stride, stride))
    assert len(pooling_of(patches, "max", "im2col").plan(C910).tiles) == 1
    direct = counts(pooling_of(patches, "max", "direct"))
    assert direct["vmax", 16] == patches.rows * patches.columns * 3
    assert direct["vmax", 128] == 0
    im2col = counts(pooling_of(patches, "max", "im2col"))
    assert im2col["vmax", 128] == 3 * 3 and im2col["vmax", 16] == 0
    assert im2col["im2col", 0] == 3 * 3
    expansion = counts(pooling_of(patches, "max", "expansion"))
    assert expansion["vor", 16] == 9 * patches.rows
    assert sum(n for (op, _), n in expansion.items() if op == "vmax") in (9, 18)


def test_an_average_adds_as_often_and_divides_once():
    patches = Patches(height=17, width=17, kernel=(3, 3), stride=(2, 2))
    assert counts(pooling_of(patches, "average", "direct"))["vadd", 16] == 64 * 3
    im2col = counts(pooling_of(patches, "average", "im2col"))
    assert im2col["vadd", 128] == 9 and im2col["vdiv", 128] == 1


def test_the_gradient_is_merged_as_often_as_the_paper_says():
    """vadd has 16 lanes and no repetition; one Col2Im for each position of the kernel."""
    patches = Patches(height=17, width=17, kernel=(3, 3), stride=(2, 2))
    direct = counts(pooling_of(patches, "max backward", "direct"))
    assert direct["vadd", 16] == 64 * 9 and direct["vmul", 128] == 9
    im2col = counts(pooling_of(patches, "max backward", "im2col"))
    assert im2col["vmul", 128] == 9 and "vadd" not in {op for op, _ in im2col}
    assert sum(n for (op, _), n in im2col.items() if op == "col2im") == 9


def test_at_stride_one_the_direct_vmax_has_all_lanes():
    """§5.2: neighbouring windows read neighbouring pixels, a row of windows per instruction."""
    patches = Patches(height=18, width=18, kernel=(3, 3))
    direct = counts(pooling_of(patches, "max", "direct"))
    assert direct["vmax", 128] == 9 * patches.rows and direct["vmax", 16] == 0
    # Of 19 windows, the three behind the two groups of eight are one instruction for all rows.
    patches = replace(patches, width=21)
    direct = counts(pooling_of(patches, "max", "direct"))
    assert direct["vmax", 128] == 9 * patches.rows and direct["vmax", 3 * 16] == 9


@pytest.mark.parametrize(("method", "lanes"), [("direct", 16), ("im2col", 128)])
def test_each_repeat_of_a_mask_has_its_comparison_and_selection(method, lanes):
    """The 64 windows are single pixels (direct) or eight repeats of all lanes, at 9 positions."""
    patches = Patches(height=17, width=17, kernel=(3, 3), stride=(2, 2))
    found = counts(pooling_of(patches, "max with mask", method))
    repeats = 9 * 64 * 16 // lanes
    assert found["vcmp", lanes] == found["vsel", lanes] == repeats
    assert found["vsub", 128] == 9 and "vcmpv" not in {op for op, _ in found}
    # With bits in memory, the repeats of many windows are one instruction.
    found = counts(pooling_of(patches, "max with mask", method), MEMORY)
    parts = 9 * (8 if method == "direct" else 1)
    assert found["vcmpv", lanes] == parts and found["vsel", lanes] == 2 * parts


@pytest.mark.parametrize("method", METHODS)
def test_masks_with_bits_in_memory(method):
    """The 910 would have a finding, so that the form of the chip matters."""
    pooling = pooling_of(_PADDED, "max with mask", method, (2, 1))
    assert pooling.plan(MEMORY).bits_in_memory and not pooling.plan(C910).bits_in_memory
    check(pooling, MEMORY)
    other = simulate(build(pooling, MEMORY), chip=C910).findings
    assert {finding.check for finding in other} == {"unsupported"}


@pytest.mark.parametrize("form", FORMS)
def test_strided_takes_groups_of_eight_columns(form):
    """Two groups of eight windows and a rest of one, down the rows, at each of 9 positions."""
    patches = Patches(height=35, width=35, kernel=(3, 3), stride=(2, 2))
    found = counts(pooling_of(patches, form, "strided"))
    op = "vmax" if "max" in form and "back" not in form else "vadd"
    assert found[op, 128] == 9 * 2 and found[op, 16] == 9


# Fields, tiles, refusals.


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", METHODS)
def test_fields_of_instructions_are_within_their_limits(form, method):
    """A row of more windows than repeats, one by one or in groups of eight where these are used."""
    # The direct method has an instruction for each window, so that more of them show nothing.
    width = {"direct": 300, "strided": 2100}.get(method, 600)
    patches = Patches(height=1, width=width, kernel=(1, 1), stride=(1, 1))
    for wide in (patches, replace(patches, width=width // 2 * 3, kernel=(1, 2), stride=(1, 3))):
        pooling = pooling_of(wide, form, method)
        program = build(pooling, C910)
        for core in program:
            for instr in core.instructions:
                f = instr.fields
                assert f.get("repeat", 1) <= 255
                assert all(
                    v <= 255 for k, v in f.items() if k.endswith(("block_stride", "repeat_stride"))
                )
                assert f.get("bursts", 1) <= 4095
    # The model of whole images, which a test above compares with the windows one by one.
    check(pooling, model=_expected)


@given(geometries(), st.integers(1, 6))
def test_tiles_own_every_window_and_every_pixel_once(patches, most):
    for axis, (count, size) in enumerate(
        ((patches.rows, patches.height), (patches.columns, patches.width))
    ):
        forward = [i for t in forward_axis(patches, axis, most) for i in range(*t.windows)]
        assert forward == list(range(count))
        parts = backward_axis(patches, axis, most)
        assert [i for t in parts for i in range(*t.pixels)] == list(range(size))
        stride, before = patches.stride[axis], patches.pad[2 * axis]
        for tile in parts:
            touching = [
                o
                for o in range(count)
                if o * stride - before < tile.pixels[1]
                and o * stride - before + patches.extent[axis] > tile.pixels[0]
            ]
            assert touching == list(range(*tile.windows))


def test_a_window_that_fits_no_buffer_is_refused():
    patches = Patches(height=200, width=200, kernel=(200, 200))
    with pytest.raises(ValueError, match="window of direct pooling must fit the buffers of asc"):
        pooling_of(patches, "max", "direct").plan(C910)


# Mutants: the comparison and the checks notice what is wrong.

_PADDED = Patches(height=9, width=11, kernel=(3, 3), stride=(2, 2), pad=(1, 1, 1, 1))

#: Without padding, every instruction matters; most windows of the operands have several maxima.
_MUTANT = Patches(height=5, width=7, kernel=(3, 3), stride=(2, 2))


def _noticed(pooling, data, wanted, program):
    """Return True if a program has a finding or another result."""
    try:
        report = simulate(program)
    except ValueError:
        return True
    same = all(
        np.array_equal(report.outputs[n].view("u2"), a.view("u2")) for n, a in wanted.items()
    )
    return bool(report.findings) or not same


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", METHODS)
def test_a_missing_instruction_is_noticed(form, method):
    """The first occurrence of the second half of each operation stands for that half."""
    # A comparison of one window of a mask matters only where the window has not been found before,
    # which the smaller image does not ensure.
    patches = replace(_MUTANT, height=9, width=11) if form == "max with mask" else _MUTANT
    pooling = pooling_of(patches, form, method)
    data = operands(pooling, ties=pooling.argmax)
    wanted = reference(pooling, data)
    program = build(pooling, C910, cores=1, data=data)
    whole = list(program.core().instructions)
    assert not _noticed(pooling, data, wanted, program)
    places = {}
    for index, instr in enumerate(whole):
        if instr.kind == Kind.NORMAL:
            places.setdefault(instr.op, []).append(index)
    assert len(places) >= 3
    for op, indices in places.items():
        index = indices[len(indices) // 2]
        program.core().instructions[:] = whole[:index] + whole[index + 1 :]
        assert _noticed(pooling, data, wanted, program), op


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", ["direct", "im2col"])
def test_every_pair_of_units_needs_its_flags(form, method):
    """Without the flags of any pair of units, a race is found."""
    patches = Patches(height=9, width=34, kernel=(3, 3), stride=(2, 2), pad=(1, 1, 1, 1))
    divisors = np.arange(patches.count).reshape(patches.rows, -1) + 1
    pooling = pooling_of(patches, form, method, divisors=divisors if "av" in form else None)
    data = operands(pooling)
    program = build(pooling, SMALL, cores=1, data=data)
    whole = list(program.core().instructions)
    assert len(pooling.plan(SMALL).tiles) > 2 and not simulate(program, cube=None).findings
    pairs = {(i.fields["source"], i.fields["target"]) for i in whole if i.kind == Kind.SET}
    assert len(pairs) >= 4
    for pair in pairs:
        program.core().instructions[:] = [
            i for i in whole if (i.fields.get("source"), i.fields.get("target")) != pair
        ]
        found = simulate(program, cube=None).findings
        assert any(finding.check == "race" for finding in found), pair


@pytest.mark.parametrize("form", ["max", "average"])
@pytest.mark.parametrize("method", METHODS)
def test_a_wrong_stride_or_padding_is_noticed(form, method):
    pooling = pooling_of(_PADDED, form, method)
    data = operands(pooling)
    wanted = reference(pooling, data)["y"]
    other = replace(_PADDED, pad=(0, 2, 1, 1))
    report = simulate(build(pooling_of(other, form, method), C910, data=data))
    assert report.outputs["y"].shape == wanted.shape
    assert not np.array_equal(report.outputs["y"], wanted)


def test_the_second_maximum_is_not_marked():
    """A mask of all maxima differs where a window has several, as most have here."""
    pooling = pooling_of(_PADDED, "max with mask", "im2col")
    data = operands(pooling)
    report = simulate(build(pooling, C910, data=data))
    mask = report.outputs["mask"]
    assert (mask.sum(axis=(2, 3)) == 1).all()
    padded = np.full((1, 1, 11, 13, 16), -np.inf, np.float16)
    padded[:, :, 1:10, 1:12] = data["x"]
    equal = sum(
        (padded[:, :, y : y + 9 : 2, x : x + 11 : 2] == report.outputs["y"]).astype(int)
        for y, x in np.ndindex(3, 3)
    )
    assert (np.asarray(equal) > 1).mean() > 0.2


def test_windows_of_minus_infinity_mark_a_pixel_and_not_the_padding():
    pooling = pooling_of(_PADDED, "max with mask", "im2col")
    data = {"x": np.full(pooling.shapes["x"], -np.inf, np.float16)}
    outputs = simulate(build(pooling, C910, data=data)).outputs
    wanted = reference(pooling, data)
    assert np.array_equal(outputs["mask"], wanted["mask"])
    assert np.array_equal(outputs["y"], wanted["y"])


def test_a_plan_uses_as_much_of_the_buffer_as_fits():
    patches = Patches(height=71, width=71, kernel=(3, 3), stride=(2, 2))
    pooling = pooling_of(patches, "max", "im2col")
    made = plan.plan(pooling.task, C910)
    assert [tile.rows.count for tile in made.tiles] == [17, 18]
    assert sum(made.sizes[name] for name in ("windows", "positions")) <= 8192

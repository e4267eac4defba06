"""Tables of networks have the published sizes; layers are timed once per shape and classified."""

from dataclasses import replace

import pytest

from vitruvian.sim.davinci import load_chip, simulate
from vitruvian.sim.davinci.checks.check import check
from vitruvian.sim.davinci.chip.file import chip_text, read_chip
from vitruvian.sim.networks import NETWORKS, Network
from vitruvian.sim.networks.baseline import build_baseline, unfused
from vitruvian.sim.networks.elementwise import RECIPES, build_elementwise, build_layer_norm
from vitruvian.sim.networks.layers import (
    Conv,
    Elementwise,
    LayerNorm,
    MatMul,
    Other,
    Pool,
    Softmax,
)
from vitruvian.sim.networks.run import UnknownLayers, instructions_of, program_of, run
from vitruvian.sim.roofline import Bound, analyse, counters_of

CHIP = load_chip("ascend310")


def products(network):
    """Return the multiply-accumulates and the weights of a network."""
    macs = weights = 0
    for x in network.layers:
        if isinstance(x, Conv):
            each = x.filters * (x.channels // x.groups) * x.kernel[0] * x.kernel[1]
            macs, weights = macs + each * x.rows * x.columns, weights + each
        elif isinstance(x, MatMul):
            macs, weights = macs + x.times * x.m * x.k * x.n, weights + x.times * x.k * x.n
    return macs, weights


#: Multiply-accumulates in millions of the publications, which count them in slightly different
#: ways (with or without biases and small layers), and weights in millions.
PUBLISHED = {
    "mobilenet_v3": (219, 5.4, 0.02),  # Howard et al. 2019, Table 3
    "resnet50": (4100, 25.6, 0.01),  # 4.1 · 10⁹ with the stride in the 3 × 3 convolution
    "inception_v3": (5730, 23.8, 0.01),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_sizes_agree_with_the_publications(name):
    macs, weights, within = PUBLISHED[name]
    found = products(NETWORKS[name]())
    assert found[0] / 1e6 == pytest.approx(macs, rel=within)
    assert found[1] / 1e6 == pytest.approx(weights, rel=within)


def test_bert_has_85_million_weights_in_its_encoders():
    layers = [x for x in NETWORKS["bert_base"]().layers if isinstance(x, MatMul)]
    dense = [x for x in layers if "scores" not in x.name and "context" not in x.name]
    # 12 · (4 · 768² + 2 · 768 · 3072), and the pooler.
    assert sum(x.times * x.k * x.n for x in dense) == 12 * 12 * 768**2 + 768**2


def test_a_changed_table_is_noticed():
    """Without one convolution of 3 × 3, neither figure agrees any more."""
    layers = list(NETWORKS["resnet50"]().layers)
    convs = [x for x in layers if isinstance(x, Conv) and x.kernel == (3, 3)]
    layers.remove(convs[-1])
    macs, weights = products(Network("x", "x", tuple(layers)))
    assert macs / 1e6 != pytest.approx(4100, rel=0.01)
    assert weights / 1e6 != pytest.approx(25.6, rel=0.01)


def test_the_layers_of_a_network_fit_each_other():
    """The results of the last convolutions have the sizes of the publications."""
    sizes = {"mobilenet_v3": (7, 7, 960), "resnet50": (7, 7, 2048), "inception_v3": (8, 8, 2048)}
    for name, (rows, columns, channels) in sizes.items():
        (last,) = [x for x in NETWORKS[name]().layers if isinstance(x, Pool)][-1:]
        assert (last.height, last.width, last.channels) == (rows, columns, channels)
        assert (last.rows, last.columns) == (1, 1)


SAME, ONE = (1, 1, 1, 1), (1, 1)

SMALL = Network(
    "small",
    "Small",
    (
        Conv(name="c", channels=3, height=16, width=16, filters=16, kernel=(3, 3), pad=SAME),
        Conv(name="d", channels=16, height=16, width=16, filters=16, kernel=(3, 3), groups=16),
        Pool(name="p", operation="max", channels=16, height=9, width=9, kernel=(3, 3), stride=ONE),
        Pool(name="g", operation="avg", channels=16, height=7, width=7, kernel=(7, 7), stride=ONE),
        MatMul(name="f", m=1, k=16, n=10, times=3),
        MatMul(name="f again", m=1, k=16, n=10),
        Elementwise(name="e", operation="hard_swish", elements=5000),
        Softmax(name="s", rows=100, classes=10),
        LayerNorm(name="n", rows=256, features=96),
    ),
)


def test_every_kind_of_layer_is_timed_and_classified():
    told = []
    result = run(SMALL, CHIP, tell=told.append)
    assert told == list(SMALL.layers) and not result.skipped
    assert all(x.seconds > 0 for x in result.layers)
    assert result.seconds == sum(x.seconds for x in result.layers)
    # Layers of equal shape share one simulation; three runs take three times as long as one.
    three, one = result.layers[4], result.layers[5]
    assert three.analysis is one.analysis and three.seconds == 3 * one.seconds
    shares = result.distribution()
    assert sum(shares.values()) == pytest.approx(1)
    assert shares[Bound.PARALLELISM] >= 4 / 11  # the products alone: 4 of 11 runs of layers
    assert sum(result.distribution(by_time=True).values()) == pytest.approx(1)
    assert [x["kind"] for x in result.as_dict()["layers"]] == [
        "conv", "depthwise", "maxpool", "avgpool", "matmul", "matmul", "elementwise", "softmax",
        "layer norm",
    ]  # fmt: skip


def test_layers_without_a_kernel_are_named_and_counted():
    more = (
        Other(name="a", operation="Resize"),
        Other(name="b", operation="Resize"),
        Softmax(name="wide", rows=1, classes=1000),
        Elementwise(name="odd", operation="erf", elements=1),
    )
    network = Network("n", "N", (*SMALL.layers[4:5], *more))
    with pytest.raises(UnknownLayers, match=r"Resize \(2\), elementwise \(1\), softmax \(1\)"):
        run(network, CHIP)
    result = run(network, CHIP, skip_unknown=True)
    assert result.skipped == {"Resize": 2, "softmax": 1, "elementwise": 1}
    assert result.seconds == result.layers[0].seconds
    with pytest.raises(UnknownLayers, match="layer must have a kernel, not Resize"):
        program_of(more[0], CHIP)


@pytest.mark.parametrize("step", ["optimised", "baseline"])
@pytest.mark.parametrize(
    "layer",
    [
        Conv(name="l", channels=999999999, height=999999, width=999999, filters=9, kernel=(1, 1)),
        Conv(
            name="l", channels=64, height=10**6, width=10**6, filters=64, kernel=(3, 3), groups=64
        ),
        Pool(
            name="l", operation="max", channels=10**9, height=10**4, width=10**4, kernel=(2, 2),
            stride=(2, 2),
        ),
        MatMul(name="l", m=10**9, k=10**9, n=10**9),
        Softmax(name="l", rows=10**12, classes=8),
        LayerNorm(name="l", rows=10**12, features=768),
        Elementwise(name="l", operation="gelu", elements=10**13),
    ],
    ids=lambda layer: layer.kind,
)  # fmt: skip
def test_a_layer_without_an_end_is_refused_before_any_is_simulated(layer, step):
    first = Elementwise(name="first", operation="relu", elements=64)
    network = Network("huge", "huge", (first, layer))
    with pytest.raises(
        ValueError, match=r"huge, l.*: instructions of .* at most 2,000,000"
    ) as error:
        run(network, CHIP, step=step, tell=lambda layer: pytest.fail("simulated"))
    assert "\n" not in str(error.value)


def test_the_bound_of_instructions_holds():
    for name in ("mobilenet_v3", "bert_base"):
        for layer in {x.shape: x for x in NETWORKS[name]().layers}.values():
            if isinstance(layer, Elementwise | LayerNorm | Pool):
                program = program_of(layer, CHIP)
                most = max(len(core.instructions) for core in program.cores.values())
                assert most <= instructions_of(layer, CHIP)


def test_an_error_of_a_kernel_names_the_layer():
    text = chip_text("ascend910")[0].replace("L0A", "LX")
    with pytest.raises(ValueError, match="small, c: chip must have cores with a Cube and its buff"):
        run(SMALL, read_chip(text))


def test_layers_run_on_separate_cube_and_vector_cores():
    chip = load_chip("ascend910b")
    result = run(SMALL, chip)
    assert [x.analysis is not None for x in result.layers] == [True] * len(SMALL.layers)
    for layer in SMALL.layers:
        program = program_of(layer, chip)
        assert not check(program, strict=True)
        kind = (
            "cube" if isinstance(layer, Conv | MatMul) and layer.kind != "depthwise" else "vector"
        )
        assert {core.kind.name for core in program} == {kind}
        assert max(len(core.instructions) for core in program) <= instructions_of(layer, chip)


@pytest.mark.parametrize("operation", sorted(RECIPES))
def test_programs_on_elements_are_clean(operation):
    program = build_elementwise(operation, 20000, CHIP)
    report = simulate(program, cube=None)
    assert not report.findings
    operands = RECIPES[operation][0]
    size = 2 * 4096 * 5  # whole pieces of 4096 elements
    assert report.path_bytes() == {"GM->UB": operands * size, "UB->GM": size}


@pytest.mark.parametrize("features", [96, 768, 97])
def test_the_layer_normalisation_is_clean_and_reads_its_operand_twice(features):
    report = simulate(build_layer_norm(300, features, CHIP), cube=None)
    assert not report.findings
    size = 2 * 3 * 128 * features
    assert report.path_bytes() == {"GM->UB": 2 * size, "UB->GM": size}


def test_global_pooling_has_eight_groups_of_channels_in_a_repeat():
    """With one window, direct pooling has 16 of 128 lanes, and takes half of the time of Im2Col."""
    layer = replace(SMALL.layers[3], channels=512)
    program = program_of(layer, CHIP)
    assert isinstance(layer, Pool) and "whole" in program.name
    masks = {i.fields["mask"] for c in program for i in c.instructions if i.op == "vadd"}
    assert masks == {(1 << 128) - 1}
    assert "direct" in program_of(replace(layer, pad=(1, 0, 0, 0), stride=(2, 2)), CHIP).name
    assert "im2col" in program_of(replace(layer, kernel=(3, 3)), CHIP).name


def test_the_baseline_has_two_operators_for_hard_swish_and_for_hard_sigmoid():
    network = NETWORKS["mobilenet_v3"]()
    fused = [x for x in network.layers if isinstance(x, Elementwise) and "hard" in x.operation]
    assert len(fused) == 21 + 8  # Howard et al. 2019, Table 1: activations HS, and blocks with SE
    found = unfused(network)
    assert len(network.layers) == 128 and len(found.layers) == 128 + len(fused)
    assert not any(x.operation in ("hard_swish", "hard_sigmoid") for x in found.layers
                   if isinstance(x, Elementwise))  # fmt: skip


@pytest.mark.parametrize("layer", unfused(SMALL).layers, ids=lambda x: x.name)
def test_baselines_are_clean_and_slower(layer):
    program = build_baseline(layer, CHIP)
    if isinstance(layer, Softmax | LayerNorm):
        assert program is None
        return
    assert program is not None
    report = simulate(program, cube=None)
    assert not report.findings
    if isinstance(layer, Elementwise) and layer.operation == "shift_relu":
        return
    if isinstance(layer, Pool) and layer.stride == ONE:
        # Direct pooling is the faster one at this stride (Rohwedder 2021, §5.2).
        return
    if isinstance(layer, MatMul):
        # One step has nothing to overlap, so the baseline needs more of them to be slower.
        layer = replace(layer, k=1024, n=256)
        larger = build_baseline(layer, CHIP)
        assert larger is not None
        report = simulate(larger, cube=None)
        assert not report.findings
    fast = simulate(program_of(layer, CHIP), cube=None, checks=False)
    assert report.total_s >= fast.total_s


def test_a_piece_of_the_baseline_waits_for_the_store_of_the_piece_before():
    """Nothing overlaps on a core, so its active times add up to its total; optimised, they do."""
    layer = Elementwise(name="e", operation="relu", elements=40000)

    def sum_of_ratios(program):
        rows = analyse(counters_of(simulate(program, cube=None, checks=False), buses=False)).rows
        return sum(row.time_ratio for row in rows)

    program = build_baseline(layer, CHIP)
    assert program is not None
    assert 0.9 < sum_of_ratios(program) <= 1 < sum_of_ratios(program_of(layer, CHIP))


def test_the_step_of_a_network_is_checked_and_shown():
    layers = Network("n", "N", SMALL.layers[4:7])
    with pytest.raises(ValueError, match="step must be one of baseline, optimised, not 'fast'"):
        run(layers, CHIP, step="fast")
    slow, fast = run(layers, CHIP, step="baseline"), run(layers, CHIP)
    assert [x.layer.name for x in slow.layers][-2:] == ["e shift_relu", "e mul"]
    assert slow.as_dict()["step"] == "baseline" and fast.as_dict()["step"] == "optimised"
    assert slow.seconds > fast.seconds


def test_buses_and_launches_can_change_the_classes():
    """A bound by the bus alone is insufficient parallelism without it, as with a long launch."""
    layer = Elementwise(name="e", operation="add", elements=200_000)
    times = run(Network("n", "N", (layer,)), CHIP, step="baseline")
    analysis = times.layers[0].analysis
    assert analysis is not None and analysis.cause.component.name.startswith("bus")
    assert times.distribution() == {Bound.MTE: 1}
    assert times.distribution(buses=False) == {Bound.PARALLELISM: 1}
    assert times.distribution(launch_s=1e-3) == {Bound.PARALLELISM: 1}

"""Networks from ONNX files; most of these tests need the package onnx, an extra."""

import sys

import numpy as np
import pytest

from vitruvian.cli import main
from vitruvian.sim.davinci import load_chip
from vitruvian.sim.networks.layers import Conv, Elementwise, MatMul, Other, Pool, Softmax
from vitruvian.sim.networks.onnx_file import OnnxError, read_onnx
from vitruvian.sim.networks.run import run


def test_without_the_package_one_line_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(OnnxError, match=r"onnx must be installed: .*'\.\[onnx\]'"):
        read_onnx(tmp_path / "a.onnx")


@pytest.fixture
def onnx():
    return pytest.importorskip("onnx", reason="the extra onnx is not installed")


def save(onnx, path, nodes, shape, weights, result="y"):
    """Write a model with one input x, whose weights are zeros of the given shapes."""
    h, float32 = onnx.helper, onnx.TensorProto.FLOAT
    tensors = [
        h.make_tensor(name, float32, size, np.zeros(size, np.float32).tobytes(), raw=True)
        for name, size in weights.items()
    ]
    inputs = [h.make_tensor_value_info("x", float32, shape)]
    outputs = [h.make_tensor_value_info(result, float32, None)]
    graph = h.make_graph(nodes, "toy", inputs, outputs, tensors)
    versions = [h.make_opsetid("", 17), h.make_opsetid("mine", 1)]
    onnx.save(h.make_model(graph, opset_imports=versions), str(path))
    return path


def test_a_convolutional_network(onnx, tmp_path):
    node = onnx.helper.make_node
    nodes = [
        node("Conv", ["x", "w0", "s"], ["c0"], name="first", pads=[1, 2, 1, 2], strides=[2, 1]),
        node("BatchNormalization", ["c0", "s", "s", "s", "s"], ["n0"]),
        node("Relu", ["n0"], ["r0"]),
        node("Conv", ["r0", "w1"], ["c1"], name="second", auto_pad="SAME_UPPER", group=16),
        node("Add", ["c1", "r0"], ["a"], name="sum"),
        node("Relu", ["a"], ["r1"], name="relu"),
        node("MaxPool", ["r1"], ["p"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("GlobalAveragePool", ["p"], ["g"], name="global"),
        node("Flatten", ["g"], ["f"]),
        node("Gemm", ["f", "w2"], ["d"], name="dense"),
        node("Softmax", ["d"], ["y"], name="classes"),
    ]
    weights = {"w0": [16, 3, 3, 3], "s": [16], "w1": [16, 1, 3, 3], "w2": [16, 10]}
    path = save(onnx, tmp_path / "toy.onnx", nodes, [1, 3, 32, 32], weights)
    network = read_onnx(path)
    assert network.name == "toy"
    assert network.layers == (
        Conv(
            name="first", channels=3, height=32, width=32, filters=16, kernel=(3, 3),
            stride=(2, 1), pad=(1, 1, 2, 2), relu=True,
        ),
        Conv(
            name="second", channels=16, height=16, width=34, filters=16, kernel=(3, 3),
            pad=(1, 1, 1, 1), groups=16,
        ),
        Elementwise(name="sum", operation="add", elements=16 * 16 * 34),
        Elementwise(name="relu", operation="relu", elements=16 * 16 * 34),
        Pool(
            name="pool", operation="max", channels=16, height=16, width=34, kernel=(2, 2),
            stride=(2, 2),
        ),
        Pool(
            name="global", operation="avg", channels=16, height=8, width=17, kernel=(8, 17),
            stride=(1, 1),
        ),
        MatMul(name="dense", m=1, k=16, n=10),
        Softmax(name="classes", rows=1, classes=10),
    )  # fmt: skip


def test_products_of_a_batch_and_operators_without_a_kernel(onnx, tmp_path):
    node = onnx.helper.make_node
    nodes = [
        node("MatMul", ["x", "w"], ["q"], name="dense"),
        node("Transpose", ["q"], ["t"], name="turn", perm=[0, 2, 1]),
        node("MatMul", ["q", "t"], ["y"], name="scores"),
    ]
    path = save(onnx, tmp_path / "a.onnx", nodes, [4, 8, 32], {"w": [32, 64]})
    assert read_onnx(path).layers == (
        MatMul(name="dense", m=32, k=32, n=64),
        Other(name="turn", operation="Transpose"),
        MatMul(name="scores", m=8, k=64, n=8, times=4),
    )


def test_a_relu_of_a_shared_result_is_a_layer(onnx, tmp_path):
    node = onnx.helper.make_node
    nodes = [
        node("Conv", ["x", "w"], ["c"], name="c"),
        node("Relu", ["c"], ["r"], name="r"),
        node("Add", ["c", "r"], ["y"], name="a"),
    ]
    path = save(onnx, tmp_path / "a.onnx", nodes, [1, 4, 8, 8], {"w": [4, 4, 1, 1]})
    assert [x.kind for x in read_onnx(path).layers] == ["conv", "elementwise", "elementwise"]


def test_a_variable_shape_is_refused(onnx, tmp_path):
    nodes = [onnx.helper.make_node("Relu", ["x"], ["y"])]
    path = save(onnx, tmp_path / "a.onnx", nodes, ["batch", 4], {})
    text = r"a.onnx: tensor y must have a fixed shape, and so must the input x, not batch×4"
    with pytest.raises(OnnxError, match=text):
        read_onnx(path)


def test_tensors_of_unknown_shape_make_layers_without_a_kernel(onnx, tmp_path):
    node = onnx.helper.make_node
    # The shapes of Foo's results are not known, not even their numbers of dimensions.
    nodes = [
        node("Conv", ["x", "w"], ["c"], name="conv"),
        node("Foo", ["c"], ["u"], name="own", domain="mine"),
        node("Softmax", ["u"], ["s"], name="softmax"),
        node("Relu", ["s"], ["r"], name="relu"),
        node("LayerNormalization", ["u", "w"], ["n"], name="norm"),
        node("MatMul", ["u", "w"], ["m"], name="product"),
        node("Gemm", ["u", "w"], ["g"], name="gemm"),
        node("MaxPool", ["u"], ["p"], name="pool", kernel_shape=[2, 2]),
        node("Conv", ["u", "w"], ["d"], name="second"),
        node("Resize", ["c", "", "", "sizes"], ["z"], name="resize"),
        node("Softmax", ["scalar"], ["e"], name="point"),
        node("Conv", ["line", "taps"], ["y"], name="line"),
    ]
    weights = {"w": [4, 4, 1, 1], "scalar": [], "line": [1, 4, 9], "taps": [4, 4, 3], "sizes": [4]}
    path = save(onnx, tmp_path / "a.onnx", nodes, [1, 4, 8, 8], weights)
    layers = read_onnx(path).layers
    assert layers[0].kind == "conv" and isinstance(layers[0], Conv)
    assert [(x.name, x.kind) for x in layers[1:]] == [
        ("own", "Foo"),
        ("softmax", "Softmax of unknown shape"),
        ("relu", "Relu of unknown shape"),
        ("norm", "LayerNormalization of unknown shape"),
        ("product", "MatMul of unknown shape"),
        ("gemm", "Gemm of unknown shape"),
        ("pool", "MaxPool of unknown shape"),
        ("second", "Conv of unknown shape"),
        ("resize", "Resize"),
        ("point", "Softmax of a scalar"),
        ("line", "Conv of 3 dimensions"),
    ]
    times = run(read_onnx(path), load_chip("ascend310"), skip_unknown=True)
    assert times.seconds > 0 and sum(times.skipped.values()) == 11


def test_a_tensor_without_a_shape_is_no_scalar(onnx, tmp_path):
    """Exported models declare such tensors; the class axis of a softmax was sought in no axes."""
    h, float32 = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [
        h.make_node("Foo", ["x"], ["u"], name="own", domain="mine"),
        h.make_node("Softmax", ["u"], ["s"], name="classes", axis=2),
        h.make_node("MatMul", ["s", "u"], ["y"], name="product"),
    ]
    values = [h.make_tensor_value_info(name, float32, None) for name in "uy"]
    inputs = [h.make_tensor_value_info("x", float32, [1, 4])]
    graph = h.make_graph(nodes, "toy", inputs, values[1:], value_info=values[:1])
    versions = [h.make_opsetid("", 17), h.make_opsetid("mine", 1)]
    onnx.save(h.make_model(graph, opset_imports=versions), str(tmp_path / "a.onnx"))
    kinds = [layer.kind for layer in read_onnx(tmp_path / "a.onnx").layers]
    assert kinds == ["Foo", "Softmax of unknown shape", "MatMul of unknown shape"]


def test_shapes_are_followed_through_computed_shapes(onnx, tmp_path):
    node, h = onnx.helper.make_node, onnx.helper
    two = h.make_tensor("two", onnx.TensorProto.INT64, [1], [-1])
    nodes = [
        node("Shape", ["x"], ["s"], start=0, end=1),
        node("Constant", [], ["rest"], value=two),
        node("Concat", ["s", "rest"], ["t"], axis=0),
        node("Reshape", ["x", "t"], ["flat"]),
        node("Softmax", ["flat"], ["y"], name="classes"),
    ]
    path = save(onnx, tmp_path / "a.onnx", nodes, [3, 4, 5], {})
    assert read_onnx(path).layers == (Softmax(name="classes", rows=3, classes=20),)


def test_graphs_that_are_no_networks_are_refused(onnx, tmp_path):
    node = onnx.helper.make_node
    circle = [node("Relu", ["b"], ["a"], name="one"), node("Relu", ["a"], ["b"], name="two")]
    itself = [node("Add", ["x", "y"], ["y"], name="own")]
    missing = [node("Relu", ["z"], ["y"])]
    malformed = [node("Conv", ["x"], ["y"], name="bare")]
    axis = [node("Softmax", ["x"], ["y"], name="far", axis=9)]
    order = r"a.onnx: nodes must come after those that they read, unlike "
    for nodes, text in (
        (circle, order + "one, which reads b"),
        (itself, order + "own, which reads y"),
        (missing, order + "Relu, which reads z"),
        ([], "a.onnx: model must have one layer or more, not none"),
        ([node("Identity", ["x"], ["y"])], "model must have one layer or more, not none"),
        (malformed, "a.onnx: node bare must have the inputs and attributes of Conv"),
        (axis, "a.onnx: node far must have the inputs and attributes of Softmax"),
    ):
        path = save(onnx, tmp_path / "a.onnx", nodes, [1, 4, 8, 8], {})
        with pytest.raises(OnnxError, match=text) as error:
            read_onnx(path)
        assert "\n" not in str(error.value)


def test_names_of_a_file_do_not_control_the_terminal(onnx, tmp_path, capsys):
    node = onnx.helper.make_node
    hostile = "\x1b[2J\x1b]0;title\x07relu\r\u202e"
    nodes = [
        node("Relu", ["x"], ["r"], name=hostile),
        node(f"Foo{hostile}", ["r"], ["y"], name="b", domain="mine"),
    ]
    path = save(onnx, tmp_path / "a.onnx", nodes, [1, 4, 8, 8], {})
    for more, code in (((), 2), (("--skip-unknown",), 0)):
        assert main(["network", str(path), *more]) == code
        printed = "".join(capsys.readouterr())
        assert not set("\x1b\x07\r\u202e") & set(printed) and r"\x1b[2J" in printed


def test_files_that_are_no_models_are_refused(onnx, tmp_path):
    with pytest.raises(OnnxError, match="model must be a file that can be read"):
        read_onnx(tmp_path / "none.onnx")
    (tmp_path / "text.onnx").write_text("import onnx, sys, and other words")
    with pytest.raises(OnnxError, match=r"text.onnx: model must be an ONNX file: ") as error:
        read_onnx(tmp_path / "text.onnx")
    assert "\n" not in str(error.value)

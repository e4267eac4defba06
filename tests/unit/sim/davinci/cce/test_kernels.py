"""Whole kernels, generated and written by hand, are read and run."""

from pathlib import Path

import pytest

from tests.support.cce_sinks import Recorder, run
from vitruvian.sim.davinci.cce import CceError, read, read_file

KERNELS = Path(__file__).parent / "kernels"

GENERATED = (KERNELS / "vec_add.cce").read_text()


def test_a_generated_kernel():
    kernel = read(GENERATED, "add.cce")
    assert kernel.name == "vec_add_kernel0"
    assert [(p.name, p.dtype, p.is_pointer) for p in kernel.parameters] == [
        (name, "fp16", True) for name in ("data_a", "data_b", "res")
    ]
    sink = Recorder()
    kernel.run(sink, {"data_a": 0, "data_b": 1 << 20, "res": 1 << 21}, block_idx=1, block_num=2)
    assert len(sink.calls) == 2 + 3 * 13 + 2
    loads = [c for c in sink.calls if c.name == "copy_gm_to_ubuf"]
    assert [c.arguments["src"].address for c in loads] == [
        base + 2 * (3072 + 1024 * i) for i in range(3) for base in (0, 1 << 20)
    ]
    assert [c.arguments["dst"].address for c in loads[1::2]] == [32768 + 2048 * i for i in range(3)]
    dup = next(c for c in sink.calls if c.name == "vector_dup")
    assert dup.arguments["scalar"] == 1.5 and dup.arguments["repeat"] == 1
    empty = Recorder()
    kernel.run(empty, [0, 0, 0], block_idx=2, block_num=3)
    assert empty.names() == ["set_mask_norm", "pipe_barrier"]


MATMUL = (KERNELS / "matmul_910b.cce").read_text()


def test_a_hand_written_matmul():
    sink = Recorder()
    sizes = (20).to_bytes(8, "little") + (100).to_bytes(8, "little") + (32).to_bytes(8, "little")
    sink.buffer("GM")[4096 : 4096 + 28] = sizes + (64).to_bytes(4, "little")
    run(MATMUL, [1 << 20, 2 << 20, 3 << 20, 4096], sink=sink, defines={"__DAV_C220_CUBE__": "1"})
    products = [dict(c.arguments) for c in sink.calls if c.name == "mad"]
    assert [(p["m"], p["k"], p["n"], p["init"]) for p in products] == [
        (20, 64, 32, 1),
        (20, 36, 32, 0),
    ]
    loads = [c.arguments for c in sink.calls if c.name == "load_cbuf_to_ca"]
    assert [(x["dst"].address, x["src"].address, x["repeat"]) for x in loads] == [
        (0, 131072, 4),
        (2048, 131584, 4),
        (0, 0, 3),
        (1536, 512, 3),
    ]
    assert loads[0]["src_stride"] == 2 and loads[0]["addr_mode"] == 0
    flags = [c for c in sink.calls if c.name in ("set_flag", "wait_flag")]
    assert len(flags) == 3 + 2 * 8 + 5
    assert [(c.pipe, c.arguments["register"]) for c in flags[:3]] == [
        ("MTE1", 0),
        ("MTE1", 1),
        ("M", 2),
    ]
    out = next(c.arguments for c in sink.calls if c.name == "copy_matrix_cc_to_gm")
    assert (out["dst_stride"], out["src_stride"], out["quant_pre"]) == (32, 32, 0)
    with pytest.raises(CceError, match="there is no function in this file"):
        read(MATMUL)


SOFTMAX = (KERNELS / "softmax.cce").read_text()


def test_a_kernel_that_looks_at_its_data():
    kernel = read_file(KERNELS / "softmax.cce")
    sink = Recorder()
    sink.buffer("UB")[1024:1026] = b"\x00\x44"  # 4.0 in FP16
    kernel.run(sink, [0, 8192, 5, 100], block_idx=1, block_num=2)
    mask = next(c.arguments for c in sink.calls if c.name == "set_vector_mask")
    assert dict(mask) == {"high": (1 << 36) - 1, "low": (1 << 64) - 1}
    scalars = [c.arguments["scalar"] for c in sink.calls if "scalar" in c.arguments]
    assert scalars == [-4.0, 0.25] * 2
    assert [a.address for kind, a, _ in sink.accesses if kind == "load"] == [1024] * 4
    out = [c.arguments["dst"].address for c in sink.calls if c.name == "copy_ubuf_to_gm"]
    assert out == [8192 + 2 * 100, 8192 + 2 * 300]
    idle = Recorder()
    kernel.run(idle, [0, 8192, 1, 100], block_idx=0)  # the sum is 0
    assert "vmuls" not in idle.names() and "vexp" in idle.names()


TRANSPOSE = (KERNELS / "transpose.cce").read_text()


def test_registers_of_addresses():
    sink = run(TRANSPOSE, [0])
    registers = [c.arguments["addresses"] for c in sink.calls[:4]]
    assert registers[0] == tuple(4096 + 64 * i for i in range(8))
    assert registers[3] == tuple(32 * i for i in range(8, 16))
    last = sink.calls[4].arguments
    assert (last["dst"], last["src"], last["repeat"], last["dst_rep"]) == (0, 2, 2, 1)


def test_arguments_of_a_kernel_are_checked():
    kernel = read(SOFTMAX)
    with pytest.raises(
        ValueError, match=r"softmax must be called with 4 arguments \(x, y, rows, n\)"
    ):
        kernel.run(Recorder(), [0])
    with pytest.raises(ValueError, match="rows must be 0 to 4294967295, not -1"):
        kernel.run(Recorder(), [0, 0, -1, 3])
    with pytest.raises(ValueError, match=r"n must be an integer, not 1\.5"):
        kernel.run(Recorder(), [0, 0, 1, 1.5])
    with pytest.raises(ValueError, match="arguments must be x, y, rows, n; 'z' is unknown"):
        kernel.run(Recorder(), {"x": 0, "y": 0, "rows": 1, "z": 3})


def test_runs_do_not_disturb_each_other():
    text = """
    static int count = 5;
    __global__ __aicore__ void k(__gm__ int *p) {
        static int here = 1; here++; count += here;
        int own[4]; *p = count * 100 + here * 10 + own[2]; own[2] = 7;
    }"""
    kernel = read(text)
    for _ in range(2):
        sink = Recorder()
        kernel.run(sink, [0])
        assert sink.values("GM", "int32", 1) == [5 * 100 + 2 * 100 + 20]

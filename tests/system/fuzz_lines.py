"""Hostile command lines for ``tests.system.fuzz_commands``."""

import random
from collections.abc import Iterator

from tests.system.fuzz_grammar import Grammar
from tests.system.fuzz_hardware import HARDWARE
from tests.system.fuzz_inputs import chip_files
from tests.system.fuzz_values import BAD_TEXT as _BAD_TEXT
from tests.system.fuzz_values import CONVOLUTIONS as _CONVOLUTIONS
from tests.system.fuzz_values import COUNTER_FILES as _COUNTER_FILES
from tests.system.fuzz_values import FOLDERS as _FOLDERS
from tests.system.fuzz_values import NUMBERS as _NUMBERS
from tests.system.fuzz_values import OUTPUTS as _OUTPUTS
from tests.system.fuzz_values import POOLING_SIZES as _POOLING_SIZES
from tests.system.fuzz_values import POOLINGS as _POOLINGS
from tests.system.fuzz_values import PROBES as _PROBES
from tests.system.fuzz_values import inputs as _inputs

_GRAPH = _inputs(
    *("good.mtx", "huge.mtx", "short.mtx", "negative.mtx", "nan.mtx", "twice.mtx", "bomb.mtx.gz"),
    *("points.csv", "ragged.csv", "x.npy", "absurd.npy"),
)
_CHIPS = (
    *("ascend310", "ascend310p", "ascend910", "ascend910b", "nosuch"),
    *_inputs("good.toml", "deep.toml", "number.toml", "latin.toml", *chip_files()),
)
_DAVINCI = {
    "--chip": _CHIPS,
    "--cube": ("golden", "none", "fast", "gpu"),
    "--cores": _NUMBERS,
    "--tiling": ("1,1,1,1", "2,2,2,2", "0,0,0,0", "9,9,9,9", "1,1"),
    "--seed": _NUMBERS,
    "--no-checks": None,
    "--strict": None,
    "--lines": None,
    "--csv": _FOLDERS,
    "--timeline": None,
    "--gantt": _OUTPUTS,
    "--json": _OUTPUTS,
}
_CASES = ("add_relu", "depthwise", "avgpool", "conv2d", "matmul", "gelu")
_ROOFLINE = {
    "--chip": _CHIPS,
    "--core": ("aicore 0", "busiest", "all", "aicore 99", "aiv 0", "0"),
    "--naive": None,
    "--out": ("out.svg", *_OUTPUTS),
    "--json": _OUTPUTS,
}
_SILICON = _inputs("a100_fp16.npz", "h100_fp16.npz", "v100_fp16.npz", "b200_fp16.npz", "x.npy")

GRAMMARS = (
    Grammar(("vitruvian", "help"), (("hardware", "area", "zzz", ""),), (), {"--all": None}),
    Grammar(("vitruvian", "list"), (("fp*", "relu"),), (), {"--json": _OUTPUTS}),
    Grammar(
        ("vitruvian", "verify"),
        (("nothing", "fp.small int32 codes pipeline=2*"),),
        ("--vectors=100", "--jobs=1"),
        {"--vectors": ("100",), "--seed": _NUMBERS, "--jobs": ("1",), "--json": _OUTPUTS},
    ),
    Grammar(
        ("vitruvian", "silicon"),
        (_SILICON[3:],),
        (),
        {"--preset": ("z9", "a100x"), "--input": ("fp99", "fp8e4m3_x"), "--json": _OUTPUTS},
    ),
    Grammar(
        ("vitruvian", "exhaustive"),
        (("nothing", "*fp8e4m3 x fp8e4m3"),),
        ("--limit=1", "--jobs=1"),
        {
            "--list": None,
            "--chunk": ("65536", "1000", "3"),
            "--limit": ("1",),
            "--progress": (*_OUTPUTS, "IN/junk.bin", "IN/good.json", "IN/a100_fp16.npz"),
            "--restart": None,
            "--json": _OUTPUTS,
        },
    ),
    Grammar(
        ("vitruvian", "studies"),
        (("sgemm", "conv", "nothing"),),
        ("--size=4", "--methods=FP16"),
        {
            "--list": None,
            "--size": ("4", "2**3", "2**40"),
            "--methods": ("FP16,FP32", "FP16", "FP99"),
            "--backend": ("golden", "gpu"),
            "--verify": None,
            "--unit": ("8x4x8", "1x1x1", "9999x9999x9999"),
            "--multiplier-bits": ("12", "99"),
            "--preset": ("v100", "a100", "z9"),
            "--seed": _NUMBERS,
            "--json": _OUTPUTS,
        },
    ),
    Grammar(("vitruvian", "mma"), (("m4xu", "zzz"),), (), {"--list": None, "--count": _NUMBERS}),
    Grammar(
        ("vitruvian", "graph"),
        (("apsp", "knn", "mst", "gtc"),),
        ("--graph=IN/good.mtx",),
        {
            "--graph": _GRAPH,
            "--algorithm": ("leyzorek", "floyd-warshall", "zzz"),
            "--all-iterations": None,
            "--input": ("fp16", "fp32", "fp99"),
            "--neighbours": _NUMBERS,
            "--unit": ("4x4x4", "1x1x1", "9999x9999x9999"),
            "--json": _OUTPUTS,
        },
    ),
    Grammar(
        ("vitruvian", "kernel"),
        (("matmul", "relu", "nosuch", "matmull"),),
        ("--size=16x16x16",),
        {
            "--size": ("16x16x16", "64", "100000x100000x100000", "99999999999", "2**99"),
            "--trace": _OUTPUTS,
            **_DAVINCI,
        },
    ),
    Grammar(
        ("vitruvian", "kernel"),
        (_POOLINGS,),
        ("--size=1x1x8x3x2",),
        {"--size": _POOLING_SIZES, "--trace": _OUTPUTS, **_DAVINCI},
    ),
    Grammar(
        ("vitruvian", "kernel"),
        (("conv2d", "depthwise"),),
        ("--size=1x16x8x16x3x1",),
        {"--size": _CONVOLUTIONS, **_DAVINCI},
    ),
    # The output may be the input, which must stay; so no other file is an input here.
    Grammar(
        ("vitruvian", "taylor"),
        (),
        ("--input=IN/x.npy", "--order=2", "--out=y.npy"),
        {
            "--functions": ("sin", "sine", "zzz", ""),
            "--out": ("IN/x.npy", "IN/../in/x.npy", "y.npy", "y.csv", "/dev/zero/y.npy"),
            "--method": ("horner", "hornr"),
            "--json": ("out.json", "IN/x.npy", "-"),
        },
    ),
    Grammar(
        ("vitruvian", "knn"),
        (),
        ("--size=16x64x16x8",),
        {
            "--size": ("16x64x16x8", "16x64", "0x0x0x0", "99999999999"),
            "--train": _GRAPH,
            "--k": _NUMBERS,
            "--metric": ("l2", "cosine", "l3"),
            "--method": ("selb", "bitonic", "zzz"),
            "--refine": _NUMBERS,
            "--out": _OUTPUTS,
            **_DAVINCI,
        },
    ),
    Grammar(
        ("vitruvian", "trace"),
        (("relu", "maxpool-im2col", "zzz"),),
        ("--out=out.json",),
        {"--out": _OUTPUTS, "--size": _POOLING_SIZES, **_DAVINCI},
    ),
    Grammar(
        ("vitruvian", "pooling"),
        (),
        ("--chip=ascend910b",),  # a chip that is refused, since the command takes a minute
        {
            "--chip": ("ascend910b", "nosuch", *_inputs("good.toml", "deep.toml")),
            "--out": _FOLDERS,
            "--json": _OUTPUTS,
        },
    ),
    Grammar(
        ("vitruvian", "roofline"),
        (("relu", *_CASES, "maxpool-im2col", "zzz"),),
        (),
        {
            "--step": ("0", "1", "99", "-1", "ITG", "all", "zzz"),
            "--size": ("64", *_POOLING_SIZES, *_CONVOLUTIONS),
            "--cores": _NUMBERS,
            "--counters": _COUNTER_FILES,
            **_ROOFLINE,
        },
    ),
    Grammar(
        ("vitruvian", "roofline"),
        (),
        ("--counters=IN/counters.counters.csv",),
        {"--counters": _COUNTER_FILES, "--step": ("0",), **_ROOFLINE},
    ),
    Grammar(
        ("vitruvian", "network"),
        (_inputs("good.onnx", "junk.onnx", "empty.onnx", "text.onnx") + ("resnet51",),),
        (),
        {
            "--chip": _CHIPS,
            "--skip-unknown": None,
            "--out": ("out.svg", *_OUTPUTS),
            "--json": _OUTPUTS,
        },
    ),
    Grammar(
        ("vitruvian", "network"),
        (("mobilenet_v3", "resnet50", "inception_v3", "bert_base"),),
        ("--chip=IN/good.toml",),  # no chip, since a network takes a minute
        {"--skip-unknown": None, "--out": ("out.svg", *_OUTPUTS), "--json": _OUTPUTS},
    ),
    Grammar(
        ("vitruvian", "formats"),
        (("nvfp4", "fp4e2m1", "e4m3", "fp64", "hifloat8", "ue6m2", "", "zzz", "-1"),),
        (),
        {"--json": _OUTPUTS},
    ),
    Grammar(
        ("vitruvian", "machines"),
        (("h100", "b200_nvf4_ue4m3_fp32", "h200_wgmma", "", "zzz", *_inputs("x.npy")),),
        (),
        {"--check": None, "--no-rtl": None, "--rows": _NUMBERS, "--json": _OUTPUTS},
    ),
    Grammar(
        ("vitruvian", "machines"),
        (("avx512", "xmx", "amx_tdpbssd", "rdna4_wmma_fp8", "zzz", ""),),
        (),
        dict.fromkeys(("--errors", "--area", "--no-cache"))
        | {"--liberty": ("vt45", "zzz", ""), "--out": _FOLDERS, "--json": _OUTPUTS},
    ),
    Grammar(
        ("vitruvian", "conformance"),
        (("rvbna_e4m3_n2_fp32", "h100_wgmma_e4m3_fp32", "amx_tdpbssd", "rvbna", "", "-1"),),
        ("--vectors=100",),
        {"--vectors": ("500", "99"), "--out": ("out.hex", *_OUTPUTS), "--json": _OUTPUTS},
    ),
    Grammar(
        ("vitruvian", "probe", "write"),
        (),
        ("--target=avx512", "--out=new"),
        {
            "--target": ("avx512", "rocm"),
            "--instruction": ("avx512_vdpbf16ps", "*", "[", "zzz"),
            "--out": _FOLDERS,
            "--seed": _NUMBERS,
            "--input": ("fp16",),
            "--json": _OUTPUTS,
        },
    ),
    Grammar(
        ("vitruvian", "plans", "list"),
        (),
        (),
        {
            "--call": ("mm fp16 *", "linear*", "zzz", "[", ""),
            "--plans": ("plans.csv", *_inputs("x.npy")),
            "--calls": _NUMBERS,
            "--out": _OUTPUTS,
            "--json": _OUTPUTS,
        },
    ),
    Grammar(
        ("vitruvian", "plans", "fit"),
        (_FOLDERS,),
        ("--out=plans.csv",),
        {"--calls": _NUMBERS, "--plans": ("x",), "--out": _OUTPUTS, "--json": _OUTPUTS},
    ),
    Grammar(
        ("vitruvian", "probe", "read"),
        ((*_inputs(*_PROBES, "x.npy"), "/dev/zero"),),
        (),
        {
            "--out": _FOLDERS,
            "--evidence": _FOLDERS,
            "--input": ("fp16", "bf16", "e4m3_e5m2", "fp99"),
            "--json": _OUTPUTS,
        },
    ),
    Grammar(
        ("vitruvian", "sparse"),
        (("pagerank", "kcore", "bfs", "sssp", "knn", "kmeans", "gmres", "gcn", "zzz"), _GRAPH),
        (),
        {
            "--arch": _inputs("good.toml", "deep.toml", "number.toml", "latin.toml"),
            "--reorder": ("none", "triangular", "windowed", "zzz"),
            "--blocked": ("1", "16", "256", "3"),
            "--source": ("0", "99"),
            "--weight": ("km", "none", ""),
            "--hops": _NUMBERS,
            "--tolerance": ("1e-18", "0", "inf"),
            "--damping": ("0.85", "2", "nan"),
            "--iterations": _NUMBERS,
            "--clusters": _NUMBERS,
            "--out": _FOLDERS,
            "--json": _OUTPUTS,
        },
    ),
    Grammar(
        ("vitruvian", "cce"),
        (_inputs("good.cce", "nested.cce", "bomb.cce", "include.cce", "nokernel.cce"),),
        ("--arg=x=zeros:128",),
        {
            "--entry": ("scale", "zzz"),
            "--chip": _CHIPS,
            "--blocks": (*_NUMBERS, "65535", "65536", "9999999999"),
            "--kind": ("vector", "all", "zzz"),
            "--define": ("A=1", "=1", "1A=2"),
            "--arg": (
                *("x=zeros:128", "x=IN/x.npy", "x=IN/absurd.npy", "x=zeros:1e9", "y=1", "x"),
                *("x=normal:fp16:128:7", "x=normal:fp32:128", "x=uniform:int8:9:9", "x=null"),
                *("x=normal:fp99:9:9", "x=normal:fp16:0", "x=normal:fp16:-1:1", "x=zeros:fp16:9:9"),
                *("x=normal:fp16:128:-1", f"x=normal:fp16:128:{'9' * 5000}", "x=normal:fp16:"),
                *("x=normal:fp16:999999999999:1", "x=normal:::", "x=arange:bf16:128", "x=:::::"),
            ),
            "--expect": (
                *("x=IN/y.npy", "x=IN/nan.npy", "x=IN/x.npy", "x=IN/absurd.npy", "y=IN/y.npy"),
                *("x=IN/missing.npy", "x=IN/folder.json", "x", "=", "x=", "x=IN/junk.bin"),
            ),
            "--rtol": ("0.1", "0", "-0", "1e-999", "1e308"),
            "--atol": ("0.1", "0", "1e308"),
            "--strict": None,
            "--lines": None,
            "--csv": _FOLDERS,
            "--out": _OUTPUTS,
            "--trace": _OUTPUTS,
            "--gantt": _OUTPUTS,
            "--json": _OUTPUTS,
        },
    ),
    Grammar(
        # Without permission, nothing is compiled: the fuzzer runs no native code.
        ("vitruvian", "ascendc"),
        (_inputs("good.cce", "junk.bin", "missing"),),
        ("--arg=x=zeros:128",),
        {
            "--kernel": ("scale", "zzz"),
            "--headers": _FOLDERS,
            "--chip": _CHIPS,
            "--blocks": _NUMBERS,
            "--seconds": _NUMBERS,
            "--branches": _NUMBERS,
            "--kind": ("vector", "all", "zzz"),
            "--out": _OUTPUTS,
            "--json": _OUTPUTS,
        },
    ),
    Grammar(
        ("vitruvian", "assemble"),
        (_inputs("good.cce", "nested.cce", "bomb.cce", "nokernel.cce", "junk.bin"),),
        ("--arg=x=zeros:128", "--out=program"),
        {"--chip": _CHIPS, "--core": ("tiny", "tin", ""), "--out": _FOLDERS, "--json": _OUTPUTS},
    ),
    Grammar(
        ("vitruvian", "disassemble"),
        (_inputs("folder.json", "junk.bin", "x.npy", "missing"),),
        (),
        {"--out": ("program.s", *_OUTPUTS), "--json": _OUTPUTS},
    ),
    Grammar(("vitruvian", "digits"), (), ("--images=1",), {"--core": ("tin", "")}),
    Grammar(("vitruvian", "core"), (("describe",), ("tin", "tiny")), (), {"--out": _OUTPUTS}),
    Grammar(
        ("vitruvian", "tune"),
        (("matmul", "zzz"),),
        ("--size=64x64x64", "--jobs=1"),
        {
            "--chip": _CHIPS,
            "--cores": _NUMBERS,
            "--dtype": ("fp16", "int8", "zzz"),
            "--size": ("64x64x64", "64", "0x1x1", "999999999x64x2**30", "9999999999x1x1"),
            "--output-dtype": ("fp32", "zzz"),
            "--method": ("guided", "zzz"),
            "--jobs": ("1",),
            "--json": _OUTPUTS,
        },
    ),
    Grammar(("vitruvian", "units"), (), (), {"--json": _OUTPUTS}),
    Grammar(
        ("vitruvian", "board"),
        (),
        ("--precisions=int8", "--m=1", "--n=1", "--k=1", "--stop-after=0"),
        {
            "--preset": ("tiny", "nosuch"),
            "--precisions": ("int8", "fp99", "int8-int8"),
            "--slots": ("1", "65"),
            "--memory-kib": ("0", "64"),
            "--baud": ("1000000", "7", "3999999"),
            "--clock-hz": ("4000000", "1"),
            "--stop-after": ("0", "0.1", "-1"),
            "--json": _OUTPUTS,
        },
    ),
    Grammar(
        ("vitruvian", "host"),
        (("matmul", "apsp", "digits", "run", "zzz"),),
        ("--port=/dev/null",),
        {
            "--port": ("/dev/zero", "/no/such", *_inputs()),
            "--baud": ("1000000", "115200", "7"),
            "--timeout": ("0.1", "0"),
            "--size": ("4", "4x4x4", "0", "2**40"),
            "--precision": ("fp16", "int8", "fp99"),
            "--accuracy": ("ieee", "a100", "zzz"),
            "--check": None,
            "--seed": _NUMBERS,
            "--json": _OUTPUTS,
        },
    ),
    *HARDWARE,
    Grammar(("vitruvian", "docs"), (), ("--check",), {"--zzz": _NUMBERS}),
    Grammar(("vitruvian", ""), (), (), {"--version": None, "--zzz": None}),
    Grammar(("vitruvian", "zzz"), (), (), {"--json": _OUTPUTS}),
)


def lines(count: int, seed: int) -> Iterator[list[str]]:
    """Yield command lines, which depend on the seed; the first word is the program."""
    rng = random.Random(seed)
    foreign = sorted({option for grammar in GRAMMARS for option in grammar.options})
    for n in range(count):
        grammar = GRAMMARS[n % len(GRAMMARS)] if n < len(GRAMMARS) else rng.choice(GRAMMARS)
        line = [word for word in grammar.words if word]
        for place in grammar.places:
            line.append(_one(rng, place))
        if rng.random() < 0.1:
            line.append(rng.choice(_BAD_TEXT))
        chosen = rng.sample(sorted(grammar.options), min(len(grammar.options), rng.randrange(4)))
        given = [text for text in grammar.given if text.partition("=")[0] not in chosen]
        for option in chosen:
            values = grammar.options[option]
            given.append(option if values is None else f"{option}={_one(rng, values)}")
        if rng.random() < 0.1:
            given.append(rng.choice(foreign))
        yield line + given


def _one(rng: random.Random, values: tuple[str, ...]) -> str:
    """Return the good value, one of the list, or a hostile text."""
    chance = rng.random()
    if chance < 0.5:
        return values[0]
    return rng.choice(values) if chance < 0.8 else rng.choice(_BAD_TEXT)

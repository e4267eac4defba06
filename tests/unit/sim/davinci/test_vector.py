"""Vector instructions on memories against a definition lane by lane."""

import numpy as np
import pytest

from vitruvian.golden import vector
from vitruvian.sim.davinci import DTYPES, Program, Unit, View, load_chip
from vitruvian.sim.davinci.semantics import Functional, FunctionalError
from vitruvian.sim.davinci.semantics.functional import COMPILE_AFTER
from vitruvian.sim.davinci.semantics.vectors_compiled import _to_half, compiled

UB = 16384  # bytes of the buffer that tests use
CHIP = load_chip("ascend310")


@pytest.fixture
def core():
    return Program(CHIP).core()


def machine(core, seed=0, small=False):
    """A memory full of numbers; small ones, or any bit pattern."""
    functional = Functional(core.program)
    buffer = functional.memory(core).buffers["UB"]
    rng = np.random.default_rng(seed)
    if small:
        buffer[:UB] = rng.normal(0, 4, UB // 2).astype(np.float16).view(np.uint8)
    else:
        buffer[:UB] = rng.integers(0, 256, UB, dtype=np.uint8)
    return functional, buffer


def view(offset, dtype):
    return View("UB", offset, dtype, (), ())


def lane_bytes(offset, dtype, lanes, repeat, block, step):
    """First byte of every lane, repeat by repeat."""
    width = DTYPES[dtype].itemsize
    per = 32 // width
    return [
        [
            offset + 32 * (r * step + lane // per * block) + lane % per * width
            for lane in range(lanes)
        ]
        for r in range(repeat)
    ]


def by_lane(buffer, dst, sources, lanes, repeat, mask, compute):
    """Repeat by repeat: read all lanes, compute each, write those that are enabled."""
    target, *places = [
        lane_bytes(offset, dtype, lanes, repeat, block, step)
        for offset, dtype, block, step in (dst, *sources)
    ]
    kinds = [DTYPES[s[1]] for s in sources]
    for r in range(repeat):
        results = []
        for lane in range(lanes):
            values = [
                buffer[p[r][lane] : p[r][lane] + k.itemsize].copy().view(k)
                for p, k in zip(places, kinds, strict=True)
            ]
            results.append(compute(*values))
        for lane in range(lanes):
            if mask >> lane & 1:
                data = np.asarray(results[lane]).astype(DTYPES[dst[1]]).reshape(1).view(np.uint8)
                buffer[target[r][lane] : target[r][lane] + len(data)] = data


BINARY = {
    "vadd": (vector.add, ("fp16", "fp32", "int16", "int32")),
    "vsub": (vector.sub, ("fp16", "fp32")),
    "vmul": (vector.mul, ("fp16", "fp32", "int32")),
    "vdiv": (vector.div, ("fp16",)),
    "vmax": (vector.maximum, ("fp16", "fp32", "int32")),
    "vmin": (vector.minimum, ("fp16",)),
    "vand": (vector.bitwise_and, ("uint16",)),
    "vor": (vector.bitwise_or, ("uint16",)),
}


def strides(rng):
    return int(rng.integers(0, 4)), int(rng.integers(0, 10))


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "compiled"])
@pytest.mark.parametrize("op", BINARY)
def test_two_operands(core, op, plain):
    """Random masks, strides and places, meeting ones too: often repeats depend on each other."""
    rng = np.random.default_rng(sum(map(ord, op)))
    apply, dtypes = BINARY[op]
    for case in range(12):
        dtype = dtypes[case % len(dtypes)]
        lanes, repeat = 256 // DTYPES[dtype].itemsize, int(rng.integers(1, 4))
        mask = int.from_bytes(rng.bytes(lanes // 8), "little") if case % 3 else (1 << lanes) - 1
        spread = 2048 if case % 2 else 128
        names = ("dst", "src0", "src1")
        places = {n: int(rng.integers(0, spread // 32)) * 32 for n in names}
        steps = {n: strides(rng) for n in names}
        if case % 4 == 0:
            steps["src0"], places["src0"] = steps["dst"], places["dst"]
        if case % 4 == 1:  # the sum of many repeats in one
            steps["dst"] = steps["src0"] = (1, 0)
            places["src0"] = places["dst"]
        steps["dst"] = (max(steps["dst"][0], 1), steps["dst"][1])
        functional, buffer = machine(core, case, small=True)
        functional.vectors = 0 if plain else COMPILE_AFTER
        expected = buffer.copy()
        operands = {n: view(places[n], dtype) for n in names}
        (instr,) = core.vector(op, operands, repeat=repeat, mask=mask, strides=steps)
        functional.execute(core, instr)
        parts = [(places[n], dtype, *steps[n]) for n in names]
        by_lane(expected, parts[0], parts[1:], lanes, repeat, mask, apply)
        assert np.array_equal(buffer, expected), (case, instr)


TWINS = ("vadd", "vsub", "vmul", "vmax", "vmin", "vadds", "vmuls", "vmaxs", "vmins")


TABLES = ("vabs", "vexp", "vln", "vrsqrt", "vrelu", "vnot")
FUNCTIONS = ("vexp", "vln", "vrsqrt", "vrec", "vsqrt", "vabs", "vrelu")


@pytest.mark.parametrize(
    ("op", "dtype"),
    [(op, "fp16") for op in (*TWINS, *TABLES)] + [(op, "fp32") for op in (*TWINS, *FUNCTIONS)],
)
def test_the_compiled_twin_on_any_bits(core, op, dtype):
    """NaNs, infinities, zeros of both signs and subnormals among a thousand patterns."""
    unary = op.endswith("s") or op not in TWINS
    names = ("dst", "src") if unary else ("dst", "src0", "src1")
    operands = {n: view(4096 * i, dtype) for i, n in enumerate(names)}
    fields = {"scalar": -1.7} if op in TWINS and unary else {}
    (instr,) = core.vector(op, operands, repeat=8, mask=(1 << 64) - 2, **fields)
    buffers = []
    for twin in (False, True):
        functional, buffer = machine(core, 21)
        special = np.array([0, 0x8000, 0x7C00, 0xFC00, 0x7E01, 1], np.uint16)
        if dtype == "fp32":
            special = special.astype(np.uint32) << 16
        pairs = np.random.default_rng(2).choice(special, (2, 256))
        for at, row in zip((4096, 8192), pairs, strict=True):
            buffer[at : at + row.nbytes] = row.view(np.uint8)
        if twin:
            assert compiled(functional.memory(core), instr)
        else:
            functional.execute(core, instr)
        buffers.append(buffer)
    assert np.array_equal(*buffers)


def test_the_twin_leaves_what_is_in_doubt_to_golden(core):
    """e to a number whose power is within 2^-46 of a middle; repeats before it are the twin's."""
    rng = np.random.default_rng(9)
    x = rng.uniform(-20, 20, 4_000_000).astype(np.float32)
    value = np.exp(x.astype(np.float64))
    low, high = ((value * (1 + s * 2.0**-46)).astype(np.float32) for s in (-1, 1))
    hard = x[low != high]
    assert len(hard)
    for twin in (False, True):
        functional, buffer = machine(core, 4)
        numbers = np.resize(x, 64 * 5)
        numbers[64 * 2 + 7] = hard[0]
        buffer[4096 : 4096 + numbers.nbytes] = numbers.view(np.uint8)
        (instr,) = core.vector(
            "vexp", {"dst": view(0, "fp32"), "src": view(4096, "fp32")}, repeat=5
        )
        if twin:
            assert compiled(functional.memory(core), instr)
        else:
            functional.execute(core, instr)
        assert np.array_equal(buffer[: numbers.nbytes].view(np.float32), vector.exp(numbers))


def test_rounding_to_fp16_in_the_twin():
    exact = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
    rng = np.random.default_rng(3)
    with np.errstate(all="ignore"):
        middles = (exact[:-1].astype(np.float64) + exact[1:]) / 2
        edges = [65519.99, 65520, 2.0**-25, 3 * 2.0**-26, 2.0**-24]
        values = np.concatenate([exact, middles, edges]).astype(np.float32)
        sides = rng.choice(np.array([-np.inf, np.inf], np.float32), len(values))
        bits = np.concatenate([values, np.nextafter(values, sides)]).view(np.uint32)
        expected = vector.canonical(bits.view(np.float32).astype(np.float16)).view(np.uint16)
    keep = np.random.default_rng(4).choice(len(bits), 30000, replace=False)
    result = [int(_to_half(bits[i])) for i in keep]
    assert result == expected[keep].tolist()


def test_a_shortcut_where_repeats_depend_is_noticed(core, monkeypatch):
    """The test above sees an implementation that takes all repeats at once when it must not."""
    monkeypatch.setattr("vitruvian.sim.davinci.semantics.vectors.independent", lambda *_: True)
    with pytest.raises(AssertionError):
        test_two_operands(core, "vadd", True)


UNARY = {
    "vabs": vector.absolute,
    "vexp": vector.exp,
    "vln": vector.ln,
    "vrec": vector.rec,
    "vrsqrt": vector.rsqrt,
    "vsqrt": vector.sqrt,
    "vrelu": vector.relu,
    "vnot": vector.bitwise_not,
}


@pytest.mark.parametrize("op", UNARY)
def test_one_operand(core, op):
    for dtype in ("fp16", "fp32"):
        functional, buffer = machine(core, 3, small=dtype == "fp16")
        expected = buffer.copy()
        lanes = 256 // DTYPES[dtype].itemsize
        mask = (1 << lanes) - 1 ^ 0xF0
        operands = {"dst": view(4096, dtype), "src": view(64, dtype)}
        steps = {"dst": (1, 9), "src": (2, 3)}
        (instr,) = core.vector(op, operands, repeat=2, mask=mask, strides=steps)
        functional.execute(core, instr)
        target, source = (4096, dtype, 1, 9), (64, dtype, 2, 3)
        by_lane(expected, target, [source], lanes, 2, mask, UNARY[op])
        assert np.array_equal(buffer, expected)


def test_scalars_and_fused(core):
    half = np.float16(0.1)
    scalar = {
        "vadds": lambda a: vector.add(a, half),
        "vmuls": lambda a: vector.mul(a, half),
        "vmaxs": lambda a: vector.maximum(a, half),
        "vmins": lambda a: vector.minimum(a, half),
        "vlrelu": lambda a: vector.leaky_relu(a, half),
    }
    target, source, other = (2048, "fp16", 1, 8), (0, "fp16", 1, 8), (1024, "fp16", 1, 8)
    full = (1 << 128) - 1
    for op, apply in scalar.items():
        functional, buffer = machine(core, 5, small=True)
        expected = buffer.copy()
        operands = {"dst": view(2048, "fp16"), "src": view(0, "fp16")}
        functional.execute(core, core.vector(op, operands, repeat=2, scalar=0.1)[0])
        by_lane(expected, target, [source], 128, 2, full, apply)
        assert np.array_equal(buffer, expected), op
    fused = {
        "vmla": lambda d, a, b: vector.multiply_add(a, b, d),
        "vmadd": lambda d, a, b: vector.multiply_add(d, a, b),
        "vmaddrelu": lambda d, a, b: vector.relu(vector.multiply_add(d, a, b)),
        "vaddrelu": lambda d, a, b: vector.relu(vector.add(a, b)),
    }
    for op, apply in fused.items():
        functional, buffer = machine(core, 6, small=True)
        expected = buffer.copy()
        operands = {"dst": view(2048, "fp16"), "src0": view(0, "fp16"), "src1": view(1024, "fp16")}
        functional.execute(core, core.vector(op, operands, repeat=2)[0])
        by_lane(expected, target, [target, source, other], 128, 2, full, apply)
        assert np.array_equal(buffer, expected), op
    functional, buffer = machine(core, 7, small=True)
    expected = buffer.copy()
    operands = {"dst": view(4096, "fp32"), "src": view(0, "fp16")}
    instr = core.vector(
        "vaxpy", operands, repeat=2, scalar=0.1, strides={"dst": (1, 8), "src": (1, 4)}
    )
    functional.execute(core, instr[0])
    wide = (4096, "fp32", 1, 8)
    by_lane(
        expected,
        wide,
        [wide, (0, "fp16", 1, 4)],
        64,
        2,
        full,
        lambda d, a: vector.multiply_add(a, half, d),
    )
    assert np.array_equal(buffer, expected)


@pytest.mark.parametrize(
    ("source", "target", "rounding"),
    [
        ("fp16", "fp32", "none"),
        ("fp32", "fp16", "none"),
        ("fp32", "fp16", "floor"),
        ("fp16", "int32", "ceil"),
        ("int32", "fp16", "none"),
        ("fp16", "int8", "round"),
        ("fp16", "uint8", "trunc"),
        ("int8", "fp16", "none"),
        ("fp32", "bf16", "rint"),
    ],
)
def test_conversions(core, source, target, rounding):
    functional, buffer = machine(core, 8, small=True)
    expected = buffer.copy()
    lanes = 256 // max(DTYPES[source].itemsize, DTYPES[target].itemsize)
    steps = {
        "dst": (1, lanes * DTYPES[target].itemsize // 32),
        "src": (1, lanes * DTYPES[source].itemsize // 32),
    }
    operands = {"dst": view(4096, target), "src": view(0, source)}
    mask = (1 << lanes) - 1 ^ 0b1010
    instr = core.vector("vconv", operands, repeat=3, mask=mask, strides=steps, rounding=rounding)[0]
    functional.execute(core, instr)
    letters = {"none": "r", "rint": "r", "round": "a", "floor": "f", "ceil": "c", "trunc": "z"}
    letter = letters[rounding]
    by_lane(
        expected,
        (4096, target, *steps["dst"]),
        [(0, source, *steps["src"])],
        lanes,
        3,
        mask,
        lambda a: vector.convert(a, source, target, letter),
    )
    assert np.array_equal(buffer, expected)


def test_duplicate_and_broadcast(core):
    functional, buffer = machine(core)
    before = buffer.copy()
    instr = core.vector("vdup", {"dst": view(0, "fp16")}, repeat=2, mask=0b101, scalar=1.1)[0]
    functional.execute(core, instr)
    changed = np.flatnonzero(buffer != before)
    assert set(changed) <= {0, 1, 4, 5, 256, 257, 260, 261}
    assert buffer[256:258].view(np.float16) == np.float16(1.1)
    fields = {"dst_block_stride": 1, "dst_repeat_stride": 8}
    views = {"dst": view(4096, "uint16"), "src": view(512, "uint16")}
    functional.execute(core, core.vector_views("vbrcb", views, repeat=2, **fields))
    blocks = buffer[4096 : 4096 + 512].view(np.uint16).reshape(16, 16)
    assert np.array_equal(blocks, np.repeat(buffer[512:544].view(np.uint16), 16).reshape(16, 16))


def test_comparison_and_selection(core):
    functional, buffer = machine(core, 9, small=True)
    a, b = (buffer[at : at + 512].view(np.float16).copy() for at in (0, 1024))
    (instr,) = core.vcmp(view(0, "fp16"), view(1024, "fp16"), "lt")
    functional.execute(core, instr)
    options = {"repeat": 2, "strides": dict.fromkeys(("dst", "src0", "src1"), (1, 8))}
    (instr,) = core.vsel(view(4096, "fp16"), view(0, "fp16"), view(1024, "fp16"), **options)
    functional.execute(core, instr)
    result = buffer[4096 : 4096 + 512].view(np.float16)
    bits = np.tile(a[:128] < b[:128], 2)
    assert np.array_equal(result.view(np.uint16), np.where(bits, a, b).view(np.uint16))
    (instr,) = core.vcmpv(view(8192, "uint8"), view(0, "fp16"), view(1024, "fp16"), "ge", repeat=2)
    functional.execute(core, instr)
    assert np.array_equal(np.unpackbits(buffer[8192:8224], bitorder="little"), a >= b)
    (instr,) = core.vsel(
        view(0, "fp16"), view(0, "fp16"), view(1024, "fp16"), view(8192, "uint8"), **options
    )
    functional.execute(core, instr)
    assert np.array_equal(buffer[:512].view(np.uint16), np.where(a >= b, a, b).view(np.uint16))
    (instr,) = core.vcmpvs(view(9000, "uint8"), view(1024, "fp16"), 0.5, "gt", repeat=1)
    functional.execute(core, instr)
    assert np.array_equal(np.unpackbits(buffer[9000:9016], bitorder="little"), b[:128] > 0.5)


@pytest.mark.parametrize("op", ["vcadd", "vcmax", "vcmin", "vcpadd", "vcgadd", "vcgmax", "vcgmin"])
def test_reductions(core, op):
    for dtype, mask in (("fp16", -1), ("fp16", (1 << 100) - 1 ^ 6), ("fp32", 0xFF00FF00FF0)):
        functional, buffer = machine(core, 10, small=True)
        if dtype == "fp32":
            buffer[:4096] = np.random.default_rng(1).normal(0, 9, 1024).astype("f4").view(np.uint8)
        width = DTYPES[dtype].itemsize
        lanes = 256 // width
        expected = buffer.copy()
        instr = core.vreduce_lanes(
            op, view(8192, dtype), view(0, dtype), repeat=3, mask=mask, dst_repeat_bytes=512
        )
        functional.execute(core, instr)
        enabled = np.array([(mask >> lane) & 1 for lane in range(lanes)], bool)
        for r in range(3):
            row = buffer[256 * r : 256 * r + 256].view(DTYPES[dtype])
            out = expected[8192 + 512 * r :].view(DTYPES[dtype])
            if op in ("vcmax", "vcmin"):
                pick = np.argmax if op == "vcmax" else np.argmin
                numbers = np.flatnonzero(enabled)
                lane = numbers[pick(row[numbers])]
                out[0] = row[lane]
                out[1:2].view(f"u{width}")[0] = lane
            elif op == "vcadd":
                out[0] = vector.sum_tree(row, enabled)
            elif op == "vcpadd":
                there = enabled.reshape(-1, 2).any(axis=1)
                out[: lanes // 2][there] = vector.pair_sums(row, enabled)[there]
            else:
                for block in range(8):
                    part = slice(block * lanes // 8, (block + 1) * lanes // 8)
                    on = enabled[part]
                    if on.any():
                        if op == "vcgadd":
                            out[block] = vector.sum_tree(row[part], on)
                        else:
                            out[block] = (np.max if op == "vcgmax" else np.min)(row[part][on])
        assert np.array_equal(buffer, expected), (dtype, mask)


def test_orders_of_value_and_index(core):
    functional, buffer = machine(core, 11, small=True)
    row = buffer[:256].view(np.float16).copy()
    best, lane = row.max(), int(row.argmax())
    expected = {"value": [best], "index": [lane], "index_value": [lane, best]}
    for order, words in expected.items():
        instr = core.vreduce_lanes("vcmax", view(8192, "fp16"), view(0, "fp16"), order=order)
        functional.execute(core, instr)
        for i, word in enumerate(words):
            size, kind = (4, np.uint32) if order == "index" else (2, np.uint16)
            result = buffer[8192 + 2 * i : 8192 + 2 * i + size]
            assert result.view(np.float16 if word is best else kind) == word
    inplace = core.vreduce_lanes(
        "vcadd",
        view(0, "fp16"),
        view(0, "fp16"),
        repeat=2,
        dst_repeat_bytes=256,
        src_repeat_stride=8,
    )
    second = buffer[256:512].view(np.float16).copy()
    functional.execute(core, inplace)
    assert buffer[:2].view(np.float16) == vector.sum_tree(row)
    assert buffer[256:258].view(np.float16) == vector.sum_tree(second)


def test_transpositions(core):
    functional, buffer = machine(core, 12)
    square = buffer[:512].view(np.uint16).reshape(16, 16).copy()
    functional.execute(core, core.vtranspose(view(1024, "uint16"), view(0, "uint16")))
    assert np.array_equal(buffer[1024:1536].view(np.uint16).reshape(16, 16), square.T)
    for dtype, rows in (("fp16", 16), ("fp32", 8)):
        src = tuple(view(64 * i, dtype) for i in range(16))
        dst = tuple(view(8192 + 96 * i, dtype) for i in range(16))
        fields = {"dst": dst, "src": src, "dst_repeat_stride": 1, "src_repeat_stride": 64}
        instr = core.add(Unit.V, "vnchwconv", fields={"repeat": 2, **fields})
        functional.execute(core, instr)
        for r in range(2):
            kind = f"u{DTYPES[dtype].itemsize}"
            source = np.stack([buffer[v.offset + 2048 * r :][:32].view(kind) for v in src])
            flat = [buffer[v.offset + 32 * r :][:32].view(kind) for v in dst]
            result = np.concatenate(flat).reshape(rows, 16)
            assert np.array_equal(result, source.T), (dtype, r)
    pixels = buffer[: 48 * 3 * 2].view(np.uint16).reshape(48, 3).copy()
    views = {"dst": view(4096, "uint16"), "src": view(0, "uint16")}
    fields = {"pixels": 48, "channels": 3}
    functional.execute(core, core.vector_views("v4dtrans", views, mode=0, **fields))
    planes = buffer[4096 : 4096 + 288].view(np.uint16).reshape(3, 48)
    assert np.array_equal(planes, pixels.T)
    back = {"dst": view(8192, "uint16"), "src": view(4096, "uint16")}
    functional.execute(core, core.vector_views("v4dtrans", back, mode=1, **fields))
    assert np.array_equal(buffer[8192 : 8192 + 288].view(np.uint16).reshape(48, 3), pixels)


def test_only_enabled_lanes_must_be_inside(core):
    functional, buffer = machine(core)
    end = len(buffer)
    source = np.arange(16, dtype=np.float16)
    buffer[end - 32 :] = source.view(np.uint8)
    operands = {"dst": view(end - 64, "fp16"), "src": view(end - 32, "fp16")}
    functional.execute(core, core.vector("vabs", operands, repeat=1, mask=0xFFFF)[0])
    assert np.array_equal(buffer[end - 64 : end - 32].view(np.float16), source)
    back = {"dst": view(end - 32, "fp16"), "src": view(end - 64, "fp16")}
    functional.execute(core, core.vmuls(back["dst"], back["src"], 2, repeat=1, mask=0xFF0F)[0])
    doubled = np.where(np.arange(16) // 4 == 1, source, 2 * source)
    assert np.array_equal(buffer[end - 32 :].view(np.float16), doubled)
    (instr,) = core.vector("vabs", operands, repeat=1, mask=0x1FFFF)
    with pytest.raises(FunctionalError, match=r"test_vector.py:\d+: vabs.* are not all within"):
        functional.execute(core, instr)

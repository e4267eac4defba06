"""Im2Col loads and Col2Im of CCE C: a convolution, a pooling gradient, and every form of both."""

import numpy as np
import pytest

from vitruvian.golden import vector
from vitruvian.golden.cube import mmad
from vitruvian.golden.machines.presets import PRESETS
from vitruvian.golden.scu import Patches, col2im, im2col, im2col_load, kernel_matrix, to_nc1hwc0
from vitruvian.sim.davinci import load_chip, simulate
from vitruvian.sim.davinci.cce import build, read

RNG = np.random.default_rng(8)
C910 = load_chip("ascend910")

CONVOLUTION = """
#define L1(a) ((__cbuf__ half *)get_imm(a))
#define L0A ((__ca__ half *)get_imm(0))
#define L0B ((__cb__ half *)get_imm(0))
#define L0C ((__cc__ float *)get_imm(0))
#define UB ((__ubuf__ half *)get_imm(0))

__global__ __aicore__ void convolution(__gm__ half *x, __gm__ half *w, __gm__ half *y, int h,
                                       int wd, int c1, int k, int stride, int pad, int n1) {
    int ho = (h + 2 * pad - k) / stride + 1, wo = (wd + 2 * pad - k) / stride + 1;
    int tiles = (ho * wo + 15) / 16, deep = c1 * k * k;
    copy_gm_to_cbuf(L1(0), x, 0, 1, c1 * h * wd, 0, 0, PAD_NONE);
    copy_gm_to_cbuf(L1(0x80000), w, 0, 1, deep * n1 * 16, 0, 0, PAD_NONE);
    uint64_t p = pad;
    set_fmatrix((uint64_t)wd | (uint64_t)h << 16 | p << 32 | p << 40 | p << 48 | p << 56);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
#ifdef BY_PLACE
    for (int i = 0; i < deep; ++i)
        img2col_cbuf_to_ca(L0A + i * 256, L1(0), i % k, i / k % k, -pad, -pad, i / (k * k),
                           stride, stride, k, k, 1, 1, deep, 1, tiles, CSIZE0);
#else
    for (int i = 0; i < tiles; ++i) {
        int first_h = i * 16 / wo * stride - pad, first_w = i * 16 % wo * stride - pad;
        img2col_cbuf_to_ca(L0A + i * deep * 256, L1(0), 0, 0, first_w, first_h, 0,
                           stride, stride, k, k, 1, 1, 0, 0, deep, CSIZE0);
    }
#endif
    load_cbuf_to_cb(L0B, L1(0x80000), 0, deep * n1, 1, 0, false);
    set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    mad(L0C, L0A, L0B, tiles * 16, deep * 16, n1 * 16, 1);
    set_flag(PIPE_M, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_M, PIPE_V, EVENT_ID0);
    copy_matrix_cc_to_ubuf(UB, L0C, 0, n1, tiles, 0, 0, CRMODE_F32toF16_NONE);
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    copy_ubuf_to_gm(y, UB, 0, 1, tiles * n1 * 16, 0, 0);
}
"""


@pytest.mark.parametrize("by_place", [False, True])
@pytest.mark.parametrize(("h", "k", "stride", "pad"), [(7, 3, 1, 1), (9, 3, 2, 0), (6, 2, 2, 1)])
def test_a_convolution_is_golden(h, k, stride, pad, by_place):
    """Patch after patch in mode 0, and place after place in mode 1 with a jump."""
    images = to_nc1hwc0(RNG.normal(size=(20, h, 8)).astype(np.float16))
    weights = kernel_matrix(RNG.normal(size=(32, 20, k, k)).astype(np.float16))
    p = Patches(height=h, width=8, kernel=(k, k), stride=(stride,) * 2, pad=(pad,) * 4)
    rows = 16 * p.fractals
    fractals = weights.reshape(-1, 16, 2, 16).transpose(0, 2, 3, 1)
    arguments = {"x": images, "w": fractals.copy(), "y": np.zeros((2, rows, 16), np.float16)}
    arguments |= {"h": h, "wd": 8, "c1": 2, "k": k, "stride": stride, "pad": pad, "n1": 2}
    kernel = read(CONVOLUTION, "c.cce", defines={"BY_PLACE": "1"} if by_place else {})
    program, functional = build(kernel, C910, arguments)
    assert functional is not None
    left = im2col(images, p).swapaxes(1, 2).reshape(rows, -1)
    spec = PRESETS["ieee"].spec("fp16", k=16)
    wide = mmad(left.view(np.uint16), weights.copy().view(np.uint16), spec=spec).view(np.float32)
    expected = wide.astype(np.float16).reshape(rows, 2, 16).swapaxes(0, 1)
    assert np.array_equal(functional.read("y"), expected) and len(np.unique(expected)) > 100
    report = simulate(program)
    assert not report.findings and np.array_equal(report.outputs["y"], expected)


def image_word(p):
    top, bottom, left, right = p.pad
    return p.width | p.height << 16 | left << 32 | right << 40 | top << 48 | bottom << 56


def words(p, position, place, channel, jump, mode, repeat):
    """The words xm and xt; the thesis' (x, y) are signed 16-bit numbers."""
    h, w = (n & 0xFFFF for n in position)
    xm = channel | place[1] << 16 | place[0] << 24 | w << 32 | h << 48
    (sh, sw), (kh, kw), (dh, dw) = p.stride, p.kernel, p.dilation
    xt = sw | sh << 6 | kw << 12 | kh << 20 | dw << 28 | dh << 36
    return xm, xt | jump << 44 | mode << 52 | repeat << 56


def run(body, before="", chip=C910, **arrays):
    kinds = {np.float16: "half", np.float32: "float", np.int8: "int8_t"}
    parameters = ", ".join(f"__gm__ {kinds[v.dtype.type]} *{n}" for n, v in arrays.items())
    text = f"{before}\n__global__ __aicore__ void k({parameters}) {{\n{body}\n}}"
    _, functional = build(read(text, "k.cce"), chip, arrays)
    assert functional is not None
    return functional


P = Patches(height=6, width=5, kernel=(2, 3), stride=(1, 2), pad=(1, 0, 2, 1), dilation=(2, 1))


@pytest.mark.parametrize(
    ("kind", "padding", "value"),
    [(np.float16, 0xFBFF, -65504.0), (np.float16, 0, 0), (np.int8, 0x8585, -123)],
)
@pytest.mark.parametrize("form", ["arguments", "two words", "three words"])
@pytest.mark.parametrize("mode", [0, 1])
def test_every_form_of_a_load(form, mode, kind, padding, value):
    c0 = 32 // np.dtype(kind).itemsize
    image = RNG.integers(1, 100, (2, P.height, P.width, c0)).astype(kind)
    jump, repeat, channel, place = 3, 2, 1 - mode, (1, 0)
    step = (jump if mode else 1) * 16 * c0
    p = {"position": P.corner(2), "kernel_position": place, "channel": channel}
    xm, xt = words(P, P.corner(2), place, channel, jump, mode, repeat)
    (h, w), (kh, kw) = P.corner(2), P.kernel
    given = {
        "arguments": f"{place[1]}, {place[0]}, {w}, {h}, {channel}, 2, 1, {kw}, {kh}, 1, 2, {jump}"
        f", {mode}, {repeat}",
        "two words": f"{xm}ULL, {xt}ULL",
        "three words": f"{image_word(P)}ULL, {xm}ULL, {xt}ULL",
    }[form]
    type = {np.float16: "half", np.int8: "int8_t"}[kind]
    first = f"set_fmatrix({image_word(P)}ULL);" if form != "three words" else "set_fmatrix(1);"
    out = run(
        f"""
        __cbuf__ {type} *l1 = (__cbuf__ {type} *)get_imm(0);
        __ubuf__ {type} *u = (__ubuf__ {type} *)get_imm(0);
        copy_gm_to_cbuf(l1, x, 0, 1, {2 * P.height * P.width}, 0, 0, PAD_NONE);
        {first}
        set_padding({padding});
        img2col_cbuf_to_ub(u, l1, {given}, CSIZE0);
        copy_ubuf_to_gm(y, u, 0, 1, 128, 0, 0);
        """,
        x=image,
        y=np.zeros(128 * c0, kind),
    ).read("y")
    expected = im2col_load(image, P, repeat=repeat, mode=mode, pad_value=value, **p)
    assert (expected == value).any() and (expected != value).any()
    for i in range(repeat):
        assert np.array_equal(out[i * step :][: 16 * c0].reshape(16, c0), expected[i])


C910B = load_chip("ascend910b")
MATRIX = """
__global__ __aicore__ void k(__gm__ {type} *x, __gm__ {type} *w, __gm__ {wide} *y) {{
    __cbuf__ {type} *l1 = (__cbuf__ {type} *)get_imm(0), *l1w = (__cbuf__ {type} *)get_imm(0x40000);
    __ca__ {type} *a = (__ca__ {type} *)get_imm(0);
    __cb__ {type} *b = (__cb__ {type} *)get_imm(0);
    __cc__ {wide} *c = (__cc__ {wide} *)get_imm(0);
    copy_gm_to_cbuf(l1, x, 0, 1, {blocks}, 0, 0, PAD_NONE);
    copy_gm_to_cbuf(l1w, w, 0, 1, {weights}, 0, 0, PAD_NONE);
    {register}({image}ULL);
    set_padding(0);
    set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
    img2colv2_cbuf_to_ca(a, l1, {k}, {m}, {pos_k}, {pos_m}, {window}, false, {b}, {channels});
    load_cbuf_to_cb(b, l1w, 0, {deep}, 1, 0, false);
    set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
    mad(c, a, b, {m}, {k}, 16, 0, 0, 0, 1);
    set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
    copy_matrix_cc_to_gm(y, c, 0, 16, {m}, 16, {m}, 0, NoQuant, 0, 0, 1);
}}"""


@pytest.mark.parametrize(
    ("p", "m", "k", "pos_m", "pos_k"),
    [
        (Patches(height=1, width=64, kernel=(1, 1)), 48, 32, 16, 32),
        (P, 16, 12 * 32, 0, 0),
        (Patches(height=5, width=6, kernel=(3, 2), pad=(1, 1, 1, 0)), 32, 160, 8, 64),
    ],
    ids=["rows of a matrix", "a convolution", "a piece of one"],
)
@pytest.mark.parametrize("other", [False, True])
@pytest.mark.parametrize("type", ["half", "int8_t"])
def test_matrices_of_patches_on_the_910b(type, other, p, m, k, pos_m, pos_k):
    """The piece of the matrix that is asked for, times another, for the register of either side."""
    kind, c0 = (np.float16, 16) if type == "half" else (np.int8, 32)
    image = RNG.integers(-9, 10, (128 // c0 * 2, p.height, p.width, c0)).astype(kind)
    weights = RNG.integers(-9, 10, (k // c0, 16, c0)).astype(kind)  # k/c0 fractals: 16 columns
    (sh, sw), (kh, kw), (dh, dw) = p.stride, p.kernel, p.dilation
    wide = "float" if type == "half" else "int32_t"
    text = MATRIX.format(
        type=type,
        wide=wide,
        blocks=image.nbytes // 32,
        weights=weights.nbytes // 32,
        register="set_fmatrix_b" if other else "set_fmatrix",
        image=image_word(p),
        k=k,
        m=m,
        pos_k=pos_k,
        pos_m=pos_m,
        window=f"{sw}, {sh}, {kw}, {kh}, {dw}, {dh}, false, false",
        b="true" if other else "false",
        channels=256,
        deep=k // c0,
    )
    y = np.zeros((m, 16), np.float32 if type == "half" else np.int32)
    arguments = {"x": image, "w": weights, "y": y}
    program, functional = build(read(text, "k.cce"), C910B, arguments, kind="cube")
    assert functional is not None
    rows = im2col(image, p).swapaxes(1, 2).reshape(16 * p.fractals, -1).astype(int)
    rows = np.concatenate([rows, np.zeros((64, rows.shape[1]), int)])
    left = rows[pos_m : pos_m + m, pos_k : pos_k + k]
    expected = left @ weights.astype(int).swapaxes(1, 2).reshape(k, 16)
    assert np.array_equal(functional.read("y"), expected) and expected.any(axis=0).all()
    assert not simulate(program).findings


@pytest.mark.parametrize("kind", [np.float16, np.float32])
@pytest.mark.parametrize("form", ["arguments", "words"])
def test_col2im_of_all_places(kind, form):
    """As an operator of a gradient has it: an instruction for each place of the kernel."""
    p = Patches(height=7, width=7, kernel=(3, 3), stride=(2, 2), pad=(1, 1, 1, 1))
    fractals = RNG.normal(size=(9, p.fractals, 16, 16)).astype(kind)
    image = RNG.normal(size=(1, 7, 7, 16)).astype(kind)
    type, at = ("half" if kind is np.float16 else "float"), 0x10000
    xm, xt = words(p, p.corner(0), (0, 0), 0, 0, 0, p.fractals)
    call = f"col2img(d, s, -1, kw, kh, -1, {p.fractals}, 2, 2, 3, 3, 1, 1, 1)"
    if form == "words":
        call = f"col2img(d, s, {xm}ULL + (kw << 16) + (kh << 24), {xt}ULL)"
    blocks = np.dtype(kind).itemsize // 2
    out = run(
        f"""
        __ubuf__ {type} *d = (__ubuf__ {type} *)get_imm({at});
        copy_gm_to_ubuf((__ubuf__ {type} *)get_imm(0), x, 0, 1, {fractals.nbytes // 32}, 0, 0);
        copy_gm_to_ubuf(d, y, 0, 1, {49 * blocks}, 0, 0);
        set_fcol2img({image_word(p)}ULL);
        for (uint64_t kh = 0; kh < 3; ++kh)
            for (uint64_t kw = 0; kw < 3; ++kw) {{
                __ubuf__ {type} *s = (__ubuf__ {type} *)get_imm(0);
                s += (kh * 3 + kw) * {256 * p.fractals};
                {call};
            }}
        copy_ubuf_to_gm(y, d, 0, 1, {49 * blocks}, 0, 0);
        """,
        x=fractals,
        y=image,
    ).read("y")
    expected = col2im(fractals, p, mode=1, image=image)
    assert np.array_equal(out, expected) and not np.array_equal(out, vector.add(image, image))


MATRIX_LOAD = "img2colv2_cbuf_to_ca((__ca__ half *)get_imm(0), (__cbuf__ half *)get_imm(0), "
LOAD = "img2col_cbuf_to_ub((__ubuf__ half *)get_imm(0), (__cbuf__ half *)get_imm(0), "


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            LOAD + "0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 1, CSIZE0);",
            "img2col_cbuf_to_ub: the image must have been described by set_fmatrix",
        ),
        (
            "set_fmatrix(0x40004);" + LOAD + "0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 1, 1, CSIZE0);",
            "jump must be 1 to 127 in mode 1, not 0",
        ),
        (
            "set_fmatrix(0x40004);" + LOAD + "0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, CSIZE1);",
            "c_size must be CSIZE0",
        ),
        (
            "set_fmatrix(0x40004);" + LOAD + "0, 0, 0, 0, 0, 1, 1, 5, 5, 1, 1, 1, 1, 1, CSIZE0);",
            "kernel must fit into the padded image, not 5 × 5 pixels into 4 × 4",
        ),
        (
            "set_fmatrix(0x40004);" + LOAD + "0, 0, 0, 9, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1, CSIZE0);",
            "kernel_w must be 1 to 255, not 0",
        ),
        (
            "set_fmatrix(0x40004);" + LOAD + "0, 0, 9, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, CSIZE0);",
            "im2col: position must be at least 0 and from 0 to 3, not (0, 9)",
        ),
        ("set_fmatrix(0x40004);" + LOAD + "0, 1, CSIZE0);", "kernel must be at least 1, not 0"),
        (
            "set_fmatrix(0x40004);"
            + MATRIX_LOAD
            + "16, 16, 0, 0, 2, 1, 1, 1, 1, 1, 0, 0, 1, 0, 16);",
            "transposed patches must be of one pixel, with stride 1 and no padding",
        ),
        (
            "set_fmatrix(0x40004);"
            + MATRIX_LOAD
            + "8, 16, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 16);",
            "step_k must be a multiple of 16 for fp16, not 8",
        ),
        (
            "set_fmatrix(0x40004);"
            + MATRIX_LOAD
            + "32, 16, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 16);",
            "pos_k + step_k must be at most channels · kernel, 16, not 32",
        ),
        (
            "set_fmatrix(0x40004);"
            + MATRIX_LOAD
            + "16, 16, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 1, 16);",
            "the image must have been described by set_fmatrix_b",
        ),
        (
            "col2img((__ubuf__ half *)get_imm(0), (__ubuf__ half *)get_imm(0), 0, 0);",
            "col2img: the image must have been described by set_fcol2img",
        ),
    ],
)
def test_what_cannot_be_is_named_with_its_line(body, message):
    with pytest.raises(ValueError) as error:
        run(body, x=np.zeros(16, np.float16))
    assert message in str(error.value) and "k.cce:3" in str(error.value)
    assert "\n" not in str(error.value)

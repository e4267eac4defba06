"""Draw what machines return for the same dot product, as SVG, for ``vitruvian docs``."""

from math import fsum

import numpy as np

from vitruvian.golden.fp import from_float, to_float
from vitruvian.golden.machines import run

#: Row of the table of machines -> name in the picture.
MACHINES = {
    "v100_mma_fp16_fp32": "NVIDIA V100",
    "a100_mma_fp16_fp32": "NVIDIA A100",
    "h100_mma_fp16_fp32": "NVIDIA H100",
    "b200_tcgen05_fp16_fp32": "NVIDIA B200",
    "cdna1_mfma_fp16_fp32": "AMD CDNA 1",
    "cdna2_mfma_fp16_fp32": "AMD CDNA 2",
    "cdna3_mfma_fp16_fp32": "AMD CDNA 3",
    "gaudi1_fp16_fp32": "Intel Gaudi 1",
    "gaudi2_fp16_fp32": "Intel Gaudi 2",
    "gaudi3_fp16_fp32": "Intel Gaudi 3",
    "wh_mvmul_fp16_fp32_hifi4": "Tenstorrent Wormhole",
}

# ±2^16 cancel; what is left of 14 products near 2^-8, whose exponents are 24 lower, tells the
# windows apart.
_LARGE, _SMALL, _MANY = 256.0, 2.0**-8, 14
_A = np.array([_LARGE, *(1 + i / 8 for i in range(_MANY)), -_LARGE])
_B = np.array([_LARGE, *[_SMALL] * _MANY, _LARGE])

_WIDTH, _LEFT, _RIGHT, _TOP, _PITCH = 640, 170, 90, 62, 24


def exact() -> float:
    """Return the sum of the products; all operands are FP16 numbers."""
    return fsum(_A * _B)


def results() -> dict[str, float]:
    """Return row of the table of machines -> its result."""
    a, b = (from_float(x[np.newaxis], "fp16") for x in (_A, _B))
    codes = {stem: run(stem, a, b, np.zeros(1, np.uint32)) for stem in MACHINES}
    return {stem: float(to_float(code, "fp32")[0]) for stem, code in codes.items()}


def draw() -> str:
    """Return the SVG text: a bar for each machine, and a line at the exact sum."""
    values, true = results(), exact()
    scale = (_WIDTH - _LEFT - _RIGHT) / max(true, *values.values())
    bottom = _TOP + _PITCH * len(values)
    height = bottom + 12
    at = _LEFT + true * scale
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" font-family="sans-serif" font-size="13" role="img">',
        "<title>Results of one dot product by machine</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        f'<text x="10" y="22">256·256 + Σ (1 + i/8)·2⁻⁸ − 256·256, i = 0 … {_MANY - 1}, in FP16 '
        "with FP32 results</text>",
        f'<text x="{at:.1f}" y="46" text-anchor="middle">exact: {true:g}</text>',
    ]
    for number, (stem, value) in enumerate(values.items()):
        y = _TOP + number * _PITCH
        # Blue bars are exact.
        colour = "#31688e" if value == true else "#e07b39"
        out += [
            f'<text x="{_LEFT - 10}" y="{y + 13}" text-anchor="end">{MACHINES[stem]}</text>',
            f'<rect x="{_LEFT}" y="{y}" width="{value * scale:.1f}" height="17" fill="{colour}"/>',
            f'<text x="{_WIDTH - 10}" y="{y + 13}" text-anchor="end">{value:g}</text>',
        ]
    out.append(
        f'<path d="M{at:.1f} {_TOP - 8}V{bottom}" fill="none" stroke="black" '
        'stroke-dasharray="4 3"/>'
    )
    return "\n".join([*out, "</svg>\n"])

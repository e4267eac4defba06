"""Tenstorrent's phases worked step by step, as Markdown.

The model of golden computes them and records its arrays, which this file words.
"""

from typing import Any

import numpy as np

from vitruvian.flows.pages.machines.steps import StepOperands, arrays, hexadecimal, table
from vitruvian.golden.machines.phases import GROUP_SCALE, phase_dot, widen_shared
from vitruvian.golden.machines.spec import PhaseSpec


def phase_steps(x: StepOperands, spec: PhaseSpec) -> tuple[list[str], int]:
    """Return the lines of a worked MVMUL and the code of its result."""
    a, b, c = arrays(x, spec)
    if spec.shared_bits is not None:
        scales = (np.array([s]) for s in (x.scale_a, x.scale_b))
        a, b = (widen_shared(x, s, spec.shared_bits) for x, s in zip((a, b), scales, strict=True))
    trace: list[dict[str, Any]] = []
    d = int(phase_dot(a, b, c, spec, trace)[0])
    # Dst after a phase is Dst before the next one.
    after = [int(step["c"][0]) for step in trace[1:]] + [d]
    lines: list[str] = []
    for number, (step, code) in enumerate(zip(trace, after, strict=True)):
        before = hexadecimal(int(step["c"][0]), spec.output)
        lines.append(f"**Phase {number % spec.phases}**, Dst = {before}.")
        lines += _phase_lines(step, hexadecimal(code, spec.output))
    return [*lines, f"**D = {hexadecimal(d, spec.output)}**.", ""], d


def _phase_lines(step: dict[str, Any], after: str) -> list[str]:
    """Return the lines of one phase, which leaves ``after`` in Dst."""
    columns = (step["products"], step["exponents"], np.concatenate(step["aligned"], axis=1))
    rows: list[list[str]] = []
    for k, (product, field, aligned) in enumerate(np.array(columns)[:, 0].T.tolist()):
        sign = "−" if product < 0 else ""
        if product:
            rows.append([str(k), f"{sign}{abs(product)}", str(field), f"{sign}{abs(aligned)}"])
    # Each is a sign, a magnitude and an exponent field.
    *groups, dst = [tuple(int(part[0]) for part in number) for number in step["numbers"]]
    sums = " and ".join(f"{'−' * n}{m >> GROUP_SCALE} at {e}" for n, m, e in groups)
    text = (
        f"The groups are {sums}; Dst is {'−' * dst[0]}{dst[1]} at {dst[2]}. With the field "
        f"{step['emax'][0]}, their sum is {step['total'][0]}, and Dst becomes {after}."
    )
    header = ["term", "product", "exponent field", "in the group's units"]
    return [*table(header, rows), text.replace("-", "−"), ""]

"""Names of data sets, such as `h100_fp8e4m3`, read as a preset and formats."""

import re

from vitruvian.golden.fp.formats import FORMATS, FloatFormat
from vitruvian.golden.fp.spec import PRESETS, Preset

__all__ = ["parse_preset_name"]

_FORMAT_NAMES = {  # longer spellings before those they contain
    "fp8e4m3": r"(?:fp|float)?8?e4m3(?:fn)?",
    "fp8e5m2": r"(?:fp|float)?8?e5m2",
    "bf16": r"bf16|bfloat16|bfloat",
    "tf32": r"tf32|tensorfloat32",
    "fp16": r"fp16|float16|f16|half",
    "fp64": r"fp64|float64|f64|double",
    "fp32": r"fp32|float32|f32|single",
}
_MACHINES = {
    "volta": "v100",
    "ampere": "a100",
    "l40s": "ada",
    "l40": "ada",
    "rtx4090": "ada",
    "hopper": "h100",
    "h200": "h100",
    "blackwell": "b200",
}
_FORMAT = re.compile("|".join(f"(?P<{name}>{text})" for name, text in _FORMAT_NAMES.items()))


def parse_preset_name(name) -> tuple[Preset, FloatFormat, FloatFormat | None]:
    """Return the preset, the input format and the second operand's format that `name` stands for.

    The name is `<preset>_<format>` or, for mixed fp8, `<preset>_<format>_<format>`, in any case,
    with any separators, and with the usual other spellings of a format (`fp8_e4m3`, `e5m2`,
    `float16`, `half`, `bfloat16`, …). The last value is None for one format. A trailing `fp32`
    or `fp16` after another format is taken for the output's and skipped.

    Raises
    ------
    TypeError, ValueError
        When it is not a string, or does not begin with a preset or go on with formats.
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be a string, not {name!r}")
    text = re.sub(r"[^a-z0-9]", "", name.lower())
    machine = next((m for m in (*PRESETS, *_MACHINES) if text.startswith(m)), None)
    if machine is None:
        raise ValueError(f"name must begin with one of {', '.join(PRESETS)}, not {name!r}")
    rest, formats = text[len(machine) :], []
    while rest:
        match = _FORMAT.match(rest)
        if match is None:
            raise ValueError(f"format in a name must be one of {', '.join(FORMATS)}, not {rest!r}")
        formats.append(FORMATS[str(match.lastgroup)])
        rest = rest[match.end() :].removeprefix("x")
    while len(formats) > 1 and formats[-1].name in ("fp32", "fp16"):
        formats.pop()
    if len(formats) not in (1, 2):
        raise ValueError(
            f"name must be <preset>_<format> or <preset>_<format>_<format>, not {name!r}"
        )
    preset = PRESETS[_MACHINES.get(machine, machine)]
    return preset, formats[0], formats[1] if len(formats) == 2 else None

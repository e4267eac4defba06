"""Parser for the names of data sets, such as ``h100_fp8e4m3``: a preset and its formats."""

import re

from vitruvian.common.validate import check_type
from vitruvian.golden.fp.formats import FORMATS, FloatFormat
from vitruvian.golden.fp.spec import PRESETS, Preset

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
#: Every name of a format, the longest first, because a name may begin with a shorter one.
_NAMES = sorted(
    ((alias, f) for f in FORMATS.values() for alias in (f.name, *f.aliases)),
    key=lambda item: -len(item[0]),
)


def parse_preset_name(name: str) -> tuple[Preset, FloatFormat, FloatFormat | None]:
    """Return the preset and the format or formats that ``name`` stands for.

    Parameters
    ----------
    name : str
        ``<preset>_<format>`` or, for mixed fp8, ``<preset>_<format>_<format>``. Case and
        separators do not matter, and the usual other spellings of a format are accepted
        (``fp8_e4m3``, ``e5m2``, ``float16``, ``half``, ``bfloat16``, …). A trailing ``fp32`` or
        ``fp16`` after another format is read as the output format and ignored.

    Returns
    -------
    preset : Preset
    input : FloatFormat
        Format of the first operand.
    input_b : FloatFormat or None
        Format of the second operand, or None if the name has only one format.

    Raises
    ------
    TypeError
        If ``name`` is not a str.
    ValueError
        If ``name`` does not begin with a preset, or if a format in it is unknown.
    """
    check_type("name", name, str)
    text = re.sub(r"[^a-z0-9]", "", name.lower())
    machine = next((m for m in (*PRESETS, *_MACHINES) if text.startswith(m)), None)
    if machine is None:
        raise ValueError(f"name must begin with one of {', '.join(PRESETS)}, not {name!r}")
    rest = text[len(machine) :]
    formats: list[FloatFormat] = []
    while rest:
        name_of, format = next((x for x in _NAMES if rest.startswith(x[0])), ("", None))
        if format is None:
            raise ValueError(f"format in a name must be one of {', '.join(FORMATS)}, not {rest!r}")
        formats.append(format)
        rest = rest.removeprefix(name_of).removeprefix("x")
    while len(formats) > 1 and formats[-1].name in ("fp32", "fp16"):
        formats.pop()
    if len(formats) not in (1, 2):
        raise ValueError(
            f"name must be <preset>_<format> or <preset>_<format>_<format>, not {name!r}"
        )
    preset = PRESETS[_MACHINES.get(machine, machine)]
    return preset, formats[0], formats[1] if len(formats) == 2 else None

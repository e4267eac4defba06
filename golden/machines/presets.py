"""Presets: names that stand for a rule of arithmetic in each choice of formats.

``ieee`` and ``exact`` are rules for all formats. The other presets are machines, whose rules stand
in the table of machines.
"""

import re
from dataclasses import dataclass, field
from functools import cached_property

from vitruvian.common.validate import check_type
from vitruvian.golden.fp.formats import FORMATS, FloatFormat, as_format
from vitruvian.golden.fp.spec import DotSpec, dot_spec
from vitruvian.golden.fp.window import ieee_window
from vitruvian.golden.machines.table import aliases, machines

#: Every name of a format, the longest first, because a name may begin with a shorter one.
_NAMES = sorted(
    ((alias, f) for f in FORMATS.values() for alias in (f.name, *f.aliases)),
    key=lambda item: -len(item[0]),
)


@dataclass(frozen=True)
class Preset:
    """A named machine or standard that gives a ``DotSpec`` for a choice of formats.

    The rules of a machine are rows of ``golden.machines``: those of one instruction with truncated
    sums. Their ``emax_floor`` depends on the generation and on the output format; ``zero`` is
    "positive". They were compared with measured results of V100, A100, A2, L40S (Ada), H100, H200
    and B200, including fp16 results. For ``h100``, an H200 confirms them with the sign of zero and
    the floors; its fp8 is that of the ``wgmma`` instruction. Other signs of zero and floors, and
    this row, are known only from an executed model:

    - fp8 of ``b200`` is that of its ``tcgen05`` instruction: 25 fraction bits and a full fp32
      result, instead of Hopper's 13.

    The fp8 ``mma.sync`` of Hopper and of Blackwell, which adds C last and rounds once more, and all
    other machines have no preset.

    Parameters
    ----------
    name : str
        Key in ``PRESETS``.
    description : str
        One line for a list of presets.
    instruction : str
        Instruction of the machine ``name`` in the table; "" for ``ieee`` and ``exact``, which take
        any input format.
    has_window : bool
        If False, the sum is exact and nothing is truncated.
    outputs : tuple of str
        Output formats of a preset that is no machine.
    """

    name: str
    description: str
    instruction: str = field(default="", repr=False)
    has_window: bool = field(default=True, repr=False)
    outputs: tuple[str, ...] = field(default=(), repr=False)

    @property
    def is_machine(self) -> bool:
        """True if the preset is a real machine, with a table of formats and its own windows."""
        return bool(self.instruction)

    @cached_property
    def rules(self) -> dict[tuple[str, str, str], DotSpec]:
        """The machine's rules by the names of the formats of A, B and D; empty for the others."""
        own = (self.name, self.instruction)
        return {
            (row.input.name, row.input_b.name, row.output): row.rule
            for row in machines().values()
            if (row.machine, row.instruction) == own
            and isinstance(row.rule, DotSpec)
            and row.rule.sum.truncate == "magnitude"  # not the fused multiply-add of fp64
        }

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the input formats."""
        return tuple(dict.fromkeys(name for name, _ in self.combinations))

    @property
    def combinations(self) -> tuple[tuple[str, str], ...]:
        """All pairs of format names (input, output) with one input format."""
        if not self.is_machine:
            return tuple((i, o) for i in FORMATS for o in self.outputs)
        return tuple((a, out) for a, b, out in self.rules if a == b)

    def spec(
        self,
        input: FloatFormat | str,
        output: FloatFormat | str = "fp32",
        *,
        k: int | None = None,
        input_b: FloatFormat | str | None = None,
    ) -> DotSpec:
        """Return the parameters for these formats.

        Parameters
        ----------
        input, output : FloatFormat or str
            Format of A; format of C and D.
        k : int, optional
            Number of terms in a block, by default the machine's own.
        input_b : FloatFormat or str, optional
            Format of B, by default that of A. Machines mix only the formats of at most 8 bits;
            ``ieee`` and ``exact`` mix all formats.

        Raises
        ------
        TypeError, ValueError
            If a format is unknown, or if the preset does not have this combination.
        """
        a, out = as_format(input, "input"), as_format(output, "output")
        b = a if input_b is None else as_format(input_b, "input_b")
        if self.is_machine:
            rule = self.rules.get((a.name, b.name, out.name))
            if rule is not None:
                return rule if k is None else rule.replace(k=k)
        elif out.name in self.outputs:
            if k is None:
                k = {8: 16, 16: 8}.get(max(a.storage_bits, b.storage_bits), 4)
            window = ieee_window(a, out, b) if self.has_window else None
            return dot_spec(input=a, input_b=b, output=out, k=k, window=window)
        allowed = ", ".join(f"{i} -> {o}" for i, o in self.combinations)
        pair = a.name if a == b else f"{a.name} x {b.name}"
        raise ValueError(
            f"formats of preset {self.name} must be one of {allowed}, "
            f"not {pair + ' -> ' + out.name!r}"
        )


PRESETS = {
    p.name: p
    for p in (
        Preset("v100", "NVIDIA V100", "mma"),
        Preset("a100", "NVIDIA A100", "mma"),
        Preset("a2", "NVIDIA A2, as the A100", "mma"),
        Preset("ada", "NVIDIA Ada (L40S), as the A100, and fp8", "mma"),
        Preset("h100", "NVIDIA H100 and H200 (fp8: wgmma)", "wgmma"),
        Preset("b200", "NVIDIA B200, as the H100 (fp8: tcgen05)", "tcgen05"),
        Preset(
            "ieee",
            "K = 1 is IEEE 754 fusedMultiplyAdd; wide window, rounded once",
            outputs=("fp16", "fp32", "fp64"),
        ),
        Preset(
            "exact",
            "no window: the exact sum, rounded once",
            has_window=False,
            outputs=tuple(f.name for f in FORMATS.values() if f.has_nan),
        ),
    )
}


def parse_preset_name(name: str) -> tuple[Preset, FloatFormat, FloatFormat | None]:
    """Return the preset and the format or formats that ``name`` stands for.

    Parameters
    ----------
    name : str
        ``<preset>_<format>`` or, for mixed fp8, ``<preset>_<format>_<format>``, as in the name of a
        data set, ``h100_fp8e4m3``. Case and separators do not matter, and the usual other spellings
        of a format are accepted (``fp8_e4m3``, ``e5m2``, ``float16``, ``half``, ``bfloat16``, …),
        as are other names of a machine in the table. A trailing ``fp32`` or ``fp16`` after another
        format is read as the output format and ignored.

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
    known = {alias: m for alias, m in aliases().items() if m in PRESETS}
    known |= {"h200": "h100", **{preset: preset for preset in PRESETS}}
    machine = next((m for m in sorted(known, key=len, reverse=True) if text.startswith(m)), None)
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
    preset = PRESETS[known[machine]]
    return preset, formats[0], formats[1] if len(formats) == 2 else None

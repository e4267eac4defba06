"""Readings of the constants of the Ascend 310 and 910, as changes of their files.

Each reading has its values before and after, so that the figures under the older constants can be
computed whichever of them the files hold.

References
----------
Tang 2024, Tables 2.1 and 2.3, §1.2.2 and §2.2.3. Zhou et al. 2025, §5.1 and §5.3.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from vitruvian.sim.davinci import Chip
from vitruvian.sim.davinci.chip.file import CHIPS, read_chip

#: The clock of the 310 in MHz, and its multiples of a ReLU's time (Tang 2024, §1.2.2).
CLOCK_310 = 680
MULTIPLES = {"vcmp": 1.90, "vcmpv": 1.90, "vsel": 1.93, "vdup": 1.48 / 1.69, "vcmin": 1.48 / 1.60}
BRANCH, ASSIGNMENT = 1.48, 0.94

#: The source of constants that replace those of a file.
_STUDY = "'a constant under study'"

#: A table of a chip file and its keys with their TOML values.
Values = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Reading:
    """A reading of some constants of a chip.

    Attributes
    ----------
    chip : str
    before, after : Values
        The constants without and with the reading.
    text : str
        The reading in a few words.
    """

    chip: str
    before: Values
    after: Values
    text: str


def pipelined(start_cycles: float, drain_ns: float = 40, *, multiples: bool = True) -> Values:
    """Return the constants of a pipelined vector unit of the 310.

    Parameters
    ----------
    start_cycles : float
        Cycles between the starts of two instructions.
    drain_ns : float
        Nanoseconds from then on until the results are there.
    multiples : bool
        If False, branches and assignments keep the multiples of a ReLU of 41.47 ns.
    """
    relu = 1000 * start_cycles / CLOCK_310
    scalar = relu if multiples else 40 + 256 / 174.06
    return {
        "vector": {
            "start_ns": _ns(relu),
            "drain_ns": _ns(drain_ns),
            "init_ns": "0",
            "source": _STUDY,
        },
        "vector.operation": {
            op: f"{{ start_ns = {_ns(times * relu)}, source = 'multiple of a ReLU' }}"
            for op, times in MULTIPLES.items()
        },
        "scalar": {"default_ns": _ns(ASSIGNMENT * scalar)},
        "scalar.operation_ns": {"branch": _ns(BRANCH * scalar)},
    }


def occupied(init_ns: float = 40) -> Values:
    """Return the constants of a vector unit that initialises each instruction by itself."""
    relu = init_ns + 256 / 174.06
    return {
        "vector": {"start_ns": "0", "drain_ns": "0", "init_ns": _ns(init_ns), "source": _STUDY},
        "vector.operation": {
            op: f"{{ init_ns = {_ns(times * relu - 256 / 174.06)}, source = 'a multiple' }}"
            for op, times in MULTIPLES.items()
        },
        "scalar": {"default_ns": _ns(ASSIGNMENT * relu)},
        "scalar.operation_ns": {"branch": _ns(BRANCH * relu)},
    }


def totals(*gb_per_s: float) -> Values:
    """Return the bus of the 310 with these totals of one to four transfers in GB/s."""
    return {
        "bus.interconnect": {"gb_per_s": f"[{', '.join(map(_gb, gb_per_s))}]"},
        **{
            f'path."{path}"': {"gb_per_s": _gb(gb_per_s[0])}
            for path in ("GM->L1", "GM->UB", "GM->L0A", "GM->L0B", "UB->GM")
        },
    }


def memory(gb_per_s: float, most: float = 1200) -> Values:
    """Return the memory of the 910 with this rate of a core in GB/s."""
    some = [gb_per_s * n for n in range(1, 33) if gb_per_s * n < most] + [most]
    return {
        "bus.memory": {"gb_per_s": f"[{', '.join(map(_gb, some[:32]))}]"},
        **{
            f'path."{path}"': {"gb_per_s": _gb(gb_per_s)}
            for path in ("GM->L1", "GM->UB", "GM->L0A", "GM->L0B", "UB->GM")
        },
    }


def _ns(value: float) -> str:
    return f"{value:.3g}"


def _gb(value: float) -> str:
    return f"{value:.4g}"


#: The readings by name.
READINGS: Mapping[str, Reading] = {
    "P": Reading("ascend310", occupied(), pipelined(6.2), "vector unit pipelined"),
    "B": Reading("ascend310", totals(24, 36, 40, 42), totals(21, 42, 42, 42), "bus totals"),
    "G": Reading("ascend910", memory(94), memory(50), "memory path of a core"),
}


def chip_text(
    name: str, readings: Collection[str] = (), changes: Mapping[str, Values] | None = None
) -> str:
    """Return the file of a chip with some readings, and without the others.

    Parameters
    ----------
    name : str
        The name of the chip.
    readings : collection of str
        Keys of ``READINGS``.
    changes : mapping of str to Values, optional
        Further values by the name of the chip.
    """
    text = (CHIPS / f"{name}.toml").read_text(encoding="utf-8")
    for key, reading in READINGS.items():
        if reading.chip == name:
            text = _changed(text, reading.after if key in readings else reading.before)
    return _changed(text, (changes or {}).get(name, {}))


def chip_with(
    name: str, readings: Collection[str] = (), changes: Mapping[str, Values] | None = None
) -> Chip:
    """Return a chip with some readings; see ``chip_text``."""
    return read_chip(chip_text(name, readings, changes), f"{name} with other constants")


def write_chip(
    folder: Path, name: str, readings: Collection[str], changes: Mapping[str, Values] | None
) -> Path:
    """Write a chip file for functions that take a name or a file, and return its path."""
    path = folder / f"{name}.toml"
    path.write_text(chip_text(name, readings, changes), encoding="utf-8")
    return path


def _changed(text: str, values: Values) -> str:
    """Return a chip file with other values, each of which is one line or a list."""
    for table, pairs in values.items():
        head = re.search(rf"^\[{re.escape(table)}\]\n", text, re.M)
        assert head is not None, table
        end = re.search(r"^\[", text[head.end() :], re.M)
        stop = head.end() + end.start() if end else len(text)
        body = text[head.end() : stop]
        for key, value in pairs.items():
            line = f"{key} = {value}\n"
            found = re.compile(rf"^{key} = (\[\n.*?^\]|.*?)\n", re.M | re.S)
            body = (
                found.sub(lambda _, line=line: line, body, count=1)
                if found.search(body)
                else (line + body)
            )
        text = text[: head.end()] + body + text[stop:]
    return text

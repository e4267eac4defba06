"""The form of a maker's file: which keys it has, and which values each may have."""

import re
from collections.abc import Iterable
from dataclasses import fields
from difflib import get_close_matches
from inspect import signature
from typing import Any

from vitruvian.common.errors import UserError
from vitruvian.common.validate import shortened
from vitruvian.golden.fp.formats import FORMATS, INT_FORMATS
from vitruvian.golden.fp.spec import dot_spec
from vitruvian.golden.machines.spec import ChainSpec, PhaseSpec

#: The codes of evidence, by which every entry ``evidence`` begins.
EVIDENCE = {
    "S": "measured on silicon",
    "V": "the vendor's model, executed",
    "P": "a peer's model, executed",
    "D": "documentation",
    "T": "a public report",
}

_TOP = {
    "maker": str,
    "machines": dict,
    "rules": dict,
    "row": list,
    "aliases": dict,
    "synonyms": dict,
    "names": dict,
    "missing": list,
}
_NEEDED = ("maker", "machines", "rules", "row")
_ROW = {
    "machines": list,
    "instruction": str,
    "outputs": list,
    "rule": str,
    "evidence": str,
    "also": list,
    "formats": list,
    "pairs": list,
    "k": int,
    "terms": list,
    "variants": dict,
    "scale": str,
    "block": int,
    "stored": str,
    "stem": str,
    "with": dict,
    "zero_known": bool,
    "no_set": str,
}
_ROW_NEEDED = ("machines", "instruction", "outputs", "rule", "evidence")
_MISSING: dict[str, type] = dict.fromkeys(
    ("machine", "instruction", "formats", "output", "reason"), str
)
_STEMS = ("instruction", "output")
_RESULTS = ("fp32", "fp16")
_WORDS = {str: "a string", int: "an int", bool: "true or false", list: "an array", dict: "a table"}
_CHAIN = {field.name for field in fields(ChainSpec)} - {"step", "k", "products"}
_DOT = set(signature(dot_spec).parameters) - {"input", "input_b", "output", "k"}
#: Kind of a rule -> the parameters that it may have
_PARAMETERS: dict[str, set[str]] = {
    "dot": _DOT - {"scale", "block"},
    "fma": _DOT - {"scale", "block", "window"},
    "chain": (_DOT - {"scale", "block", "window"}) | _CHAIN,
    "tree": (_DOT - {"scale", "block", "window"}) | _CHAIN,
    "pairs": (_DOT - {"scale", "block", "window"}) | _CHAIN,
    "phases": {field.name for field in fields(PhaseSpec)} - {"output", "phases"},
    "rdna": {"rdna4"},
    "integer": {"saturate"},
    "integer phases": set(),
}


def place_of(where: str, row: int) -> str:
    """Return how messages name a row of a file; rows are counted from 1."""
    return f"{where}, row {row}"


def check_file(file: dict[str, Any], where: str, formats: Iterable[str]) -> None:
    """Check the keys, types and names of a maker's file.

    Parameters
    ----------
    file : dict
        The parsed file.
    where : str
        Name of the file, for messages.
    formats : iterable of str
        The table's names of formats, without the file's own ones.

    Raises
    ------
    UserError
        If something is not as it must be; the message names the file, the row and the key.
    """
    known = set(formats)
    _check_keys(file, where, _TOP, _NEEDED)
    for table in ("machines", "aliases", "synonyms", "names"):
        for name, value in file.get(table, {}).items():
            _check_value(value, f"{where}: {name} of {table}", str)
    for alias, name in file.get("aliases", {}).items():
        _one_of(name, f"{where}: {alias} of aliases", file["machines"])
    for name, format in file.get("names", {}).items():
        _one_of(format, f"{where}: {name} of names", known)
    known |= set(file.get("names", {}))
    for name, rule in file["rules"].items():
        _check_rule(rule, f"{where}, rule {name}")
    for number, row in enumerate(file["row"], 1):
        place = place_of(where, number)
        _check_value(row, place, dict)
        _check_row(row, place, file, known)
    for number, entry in enumerate(file.get("missing", ()), 1):
        place = f"{where}, missing {number}"
        _check_value(entry, place, dict)
        _check_keys(entry, place, _MISSING, _MISSING)
        _one_of(entry["machine"], f"{place}: machine", file["machines"])


def _check_row(row: dict[str, Any], place: str, file: dict[str, Any], formats: set[str]) -> None:
    _check_keys(row, place, _ROW, _ROW_NEEDED)
    if ("formats" in row) == ("pairs" in row):
        raise UserError(f"{place}: the row must have formats or pairs, and not both")
    for key in ("machines", "outputs", "also", "formats", "pairs"):
        for value in row.get(key, ()):
            _check_value(value, f"{place}: each of {key}", str)
        if key in row and not row[key]:
            raise UserError(f"{place}: {key} must have at least one entry")
    for value in row.get("terms", ()):
        _check_value(value, f"{place}: each of terms", int)
    for name, value in row.get("variants", {}).items():
        _check_value(value, f"{place}: {name} of variants", int)
    for name in row["machines"]:
        _one_of(name, f"{place}: each of machines", file["machines"])
    _one_of(row["rule"], f"{place}: rule", file["rules"])
    for output in row["outputs"]:
        _one_of(output, f"{place}: each of outputs", (*FORMATS, *INT_FORMATS, "int32"))
    for pair in [row["stored"]] if "stored" in row else row.get("formats", row.get("pairs", ())):
        for name in (pair,) if pair in formats else pair.split("x", 1):
            _one_of(name, f"{place}: each format", formats)
    if "stem" in row:
        _one_of(row["stem"], f"{place}: stem", _STEMS)
    code = re.match(r"([A-Za-z]+)\b", row["evidence"])
    if code is None or code[1] not in EVIDENCE:
        raise UserError(
            f"{place}: evidence must begin with one of {', '.join(EVIDENCE)}, "
            f"not {shortened(row['evidence'])}"
        )
    kind = file["rules"][row["rule"]].get("kind", "dot")
    _check_parameters(row.get("with", {}), f"{place}, with", kind)


def _check_rule(rule: Any, place: str) -> None:
    _check_value(rule, place, dict)
    kind = rule.get("kind", "dot")
    _check_value(kind, f"{place}: kind", str)
    _one_of(kind, f"{place}: kind", _PARAMETERS)
    _check_parameters({k: v for k, v in rule.items() if k != "kind"}, place, kind)


def _check_parameters(given: dict[str, Any], place: str, kind: str) -> None:
    for name, value in given.items():
        _one_of(name, f"{place}: each parameter", (*_PARAMETERS[kind], *_RESULTS))
        if name in _RESULTS:
            _check_value(value, f"{place}: {name}", dict)
            for inner in value:
                _one_of(inner, f"{place}: each parameter of {name}", _PARAMETERS[kind])


def _check_keys(
    given: dict[str, Any], place: str, allowed: dict[str, type], needed: Iterable[str]
) -> None:
    for key, value in given.items():
        _one_of(key, f"{place}: each key", allowed)
        _check_value(value, f"{place}: {key}", allowed[key])
    for key in needed:
        if key not in given:
            raise UserError(f"{place}: {key} must be there")


def _check_value(value: Any, thing: str, kind: type) -> None:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        shown = shortened(value) if isinstance(value, str) else shortened(str(value))[1:-1]
        raise UserError(f"{thing} must be {_WORDS[kind]}, not {shown}")


def _one_of(value: Any, thing: str, allowed: Iterable[str]) -> None:
    names = sorted(allowed)
    if value in names:
        return
    near = get_close_matches(str(value), names, 1, 0.6)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise UserError(f"{thing} must be one of {', '.join(names)}, not {shortened(str(value))}{hint}")

"""The table of machines: which instruction computes which formats by which rule.

The rows are data, in one TOML file for each maker. A row names machines, an instruction, formats
and a rule; a rule is a set of parameters of one of the parameter objects.
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

from vitruvian.common.errors import UserError
from vitruvian.golden.fp.formats import FORMATS, INT_FORMATS, OTHER_FORMATS, FloatFormat, IntFormat
from vitruvian.golden.fp.spec import DotSpec, IntDotSpec, dot_spec
from vitruvian.golden.machines.spec import ChainSpec, IntPhaseSpec, PhaseSpec, RdnaSpec, fma_step
from vitruvian.golden.machines.table_file import check_file, place_of

Rule = DotSpec | ChainSpec | PhaseSpec | RdnaSpec | IntDotSpec | IntPhaseSpec

#: The folder of the makers' files.
FOLDER = Path(__file__).parent / "makers"
#: Name of a format in the table -> name in ``FORMATS``, ``OTHER_FORMATS`` or ``INT_FORMATS``.
_FORMATS = {
    name: f.name
    for f in (*FORMATS.values(), *OTHER_FORMATS.values())
    for name in (*f.aliases, f.name)
} | {name: name for name in INT_FORMATS}
_WIDEST = 23  # fraction bits of an fp32 result, the window of RVBNA without guard bits
_NEAR = 3  # names that an error message suggests


@dataclass(frozen=True, kw_only=True)
class Machine:
    """One row of the table: an instruction of a machine with its formats.

    Parameters
    ----------
    stem : str
        Name of the row, as in the names of files: ``b200_tcgen05_e4m3_fp32``.
    maker, machine, title, instruction : str
        Who makes it; short and long name of the machine; the instruction, or "" if there is one.
    formats, output : str
        Names of the operands' formats, as in the stem, and of the result's.
    input, input_b : FloatFormat or IntFormat
        Formats in which the codes of A and B are stored.
    rule_name : str
        Name of the rule in the maker's file.
    rule : Rule
        The parameters.
    evidence : str
        How the rule is known: S, measured on silicon; V, the vendor's model, executed; P, a peer's
        model, executed; D, documentation. "uncertain" marks what is not known.
    zero_known : bool
        False if the sign of a zero result is not asserted.
    no_set : str
        Why some rows of this entry have no set of results to be compared with; "" if all have.
    """

    stem: str
    maker: str
    machine: str
    title: str
    instruction: str
    formats: str
    output: str
    input: FloatFormat | IntFormat
    input_b: FloatFormat | IntFormat
    rule_name: str
    rule: Rule
    evidence: str
    zero_known: bool = True
    no_set: str = ""

    @property
    def kind(self) -> str:
        """The kind of rule: "dot", "chain", "phases", "rdna" or "integer"."""
        kinds: dict[type, str] = {
            DotSpec: "dot",
            ChainSpec: "chain",
            PhaseSpec: "phases",
            RdnaSpec: "rdna",
        }
        return kinds.get(type(self.rule), "integer")


@dataclass(frozen=True, kw_only=True)
class Missing:
    """An instruction whose rule is not known to the bit.

    Parameters
    ----------
    stem, maker, machine, title, instruction : str
        As in ``Machine``; the stem ends with the instruction.
    formats, output : str
        Formats of the operands and of the result, for a reader.
    reason : str
        Statement of the part that is unknown.
    """

    stem: str
    maker: str
    machine: str
    title: str
    instruction: str
    formats: str
    output: str
    reason: str


@lru_cache
def machines() -> dict[str, Machine]:
    """Return the rows of all makers by their stems.

    Raises
    ------
    UserError
        If a file is not as it must be, or if two rows have the same stem.

    Examples
    --------
    >>> from vitruvian import machines
    >>> "h100_mma_fp16_fp32" in machines.table()
    True
    """
    rows: dict[str, Machine] = {}
    places: dict[str, str] = {}
    for name, file in _named_files():
        for place, row in _placed_rows(file, name):
            if row.stem in rows:
                raise UserError(
                    f"{place}: the stem must be of one row, but {row.stem} is also of "
                    f"{places[row.stem]}"
                )
            rows[row.stem], places[row.stem] = row, place
    return rows


@lru_cache
def missing() -> dict[str, Missing]:
    """Return the instructions without a known rule by their stems.

    Examples
    --------
    >>> from vitruvian import machines
    >>> "cdna4_mfma" in machines.missing()
    True
    """
    found: dict[str, Missing] = {}
    for file in _files():
        for entry in file.get("missing", ()):
            stem = "_".join(word for word in (entry["machine"], entry["instruction"]) if word)
            title = file["machines"][entry["machine"]]
            found[stem] = Missing(stem=stem, maker=file["maker"], title=title, **entry)
    return found


def find(stem: str) -> Machine:
    """Return the row with this stem; other names of machines and instructions are accepted.

    Raises
    ------
    UserError
        If there is none; the message names the nearest stems, or says what is not known.

    Examples
    --------
    >>> from vitruvian import machines
    >>> machines.find("h100_mma_fp16_fp32").machine
    'h100'
    """
    rows = machines()
    name = stem.lower().replace("-", "_")
    for candidate in _spellings(name):
        if candidate in rows:
            return rows[candidate]
        for known, entry in missing().items():
            if candidate == known or candidate.startswith(f"{known}_"):
                _refuse_missing(entry.machine, entry.instruction)
    _refuse_missing(machine_name(name.partition("_")[0]), "")
    near = get_close_matches(name, rows, _NEAR, 0.5)
    machine = name.split("_")[0]
    own = [row for row in rows if row.split("_")[0] == machine]
    allowed = near or own[:_NEAR] or sorted({row.machine for row in rows.values()})
    raise UserError(f"machine must be a row of the table, as {', '.join(allowed)}, not {stem!r}")


def matching(name: str) -> list[Machine]:
    """Return the rows that a name of a machine, of an instruction of it or of a row stands for.

    Other names of machines and instructions are accepted. The list is empty for a machine that has
    only instructions without a known rule.

    Raises
    ------
    UserError
        As ``find``.

    Examples
    --------
    >>> from vitruvian import machines
    >>> [row.stem for row in machines.matching("rvbna_bf16_n8_fp32")]
    ['rvbna_bf16_n8_fp32']
    """
    given = name.lower().replace("-", "_")
    if machine_name(given) in _ruleless():
        return []
    rows = machines()
    for candidate in (given, *(spelling.strip("_") for spelling in _spellings(given))):
        if candidate in rows:
            return [rows[candidate]]
        own = [row for row in rows.values() if row.stem.startswith(f"{candidate}_")]
        if own:
            return own
    return [find(name)]


def spec(machine: str, instruction: str, formats: str, output: str = "fp32") -> Rule:
    """Return the parameter object of an instruction.

    Parameters
    ----------
    machine, instruction : str
        As in the table, for example "b200" and "tcgen05"; "" for a machine with one instruction.
    formats : str
        Format of both operands, or both with an x between them ("e4m3xe5m2").
    output : str
        Format of C and D.

    Raises
    ------
    UserError
        If the table has no such row; the message lists what exists, or says what is not known.

    Examples
    --------
    >>> from vitruvian import machines
    >>> machines.spec("a100", "mma", "bf16", "fp32").k
    8
    """
    _refuse_missing(machine_name(machine.lower()), instruction.lower())
    wanted = (machine_name(machine.lower()), instruction.lower(), formats.lower(), output.lower())
    rows = list(machines().values())
    for instruction_name in _instruction_names(wanted[1]):
        for row in rows:
            given = (row.machine, row.instruction, row.formats, row.output)
            if given == (wanted[0], instruction_name, *wanted[2:]):
                return row.rule
    columns = ("machine", "instruction", "formats", "output")
    for depth, column in enumerate(columns):
        allowed = list(dict.fromkeys(getattr(row, column) or '""' for row in rows))
        rows = [row for row in rows if getattr(row, column) == wanted[depth]]
        if not rows:
            near = get_close_matches(wanted[depth], allowed, 1, 0.6)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise UserError(
                f"{column} must be one of {', '.join(allowed)}, not {wanted[depth]!r}{hint}"
            )
    raise AssertionError("a row that matches in every column was returned above")


def _refuse_missing(machine: str, instruction: str) -> None:
    """Raise UserError if the rule of an instruction is not known."""
    stem = "_".join(word for word in (machine, instruction) if word)
    if machine in _ruleless() and stem not in missing():  # whatever the instruction is
        stem = _ruleless()[machine]
    if stem in missing():
        reason = missing()[stem].reason
        raise UserError(f"machine must be one with a known rule, not {stem}: {reason}")


@lru_cache
def _ruleless() -> dict[str, str]:
    """Return each machine without any known rule, and the first of its instructions."""
    known = {row.machine for row in machines().values()}
    found: dict[str, str] = {}
    for stem, entry in missing().items():
        if entry.machine not in known:
            found.setdefault(entry.machine, stem)
    return found


def output_format(machine: Machine) -> FloatFormat | None:
    """Return the format of C and D, or None for integers."""
    return None if machine.kind == "integer" else FORMATS[machine.output]


def instruction_of(machine: str, formats: str, output: str) -> str:
    """Return the first instruction of a machine with these formats; the first one if none has them.

    Raises
    ------
    UserError
        If the table has no such machine.
    """
    name = machine_name(machine.lower())
    rows = [row for row in machines().values() if row.machine == name]
    if not rows:
        return ""  # ``spec`` then says which machines there are
    wanted = [row for row in rows if (row.formats, row.output) == (formats, output)]
    fitting = wanted or [row for row in rows if row.formats == formats] or rows
    return fitting[0].instruction


def output_of(machine: str, instruction: str | None, formats: str) -> str:
    """Return the result's format for these operands: fp32, or another if there is no row with it.

    Parameters are those of ``spec``; without an instruction, all of the machine's are searched.
    """
    names = None if instruction is None else _instruction_names(instruction.lower())
    found = [
        row.output
        for row in machines().values()
        if row.machine == machine_name(machine.lower())
        and row.formats == formats.lower()
        and (names is None or row.instruction in names)
    ]
    return found[0] if found and "fp32" not in found else "fp32"


@lru_cache
def _named_files() -> tuple[tuple[str, dict[str, Any]], ...]:
    """Return the makers' files, parsed, with their names."""
    files: list[tuple[str, dict[str, Any]]] = []
    for path in sorted(FOLDER.glob("*.toml")):
        try:
            files.append((path.name, tomllib.loads(path.read_text(encoding="utf-8"))))
        except ValueError as error:
            raise UserError(f"{path.name} must be a TOML file: {error}") from None
    return tuple(files)


def _files() -> tuple[dict[str, Any], ...]:
    return tuple(file for _, file in _named_files())


def aliases() -> dict[str, str]:
    """Return the other names of machines, and the table's name for each."""
    return {alias: name for file in _files() for alias, name in file.get("aliases", {}).items()}


def machine_name(name: str) -> str:
    """Return the table's name of a machine that may be given by another name."""
    return aliases().get(name, name)


def _instruction_names(name: str) -> list[str]:
    """Return ``name`` and the instruction that it stands for if it has no row of its own."""
    return [name, *(f["synonyms"][name] for f in _files() if name in f.get("synonyms", {}))]


def _spellings(stem: str) -> Iterator[str]:
    """Yield the stem, and the stem with the table's names of its machine and instruction."""
    machine, _, rest = stem.partition("_")
    machine = machine_name(machine)
    yield f"{machine}_{rest}"
    instruction, _, formats = rest.partition("_")
    for name in _instruction_names(instruction):
        yield f"{machine}_{name}_{formats}"


def read_rows(file: dict[str, Any], where: str = "the file") -> Iterator[Machine]:
    """Yield one ``Machine`` for each combination of a maker's file.

    Parameters
    ----------
    file : dict
        The parsed file.
    where : str
        Name of the file, for messages.

    Raises
    ------
    UserError
        If a key, a name or a value is not one that a file may have; the message names the file,
        the row and the key.
    """
    yield from (row for _, row in _placed_rows(file, where))


def _placed_rows(file: dict[str, Any], where: str) -> Iterator[tuple[str, Machine]]:
    """Yield the rows of a file with their places, for messages."""
    check_file(file, where, _FORMATS)
    names = _FORMATS | file.get("names", {})
    for number, row in enumerate(file["row"], 1):
        place = place_of(where, number)
        pairs = row.get("pairs", ())
        formats = list(row.get("formats", ()))
        formats += [a if a == b else f"{a}x{b}" for a, b in product(pairs, pairs)]
        variants: dict[str, Any] = dict(row.get("variants", {"": None}))
        if "terms" in row:
            variants = {f"n{n}": n for n in row["terms"]}
        instructions = [row["instruction"], *row.get("also", ())]
        choices = product(row["machines"], instructions, formats, row["outputs"], variants)
        for machine, instruction, pair, output, variant in choices:
            stored = row.get("stored", pair)
            a, _, b = stored.partition("x") if stored not in names else (stored, "", "")
            a, b = names[a], names[b or a]
            try:
                rule = _rule(file, row, a, b, output, variants[variant])
            except (TypeError, ValueError) as error:
                raise UserError(f"{place}: {error}") from None
            # RVBNA's number of terms stands before the format of the result, a fidelity after it.
            tail = [variant, output] if "terms" in row else [output, variant]
            machine_row = Machine(
                stem=_stem(machine, instruction, pair, tail, row),
                maker=file["maker"],
                machine=machine,
                title=file["machines"][machine],
                instruction=instruction,
                formats=pair,
                output=output,
                input=_format(a),
                input_b=_format(b),
                rule_name=row["rule"],
                rule=rule,
                evidence=row["evidence"],
                zero_known=row.get("zero_known", True),
                no_set=row.get("no_set", ""),
            )
            yield place, machine_row


def _stem(machine: str, instruction: str, pair: str, tail: list[str], row: dict[str, Any]) -> str:
    """Return the name of a row."""
    words = [machine, instruction, pair, *tail]
    if row.get("stem") == "instruction":  # the instruction says everything
        words = [machine, instruction]
    elif row.get("stem") == "output":  # so does it but for the result's format
        words = [machine, instruction, *tail]
    return "_".join(word for word in words if word)


def _format(name: str) -> FloatFormat | IntFormat:
    if name in INT_FORMATS:
        return INT_FORMATS[name]
    return FORMATS[name] if name in FORMATS else OTHER_FORMATS[name]


def _rule(
    file: dict[str, Any], row: dict[str, Any], a: str, b: str, output: str, variant: Any
) -> Rule:
    """Return the parameter object of one combination of formats."""
    parameters: dict[str, Any] = {
        "kind": "dot",
        **file["rules"][row["rule"]],
        **row.get("with", {}),
    }
    for name in ("fp32", "fp16"):
        own = parameters.pop(name, {})
        if name == output:
            parameters = {**own, **parameters}
    kind = parameters.pop("kind")
    if kind == "integer phases":
        return IntPhaseSpec(phases=variant)
    if kind == "integer":
        return IntDotSpec(
            k=row["k"],
            signed_a=a == "int8",
            signed_b=b == "int8",
            saturate=parameters.get("saturate", False),
        )
    if kind == "rdna":
        return RdnaSpec(input=a, input_b=b, output=output, k=row["k"], **parameters)  # pyright: ignore
    if kind == "phases":
        parameters = {"input": a, "output": output, "phases": variant, **parameters}
        return PhaseSpec(**parameters)
    if kind in ("fma", "chain", "tree", "pairs"):
        return _chain(kind, (a, b), output, row, parameters)
    if "slices" in parameters:
        parameters["slices"] = tuple((p, q) for p, q in parameters["slices"])
    k = row.get("k", variant)
    if "terms" in row:
        parameters["window"] = _WIDEST + (variant - 1).bit_length()
    parameters.setdefault("window", None)
    return dot_spec(
        input=a,
        input_b=b,
        output=output,
        k=k,
        scale=row.get("scale"),
        block=row.get("block"),
        **parameters,
    )


def _chain(
    kind: str, inputs: tuple[str, str], output: str, row: dict[str, Any], parameters: dict[str, Any]
) -> Rule:
    """Return the parameter object of a chain, or of one fused multiply-add."""
    chain = {
        name: parameters.pop(name)
        for name in ("accumulators", "descending", "add_c", "zero_subnormals", "complex")
        if name in parameters
    }
    step = fma_step(inputs[0], output, inputs[1], **parameters)
    if kind == "fma":
        return step
    products = {"tree": "rounded", "pairs": "paired"}.get(kind, "fused")
    return ChainSpec(step=step, k=row.get("k"), products=products, **chain)
